//! The settings that a statement must find in its session.

use codec::ServerKind;
use codec::event::{EventHeader, Query, SessionSettings};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What has been set in the target's session, so that only changes are sent.
#[derive(Debug, Default)]
pub struct Session {
    settings: String,
    schema: Vec<u8>,
    timestamp: String,
    /// Of settings that servers of some versions have only: what was set instead of what [`source::own_session`] has set.
    others: BTreeMap<&'static str, String>,
}

/// MariaDB's map of character sets to their default collations, by the numbers of collations. The names are the target's.
fn collations(pairs: &[u8]) -> String {
    let numbers: Vec<String> =
        pairs.chunks_exact(4).map(|pair| u16::from_le_bytes([pair[2], pair[3]]).to_string()).collect();
    match numbers.is_empty() {
        true => "''".to_owned(),
        false => format!(
            "(SELECT GROUP_CONCAT(CHARACTER_SET_NAME, '=', FULL_COLLATION_NAME) FROM \
             information_schema.COLLATION_CHARACTER_SET_APPLICABILITY WHERE ID IN ({}))",
            numbers.join(", ")
        ),
    }
}

/// Settings that servers of some versions have only: the name, what [`source::own_session`] has set, and what the event states.
fn others(kind: ServerKind, session: &SessionSettings<'_>) -> Vec<(&'static str, &'static str, String)> {
    let number = |on: bool| u8::from(on).to_string();
    if kind == ServerKind::MySql {
        let cascades = session.enable_cascade_triggers.unwrap_or(false);
        return vec![("enable_cascade_triggers", "0", number(cascades))];
    }
    vec![
        ("check_constraint_checks", "1", number(session.check_constraint_checks())),
        ("explicit_defaults_for_timestamp", "?", number(session.explicit_defaults_flag())),
        ("sql_if_exists", "0", number(session.sql_if_exists())),
        ("system_versioning_insert_history", "0", number(session.inserts_history())),
        ("character_set_collations", "''", collations(session.character_set_collations.unwrap_or_default())),
    ]
}

impl Session {
    /// The statements that bring the session to where this one ran on the source.
    pub fn before(&mut self, kind: ServerKind, header: &EventHeader, query: &Query<'_>) -> Vec<Vec<u8>> {
        const SUPPRESS_USE: u16 = 0x0008; // LOG_EVENT_SUPPRESS_USE_F: CREATE DATABASE and the like.
        let mut statements = Vec::new();
        let uses = header.flags & SUPPRESS_USE == 0 && !query.is_transaction_control();
        if uses && !query.schema.is_empty() && query.schema != self.schema {
            statements.push([b"USE ", &quoted_name(query.schema)[..]].concat());
            self.schema = query.schema.to_vec();
        }
        let settings = settings(query);
        if settings != self.settings {
            statements.push(settings.clone().into_bytes());
            self.settings = settings;
        }
        // COMMIT and its like depend on none of these.
        if !query.is_transaction_control() {
            for (name, before, value) in others(kind, &query.session) {
                if self.others.get(name).map_or(before, String::as_str) != value {
                    statements.push(format!("SET @@session.{name} = {value}").into_bytes());
                    self.others.insert(name, value);
                }
            }
        }
        statements.extend(self.at_time(header.timestamp, query.session.microseconds));
        statements
    }

    /// The statement that sets the session's clock, which the target writes into its binary log too.
    pub(in crate::rescue) fn at_time(&mut self, seconds: u32, microseconds: Option<u32>) -> Option<Vec<u8>> {
        let timestamp = match microseconds {
            Some(microseconds) => format!("SET TIMESTAMP = {seconds}.{microseconds:06}"),
            None => format!("SET TIMESTAMP = {seconds}"),
        };
        if timestamp == self.timestamp {
            return None;
        }
        self.timestamp.clone_from(&timestamp);
        Some(timestamp.into_bytes())
    }
}

/// One SET of everything that the event states.
fn settings(query: &Query<'_>) -> String {
    let session = &query.session;
    let mut set = format!("SET @@session.pseudo_thread_id = {}", query.thread_id);
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(set, ", @@session.{name} = {value}");
        }
    };
    let number = |on: bool| u8::from(on).to_string();
    add("foreign_key_checks", session.foreign_key_checks().map(number));
    add("unique_checks", session.unique_checks().map(number));
    add("sql_auto_is_null", session.sql_auto_is_null().map(number));
    add("sql_mode", session.sql_mode.map(|mode| mode.to_string()));
    let (increment, offset) = session.auto_increment.unwrap_or((1, 1));
    add("auto_increment_increment", Some(increment.to_string()));
    add("auto_increment_offset", Some(offset.to_string()));
    if let Some((client, connection, server)) = session.character_sets {
        add("character_set_client", Some(client.to_string()));
        add("collation_connection", Some(connection.to_string()));
        add("collation_server", Some(server.to_string()));
    }
    add("lc_time_names", Some(session.lc_time_names.unwrap_or(0).to_string()));
    let collation = session.collation_database.map_or("DEFAULT".to_owned(), |id| id.to_string());
    add("collation_database", Some(collation));
    add("time_zone", session.time_zone.map(|zone| quoted_text(&String::from_utf8_lossy(zone))));
    add("explicit_defaults_for_timestamp", session.explicit_defaults_for_timestamp.map(number));
    add("default_collation_for_utf8mb4", session.default_collation_for_utf8mb4.map(|id| id.to_string()));
    add("sql_require_primary_key", session.sql_require_primary_key.map(number));
    add("default_table_encryption", session.default_table_encryption.map(number));
    set
}

/// A name in backquotes.
fn quoted_name(name: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'`'];
    for byte in name {
        quoted.extend(std::iter::repeat_n(*byte, if *byte == b'`' { 2 } else { 1 }));
    }
    quoted.push(b'`');
    quoted
}

/// A text in quotes, whatever `sql_mode` says of backslashes: the names of time zones have none.
fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace(['\'', '\\'], ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::event::{EventType, SessionSettings};

    fn header(flags: u16) -> EventHeader {
        EventHeader {
            timestamp: 1000,
            event_type: EventType::QUERY,
            server_id: 1,
            event_size: 0,
            log_pos: 0,
            flags,
        }
    }

    fn texts(statements: Vec<Vec<u8>>) -> Vec<String> {
        statements.into_iter().map(|statement| String::from_utf8(statement).unwrap()).collect()
    }

    #[test]
    fn only_what_changes_is_set() {
        let mut session = Session::default();
        let mut query = Query {
            thread_id: 9,
            error_code: 0,
            schema: b"sh`op",
            session: SessionSettings {
                flags: Some(1 << 26),
                sql_mode: Some(32),
                character_sets: Some((255, 255, 8)),
                time_zone: Some(b"SYSTEM"),
                microseconds: Some(42),
                ..SessionSettings::default()
            },
            text: b"DROP TABLE t",
        };
        let first = texts(session.before(ServerKind::MySql, &header(0), &query));
        assert_eq!(first[0], "USE `sh``op`");
        assert_eq!(
            first[1],
            "SET @@session.pseudo_thread_id = 9, @@session.foreign_key_checks = 0, @@session.unique_checks = 1, \
             @@session.sql_auto_is_null = 0, @@session.sql_mode = 32, @@session.auto_increment_increment = 1, \
             @@session.auto_increment_offset = 1, @@session.character_set_client = 255, \
             @@session.collation_connection = 255, @@session.collation_server = 8, @@session.lc_time_names = 0, \
             @@session.collation_database = DEFAULT, @@session.time_zone = 'SYSTEM'"
        );
        assert_eq!(first[2], "SET TIMESTAMP = 1000.000042");
        assert!(session.before(ServerKind::MySql, &header(0), &query).is_empty());
        query.session.sql_mode = Some(0);
        assert_eq!(session.before(ServerKind::MySql, &header(0), &query).len(), 1);
    }

    #[test]
    fn a_schema_that_may_not_exist_is_not_used() {
        let query = |text| Query {
            thread_id: 1,
            error_code: 0,
            schema: b"new",
            session: SessionSettings::default(),
            text,
        };
        let uses = |header: &EventHeader, query: &Query<'_>| {
            texts(Session::default().before(ServerKind::MySql, header, query))
                .iter()
                .any(|statement| statement.starts_with("USE"))
        };
        assert!(!uses(&header(8), &query(b"CREATE DATABASE new")));
        assert!(!uses(&header(0), &query(b"BEGIN")));
        assert!(uses(&header(0), &query(b"CREATE TABLE t (id INT)")));
    }
}
