//! What a transaction says of one table, whatever is made of its rows.

use crate::definition::{Effect, effect};
use crate::seen::{At, Note, Seen};
use points::effects::Effects;
use points::statement::{Control, control, first_words};
use points::table::TableName;
use points::transaction::{Kind, Transaction};
use repair::detail::{Known, Part, Place as LogPlace, each_part};
use repair::searched::FoundAt;
use std::rc::Rc;

/// So much of a statement is told, in characters.
const STATEMENT_CHARS_MAX: usize = 200;

/// What finds definitions, statements in the place of rows, and ends of XA transactions, whatever table they are about.
pub(crate) fn besides() -> Effects {
    Effects::DDL | Effects::STATEMENT | Effects::XA_COMMIT | Effects::XA_ROLLBACK
}

/// A transaction with what it has said so far.
pub(crate) struct Saying<'t, R> {
    pub(crate) at: Rc<At>,
    transaction: &'t Transaction,
    table: &'t TableName,
    /// It may change the table.
    is_meant: bool,
    pub(crate) statement: Option<Rc<str>>,
    savepoints: Vec<(Vec<u8>, usize)>,
    pub(crate) all: Vec<Seen<R>>,
    /// In which part of the transaction each of these stands.
    parts: Vec<usize>,
    elsewhere: u64,
}

/// What is made of a part beside what [`said`] makes of it: of a row of the table, first of all.
pub(crate) type Take<'k, R> = dyn FnMut(&mut Saying<'_, R>, &Part<'_>) + 'k;

/// All that a transaction says of a table, each with the number of the part in which it stands; and how many statements of other tables
/// stand in it in the place of rows.
pub(crate) fn said<R>(
    (found, transaction): (FoundAt<'_>, &Transaction),
    known: &mut Known,
    table: &TableName,
    take: &mut Take<'_, R>,
) -> (Vec<(usize, Seen<R>)>, u64) {
    let is_known = transaction.unread.is_none() && !transaction.has_more_tables;
    let is_own = |name: &TableName| name == table;
    let mut saying = Saying {
        at: Rc::new(At::of(found, transaction)),
        transaction,
        table,
        is_meant: !is_known || transaction.tables.iter().any(|change| is_own(&change.name)),
        statement: None,
        savepoints: Vec::new(),
        all: Vec::new(),
        parts: Vec::new(),
        elsewhere: 0,
    };
    if transaction.is_incident {
        saying.unseen("the source says that something is missing here (INCIDENT)");
    }
    if let Some(why) = &transaction.unread {
        saying.unseen(&format!("a part of a transaction cannot be looked at: {why}"));
    }
    if transaction.kind() == Kind::AlterHalf {
        return saying.placed();
    }
    if let Some(xid) = &transaction.xid {
        let is_commit = transaction.kind() == Kind::XaCommit;
        if is_commit || transaction.kind() == Kind::XaRollback {
            saying.all.push(Seen::Ended { xid: xid.to_lowercase(), is_commit });
            return saying.placed();
        }
    }
    let place = LogPlace::of(&found.timeline.name, &found.searched.name, transaction.at);
    known.is_at(&found.source.name, place, transaction.committed.micros.div_euclid(1_000_000));
    let mut number = 0;
    let read = each_part(found.file, transaction, known, &mut |part| {
        number += 1;
        saying.take(&part);
        take(&mut saying, &part);
        // What was rolled back goes, too.
        saying.parts.resize(saying.all.len(), number);
    });
    if let Err(error) = read {
        saying.unseen(&format!("a transaction cannot be read: {error}"));
    }
    saying.placed()
}

impl<R> Saying<'_, R> {
    /// What it has said, and in which part; what is about the whole of it comes last.
    fn placed(mut self) -> (Vec<(usize, Seen<R>)>, u64) {
        let last = self.parts.last().map_or(0, |last| last + 1);
        self.parts.resize(self.all.len(), last);
        (self.parts.into_iter().zip(self.all).collect(), self.elsewhere)
    }

    /// As [`prepared`], of its transaction.
    pub(crate) fn prepared(&self) -> Option<String> {
        prepared(self.transaction)
    }

    fn note(&self, words: &str) -> Note {
        Note { at: self.at.clone(), words: words.to_owned() }
    }

    pub(crate) fn unseen(&mut self, words: &str) {
        let note = self.note(words);
        self.all.push(Seen::Unseen(note));
    }

    fn take(&mut self, part: &Part<'_>) {
        match part {
            Part::Statement { is_for_people: true, text, .. } => self.statement = Some(text.as_str().into()),
            Part::Statement { schema, text, raw, .. } => self.statement(schema, raw, &shown(text)),
            Part::Unknown(what) if self.is_meant => self.unseen(what),
            Part::Unknown(_) | Part::Row { .. } => {}
        }
    }

    /// `text` is all of it, `shown` what may be told of it.
    fn statement(&mut self, schema: &str, text: &str, shown: &str) {
        match control(text.as_bytes()) {
            Some(Control::Mark) => return,
            Some(Control::Savepoint(name)) => {
                self.savepoints.retain(|(other, _)| *other != name);
                self.savepoints.push((name, self.all.len()));
                return;
            }
            // As in `repair::undo`: what MariaDB leaves of a part that was rolled back.
            Some(Control::BackTo(name)) => {
                match self.savepoints.iter().position(|(other, _)| *other == name) {
                    Some(at) => drop(self.all.split_off(self.savepoints[at].1)),
                    None => self.unseen("it is rolled back to a savepoint that the log does not have"),
                }
                return;
            }
            Some(Control::Back) => {
                if self.all.iter().any(|seen| matches!(seen, Seen::Row(_))) {
                    self.unseen("a transaction ends with ROLLBACK: what it did to tables with transactions did not stay");
                }
                return;
            }
            None => {}
        }
        let note = self.note(shown);
        self.all.extend(match effect(text, schema, self.table) {
            Effect::Nothing => None,
            Effect::Emptied => Some(Seen::Emptied(note)),
            Effect::Moved { from, to } => Some(Seen::Moved { from, to, note }),
            Effect::Altered => Some(Seen::Altered(note)),
            Effect::Unseen => Some(Seen::Unseen(note)),
            Effect::NoDefinition
                if first_words(text.as_bytes(), 1).first().is_some_and(|verb| verb == "XA") =>
            {
                None
            }
            // Of a join, a trigger or a function only the statement's own table is known.
            Effect::NoDefinition => {
                let is_own = self.is_meant
                    || self.transaction.tables.is_empty()
                    || text.to_lowercase().contains(&self.table.table.to_lowercase());
                self.elsewhere += u64::from(!is_own);
                is_own.then(|| {
                    Seen::Unseen(
                        self.note(&format!(
                            "a statement stands in the log in the place of its rows: {shown}"
                        )),
                    )
                })
            }
        });
    }
}

/// The XA transaction of which a transaction is the first half.
pub(crate) fn prepared(transaction: &Transaction) -> Option<String> {
    let is_prepared = transaction.kind() == Kind::XaPrepare;
    transaction.xid.as_ref().filter(|_| is_prepared).map(|xid| xid.to_lowercase())
}

/// The beginning of a statement, on one line.
pub(crate) fn shown(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(STATEMENT_CHARS_MAX).collect()
}
