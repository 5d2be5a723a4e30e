//! The server that is to be the source.

use super::no_promotion::NoPromotion;
use crate::Server;
use crate::doctor::Facts;
use crate::doctor::server::grants::Privileges;
use crate::semi_sync::{set, switch_name};
use codec::ServerKind;
use codec::gtid::GtidState;
use source::identify::{SourceIdentity, SourceSemiSync};
use std::time::Duration;
use wire::{ConnectOptions, Connection, ResultSet, WireError};

/// Longest time for one statement: to stop replication waits for what is being applied.
const STATEMENT_MAX: Duration = Duration::from_secs(60);

/// Longest time for another promotion to end its work there, in seconds; what was killed has one statement to end at most.
const LOCK_MAX: u32 = 10;

/// A session from which nothing comes any more, its machine being gone perhaps, ends after so many seconds, and its lock with it.
const ORPHAN_MAX: u32 = 30;

/// The server that is to be the source.
pub struct Successor {
    connection: Connection,
    /// As the operator reaches it.
    pub host: String,
    /// What it says of itself.
    pub identity: SourceIdentity,
    /// Its settings.
    pub facts: Facts,
}

/// One channel of its replication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Channel {
    pub(super) name: String,
    pub(super) receives: bool,
    pub(super) applies: bool,
    /// It has applied all that was received.
    pub(super) is_idle: bool,
    /// Why it does not receive, or does not apply.
    pub(super) error: Option<String>,
}

impl Successor {
    /// Connects and asks. Changes nothing.
    pub(super) fn reach(options: &ConnectOptions, host: &str) -> Result<Successor, NoPromotion> {
        let failed = |error: WireError| NoPromotion::Successor(host.to_owned(), error.to_string());
        let mut connection = Connection::connect(options).map_err(failed)?;
        connection.set_timeout(STATEMENT_MAX);
        // Texts are quoted for this mode.
        connection.query("SET SESSION sql_mode = ''").map_err(failed)?;
        let identity = SourceIdentity::ask(&mut connection).map_err(failed)?;
        let facts = Facts::collect(&mut connection, false).map_err(failed)?;
        Ok(Successor { connection, host: host.to_owned(), identity, facts })
    }

    /// One promotion at a time changes the server. The lock is the session's: it goes with a promoter that is killed, once the statement
    /// has ended that it was killed in.
    pub(super) fn lock(&mut self) -> Result<(), NoPromotion> {
        self.query(&format!("SET SESSION wait_timeout = {ORPHAN_MAX}"))?;
        let asked = format!(
            "SELECT GET_LOCK('binlogd_promote', {LOCK_MAX}) AS is_mine, IS_USED_LOCK('binlogd_promote') AS owner"
        );
        let answer = self.query(&asked)?;
        if answer.get(0, "is_mine") == Some("1") {
            return Ok(());
        }
        let by = answer.get(0, "owner").unwrap_or("unknown").to_owned();
        Err(self.failed(format!(
            "another promotion works on it, by its connection {by}, and has not ended within {LOCK_MAX} s. Run it again"
        )))
    }

    /// Why it cannot be the source as it is, whatever it holds.
    pub(super) fn unfit(&mut self, kind: ServerKind) -> Result<Option<String>, NoPromotion> {
        if self.identity.kind != kind {
            return Ok(Some(format!("it is {}, and the source of the quorum is {kind}", self.identity.kind)));
        }
        if !self.identity.has_gtids {
            let mode = self.facts.variable("gtid_mode").unwrap_or("OFF");
            return Ok(Some(format!(
                "it has gtid_mode = {mode}, and without GTIDs nobody can say whether it has every acknowledged transaction"
            )));
        }
        let logs = self.query("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('log_bin', 'log_slave_updates', 'log_replica_updates')")?;
        let logs = logs.variables().map_err(|error| self.failed(error))?;
        if let Some((name, _)) = logs.iter().find(|(_, value)| *value == "OFF" || *value == "0") {
            return Ok(Some(format!("{name} is OFF: the nodes could not receive from it what they lack")));
        }
        if self.identity.semi_sync == SourceSemiSync::Absent {
            return Ok(Some(
                "it has no semi-sync plugin, and would wait for no acknowledgement: binlogd setup installs it".to_owned(),
            ));
        }
        let alone = ["rpl_semi_sync_source_wait_no_replica", "rpl_semi_sync_master_wait_no_slave"];
        if let Some(name) = alone.into_iter().find(|name| self.facts.variable(name) == Some("OFF")) {
            return Ok(Some(format!(
                "{name} is OFF: a commit before the nodes are attached would be acknowledged by nobody"
            )));
        }
        Ok(self.missing_privileges())
    }

    fn missing_privileges(&self) -> Option<String> {
        let lines = match &self.facts.grants {
            Ok(lines) => lines,
            Err(refusal) => return Some(format!("SHOW GRANTS failed: {refusal}")),
        };
        let privileges = Privileges::parse(lines);
        let lacked: Vec<&str> =
            needed(&self.facts).iter().filter(|names| !privileges.has(names)).map(|names| names[0]).collect();
        (!lacked.is_empty())
            .then(|| format!("{} lacks {} there", self.facts.quoted_account(), lacked.join(", ")))
    }

    /// What it lacks of a set now.
    pub(super) fn lacks(&mut self, held: &GtidState) -> Result<GtidState, NoPromotion> {
        let asked = self.identity.ask_executed(&mut self.connection);
        asked.map_err(|error| self.failed(error))?;
        Ok(self.identity.lacks(held))
    }

    /// Transactions that it wrote first itself, and that are not in `held`.
    pub(super) fn of_its_own(&self, held: &GtidState) -> GtidState {
        self.identity.own(&self.identity.executed.subtract(held))
    }

    /// Its channels; empty for a server that is no replica.
    pub(super) fn channels(&mut self) -> Result<Vec<Channel>, NoPromotion> {
        let rows = self.query(match self.has_new_words() {
            true => "SHOW REPLICA STATUS",
            false if self.is_mariadb() => "SHOW ALL SLAVES STATUS",
            false => "SHOW SLAVE STATUS",
        })?;
        let text = |row: usize, names: [&str; 2]| {
            names.into_iter().find_map(|name| rows.get(row, name)).unwrap_or_default()
        };
        Ok((0..rows.rows.len())
            .map(|row| Channel {
                name: text(row, ["Channel_Name", "Connection_name"]).to_owned(),
                receives: text(row, ["Replica_IO_Running", "Slave_IO_Running"]) == "Yes",
                applies: text(row, ["Replica_SQL_Running", "Slave_SQL_Running"]) == "Yes",
                is_idle: text(row, ["Replica_SQL_Running_State", "Slave_SQL_Running_State"])
                    .contains("has read all relay log"),
                error: ["Last_SQL_Error", "Last_IO_Error"]
                    .into_iter()
                    .filter_map(|name| rows.get(row, name))
                    .find(|error| !error.is_empty())
                    .map(str::to_owned),
            })
            .collect())
    }

    /// Why nothing can bring it what it lacks: its applier stands at an error, or `source` is the server itself, for a replica refuses
    /// what bears its own UUID.
    pub(super) fn takes_nothing(&mut self, source: &str) -> Result<Option<String>, NoPromotion> {
        if self.identity.uuid == source {
            return Ok(Some("it cannot be a replica of its own log".to_owned()));
        }
        let at_error =
            self.channels()?.into_iter().find(|channel| !channel.applies && channel.error.is_some());
        Ok(at_error
            .and_then(|channel| channel.error)
            .map(|error| format!("its replication stands at an error, {error}")))
    }

    /// Whether a channel is on, so that it is to be on again where a promotion came to nothing.
    pub(super) fn replicates(&mut self) -> Result<bool, NoPromotion> {
        Ok(self.channels()?.iter().any(|channel| channel.applies))
    }

    /// How many of its sessions wait for an acknowledgement; `None` while a commit there waits for none, because semi-sync is off.
    fn waiting(&mut self) -> Result<Option<u64>, NoPromotion> {
        let rows = self.query(
            "SHOW GLOBAL STATUS WHERE Variable_name IN ('Rpl_semi_sync_source_status', 'Rpl_semi_sync_master_status', \
             'Rpl_semi_sync_source_wait_sessions', 'Rpl_semi_sync_master_wait_sessions')",
        )?;
        let values = rows.variables().map_err(|error| self.failed(error))?;
        let of =
            |end: &str| values.iter().find(|(name, _)| name.ends_with(end)).map(|(_, value)| value.as_str());
        Ok(of("_status").filter(|value| *value == "ON").and_then(|_| of("_wait_sessions")?.parse().ok()))
    }

    /// Why it may not be fed: with semi-sync on, what replication applies waits for acknowledgements like any commit. To switch it off is
    /// not for a promotion while clients wait there, for they would be told that their commits are safe.
    pub(super) fn waits_for_acknowledgements(&mut self) -> Result<Option<String>, NoPromotion> {
        Ok(self.waiting()?.filter(|waiting| *waiting > 0).map(|waiting| {
            format!(
                "{waiting} of its sessions wait for an acknowledgement of semi-sync, and if it was the source of before, of clients whose \
                 transactions nobody was to be told of: what it is fed would wait as well. Make it a replica first"
            )
        }))
    }

    /// Replication applies there without waiting for anybody: semi-sync is off until it is opened.
    pub(super) fn applies_at_once(&mut self) -> Result<(), NoPromotion> {
        if self.waiting()?.is_none() {
            return Ok(());
        }
        self.query(self.read_only())?;
        if let Some(why) = self.waits_for_acknowledgements()? {
            return Err(NoPromotion::Unfit(self.host.clone(), why));
        }
        let switch = switch_name(&self.facts);
        self.query(&format!("SET GLOBAL {switch} = OFF")).map(drop)
    }

    /// A replica takes no changes any more, from clients and from its source. What it was doing is done first.
    pub(super) fn stop_replication(&mut self) -> Result<(), NoPromotion> {
        if self.channels()?.is_empty() {
            return Ok(());
        }
        self.query(self.read_only())?;
        self.query(self.stop_all()).map(drop)
    }

    fn read_only(&self) -> &'static str {
        if self.is_mariadb() { "SET GLOBAL read_only = ON" } else { "SET GLOBAL super_read_only = ON" }
    }

    pub(super) fn stop_all(&self) -> &'static str {
        if self.is_mariadb() { "STOP ALL SLAVES" } else { self.word("STOP REPLICA", "STOP SLAVE") }
    }

    /// After a promotion that came to nothing.
    pub(super) fn start_replication(&mut self) -> Result<(), NoPromotion> {
        let start =
            if self.is_mariadb() { "START ALL SLAVES" } else { self.word("START REPLICA", "START SLAVE") };
        self.query(start).map(drop)
    }

    /// The end of its log.
    pub(super) fn end_of_log(&mut self) -> Result<(String, u64), NoPromotion> {
        let end = Server::end_of_log(&mut self.connection).map_err(|error| self.failed(error))?;
        end.ok_or_else(|| self.failed("it does not say where its binary log ends"))
    }

    /// What is left to be done for it to be written to, in order: it must forget its source, so that it does not go on after a restart;
    /// semi-sync; and only then writable. `timeout`: of the source before, in milliseconds, where that is known.
    pub(super) fn left_to_open(&mut self, timeout: Option<&str>) -> Result<Vec<String>, NoPromotion> {
        let channels = self.channels()?;
        self.facts = Facts::collect(&mut self.connection, false).map_err(|error| self.failed(error))?;
        let mut left = Vec::new();
        match self.is_mariadb() {
            true => left.extend(channels.iter().map(|channel| {
                let name = channel.name.replace('\\', "\\\\").replace('\'', "''");
                format!("RESET SLAVE '{name}' ALL")
            })),
            false if channels.is_empty() => {}
            false => left.push(self.word("RESET REPLICA ALL", "RESET SLAVE ALL").to_owned()),
        }
        let facts = &self.facts;
        let switch = switch_name(facts);
        let name = switch.replace("_enabled", "_timeout");
        if let Some(timeout) = timeout.filter(|timeout| facts.variable(&name) != Some(*timeout)) {
            left.push(set(facts, &name, timeout));
        }
        if !facts.is_on(&switch) {
            left.push(set(facts, &switch, "ON"));
        }
        for name in ["super_read_only", "read_only"] {
            if facts.variable(name).is_some_and(|value| value != "OFF" && value != "0") {
                left.push(set(facts, name, "OFF"));
            }
        }
        Ok(left)
    }

    pub(super) fn run(&mut self, statement: &str) -> Result<(), String> {
        self.connection.query(statement).map(drop).map_err(|error| error.to_string())
    }

    /// So long a commit waits there for an acknowledgement, in milliseconds.
    pub fn timeout(&self) -> Option<&str> {
        self.facts.variable(&switch_name(&self.facts).replace("_enabled", "_timeout"))
    }

    /// How the old source is made its replica.
    pub fn as_source(&self, options: &ConnectOptions) -> String {
        let (host, port, switch) = (&options.host, options.port, switch_name(&self.facts));
        match self.is_mariadb() {
            // A server that was no replica counts what it wrote as its place by this option, of 10.10 (MDEV-19801), before by that word.
            true => {
                let place = match self.facts.is_from(10, 10, 0) {
                    true => "slave_pos, MASTER_DEMOTE_TO_SLAVE = 1",
                    false => "current_pos",
                };
                format!(
                    "SET GLOBAL read_only = ON; SET GLOBAL {switch} = OFF; CHANGE MASTER TO MASTER_HOST = '{host}', MASTER_PORT = {port}, \
                     MASTER_USER = '…', MASTER_PASSWORD = '…', MASTER_USE_GTID = {place}; START SLAVE;"
                )
            }
            // Without TLS a login by caching_sha2_password needs the server's key.
            false if self.has_new_words() => format!(
                "SET PERSIST super_read_only = ON; SET PERSIST {switch} = OFF; CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{host}', \
                 SOURCE_PORT = {port}, SOURCE_USER = '…', SOURCE_PASSWORD = '…', SOURCE_AUTO_POSITION = 1, SOURCE_SSL = 1; START REPLICA;"
            ),
            false => format!(
                "SET GLOBAL super_read_only = ON; SET GLOBAL {switch} = OFF; CHANGE MASTER TO MASTER_HOST = '{host}', MASTER_PORT = {port}, \
                 MASTER_USER = '…', MASTER_PASSWORD = '…', MASTER_AUTO_POSITION = 1; START SLAVE;"
            ),
        }
    }

    fn is_mariadb(&self) -> bool {
        self.identity.kind == ServerKind::MariaDb
    }

    /// MySQL 8.0.22 brought SHOW REPLICA STATUS, 8.0.23 CHANGE REPLICATION SOURCE.
    fn has_new_words(&self) -> bool {
        !self.is_mariadb() && self.facts.is_from(8, 0, 23)
    }

    pub(super) fn word(&self, new: &'static str, old: &'static str) -> &'static str {
        if self.has_new_words() { new } else { old }
    }

    fn query(&mut self, statement: &str) -> Result<ResultSet, NoPromotion> {
        let rows = self.connection.query(statement);
        rows.map_err(|error| NoPromotion::Successor(self.host.clone(), format!("{statement}: {error}")))
    }

    pub(super) fn failed(&self, error: impl ToString) -> NoPromotion {
        NoPromotion::Successor(self.host.clone(), error.to_string())
    }
}

/// The privileges that the statements need; of each row one suffices.
fn needed(facts: &Facts) -> &'static [&'static [&'static str]] {
    match facts.kind {
        ServerKind::MySql if facts.persists() => &[
            &["REPLICATION_SLAVE_ADMIN", "SUPER"],
            &["SYSTEM_VARIABLES_ADMIN", "SUPER"],
            &["CONNECTION_ADMIN", "SUPER"],
            &["REPLICATION CLIENT", "SUPER"],
            &["RELOAD"],
        ],
        ServerKind::MySql => &[&["SUPER"], &["RELOAD"]],
        // From 10.11 on SUPER no longer contains it (MDEV-29596).
        ServerKind::MariaDb if facts.is_from(10, 11, 0) => &[
            &["REPLICATION SLAVE ADMIN", "SUPER"],
            &["REPLICATION MASTER ADMIN", "SUPER"],
            &["READ_ONLY ADMIN", "READ ONLY ADMIN"],
            &["BINLOG MONITOR", "REPLICATION CLIENT", "SUPER"],
            &["RELOAD"],
        ],
        ServerKind::MariaDb => &[&["SUPER"], &["RELOAD"]],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::test_facts::{mariadb, mysql};

    #[test]
    fn all_privileges_suffice_and_a_replica_s_do_not() {
        for facts in [mysql(), mariadb()] {
            let of = |line: &str| {
                let privileges = Privileges::parse(&[line.to_owned()]);
                needed(&facts).iter().filter(|names| !privileges.has(names)).count()
            };
            assert_eq!(of("GRANT ALL PRIVILEGES ON *.* TO `a`@`%`"), 0);
            assert_eq!(of("GRANT REPLICATION SLAVE ON *.* TO `a`@`%`"), needed(&facts).len());
        }
    }
}
