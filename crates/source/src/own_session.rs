//! A session of our own that writes to a server: of a rescue, of a restore, of an undo.
//!
//! A server may have any setting for all sessions: in its option file, by SET GLOBAL or PERSIST, by `init_connect`. With autocommit = 0
//! GTIDs cannot be named, completion_type = RELEASE ends a session at its first COMMIT, sql_select_limit = 1 shows one of many writers.
//! So a session is given each setting that its statements depend on, by `WANTED`: those only that the server has and has otherwise,
//! because some need a right. What the statements set themselves (sql_mode, time zone, character sets, the clock) is not among them.

use std::fmt;
use thiserror::Error;
use wire::{Connection, WireError};

/// What a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Questions only.
    Reader,
    /// Statements of ours that write too: an undo.
    Client,
    /// What stands in a log is done again.
    Applier,
}

/// Settings of a session, as SHOW VARIABLES shows them, and who needs them, with those behind in [`Purpose`]. Of several values the first is set where it is none of them.
const WANTED: &[(&str, &[&str], Purpose)] = &[
    ("sql_mode", &[""], Purpose::Reader),
    ("autocommit", &["ON"], Purpose::Client),
    ("completion_type", &["NO_CHAIN"], Purpose::Client),
    ("sql_safe_updates", &["OFF"], Purpose::Client),
    ("sql_auto_is_null", &["OFF"], Purpose::Client),
    ("sql_big_selects", &["ON"], Purpose::Reader),
    ("sql_log_bin", &["ON"], Purpose::Client),
    ("max_execution_time", &["0"], Purpose::Reader),
    ("max_statement_time", &["0"], Purpose::Reader),
    ("wait_timeout", &["31536000"], Purpose::Reader),
    ("idle_transaction_timeout", &["0"], Purpose::Client),
    ("idle_readonly_transaction_timeout", &["0"], Purpose::Client),
    ("idle_write_transaction_timeout", &["0"], Purpose::Client),
    ("transaction_read_only", &["OFF"], Purpose::Client),
    ("tx_read_only", &["OFF"], Purpose::Client),
    ("transaction_isolation", &["REPEATABLE-READ"], Purpose::Client),
    ("tx_isolation", &["REPEATABLE-READ"], Purpose::Client),
    ("foreign_key_checks", &["ON"], Purpose::Client),
    ("unique_checks", &["ON"], Purpose::Client),
    ("check_constraint_checks", &["ON"], Purpose::Client),
    ("sql_if_exists", &["OFF"], Purpose::Client),
    // Rows are not logged with STATEMENT, and then nobody could compare what was done.
    ("binlog_format", &["ROW", "MIXED"], Purpose::Client),
    ("system_versioning_asof", &["DEFAULT"], Purpose::Client),
    ("system_versioning_insert_history", &["OFF"], Purpose::Client),
    // As mysqlbinlog has it: rows may come by BINLOG, and a prepared XA transaction leaves the session.
    ("pseudo_replica_mode", &["ON"], Purpose::Applier),
    ("pseudo_slave_mode", &["ON"], Purpose::Applier),
    // A row that is not there, or there already, is an error.
    ("rbr_exec_mode", &["STRICT"], Purpose::Applier),
    ("lock_wait_timeout", &["31536000"], Purpose::Applier),
    ("alter_algorithm", &["DEFAULT"], Purpose::Applier),
    ("enforce_storage_engine", &["NULL"], Purpose::Applier),
    ("sql_require_primary_key", &["OFF"], Purpose::Applier),
    // A replica's own threads pass it over; what it made on the source stands in the statement.
    ("sql_generate_invisible_primary_key", &["OFF"], Purpose::Applier),
    // As a replica's threads have it where an event does not say.
    ("default_collation_for_utf8mb4", &["utf8mb4_general_ci"], Purpose::Applier),
    ("enable_cascade_triggers", &["OFF"], Purpose::Applier),
    ("require_row_format", &["OFF"], Purpose::Applier),
    ("character_set_collations", &[""], Purpose::Applier),
    ("skip_replication", &["OFF"], Purpose::Applier),
    ("skip_parallel_replication", &["OFF"], Purpose::Applier),
];

/// A setting that the server does not let the session have.
#[derive(Debug, Error)]
pub struct NotSet {
    name: &'static str,
    is: String,
    wanted: &'static str,
    /// Why; `None` where the server took the statement and has another value all the same.
    error: Option<WireError>,
}

impl fmt::Display for NotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotSet { name, is, wanted, error } = self;
        match error {
            Some(error) => write!(
                f,
                "{name} is {is:?} for all sessions of the server, this one needs {wanted:?}, and may not set it: {}",
                error.in_its_own_words()
            ),
            None => write!(
                f,
                "{name} is still {is:?}, although this session has set it to {wanted:?}, which it needs"
            ),
        }
    }
}

/// The same for a script that a person runs on a server of any kind, as far as every server has it.
pub const SCRIPTED: &str = "SET SESSION autocommit = 1, completion_type = 'NO_CHAIN', sql_safe_updates = 0, sql_auto_is_null = 0, \
                                   sql_select_limit = 18446744073709551615, sql_big_selects = 1";

/// Gives a session what its statements depend on.
///
/// # Errors
/// Which setting it may not have.
pub fn prepare(connection: &mut Connection, purpose: Purpose) -> Result<(), NotSet> {
    // First, so that nothing of the answer is cut off.
    set(connection, "sql_select_limit", "18446744073709551615", "?")?;
    let found = others(connection, purpose)?;
    for (name, wanted, is) in &found {
        set(connection, name, wanted, is)?;
    }
    if found.is_empty() {
        return Ok(());
    }
    let left = others(connection, purpose)?.into_iter().next();
    left.map_or(Ok(()), |(name, wanted, is)| Err(NotSet { name, is, wanted, error: None }))
}

/// The settings that the session has otherwise: name, what is wanted, what is.
fn others(
    connection: &mut Connection,
    purpose: Purpose,
) -> Result<Vec<(&'static str, &'static str, String)>, NotSet> {
    const ALL: &str = "SHOW SESSION VARIABLES";
    let told = |error| NotSet { name: ALL, is: "?".to_owned(), wanted: "", error: Some(error) };
    let all = connection.query(ALL).map_err(told)?;
    let mut found = Vec::new();
    for row in 0..all.rows.len() {
        let (Some(name), is) = (all.get(row, "Variable_name"), all.get(row, "Value").unwrap_or_default())
        else {
            continue;
        };
        let wanted = WANTED.iter().find(|(wanted, _, of)| *wanted == name && *of <= purpose);
        if let Some((name, values, _)) = wanted
            && !values.iter().any(|value| is_same(value, is))
        {
            found.push((*name, values[0], is.to_owned()));
        }
    }
    Ok(found)
}

fn set(
    connection: &mut Connection,
    name: &'static str,
    wanted: &'static str,
    is: &str,
) -> Result<(), NotSet> {
    let told = |error| NotSet { name, is: is.to_owned(), wanted, error: Some(error) };
    connection.query(&assignment(name, wanted)).map(drop).map_err(told)
}

fn assignment(name: &str, wanted: &str) -> String {
    let value = match (name, wanted) {
        // As a keyword it is the global value, which is the one that is not wanted. As a text it is the value of that name. Of
        // system_versioning_asof the keyword is that value, and the text an error.
        ("alter_algorithm", _) => format!("'{wanted}'"),
        _ => literal(wanted),
    };
    format!("SET @@session.{name} = {value}")
}

/// A value of SHOW VARIABLES as SET takes it.
pub fn literal(value: &str) -> String {
    let is_bare = matches!(value, "ON" | "OFF" | "DEFAULT" | "NULL") || value.parse::<u64>().is_ok();
    if is_bare { value.to_owned() } else { format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''")) }
}

/// `0` is `0.000000`, and nothing is NULL.
pub fn is_same(wanted: &str, is: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    wanted == is
        || (wanted == "NULL" && is.is_empty())
        || number(wanted).is_some_and(|wanted| number(is) == Some(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_does_not_take_the_global_value_for_the_default() {
        for (name, wanted, sql) in [
            ("alter_algorithm", "DEFAULT", "SET @@session.alter_algorithm = 'DEFAULT'"),
            ("system_versioning_asof", "DEFAULT", "SET @@session.system_versioning_asof = DEFAULT"),
            ("autocommit", "ON", "SET @@session.autocommit = ON"),
            ("completion_type", "NO_CHAIN", "SET @@session.completion_type = 'NO_CHAIN'"),
        ] {
            assert_eq!(assignment(name, wanted), sql);
        }
    }
}
