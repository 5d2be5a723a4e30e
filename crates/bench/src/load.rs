//! What the scripted source does with a receiver: ping-pong, and many groups in flight.

use rig::statistics::{Percentiles, Samples};
use rig::usage::{Usage, Used, disk_bytes};
use scripted_source::{Acknowledgement, Dump, Load, SourceLog};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A receiver makes its files when the stream begins. A group that arrives together with the stream's first bytes would
/// have waited for that.
const SETTLE: Duration = Duration::from_millis(100);

/// The payload that makes a transaction of `bytes` bytes, or the smallest one.
pub fn payload_for(log: &SourceLog, bytes: usize) -> usize {
    bytes.saturating_sub(log.transaction_len(0))
}

/// Sends a group and waits for its acknowledgement: when the send began, and when the acknowledgement arrived.
///
/// # Errors
/// When the connection fails, and when another place is acknowledged than the group's end.
pub fn exchange(dump: &mut Dump, transactions: usize, payload: usize) -> io::Result<(Instant, Instant)> {
    let end = dump.append(|log| {
        log.group(transactions, payload);
        log.end()
    });
    dump.stage()?;
    let began = Instant::now();
    dump.send()?;
    let Acknowledgement { place, arrived } = dump.read_acknowledgement()?;
    match place == end {
        true => Ok((began, arrived)),
        false => Err(io::Error::other(format!("acknowledged {place:?}, not {end:?}"))),
    }
}

/// A xorshift generator.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// The same sequence for the same seed.
    pub fn new(seed: u64) -> Random {
        // Neither zero nor close to the neighbour's.
        Random(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// At least 0 and below 1.
    pub fn fraction(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// One group after the other: the next is sent when the one before was acknowledged.
#[derive(Debug)]
pub struct PingPong {
    /// Transactions in a group. The last one's end is what is acknowledged.
    pub transactions: usize,
    /// Bytes of each transaction.
    pub transaction_len: usize,
    /// Groups that are not counted, at the beginning.
    pub warm_up: usize,
    /// Groups that are counted.
    pub groups: usize,
    /// The receiver's process.
    pub process: Process,
    /// Gets the result.
    pub result: Sender<Rallies>,
}

/// What the groups that count have shown.
#[derive(Debug, Clone, Copy)]
pub struct Rallies {
    /// From before the write to after the read of the acknowledgement.
    pub latency: Percentiles,
    /// What the receiver has used.
    pub used: Used,
    /// Bytes that were written to its disk, by whomever; 0 when that is no block device of its own.
    pub disk_bytes: u64,
}

/// The process under test.
#[derive(Debug, Clone)]
pub struct Process {
    /// Its number, told when it has been started.
    pub pid: Arc<OnceLock<u32>>,
    /// A folder on the disk that it writes to.
    pub dir: PathBuf,
}

impl Process {
    /// One that will be started and write to `dir`.
    pub fn new(dir: &Path) -> Process {
        Process { pid: Arc::default(), dir: dir.to_owned() }
    }

    /// What it has used until now, and the bytes written to its disk. Waits for its start.
    fn usage(&self) -> anyhow::Result<(Usage, u64)> {
        Ok((Usage::of(*self.pid.wait())?, disk_bytes(&self.dir)?))
    }
}

impl Load for PingPong {
    fn run(&mut self, dump: &mut Dump) -> io::Result<()> {
        let payload = dump.append(|log| payload_for(log, self.transaction_len));
        let mut samples = Samples::with_capacity(self.groups);
        let usage = || self.process.usage().map_err(io::Error::other);
        let mut before = usage()?;
        std::thread::sleep(SETTLE);
        for index in 0..self.warm_up + self.groups {
            if index == self.warm_up {
                before = usage()?;
            }
            let (began, arrived) = exchange(dump, self.transactions, payload)?;
            if index >= self.warm_up {
                samples.record(arrived - began);
            }
        }
        let (after, (before, disk_before)) = (usage()?, before);
        let (used, disk_bytes) = (after.0.since(&before), after.1 - disk_before);
        let _ = self.result.send(Rallies { latency: samples.percentiles(), used, disk_bytes });
        Ok(())
    }
}

/// Groups of one transaction, each with a request for an acknowledgement, sent one by one without waiting as long as
/// fewer than a number of them are in flight.
#[derive(Debug)]
pub struct Flood {
    /// Bytes of each group.
    pub transaction_len: usize,
    /// Most groups that are sent and not acknowledged.
    pub in_flight_max: usize,
    /// How long.
    pub duration: Duration,
    /// Gets the result.
    pub result: Sender<Flooded>,
}

/// What became of the groups.
#[derive(Debug, Clone, Copy)]
pub struct Flooded {
    /// Groups that were sent, all of them acknowledged.
    pub groups: u64,
    /// Acknowledgements that came for them.
    pub acknowledgements: u64,
    /// From the first to the last, in seconds.
    pub seconds: f64,
    /// From before the write of a group to the acknowledgement that covers it.
    pub latency: Percentiles,
}

impl Load for Flood {
    fn run(&mut self, dump: &mut Dump) -> io::Result<()> {
        let payload = dump.append(|log| payload_for(log, self.transaction_len));
        let mut samples = Samples::with_capacity(1 << 20);
        let mut in_flight: VecDeque<(u64, Instant)> = VecDeque::with_capacity(self.in_flight_max);
        let (mut groups, mut acknowledgements) = (0, 0);
        std::thread::sleep(SETTLE);
        let began = Instant::now();
        loop {
            let sending = began.elapsed() < self.duration;
            if sending && in_flight.len() < self.in_flight_max {
                let end = dump.append(|log| {
                    log.group(1, payload);
                    log.end().position
                });
                dump.stage()?;
                in_flight.push_back((end, Instant::now()));
                dump.send()?;
                groups += 1;
            } else if in_flight.is_empty() {
                break;
            } else {
                let acknowledgement = dump.read_acknowledgement()?;
                acknowledgements += 1;
                while let Some((end, sent)) = in_flight.front().copied()
                    && end <= acknowledgement.place.position
                {
                    samples.record(acknowledgement.arrived - sent);
                    in_flight.pop_front();
                }
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        let latency = samples.percentiles();
        let _ = self.result.send(Flooded { groups, acknowledgements, seconds, latency });
        Ok(())
    }
}
