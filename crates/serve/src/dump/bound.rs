//! What holds a dump back although the log goes on: points at which it stops, and a delay.

use super::stop::StopWatch;
use crate::history::seen::{Seen, Verdict};
use codec::event::GtidEvent;
use std::time::Duration;

/// Microseconds of a second.
const SECOND: i64 = 1_000_000;

/// Over one dump.
#[derive(Debug)]
pub(crate) struct Bound {
    /// The first of them that is reached counts.
    pub(crate) stops: Vec<StopWatch>,
    /// A transaction is sent when so much time has passed since its commit.
    pub(crate) delay: Duration,
    /// The moment when the clock was looked at last, in microseconds since 1970. It may be older than that: then a
    /// transaction is held back, and the clock is looked at again.
    pub(crate) now: i64,
}

impl Bound {
    /// Decides whether the transaction that the event begins may be sent now; `None` if so. One that is had by the reader already
    /// waits for nothing.
    pub(crate) fn holds_back(&mut self, gtid: &GtidEvent, seen: &Seen<'_>, is_had: bool) -> Option<Verdict> {
        let exact = GtidEvent::commit_time(&seen.header, seen.bytes);
        // A header tells whole seconds.
        let time = exact.unwrap_or(i64::from(seen.header.timestamp) * SECOND);
        if self.stops.iter_mut().any(|stop| stop.ends_before(gtid, seen.file, seen.start, time)) {
            return Some(Verdict::End);
        }
        if self.delay.is_zero() || is_had {
            return None;
        }
        let at_the_latest = if exact.is_some() { time } else { time + SECOND };
        let delay = i64::try_from(self.delay.as_micros()).unwrap_or(i64::MAX);
        let due = at_the_latest.saturating_add(delay);
        (due > self.now).then_some(Verdict::Wait(due))
    }

    /// The transaction that the event begins is sent.
    pub(crate) fn sent(&mut self, gtid: &GtidEvent) {
        self.stops.iter_mut().for_each(|stop| stop.sent(gtid));
    }

    /// Whether a stop is reached, outside any transaction.
    pub(crate) fn is_done(&self) -> bool {
        self.stops.iter().any(StopWatch::is_done)
    }
}
