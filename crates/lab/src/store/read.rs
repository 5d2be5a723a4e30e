//! Runs as they are read back.

use super::Store;
use super::summary::Summary;
use crate::model::{Fact, Measured};
use crate::point::{CellKey, Configuration, Panel};
use crate::results::run::{Cell, Run, Skipped};
use anyhow::{Context, bail};
use rusqlite::types::Type;
use rusqlite::{Error, Row, params};
use std::collections::BTreeMap;
use std::str::FromStr;

impl Store {
    /// All runs, oldest first.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn summaries(&self) -> anyhow::Result<Vec<Summary>> {
        let failed = || format!("cannot read {}", self.path.display());
        let mut statement = self
            .connection
            .prepare(
                "SELECT id, study, ordered, command, started, finished,
                        (SELECT count(*) FROM cells WHERE run = runs.id),
                        (SELECT count(*) FROM cells WHERE run = runs.id AND invalid IS NOT NULL),
                        (SELECT count(*) FROM skipped WHERE run = runs.id),
                        imported
                 FROM runs ORDER BY id",
            )
            .with_context(failed)?;
        let rows = statement.query_map([], |row| {
            let head = (row.get(0)?, row.get(1)?, row.get::<_, String>(2)?, row.get(3)?);
            Ok((head, row.get::<_, i64>(4)?, row.get::<_, Option<i64>>(5)?, counts(row)?, row.get(9)?))
        });
        let mut summaries = Vec::new();
        for row in rows.with_context(failed)? {
            let ((id, study, order, command), started, finished, [cells, invalid, skipped], imported) =
                row.with_context(failed)?;
            summaries.push(Summary {
                id,
                study,
                order: serde_json::from_str(&order).with_context(|| format!("the order of run {id}"))?,
                command,
                started: started as u64,
                finished: finished.map(|finished| finished as u64),
                cells,
                invalid,
                skipped,
                imported,
            });
        }
        Ok(summaries)
    }

    /// The newest run of a study that was measured into this file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn newest(&self, study: &str) -> anyhow::Result<Option<Summary>> {
        Ok(self.summaries()?.into_iter().rfind(|run| run.study == study && !run.imported))
    }

    /// A run with everything.
    ///
    /// # Errors
    /// When there is none of that number, and when the file cannot be read.
    pub fn run(&self, id: i64) -> anyhow::Result<Run> {
        let summaries = self.summaries()?;
        let Some(summary) = summaries.into_iter().find(|summary| summary.id == id) else {
            bail!("{} holds no run {id}; `binlogd-lab runs` lists those that it holds", self.path.display());
        };
        let failed = || format!("cannot read run {id} of {}", self.path.display());
        Ok(Run {
            id,
            study: summary.study,
            order: summary.order,
            command: summary.command,
            started: summary.started,
            finished: summary.finished,
            facts: self.facts(id).with_context(failed)?,
            cells: self.cells(id).with_context(failed)?,
            skipped: self.skipped(id).with_context(failed)?,
        })
    }

    /// Seconds since 1970 as date and time of this machine, to the minute.
    ///
    /// # Errors
    /// When SQLite does not know the time zone.
    pub fn local_time(&self, seconds: u64) -> anyhow::Result<String> {
        let sql = "SELECT strftime('%Y-%m-%d %H:%M', ?1, 'unixepoch', 'localtime')";
        Ok(self.connection.query_row(sql, [seconds as i64], |row| row.get(0))?)
    }

    fn facts(&self, run: i64) -> rusqlite::Result<Vec<Fact>> {
        let mut statement =
            self.connection.prepare("SELECT about, name, value FROM facts WHERE run = ?1 ORDER BY id")?;
        let fact = |row: &Row<'_>| Ok(Fact { about: row.get(0)?, name: row.get(1)?, value: row.get(2)? });
        statement.query_map([run], fact)?.collect()
    }

    fn skipped(&self, run: i64) -> rusqlite::Result<Vec<Skipped>> {
        let mut statement =
            self.connection.prepare("SELECT scene, reason FROM skipped WHERE run = ?1 ORDER BY id")?;
        let skipped = |row: &Row<'_>| Ok(Skipped { scene: row.get(0)?, reason: row.get(1)? });
        statement.query_map([run], skipped)?.collect()
    }

    fn cells(&self, run: i64) -> rusqlite::Result<Vec<Cell>> {
        let mut statement = self.connection.prepare(
            "SELECT id, server, condition, configuration, threads, round, started, took, invalid
             FROM cells WHERE run = ?1 ORDER BY id",
        )?;
        let cell = |row: &Row<'_>| {
            let panel = Panel { server: row.get(1)?, condition: named(row, 2)? };
            let point = panel.point(named::<Configuration>(row, 3)?, row.get(4)?);
            let key = CellKey { point, round: row.get(5)? };
            let (started, took): (i64, f64) = (row.get(6)?, row.get(7)?);
            let measured = Measured { invalid: row.get(8)?, ..Measured::default() };
            Ok((row.get::<_, i64>(0)?, Cell { key, started: started as u64, took, measured }))
        };
        let mut cells = statement.query_map([run], cell)?.collect::<rusqlite::Result<Vec<_>>>()?;
        for (id, cell) in &mut cells {
            cell.measured.values = self.values(*id)?;
            cell.measured.series = self.series(*id)?;
        }
        Ok(cells.into_iter().map(|(_, cell)| cell).collect())
    }

    fn values(&self, cell: i64) -> rusqlite::Result<BTreeMap<String, f64>> {
        self.connection
            .prepare_cached("SELECT name, value FROM cell_values WHERE cell = ?1")?
            .query_map([cell], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect()
    }

    fn series(&self, cell: i64) -> rusqlite::Result<BTreeMap<String, Vec<f64>>> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT name, value FROM cell_series WHERE cell = ?1 ORDER BY name, second")?;
        let mut series: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for row in statement.query_map(params![cell], |row| Ok((row.get(0)?, row.get(1)?)))? {
            let (name, value) = row?;
            series.entry(name).or_default().push(value);
        }
        Ok(series)
    }
}

/// What the file has the name of: the one place where such names are read.
fn named<T: FromStr<Err = anyhow::Error>>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let parsed = row.get_ref(column)?.as_str()?.parse();
    parsed.map_err(|error: anyhow::Error| Error::FromSqlConversionFailure(column, Type::Text, error.into()))
}

fn counts(row: &Row<'_>) -> rusqlite::Result<[u64; 3]> {
    let count = |index| row.get::<_, i64>(index).map(|count| count as u64);
    Ok([count(6)?, count(7)?, count(8)?])
}
