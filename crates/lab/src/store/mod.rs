//! The results: one SQLite file that keeps every run with its cells and what it was measured on.
//!
//! A cell is on disk before the next begins. Reading is possible at any time; only one process measures into a file.

mod lock;
mod read;
mod schema;
mod summary;

pub use self::lock::MeasuringLock;
pub use self::summary::Summary;

use crate::model::{Fact, Order, ServerChoice};
use crate::results::run::{Cell, Run, Skipped};
use anyhow::{Context, bail};
use rusqlite::{Connection, OpenFlags, Transaction, params};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A commit of another process takes no longer than this.
const BUSY_MAX: Duration = Duration::from_secs(20);

/// A file of results.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

impl Store {
    /// Opens the file, which is made when there is none, with the folder that it is in.
    ///
    /// # Errors
    /// When it is no file of results, one of a newer lab, or cannot be written.
    pub fn open_or_create(path: &Path) -> anyhow::Result<Store> {
        if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            std::fs::create_dir_all(dir)
                .with_context(|| format!("cannot make the folder {}", dir.display()))?;
        }
        let mut store = Store::connect(path, OpenFlags::SQLITE_OPEN_CREATE)?;
        schema::make_or_check(&mut store.connection, path)?;
        schema::upgrade(&mut store.connection, path)?;
        Ok(store)
    }

    /// Opens a file that is there.
    ///
    /// # Errors
    /// When there is none, it is no file of results, or one of a newer lab.
    pub fn open(path: &Path) -> anyhow::Result<Store> {
        if !path.exists() {
            bail!(
                "{} is not there: nothing was measured into it yet (`binlogd-lab run`), or name another with --db",
                path.display()
            );
        }
        // Not read-only: what a killed process left half written is rolled back by who opens it next.
        let mut store = Store::connect(path, OpenFlags::empty())?;
        schema::check(&store.connection, path)?;
        schema::upgrade(&mut store.connection, path)?;
        Ok(store)
    }

    fn connect(path: &Path, more: OpenFlags) -> anyhow::Result<Store> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
        let opened = Connection::open_with_flags(path, flags).and_then(|connection| {
            connection.busy_timeout(BUSY_MAX)?;
            connection.pragma_update(None, "foreign_keys", true)?;
            Ok(connection)
        });
        let connection = opened.with_context(|| format!("cannot open {}", path.display()))?;
        Ok(Store { connection, path: path.to_owned() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The right to measure into this file, held until it is dropped or the process ends.
    ///
    /// # Errors
    /// When another process has it.
    pub fn lock(&self) -> anyhow::Result<MeasuringLock> {
        MeasuringLock::take(&self.path)
    }

    /// Begins a run, and gives its number.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn begin(&mut self, study: &str, order: &Order, command: &str) -> anyhow::Result<i64> {
        let order = serde_json::to_string(&without_passwords(order))?;
        self.write(|transaction| {
            transaction.execute(
                "INSERT INTO runs (study, ordered, command, started) VALUES (?1, ?2, ?3, ?4)",
                params![study, order, command, now() as i64],
            )?;
            Ok(transaction.last_insert_rowid())
        })
    }

    /// The number here of a run that may be held already, whether it was measured here or taken in.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn number_of(&self, run: &Run) -> anyhow::Result<Option<i64>> {
        let is_held = |held: &Summary| {
            (&held.study, held.started, &held.command) == (&run.study, run.started, &run.command)
        };
        Ok(self.summaries()?.into_iter().find(is_held).map(|held| held.id))
    }

    /// Keeps a run that was measured elsewhere, whole or not at all, and gives its number here.
    ///
    /// # Errors
    /// When the file cannot be written, or holds that run already.
    pub fn keep_run(&mut self, run: &Run) -> anyhow::Result<i64> {
        if let Some(id) = self.number_of(run)? {
            bail!("{} holds that run of {} already, as run {id}", self.path.display(), run.study);
        }
        let order = serde_json::to_string(&without_passwords(&run.order))?;
        self.write(|transaction| {
            transaction.execute(
                "INSERT INTO runs (study, ordered, command, started, finished, imported) VALUES (?1, ?2, ?3, ?4, ?5, 1)",
                params![
                    run.study,
                    order,
                    run.command,
                    run.started as i64,
                    run.finished.map(|time| time as i64)
                ],
            )?;
            let id = transaction.last_insert_rowid();
            run.facts.iter().try_for_each(|fact| insert_fact(transaction, id, fact))?;
            run.cells.iter().try_for_each(|cell| insert_cell(transaction, id, cell))?;
            for Skipped { scene, reason } in &run.skipped {
                insert_skipped(transaction, id, scene, reason)?;
            }
            Ok(id)
        })
    }

    /// Notes that everything of the run was measured or skipped.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(&mut self, run: i64) -> anyhow::Result<()> {
        self.write(|transaction| {
            transaction
                .execute("UPDATE runs SET finished = ?2 WHERE id = ?1", params![run, now() as i64])
                .map(|_| ())
        })
    }

    /// Keeps facts; those that are known with the same value are not repeated.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn keep_facts(&mut self, run: i64, facts: &[Fact]) -> anyhow::Result<()> {
        self.write(|transaction| facts.iter().try_for_each(|fact| insert_fact(transaction, run, fact)))
    }

    /// Keeps a cell, durable when this returns.
    ///
    /// # Errors
    /// When the file cannot be written, holds the cell already, or a number is not finite.
    pub fn keep_cell(&mut self, run: i64, cell: &Cell) -> anyhow::Result<()> {
        let kept = self.write(|transaction| insert_cell(transaction, run, cell));
        kept.with_context(|| format!("cannot keep the cell {:?}", cell.key))
    }

    /// Notes that a scene cannot be measured here.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn keep_skipped(&mut self, run: i64, scene: &str, reason: &str) -> anyhow::Result<()> {
        self.write(|transaction| insert_skipped(transaction, run, scene, reason))
    }

    /// Forgets that a scene was skipped: it can be measured now.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn forget_skipped(&mut self, run: i64, scene: &str) -> anyhow::Result<()> {
        self.write(|transaction| {
            transaction
                .execute("DELETE FROM skipped WHERE run = ?1 AND scene = ?2", params![run, scene])
                .map(|_| ())
        })
    }

    fn write<T>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> anyhow::Result<T> {
        let path = &self.path;
        let written = self.connection.transaction().and_then(|transaction| {
            let value = change(&transaction)?;
            transaction.commit()?;
            Ok(value)
        });
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

fn insert_fact(transaction: &Transaction<'_>, run: i64, fact: &Fact) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("INSERT OR IGNORE INTO facts (run, about, name, value) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![run, fact.about, fact.name, fact.value])
        .map(|_| ())
}

fn insert_skipped(
    transaction: &Transaction<'_>,
    run: i64,
    scene: &str,
    reason: &str,
) -> rusqlite::Result<()> {
    transaction
        .execute(
            "INSERT INTO skipped (run, scene, reason) VALUES (?1, ?2, ?3)
             ON CONFLICT (run, scene) DO UPDATE SET reason = excluded.reason",
            params![run, scene, reason],
        )
        .map(|_| ())
}

fn insert_cell(transaction: &Transaction<'_>, run: i64, cell: &Cell) -> rusqlite::Result<()> {
    let (key, measured) = (&cell.key, &cell.measured);
    transaction.execute(
        "INSERT INTO cells (run, server, condition, configuration, threads, round, started, took, invalid)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            run,
            key.point.panel.server,
            key.point.panel.condition.to_string(),
            key.point.configuration.to_string(),
            key.point.threads,
            key.round,
            cell.started as i64,
            cell.took,
            measured.invalid,
        ],
    )?;
    let id = transaction.last_insert_rowid();
    for (name, value) in &measured.values {
        transaction
            .prepare_cached("INSERT INTO cell_values (cell, name, value) VALUES (?1, ?2, ?3)")?
            .execute(params![id, name, value])?;
    }
    for (name, series) in &measured.series {
        for (second, value) in series.iter().enumerate() {
            transaction
                .prepare_cached(
                    "INSERT INTO cell_series (cell, name, second, value) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![id, name, second as i64, value])?;
        }
    }
    Ok(())
}

/// The order as it is kept: what a URL says of a password is left out.
pub fn without_passwords(order: &Order) -> Order {
    let hidden = |server: &ServerChoice| match server {
        ServerChoice::Own(name) => ServerChoice::Own(name.clone()),
        ServerChoice::Url(_) => ServerChoice::Url(server.to_string()),
    };
    Order { servers: order.servers.iter().map(hidden).collect(), ..order.clone() }
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
