//! Which acknowledgement is owed, and the one way to pay it.

use codec::packet::semi_sync_acknowledgement;
use log::{Position, Safe};
use std::sync::Arc;
use std::time::Instant;

/// An acknowledgement that the source waits for.
#[derive(Debug, Clone)]
struct Owed {
    /// The boundary that the source wants to hear of.
    position: Position,
    /// When the packet that asks for it arrived.
    arrived: Instant,
}

/// Keeps the highest position for which the source has asked. One acknowledgement covers all earlier ones: the source
/// wakes every client that waits at or before it (`ReplSemiSyncMaster::reportReplyBinlog`).
#[derive(Debug, Default)]
pub(super) struct Acknowledger {
    owed: Option<Owed>,
    /// The source asked inside a transaction; the next boundary is owed. Acknowledging an earlier place would promise
    /// bytes that recovery cuts off.
    at_next_boundary: Option<Instant>,
    packet: Vec<u8>,
}

impl Acknowledger {
    /// The source asks for an acknowledgement of a boundary.
    pub(super) fn request(&mut self, boundary: &Position, arrived: Instant) {
        self.at_next_boundary = None;
        match &mut self.owed {
            // The earliest arrival is the one whose latency counts.
            Some(owed) if Arc::ptr_eq(&owed.position.file, &boundary.file) => {
                owed.position.offset = boundary.offset;
            }
            Some(owed) => owed.position = boundary.clone(),
            owed => *owed = Some(Owed { position: boundary.clone(), arrived }),
        }
    }

    /// The source asks for an acknowledgement in the middle of a transaction.
    pub(super) fn request_at_next_boundary(&mut self, arrived: Instant) {
        self.at_next_boundary.get_or_insert(arrived);
    }

    /// A boundary was reached: a request that came inside the transaction is now for this place.
    pub(super) fn boundary_reached(&mut self, boundary: &Position) {
        if let Some(arrived) = self.at_next_boundary.take() {
            self.request(boundary, arrived);
        }
    }

    /// True when the source waits for something.
    pub(super) fn is_owed(&self) -> bool {
        self.owed.is_some()
    }

    /// Takes what is owed if it lies within `safe`, and returns the whole packet to send, the acknowledged position and
    /// the arrival of the request. `files` are the log's, in order: what is safe in one is so in all before it, for a file is
    /// synced before the next one begins. This is the only place where an acknowledgement is made.
    pub(super) fn pay(&mut self, safe: &Safe, files: &[String]) -> Option<(&[u8], Position, Instant)> {
        let (owed, safe) = (&self.owed.as_ref()?.position, safe.position());
        let covered = if *owed.file == *safe.file {
            owed.offset <= safe.offset
        } else {
            let live = files.iter().position(|file| **file == *safe.file).unwrap_or(0);
            files[..live].iter().any(|file| **file == *owed.file)
        };
        if !covered {
            return None;
        }
        let Owed { position, arrived } = self.owed.take()?;
        self.packet.clear();
        semi_sync_acknowledgement(&mut self.packet, position.offset, position.file.as_bytes());
        Some((&self.packet, position, arrived))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use log::posix::PosixStorage;
    use log::recover::{Tail, recover};
    use log::writer::LogWriter;
    use std::io::IoSlice;

    /// The only way to a `Safe` is through a log, so the test has one.
    fn log(dir: &std::path::Path) -> LogWriter {
        let recovered = recover(&PosixStorage, dir, Tail::Discard).unwrap();
        let mut log = LogWriter::new(Arc::new(PosixStorage), dir, recovered, None);
        log.begin_file("b.000001").unwrap();
        log
    }

    #[test]
    fn nothing_past_the_safe_position_is_acknowledged() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(dir.path());
        let mut acks = Acknowledger::default();
        log.append(&mut [IoSlice::new(b"0123456789")]).unwrap();
        acks.request(&Position::new("b.000001", 14), Instant::now());
        let not_yet: Safe = log.durable().unwrap().into();
        assert!(acks.pay(&not_yet, log.files()).is_none());
        log.sync().unwrap();
        let safe: Safe = log.durable().unwrap().into();
        let (packet, position, _) = acks.pay(&safe, log.files()).unwrap();
        assert_eq!(position, Position::new("b.000001", 14));
        assert_eq!(packet, b"\x11\0\0\0\xef\x0e\0\0\0\0\0\0\0b.000001");
        assert!(acks.pay(&safe, log.files()).is_none(), "an acknowledgement is sent once");
    }

    #[test]
    fn a_request_inside_a_transaction_waits_for_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(dir.path());
        let mut acks = Acknowledger::default();
        log.append(&mut [IoSlice::new(&[0; 20])]).unwrap();
        log.sync().unwrap();
        let safe: Safe = log.durable().unwrap().into();
        acks.request_at_next_boundary(Instant::now());
        assert!(acks.pay(&safe, log.files()).is_none());
        acks.boundary_reached(&Position::new("b.000001", 24));
        assert_eq!(acks.pay(&safe, log.files()).unwrap().1.offset, 24);
    }

    #[test]
    fn a_safe_position_in_another_file_covers_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        let safe: Safe = log.durable().unwrap().into();
        let mut acks = Acknowledger::default();
        acks.request(&Position::new("b.000002", 4), Instant::now());
        assert!(acks.pay(&safe, log.files()).is_none());
    }

    #[test]
    fn a_safe_position_covers_the_files_before_it_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(dir.path());
        log.append(&mut [IoSlice::new(b"0123456789")]).unwrap();
        log.sync().unwrap();
        log.begin_file("b.000002").unwrap();
        let safe: Safe = log.durable().unwrap().into();
        let mut acks = Acknowledger::default();
        for other in ["b.000003", "b.000000", "a.000001"] {
            acks.request(&Position::new(other, 14), Instant::now());
            assert!(acks.pay(&safe, log.files()).is_none(), "{other}");
        }
        acks.request(&Position::new("b.000001", 14), Instant::now());
        assert_eq!(acks.pay(&safe, log.files()).unwrap().1, Position::new("b.000001", 14));
    }
}
