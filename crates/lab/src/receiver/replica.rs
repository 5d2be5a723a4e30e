//! A real replica; its server is one of the lab's own and keeps running from cell to cell.

use super::Usage;
use crate::server::Target;
use crate::server::binary_log::Place;
use crate::server::dialect::Dialect;
use anyhow::{Context, ensure};
use binlogd::wire::ResultSet;

/// A server that can be made a replica of another one of the lab's own.
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
    /// A replica on `target`. What it received is thrown away when it is detached, so rows that a later source changes may
    /// be absent: start it with [`options`].
    ///
    /// # Errors
    /// When it is one of the user's servers.
    pub fn new(target: Target) -> anyhow::Result<Replica> {
        ensure!(!target.is_users(), "{} is not made a replica: it is one of yours", target.name());
        Ok(Replica { target, behaviour: None })
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
        let account = source.account();
        self.target.query(&change_source(dialect, account.port, &account.user, place))?;
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
        let applying = self.behaviour.context("the replica was not attached")?.applying;
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
    if dialect.is_mariadb() {
        options.push("--slave-parallel-threads=4".to_owned());
    }
    options
}

fn errors(rows: &ResultSet) -> String {
    let errors = ["Last_IO_Error", "Last_SQL_Error"].map(|column| rows.get(0, column).unwrap_or_default());
    errors.join(" ").trim().to_owned()
}

/// In clear, as root without a password: both servers are the lab's own, on this machine.
fn change_source(dialect: Dialect, port: u16, user: &str, place: &Place) -> String {
    let Place { file, position } = place;
    let (change, word) = match dialect.is_mysql_from(8, 0, 23) {
        true => ("CHANGE REPLICATION SOURCE", "SOURCE"),
        false => ("CHANGE MASTER", "MASTER"),
    };
    let more = if dialect.is_mariadb() {
        ", MASTER_SSL_VERIFY_SERVER_CERT = 0, MASTER_USE_GTID = no".to_owned()
    } else if dialect.is_mysql_from(8, 0, 23) {
        ", SOURCE_AUTO_POSITION = 0, GET_SOURCE_PUBLIC_KEY = 1".to_owned()
    } else {
        ", MASTER_AUTO_POSITION = 0".to_owned()
    };
    format!(
        "{change} TO {word}_HOST = '127.0.0.1', {word}_PORT = {port}, {word}_USER = '{user}', {word}_PASSWORD = '', \
         {word}_SSL = 0, {word}_LOG_FILE = '{file}', {word}_LOG_POS = {position}{more}"
    )
}
