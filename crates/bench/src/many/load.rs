//! Many scripted sources in a process of their own, each sending at a steady rate.
//!
//! A process of its own because its processor time must be told apart from that of binlogd. It talks to the benchmark
//! by lines: prints its ports, prints `ready` when every source is being dumped, reads a line, sends, prints what it
//! saw, and ends when its standard input does.

use crate::load::{Random, exchange, payload_for};
use anyhow::{Context, bail};
use rig::statistics::Samples;
use scripted_source::{Dump, Load, LogOptions, Script, ScriptedSource, SourceLog};
use serde_json::json;
use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A send that begins this long after it was due is late.
const LATE: Duration = Duration::from_millis(1);

/// Longest wait for every source to be dumped.
const PATIENCE: Duration = Duration::from_secs(60);

/// From the word to begin to the beginning, so that every thread is awake.
const LEAD: Duration = Duration::from_millis(100);

/// Arguments of `binlogd-bench many-load`.
#[derive(Debug, Clone, clap::Args)]
pub struct ManyLoadArgs {
    /// Count of sources.
    #[arg(long)]
    pub sources: usize,
    /// Transactions a second of each source.
    #[arg(long)]
    pub per_second: u32,
    /// Bytes of a transaction.
    #[arg(long)]
    pub bytes: usize,
    /// Seconds that are not counted, at the beginning.
    #[arg(long)]
    pub warm_up: u32,
    /// Seconds that are counted.
    #[arg(long)]
    pub seconds: u32,
    /// Of the phases in which the sources send.
    #[arg(long)]
    pub seed: u64,
}

/// Runs it.
///
/// # Errors
/// When a source cannot be started, or is not dumped.
pub fn run(args: &ManyLoadArgs) -> anyhow::Result<()> {
    let gate = Arc::new(Gate::default());
    let ((ready, is_ready), (result, results)) = (mpsc::channel(), mpsc::channel());
    let period = Duration::from_secs(1) / args.per_second;
    let mut random = Random::new(args.seed);
    let mut sources = Vec::new();
    for number in 1..=args.sources {
        let mut uuid = [0xab; 16];
        uuid[8..].copy_from_slice(&(number as u64).to_be_bytes());
        let options = LogOptions { server_id: number as u32, uuid, ..LogOptions::default() };
        let load = Paced {
            transaction_len: args.bytes,
            phase: period.mul_f64(random.fraction()),
            period,
            warm_up: args.per_second * args.warm_up,
            count: args.per_second * args.seconds,
            gate: gate.clone(),
            ready: ready.clone(),
            result: result.clone(),
        };
        let script = Script::new(SourceLog::new(options));
        sources.push(ScriptedSource::start_with(script, load)?);
    }
    drop((ready, result));
    println!("{}", json!(sources.iter().map(ScriptedSource::port).collect::<Vec<u16>>()));
    let deadline = Instant::now() + PATIENCE;
    for count in 0..args.sources {
        if is_ready.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_err() {
            bail!("only {count} of {} sources are being dumped after {PATIENCE:?}", args.sources);
        }
    }
    println!("\"ready\"");
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    gate.open(Instant::now() + LEAD);
    let mut all = Sent::default();
    let mut missing = args.sources;
    let longest = Duration::from_secs(u64::from(args.warm_up + args.seconds)) + PATIENCE;
    let deadline = Instant::now() + longest;
    while missing > 0 {
        let left = deadline.saturating_duration_since(Instant::now());
        let sent = results
            .recv_timeout(left)
            .with_context(|| format!("{missing} sources have not ended after {longest:?}"))?;
        all.add(sent);
        missing -= 1;
    }
    println!(
        "{}",
        json!({
            "sent": all.sent,
            "acknowledged": all.acknowledged,
            "late": all.late,
            "overtaken": all.overtaken,
            "error": all.error,
            "latency": all.latency.percentiles().to_json(),
            "since_due": all.since_due.percentiles().to_json(),
        })
    );
    io::stdin().read_line(&mut line)?;
    Ok(())
}

/// Says when all sources begin.
#[derive(Debug, Default)]
struct Gate {
    begin: Mutex<Option<Instant>>,
    opened: Condvar,
}

impl Gate {
    fn open(&self, begin: Instant) {
        *self.begin.lock().unwrap_or_else(PoisonError::into_inner) = Some(begin);
        self.opened.notify_all();
    }

    fn wait(&self) -> Instant {
        let mut begin = self.begin.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(begin) = *begin {
                return begin;
            }
            begin = self.opened.wait(begin).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// One transaction a period, due at times that are fixed from the beginning. The next is not sent before the one before
/// was acknowledged, as by a client of a source with semi-sync; what is then late is sent at once and counted.
#[derive(Debug)]
struct Paced {
    transaction_len: usize,
    /// Of the first transaction, after the gate's beginning.
    phase: Duration,
    period: Duration,
    /// Transactions that are not timed.
    warm_up: u32,
    /// Transactions that are timed, after those.
    count: u32,
    gate: Arc<Gate>,
    ready: Sender<()>,
    result: Sender<Sent>,
}

/// What a source saw.
#[derive(Debug, Default)]
struct Sent {
    /// Transactions sent, with those of the warm-up.
    sent: u64,
    /// Those of them that were acknowledged.
    acknowledged: u64,
    /// Timed sends that began more than a millisecond after they were due.
    late: u64,
    /// Timed sends that were due before the one before was acknowledged.
    overtaken: u64,
    /// What ended a source early.
    error: Option<String>,
    /// From the send to the read of the acknowledgement.
    latency: Samples,
    /// From when the send was due to the read of the acknowledgement.
    since_due: Samples,
}

impl Sent {
    fn add(&mut self, other: Sent) {
        self.sent += other.sent;
        self.acknowledged += other.acknowledged;
        self.late += other.late;
        self.overtaken += other.overtaken;
        self.error = self.error.take().or(other.error);
        self.latency.extend(other.latency);
        self.since_due.extend(other.since_due);
    }
}

impl Load for Paced {
    fn run(&mut self, dump: &mut Dump) -> io::Result<()> {
        let mut sent = Sent::default();
        let result = self.send_all(dump, &mut sent);
        sent.error = result.as_ref().err().map(ToString::to_string);
        let _ = self.result.send(sent);
        result
    }
}

impl Paced {
    fn send_all(&self, dump: &mut Dump, sent: &mut Sent) -> io::Result<()> {
        let payload = dump.append(|log| payload_for(log, self.transaction_len));
        sent.latency = Samples::with_capacity(self.count as usize);
        sent.since_due = Samples::with_capacity(self.count as usize);
        let _ = self.ready.send(());
        let first = self.gate.wait() + self.phase;
        for number in 0..self.warm_up + self.count {
            let timed = number >= self.warm_up;
            let due = first + self.period * number;
            match due.checked_duration_since(Instant::now()) {
                Some(left) => std::thread::sleep(left),
                None => sent.overtaken += u64::from(timed),
            }
            sent.sent += 1;
            let (began, arrived) = exchange(dump, 1, payload)?;
            sent.acknowledged += 1;
            if timed {
                sent.late += u64::from(began - due > LATE);
                sent.latency.record(arrived - began);
                sent.since_due.record(arrived - due);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_spread_and_follow_the_seed() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..200).map(|_| random.fraction()).collect::<Vec<f64>>()
        };
        let fractions = draw(1);
        assert!(fractions.iter().all(|fraction| (0.0..1.0).contains(fraction)));
        for tenth in 0..10 {
            let count = fractions.iter().filter(|fraction| (**fraction * 10.0) as i32 == tenth).count();
            assert!((8..=35).contains(&count), "{count} of 200 in tenth {tenth}");
        }
        assert_eq!(fractions, draw(1));
        assert_ne!(fractions, draw(2));
    }
}
