//! The server that is restored.

#![allow(clippy::disallowed_methods, reason = "waits for a real server")]

pub(in crate::restore) mod channel;
pub(in crate::restore) mod space;

use crate::rescue::{Applier, Deviation, Watch, Writer, deviations, refusal};
use crate::restore::carry_out::ended::{Ended, during};
use crate::restore::target::channel::{State, Words};
use codec::{Position, ServerKind};
use source::identify::SourceIdentity;
use source::own_session::{NotSet, Purpose, prepare};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};
use thiserror::Error;
use wire::{ConnectOptions, Connection, WireError};

/// The lock that two restores of one server cannot both have.
const LOCK: &str = "binlogd.restore";

/// A session that has ended may be listed for so long.
const LEAVING_MAX: Duration = Duration::from_secs(3);

/// Between two looks at who is there.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Between two looks at a channel that stops.
const STOP_LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Ask for databases that have tables and are no server's own. An account sees those of its rights, and with PROCESS all of InnoDB.
const TABLES_OF_PEOPLE: [&str; 3] = [
    "SELECT DISTINCT TABLE_SCHEMA AS SCHEMA_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT IN ('mysql', 'sys', \
     'information_schema', 'performance_schema') ORDER BY 1 LIMIT 5",
    "SELECT DISTINCT SUBSTRING_INDEX(NAME, '/', 1) AS SCHEMA_NAME FROM information_schema.INNODB_TABLES WHERE NAME LIKE '%/%' AND \
     SUBSTRING_INDEX(NAME, '/', 1) NOT IN ('mysql', 'sys') ORDER BY 1 LIMIT 5",
    "SELECT DISTINCT SUBSTRING_INDEX(NAME, '/', 1) AS SCHEMA_NAME FROM information_schema.INNODB_SYS_TABLES WHERE NAME LIKE '%/%' AND \
     SUBSTRING_INDEX(NAME, '/', 1) NOT IN ('mysql', 'sys') ORDER BY 1 LIMIT 5",
];

/// Needs the right to see the sessions of others. Without it SHOW PROCESSLIST shows one's own, and no error.
const NEEDS_PROCESS: &str = "SELECT COUNT(*) FROM information_schema.INNODB_TRX";

/// How long one statement may take: STOP REPLICA waits for the transaction that is applied.
const STATEMENT_MAX: Duration = Duration::from_secs(24 * 3600);

/// The server, and what it says of itself.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) connection: Connection,
    /// What it has executed among it.
    pub identity: SourceIdentity,
    pub(super) words: Words,
    /// Settings that stay as they are, by the operator's word.
    accepted: Vec<String>,
}

/// Why a server cannot be restored.
#[derive(Debug, Error)]
pub(super) enum TargetError {
    /// It cannot be reached or asked.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The session cannot have what its statements depend on.
    #[error(transparent)]
    NotSet(#[from] NotSet),
    /// The other kind.
    #[error("the copy is of {copy} and the target is {target}: neither applies the other's log")]
    OtherKind {
        /// Whose binary logs are held.
        copy: ServerKind,
        /// What answers.
        target: ServerKind,
    },
    /// Another one is at work.
    #[error(
        "another restore of this server runs, in its session {0}: wait for its end, or KILL that session"
    )]
    Busy(String),
    /// It has tables, and by its own word has executed nothing.
    #[error(
        "the target has executed nothing by its own word, and has tables, in {0}: it was restored from a backup and does not know what \
         that has. Say where the backup was made: --backup-at FILE:POSITION, or its GTIDs. Everything from the first transaction on \
         would be applied to those tables else; where that is wanted, say --backup-at nothing"
    )]
    Untold(String),
    /// Settings of it that are refused by name.
    #[error("{0}")]
    Settings(String),
    /// Somebody uses it.
    #[error(
        "the target is in use, and whatever is written to it meanwhile is in no backup and in no log of the source: {0}\nEnd them, or \
         say --allow-clients if they only read"
    )]
    InUse(String),
}

impl Target {
    /// Connects, and makes sure that the server can apply the log of a server of this kind.
    ///
    /// # Errors
    /// When it cannot be reached, or cannot.
    pub(super) fn connect(options: &ConnectOptions, copy: ServerKind) -> Result<Target, TargetError> {
        let mut connection = Connection::connect(options)?;
        prepare(&mut connection, Purpose::Client)?;
        let identity = SourceIdentity::ask(&mut connection)?;
        if identity.kind != copy {
            return Err(TargetError::OtherKind { copy, target: identity.kind });
        }
        connection.set_timeout(STATEMENT_MAX);
        let words = Words::of(identity.kind, &identity.version);
        Ok(Target { connection, identity, words, accepted: Vec::new() })
    }

    /// Keeps other restores of this server out, and asks again what it has.
    ///
    /// # Errors
    /// `TargetError::Busy`.
    pub(super) fn take(&mut self) -> Result<(), TargetError> {
        let answer = self
            .connection
            .query(&format!("SELECT GET_LOCK('{LOCK}', 2), IS_USED_LOCK('{LOCK}') AS holder"))?;
        if answer.first() != Some("1") {
            return Err(TargetError::Busy(answer.get(0, "holder").unwrap_or("?").to_owned()));
        }
        self.identity = SourceIdentity::ask(&mut self.connection)?;
        Ok(())
    }

    /// Makes sure that no setting of it is refused by name. Gives what is set aside for the time.
    ///
    /// # Errors
    /// `TargetError::Settings`.
    pub(super) fn applies_as_written(
        &mut self,
        by_statements: bool,
        accepted: &[String],
    ) -> Result<Vec<Deviation>, TargetError> {
        accepted.clone_into(&mut self.accepted);
        let applier = if by_statements { Applier::Statements } else { Applier::Channel };
        let deviations = self.deviations(applier)?;
        refusal(&deviations).map_or(Ok(deviations), |refusal| Err(TargetError::Settings(refusal)))
    }

    pub(super) fn deviations(&mut self, applier: Applier) -> Result<Vec<Deviation>, WireError> {
        deviations(&mut self.connection, self.identity.kind, applier, &self.accepted)
    }

    /// Whether a setting stays as it is.
    pub(super) fn is_accepted(&self, name: &str) -> bool {
        self.accepted.iter().any(|accepted| accepted.eq_ignore_ascii_case(name))
    }

    /// How our channel on it stands; `None` where there is none.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub(super) fn channel(&mut self) -> Result<Option<State>, Ended> {
        let rows =
            self.connection.query(self.words.status()).map_err(during("asking for its replication"))?;
        Ok(self.words.state(&rows))
    }

    /// Stops our channel on a server without GTIDs, and asks how far it has come. The position of threads that were stopped is an
    /// older one than what they have done, until what is before the furthest of them is done too.
    ///
    /// # Errors
    /// When the target does not let it.
    pub(super) fn stopped_at(&mut self) -> Result<Option<Position>, Ended> {
        let mut last = None;
        loop {
            for sql in [self.words.stop(), self.words.fill_gaps()] {
                self.connection.query(&sql).map_err(during("stopping its replication"))?;
            }
            // It stops by itself before the next transaction; where there is none in its relay logs it waits for one.
            let state = loop {
                let Some(state) = self.channel()? else { return Ok(None) };
                if state.applies == "No" {
                    return Ok(state.applied);
                }
                if state.is_idle {
                    break state;
                }
                std::thread::sleep(STOP_LOOK_INTERVAL);
            };
            // A thread may have been at work still. Whatever it has done is told when it is asked again.
            if last.is_some() && last == state.applied {
                self.connection.query(&self.words.stop()).map_err(during("stopping its replication"))?;
                return Ok(last);
            }
            last = state.applied;
        }
    }

    /// Of a server without GTIDs: how far an earlier restore, which was ended early, has come.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub(super) fn left_at(&mut self) -> Result<Option<Position>, Ended> {
        Ok(self.channel()?.and_then(|state| state.applied))
    }

    /// Makes sure that a server that has executed nothing has nothing. MariaDB would not notice: as a replica it takes CREATE TABLE
    /// for CREATE OR REPLACE (`slave_ddl_exec_mode`).
    ///
    /// # Errors
    /// `TargetError::Untold`, with what it has.
    pub(super) fn is_told(&mut self) -> Result<(), TargetError> {
        if !self.identity.executed.is_empty() {
            return Ok(());
        }
        // Servers of each age have one of the names of the same table.
        for sql in TABLES_OF_PEOPLE {
            let rows = match self.connection.query(sql) {
                Err(WireError::Server { .. } | WireError::AccessDenied { .. }) => continue,
                answer => answer?,
            };
            let names: Vec<&str> =
                (0..rows.rows.len()).filter_map(|row| rows.get(row, "SCHEMA_NAME")).collect();
            if !names.is_empty() {
                return Err(TargetError::Untold(names.join(", ")));
            }
        }
        Ok(())
    }

    /// Who else uses the server, or writes to it by itself.
    ///
    /// # Errors
    /// `TargetError::InUse`, with each of them and what to do.
    pub(super) fn is_unused(&mut self) -> Result<(), TargetError> {
        let began = Instant::now();
        loop {
            let found = self.users()?;
            if found.is_empty() {
                return Ok(());
            }
            if began.elapsed() > LEAVING_MAX {
                return Err(TargetError::InUse(found.concat()));
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    fn users(&mut self) -> Result<Vec<String>, WireError> {
        let own = self.connection.connection_id().to_string();
        let mut found: Vec<String> = Vec::new();
        self.connection.query(NEEDS_PROCESS)?;
        let rows = self.connection.query("SHOW PROCESSLIST")?;
        for row in 0..rows.rows.len() {
            let of = |column| rows.get(row, column).unwrap_or_default();
            let is_server =
                matches!(of("User"), "system user" | "event_scheduler" | "unauthenticated user" | "")
                    || of("Command") == "Daemon";
            if !is_server && of("Id") != own {
                found.push(format!("\n  session {} of {} from {}", of("Id"), of("User"), of("Host")));
            }
        }
        let mut watch = Watch::of(&mut self.connection, self.identity.kind);
        let ours = |writer: &Writer| writer.what.contains(crate::restore::target::channel::CHANNEL);
        let writers = watch.replication()?;
        found.extend(writers.iter().filter(|writer| !ours(writer)).map(|writer| format!("\n  {writer}")));
        if watch.runs_events()? {
            let events = watch.enabled_events()?;
            if !events.is_empty() {
                found.push(format!(
                    "\n  events: {}\n    SET GLOBAL event_scheduler = OFF;",
                    events.join(", ")
                ));
            }
        }
        Ok(found)
    }

    /// Its data folder, as it is called on its machine.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub(super) fn datadir(&mut self) -> Result<Option<String>, WireError> {
        self.variable("datadir")
    }

    /// A global variable; `None` where the server has none of that name.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub(super) fn variable(&mut self, name: &str) -> Result<Option<String>, WireError> {
        let rows = self.connection.query(&format!("SHOW GLOBAL VARIABLES LIKE '{name}'"))?;
        Ok(rows.get(0, "Value").map(str::to_owned))
    }
}

/// Whether the server is reached by a socket of this machine.
pub(super) fn is_by_socket(options: &ConnectOptions) -> bool {
    options.host.starts_with('/')
}

/// Our address as the server at `options` sees it. Nothing is sent for that.
///
/// # Errors
/// When no way leads there.
pub(super) fn own_address(options: &ConnectOptions) -> std::io::Result<IpAddr> {
    if is_by_socket(options) {
        return Ok(Ipv4Addr::LOCALHOST.into());
    }
    let mut last = std::io::ErrorKind::NotFound.into();
    for address in (options.host.as_str(), options.port).to_socket_addrs()? {
        let any: IpAddr =
            if address.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let found = UdpSocket::bind((any, 0)).and_then(|socket| {
            socket.connect(address)?;
            socket.local_addr()
        });
        match found {
            Ok(found) => return Ok(found.ip()),
            Err(error) => last = error,
        }
    }
    Err(last)
}
