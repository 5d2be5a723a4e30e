//! A real replica, its server kept running from cell to cell.

use super::source::{Dialect, Place};
use rig::server::{Server, Session};

/// A server that can be made the source's replica.
#[derive(Debug)]
pub struct Replica {
    server: Server,
    session: Session,
    dialect: Dialect,
}

impl Replica {
    /// # Errors
    /// When the server does not answer.
    pub fn new(server: Server, dialect: Dialect) -> anyhow::Result<Replica> {
        let session = server.session()?;
        Ok(Replica { server, session, dialect })
    }

    /// Its server's process.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Begins to receive from the source on `port` at `place`; `applying` starts the SQL thread too.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn attach(&mut self, port: u16, place: &Place, synced: bool, applying: bool) -> anyhow::Result<()> {
        self.detach()?;
        let Place { file, position } = place;
        let sync = format!("SET GLOBAL sync_relay_log = {}", u8::from(synced));
        let (change, start) = match self.dialect {
            Dialect::Mysql => (
                format!(
                    "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, \
                     SOURCE_USER = 'root', SOURCE_PASSWORD = '', SOURCE_SSL = 0, GET_SOURCE_PUBLIC_KEY = 1, \
                     SOURCE_AUTO_POSITION = 0, SOURCE_LOG_FILE = '{file}', SOURCE_LOG_POS = {position}"
                ),
                if applying { "START REPLICA" } else { "START REPLICA IO_THREAD" },
            ),
            Dialect::Mariadb => (
                format!(
                    "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'root', \
                     MASTER_PASSWORD = '', MASTER_SSL = 0, MASTER_SSL_VERIFY_SERVER_CERT = 0, \
                     MASTER_USE_GTID = no, MASTER_LOG_FILE = '{file}', MASTER_LOG_POS = {position}"
                ),
                if applying { "START SLAVE" } else { "START SLAVE IO_THREAD" },
            ),
        };
        self.session.run(&[sync.as_str(), &change, start])
    }

    /// Stops it and throws away what it received, its own binary log with it.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn detach(&mut self) -> anyhow::Result<()> {
        match self.dialect {
            Dialect::Mysql => self.session.run(&["STOP REPLICA", "RESET REPLICA ALL"])?,
            Dialect::Mariadb => self.session.run(&["STOP SLAVE", "RESET SLAVE ALL"])?,
        }
        self.session.run(&[self.dialect.reset_logs()])
    }

    /// What it says about its threads when it does not attach.
    pub fn complaint(&mut self) -> String {
        let show = match self.dialect {
            Dialect::Mysql => "SHOW REPLICA STATUS",
            Dialect::Mariadb => "SHOW SLAVE STATUS",
        };
        let Ok(rows) = self.session.query(show) else { return "the replica does not answer".to_owned() };
        let errors =
            ["Last_IO_Error", "Last_SQL_Error"].map(|column| rows.get(0, column).unwrap_or_default());
        errors.join(" ").trim().to_owned()
    }
}
