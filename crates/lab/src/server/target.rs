//! A server to measure.

use super::changes::Changes;
use super::dialect::Dialect;
use super::sql::{self, DATABASE};
use super::{accounts, address};
use crate::lab::{Lab, Skip};
use crate::machine::cpus::Role;
use crate::model::ServerChoice;
use anyhow::{Context, bail, ensure};
use rig::process::last_lines;
use rig::server::{Server, Session};
use std::path::{Path, PathBuf};
use wire::{ConnectOptions, ResultSet};

const SNAPSHOT_ISOLATION: &str = "innodb_snapshot_isolation";
/// The longest that every server takes, in seconds: a year.
const WAIT_TIMEOUT_MAX: u32 = 31_536_000;
/// What studies set of the variables that a new connection copies from the global ones.
const COPIED_INTO_SESSIONS: [&str; 4] = [
    "binlog_format",
    "binlog_transaction_compression",
    "binlog_transaction_compression_level_zstd",
    SNAPSHOT_ISOLATION,
];

/// A server's options, with the addresses that it listens on where a link stands between source and receivers.
fn with_link(lab: &Lab, role: Role, name: &str, options: &[String]) -> anyhow::Result<Vec<String>> {
    let Some(link) = lab.link.as_ref().filter(|_| role == Role::Source) else { return Ok(options.to_vec()) };
    if name.starts_with("mysql-5") {
        return Err(
            Skip::by_nature(format!("{name} cannot listen on two addresses, which --network needs")).into()
        );
    }
    let addresses = format!("--bind-address=127.0.0.1,{}", link.source_address());
    Ok([options, &[addresses]].concat())
}

/// One of the lab's own servers, or one of the user's. Dropping it stops the former and restores the latter.
#[derive(Debug)]
pub struct Target {
    // Dropped in this order: what was changed is changed back while the session still holds the lab's lock, and our own
    // server goes last.
    changes: Option<Changes>,
    session: Session,
    own: Option<Server>,
    role: Role,
    /// Of the run that it was started for.
    lab: Lab,
    name: String,
    account: ConnectOptions,
    dialect: Dialect,
}

impl Target {
    /// Starts one of the lab's own servers as a source in the folder `dir`, on a copy of what is in `data_from`, the folder of a
    /// server that is stopped or a data folder, or on none. `options` are mysqld's.
    ///
    /// # Errors
    /// When it does not come up, and when the run is broken off.
    pub fn start(
        lab: &Lab,
        name: &str,
        dir: PathBuf,
        data_from: Option<&Path>,
        options: &[String],
    ) -> anyhow::Result<Target> {
        Target::start_as(Role::Source, lab, name, dir, data_from, options)
    }

    /// The same for a server that receives.
    ///
    /// # Errors
    /// As [`Target::start`].
    pub fn start_receiver(
        lab: &Lab,
        name: &str,
        dir: PathBuf,
        data_from: Option<&Path>,
        options: &[String],
    ) -> anyhow::Result<Target> {
        Target::start_as(Role::Receiver, lab, name, dir, data_from, options)
    }

    fn start_as(
        role: Role,
        lab: &Lab,
        name: &str,
        dir: PathBuf,
        data_from: Option<&Path>,
        options: &[String],
    ) -> anyhow::Result<Target> {
        let options = with_link(lab, role, name, options)?;
        let _placed = lab.place(role)?;
        let server = Server::start(&lab.scripts, name, dir, data_from, &options)?;
        lab.interrupt.check()?;
        let account = server.account();
        let session = Session::connect(&account)?;
        let dialect = Dialect::of(&session)?;
        let (own, name) = (Some(server), name.to_owned());
        let mut target =
            Target { session, changes: None, own, role, lab: lab.clone(), name, account, dialect };
        if let Some(link) = lab.link.as_ref().filter(|_| role == Role::Source) {
            target.admit(link.receiver_address())?;
        }
        Ok(target)
    }

    /// Lets receivers in from that address, with the account that everybody on this machine has.
    fn admit(&mut self, address: &str) -> anyhow::Result<()> {
        self.session.run(&[
            format!("CREATE USER IF NOT EXISTS 'root'@'{address}' IDENTIFIED BY ''"),
            format!("GRANT ALL ON *.* TO 'root'@'{address}'"),
        ])
    }

    /// How what receives reaches it. It may hold a password.
    pub fn account_of_receivers(&self) -> ConnectOptions {
        match &self.lab.link {
            Some(link) => ConnectOptions { host: link.source_address().to_owned(), ..self.account.clone() },
            None => self.account.clone(),
        }
    }

    /// Takes one of the user's servers into use, and creates the lab's database there. Its own replicas will have that
    /// database too for as long as it is there.
    ///
    /// # Errors
    /// When it cannot be reached, is used by another run, writes no binary log, takes no writes, has semi-sync in use, is
    /// as a run that was killed has left it, or holds other data and is not among [`Lab::allowed_servers`]; and when the
    /// account does not see all of its databases.
    pub fn attach(lab: &Lab, url: &str) -> anyhow::Result<Target> {
        let account = address::account(url)?;
        let place = address::place(&account);
        let mut session = Session::connect(&account)?;
        let dialect = Dialect::of(&session)?;
        // Held by this session, also against a lab on another machine. It is idle while loads run.
        let locked = session.query(&format!("SELECT GET_LOCK('{DATABASE}', 0)"))?;
        ensure!(locked.first() == Some("1"), "another run of the lab uses {place} now");
        session.query(&format!("SET SESSION wait_timeout = {WAIT_TIMEOUT_MAX}"))?;
        let name = ServerChoice::Url(url.to_owned()).to_string();
        let (own, role, lab_of_it) = (None, Role::Source, lab.clone());
        let mut target = Target { session, changes: None, own, role, lab: lab_of_it, name, account, dialect };
        // First of all, because a run that was killed leaves much of what is refused below, such as semi-sync in use.
        target.changes = Some(Changes::begin(lab, &target.account, &mut target.session)?);
        target.may_be_used(lab, &place)?;
        target.create_database()?;
        (lab.say)(&target.outlives(&place)?);
        Ok(target)
    }

    /// Looks, before anything is changed, whether a user's server can be measured without harm to others.
    fn may_be_used(&mut self, lab: &Lab, place: &str) -> anyhow::Result<()> {
        ensure!(
            sql::all_databases(&mut self.session)?.iter().any(|name| name == "mysql"),
            "{} does not see the database mysql on {place}, so it may not see others either, which a load would slow \
             down: grant it SHOW DATABASES",
            self.account.user
        );
        sql::is_free(&mut self.session, DATABASE)?;
        let others: Vec<String> =
            sql::databases(&mut self.session)?.into_iter().filter(|name| name != DATABASE).collect();
        if !others.is_empty() && !lab.allowed_servers.iter().any(|allowed| allowed == place) {
            bail!(
                "{place} holds other data (the databases {}), and a load slows everybody down: \
                 --use-server-with-data {place} allows it nevertheless",
                others.join(", ")
            );
        }
        ensure!(
            self.is_on("log_bin")?,
            "{place} writes no binary log (log_bin is OFF): nothing can be measured"
        );
        ensure!(!self.is_on("read_only")?, "{place} is read_only, as a replica is: name its source");
        self.has_no_semi_sync_in_use(place)
    }

    fn is_on(&mut self, name: &str) -> anyhow::Result<bool> {
        Ok(self.variable(name)?.is_some_and(|value| value != "OFF" && value != "0"))
    }

    /// What goes on after the run: a line for whoever has the server.
    fn outlives(&mut self, place: &str) -> anyhow::Result<String> {
        let mut copied = Vec::new();
        for name in COPIED_INTO_SESSIONS {
            if self.variable(name)?.is_some() {
                copied.push(name);
            }
        }
        Ok(format!(
            "{place}: connections that applications make during the run take over what the study sets of {}, and keep it \
             after it is set back: renew their pools then",
            copied.join(", ")
        ))
    }

    /// Creates the database [`DATABASE`] with the table that [`Target::commit_probes`] writes to. On a user's server it
    /// is there already.
    ///
    /// # Errors
    /// When the server refuses, or holds one of that name that the lab did not create.
    pub fn create_database(&mut self) -> anyhow::Result<()> {
        match &mut self.changes {
            Some(changes) => changes.create_database(&mut self.session, DATABASE)?,
            None => self.session.run(&[format!("CREATE DATABASE {DATABASE}")])?,
        }
        self.session.run(&[format!("CREATE TABLE {DATABASE}.probe (a INT PRIMARY KEY, b INT)")])
    }

    /// As [`ServerChoice`] prints it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How to reach it. It may hold a password.
    pub fn account(&self) -> &ConnectOptions {
        &self.account
    }

    /// Its words.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Gives root of one of the lab's own servers a random password, and removes the other accounts that have none:
    /// whoever is on this machine could otherwise read there what the server is told, such as the password of its source.
    ///
    /// # Errors
    /// When it is one of the user's, and when it refuses.
    pub fn close_to_others(&mut self) -> anyhow::Result<()> {
        ensure!(!self.is_users(), "{} is one of yours: its accounts stay as they are", self.name);
        self.account.password = accounts::close(&mut self.session)?;
        Ok(())
    }

    /// Whether our own session with it is in TLS.
    pub fn is_encrypted(&self) -> bool {
        self.session.is_encrypted()
    }

    /// How many sessions it has encrypted since its start.
    ///
    /// # Errors
    /// When it does not answer, or does not count them.
    pub fn encrypted_sessions(&mut self) -> anyhow::Result<u64> {
        let rows = self.query("SHOW GLOBAL STATUS LIKE 'Ssl_finished_accepts'")?;
        let count = rows.get(0, "Value").and_then(|value| value.parse().ok());
        count.with_context(|| format!("{} does not say how many sessions it has encrypted", self.name))
    }

    /// Whether it is one of the user's.
    pub fn is_users(&self) -> bool {
        self.own.is_none()
    }

    /// Its process; `None` for a user's server.
    pub fn pid(&self) -> Option<u32> {
        self.own.as_ref().map(Server::pid)
    }

    /// What came of a load, which says so where the server has ended under it: the load's own words tell nothing of that.
    ///
    /// # Errors
    /// Those of the load.
    pub fn loaded<T>(&self, outcome: anyhow::Result<T>) -> anyhow::Result<T> {
        let Some(server) = self.own.as_ref().filter(|server| sql::start_of(server.pid()).is_none()) else {
            return outcome;
        };
        outcome.with_context(|| {
            let said = std::fs::read_to_string(server.dir().join("error.log")).unwrap_or_default();
            format!(
                "{} has ended meanwhile. Its log ends with: {}. Of a server that was killed for lack of memory nothing stands \
                 there, but in the kernel's log (dmesg)",
                self.name,
                last_lines(&said)
            )
        })
    }

    /// Its data folder; `None` for a user's server.
    pub fn data_dir(&self) -> Option<PathBuf> {
        self.own.as_ref().map(|server| server.dir().join("data"))
    }

    /// The session that everything else here uses.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Runs one statement.
    ///
    /// # Errors
    /// When the server refuses it or is gone.
    pub fn query(&mut self, sql: &str) -> anyhow::Result<ResultSet> {
        self.session.query(sql)
    }

    /// Shuts one of the lab's own servers down in good order. Only [`Target::restart`] may follow, or being copied.
    ///
    /// # Errors
    /// When it does not end, or is one of the user's.
    pub fn stop(&self) -> anyhow::Result<()> {
        self.own.as_ref().context("a user's server is not stopped")?.stop()
    }

    /// Starts one of the lab's own servers, which was stopped, with other options.
    ///
    /// # Errors
    /// When it does not come up, or is one of the user's.
    pub fn restart(&mut self, options: &[String]) -> anyhow::Result<()> {
        let server = self.own.as_mut().context("a user's server is not restarted")?;
        let _placed = self.lab.place(self.role)?;
        // Without options it keeps those that it has.
        match options.is_empty() {
            true => server.restart(options)?,
            false => server.restart(&with_link(&self.lab, self.role, &self.name, options)?)?,
        }
        // It may have got a password meanwhile.
        let password = self.account.password.clone();
        self.account = ConnectOptions { password, ..server.account() };
        self.session = Session::connect(&self.account)?;
        Ok(())
    }

    /// A global variable as SHOW GLOBAL VARIABLES prints it; `None` when the server has none of that name.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn variable(&mut self, name: &str) -> anyhow::Result<Option<String>> {
        sql::variable(&mut self.session, name)
    }

    /// Which of these global variables has another value than the one beside it, if one has: somebody changed it.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn is_not(&mut self, wanted: &[(&str, &str)]) -> anyhow::Result<Option<String>> {
        for (name, wanted) in wanted {
            let found = self.variable(name)?.unwrap_or_else(|| "absent".to_owned());
            if !sql::same(&found, wanted) {
                return Ok(Some(format!("{name} was {found} and not {wanted}")));
            }
        }
        Ok(None)
    }

    /// Sets a global variable; on a user's server it is set back at the end.
    ///
    /// # Errors
    /// When the server has no such variable or refuses.
    pub fn set(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        match &mut self.changes {
            Some(changes) => changes.set(&mut self.session, name, value),
            None => self.session.query(&sql::set_statement(name, value)?).map(|_| ()),
        }
    }

    /// Makes the server ready for a load of so many threads that prepare `statements` statements together: it can prepare
    /// them and take all connections. And MariaDB, from 11.6.2 on, does what every other server does with a row that was
    /// changed since the transaction's snapshot: update it. By its own default it refuses by error 1020, which loads
    /// count as an error.
    ///
    /// # Errors
    /// As [`Target::set`].
    pub fn make_room(&mut self, threads: u32, statements: u64) -> anyhow::Result<()> {
        let statements = (statements + 1000).min(1_048_576);
        for (name, least) in
            [("max_prepared_stmt_count", statements), ("max_connections", u64::from(threads) + 20)]
        {
            let now: u64 = self.variable(name)?.and_then(|value| value.parse().ok()).unwrap_or(0);
            if now < least {
                self.set(name, &least.to_string())?;
            }
        }
        match self.variable(SNAPSHOT_ISOLATION)? {
            Some(_) => self.set(SNAPSHOT_ISOLATION, "0"),
            None => Ok(()),
        }
    }

    /// Installs a plugin; on a user's server it is uninstalled at the end.
    ///
    /// # Errors
    /// When the server refuses, most often because it has no such file.
    pub fn install(&mut self, name: &str, file: &str) -> anyhow::Result<()> {
        match &mut self.changes {
            Some(changes) => changes.install(&mut self.session, name, file),
            None => self.session.query(&format!("INSTALL PLUGIN {name} SONAME '{file}'")).map(|_| ()),
        }
    }

    /// Notes a program of the lab's that uses the server: when the lab is killed, `binlogd-lab restore` ends it.
    ///
    /// # Errors
    /// When it cannot be written down.
    pub fn started(&mut self, pid: u32) -> anyhow::Result<()> {
        self.changes.as_mut().map_or(Ok(()), |changes| changes.started(pid))
    }
}
