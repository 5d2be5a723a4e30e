//! What the source asks for, what it is told, and what it is not told while acknowledgements are withheld.

use super::super::session::{ReceiveOptions, SessionError};
use super::gtids::GtidProgress;
use crate::decide::fork_watch::ForkWatch;
use crate::session::cursor::Cursor;
use crate::session::unasked::Unasked;
use crate::sink::acknowledge::Acknowledger;
use crate::sink::downstream::{Downstream, HELD_MAX, NodeEnds, STALLED_MAX, safe};
use binlog::writer::LogWriter;
use binlog::{Position, SafeHere};
use codec::gtid::TransactionId;
use status::SourceMonitor;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use wire::DumpStream;

/// The acknowledgements of a session.
pub(super) struct Acknowledgements {
    acknowledger: Acknowledger,
    /// The source took the offer of semi-sync.
    semi_sync: bool,
    /// At least one acknowledgement was sent in this session.
    has_acknowledged: bool,
    /// Transactions since the source last asked for an acknowledgement.
    unasked: Unasked,
    /// Acknowledgements are withheld, but for what is handed back.
    withheld: Option<Withheld>,
    /// They wait for receivers further down.
    downstream: Option<Downstream>,
    /// Something was asked for while what is held is passed over. What passes is not compared before its end, and in the place of
    /// logs that were reset it would be something that nobody holds: it is owed when the end has passed.
    wanted_of_held: bool,
}

/// What the source asked for while acknowledgements are withheld.
#[derive(Debug, Default)]
struct Withheld {
    /// Transactions that may be handed back: acknowledged when they were compared with what was lost.
    compared: Vec<(TransactionId, Wanted)>,
    /// When the newest of all others came.
    others: Option<Instant>,
}

/// An acknowledgement that the source wants.
#[derive(Debug, Clone)]
struct Wanted {
    /// The end of the transaction, which the copy may have held before the session began.
    at: Position,
    arrived: Instant,
}

impl Acknowledgements {
    /// For a session whose acknowledgements wait for `downstream` too.
    pub(super) fn new(downstream: Option<Downstream>) -> Acknowledgements {
        let mut acknowledger = Acknowledger::default();
        if downstream.is_some() {
            acknowledger.keep_each();
        }
        Acknowledgements {
            acknowledger,
            semi_sync: false,
            has_acknowledged: false,
            unasked: Unasked::default(),
            withheld: None,
            downstream,
            wanted_of_held: false,
        }
    }

    /// The first packet has told whether semi-sync is in force.
    pub(super) fn begin(&mut self, semi_sync: bool) {
        self.semi_sync = semi_sync;
    }

    /// Whether something was asked for of what is held, and all of that has passed.
    pub(super) fn held_has_passed(&self, cursor: &Cursor) -> bool {
        self.wanted_of_held && cursor.has_passed_held()
    }

    /// What was asked for of what is held, which has passed, is owed from now on, not from before: the place was just compared.
    pub(super) fn held_is_wanted(&mut self, cursor: &Cursor, gtids: &mut GtidProgress, now: Instant) {
        let Some(end) = cursor.boundary() else { return };
        self.wanted_of_held = false;
        self.acknowledger.request(end, now);
        match self.downstream {
            None => gtids.are_wanted(),
            Some(_) => gtids.are_wanted_at(end),
        }
    }

    /// Whether they wait for receivers further down.
    pub(super) fn wait_for_others(&self) -> bool {
        self.downstream.is_some()
    }

    /// Has a node of a quorum look whether it counts by now.
    ///
    /// # Errors
    /// When the session is to end.
    pub(super) fn tend_node(
        &mut self,
        files: &[String],
        durable: Option<&Position>,
        forks: Option<&ForkWatch>,
        monitor: &SourceMonitor,
    ) -> Result<(), SessionError> {
        let withholds = self.are_withheld() || forks.is_some_and(ForkWatch::withholds);
        match &mut self.downstream {
            Some(downstream) => {
                downstream.tend(files, durable, withholds, monitor).map_err(|ends| match ends {
                    NodeEnds::Counts(epoch) => {
                        SessionError::Epoch(format!("this node counts in epoch {epoch} of the quorum"))
                    }
                    NodeEnds::Left(words) => SessionError::Epoch(words),
                    NodeEnds::Unwritten(error) => SessionError::Quorum(error.to_string()),
                })
            }
            None => Ok(()),
        }
    }

    /// Whether all that the source waits for is durable here, so that only others are waited for.
    pub(super) fn wait_for_others_only(&self, log: &LogWriter) -> bool {
        let newest = self.downstream.as_ref().and_then(|_| self.acknowledger.newest());
        let durable = log.durable();
        newest.zip(durable.as_ref()).is_some_and(|(owed, durable)| log.is_covered(owed, durable.position()))
    }

    /// Whether the source took the offer of semi-sync.
    pub(super) fn is_semi_sync(&self) -> bool {
        self.semi_sync
    }

    /// From now on they are withheld.
    pub(super) fn withhold(&mut self) {
        self.withheld = Some(Withheld::default());
    }

    pub(super) fn are_withheld(&self) -> bool {
        self.withheld.is_some()
    }

    /// True while something waits for the comparison with what was lost.
    pub(super) fn wait_for_comparison(&self) -> bool {
        self.withheld.as_ref().is_some_and(|withheld| !withheld.compared.is_empty())
    }

    /// True when the source waits for something that is not withheld.
    pub(super) fn are_owed(&self) -> bool {
        self.acknowledger.is_owed()
    }

    /// A transaction has arrived to its end.
    pub(super) fn transaction(&mut self) {
        if self.semi_sync {
            self.unasked.transaction();
        }
    }

    /// What is received has come to a boundary.
    pub(super) fn boundary_reached(&mut self, boundary: &Position) {
        self.acknowledger.boundary_reached(boundary);
    }

    /// The source has nothing newer.
    pub(super) fn caught_up(&mut self) {
        self.unasked.caught_up();
    }

    /// True while [`tell_unasked`](Self::tell_unasked) may have something to tell.
    pub(super) fn may_be_unasked(&self) -> bool {
        self.unasked.waits()
    }

    /// Semi-sync is lost, or the source has what it waits for from another replica: nobody waits for us here.
    pub(super) fn tell_unasked(&mut self, now: Instant, cursor: &Cursor, monitor: &SourceMonitor) {
        if let Some(transactions) = self.unasked.found(now) {
            let last_gtid = cursor.committed().map(|id| id.to_string());
            monitor.semi_sync_unasked(transactions, last_gtid);
        }
    }

    /// The source asks for an acknowledgement of the event that was just taken.
    ///
    /// # Errors
    /// When nobody can say of which place: what the source waits for must not be forgotten.
    pub(super) fn wanted(
        &mut self,
        cursor: &Cursor,
        gtids: &mut GtidProgress,
        forks: Option<&ForkWatch>,
        monitor: &SourceMonitor,
        arrived: Instant,
    ) -> Result<(), SessionError> {
        if self.unasked.asked() {
            monitor.semi_sync_asked_again();
        }
        if let Some(withheld) = &mut self.withheld {
            let at = cursor.reached().ok_or(SessionError::Unplaced)?;
            let concerned = forks.zip(cursor.committed());
            match concerned.filter(|(forks, id)| cursor.is_at_boundary() && forks.concerns(id)) {
                Some((_, id)) => withheld.compared.push((id, Wanted { at, arrived })),
                None => withheld.others = Some(arrived),
            }
            return Ok(());
        }
        let boundary = cursor.boundary().ok_or(SessionError::Unplaced)?;
        if !cursor.has_passed_held() {
            self.wanted_of_held = true;
        } else if cursor.is_at_boundary() {
            self.acknowledger.request(boundary, arrived);
            match self.downstream {
                None => gtids.are_wanted(),
                Some(_) => gtids.are_wanted_at(boundary),
            }
        } else {
            monitor.counters.unexpected_ack_requests.fetch_add(1, Relaxed);
            self.acknowledger.request_at_next_boundary(arrived);
        }
        Ok(())
    }

    /// They are not withheld any more: what was asked for is owed, all of which is written up to `end`, once what is held has
    /// passed and its end was compared.
    ///
    /// # Errors
    /// When something was asked for and nothing is written; or so long ago that the source's logs may have been reset since, which
    /// tells a replica nothing: another session compares the place first.
    pub(super) fn let_go(
        &mut self,
        end: Option<Position>,
        cursor: &Cursor,
        gtids: &mut GtidProgress,
        now: Instant,
    ) -> Result<(), SessionError> {
        let Some(mut withheld) = self.withheld.take() else { return Ok(()) };
        let compared = withheld.compared.drain(..).map(|(_, wanted)| wanted.arrived);
        if let Some(arrived) = compared.chain(withheld.others.take()).min() {
            let held = now.saturating_duration_since(arrived);
            if held >= HELD_MAX {
                return Err(SessionError::HeldLong(held));
            }
            if !cursor.has_passed_held() {
                self.wanted_of_held = true;
                return Ok(());
            }
            // What was asked for may lie in an earlier file; an acknowledgement of a later place covers it.
            self.acknowledger.request(&end.ok_or(SessionError::Unplaced)?, arrived);
            gtids.are_wanted();
        }
        Ok(())
    }

    /// Compares what may be handed back with what was lost: what was is owed.
    pub(super) fn compare(&mut self, forks: &ForkWatch, gtids: &mut GtidProgress) {
        let Some(withheld) = self.withheld.as_mut().filter(|withheld| !withheld.compared.is_empty()) else {
            return;
        };
        forks.compare();
        let mut waiting = Vec::new();
        for (id, wanted) in withheld.compared.drain(..) {
            match forks.is_handed_back(&id) {
                Some(true) => {
                    gtids.is_wanted(id);
                    // Just there, be it in an earlier file: any later place may cover what is withheld.
                    self.acknowledger.request(&wanted.at, wanted.arrived);
                }
                Some(false) => withheld.others = Some(wanted.arrived),
                None => waiting.push((id, wanted)),
            }
        }
        withheld.compared = waiting;
    }

    /// Sends what is owed and safe, and says up to where. `here` is what is safe on this machine.
    ///
    /// # Errors
    /// When it was asked for so long ago that the source's logs may have been reset since; or when it cannot be sent.
    pub(super) fn send(
        &mut self,
        here: Option<SafeHere>,
        log: &LogWriter,
        stream: &mut DumpStream,
        options: &ReceiveOptions,
        monitor: &SourceMonitor,
    ) -> Result<Option<Position>, SessionError> {
        let Some(here) = here else { return Ok(None) };
        let Some(safe) = safe(self.downstream.as_mut(), here, log.files(), &*options.clock, monitor) else {
            return Ok(None);
        };
        let acknowledger = &mut self.acknowledger;
        let held_max = match &self.downstream {
            Some(_) => HELD_MAX,
            None if self.withheld.is_none() => STALLED_MAX,
            // What is handed back while others are withheld was compared just now.
            None => Duration::MAX,
        };
        if let Some((oldest, arrived)) = acknowledger.oldest()
            && log.is_covered(oldest, safe.position())
        {
            let held = options.clock.now().saturating_duration_since(arrived);
            if held >= held_max {
                return Err(SessionError::HeldLong(held));
            }
        }
        let Some((packet, position, arrived)) = acknowledger.pay(&safe, log) else {
            return Ok(None);
        };
        stream.write_all_blocking(packet, options.net_read_timeout).map_err(SessionError::Network)?;
        monitor.acknowledge_latency.record(options.clock.now().saturating_duration_since(arrived));
        monitor.counters.acknowledgements.fetch_add(1, Relaxed);
        if self.downstream.as_ref().is_some_and(Downstream::is_alone) {
            monitor.counters.acknowledged_alone.fetch_add(1, Relaxed);
        }
        if !std::mem::replace(&mut self.has_acknowledged, true) || monitor.semi_sync_wants_word() {
            // The source may have switched semi-sync on after the session began.
            monitor.semi_sync_acknowledges();
        }
        Ok(Some(position))
    }

    /// How the receivers stand that are waited for: shows it, and says when they do not come in time. True when it is to be gone
    /// on without them. `reached` is the place that matters when nothing is owed.
    pub(super) fn look_at_others(
        &mut self,
        reached: Option<&Position>,
        files: &[String],
        now: Instant,
        monitor: &SourceMonitor,
    ) -> bool {
        let Some(downstream) = &mut self.downstream else { return false };
        let Some((oldest, arrived)) = self.acknowledger.oldest() else {
            downstream.has_come(monitor);
            if let Some(reached) = reached {
                downstream.show(reached, files, false, monitor);
            }
            return false;
        };
        downstream.show(oldest, files, true, monitor);
        let waited = now.saturating_duration_since(arrived);
        downstream.overdue_after().is_some_and(|limit| waited >= limit)
            && downstream.does_not_come(oldest, files, monitor)
    }

    /// How long until the receivers are overdue that are waited for.
    pub(super) fn look_at_others_within(&self, now: Instant) -> Option<Duration> {
        let (_, arrived) = self.acknowledger.oldest()?;
        let limit = self.downstream.as_ref()?.overdue_after()?;
        Some(limit.saturating_sub(now.saturating_duration_since(arrived)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::ServerKind;
    use codec::event::{ChecksumAlgorithm, EventType, FLAGS_AT, HEADER_LEN, flags};
    use std::sync::Arc;

    /// The first event of a dump.
    fn artificial_rotate(file: &str, position: u64) -> Vec<u8> {
        let body = [&position.to_le_bytes(), file.as_bytes()].concat();
        let mut event = vec![0; HEADER_LEN];
        event[4] = EventType::ROTATE.0;
        event[9..13].copy_from_slice(&((HEADER_LEN + body.len()) as u32).to_le_bytes());
        event[FLAGS_AT..].copy_from_slice(&flags::ARTIFICIAL.to_le_bytes());
        [event, body].concat()
    }

    /// Lets go, after `held`, what was asked for while the copy, which ends at 200, was at `requested`.
    fn let_go(requested: u64, held: Duration) -> (Result<(), SessionError>, Acknowledgements) {
        let end = Position::new("b.000001", 200);
        let mut cursor = Cursor::new(Some(end.clone()), requested, None, ChecksumAlgorithm::None);
        cursor.admit(&artificial_rotate("b.000001", requested)).unwrap();
        let mut gtids = GtidProgress::new(ServerKind::MySql, Arc::default());
        let (arrived, mut acknowledgements) = (Instant::now(), Acknowledgements::new(None));
        acknowledgements.withhold();
        acknowledgements.withheld.as_mut().unwrap().others = Some(arrived);
        let result = acknowledgements.let_go(Some(end), &cursor, &mut gtids, arrived + held);
        (result, acknowledgements)
    }

    #[test]
    fn what_was_withheld_is_owed_only_where_the_place_was_just_compared() {
        let (result, acknowledgements) = let_go(200, Duration::ZERO);
        assert!(result.is_ok() && acknowledgements.are_owed());
        let (result, acknowledgements) = let_go(4, Duration::ZERO);
        assert!(result.is_ok() && !acknowledgements.are_owed(), "what is held has not passed");
        assert!(acknowledgements.wanted_of_held);
        let (result, acknowledgements) = let_go(200, HELD_MAX);
        assert!(matches!(result, Err(SessionError::HeldLong(_))) && !acknowledgements.are_owed());
    }
}
