//! A real replica; its server is one of the lab's own and keeps running from cell to cell.

use crate::interrupt::Interrupt;
use crate::lab::Lab;
use crate::server::dialect::Dialect;
use crate::server::sql::quoted;
use crate::server::{DATABASE, Target, address};
use crate::window::Place;
use anyhow::{Context, bail, ensure};
use codec::ServerKind;
use rig::server::LogFile;
use rig::usage::Usage;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::time::Duration;
use wire::ResultSet;

/// Longest wait until a replica has applied what fills the tables.
const FILL_MAX: Duration = Duration::from_secs(4 * 3600);

/// Longest password of a source's account: `CHANGE REPLICATION SOURCE` of MySQL refuses a longer one.
const PASSWORD_BYTES_MAX: usize = 32;

/// A server of the lab's own that can be made a replica of another one.
#[derive(Debug)]
pub struct Replica {
    target: Target,
    behaviour: Option<Behaviour>,
}

/// How a replica is to behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behaviour {
    /// `sync_relay_log`: the relay log is synced after this many events (0: never). MySQL counts events, not
    /// transactions.
    pub sync_relay_log: u32,
    /// The SQL thread runs.
    pub applying: bool,
    /// It acknowledges; otherwise it receives asynchronously.
    pub semi_sync: bool,
}

impl Replica {
    /// A replica on `target`. What it received is thrown away when it is detached, so rows that a later source changes
    /// may be absent: start it with [`options`].
    ///
    /// # Errors
    /// When it is one of the user's servers.
    pub fn new(target: Target) -> anyhow::Result<Replica> {
        ensure!(!target.is_users(), "{} is not made a replica: it is one of yours", target.name());
        Ok(Replica { target, behaviour: None })
    }

    /// Starts a server in the folder `dir` as a replica of a user's server, with the lab's database alone, and lets it
    /// receive what is written there from now on; [`Replica::filled`] must follow. `more` are mysqld's options.
    ///
    /// # Errors
    /// When the lab has no server that can be a replica of that version, when the account's password is too long for one,
    /// and when it does not start or attach.
    pub fn beside(lab: &Lab, source: &mut Target, dir: PathBuf, more: &[String]) -> anyhow::Result<Replica> {
        let (dialect, place) = (source.dialect(), address::place(source.account()));
        let Some(server) = dialect.replica_server() else {
            bail!(
                "{place} is {}, and the lab has no server that can be its semi-sync replica: MySQL 9.7 and MariaDB 11.8 \
                 replicate from their own kind, from 8.0 and 10.2 on, and from nothing later",
                source.session().version()
            )
        };
        let bytes = source.account().password.expose().len();
        ensure!(
            dialect.kind() == ServerKind::MariaDb || bytes <= PASSWORD_BYTES_MAX,
            "the password of {} on {place} has {bytes} bytes, and a MySQL replica takes at most {PASSWORD_BYTES_MAX}: \
             name an account with a shorter one",
            source.account().user
        );
        // Its rows may be absent on the replica, or there already; statements would fail then.
        source.set("binlog_format", "ROW")?;
        let mut options = [more, &options(dialect)].concat();
        options.push(format!("--replicate-wild-do-table={DATABASE}.%"));
        // Unlike any other server's there.
        options.push(format!("--server-id={}", RandomState::new().hash_one(&dir) as u32 | 1 << 31));
        if let Some(mode) = source.variable("gtid_mode")? {
            options.push(format!("--gtid-mode={mode}"));
        }
        (lab.say)(&format!("starting {server} as a replica of {place}"));
        let mut replica = Replica::new(Target::start_receiver(lab, server, dir, None, &options)?)?;
        if let Some(pid) = replica.target.pid() {
            source.started(pid)?;
        }
        // It keeps the account of the source where its root can read it.
        replica.target.close_to_others()?;
        replica.target.create_database()?;
        // Tables take it from their database, and the server's default may be another one.
        let collation = source.query(&format!(
            "SELECT default_collation_name FROM information_schema.schemata WHERE schema_name = '{DATABASE}'"
        ))?;
        let collation = collation.first().context("the database has no collation")?;
        replica.target.query(&format!("ALTER DATABASE {DATABASE} COLLATE {collation}"))?;
        let end = source.log_end()?;
        replica.attach(source, &end, Behaviour { sync_relay_log: 0, applying: true, semi_sync: false })?;
        Ok(replica)
    }

    /// Waits until it has applied all that the user's server holds, and detaches it.
    ///
    /// # Errors
    /// When it does not get there, with its own words.
    pub fn filled(&mut self, source: &mut Target, interrupt: &Interrupt) -> anyhow::Result<()> {
        let end = source.log_end()?;
        let level = interrupt.wait(FILL_MAX, || {
            if let Some(wrong) = self.not_attached()? {
                bail!("it does not receive the tables: {wrong}");
            }
            Ok((self.behind(source, &end)? == 0).then_some(()))
        });
        level?.with_context(|| format!("the replica has not applied the tables within {FILL_MAX:?}"))?;
        self.detach()
    }

    /// Its server.
    pub fn target(&mut self) -> &mut Target {
        &mut self.target
    }

    /// Begins to receive from `source` at `place`.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn attach(&mut self, source: &Target, place: &Place, behaviour: Behaviour) -> anyhow::Result<()> {
        self.detach()?;
        let dialect = self.target.dialect();
        self.behaviour = Some(behaviour);
        self.target.set("sync_relay_log", &behaviour.sync_relay_log.to_string())?;
        let enabled = format!("{}enabled", dialect.semi_sync_replica().prefix);
        match self.target.variable(&enabled)? {
            Some(_) => self.target.set(&enabled, if behaviour.semi_sync { "1" } else { "0" })?,
            None => ensure!(!behaviour.semi_sync, "{} has no semi-sync", self.target.name()),
        }
        let statement = change_source(dialect, source, place);
        self.target.session().query_unquoted(&statement, "CHANGE REPLICATION SOURCE")?;
        let threads = if behaviour.applying { "" } else { " IO_THREAD" };
        self.target.query(&format!("START {}{threads}", dialect.replica()))?;
        Ok(())
    }

    /// Stops it and throws away what it received, its own binary log with it.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn detach(&mut self) -> anyhow::Result<()> {
        let (word, reset) = (self.target.dialect().replica(), self.target.dialect().reset_logs());
        self.behaviour = None;
        self.target.session().run(&[format!("STOP {word}"), format!("RESET {word} ALL"), reset.to_owned()])
    }

    /// What is not as it must be before and after a load, by its own word: its threads run or not as they were told.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn not_attached(&mut self) -> anyhow::Result<Option<String>> {
        let Behaviour { applying, sync_relay_log, .. } =
            self.behaviour.context("the replica was not attached")?;
        if let Some(wrong) = self.target.is_not(&[("sync_relay_log", &sync_relay_log.to_string())])? {
            return Ok(Some(format!("the replica's {wrong}")));
        }
        let rows = self.status()?;
        let running = |thread: &str| {
            let names = [format!("Replica_{thread}_Running"), format!("Slave_{thread}_Running")];
            names.iter().find_map(|name| rows.get(0, name)).unwrap_or("No").to_owned()
        };
        let (receiver, applier) = (running("IO"), running("SQL"));
        let right = receiver == "Yes" && applier == if applying { "Yes" } else { "No" };
        Ok((!right).then(|| {
            format!(
                "the replica's receiver thread runs: {receiver}, its SQL thread: {applier} {}",
                errors(&rows)
            )
        }))
    }

    /// Bytes of the source's log through `end` that it has not applied.
    ///
    /// # Errors
    /// When a server does not answer.
    pub fn behind(&mut self, source: &mut Target, end: &Place) -> anyhow::Result<u64> {
        let status = self.status()?;
        let column = |names: [&str; 2]| names.iter().find_map(|name| status.get(0, name)).map(str::to_owned);
        let file =
            column(["Relay_Source_Log_File", "Relay_Master_Log_File"]).context("it is not a replica")?;
        let position =
            column(["Exec_Source_Log_Pos", "Exec_Master_Log_Pos"]).and_then(|text| text.parse().ok());
        let at = Place { file, position: position.context("the replica does not say how far it is")? };
        Ok(distance(&at, end, &source.log_files()?))
    }

    /// What its server has used until now.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        Usage::of(self.target.pid().context("the replica's process is not known")?)
    }

    /// What it says about its threads when it does not attach.
    pub fn complaint(&mut self) -> String {
        self.status().map_or_else(|error| format!("{error:#}"), |rows| errors(&rows))
    }

    fn status(&mut self) -> anyhow::Result<ResultSet> {
        self.target.query(&format!("SHOW {} STATUS", self.target.dialect().replica()))
    }
}

/// mysqld's options for a replica: rows may be absent, or there already. As many appliers in MariaDB as MySQL has unless
/// it is told otherwise.
pub fn options(dialect: Dialect) -> Vec<String> {
    let mut options = vec![dialect.exec_mode_option().to_owned(), "--relay-log=relay".to_owned()];
    if dialect.kind() == ServerKind::MariaDb {
        options.push("--slave-parallel-threads=4".to_owned());
    }
    options
}

fn errors(rows: &ResultSet) -> String {
    let errors = ["Last_IO_Error", "Last_SQL_Error"].map(|column| rows.get(0, column).unwrap_or_default());
    errors.join(" ").trim().to_owned()
}

/// From one place of a log to a later one, given the log's files with their sizes. A replica that has applied nothing yet
/// names no file.
fn distance(from: &Place, to: &Place, logs: &[LogFile]) -> u64 {
    let through = |place: &Place| -> u64 {
        let before = logs.iter().filter(|log| log.name < place.file).map(|log| log.len).sum::<u64>();
        before + place.position
    };
    through(to).saturating_sub(if from.file.is_empty() { 0 } else { through(from) })
}

/// With the source's account; in clear where that is, and in TLS where the lab's own session with the source is, as
/// binlogd has it. A source notices by its next heartbeat that a replica is gone.
fn change_source(dialect: Dialect, source: &Target, place: &Place) -> String {
    let (account, Place { file, position }) = (source.account_of_receivers(), place);
    let (change, word) = match dialect.is_mysql_from(8, 0, 23) {
        true => ("CHANGE REPLICATION SOURCE", "SOURCE"),
        false => ("CHANGE MASTER", "MASTER"),
    };
    let more = if dialect.kind() == ServerKind::MariaDb {
        ", MASTER_SSL_VERIFY_SERVER_CERT = 0, MASTER_USE_GTID = no"
    } else if dialect.is_mysql_from(8, 0, 23) {
        ", SOURCE_AUTO_POSITION = 0, GET_SOURCE_PUBLIC_KEY = 1"
    } else {
        ", MASTER_AUTO_POSITION = 0"
    };
    format!(
        "{change} TO {word}_HOST = {}, {word}_PORT = {}, {word}_USER = {}, {word}_PASSWORD = {}, {word}_SSL = {}, \
         {word}_HEARTBEAT_PERIOD = 0.5, {word}_LOG_FILE = '{file}', {word}_LOG_POS = {position}{more}",
        quoted(&account.host),
        account.port,
        quoted(&account.user),
        quoted(account.password.expose()),
        u8::from(source.is_encrypted()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_goes_over_the_ends_of_files() {
        let place = |file: &str, position| Place { file: file.to_owned(), position };
        let logs = [("b.1", 100), ("b.2", 50), ("b.3", 30)]
            .map(|(name, len)| LogFile { name: name.to_owned(), len });
        assert_eq!(distance(&place("b.1", 90), &place("b.3", 20), &logs), 10 + 50 + 20);
        assert_eq!(distance(&place("b.3", 20), &place("b.3", 20), &logs), 0);
        assert_eq!(distance(&place("", 4), &place("b.1", 20), &logs), 20);
    }
}
