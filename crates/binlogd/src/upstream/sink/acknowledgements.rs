//! What the source asks for, what it is told, and what it is not told while acknowledgements are withheld.

use super::super::acknowledge::Acknowledger;
use super::super::cursor::Cursor;
use super::super::fork_watch::ForkWatch;
use super::super::session::{ReceiveOptions, SessionError};
use super::super::unasked::Unasked;
use super::gtids::GtidProgress;
use crate::status::SourceMonitor;
use codec::gtid::TransactionId;
use log::{Position, Safe};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use wire::DumpStream;

/// The acknowledgements of a session.
#[derive(Default)]
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
    /// The first packet has told whether semi-sync is in force.
    pub(super) fn begin(&mut self, semi_sync: bool) {
        self.semi_sync = semi_sync;
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
        if cursor.is_at_boundary() {
            self.acknowledger.request(boundary, arrived);
            gtids.are_wanted();
        } else {
            monitor.counters.unexpected_ack_requests.fetch_add(1, Relaxed);
            self.acknowledger.request_at_next_boundary(arrived);
        }
        Ok(())
    }

    /// They are not withheld any more: what was asked for is owed, all of which is written up to `end`.
    ///
    /// # Errors
    /// When something was asked for and nothing is written.
    pub(super) fn let_go(
        &mut self,
        end: Option<Position>,
        gtids: &mut GtidProgress,
    ) -> Result<(), SessionError> {
        let Some(mut withheld) = self.withheld.take() else { return Ok(()) };
        let compared = withheld.compared.drain(..).map(|(_, wanted)| wanted.arrived);
        if let Some(arrived) = compared.chain(withheld.others.take()).min() {
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

    /// Sends what is owed and safe, and says up to where.
    pub(super) fn send(
        &mut self,
        safe: Option<Safe>,
        files: &[String],
        stream: &mut DumpStream,
        options: &ReceiveOptions,
        monitor: &SourceMonitor,
    ) -> Result<Option<Position>, SessionError> {
        let acknowledger = &mut self.acknowledger;
        let Some((packet, position, arrived)) = safe.and_then(|safe| acknowledger.pay(&safe, files)) else {
            return Ok(None);
        };
        stream.write_all_blocking(packet, options.net_read_timeout).map_err(SessionError::Network)?;
        monitor.acknowledge_latency.record(options.clock.now().saturating_duration_since(arrived));
        monitor.counters.acknowledgements.fetch_add(1, Relaxed);
        if !std::mem::replace(&mut self.has_acknowledged, true) || monitor.semi_sync_wants_word() {
            // The source may have switched semi-sync on after the session began.
            monitor.semi_sync_acknowledges();
        }
        Ok(Some(position))
    }
}
