//! What the file of results consists of, and whether a file is one.

use super::lock::MeasuringLock;
use anyhow::{Context, bail};
use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use std::path::Path;

/// Written into the file's head, so that a file of another program is known; "blab" in ASCII.
const APPLICATION: i32 = 0x626c_6162;

/// Counts up with every change of the tables, and of names in them.
const VERSION: i32 = 4;

/// From version 1 to 2: one name for one setting and one number, with its unit; and what virtual-replica did before it
/// could be asked for. The JSON has the names of settings in quotes, and no value can hold such a quote.
const FROM_1_TO_2: &str = r#"
UPDATE runs SET ordered = replace(replace(replace(ordered, '"pool_mb":', '"buffer_pool_mib":'),
    '"redo_mb":', '"redo_log_mib":'), '"rotation_kb":', '"rotation_kib":');
UPDATE runs SET ordered = json_set(ordered, '$.settings.workload', 'oltp_read_write', '$.settings.yardsticks', 'none')
    WHERE study = 'virtual-replica';
UPDATE cell_values SET name = 'source_wait_us' WHERE name = 'wait_us'
    AND cell IN (SELECT cells.id FROM cells JOIN runs ON runs.id = cells.run WHERE study = 'semi-sync-cost');
PRAGMA user_version = 2;
"#;

/// From version 2 to 3: what virtual-replica did before `tls` could be asked for, so that its runs go on and stand beside
/// newer ones.
const FROM_2_TO_3: &str = "
UPDATE runs SET ordered = json_set(ordered, '$.settings.tls', 'none') WHERE study = 'virtual-replica';
PRAGMA user_version = 3;
";

/// From version 3 to 4: whether a run was measured elsewhere. Nobody can tell of one that was imported before.
const FROM_3_TO_4: &str = "
ALTER TABLE runs ADD COLUMN imported INTEGER NOT NULL DEFAULT 0;
PRAGMA user_version = 4;
";

const TABLES: &str = "
CREATE TABLE runs (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    study    TEXT NOT NULL,
    ordered  TEXT NOT NULL,    -- what was asked for: JSON, passwords removed
    command  TEXT NOT NULL,
    started  INTEGER NOT NULL, -- seconds since 1970
    finished INTEGER,
    imported INTEGER NOT NULL DEFAULT 0 -- 1: measured elsewhere
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
        .transaction_with_behavior(TransactionBehavior::Immediate)
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
        1..=VERSION => Ok(()),
        newer if newer > VERSION => bail!(
            "{} was written by a newer binlogd-lab (version {newer} of its tables, this one knows {VERSION}): \
             use that one, or name another file with --db",
            path.display()
        ),
        other => bail!("{} is damaged: version {other} of its tables was never used", path.display()),
    }
}

/// Renames in a file of an older lab what has another name now. The lock says that nobody measures into it.
///
/// # Errors
/// When the file cannot be written, or an older lab measures into it now; it stays as it was then.
pub(super) fn upgrade(connection: &mut Connection, path: &Path) -> anyhow::Result<()> {
    if number(connection, "user_version")? == VERSION {
        return Ok(());
    }
    let failed = || {
        format!("{} is of an older binlogd-lab, and cannot be brought to this one's names", path.display())
    };
    let _lock = MeasuringLock::take(path).with_context(failed)?;
    let upgraded =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|transaction| {
            // Another process may have done it meanwhile.
            if number(&transaction, "user_version")? == 1 {
                transaction.execute_batch(FROM_1_TO_2)?;
            }
            if number(&transaction, "user_version")? == 2 {
                transaction.execute_batch(FROM_2_TO_3)?;
            }
            if number(&transaction, "user_version")? == 3 {
                transaction.execute_batch(FROM_3_TO_4)?;
            }
            transaction.commit()
        });
    upgraded.with_context(failed)
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
