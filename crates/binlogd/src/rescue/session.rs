//! The settings that a statement must find in its session.

use codec::event::{EventHeader, Query};
use std::fmt::Write;

/// What has been set in the target's session, so that only changes are sent.
#[derive(Debug, Default)]
pub(super) struct Session {
    settings: String,
    schema: Vec<u8>,
    timestamp: String,
}

impl Session {
    /// The statements that bring the session to where this one ran on the source.
    pub(super) fn before(&mut self, header: &EventHeader, query: &Query<'_>) -> Vec<Vec<u8>> {
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
        statements.extend(self.at_time(header.timestamp, query.session.microseconds));
        statements
    }

    /// The statement that sets the session's clock, which the target writes into its binary log too.
    pub(super) fn at_time(&mut self, seconds: u32, microseconds: Option<u32>) -> Option<Vec<u8>> {
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
        let first = texts(session.before(&header(0), &query));
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
        assert!(session.before(&header(0), &query).is_empty());
        query.session.sql_mode = Some(0);
        assert_eq!(session.before(&header(0), &query).len(), 1);
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
            texts(Session::default().before(header, query))
                .iter()
                .any(|statement| statement.starts_with("USE"))
        };
        assert!(!uses(&header(8), &query(b"CREATE DATABASE new")));
        assert!(!uses(&header(0), &query(b"BEGIN")));
        assert!(uses(&header(0), &query(b"CREATE TABLE t (id INT)")));
    }
}
