//! A transaction in one line, for errors and plans.

use super::copied::CopiedFile;
use codec::gtid::TransactionId;
use points::transaction::{CommitTime, Transaction};
use std::fmt;

/// So many of several transactions that a point may mean are told.
pub const CHOICES_MAX: usize = 10;

/// A longer statement is cut where it is shown, in characters.
const STATEMENT_SHOWN_MAX: usize = 120;

/// So many tables are named where a transaction is shown.
const TABLES_SHOWN_MAX: usize = 4;

/// A transaction, as a person is shown it.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Its identifier; `None` for an anonymous one.
    pub id: Option<TransactionId>,
    /// When it was committed.
    pub committed: CommitTime,
    /// Name of its timeline's folder.
    pub timeline: String,
    /// The file in it.
    pub file: String,
    /// Where it begins.
    pub at: u64,
    /// Its bytes.
    pub size: u64,
    /// What it does, in words.
    pub what: String,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = jiff::Timestamp::from_microsecond(self.committed.micros).unwrap_or_default();
        match self.id {
            Some(id) => write!(f, "{id}, ")?,
            None => f.write_str("without a GTID, ")?,
        }
        if self.committed.is_exact {
            write!(f, "{time:.6}")?;
        } else {
            write!(f, "{time:.0}")?;
        }
        write!(f, ", {}:{} of {}, {} bytes: {}", self.file, self.at, self.timeline, self.size, self.what)
    }
}

impl Shown {
    /// As it stands in that file.
    pub fn of(file: &CopiedFile, transaction: &Transaction) -> Shown {
        Shown {
            id: transaction.id,
            committed: transaction.committed,
            timeline: file.timeline.clone(),
            file: file.name.to_string(),
            at: transaction.at,
            size: transaction.size(),
            what: what(transaction),
        }
    }
}

/// What a transaction does, in a line.
fn what(transaction: &Transaction) -> String {
    let of_people = |statement: &&points::statement::Statement| !statement.is_for_people;
    if transaction.tables.iter().all(|change| change.rows.total() == 0)
        && let Some(statement) = transaction.statements.iter().find(of_people)
    {
        let text: String = statement.shown().split_whitespace().collect::<Vec<_>>().join(" ");
        return match text.char_indices().nth(STATEMENT_SHOWN_MAX) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        };
    }
    let one = |change: &points::transaction::TableChange| {
        let rows = change.rows;
        let counted = [(rows.written, "inserted"), (rows.updated, "updated"), (rows.deleted, "deleted")];
        let counted: Vec<String> = counted
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        format!("{} {}", change.name, counted.join(", "))
    };
    let mut all: Vec<String> = transaction.tables.iter().take(TABLES_SHOWN_MAX).map(one).collect();
    if transaction.tables.len() > TABLES_SHOWN_MAX || transaction.has_more_tables {
        all.push("…".to_owned());
    }
    if all.is_empty() { transaction.kind().name().to_owned() } else { all.join("; ") }
}

/// A set of GTIDs may be long.
pub fn shortened(set: &str) -> String {
    const CHARACTERS: usize = 200;
    match set.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}…", &set[..end]),
        None => set.to_owned(),
    }
}
