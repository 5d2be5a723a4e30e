//! QUERY: a statement, its text and the session that it ran in.

use super::error::EventError;
use super::fields::{u32_at, u64_at};
use super::header::HEADER_LEN;

/// How many leading bytes of an event are enough for every look that binlogd takes at it.
///
/// The longest is a QUERY event: 19 + 13 bytes, status variables of at most 65 535 bytes, a schema name of at most 255
/// bytes with its terminator, and the first words of the statement.
pub const PEEK_BYTES_MAX: usize = 19 + 13 + 65_535 + 256 + 64;

/// The statement of a QUERY event, as far as it is within `event` (which may be the beginning of the event only).
///
/// Layout (`Query_event`): thread id 4, duration 4, schema length 1, error code 2, status variables length 2, the
/// status variables, the schema with a terminating zero, the statement. Returns `None` when the lengths do not fit.
pub fn query_text(event: &[u8]) -> Option<&[u8]> {
    let fixed = event.get(HEADER_LEN..HEADER_LEN + 13)?;
    let schema_len = usize::from(fixed[8]);
    let status_len = usize::from(u16::from_le_bytes([fixed[11], fixed[12]]));
    event.get(HEADER_LEN + 13 + status_len + schema_len + 1..)
}

/// A whole QUERY event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query<'a> {
    /// `pseudo_thread_id` of the session, which names its temporary tables.
    pub thread_id: u32,
    /// Error that the statement ended with on the source, 0 for none. Not 0 where a statement failed half done.
    pub error_code: u16,
    /// Default schema of the session; empty for none.
    pub schema: &'a [u8],
    /// Settings of the session that its result depends on.
    pub session: SessionSettings<'a>,
    /// The statement, in the session's `character_set_client`.
    pub text: &'a [u8],
}

/// The settings that a QUERY event carries in its status variables; `None` where the writer did not state one.
///
/// Source: `Query_event::Query_event_status_vars` in MySQL's `libs/mysql/binlog/event/statement_events.h`; codes from 128
/// on are MariaDB's (`sql/log_event.h`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionSettings<'a> {
    /// Bits of `option_bits`; see [`SessionSettings::foreign_key_checks`] and its neighbours.
    pub flags: Option<u32>,
    /// `sql_mode`, as a number.
    pub sql_mode: Option<u64>,
    /// `auto_increment_increment` and `auto_increment_offset`.
    pub auto_increment: Option<(u16, u16)>,
    /// Ids of `character_set_client`, `collation_connection` and `collation_server`.
    pub character_sets: Option<(u16, u16, u16)>,
    /// `time_zone`.
    pub time_zone: Option<&'a [u8]>,
    /// Number of `lc_time_names`.
    pub lc_time_names: Option<u16>,
    /// Id of `collation_database`.
    pub collation_database: Option<u16>,
    /// Microseconds after the header's timestamp.
    pub microseconds: Option<u32>,
    /// `explicit_defaults_for_timestamp`.
    pub explicit_defaults_for_timestamp: Option<bool>,
    /// MySQL: number of the transaction in the storage engines, of a definition that is atomic (`ddl_xid`).
    pub ddl_xid: Option<u64>,
    /// Id of `default_collation_for_utf8mb4`.
    pub default_collation_for_utf8mb4: Option<u16>,
    /// `sql_require_primary_key`.
    pub sql_require_primary_key: Option<bool>,
    /// `default_table_encryption`.
    pub default_table_encryption: Option<bool>,
}

impl SessionSettings<'_> {
    /// `sql_auto_is_null` (`OPTION_AUTO_IS_NULL`).
    pub fn sql_auto_is_null(&self) -> Option<bool> {
        self.flags.map(|flags| flags & 1 << 14 != 0)
    }

    /// `foreign_key_checks` (the opposite of `OPTION_NO_FOREIGN_KEY_CHECKS`).
    pub fn foreign_key_checks(&self) -> Option<bool> {
        self.flags.map(|flags| flags & 1 << 26 == 0)
    }

    /// `unique_checks` (the opposite of `OPTION_RELAXED_UNIQUE_CHECKS`).
    pub fn unique_checks(&self) -> Option<bool> {
        self.flags.map(|flags| flags & 1 << 27 == 0)
    }
}

impl<'a> Query<'a> {
    /// Reads a whole event without its checksum.
    ///
    /// # Errors
    /// When the lengths in it do not fit.
    pub fn parse(event: &'a [u8]) -> Result<Query<'a>, EventError> {
        const CUT: EventError = EventError::Malformed("a QUERY event is shorter than its own lengths say");
        let body = event.get(HEADER_LEN..).filter(|body| body.len() >= 13).ok_or(CUT)?;
        let schema_len = usize::from(body[8]);
        let settings_len = usize::from(u16::from_le_bytes([body[11], body[12]]));
        let settings = body.get(13..13 + settings_len).ok_or(CUT)?;
        let rest = &body[13 + settings_len..];
        Ok(Query {
            thread_id: u32_at(body, 0),
            error_code: u16::from_le_bytes([body[9], body[10]]),
            schema: rest.get(..schema_len).ok_or(CUT)?,
            session: session_settings(settings)?,
            text: rest.get(schema_len + 1..).ok_or(CUT)?,
        })
    }

    /// True for the words that only begin or end a transaction.
    pub fn is_transaction_control(&self) -> bool {
        transaction_control(self.text) != Control::Other
    }
}

/// Reads status variables up to the first code that is not known: its length is not known either, and the servers write
/// the codes in growing order so that a reader may stop there.
fn session_settings(bytes: &[u8]) -> Result<SessionSettings<'_>, EventError> {
    const CUT: EventError = EventError::Malformed("a status variable of a QUERY event is cut short");
    let mut settings = SessionSettings::default();
    let mut rest = bytes;
    while let Some((code, after)) = rest.split_first() {
        let mut at = after;
        let mut take = |len: usize| -> Result<&[u8], EventError> {
            let (taken, left) = at.split_at_checked(len).ok_or(CUT)?;
            at = left;
            Ok(taken)
        };
        let number = |bytes: &[u8]| u16::from_le_bytes([bytes[0], bytes[1]]);
        match code {
            0 => settings.flags = Some(u32_at(take(4)?, 0)),
            1 => settings.sql_mode = Some(u64_at(take(8)?, 0)),
            2 => {
                let len = usize::from(take(1)?[0]);
                take(len + 1)?;
            }
            3 => settings.auto_increment = Some((number(take(2)?), number(take(2)?))),
            4 => settings.character_sets = Some((number(take(2)?), number(take(2)?), number(take(2)?))),
            5 => {
                let len = usize::from(take(1)?[0]);
                settings.time_zone = Some(take(len)?).filter(|name| !name.is_empty());
            }
            6 => {
                let len = usize::from(take(1)?[0]);
                take(len)?;
            }
            7 => settings.lc_time_names = Some(number(take(2)?)),
            8 => settings.collation_database = Some(number(take(2)?)),
            10 => drop(take(4)?),
            11 => {
                for _ in ["user", "host"] {
                    let len = usize::from(take(1)?[0]);
                    take(len)?;
                }
            }
            12 => {
                const TOO_MANY_TO_LIST: u8 = 254;
                let count = take(1)?[0];
                for _ in 0..if count == TOO_MANY_TO_LIST { 0 } else { count } {
                    while take(1)?[0] != 0 {}
                }
            }
            13 | 128 => {
                let bytes = take(3)?;
                settings.microseconds = Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]));
            }
            16 => settings.explicit_defaults_for_timestamp = Some(take(1)?[0] != 0),
            17 => settings.ddl_xid = Some(u64_at(take(8)?, 0)),
            9 | 129 => drop(take(8)?),
            18 => settings.default_collation_for_utf8mb4 = Some(number(take(2)?)),
            19 => settings.sql_require_primary_key = Some(take(1)?[0] != 0),
            20 => settings.default_table_encryption = Some(take(1)?[0] != 0),
            130 => drop(take(2)?),
            _ => break,
        }
        rest = at;
    }
    Ok(settings)
}

/// What a statement does to the transaction that it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    Begins,
    Ends,
    Other,
}

/// Classifies a statement without its checksum, as the servers' own `Query_event` does (`starts_group`, `ends_group`):
/// they write the control words themselves, in capitals; any case is accepted here.
pub(super) fn transaction_control(text: &[u8]) -> Control {
    let starts = |word: &[u8]| text.len() >= word.len() && text[..word.len()].eq_ignore_ascii_case(word);
    if text.eq_ignore_ascii_case(b"BEGIN") || starts(b"XA START") {
        Control::Begins
    } else if text.eq_ignore_ascii_case(b"COMMIT")
        || (starts(b"ROLLBACK") && !starts(b"ROLLBACK TO"))
        || starts(b"XA COMMIT")
        || starts(b"XA ROLLBACK")
    {
        Control::Ends
    } else {
        Control::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_rollback_to_a_savepoint_does_not_end_the_transaction() {
        assert_eq!(transaction_control(b"ROLLBACK TO `a`"), Control::Other);
        assert_eq!(transaction_control(b"ROLLBACK"), Control::Ends);
        assert_eq!(transaction_control(b"ROLLBACK /* generated by server */"), Control::Ends);
        assert_eq!(transaction_control(b"COMMIT"), Control::Ends);
        assert_eq!(transaction_control(b"COMMIT_LOG_TABLE"), Control::Other);
        assert_eq!(transaction_control(b"BEGIN"), Control::Begins);
        assert_eq!(transaction_control(b"XA START X'78',X'',1"), Control::Begins);
        assert_eq!(transaction_control(b"XA COMMIT X'78',X'',1"), Control::Ends);
        assert_eq!(transaction_control(b"BEGINNING"), Control::Other);
    }

    fn event(schema: &[u8], settings: &[u8], text: &[u8]) -> Vec<u8> {
        let mut event = vec![0; HEADER_LEN];
        event.extend_from_slice(&7u32.to_le_bytes());
        event.extend_from_slice(&0u32.to_le_bytes());
        event.push(schema.len() as u8);
        event.extend_from_slice(&0u16.to_le_bytes());
        event.extend_from_slice(&(settings.len() as u16).to_le_bytes());
        event.extend_from_slice(settings);
        event.extend_from_slice(schema);
        event.push(0);
        event.extend_from_slice(text);
        event
    }

    #[test]
    fn the_session_is_read_up_to_the_first_unknown_setting() {
        let settings = [
            &[0, 0, 0, 0, 0x0c][..],         // no foreign_key_checks, no unique_checks
            &[1, 0x20, 0, 0, 0, 0, 0, 0, 0], // sql_mode
            &[6, 3, b's', b't', b'd'],       // catalog
            &[4, 255, 0, 255, 0, 8, 0],      // character sets
            &[5, 6, b'S', b'Y', b'S', b'T', b'E', b'M'],
            &[12, 2, b'a', 0, b'b', b'c', 0], // updated databases
            &[13, 0x40, 0xe2, 0x01],          // 123456 microseconds
            &[17, 1, 2, 3, 4, 5, 6, 7, 8],
            &[18, 255, 0, 19, 1, 20, 0],
            &[99, 1, 2],
        ]
        .concat();
        let bytes = event(b"shop", &settings, b"DROP TABLE t");
        let query = Query::parse(&bytes).unwrap();
        assert_eq!((query.schema, query.text, query.thread_id), (&b"shop"[..], &b"DROP TABLE t"[..], 7));
        let session = &query.session;
        assert_eq!((session.foreign_key_checks(), session.unique_checks()), (Some(false), Some(false)));
        assert_eq!((session.sql_auto_is_null(), session.sql_mode), (Some(false), Some(32)));
        assert_eq!(session.character_sets, Some((255, 255, 8)));
        assert_eq!((session.time_zone, session.microseconds), (Some(&b"SYSTEM"[..]), Some(123_456)));
        assert_eq!(session.default_collation_for_utf8mb4, Some(255));
        assert_eq!(
            (session.sql_require_primary_key, session.default_table_encryption),
            (Some(true), Some(false))
        );
        assert!(!query.is_transaction_control());
        let begin = event(b"", b"", b"BEGIN");
        assert!(Query::parse(&begin).unwrap().is_transaction_control());
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        let whole = event(b"shop", &[1, 0, 0, 0, 0, 0, 0, 0, 0], b"");
        for len in 0..whole.len() {
            assert!(Query::parse(&whole[..len]).is_err(), "{len} bytes");
        }
        assert!(Query::parse(&whole).is_ok());
        assert!(Query::parse(&event(b"", &[5, 9, b'x'], b"BEGIN")).is_err());
        assert!(Query::parse(&event(b"", &[12, 1, b'x'], b"BEGIN")).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(text) = query_text(&bytes) {
                transaction_control(text);
            }
            let _ = Query::parse(&bytes);
            let _ = Query::parse(&event(b"", &bytes, b"BEGIN"));
        }
    }
}
