//! Single questions to a server, and how names and values are written in statements.

use anyhow::{Context, bail, ensure};
use codec::ServerKind;
use rig::server::Session;

/// The database that everything is done in.
pub const DATABASE: &str = "binlogd_lab";
/// The table that shows that a database is the lab's; its only row holds the token of the journal.
pub(super) const MARKER: &str = "made_by_binlogd_lab";
/// MySQL resizes it in the background, and shows the size from before until that is done.
pub(super) const BUFFER_POOL: &str = "innodb_buffer_pool_size";

/// Refuses where there is a database `name` already. Nothing was created yet, so what a run that was killed has changed
/// would be taken for the user's choice.
pub(super) fn is_free(session: &mut Session, name: &str) -> anyhow::Result<()> {
    if !has_database(session, name)? {
        return Ok(());
    }
    if !has_table(session, name, MARKER)? {
        bail!("the server has a database {name} that the lab did not create: it is left alone");
    }
    bail!(
        "the server has a database {name} of the lab's: a run of the lab on this server was killed and its changes were \
         not set back: run binlogd-lab restore where it ran, with its --journals; or, if that is gone, check the \
         variables that a run may change (sync_binlog, innodb_flush_log_at_trx_commit, innodb_buffer_pool_size, \
         max_binlog_size, binlog_format and the others in docs/measured/lab.md) and drop the database"
    )
}

/// When a process started, in ticks since the machine's start; `None` when it is gone.
pub(super) fn start_of(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold blanks. The state is field 3, the start field 22.
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// What distinguishes a server from another one: MySQL's UUID, or for MariaDB what comes nearest.
pub(super) fn identity(session: &mut Session) -> anyhow::Result<String> {
    let sql = match session.server_kind() {
        ServerKind::MySql => "SELECT @@GLOBAL.server_uuid",
        ServerKind::MariaDb => {
            "SELECT CONCAT_WS(' ', @@GLOBAL.server_id, @@GLOBAL.hostname, @@GLOBAL.port, @@GLOBAL.datadir)"
        }
    };
    Ok(session.query(sql)?.first().context("the server does not say who it is")?.to_owned())
}

/// A global variable as SHOW GLOBAL VARIABLES prints it; `None` when the server has none of that name.
///
/// # Errors
/// When the server does not answer.
pub fn variable(session: &mut Session, name: &str) -> anyhow::Result<Option<String>> {
    let rows = session.query(&format!("SHOW GLOBAL VARIABLES WHERE Variable_name = '{name}'"))?;
    Ok(rows.get(0, "Value").map(str::to_owned))
}

/// Whether two texts are the same value of a variable.
pub fn same(one: &str, other: &str) -> bool {
    let plain = |text: &str| match text.to_ascii_uppercase().as_str() {
        "ON" => "1".to_owned(),
        "OFF" => "0".to_owned(),
        text => text.to_owned(),
    };
    plain(one) == plain(other)
}

/// The statement that gives a global variable a value as SHOW GLOBAL VARIABLES prints it.
///
/// # Errors
/// When the name is none of a variable.
pub fn set_statement(name: &str, value: &str) -> anyhow::Result<String> {
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    ensure!(is_name, "{name:?} is no name of a variable");
    // A number in quotes would be refused.
    if value.parse::<f64>().is_ok_and(f64::is_finite) {
        return Ok(format!("SET GLOBAL {name} = {value}"));
    }
    Ok(format!("SET GLOBAL {name} = {}", quoted(value)))
}

/// A text as a literal of a statement.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// Databases but the server's own.
///
/// # Errors
/// When the server does not answer.
pub fn databases(session: &mut Session) -> anyhow::Result<Vec<String>> {
    let own = ["information_schema", "mysql", "performance_schema", "sys"];
    let is_own = |name: &String| own.contains(&name.to_ascii_lowercase().as_str());
    Ok(all_databases(session)?.into_iter().filter(|name| !is_own(name)).collect())
}

/// All databases that the account sees.
pub(super) fn all_databases(session: &mut Session) -> anyhow::Result<Vec<String>> {
    let rows = session.query("SHOW DATABASES")?;
    Ok((0..rows.rows.len()).filter_map(|row| rows.get(row, "Database")).map(str::to_owned).collect())
}

pub(super) fn has_database(session: &mut Session, name: &str) -> anyhow::Result<bool> {
    Ok(databases(session)?.iter().any(|database| database == name))
}

pub(super) fn has_table(session: &mut Session, database: &str, table: &str) -> anyhow::Result<bool> {
    let rows = session.query(&format!(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '{database}' AND table_name = '{table}'"
    ))?;
    Ok(rows.first() != Some("0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_the_server_wants_them() {
        assert_eq!(set_statement("sync_binlog", "0").unwrap(), "SET GLOBAL sync_binlog = 0");
        assert_eq!(set_statement("a", "AFTER_SYNC").unwrap(), "SET GLOBAL a = 'AFTER_SYNC'");
        assert_eq!(set_statement("a", "it's \\").unwrap(), r"SET GLOBAL a = 'it''s \\'");
        assert!(set_statement("a = 1, b", "0").is_err());
        assert!(same("ON", "1") && same("off", "0") && !same("10", "1"));
    }
}
