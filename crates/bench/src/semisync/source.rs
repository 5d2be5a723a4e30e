//! The source: its words for semi-sync, its counters, its log, and who is attached to it.

use anyhow::{Context, bail};
use rig::interrupt::Interrupt;
use rig::semi_sync::SemiSync;
use rig::server::{Server, Session};
use std::time::Duration;

/// Longest wait until the source has noticed that a receiver is gone.
const DETACH_MAX: Duration = Duration::from_secs(20);

/// Where MySQL and MariaDB differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// 8.4 and later.
    Mysql,
    /// 11.x.
    Mariadb,
}

impl Dialect {
    /// What the names of the source's semi-sync variables and counters begin with.
    pub fn source_prefix(self) -> &'static str {
        match self {
            Dialect::Mysql => "rpl_semi_sync_source_",
            Dialect::Mariadb => "rpl_semi_sync_master_",
        }
    }

    /// Throws away a server's binary logs.
    pub fn reset_logs(self) -> &'static str {
        match self {
            Dialect::Mysql => "RESET BINARY LOGS AND GTIDS",
            Dialect::Mariadb => "RESET MASTER",
        }
    }

    fn show_end(self) -> &'static str {
        match self {
            Dialect::Mysql => "SHOW BINARY LOG STATUS",
            Dialect::Mariadb => "SHOW MASTER STATUS",
        }
    }
}

/// A place in the source's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file's name.
    pub file: String,
    /// The offset in it.
    pub position: u32,
}

/// The source and our session with it.
#[derive(Debug)]
pub struct Source {
    server: Server,
    session: Session,
    dialect: Dialect,
}

impl Source {
    /// # Errors
    /// When it does not answer.
    pub fn new(server: Server, dialect: Dialect) -> anyhow::Result<Source> {
        let session = server.session()?;
        Ok(Source { server, session, dialect })
    }

    /// The server itself.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// What it calls its version.
    pub fn version(&self) -> &str {
        self.session.version()
    }

    /// Begins a new log file and purges those before it: every receiver starts at the end of an empty log, and the
    /// disk does not fill. Nobody may be attached.
    ///
    /// # Errors
    /// When the source refuses.
    pub fn begin_log(&mut self) -> anyhow::Result<Place> {
        self.session.query("FLUSH BINARY LOGS")?;
        let rows = self.session.query(self.dialect.show_end())?;
        let file = rows.get(0, "File").context("the source writes no binary log")?.to_owned();
        let position = rows.get(0, "Position").and_then(|text| text.parse().ok());
        let position = position.context("the source does not say how long its log is")?;
        self.session.query(&format!("PURGE BINARY LOGS TO '{file}'"))?;
        Ok(Place { file, position })
    }

    /// Bytes of its log files.
    ///
    /// # Errors
    /// When the source does not answer.
    pub fn log_bytes(&mut self) -> anyhow::Result<u64> {
        let rows = self.session.query("SHOW BINARY LOGS")?;
        let sizes = (0..rows.rows.len()).filter_map(|row| rows.get(row, "File_size")?.parse::<u64>().ok());
        Ok(sizes.sum())
    }

    /// Switches semi-sync on or off; a source that had given up waiting waits again. Where it is as wanted already,
    /// nothing is done: MySQL takes a second to end the thread that reads acknowledgements.
    ///
    /// # Errors
    /// When the source refuses.
    pub fn set_semi_sync(&mut self, wanted: bool) -> anyhow::Result<()> {
        let variable = format!("{}enabled", self.dialect.source_prefix());
        let rows = self.session.query(&format!("SELECT @@GLOBAL.{variable}"))?;
        let enabled = rows.first() == Some("1");
        if enabled == wanted && self.semi_sync()?.on == wanted {
            return Ok(());
        }
        self.session.query(&format!("SET GLOBAL {variable} = 0"))?;
        if wanted {
            self.session.query(&format!("SET GLOBAL {variable} = 1"))?;
        }
        Ok(())
    }

    /// Commits twice, one row each, and so waits for a receiver twice if semi-sync is on.
    ///
    /// # Errors
    /// When the source refuses.
    pub fn commit_probes(&mut self) -> anyhow::Result<()> {
        for number in 0..2 {
            self.session.query(&format!("REPLACE INTO sbtest.probe VALUES (1, {number})"))?;
        }
        Ok(())
    }

    /// Its counters now.
    ///
    /// # Errors
    /// When the source does not answer.
    pub fn semi_sync(&mut self) -> anyhow::Result<SemiSync> {
        let rows = self.session.query("SHOW GLOBAL STATUS LIKE 'rpl_semi_sync_%'")?;
        Ok(SemiSync::read(&rows, self.dialect.source_prefix()))
    }

    /// Sessions that read its log.
    ///
    /// # Errors
    /// When the source does not answer.
    pub fn dumps(&mut self) -> anyhow::Result<Vec<String>> {
        let rows = self.session.query("SHOW PROCESSLIST")?;
        let dumps = (0..rows.rows.len()).filter(|row| {
            rows.get(*row, "Command").is_some_and(|command| command.starts_with("Binlog Dump"))
        });
        Ok(dumps.filter_map(|row| rows.get(row, "Id").map(str::to_owned)).collect())
    }

    /// Ends every session that reads its log, and waits until the source counts no receiver any more. A session whose
    /// receiver is gone would otherwise stay, and be counted, until the source next writes to it.
    ///
    /// # Errors
    /// When they do not end.
    pub fn drop_dumps(&mut self, interrupt: &Interrupt) -> anyhow::Result<()> {
        let gone = interrupt.wait(DETACH_MAX, || {
            let dumps = self.dumps()?;
            for id in &dumps {
                // It may have ended by itself in the meantime.
                let _ = self.session.query(&format!("KILL {id}"));
            }
            Ok((dumps.is_empty() && self.semi_sync()?.clients == 0).then_some(()))
        })?;
        if gone.is_none() {
            bail!(
                "the source still counts a receiver {DETACH_MAX:?} after it was ended: {:?}",
                self.dumps()?
            );
        }
        Ok(())
    }
}
