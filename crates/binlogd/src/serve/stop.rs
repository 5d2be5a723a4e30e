//! Where a dump ends although the log goes on.

use codec::Position;
use codec::event::GtidEvent;
use codec::gtid::{GtidSet, TransactionId};

/// The end of a capped dump. It is looked at where a transaction begins, so that no reader is left with half of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopAt {
    /// Before the first transaction of the set, which is not sent any more (`SQL_BEFORE_GTIDS`).
    BeforeGtids(GtidSet),
    /// When the last transaction of the set has been sent (`SQL_AFTER_GTIDS`). What the reader had before counts as sent.
    AfterGtids(GtidSet),
    /// Before the first transaction that begins there or later, in that file.
    Position(Position),
}

/// Watches over one dump.
#[derive(Debug)]
pub(super) struct StopWatch {
    at: StopAt,
    /// Of [`StopAt::AfterGtids`], how many are still to be sent.
    outstanding: u64,
}

impl StopWatch {
    /// For a dump that begins behind `had`.
    pub(super) fn new(at: StopAt, had: &GtidSet) -> StopWatch {
        let outstanding = match &at {
            StopAt::AfterGtids(set) => set.subtract(had).len(),
            _ => u64::MAX,
        };
        StopWatch { at, outstanding }
    }

    /// Whether the event, which begins a transaction at `start` of `file`, is not to be sent any more.
    pub(super) fn ends_before(&self, gtid: &GtidEvent, file: &str, start: u64) -> bool {
        match &self.at {
            StopAt::BeforeGtids(set) => is_in(set, gtid.id),
            StopAt::AfterGtids(_) => self.outstanding == 0,
            StopAt::Position(at) => *at.file == *file && start >= at.offset,
        }
    }

    /// The transaction that the event begins is sent.
    pub(super) fn sent(&mut self, gtid: &GtidEvent) {
        if let StopAt::AfterGtids(set) = &self.at
            && is_in(set, gtid.id)
        {
            self.outstanding = self.outstanding.saturating_sub(1);
        }
    }

    /// Whether everything that was wanted has been sent, outside any transaction.
    pub(super) fn is_done(&self) -> bool {
        self.outstanding == 0
    }
}

fn is_in(set: &GtidSet, id: Option<TransactionId>) -> bool {
    matches!(id, Some(TransactionId::Mysql(gtid)) if set.contains(&gtid))
}
