//! What transactions say of one row.

use crate::definition::{Effect, effect};
use crate::key::{Key, Matched, matched};
use crate::line::{FileAt, Line};
use crate::seen::{At, Change, Note, Seen, columns, image};
use codec::rows::Row;
use points::criteria::Criteria;
use points::effects::Effects;
use points::glob::TableGlob;
use points::statement::{Control, control, first_words};
use points::table::TableName;
use points::transaction::{Kind, Transaction};
use repair::detail::{Known, KnownTable, Part, Place as LogPlace, each_part};
use repair::searched::FoundAt;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

/// So many of one file are held at a time.
const HELD_MAX: usize = 4096;

/// So many keys are told that a collation may take for the one that is asked for.
const NEAR_MAX: usize = 10;

/// So much of a statement is told, in characters.
const STATEMENT_CHARS_MAX: usize = 200;

/// What finds definitions, statements in the place of rows, and ends of XA transactions, whatever table they are about.
fn besides() -> Effects {
    Effects::DDL | Effects::STATEMENT | Effects::XA_COMMIT | Effects::XA_ROLLBACK
}

/// A place within a file: a transaction, and the number of the part of it, whatever row that is about: a row may get another key in it.
pub(crate) type Within = (u64, usize);

/// What a file says, in order.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) seen: VecDeque<(Within, Seen)>,
    /// There is more before the first.
    pub(crate) is_cut: bool,
}

/// See [the module](self).
pub(crate) struct Reader<'a> {
    pub(crate) line: &'a Line<'a>,
    known: &'a mut Known,
    pub(crate) table: TableName,
    pub(crate) key: Key,
    /// Rows whose keys a collation may take for this one.
    pub(crate) near: BTreeSet<String>,
    /// Statements of other tables that stand in the place of rows.
    pub(crate) elsewhere: u64,
}

/// What a transaction has said so far.
struct Saying<'t> {
    at: Rc<At>,
    transaction: &'t Transaction,
    /// It may change the table.
    is_meant: bool,
    statement: Option<Rc<str>>,
    savepoints: Vec<(Vec<u8>, usize)>,
    all: Vec<Seen>,
    /// In which part of the transaction each of these stands.
    parts: Vec<usize>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(line: &'a Line<'a>, known: &'a mut Known, table: &TableName, key: &Key) -> Reader<'a> {
        let (table, key) = (table.clone(), key.clone());
        Reader { line, known, table, key, near: BTreeSet::new(), elsewhere: 0 }
    }

    /// The same for the name and the key that a row has elsewhere.
    pub(crate) fn for_row(&mut self, table: &TableName, key: &Key) -> Reader<'_> {
        Reader::new(self.line, self.known, table, key)
    }

    fn criteria(&self) -> Result<Criteria, String> {
        // Its name part for part: a pattern has no other way to name a point or a backtick.
        let plain = |name: &str| name.replace(['.', '`', '*'], "?");
        let glob = format!("{}.{}", plain(&self.table.schema), plain(&self.table.table));
        let tables = vec![TableGlob::parse(&glob).map_err(|error| error.to_string())?];
        Ok(Criteria { tables, besides: besides(), ..Criteria::default() })
    }

    /// What a file says from one place on and before another: the last of it, as much as is held at a time; or, with `only_first`, up to
    /// the first transaction that decides something.
    pub(crate) fn read(
        &mut self,
        file: FileAt,
        (from, until): (Within, Within),
        only_first: bool,
    ) -> Result<Batch, String> {
        let (line, criteria, mut batch) = (self.line, self.criteria()?, Batch::default());
        line.each(file, &criteria, &mut |found, transaction| {
            if transaction.at >= until.0 && until.1 == 0 || transaction.at > until.0 {
                return false;
            }
            if transaction.at < from.0 {
                return true;
            }
            for (part, seen) in self.transaction(found, transaction) {
                let at = (transaction.at, part);
                if at >= from && at < until {
                    batch.seen.push_back((at, seen));
                }
                if batch.seen.len() > HELD_MAX {
                    batch.seen.pop_front();
                    batch.is_cut = true;
                }
            }
            let decides = |seen: &Seen| !matches!(seen, Seen::Altered(_) | Seen::Ended { .. });
            !(only_first && batch.seen.iter().any(|(_, seen)| decides(seen)))
        })?;
        Ok(batch)
    }

    fn transaction(&mut self, found: FoundAt<'_>, transaction: &Transaction) -> Vec<(usize, Seen)> {
        let at = Rc::new(At::of(found, transaction));
        let is_known = transaction.unread.is_none() && !transaction.has_more_tables;
        let is_own = |name: &TableName| *name == self.table;
        let is_meant = !is_known || transaction.tables.iter().any(|change| is_own(&change.name));
        let mut saying = Saying {
            at,
            transaction,
            is_meant,
            statement: None,
            savepoints: Vec::new(),
            all: Vec::new(),
            parts: Vec::new(),
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
        self.known.is_at(&found.source.name, place, transaction.committed.micros.div_euclid(1_000_000));
        let Reader { known, table, key, near, elsewhere, .. } = self;
        let own = Own { table, key };
        let mut number = 0;
        let read = each_part(found.file, transaction, known, &mut |part| {
            number += 1;
            saying.take(&part, &own, near, elsewhere);
            // What was rolled back goes, too.
            saying.parts.resize(saying.all.len(), number);
        });
        if let Err(error) = read {
            saying.unseen(&format!("a transaction cannot be read: {error}"));
        }
        saying.placed()
    }
}

/// What is looked for.
struct Own<'o> {
    table: &'o TableName,
    key: &'o Key,
}

impl Saying<'_> {
    /// What it has said, and in which part; what is about the whole of it comes last.
    fn placed(mut self) -> Vec<(usize, Seen)> {
        let last = self.parts.last().map_or(0, |last| last + 1);
        self.parts.resize(self.all.len(), last);
        self.parts.into_iter().zip(self.all).collect()
    }

    fn note(&self, words: &str) -> Note {
        Note { at: self.at.clone(), words: words.to_owned() }
    }

    fn unseen(&mut self, words: &str) {
        let note = self.note(words);
        self.all.push(Seen::Unseen(note));
    }

    fn take(&mut self, part: &Part<'_>, own: &Own<'_>, near: &mut BTreeSet<String>, elsewhere: &mut u64) {
        match part {
            Part::Statement { is_for_people: true, text, .. } => self.statement = Some(text.as_str().into()),
            Part::Statement { schema, text, .. } => self.statement(schema, text, own, elsewhere),
            Part::Unknown(what) if self.is_meant => self.unseen(what),
            Part::Unknown(_) => {}
            Part::Row { table, row, .. } => {
                if table.table.schema == own.table.schema && table.table.name == own.table.table {
                    self.row(table, row, own, near);
                }
            }
        }
    }

    fn statement(&mut self, schema: &str, text: &str, own: &Own<'_>, elsewhere: &mut u64) {
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
        let shown: String =
            text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(STATEMENT_CHARS_MAX).collect();
        let note = self.note(&shown);
        self.all.extend(match effect(text, schema, own.table) {
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
                    || text.to_lowercase().contains(&own.table.table.to_lowercase());
                *elsewhere += u64::from(!is_own);
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

    fn row(&mut self, table: &Rc<KnownTable>, row: &Row<'_>, own: &Own<'_>, near: &mut BTreeSet<String>) {
        let wanted = match own.key.of_table(table) {
            Ok(wanted) => wanted,
            Err(why) => {
                let why = table.note.as_ref().map_or(why.clone(), |note| format!("{why}; {note}"));
                if !self.all.iter().any(|seen| matches!(seen, Seen::Unseen(note) if note.words == why)) {
                    self.unseen(&why);
                }
                return;
            }
        };
        let own_columns = &table.table.columns;
        let before = row.before.as_ref().map_or(Matched::No, |image| matched(own_columns, image, &wanted));
        // What did not change may be left out behind an update (binlog_row_image).
        let after = row.after.as_ref().map_or(Matched::No, |after| {
            let before = row.before.as_ref();
            let whole = |(at, value): (usize, &Option<_>)| value.clone().or_else(|| before?.get(at)?.clone());
            let keys = after
                .iter()
                .enumerate()
                .map(|pair| if wanted.iter().any(|(at, _)| *at == pair.0) { whole(pair) } else { None });
            matched(own_columns, &keys.collect(), &wanted)
        });
        for (side, image) in [(before, &row.before), (after, &row.after)] {
            match side {
                Matched::Near if near.len() < NEAR_MAX => {
                    let key = image.as_ref().and_then(|image| Key::of_row(own_columns, image, &wanted));
                    near.extend(key.map(|key| key.text()));
                }
                Matched::Lacking => {
                    self.unseen(&format!(
                        "a row of {} stands in the log without its key (binlog_row_image)",
                        table.name()
                    ));
                    return;
                }
                _ => {}
            }
        }
        let (had_key, has_key) = (before == Matched::Yes, after == Matched::Yes);
        if !had_key && !has_key {
            return;
        }
        let other = match (had_key, &row.before, &row.after) {
            (true, _, Some(after)) if !has_key => Key::of_row(own_columns, after, &wanted),
            (false, Some(before), _) => Key::of_row(own_columns, before, &wanted),
            _ => None,
        };
        let is_prepared = self.transaction.kind() == Kind::XaPrepare;
        self.all.push(Seen::Row(Box::new(Change {
            at: self.at.clone(),
            table: table.name(),
            statement: self.statement.clone(),
            columns: columns(table, &wanted),
            before: row.before.as_ref().map(|side| image(own_columns, side)),
            after: row.after.as_ref().map(|side| image(own_columns, side)),
            had_key,
            has_key,
            other_key: other,
            xid: self.transaction.xid.as_ref().filter(|_| is_prepared).map(|xid| xid.to_lowercase()),
        })));
    }
}
