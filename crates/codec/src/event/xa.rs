//! The identifiers of XA transactions, in XA_PREPARE and in MariaDB's GTID events.

use super::error::EventError;
use super::fields::{u32_at, u64_at};
use super::gtid_event::MARIADB_STANDALONE;
use super::header::HEADER_LEN;
use super::query::{AlterPhase, alter_phase};
use std::fmt;

/// `FL_GROUP_COMMIT_ID`, `FL_PREPARED_XA` and `FL_COMPLETED_XA` of MariaDB's GTID event (`sql/log_event.h`).
const GROUP_COMMIT_ID: u8 = 2;
const PREPARED_XA: u8 = 64;
const COMPLETED_XA: u8 = 128;

/// `FL_EXTRA_MULTI_ENGINE_E1`, of the flags behind these: a count of engines follows.
const MULTI_ENGINE: u8 = 1;

/// The identifier of an XA transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Xid<'a> {
    /// `formatID`.
    pub format: u32,
    /// `gtrid`.
    pub transaction: &'a [u8],
    /// `bqual`.
    pub branch: &'a [u8],
}

impl<'a> Xid<'a> {
    fn of(format: u32, lens: [usize; 2], data: &'a [u8]) -> Option<Xid<'a>> {
        let (transaction, rest) = data.split_at_checked(lens[0])?;
        Some(Xid { format, transaction, branch: rest.get(..lens[1])? })
    }
}

impl fmt::Display for Xid<'_> {
    /// As the servers write it in statements: `X'78',X'62',7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [self.transaction, self.branch] {
            f.write_str("X'")?;
            part.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            f.write_str("',")?;
        }
        write!(f, "{}", self.format)
    }
}

/// XA_PREPARE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XaPrepare<'a> {
    /// It is XA COMMIT … ONE PHASE.
    pub one_phase: bool,
    /// Of which transaction.
    pub xid: Xid<'a>,
}

impl<'a> XaPrepare<'a> {
    /// Reads a whole event without its checksum (`XA_prepare_event`, `control_events.h`): one phase 1, format 4, two lengths of
    /// 4 each, the data.
    ///
    /// # Errors
    /// When it is cut short.
    pub fn parse(event: &'a [u8]) -> Result<XaPrepare<'a>, EventError> {
        const CUT: EventError = EventError::Malformed("an XA_PREPARE event is cut short");
        let body = event.get(HEADER_LEN..).filter(|body| body.len() >= 13).ok_or(CUT)?;
        let lens = [u32_at(body, 5) as usize, u32_at(body, 9) as usize];
        let xid = Xid::of(u32_at(body, 1), lens, &body[13..]).ok_or(CUT)?;
        Ok(XaPrepare { one_phase: body[0] != 0, xid })
    }
}

/// What MariaDB's GTID event says beyond the GTID (`Gtid_log_event`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MariadbGtidDetails<'a> {
    /// The transaction is the one statement that follows.
    pub standalone: bool,
    /// Transactions of one group commit have the same number.
    pub commit_id: Option<u64>,
    /// It begins an XA transaction, which is prepared at its end.
    pub prepared_xa: Option<Xid<'a>>,
    /// It is a part of an ALTER in two phases.
    pub alter: Option<AlterPhase>,
}

impl<'a> MariadbGtidDetails<'a> {
    /// Reads a whole event without its checksum: sequence 8, domain 4, flags 1; by the flags a commit id of 8 bytes, and format 4
    /// with two lengths of 1 each and the data; since 10.6 more flags 1, and by these a count of engines 1 and a sequence number 8.
    ///
    /// # Errors
    /// When it is cut short.
    pub fn parse(event: &'a [u8]) -> Result<MariadbGtidDetails<'a>, EventError> {
        const CUT: EventError = EventError::Malformed("a MariaDB GTID event is cut short");
        let mut rest = event.get(HEADER_LEN + 13..).ok_or(CUT)?;
        let flags = event[HEADER_LEN + 12];
        let mut commit_id = None;
        if flags & GROUP_COMMIT_ID != 0 {
            let (id, behind) = rest.split_first_chunk::<8>().ok_or(CUT)?;
            (commit_id, rest) = (Some(u64::from_le_bytes(*id)), behind);
        }
        let mut prepared_xa = None;
        if flags & (PREPARED_XA | COMPLETED_XA) != 0 {
            let (head, data) = rest.split_first_chunk::<6>().ok_or(CUT)?;
            let lens: [usize; 2] = [head[4].into(), head[5].into()];
            let xid = Xid::of(u32_at(head, 0), lens, data).ok_or(CUT)?;
            prepared_xa = Some(xid).filter(|_| flags & PREPARED_XA != 0);
            rest = &data[lens[0] + lens[1]..];
        }
        let alter = match rest.split_first() {
            Some((more, rest)) => {
                let number = rest.get(usize::from(more & MULTI_ENGINE)..).filter(|number| number.len() >= 8);
                alter_phase(*more, || number.map(|number| u64_at(number, 0)).ok_or(CUT))?
            }
            None => None,
        };
        let standalone = flags & MARIADB_STANDALONE != 0;
        Ok(MariadbGtidDetails { standalone, commit_id, prepared_xa, alter })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn identifiers_are_read_and_written() {
        let mut event = vec![0; HEADER_LEN];
        event.extend_from_slice(&[1, 7, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, b'j', b'k', b'b']);
        let prepare = XaPrepare::parse(&event).unwrap();
        assert!(prepare.one_phase);
        assert_eq!(prepare.xid.to_string(), "X'6a6b',X'62',7");
        assert!(XaPrepare::parse(&event[..event.len() - 1]).is_err());
        let mut event = vec![0; HEADER_LEN + 12];
        event.push(GROUP_COMMIT_ID | PREPARED_XA);
        event.extend_from_slice(&[9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, b'x']);
        let details = MariadbGtidDetails::parse(&event).unwrap();
        assert_eq!((details.standalone, details.commit_id), (false, Some(9)));
        assert_eq!(details.prepared_xa.unwrap().to_string(), "X'78',X'',1");
        // As MariaDB 11.8 writes them, with the session's number at the end.
        let alter = |behind: &[u8]| {
            let event = [&[0; HEADER_LEN + 12][..], &[0x29], behind].concat();
            MariadbGtidDetails::parse(&event).map(|details| details.alter)
        };
        assert_eq!(alter(&[0x12, 7, 0, 0, 0, 0]), Ok(Some(AlterPhase::Start)));
        assert_eq!(alter(&[0x14, 4, 0, 0, 0, 0, 0, 0, 0, 7]), Ok(Some(AlterPhase::Commit(4))));
        assert_eq!(alter(&[0x19, 2, 4, 0, 0, 0, 0, 0, 0, 0]), Ok(Some(AlterPhase::Rollback(4))));
        assert_eq!((alter(&[0; 6]), alter(&[])), (Ok(None), Ok(None)));
        assert!(alter(&[4, 1]).is_err());
        assert!(MariadbGtidDetails::parse(&event[..HEADER_LEN + 15]).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = XaPrepare::parse(&bytes);
            let _ = MariadbGtidDetails::parse(&bytes);
        }
    }
}
