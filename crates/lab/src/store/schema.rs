//! What the file of results consists of, and whether a file is one.

use anyhow::{Context, bail};
use rusqlite::{Connection, ErrorCode};
use std::path::Path;

/// Written into the file's head, so that a file of another program is known; "blab" in ASCII.
const APPLICATION: i32 = 0x626c_6162;

/// Counts up with every change of the tables.
const VERSION: i32 = 1;

const TABLES: &str = "
CREATE TABLE runs (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    study    TEXT NOT NULL,
    ordered  TEXT NOT NULL,    -- what was asked for: JSON, passwords removed
    command  TEXT NOT NULL,
    started  INTEGER NOT NULL, -- seconds since 1970
    finished INTEGER
);
CREATE TABLE cells (
    id            INTEGER PRIMARY KEY,
    run           INTEGER NOT NULL REFERENCES runs (id),
    server        TEXT NOT NULL,
    condition     TEXT NOT NULL,
    configuration TEXT NOT NULL,
    threads       INTEGER NOT NULL,
    round         INTEGER NOT NULL,
    started       INTEGER NOT NULL, -- seconds since 1970
    took          REAL NOT NULL,    -- seconds
    invalid       TEXT,             -- why it does not count
    UNIQUE (run, server, condition, configuration, threads, round)
);
CREATE TABLE cell_values (
    cell  INTEGER NOT NULL REFERENCES cells (id),
    name  TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (cell, name)
) WITHOUT ROWID;
CREATE TABLE cell_series (
    cell   INTEGER NOT NULL REFERENCES cells (id),
    name   TEXT NOT NULL,
    second INTEGER NOT NULL, -- of the load, from 0
    value  REAL NOT NULL,
    PRIMARY KEY (cell, name, second)
) WITHOUT ROWID;
CREATE TABLE facts (
    id    INTEGER PRIMARY KEY,
    run   INTEGER NOT NULL REFERENCES runs (id),
    about TEXT NOT NULL,
    name  TEXT NOT NULL,
    value TEXT NOT NULL,
    UNIQUE (run, about, name, value)
);
CREATE TABLE skipped (
    id     INTEGER PRIMARY KEY,
    run    INTEGER NOT NULL REFERENCES runs (id),
    scene  TEXT NOT NULL,
    reason TEXT NOT NULL,
    UNIQUE (run, scene)
);
";

/// Makes the tables in a file that is empty, and leaves alone those of a file of results.
///
/// # Errors
/// When the file is no file of results, or one of a newer lab.
pub(super) fn make_or_check(connection: &mut Connection, path: &Path) -> anyhow::Result<()> {
    let transaction = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(|error| readable(error, path))?;
    let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 && number(&transaction, "application_id")? == 0 {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit().with_context(|| format!("cannot write {}", path.display()))?;
    check(connection, path)
}

/// # Errors
/// When the file is no file of results, or one of a newer lab.
pub(super) fn check(connection: &Connection, path: &Path) -> anyhow::Result<()> {
    let application = number(connection, "application_id").map_err(|error| readable(error, path))?;
    if application != APPLICATION {
        bail!("{} holds other data, not results of binlogd-lab: name another file with --db", path.display());
    }
    match number(connection, "user_version")? {
        VERSION => Ok(()),
        newer if newer > VERSION => bail!(
            "{} was written by a newer binlogd-lab (version {newer} of its tables, this one knows {VERSION}): \
             use that one, or name another file with --db",
            path.display()
        ),
        other => bail!("{} is damaged: version {other} of its tables was never used", path.display()),
    }
}

fn number(connection: &Connection, pragma: &str) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}

fn readable(error: rusqlite::Error, path: &Path) -> anyhow::Error {
    let what = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => {
            format!("{} is no SQLite file: name another with --db", path.display())
        }
        _ => format!("cannot read {}", path.display()),
    };
    anyhow::Error::new(error).context(what)
}
