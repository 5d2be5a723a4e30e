//! What the scripted source does with a receiver: ping-pong, and a pool of clients.

use crate::statistics::{Percentiles, Samples};
use scripted_source::{Dump, Load, SourceLog};
use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// The payload that makes a transaction of `bytes` bytes, or the smallest one.
pub fn payload_for(log: &SourceLog, bytes: usize) -> usize {
    bytes.saturating_sub(log.transaction_len(0))
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
    /// Gets the times from before the write to after the read of the acknowledgement.
    pub result: Sender<Percentiles>,
}

impl Load for PingPong {
    fn run(&mut self, dump: &mut Dump) -> io::Result<()> {
        let payload = dump.append(|log| payload_for(log, self.transaction_len));
        let mut samples = Samples::with_capacity(self.groups);
        for index in 0..self.warm_up + self.groups {
            let end = dump.append(|log| {
                log.group(self.transactions, payload);
                log.end()
            });
            dump.stage()?;
            let began = Instant::now();
            dump.send()?;
            let acknowledgement = dump.read_acknowledgement()?;
            if acknowledgement.place != end {
                return Err(io::Error::other(format!(
                    "acknowledged {:?}, not {end:?}",
                    acknowledgement.place
                )));
            }
            if index >= self.warm_up {
                samples.record(acknowledgement.arrived - began);
            }
        }
        let _ = self.result.send(samples.percentiles());
        Ok(())
    }
}

/// Clients that commit, wait until their transaction is acknowledged, and commit again at once. Whatever has gathered
/// while acknowledgements are outstanding makes the next group, as in a server's group commit.
#[derive(Debug)]
pub struct Clients {
    /// How many.
    pub clients: usize,
    /// Bytes of each transaction.
    pub transaction_len: usize,
    /// Groups that are sent before one of them is acknowledged. A MySQL source flushes and syncs one group while the
    /// one before waits, so 2.
    pub in_flight_max: usize,
    /// How long.
    pub duration: Duration,
    /// Gets the result.
    pub result: Sender<Commits>,
}

/// What the clients saw.
#[derive(Debug, Clone, Copy)]
pub struct Commits {
    /// Commits a second.
    pub per_second: f64,
    /// Time of a commit.
    pub latency: Percentiles,
    /// Groups, each with one request for an acknowledgement.
    pub groups: u64,
}

impl Load for Clients {
    fn run(&mut self, dump: &mut Dump) -> io::Result<()> {
        let payload = dump.append(|log| payload_for(log, self.transaction_len));
        let began = Instant::now();
        let mut waiting = vec![began; self.clients];
        let mut in_flight: VecDeque<(u64, Vec<Instant>)> = VecDeque::new();
        let mut samples = Samples::with_capacity(1 << 20);
        let (mut commits, mut groups) = (0u64, 0);
        while began.elapsed() < self.duration {
            if !waiting.is_empty() && in_flight.len() < self.in_flight_max {
                let end = dump.append(|log| {
                    log.group(waiting.len(), payload);
                    log.end().position
                });
                while dump.stage()? {
                    dump.send()?;
                }
                groups += 1;
                in_flight.push_back((end, std::mem::take(&mut waiting)));
                continue;
            }
            let acknowledgement = dump.read_acknowledgement()?;
            while in_flight.front().is_some_and(|(end, _)| *end <= acknowledgement.place.position) {
                let (_, submitted) = in_flight.pop_front().unwrap_or_default();
                for client in submitted {
                    samples.record(acknowledgement.arrived - client);
                    waiting.push(acknowledgement.arrived);
                    commits += 1;
                }
            }
        }
        let per_second = commits as f64 / began.elapsed().as_secs_f64();
        // Leave nothing unanswered behind: the acknowledgements are not expected by what comes next.
        while !in_flight.is_empty() {
            let acknowledgement = dump.read_acknowledgement()?;
            in_flight.retain(|(end, _)| *end > acknowledgement.place.position);
        }
        let _ = self.result.send(Commits { per_second, latency: samples.percentiles(), groups });
        Ok(())
    }
}
