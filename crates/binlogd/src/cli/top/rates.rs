//! What happens per second, of the counters of two answers.

use status::DaemonStatus;
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

/// Rates kept of each source, for its line of the past.
const KEPT: usize = 120;

/// Per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rate {
    /// Transactions stored to their end.
    pub(super) transactions: f64,
    /// Bytes of the binary log.
    pub(super) bytes: f64,
}

/// What is known of one source.
struct Track {
    at: Instant,
    transactions: u64,
    bytes: u64,
    past: VecDeque<Rate>,
}

/// The rates of all sources.
#[derive(Default)]
pub(super) struct Rates {
    /// The process that counted.
    pid: Option<u32>,
    tracks: BTreeMap<String, Track>,
}

impl Rates {
    /// Takes an answer that came at that time.
    pub(super) fn observe(&mut self, at: Instant, status: &DaemonStatus) {
        // Another process has begun to count anew.
        if self.pid != status.pid {
            *self = Rates { pid: status.pid, tracks: BTreeMap::new() };
        }
        self.tracks.retain(|name, _| status.sources.iter().any(|source| source.name == *name));
        for source in &status.sources {
            let (transactions, bytes) = (source.counters.transactions, source.counters.bytes_written);
            let track = self.tracks.entry(source.name.clone());
            let track = track.or_insert_with(|| Track { at, transactions, bytes, past: VecDeque::new() });
            let seconds = at.saturating_duration_since(track.at).as_secs_f64();
            if seconds <= 0.0 {
                continue;
            }
            let more = (transactions.checked_sub(track.transactions), bytes.checked_sub(track.bytes));
            match more {
                (Some(transactions), Some(bytes)) => {
                    let rate =
                        Rate { transactions: transactions as f64 / seconds, bytes: bytes as f64 / seconds };
                    track.past.push_back(rate);
                }
                // The source was taken away and added again.
                _ => track.past.clear(),
            }
            while track.past.len() > KEPT {
                track.past.pop_front();
            }
            (track.at, track.transactions, track.bytes) = (at, transactions, bytes);
        }
    }

    /// There was no answer: the next one is not compared with the last.
    pub(super) fn interrupt(&mut self) {
        self.tracks.clear();
    }

    /// The newest rate of a source; `None` before its second answer.
    pub(super) fn of(&self, source: &str) -> Option<Rate> {
        self.tracks.get(source)?.past.back().copied()
    }

    /// The rates of a source, the newest last.
    pub(super) fn past(&self, source: &str) -> impl Iterator<Item = Rate> {
        self.tracks.get(source).into_iter().flat_map(|track| track.past.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use status::SourceStatus;
    use std::time::Duration;

    fn status(pid: u32, transactions: u64, bytes: u64) -> DaemonStatus {
        let mut source = SourceStatus { name: "orders".to_owned(), ..SourceStatus::default() };
        source.counters.transactions = transactions;
        source.counters.bytes_written = bytes;
        DaemonStatus { pid: Some(pid), ..super::super::tests::daemon(vec![source]) }
    }

    #[test]
    fn two_answers_of_one_process_make_a_rate() {
        let (mut rates, began) = (Rates::default(), Instant::now());
        let after = |seconds| began + Duration::from_secs(seconds);
        rates.observe(began, &status(1, 100, 1000));
        assert_eq!(rates.of("orders"), None);
        rates.observe(after(2), &status(1, 150, 5000));
        assert_eq!(rates.of("orders"), Some(Rate { transactions: 25.0, bytes: 2000.0 }));
        rates.observe(after(3), &status(2, 10, 10));
        assert_eq!(rates.of("orders"), None, "another process");
        rates.observe(after(4), &status(2, 20, 20));
        rates.observe(after(5), &status(2, 5, 5));
        assert_eq!(rates.of("orders"), None, "counted anew");
        rates.observe(after(6), &status(2, 7, 5));
        assert_eq!(rates.of("orders"), Some(Rate { transactions: 2.0, bytes: 0.0 }));
        rates.interrupt();
        rates.observe(after(60), &status(2, 1000, 1000));
        assert_eq!(rates.of("orders"), None, "a minute without an answer is no rate");
        for second in 61..500 {
            rates.observe(after(second), &status(2, second * 1000, 1000));
        }
        assert_eq!(rates.past("orders").count(), KEPT);
        rates.observe(after(501), &DaemonStatus { sources: Vec::new(), ..status(2, 0, 0) });
        assert_eq!(rates.past("orders").count(), 0);
    }
}
