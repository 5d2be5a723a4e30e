//! `binlogd-lab runs`.

use super::list::{columns, name};
use crate::progress::clock;
use crate::store::{Store, Summary};
use std::path::Path;
use std::time::Duration;

/// Prints what the file of results holds.
pub(super) fn print(db: &Path) -> anyhow::Result<()> {
    let store = Store::open(db)?;
    let heads = ["run", "study", "profile", "begun", "state", "cells", "invalid", "skipped", "command"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for run in store.summaries()? {
        rows.push(row(&store, &run)?);
    }
    print!("{}", columns(&rows));
    Ok(())
}

fn row(store: &Store, run: &Summary) -> anyhow::Result<Vec<String>> {
    let took = |finished: u64| clock(Duration::from_secs(finished.saturating_sub(run.started)));
    let mut state =
        run.finished.map_or("not finished".to_owned(), |finished| format!("took {}", took(finished)));
    if run.imported {
        state += ", imported";
    }
    Ok(vec![
        run.id.to_string(),
        run.study.clone(),
        name(run.order.profile),
        store.local_time(run.started)?,
        state,
        run.cells.to_string(),
        run.invalid.to_string(),
        run.skipped.to_string(),
        run.command.clone(),
    ])
}
