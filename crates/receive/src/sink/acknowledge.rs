//! Which acknowledgement is owed, and the one way to pay it.

use binlog::writer::LogWriter;
use binlog::{Position, Safe};
use codec::packet::semi_sync_acknowledgement;
use std::collections::VecDeque;
use std::time::Instant;

/// Most requests that are kept one by one while receivers further down are waited for. Of more, the newest stands for all that
/// came since the one before.
pub(crate) const OWED_MAX: usize = 4096;

/// An acknowledgement that the source waits for.
#[derive(Debug, Clone)]
struct Owed {
    /// The boundary that the source wants to hear of.
    position: Position,
    /// When the packet that asks for it arrived.
    arrived: Instant,
}

/// Keeps the positions for which the source has asked. One acknowledgement covers all earlier ones: the source
/// wakes every client that waits at or before it (`ReplSemiSyncMaster::reportReplyBinlog`). So the highest will do where everything
/// is safe at once; where receivers further down are waited for, some may be safe while later ones are not.
#[derive(Debug, Default)]
pub(crate) struct Acknowledger {
    /// In the order in which they came.
    owed: VecDeque<Owed>,
    /// Each is kept, not the highest alone.
    keeps_each: bool,
    /// The source asked inside a transaction; the next boundary is owed. Acknowledging an earlier place would promise
    /// bytes that recovery cuts off.
    at_next_boundary: Option<Instant>,
    packet: Vec<u8>,
}

impl Acknowledger {
    /// From now on a part of what is owed may be paid before the rest.
    pub(crate) fn keep_each(&mut self) {
        self.keeps_each = true;
    }

    /// The source asks for an acknowledgement of a boundary.
    pub(crate) fn request(&mut self, boundary: &Position, arrived: Instant) {
        self.at_next_boundary = None;
        let most = if self.keeps_each { OWED_MAX } else { 1 };
        let is_full = self.owed.len() >= most;
        match self.owed.back_mut() {
            // The earliest arrival is the one whose latency counts.
            Some(owed) if owed.position == *boundary => {}
            Some(owed) if is_full => owed.position.clone_from(boundary),
            _ => self.owed.push_back(Owed { position: boundary.clone(), arrived }),
        }
    }

    /// The source asks for an acknowledgement in the middle of a transaction.
    pub(crate) fn request_at_next_boundary(&mut self, arrived: Instant) {
        self.at_next_boundary.get_or_insert(arrived);
    }

    /// A boundary was reached: a request that came inside the transaction is now for this place.
    pub(crate) fn boundary_reached(&mut self, boundary: &Position) {
        if let Some(arrived) = self.at_next_boundary.take() {
            self.request(boundary, arrived);
        }
    }

    /// True when the source waits for something.
    pub(crate) fn is_owed(&self) -> bool {
        !self.owed.is_empty()
    }

    /// What is owed longest, and since when.
    pub(crate) fn oldest(&self) -> Option<(&Position, Instant)> {
        self.owed.front().map(|owed| (&owed.position, owed.arrived))
    }

    /// What was asked for last.
    pub(crate) fn newest(&self) -> Option<&Position> {
        self.owed.back().map(|owed| &owed.position)
    }

    /// Takes what is owed as far as it lies within `safe`, and returns the whole packet to send, the acknowledged position and
    /// the arrival of the oldest request. What is safe in one file of the log is so in all before it, for a file is
    /// synced before the next one begins. This is the only place where an acknowledgement is made.
    pub(crate) fn pay(&mut self, safe: &Safe, log: &LogWriter) -> Option<(&[u8], Position, Instant)> {
        let is_covered = |owed: &Owed| log.is_covered(&owed.position, safe.position());
        let arrived = self.owed.front()?.arrived;
        let mut last = None;
        while self.owed.front().is_some_and(is_covered) {
            last = self.owed.pop_front();
        }
        let position = last?.position;
        self.packet.clear();
        semi_sync_acknowledgement(&mut self.packet, position.offset, position.file.as_bytes());
        Some((&self.packet, position, arrived))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::SafeHere;
    use binlog::recover::{Tail, recover};
    use binlog::storage::posix::PosixStorage;
    use std::io::IoSlice;
    use std::sync::Arc;

    /// The only way to a `Safe` is through a log, so the test has one.
    fn log(dir: &std::path::Path) -> LogWriter {
        let recovered = recover(&PosixStorage, dir, Tail::Discard).unwrap();
        let mut log = LogWriter::new(Arc::new(PosixStorage), dir, recovered, None);
        log.begin_file("b.000001").unwrap();
        log
    }

    fn safe(log: &LogWriter) -> Safe {
        SafeHere::from(log.durable().unwrap()).alone()
    }

    #[test]
    fn nothing_past_the_safe_position_is_acknowledged() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(dir.path());
        let mut acks = Acknowledger::default();
        log.append(&mut [IoSlice::new(b"0123456789")]).unwrap();
        acks.request(&Position::new("b.000001", 14), Instant::now());
        let not_yet = safe(&log);
        assert!(acks.pay(&not_yet, &log).is_none());
        log.sync().unwrap();
        let safe = safe(&log);
        let (packet, position, _) = acks.pay(&safe, &log).unwrap();
        assert_eq!(position, Position::new("b.000001", 14));
        assert_eq!(packet, b"\x11\0\0\0\xef\x0e\0\0\0\0\0\0\0b.000001");
        assert!(acks.pay(&safe, &log).is_none(), "an acknowledgement is sent once");
    }

    #[test]
    fn where_each_is_kept_a_part_is_paid_before_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(dir.path());
        log.append(&mut [IoSlice::new(&[0; 90])]).unwrap();
        log.sync().unwrap();
        let (here, at) =
            (|| SafeHere::from(log.durable().unwrap()), |offset| Position::new("b.000001", offset));
        let confirmations = binlog::writer::confirmations::Confirmations::default();
        let there = |offset| {
            confirmations.confirm(1, "x", &at(offset));
            here().and_there(&confirmations.by(1, 1, log.files()).unwrap(), log.files())
        };
        let mut acks = Acknowledger::default();
        acks.keep_each();
        for offset in [20, 40, 60] {
            acks.request(&at(offset), Instant::now());
        }
        assert!(acks.pay(&there(19), &log).is_none());
        let mut paid = |safe: &Safe| acks.pay(safe, &log).map(|(_, position, _)| position.offset);
        assert_eq!(paid(&there(50)), Some(40), "one acknowledgement for all that are safe");
        assert_eq!(paid(&there(59)), None);
        assert_eq!(paid(&there(1000)), Some(60), "no more than what is asked for");
        for offset in 0..2 * OWED_MAX as u64 {
            acks.request(&at(offset), Instant::now());
        }
        assert_eq!((acks.owed.len(), acks.newest()), (OWED_MAX, Some(&at(2 * OWED_MAX as u64 - 1))));
    }

    #[test]
    fn what_is_confirmed_elsewhere_is_no_safer_than_what_is_here() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(dir.path());
        let confirmations = binlog::writer::confirmations::Confirmations::default();
        confirmations.confirm(1, "x", &Position::new("b.000001", 1000));
        log.append(&mut [IoSlice::new(&[0; 90])]).unwrap();
        let here = SafeHere::from(log.durable().unwrap());
        let there = confirmations.by(1, 1, log.files()).unwrap();
        assert_eq!(
            here.clone().and_there(&there, log.files()).position(),
            here.position(),
            "nothing is synced"
        );
    }

    #[test]
    fn what_was_purged_while_receivers_were_waited_for_is_covered_by_what_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let uuid = codec::gtid::Uuid::from_bytes([7; 16]);
        let folder =
            binlog::testing::first_timeline(&uuid.to_string()).create(&PosixStorage, dir.path(), 1).unwrap();
        let mut log = log(&folder);
        log.append(&mut [IoSlice::new(&[0; 90])]).unwrap();
        log.sync().unwrap();
        let mut acks = Acknowledger::default();
        acks.keep_each();
        acks.request(&Position::new("b.000001", 50), Instant::now());
        acks.request(&Position::new("b.000003", 4), Instant::now());
        log.begin_file("b.000002").unwrap();
        let files = binlog::purge::order::list(&PosixStorage, dir.path()).unwrap();
        binlog::purge::record(
            &PosixStorage,
            &[&files[0]],
            "PURGE",
            jiff::Timestamp::UNIX_EPOCH,
            binlog::purge::Indexes::OfOlderTimelines,
        )
        .unwrap();
        log.begin_file("b.000003").unwrap();
        assert_eq!(log.files(), ["b.000002", "b.000003"]);
        let safe = safe(&log);
        let elsewhere = Position::new("other.000001", 4);
        assert!(!log.is_covered(&elsewhere, safe.position()) && !log.is_covered(safe.position(), &elsewhere));
        assert_eq!(acks.pay(&safe, &log).unwrap().1, Position::new("b.000003", 4));
        assert!(!acks.is_owed());
    }

    #[test]
    fn a_request_inside_a_transaction_waits_for_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(dir.path());
        let mut acks = Acknowledger::default();
        log.append(&mut [IoSlice::new(&[0; 20])]).unwrap();
        log.sync().unwrap();
        let safe = safe(&log);
        acks.request_at_next_boundary(Instant::now());
        assert!(acks.pay(&safe, &log).is_none());
        acks.boundary_reached(&Position::new("b.000001", 24));
        assert_eq!(acks.pay(&safe, &log).unwrap().1.offset, 24);
    }

    #[test]
    fn a_safe_position_in_another_file_covers_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        let safe = safe(&log);
        let mut acks = Acknowledger::default();
        acks.request(&Position::new("b.000002", 4), Instant::now());
        assert!(acks.pay(&safe, &log).is_none());
    }

    #[test]
    fn a_safe_position_covers_the_files_before_it_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(dir.path());
        log.append(&mut [IoSlice::new(b"0123456789")]).unwrap();
        log.sync().unwrap();
        log.begin_file("b.000002").unwrap();
        let safe = safe(&log);
        let mut acks = Acknowledger::default();
        for other in ["b.000003", "b.000000", "a.000001"] {
            acks.request(&Position::new(other, 14), Instant::now());
            assert!(acks.pay(&safe, &log).is_none(), "{other}");
        }
        acks.request(&Position::new("b.000001", 14), Instant::now());
        assert_eq!(acks.pay(&safe, &log).unwrap().1, Position::new("b.000001", 14));
    }
}
