//! Changing a user's server: each change is in the journal before it is made.

use super::journal::{Entry, Journal};
use super::sql::{BUFFER_POOL, MARKER, identity, is_free, same, set_statement, start_of, variable};
use super::{address, undo};
use crate::lab::Lab;
use anyhow::Context;
use rig::server::Session;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wire::ConnectOptions;

/// What the lab has changed on one server. Dropping it changes everything back.
#[derive(Debug)]
pub struct Changes {
    account: ConnectOptions,
    /// Absent when everything is as it was.
    journal: Option<Journal>,
    say: fn(&str),
    unrestored: Arc<AtomicBool>,
}

impl Changes {
    /// Begins a journal for the server of `session` in the lab's folder of journals. Nothing is changed yet.
    ///
    /// # Errors
    /// When there is a journal of this server already, under whatever name, and when it cannot be written.
    pub fn begin(lab: &Lab, account: &ConnectOptions, session: &mut Session) -> anyhow::Result<Changes> {
        let identity = identity(session)?;
        let server = Entry::Server { url: address::url_without_password(account), identity };
        let journal = Journal::begin(&lab.journals, &address::place(account), server)?;
        let (account, unrestored) = (account.clone(), lab.unrestored.clone());
        Ok(Changes { account, journal: Some(journal), say: lab.say, unrestored })
    }

    fn note(&mut self, entry: Entry) -> anyhow::Result<()> {
        self.journal.as_mut().context("the server was restored already")?.push(entry)
    }

    /// Sets a global variable.
    ///
    /// # Errors
    /// When the server has no such variable or refuses.
    pub fn set(&mut self, session: &mut Session, name: &str, value: &str) -> anyhow::Result<()> {
        let old = variable(session, name)?.with_context(|| format!("the server has no variable {name}"))?;
        if same(&old, value) {
            return Ok(());
        }
        let (statement, name, value) = (set_statement(name, value)?, name.to_owned(), value.to_owned());
        self.note(Entry::Variable { name: name.clone(), old, new: value.clone() })?;
        let done = session.query(&statement);
        // The server may have rounded the value, or refused it: what it has now is not somebody else's change.
        if name != BUFFER_POOL
            && let Ok(Some(now)) = variable(session, &name)
            && !same(&now, &value)
        {
            self.note(Entry::Variable { name, old: value, new: now })?;
        }
        done.map(|_| ())
    }

    /// Installs a plugin that is not there yet.
    ///
    /// # Errors
    /// When the server refuses, most often because it has no such file.
    pub fn install(&mut self, session: &mut Session, name: &str, file: &str) -> anyhow::Result<()> {
        self.note(Entry::Plugin { name: name.to_owned() })?;
        session.query(&format!("INSTALL PLUGIN {name} SONAME '{file}'")).map(|_| ())
    }

    /// Creates the database `name` with a marker in it.
    ///
    /// # Errors
    /// When there is a database of that name, whoever created it, and when the server refuses.
    pub fn create_database(&mut self, session: &mut Session, name: &str) -> anyhow::Result<()> {
        is_free(session, name)?;
        let token = session.query("SELECT UUID()")?.first().context("no UUID()")?.to_owned();
        self.note(Entry::Database { name: name.to_owned(), token: token.clone() })?;
        session.run(&[
            format!("CREATE DATABASE {name}"),
            format!("CREATE TABLE {name}.{MARKER} (token CHAR(36) PRIMARY KEY)"),
            format!("INSERT INTO {name}.{MARKER} VALUES ('{token}')"),
        ])
    }

    /// Notes a program that was started and uses the server, so that it can be ended if the lab is killed.
    ///
    /// # Errors
    /// When it cannot be written down.
    pub fn started(&mut self, pid: u32) -> anyhow::Result<()> {
        match start_of(pid) {
            Some(started) => self.note(Entry::Process { pid, started }),
            None => Ok(()),
        }
    }

    /// Changes everything back. A line for each thing that was done goes to `done`.
    ///
    /// # Errors
    /// When something could not be; the journal stays then.
    pub fn undo(&mut self, done: &mut Vec<String>) -> anyhow::Result<()> {
        let Some(journal) = self.journal.take() else { return Ok(()) };
        undo::undo(journal, &self.account, done)
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        let mut done = Vec::new();
        let undone = self.undo(&mut done);
        done.iter().for_each(|line| (self.say)(line));
        if let Err(error) = undone {
            self.unrestored.store(true, Ordering::Relaxed);
            let place = address::place(&self.account);
            (self.say)(&format!(
                "{place} is not as it was: {error:#}; binlogd-lab restore tries again, with the password in {}",
                address::PASSWORD_VARIABLE
            ));
        }
    }
}
