//! The server that is to be the source.

use super::channel::{CHANNEL, Channel};
use super::fitness::{ASKED, Looked, Quorum, faults};
use super::no_promotion::NoPromotion;
use crate::Server;
use crate::doctor::Facts;
use crate::doctor::server::semi_sync::QUORUM_TIMEOUT_MIN;
use crate::semi_sync::{set, switch_name};
use codec::ServerKind;
use codec::gtid::{GtidSet, GtidState, MariadbGtidState};
use repair::rescue::{Applier, deviations};
use source::identify::SourceIdentity;
use source::own_session::{Purpose, prepare};
use std::collections::BTreeSet;
use std::time::Duration;
use wire::{ConnectOptions, Connection, ResultSet, WireError};

/// Longest time for one statement: to stop replication waits for what is being applied.
const STATEMENT_MAX: Duration = Duration::from_secs(60);

/// Longest time for another promotion to end its work there, in seconds; what was killed has one statement to end at most.
const LOCK_MAX: u32 = 10;

/// A session from which nothing comes any more, its machine being gone perhaps, ends after so many seconds, and its lock with it.
const ORPHAN_MAX: u32 = 30;

/// MariaDB's default, which does nothing to a replica that has followed the log from its beginning: DDL that is there already.
const FOLLOWS: &str = "slave_ddl_exec_mode";

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

impl Successor {
    /// Connects and asks. Changes nothing.
    pub(super) fn reach(options: &ConnectOptions, host: &str) -> Result<Successor, NoPromotion> {
        let failed = |error: WireError| NoPromotion::Successor(host.to_owned(), error.to_string());
        let mut connection = Connection::connect(options).map_err(failed)?;
        connection.set_timeout(STATEMENT_MAX);
        let refused = |error| NoPromotion::Successor(host.to_owned(), format!("{error}"));
        prepare(&mut connection, Purpose::Reader).map_err(refused)?;
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

    /// What stands against it as it is, whatever it holds. `accepted`: names of settings that stay as they are.
    pub(super) fn faults(
        &mut self,
        quorum: &Quorum<'_>,
        accepted: &[String],
    ) -> Result<Vec<String>, NoPromotion> {
        let names = ASKED.map(|name| format!("'{name}'")).join(", ");
        let more = self.query(&format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})"))?;
        let more = more.variables().map_err(|error| self.failed(error))?;
        self.facts.variables.extend(more);
        // One that an interrupted promotion has left is taken away.
        let mut channels = self.channels()?;
        channels.retain(|channel| channel.name != CHANNEL);
        let log_filter = self.log_filter()?;
        let accepted: Vec<String> = accepted.iter().cloned().chain([FOLLOWS.to_owned()]).collect();
        let found = deviations(&mut self.connection, self.identity.kind, Applier::Channel, &accepted);
        let found = found.map_err(|error| self.failed(error))?;
        let in_words = |found: &repair::rescue::Deviation| {
            format!(
                "{found}. Set it to {}, or go on with it as it is: --accept {}",
                found.harmless(),
                found.name
            )
        };
        let deviations: Vec<String> = found.iter().map(in_words).collect();
        let looked = Looked {
            identity: &self.identity,
            facts: &self.facts,
            channels: &channels,
            log_filter: log_filter.as_deref(),
            deviations: &deviations,
        };
        Ok(faults(&looked, quorum))
    }

    /// What its binary log leaves out, where that is filtered.
    fn log_filter(&mut self) -> Result<Option<String>, NoPromotion> {
        let rows = Server::log_status(&mut self.connection).map_err(|error| self.failed(error))?;
        let set = |name: &str| {
            let value = rows.as_ref()?.get(0, name).filter(|value| !value.is_empty())?;
            Some(format!("{name} = {value}"))
        };
        Ok(["Binlog_Do_DB", "Binlog_Ignore_DB"].into_iter().find_map(set))
    }

    /// What it lacks of a set now.
    pub(super) fn lacks(&mut self, held: &GtidState) -> Result<GtidState, NoPromotion> {
        self.ask_executed()?;
        Ok(self.identity.lacks(held))
    }

    /// Asks what it has executed by now.
    pub(super) fn ask_executed(&mut self) -> Result<(), NoPromotion> {
        let asked = self.identity.ask_executed(&mut self.connection);
        asked.map_err(|error| self.failed(error))
    }

    /// Transactions that it wrote first itself, or that are of servers of which `held` has nothing, and that are not in `held`.
    pub(super) fn of_its_own(&self, held: &GtidState) -> GtidState {
        own_or_strange(&self.identity, held)
    }

    /// Its channels; empty for a server that is no replica.
    pub(super) fn channels(&mut self) -> Result<Vec<Channel>, NoPromotion> {
        let rows = self.query(match self.has_new_words() {
            true => "SHOW REPLICA STATUS",
            false if self.is_mariadb() => "SHOW ALL SLAVES STATUS",
            false => "SHOW SLAVE STATUS",
        })?;
        Ok(Channel::all(&rows, self.is_mariadb()))
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
    /// semi-sync; and only then writable. `timeout`: of the source before, in milliseconds, where that is known; else an hour at least.
    pub(super) fn left_to_open(&mut self, timeout: Option<&str>) -> Result<Vec<String>, NoPromotion> {
        let channels = self.channels()?;
        self.ask_settings()?;
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
        let long = QUORUM_TIMEOUT_MIN.as_millis();
        let is_short =
            || !facts.is_on(&switch) && facts.number(&name).is_some_and(|now| u128::from(now) < long);
        let long = long.to_string();
        let timeout = timeout.or_else(|| is_short().then_some(long.as_str()));
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

    /// Asks for its settings as they are now.
    pub(super) fn ask_settings(&mut self) -> Result<(), NoPromotion> {
        self.facts = Facts::collect(&mut self.connection, false).map_err(|error| self.failed(error))?;
        Ok(())
    }

    pub(super) fn run(&mut self, statement: &str) -> Result<(), String> {
        self.connection.query(statement).map(drop).map_err(|error| error.to_string())
    }

    /// So long a commit waits there for an acknowledgement, in milliseconds.
    pub fn timeout(&self) -> Option<&str> {
        self.facts.variable(&switch_name(&self.facts).replace("_enabled", "_timeout"))
    }

    /// How the old source is made its replica. A replica whose semi-sync is left on waits at each transaction that it applies.
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

    pub(super) fn is_mariadb(&self) -> bool {
        self.identity.kind == ServerKind::MariaDb
    }

    /// MySQL 8.0.22 brought SHOW REPLICA STATUS, 8.0.23 CHANGE REPLICATION SOURCE.
    pub(super) fn has_new_words(&self) -> bool {
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

/// What a server has that `held` does not have, and that it did not replicate from a server of `held`.
fn own_or_strange(identity: &SourceIdentity, held: &GtidState) -> GtidState {
    let beyond = identity.executed.subtract(held);
    match (&beyond, held) {
        (GtidState::Mysql(beyond), GtidState::Mysql(held)) => {
            let known: BTreeSet<_> = held.iter().map(|(uuid, ..)| uuid).collect();
            let mut own = GtidSet::new();
            for (uuid, tag, numbers) in beyond.iter() {
                if uuid.to_string() == identity.uuid || !known.contains(&uuid) {
                    own.insert_interval(uuid, tag, *numbers.start(), *numbers.end());
                }
            }
            GtidState::Mysql(own)
        }
        (GtidState::Mariadb(beyond), GtidState::Mariadb(held)) => {
            let known: BTreeSet<_> = held.list().map(|id| id.domain).collect();
            let mut own = MariadbGtidState::new();
            for id in beyond.list() {
                if id.server_id == identity.server_id || !known.contains(&id.domain) {
                    own.insert(id);
                }
            }
            GtidState::Mariadb(own)
        }
        _ => beyond,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use source::identify::SourceSemiSync;

    #[test]
    fn what_it_alone_has_is_its_own_or_of_a_server_that_nobody_knows() {
        const OLD: &str = "aaaaaaaa-0000-0000-0000-000000000001";
        const NEW: &str = "bbbbbbbb-0000-0000-0000-000000000002";
        const OTHER: &str = "cccccccc-0000-0000-0000-000000000003";
        let own = |kind, uuid: &str, executed: &str, held: &str| {
            let identity = SourceIdentity {
                version: String::new(),
                kind,
                server_id: 2,
                uuid: uuid.into(),
                has_gtids: true,
                executed: GtidState::parse(kind, executed).unwrap(),
                applied: MariadbGtidState::new(),
                purged: GtidState::empty(kind),
                semi_sync: SourceSemiSync::Absent,
                galera: None,
                knows_checksums: true,
                is_read_only: true,
            };
            own_or_strange(&identity, &GtidState::parse(kind, held).unwrap()).to_line()
        };
        let mysql = |executed: &str| own(ServerKind::MySql, NEW, executed, &format!("{OLD}:1-9"));
        assert_eq!(mysql(&format!("{OLD}:1-12")), "", "the source sent more than the nodes have");
        assert_eq!(mysql(&format!("{OLD}:1-9,{NEW}:1")), format!("{NEW}:1"));
        assert_eq!(mysql(&format!("{OLD}:1-9,{OTHER}:5-6")), format!("{OTHER}:5-6"));
        let mariadb = |executed: &str| own(ServerKind::MariaDb, "mariadb-2", executed, "0-1-9");
        assert_eq!(mariadb("0-1-12"), "");
        assert_eq!(mariadb("0-1-9,0-2-10"), "0-2-10");
        assert_eq!(mariadb("0-1-9,7-3-1"), "7-3-1");
    }
}
