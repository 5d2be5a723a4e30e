//! How binlogd's positions advance, seen from outside through its status.

use anyhow::bail;
use rig::statistics::Samples;
use rig::status_client::StatusClient;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest time without any advance.
const PATIENCE: Duration = Duration::from_secs(120);

/// What was seen of one catch-up.
#[derive(Debug)]
pub struct Progress {
    /// From the start of binlogd until the last byte was seen to be written.
    pub written_after: Duration,
    /// From the start of binlogd until the last byte was seen to be durable.
    pub durable_after: Duration,
    /// Times between advances of the bytes that the receiving thread had read from its socket
    /// (`counters.bytes_received`), until the last byte was written.
    pub received: Samples,
    /// Times between advances of the written position.
    pub written: Samples,
    /// Times between advances of the durable position; the first is that from the first byte received.
    pub durable: Samples,
    /// Of `durable`, the part that is certain: until the last look that still saw the old position was asked for. The
    /// look that sees the new one may itself have been late.
    pub durable_at_least: Samples,
    /// Times between two looks: what lies between them is not seen.
    pub looks: Samples,
    /// Events stored.
    pub events: u64,
    /// Transactions stored.
    pub transactions: u64,
}

/// Looks at the status of the binlogd whose data folder is `dir`, started at `began`, every `interval`, until
/// `position` in `file` is durable.
///
/// # Errors
/// When binlogd does not get there.
pub fn follow(
    dir: &Path,
    began: Instant,
    interval: Duration,
    file: &str,
    position: u64,
) -> anyhow::Result<Progress> {
    let mut client = StatusClient::of(dir)?;
    let (mut received, mut written, mut durable) = (Rung::default(), Rung::default(), Rung::default());
    let mut looks = Samples::with_capacity(1 << 16);
    let (mut looked, mut receiving_since, mut written_after) = (Instant::now(), None, None);
    let mut due = looked;
    loop {
        let asked = Instant::now();
        let status = client.status()?;
        let now = Instant::now();
        looks.record(now - looked);
        looked = now;
        let source = &status["sources"][0];
        if source["state"] == "stopped" {
            bail!("binlogd has stopped: {}", source["state_detail"]);
        }
        let bytes = source["counters"]["bytes_received"].as_u64().unwrap_or(0);
        if bytes > 0 {
            let since = *receiving_since.get_or_insert(now);
            if written_after.is_none() {
                received.look((String::new(), bytes), since, asked, now);
                written.look(place(&source["positions"]["written"]), since, asked, now);
            }
            durable.look(place(&source["positions"]["durable"]), since, asked, now);
        }
        if written_after.is_none() && written.is_at(file, position) {
            written_after = Some(now - began);
        }
        if durable.is_at(file, position) {
            return Ok(Progress {
                written_after: written_after.unwrap_or(now - began),
                durable_after: now - began,
                received: received.times,
                written: written.times,
                durable: durable.times,
                durable_at_least: durable.at_least,
                looks,
                events: source["counters"]["events"].as_u64().unwrap_or(0),
                transactions: source["counters"]["transactions"].as_u64().unwrap_or(0),
            });
        }
        let advanced = [received.advanced, durable.advanced].into_iter().flatten().max().unwrap_or(began);
        if advanced.elapsed() > PATIENCE {
            bail!("binlogd has not come to {position} in {file}, its status is {source}");
        }
        // A look that took too long is not made up for.
        due = (due + interval).max(now);
        std::thread::sleep(due - now);
    }
}

/// File and position; empty while not known.
fn place(value: &Value) -> (String, u64) {
    let file = value["file"].as_str().unwrap_or_default();
    (file.to_owned(), value["position"].as_u64().unwrap_or(0))
}

/// One position, followed.
#[derive(Default)]
struct Rung {
    last: (String, u64),
    advanced: Option<Instant>,
    /// When the last look began that saw no advance.
    still: Option<Instant>,
    times: Samples,
    at_least: Samples,
}

impl Rung {
    /// A look, `asked` for and answered `now`, saw it at `now_at`; the first byte was seen to have come at `since`.
    fn look(&mut self, now_at: (String, u64), since: Instant, asked: Instant, now: Instant) {
        let advanced = *self.advanced.get_or_insert(since);
        // What stood there before the first byte came is no advance.
        if now_at != self.last {
            self.last = now_at;
            if now > since {
                self.times.record(now - advanced);
                let still = self.still.map(|still| still.saturating_duration_since(advanced));
                self.at_least.record(still.unwrap_or_default());
            }
            (self.advanced, self.still) = (Some(now), None);
        } else {
            self.still = Some(asked);
        }
    }

    fn is_at(&self, file: &str, position: u64) -> bool {
        self.last.1 == position && self.last.0 == file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_time_without_an_advance_is_seen() {
        let since = Instant::now();
        let at = |milliseconds| since + Duration::from_millis(milliseconds);
        let mut rung = Rung::default();
        let mut look = |milliseconds, position| {
            rung.look(("a".to_owned(), position), since, at(milliseconds), at(milliseconds))
        };
        look(0, 4);
        look(2, 4);
        look(10, 900);
        look(60, 900);
        look(70, 1000);
        assert!(rung.is_at("a", 1000) && !rung.is_at("b", 1000));
        let percentiles = rung.times.percentiles();
        assert_eq!((percentiles.count, percentiles.p50, percentiles.max), (2, 10_000.0, 60_000.0));
        assert_eq!(rung.at_least.percentiles().max, 50_000.0);
    }
}
