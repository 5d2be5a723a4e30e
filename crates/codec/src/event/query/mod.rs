//! QUERY: a statement, its text and the session that it ran in.

pub(in crate::event) mod statement_values;
pub(in crate::event) mod user_var;

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
    /// `enable_cascade_triggers` (MySQL from 9.7 on: `SET @@session.enable_cascade_triggers` of its mysqlbinlog).
    pub enable_cascade_triggers: Option<bool>,
    /// Who ran it, user and host, where that may count: what it makes may be his.
    pub invoker: Option<(&'a [u8], &'a [u8])>,
    /// MariaDB: which part of an ALTER in two phases it is (`binlog_alter_two_phase`).
    pub alter: Option<AlterPhase>,
    /// MariaDB: `character_set_collations` where the statement went by that: pairs of two numbers of collations, of two bytes each.
    pub character_set_collations: Option<&'a [u8]>,
    /// The first code that is not known. What comes behind that is not read.
    pub unknown: Option<u8>,
}

/// A part of an ALTER that MariaDB logs twice: when it begins, and when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlterPhase {
    /// It has begun, and changes nothing yet.
    Start,
    /// It is done: what was begun under that sequence number counts from here on.
    Commit(u64),
    /// What was begun under that sequence number has failed, and never counts.
    Rollback(u64),
}

impl SessionSettings<'_> {
    /// MariaDB: `check_constraint_checks` (the opposite of `OPTION_NO_CHECK_CONSTRAINT_CHECKS`).
    pub fn check_constraint_checks(&self) -> bool {
        self.flags.is_none_or(|flags| flags & 1 << 15 == 0)
    }

    /// MariaDB: `explicit_defaults_for_timestamp` (`OPTION_EXPLICIT_DEF_TIMESTAMP`). MySQL states it by itself.
    pub fn explicit_defaults_flag(&self) -> bool {
        self.flags.is_some_and(|flags| flags & 1 << 24 != 0)
    }

    /// MariaDB: `sql_if_exists` (`OPTION_IF_EXISTS`).
    pub fn sql_if_exists(&self) -> bool {
        self.flags.is_some_and(|flags| flags & 1 << 28 != 0)
    }

    /// MariaDB: `system_versioning_insert_history` (`OPTION_INSERT_HISTORY`).
    pub fn inserts_history(&self) -> bool {
        self.flags.is_some_and(|flags| flags & 1 << 30 != 0)
    }

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

/// What the session of a QUERY event had; `event` may be its beginning, with all of its status variables.
///
/// # Errors
/// When the lengths in it do not fit.
pub fn session_of(event: &[u8]) -> Result<SessionSettings<'_>, EventError> {
    const CUT: EventError = EventError::Malformed("a QUERY event is cut short");
    let body = event.get(HEADER_LEN..).filter(|body| body.len() >= 13).ok_or(CUT)?;
    let len = usize::from(u16::from_le_bytes([body[11], body[12]]));
    session_settings(body.get(13..13 + len).ok_or(CUT)?)
}

/// Reads status variables up to the first code that is not known: its length is not known either. MariaDB from 11.5 on writes 131 before
/// 4, so no order can be relied on.
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
                let user_len = usize::from(take(1)?[0]);
                let user = take(user_len)?;
                let host_len = usize::from(take(1)?[0]);
                settings.invoker = Some((user, take(host_len)?));
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
            21 => settings.enable_cascade_triggers = Some(take(1)?[0] != 0),
            130 => settings.alter = alter_phase(take(1)?[0], || Ok(u64_at(take(8)?, 0)))?,
            131 => {
                let pairs = usize::from(take(1)?[0]);
                settings.character_set_collations = Some(take(4 * pairs)?);
            }
            unknown => {
                settings.unknown = Some(*unknown);
                break;
            }
        }
        rest = at;
    }
    Ok(settings)
}

/// `Q_GTID_FLAGS3`: the flags of MariaDB's GTID event again (`FL_START_ALTER_E1` and its neighbours, `sql/log_event.h`), and behind
/// the two that end an ALTER the sequence number under which it began.
pub(super) fn alter_phase(
    flags: u8,
    began: impl FnOnce() -> Result<u64, EventError>,
) -> Result<Option<AlterPhase>, EventError> {
    Ok(match flags & (2 | 4 | 8) {
        0 => None,
        2 => Some(AlterPhase::Start),
        4 => Some(AlterPhase::Commit(began()?)),
        _ => Some(AlterPhase::Rollback(began()?)),
    })
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
            &[18, 255, 0, 19, 1, 20, 0, 21, 1],
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
        assert_eq!((session.enable_cascade_triggers, session.unknown), (Some(true), Some(99)));
        let begin = event(b"", b"", b"BEGIN");
        assert!(Query::parse(&begin).unwrap().is_transaction_control());
    }

    /// As MariaDB 11.8 writes them: 131 stands before 4.
    #[test]
    fn settings_of_mariadb_are_read() {
        let of = |bytes: &[u8]| session_settings(bytes).map(|settings| (settings.alter, settings.unknown));
        assert_eq!(of(&[130, 2]), Ok((Some(AlterPhase::Start), None)));
        assert_eq!(of(&[130, 4, 7, 0, 0, 0, 0, 0, 0, 0]), Ok((Some(AlterPhase::Commit(7)), None)));
        assert_eq!(of(&[130, 8, 7, 0, 0, 0, 0, 0, 0, 0]), Ok((Some(AlterPhase::Rollback(7)), None)));
        assert_eq!(of(&[130, 1]), Ok((None, None)), "several engines");
        assert!(of(&[130, 4, 7]).is_err());
        let bytes = [131, 1, 45, 0, 46, 0, 4, 8, 0, 8, 0, 8, 0, 11, 1, b'u', 1, b'h', 0, 0, 0x80, 0, 0x51];
        let settings = session_settings(&bytes).unwrap();
        assert_eq!(settings.character_set_collations, Some(&[45, 0, 46, 0][..]));
        assert_eq!(settings.character_sets, Some((8, 8, 8)));
        assert_eq!(settings.invoker, Some((&b"u"[..], &b"h"[..])));
        assert!(!settings.check_constraint_checks() && settings.explicit_defaults_flag());
        assert!(settings.sql_if_exists() && settings.inserts_history());
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
