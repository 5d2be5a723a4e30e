//! Where transactions begin and end.
//!
//! A *boundary* is a position between two transactions, or between events outside any. Recovery cuts at boundaries and
//! nowhere else, and an acknowledgement never names a position that is not one. Two rules find them:
//!
//! 1. MySQL 8.0.2 and later state the transaction's length in the event that opens it. That is the source's own word
//!    and holds for every kind of transaction, compressed ones included.
//! 2. Without it, the grammar: XID, XA PREPARE, COMMIT or ROLLBACK as a statement, a TRANSACTION_PAYLOAD, or a single
//!    statement (DDL; MariaDB's standalone flag) ends the transaction.
//!
//! The same machine runs over the stream while receiving and over the file in recovery, so both see the same boundaries.

use super::error::EventError;
use super::gtid_event::GtidEvent;
use super::header::EventHeader;
use super::query::{Control, query_text, transaction_control};
use super::types::EventType;
use crate::ServerKind;
use crate::gtid::TransactionId;

/// What an event did to the sequence of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The transaction before the event was never ended: another one begins, or the file ends. A source that crashed
    /// leaves such a stump. Its end is no boundary: a file that is cut there ends with a transaction that looks unfinished.
    pub abandoned: bool,
    /// The position after the event is a boundary.
    pub boundary: bool,
    /// The event ended a transaction; [`BoundaryTracker::committed`] says which.
    pub transaction: bool,
}

impl Step {
    const INSIDE: Step = Step { abandoned: false, boundary: false, transaction: false };
    const OUTSIDE: Step = Step { abandoned: false, boundary: true, transaction: false };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Between transactions.
    Outside,
    /// A GTID event or the preparation of a statement was read; the next statement decides.
    Opened,
    /// Inside BEGIN … COMMIT: only an explicit end ends it.
    Open,
}

/// The state machine. Give it every stored event in order.
#[derive(Debug, Clone)]
pub struct BoundaryTracker {
    state: State,
    /// Where the open transaction ends, by its own word.
    expected_end: Option<u64>,
    id: Option<TransactionId>,
    /// `id` of the transaction that was ended last.
    committed: Option<TransactionId>,
}

impl Default for BoundaryTracker {
    fn default() -> Self {
        BoundaryTracker::new()
    }
}

impl BoundaryTracker {
    /// A machine at a boundary.
    pub fn new() -> BoundaryTracker {
        BoundaryTracker { state: State::Outside, expected_end: None, id: None, committed: None }
    }

    /// True when the last position is a boundary.
    pub fn is_outside(&self) -> bool {
        self.state == State::Outside
    }

    /// Identifier of the transaction that was ended last, if it has one: that of the last event when its [`Step`] says
    /// that it ended one. It is not in the step, which is made and moved for each event and had better be small.
    pub fn committed(&self) -> Option<TransactionId> {
        self.committed
    }

    /// Takes one event. `event` is the whole event without its checksum, or at least its first
    /// [`super::PEEK_BYTES_MAX`] bytes; `start` and `end` are its 64-bit positions in the file.
    ///
    /// # Errors
    /// When a GTID event cannot be read.
    pub fn advance(
        &mut self,
        header: &EventHeader,
        event: &[u8],
        start: u64,
        end: u64,
    ) -> Result<Step, EventError> {
        if GtidEvent::is_gtid(header.event_type) {
            return self.open(header, event, start, end);
        }
        if ends_file(header.event_type) {
            let abandoned = self.state != State::Outside;
            *self = BoundaryTracker::new();
            return Ok(Step { abandoned, ..Step::OUTSIDE });
        }
        match self.expected_end {
            Some(expected) if end < expected => {
                // Remembered in case the stated length turns out wrong.
                if is_begin(header.event_type, event) {
                    self.state = State::Open;
                }
                return Ok(Step::INSIDE);
            }
            Some(expected) if end == expected => return Ok(self.close()),
            // The stated length does not fall on an event's end; the grammar is the only guide left.
            _ => self.expected_end = None,
        }
        Ok(self.by_grammar(header.event_type, event))
    }

    fn open(&mut self, header: &EventHeader, event: &[u8], start: u64, end: u64) -> Result<Step, EventError> {
        let gtid = GtidEvent::parse(header, event)?;
        let abandoned = self.state != State::Outside;
        // A length that ends within this very event cannot be right: a transaction is more than its GTID.
        let expected_end = gtid.transaction_length.and_then(|length| start.checked_add(length));
        let is_begin = gtid.kind == ServerKind::MariaDb && !gtid.standalone;
        *self = BoundaryTracker {
            state: if is_begin { State::Open } else { State::Opened },
            expected_end: expected_end.filter(|expected| *expected > end),
            id: gtid.id,
            committed: None,
        };
        Ok(Step { abandoned, ..Step::INSIDE })
    }

    fn close(&mut self) -> Step {
        *self = BoundaryTracker { committed: self.id, ..BoundaryTracker::new() };
        Step { abandoned: false, boundary: true, transaction: true }
    }

    fn by_grammar(&mut self, event_type: EventType, event: &[u8]) -> Step {
        match event_type {
            EventType::XID | EventType::XA_PREPARE => self.close(),
            EventType::QUERY => {
                let control = query_text(event).map_or(Control::Other, transaction_control);
                match (self.state, control) {
                    (State::Outside | State::Opened, Control::Begins) => self.stay(State::Open),
                    (State::Open, Control::Begins | Control::Other) => Step::INSIDE,
                    (_, Control::Ends) | (State::Outside | State::Opened, Control::Other) => self.close(),
                }
            }
            EventType::MARIADB_QUERY_COMPRESSED
            | EventType::EXECUTE_LOAD_QUERY
            | EventType::TRANSACTION_PAYLOAD
            | EventType::INCIDENT
                if self.state != State::Open =>
            {
                self.close()
            }
            // Its XID is inside the compressed payload.
            EventType::TRANSACTION_PAYLOAD => self.close(),
            other if self.state == State::Outside && !prepares_statement(other) => Step::OUTSIDE,
            _ if self.state == State::Outside => self.stay(State::Opened),
            _ => Step::INSIDE,
        }
    }

    fn stay(&mut self, state: State) -> Step {
        self.state = state;
        Step::INSIDE
    }
}

fn is_begin(event_type: EventType, event: &[u8]) -> bool {
    event_type == EventType::QUERY
        && query_text(event).is_some_and(|text| transaction_control(text) == Control::Begins)
}

/// Events that stand at a file's ends and so never inside a transaction.
fn ends_file(event_type: EventType) -> bool {
    matches!(
        event_type,
        EventType::ROTATE
            | EventType::STOP
            | EventType::FORMAT_DESCRIPTION
            | EventType::PREVIOUS_GTIDS
            | EventType::MARIADB_GTID_LIST
    )
}

/// Events that belong to a statement that has not come yet (servers without GTID events, before MySQL 5.7).
fn prepares_statement(event_type: EventType) -> bool {
    matches!(
        event_type,
        EventType::INTVAR
            | EventType::RAND
            | EventType::USER_VAR
            | EventType::BEGIN_LOAD_QUERY
            | EventType::APPEND_BLOCK
            | EventType::TABLE_MAP
            | EventType::ROWS_QUERY
            | EventType::MARIADB_ANNOTATE_ROWS
    )
}

#[cfg(test)]
mod tests {
    use super::super::header::HEADER_LEN;
    use super::*;
    use proptest::prelude::*;

    struct Script {
        tracker: BoundaryTracker,
        position: u64,
    }

    impl Script {
        fn new() -> Script {
            Script { tracker: BoundaryTracker::new(), position: 4 }
        }

        fn event(&mut self, event_type: EventType, body: &[u8]) -> Step {
            let mut event = vec![0u8; HEADER_LEN];
            event.extend_from_slice(body);
            let header = EventHeader {
                timestamp: 1,
                event_type,
                server_id: 1,
                event_size: event.len() as u32,
                log_pos: 0,
                flags: 0,
            };
            let start = self.position;
            self.position += event.len() as u64;
            self.tracker.advance(&header, &event, start, self.position).unwrap()
        }

        fn query(&mut self, text: &str) -> Step {
            let mut body = vec![0u8; 13];
            body[8] = 1;
            body.extend_from_slice(b"d\0");
            body.extend_from_slice(text.as_bytes());
            self.event(EventType::QUERY, &body)
        }

        fn anonymous(&mut self) -> Step {
            self.event(EventType::ANONYMOUS_GTID, &[0; 25])
        }

        /// A GTID event as MySQL 8.0 writes it, stating the transaction's length.
        fn gtid(&mut self, number: u64, length_after: u64) -> Step {
            let mut body = vec![0u8; 1];
            body.extend_from_slice(&[0xab; 16]);
            body.extend_from_slice(&number.to_le_bytes());
            body.push(2);
            body.extend_from_slice(&[0; 16 + 7]);
            let own = (HEADER_LEN + body.len() + 9) as u64;
            body.push(0xfe);
            body.extend_from_slice(&(own + length_after).to_le_bytes());
            self.event(EventType::GTID, &body)
        }

        fn mariadb_gtid(&mut self, sequence: u64, standalone: bool) -> Step {
            let mut body = sequence.to_le_bytes().to_vec();
            body.extend_from_slice(&[0; 4]);
            body.push(u8::from(standalone));
            self.event(EventType::MARIADB_GTID, &body)
        }
    }

    #[test]
    fn a_transaction_ends_at_its_xid() {
        let mut s = Script::new();
        assert!(s.event(EventType::FORMAT_DESCRIPTION, &[0; 80]).boundary);
        assert!(!s.anonymous().boundary);
        assert!(!s.query("BEGIN").boundary);
        assert!(!s.event(EventType::TABLE_MAP, &[]).boundary);
        assert!(!s.event(EventType::WRITE_ROWS, &[]).boundary);
        assert!(!s.query("SAVEPOINT a").boundary);
        assert!(!s.query("ROLLBACK TO `a`").boundary);
        let end = s.event(EventType::XID, &[0; 8]);
        assert!(end.boundary && end.transaction);
    }

    #[test]
    fn ddl_is_one_statement() {
        let mut s = Script::new();
        s.anonymous();
        assert!(s.query("CREATE TABLE t (a int)").transaction);
        s.anonymous();
        s.event(EventType::USER_VAR, &[]);
        assert!(s.query("DROP TABLE t").transaction);
    }

    #[test]
    fn xa_is_two_transactions() {
        let mut s = Script::new();
        s.anonymous();
        assert!(!s.query("XA START X'31',X'',1").boundary);
        assert!(!s.query("XA END X'31',X'',1").boundary);
        assert!(s.event(EventType::XA_PREPARE, &[]).transaction);
        s.anonymous();
        assert!(s.query("XA COMMIT X'31',X'',1").transaction);
    }

    #[test]
    fn a_stated_length_decides() {
        let mut s = Script::new();
        s.gtid(9, (HEADER_LEN + 100) as u64 + (HEADER_LEN + 8) as u64);
        assert!(!s.event(EventType::TRANSACTION_PAYLOAD, &[0; 100]).boundary);
        assert!(s.event(EventType(99), &[0; 8]).transaction);
        assert_eq!(s.tracker.committed().unwrap().to_string(), "abababab-abab-abab-abab-abababababab:9");
    }

    #[test]
    fn a_stated_length_that_fits_no_event_gives_way_to_the_grammar() {
        let mut s = Script::new();
        s.gtid(9, 50);
        assert!(!s.query("BEGIN").boundary);
        assert!(!s.event(EventType::WRITE_ROWS, &[0; 40]).boundary);
        assert!(s.event(EventType::XID, &[0; 8]).transaction);
    }

    #[test]
    fn a_compressed_transaction_is_one_event() {
        let mut s = Script::new();
        s.gtid(9, (HEADER_LEN + 100) as u64);
        assert!(s.event(EventType::TRANSACTION_PAYLOAD, &[0; 100]).transaction);
        s.anonymous();
        assert!(s.event(EventType::TRANSACTION_PAYLOAD, &[0; 100]).transaction);
    }

    #[test]
    fn mariadb_standalone_and_grouped() {
        let mut s = Script::new();
        s.mariadb_gtid(1, true);
        assert!(s.query("CREATE TABLE t (a int)").transaction);
        assert_eq!(s.tracker.committed().unwrap().to_string(), "0-1-1");
        s.mariadb_gtid(2, false);
        assert!(!s.query("INSERT INTO t VALUES (1)").boundary);
        assert!(!s.event(EventType::MARIADB_QUERY_COMPRESSED, &[]).boundary);
        assert!(s.event(EventType::XID, &[0; 8]).transaction);
        s.mariadb_gtid(3, false);
        assert!(!s.event(EventType::MARIADB_ANNOTATE_ROWS, b"INSERT").boundary);
        assert!(s.query("COMMIT").transaction);
    }

    #[test]
    fn the_end_of_a_file_ends_an_abandoned_transaction_without_committing_it() {
        let mut s = Script::new();
        s.mariadb_gtid(1, false);
        s.event(EventType::WRITE_ROWS, &[]);
        let step = s.event(EventType::FORMAT_DESCRIPTION, &[0; 80]);
        assert_eq!(step, Step { abandoned: true, boundary: true, transaction: false });
    }

    #[test]
    fn positions_past_4_gib_do_not_wrap() {
        let mut s = Script::new();
        s.position = u64::from(u32::MAX) - 10;
        s.gtid(1, (HEADER_LEN + 8) as u64);
        assert!(s.event(EventType::XID, &[0; 8]).transaction);
    }

    #[test]
    fn before_gtids_a_statement_with_its_preparation_is_a_transaction() {
        let mut s = Script::new();
        assert!(!s.event(EventType::INTVAR, &[]).boundary);
        assert!(s.query("INSERT INTO t VALUES (NULL)").transaction);
        assert!(!s.query("BEGIN").boundary);
        assert!(!s.query("INSERT INTO t VALUES (NULL)").boundary);
        assert!(s.event(EventType::XID, &[0; 8]).transaction);
    }

    proptest! {
        #[test]
        fn no_sequence_of_events_makes_it_panic(
            events in proptest::collection::vec((any::<u8>(), proptest::collection::vec(any::<u8>(), 0..80)), 0..40),
        ) {
            let mut tracker = BoundaryTracker::new();
            let mut position = 4u64;
            for (code, body) in events {
                let mut event = vec![0u8; HEADER_LEN];
                event.extend_from_slice(&body);
                let header = EventHeader {
                    timestamp: 0, event_type: EventType(code), server_id: 0,
                    event_size: event.len() as u32, log_pos: 0, flags: 0,
                };
                let end = position + event.len() as u64;
                let _ = tracker.advance(&header, &event, position, end);
                position = end;
            }
        }
    }
}
