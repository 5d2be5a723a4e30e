//! What the statements of a session leave behind: user variables, session variables, the last error.

pub(in crate::answer) mod context;

use super::error;
use crate::answer::evaluate::time::Zone;
use crate::answer::set::charset;
use crate::sql::{Dialect, Value};
use codec::packet::ErrPacket;
use std::collections::BTreeMap;
use std::time::Duration;

/// Most user variables of a session.
pub const USER_VARIABLES_MAX: usize = 256;
/// Most bytes of names and values of all user variables of a session. The longest that clients set is a GTID position.
pub const USER_VARIABLES_BYTES_MAX: usize = 256 << 10;
/// Longest text that a session variable takes, in bytes.
pub(super) const SETTING_BYTES_MAX: usize = 1_024;

/// SERVER_STATUS_IN_TRANS.
const IN_TRANSACTION: u16 = 0x0001;
/// SERVER_STATUS_AUTOCOMMIT.
const AUTOCOMMIT: u16 = 0x0002;

/// A session's own values. [`Default`] is a session that has just begun; COM_RESET_CONNECTION and COM_CHANGE_USER go
/// back there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionState {
    user: BTreeMap<String, Value>,
    /// Session variables that were set, as SHOW VARIABLES has them; `None` is NULL.
    set: BTreeMap<&'static str, Option<String>>,
    pub(super) in_transaction: bool,
    /// As USE or the login named it.
    pub(super) database: Option<String>,
    /// The error of the statement before, for SHOW WARNINGS.
    pub(super) last_error: Option<ErrPacket>,
    /// The warning of the statement before.
    pub(super) last_warning: Option<ErrPacket>,
}

impl SessionState {
    /// A user variable. `name` is in lower case and without its `@`: what a replica sets before it asks for a dump, as
    /// `source_heartbeat_period`, `slave_connect_state`, `mariadb_slave_capability`.
    pub(crate) fn user_variable(&self, name: &str) -> Option<&Value> {
        self.user.get(name)
    }

    /// The first of several user variables that is set and not NULL: replicas give the same under an old name and a
    /// new one.
    pub(crate) fn user_variable_of(&self, names: &[&str]) -> Option<&Value> {
        names.iter().find_map(|name| self.user.get(*name).filter(|value| **value != Value::Null))
    }

    /// # Errors
    /// When the session has too many, or too much in them.
    pub(super) fn set_user_variable(&mut self, name: &str, value: Value) -> Result<(), ErrPacket> {
        let bytes = |name: &str, value: &Value| match value {
            Value::Null | Value::Integer(_) => name.len(),
            Value::Decimal(text) | Value::Text(text) => name.len() + text.len(),
        };
        let others = self.user.iter().filter(|(other, _)| *other != name);
        let held: usize = others.map(|(name, value)| bytes(name, value)).sum();
        let is_new = !self.user.contains_key(name);
        if held + bytes(name, &value) > USER_VARIABLES_BYTES_MAX
            || (is_new && self.user.len() == USER_VARIABLES_MAX)
        {
            return Err(error::not_supported(format!(
                "binlogd keeps at most {USER_VARIABLES_MAX} user variables of a session, with {USER_VARIABLES_BYTES_MAX} \
                 bytes in all"
            )));
        }
        self.user.insert(name.to_owned(), value);
        Ok(())
    }

    /// A session variable that was set; the outer `None` where it was not.
    pub(super) fn setting(&self, name: &str) -> Option<&Option<String>> {
        self.set.get(name)
    }

    /// Sets a session variable; `None` gives it its global value again.
    pub(super) fn set_setting(&mut self, name: &'static str, value: Option<Option<String>>) {
        match value {
            Some(value) => self.set.insert(name, value),
            None => self.set.remove(name),
        };
    }

    fn is_on(&self, name: &str) -> Option<bool> {
        let value = self.set.get(name)?.as_deref()?;
        Some(value == "ON")
    }

    /// The dialect of the next statement: `server` with what the session's `sql_mode` changes.
    pub fn dialect(&self, server: Dialect) -> Dialect {
        let Some(Some(modes)) = self.set.get("sql_mode") else { return server };
        let has = |wanted: &str| modes.split(',').any(|mode| mode == wanted);
        Dialect {
            ansi_quotes: has("ANSI_QUOTES"),
            no_backslash_escapes: has("NO_BACKSLASH_ESCAPES"),
            ..server
        }
    }

    /// SERVER_STATUS_* bits of an answer: autocommit, and whether BEGIN was said.
    pub(crate) fn server_status(&self) -> u16 {
        let autocommit = if self.is_on("autocommit") == Some(false) { 0 } else { AUTOCOMMIT };
        autocommit | if self.in_transaction { IN_TRANSACTION } else { 0 }
    }

    /// How long the session may be silent, where it has set its `wait_timeout`.
    pub fn wait_timeout(&self) -> Option<Duration> {
        self.seconds("wait_timeout")
    }

    /// How long a write to the client may take, where the session has set its `net_write_timeout`.
    pub fn net_write_timeout(&self) -> Option<Duration> {
        self.seconds("net_write_timeout")
    }

    fn seconds(&self, name: &str) -> Option<Duration> {
        let seconds = self.set.get(name)?.as_deref()?.parse().ok()?;
        Some(Duration::from_secs(seconds))
    }

    pub(super) fn zone(&self) -> Zone {
        let set = self.set.get("time_zone").and_then(Option::as_deref);
        set.and_then(Zone::parse).unwrap_or(Zone::UTC)
    }

    /// What SET NAMES, or a client's choice in its login, sets.
    pub(super) fn set_names(&mut self, character_set: &str, collation: &str) {
        for name in ["character_set_client", "character_set_connection", "character_set_results"] {
            self.set_setting(name, Some(Some(character_set.to_owned())));
        }
        self.set_setting("collation_connection", Some(Some(collation.to_owned())));
    }

    /// Takes the character set of a client's login, by the number of its collation. One that is not known leaves what
    /// there was, as a server does.
    pub(crate) fn set_login_collation(&mut self, number: u16) {
        let has_it = |set: &&charset::CharacterSet| set.collations.iter().any(|(_, of)| *of == number);
        if let Some(set) = charset::CHARACTER_SETS.iter().find(has_it) {
            let collation =
                set.collations.iter().find(|(_, of)| *of == number).map_or(set.name, |(name, _)| name);
            self.set_names(set.name, collation);
        }
    }

    /// Takes the database that a login names, which is one of those that may be used.
    pub(crate) fn use_database(&mut self, name: Option<&str>) {
        self.database = name.map(str::to_owned);
    }

    /// Remembers an error that did not come from `answer`, as one of the grammar, for SHOW WARNINGS.
    pub fn remember(&mut self, error: &ErrPacket) {
        (self.last_error, self.last_warning) = (Some(error.clone()), None);
    }

    /// Remembers a warning of a statement that was carried out.
    pub fn warn(&mut self, warning: &ErrPacket) {
        (self.last_error, self.last_warning) = (None, Some(warning.clone()));
    }
}
