//! What transactions say of one row.

use crate::key::{Key, Matched, matched};
use crate::line::{FileAt, Line};
use crate::saying::{Saying, besides, said};
use crate::seen::{Change, Seen, columns, image};
use codec::rows::Row;
use points::criteria::Criteria;
use points::glob::TableGlob;
use points::table::TableName;
use points::transaction::Transaction;
use repair::detail::{Known, KnownTable, Part};
use repair::searched::FoundAt;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

/// So many of one file are held at a time.
const HELD_MAX: usize = 4096;

/// So many keys are told that a collation may take for the one that is asked for.
const NEAR_MAX: usize = 10;

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
        Ok(Criteria { tables: vec![glob(&self.table)?], besides: besides(), ..Criteria::default() })
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
        let Reader { known, table, key, near, .. } = self;
        let (all, elsewhere) = said((found, transaction), known, table, &mut |saying, part| {
            let Part::Row { table: of, row, .. } = part else { return };
            if of.table.schema == table.schema && of.table.name == table.table {
                take(saying, (of, row), key, near);
            }
        });
        self.elsewhere += elsewhere;
        all
    }
}

/// The pattern of a table, its name part for part: a pattern has no other way to name a point or a backtick.
pub(crate) fn glob(table: &TableName) -> Result<TableGlob, String> {
    let plain = |name: &str| name.replace(['.', '`', '*'], "?");
    TableGlob::parse(&format!("{}.{}", plain(&table.schema), plain(&table.table)))
        .map_err(|error| error.to_string())
}

/// What a row of the table is for the row that is asked for.
fn take(
    saying: &mut Saying<'_, Box<Change>>,
    (table, row): (&Rc<KnownTable>, &Row<'_>),
    key: &Key,
    near: &mut BTreeSet<String>,
) {
    let wanted = match key.of_table(table) {
        Ok(wanted) => wanted,
        Err(why) => {
            let why = table.note.as_ref().map_or(why.clone(), |note| format!("{why}; {note}"));
            if !saying.all.iter().any(|seen| matches!(seen, Seen::Unseen(note) if note.words == why)) {
                saying.unseen(&why);
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
                saying.unseen(&format!(
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
    let xid = saying.prepared();
    saying.all.push(Seen::Row(Box::new(Change {
        at: saying.at.clone(),
        table: table.name(),
        statement: saying.statement.clone(),
        columns: columns(table, &wanted),
        before: row.before.as_ref().map(|side| image(own_columns, side)),
        after: row.after.as_ref().map(|side| image(own_columns, side)),
        had_key,
        has_key,
        other_key: other,
        xid,
    })));
}
