//! Connections that were turned away: counted by why, and said in the log, but not so often that strangers can fill it.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use wire::network_of;

/// One network is named once in this time for one reason.
const SAID_AGAIN: Duration = Duration::from_secs(10);

/// So many lines are written in this time, whoever comes.
const LINES_MAX: usize = 32;

/// Why a connection did not get as far as a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reason {
    /// `max_connections` have logged in, or there is no room for another one that has not (error 1040).
    TooManyConnections,
    /// Too many logins from its network have failed (1129).
    Blocked,
    /// A wrong user or password, no common method, or a database that is not here (1045, 1251, 1049).
    Login,
    /// It does not encrypt, and `require_tls` demands it (3159).
    NotEncrypted,
    /// Nobody can log in, or nothing of the source is held yet, or its source is of another kind than the greeting (1053, 1105).
    NothingToServe,
    /// It had not logged in when others wanted its place.
    Displaced,
    /// It had not logged in at the end of its time.
    Timeout,
    /// It is no client, or closed its connection before it had logged in.
    Protocol,
    /// The process has no thread or descriptor for it.
    NoResources,
}

impl Reason {
    /// All of them.
    pub(crate) const ALL: [Reason; 9] = [
        Reason::TooManyConnections,
        Reason::Blocked,
        Reason::Login,
        Reason::NotEncrypted,
        Reason::NothingToServe,
        Reason::Displaced,
        Reason::Timeout,
        Reason::Protocol,
        Reason::NoResources,
    ];

    /// As it stands in status and metrics.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Reason::TooManyConnections => "too_many_connections",
            Reason::Blocked => "blocked",
            Reason::Login => "login",
            Reason::NotEncrypted => "not_encrypted",
            Reason::NothingToServe => "nothing_to_serve",
            Reason::Displaced => "displaced",
            Reason::Timeout => "login_timeout",
            Reason::Protocol => "protocol",
            Reason::NoResources => "no_resources",
        }
    }
}

/// How many were turned away, and what was said of it last.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    counts: [AtomicU64; Reason::ALL.len()],
    said: Mutex<Said>,
}

#[derive(Debug, Default)]
struct Said {
    /// Of whom a line was written, and when.
    lines: HashMap<(Reason, IpAddr), Instant>,
    /// Since then so many were not written.
    unsaid: u64,
}

impl Refusals {
    /// Counts one, and writes `why` into the log unless that was done just now.
    pub(crate) fn refused(&self, reason: Reason, address: SocketAddr, why: &str) {
        self.counts[reason as usize].fetch_add(1, Relaxed);
        let Some(unsaid) = self.says(reason, address.ip(), Instant::now()) else { return };
        let unsaid = if unsaid > 0 { format!(" ({unsaid} more were not let in)") } else { String::new() };
        // Of those who scan ports, and of probes of a load balancer, nobody wants a line.
        match reason {
            Reason::Protocol => {
                tracing::debug!(%address, "a connection has ended before its login: {why}{unsaid}")
            }
            _ => tracing::warn!(%address, "a reader was not let in: {why}{unsaid}"),
        }
    }

    /// How many, by word.
    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        let count = |reason: Reason| (reason.word().to_owned(), self.counts[reason as usize].load(Relaxed));
        Reason::ALL.into_iter().map(count).collect()
    }

    /// Whether a line is to be written now; then, how many were not since the last one.
    fn says(&self, reason: Reason, address: IpAddr, now: Instant) -> Option<u64> {
        // At debug level, and so without a part in the lines of the others.
        if reason == Reason::Protocol {
            return Some(0);
        }
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let whom = (reason, network_of(address));
        said.lines.retain(|_, at| now.duration_since(*at) < SAID_AGAIN);
        if said.lines.len() >= LINES_MAX || said.lines.contains_key(&whom) {
            said.unsaid += 1;
            return None;
        }
        said.lines.insert(whom, now);
        Some(std::mem::take(&mut said.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_network_is_named_once_in_a_while_and_never_too_many() {
        let refusals = Refusals::default();
        let began = Instant::now();
        let from = |last: u8| IpAddr::from([10, 0, 0, last]);
        let says = |reason, last, now| refusals.says(reason, from(last), now);
        assert_eq!(says(Reason::Login, 1, began), Some(0));
        assert_eq!(says(Reason::Login, 1, began), None);
        assert_eq!(says(Reason::Blocked, 1, began), Some(1), "what was not written is told");
        assert_eq!(says(Reason::Login, 1, began + SAID_AGAIN), Some(0));
        let later = began + 2 * SAID_AGAIN;
        let lines = (0..100).filter(|last| says(Reason::Login, *last, later).is_some()).count();
        assert_eq!(lines, LINES_MAX);
        assert_eq!(says(Reason::Login, 200, later + SAID_AGAIN), Some(100 - LINES_MAX as u64));
    }

    #[test]
    fn each_reason_has_its_own_count() {
        let refusals = Refusals::default();
        for reason in Reason::ALL {
            refusals.refused(reason, ([10, 0, 0, 1], 1).into(), "x");
        }
        let counts = refusals.counts();
        assert!(counts.len() == Reason::ALL.len() && counts.values().all(|count| *count == 1), "{counts:?}");
    }
}
