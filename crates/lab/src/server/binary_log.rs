//! A server's binary log: where it ends, how much was written, who reads it.

use super::target::Target;
use crate::interrupt::Interrupt;
use crate::window::Place;
use anyhow::{Context, bail};
use rig::server::LogFile;
use std::time::Duration;

/// Longest wait until a server has noticed that a receiver is gone.
const DETACH_MAX: Duration = Duration::from_secs(20);

impl Target {
    /// Begins a new log file and purges those before it: every receiver starts at the end of an empty log, and the disk
    /// does not fill. Nobody may be attached. A user's log stays as it is.
    ///
    /// # Errors
    /// When the server refuses, or writes no binary log.
    pub fn begin_log(&mut self) -> anyhow::Result<Place> {
        if self.is_users() {
            return self.log_end();
        }
        self.query("FLUSH BINARY LOGS")?;
        let place = self.log_end()?;
        self.query(&format!("PURGE BINARY LOGS TO '{}'", place.file))?;
        Ok(place)
    }

    /// Where its log ends.
    ///
    /// # Errors
    /// When the server refuses, or writes no binary log.
    pub fn log_end(&mut self) -> anyhow::Result<Place> {
        let rows = self.query(self.dialect().show_end())?;
        let file = rows.get(0, "File").context("the server writes no binary log")?.to_owned();
        let position = rows.get(0, "Position").and_then(|text| text.parse().ok());
        Ok(Place { file, position: position.context("the server does not say how long its log is")? })
    }

    /// Bytes of all its log files.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn log_bytes(&mut self) -> anyhow::Result<u64> {
        Ok(self.log_files()?.iter().map(|file| file.len).sum())
    }

    /// Its log files, the oldest first.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn log_files(&mut self) -> anyhow::Result<Vec<LogFile>> {
        self.session().log_files()
    }

    /// Sessions that read its log.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn dumps(&mut self) -> anyhow::Result<Vec<String>> {
        let rows = self.query("SHOW PROCESSLIST")?;
        let dumps = (0..rows.rows.len()).filter(|row| {
            rows.get(*row, "Command").is_some_and(|command| command.starts_with("Binlog Dump"))
        });
        Ok(dumps.filter_map(|row| rows.get(row, "Id").map(str::to_owned)).collect())
    }

    /// Waits until the server counts no semi-sync receiver any more. On one of the lab's own every session that reads its
    /// log is ended: it would otherwise stay, and be counted, until the server next writes to it. On a user's server
    /// that is waited for, because the sessions may be those of other replicas.
    ///
    /// # Errors
    /// When they do not end.
    pub fn drop_dumps(&mut self, interrupt: &Interrupt) -> anyhow::Result<()> {
        let gone = interrupt.wait(DETACH_MAX, || {
            let mut dumps = Vec::new();
            if !self.is_users() {
                dumps = self.dumps()?;
                for id in &dumps {
                    // It may have ended by itself in the meantime.
                    let _ = self.query(&format!("KILL {id}"));
                }
            }
            Ok((dumps.is_empty() && self.semi_sync()?.clients == 0).then_some(()))
        })?;
        if gone.is_none() {
            let (clients, dumps) = (self.semi_sync()?.clients, self.dumps()?.len());
            bail!("{} still counts {clients} semi-sync receivers, and {dumps} read its log", self.name());
        }
        Ok(())
    }
}
