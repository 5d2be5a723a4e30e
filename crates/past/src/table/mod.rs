//! All rows of a small table at a point, of the log alone.
//!
//! ```text
//! backwards from the point: where the table had no row   base.rs
//! forwards from there: what each transaction tells       told.rs, cell.rs
//!   → rows, changed one after another                    rows.rs, alter.rs
//!   → CSV or SQL, in the order of the primary key        written.rs
//! ```
//!
//! It is whole or refused: a change that does not find the row that it was made to, or a value that nobody knows, ends it.

mod alter;
mod base;
mod cell;
mod rows;
mod told;
mod written;

pub use self::cell::To;
use self::rows::{BYTES_MAX, RowChange, Rows, TOO_LARGE};
use self::told::{Definition, Listening, Told};
use crate::cascades::{cascades, has_none};
use crate::definition::{Effect, effect};
use crate::line::{Beside, Line};
use crate::point::cut;
use crate::reader::{Within, glob};
use crate::saying::{besides, prepared, said};
use crate::seen::{At, Note, Seen};
use points::criteria::Criteria;
use points::statement::foreign_keys::Cascade;
use points::table::TableName;
use points::transaction::Transaction;
use repair::detail::Known;
use repair::history::Until;
use repair::searched::FoundAt;
use std::collections::HashMap;
use std::rc::Rc;

/// The table that is asked for.
pub struct TableRequest<'a> {
    /// The log.
    pub line: &'a Line<'a>,
    /// The table, by the name that it has at the point.
    pub table: &'a TableName,
    /// The point.
    pub at: &'a Until,
    /// How its rows are written.
    pub to: To,
}

/// All rows of a table at a point.
#[derive(Debug)]
pub struct Contents {
    /// Its name there.
    pub table: TableName,
    /// Where the log knows that it had no row: all that came behind was followed.
    pub base: Note,
    /// The last transaction before the point that changed it.
    pub last: Rc<At>,
    /// Files that were looked through from the base to the point.
    pub files: u64,
    /// Changes of rows that were followed.
    pub changes: u64,
    /// Why it may be another one.
    pub doubts: Vec<String>,
    to: To,
    rows: Rows,
}

/// Where to go where the log alone does not tell.
fn way_out(table: &TableName) -> String {
    format!("binlogd restore --table {table} --as {table}_restored --until POINT --into mysql://…")
}

/// Finds them. `known` is what the log and a server say of tables.
///
/// # Errors
/// In words: why the log does not tell all of them.
pub fn table(request: &TableRequest<'_>, known: &mut Known) -> Result<Contents, String> {
    let TableRequest { line, table, at, to } = *request;
    let point = cut(line, at)?;
    if let Some(why) = point.doubt {
        return Err(why);
    }
    let base =
        base::find(line, known, table, point.place).map_err(|why| format!("{why}: {}", way_out(table)))?;
    let mut follow = Follow {
        known,
        to,
        name: base.name,
        is_there: false,
        is_defined: false,
        rows: Rows::new(to),
        cascades: Vec::new(),
        is_silent: false,
        pending: HashMap::new(),
        pending_bytes: 0,
        elsewhere: 0,
        changes: 0,
        last: base.note.at.clone(),
    };
    let (mut file, mut from, mut files) = (base.file, base.within, 1);
    loop {
        let until = if file == point.place.file { point.place.at } else { u64::MAX };
        let (mut failed, mut again) = (None, None);
        line.each(file, &follow.criteria()?, &mut |found, transaction| {
            if transaction.at >= until || transaction.at < from.0 {
                return transaction.at < until;
            }
            match follow.transaction((found, transaction), from) {
                Ok(true) => true,
                // Others are to be found from here on.
                Ok(false) => {
                    again = Some((transaction.at + 1, 0));
                    false
                }
                Err(why) => {
                    failed = Some(format!("{why}. {}", way_out(table)));
                    false
                }
            }
        })?;
        if let Some(why) = failed {
            return Err(why);
        }
        if let Some(next) = again {
            from = next;
        } else if file == point.place.file {
            break;
        } else {
            match line.behind(file) {
                Beside::Edge(why) => {
                    return Err(format!("the log between {} and the point is not whole: {why}", base.note));
                }
                Beside::File(next) => (file, from) = (next, (0, 0)),
            }
            files += 1;
        }
    }
    follow.contents(table, base.note, files)
}

/// What is known of the table on the way to the point.
struct Follow<'a> {
    known: &'a mut Known,
    to: To,
    name: TableName,
    is_there: bool,
    /// The log has the statement that made it, and with it its foreign keys.
    is_defined: bool,
    rows: Rows,
    cascades: Vec<Cascade>,
    /// What foreign keys do is not all in the log.
    is_silent: bool,
    /// What XA transactions have done that are not ended.
    pending: HashMap<String, Vec<RowChange>>,
    pending_bytes: usize,
    elsewhere: u64,
    changes: u64,
    last: Rc<At>,
}

impl Follow<'_> {
    fn criteria(&self) -> Result<Criteria, String> {
        let names = std::iter::once(&self.name).chain(self.cascades.iter().map(|one| &one.parent));
        Ok(Criteria {
            tables: names.map(glob).collect::<Result<_, _>>()?,
            besides: besides(),
            ..Criteria::default()
        })
    }

    /// Follows a transaction; false where other tables are to be looked for behind it.
    fn transaction(
        &mut self,
        (found, transaction): (FoundAt<'_>, &Transaction),
        from: Within,
    ) -> Result<bool, String> {
        let (name, cascades) = (self.name.clone(), self.cascades.clone());
        let mut listening = Listening { to: self.to, table: &name, cascades: &cascades, bytes: 0 };
        let prepared = prepared(transaction);
        let (all, elsewhere) = said((found, transaction), self.known, &name, &mut |saying, part| {
            listening.take(saying, part);
        });
        self.elsewhere += elsewhere;
        let at = Rc::new(At::of(found, transaction));
        let all = all.into_iter().filter(|(part, _)| (transaction.at, *part) >= from);
        for (_, seen) in all {
            self.seen(seen, prepared.as_deref(), &at).map_err(|why| format!("{why} ({at})"))?;
        }
        Ok(name == self.name && cascades == self.cascades)
    }

    fn seen(&mut self, seen: Seen<Told>, prepared: Option<&str>, at: &Rc<At>) -> Result<(), String> {
        match seen {
            Seen::Unseen(note) => return Err(note.words),
            // These are read of the definitions themselves.
            Seen::Emptied(_) | Seen::Moved { .. } | Seen::Altered(_) => return Ok(()),
            Seen::Row(Told::Definition(definition)) => {
                self.definition(&definition).map_err(|why| format!("{}: {why}", definition.shown))?;
            }
            Seen::Row(Told::Row(change)) => match prepared {
                None => self.change(change)?,
                Some(xid) => {
                    self.pending_bytes += change.bytes();
                    if self.pending_bytes > BYTES_MAX {
                        return Err(TOO_LARGE.to_owned());
                    }
                    self.pending.entry(xid.to_owned()).or_default().push(change);
                    return Ok(());
                }
            },
            Seen::Ended { xid, is_commit } => {
                let Some(changes) = self.pending.remove(&xid) else { return Ok(()) };
                self.pending_bytes -= changes.iter().map(RowChange::bytes).sum::<usize>();
                if !is_commit {
                    return Ok(());
                }
                changes.into_iter().try_for_each(|change| self.change(change))?;
            }
        }
        self.last = at.clone();
        Ok(())
    }

    fn change(&mut self, change: RowChange) -> Result<(), String> {
        self.changes += 1;
        self.is_silent |= !change.has_cascades;
        self.rows.change(change)
    }

    fn definition(&mut self, definition: &Definition) -> Result<(), String> {
        let (text, verb) = (&definition.text, definition.verb());
        if let Some(cascade) =
            self.cascades.iter().find(|one| one.parent != self.name && definition.moves(&one.parent))
        {
            return Err(format!(
                "a foreign key of the table points to {}, whose name it changes",
                cascade.parent
            ));
        }
        if matches!(verb.as_str(), "CREATE" | "ALTER") && definition.keeps_history() {
            return Err(
                "the table is system versioned by it: its old rows stand among the present ones".to_owned()
            );
        }
        match effect(text, &definition.schema, &self.name) {
            Effect::Emptied => {
                self.rows.empty(verb == "TRUNCATE");
                self.is_there = verb == "TRUNCATE" || verb == "CREATE" && !definition.is_of_schema();
                if verb != "TRUNCATE" {
                    self.is_defined = self.is_there;
                    self.cascades = definition.cascades()?;
                }
            }
            Effect::Nothing if !self.is_there && definition.may_make(&self.name) => {
                (self.is_there, self.is_defined) = (true, true);
                self.cascades = definition.cascades()?;
            }
            effect @ (Effect::Altered | Effect::Moved { .. } | Effect::Nothing) => {
                if verb == "ALTER" && effect != Effect::Nothing {
                    self.rows.alter(alter::clauses(text)?)?;
                }
                self.cascades.extend(definition.cascades()?);
                match effect {
                    Effect::Moved { to: Some(to), .. } => {
                        // A foreign key to the table itself goes with it.
                        for one in self.cascades.iter_mut().filter(|one| one.parent == self.name) {
                            one.parent = to.clone();
                        }
                        self.name = to;
                    }
                    Effect::Moved { .. } => self.is_there = true,
                    _ => {}
                }
            }
            Effect::Unseen | Effect::NoDefinition => {}
        }
        Ok(())
    }

    /// Of the parents of its foreign keys: foreign keys of theirs may have changed rows of theirs, and with these its own, without a word
    /// in the log. A parent is older than the table, so that the log followed does not have what made it.
    fn of_parents(&mut self, doubts: &mut Vec<String>) -> Result<(), String> {
        let mut parents: Vec<TableName> = self.cascades.iter().map(|one| one.parent.clone()).collect();
        parents.retain(|parent| *parent != self.name);
        parents.sort();
        parents.dedup();
        for parent in parents.into_iter().filter(|_| self.is_silent && self.rows.count > 0) {
            if !has_none(self.known, &parent)? {
                doubts.push(format!(
                    "what foreign keys of {parent} did to it, and so to rows of {} that point to it (CASCADE, SET NULL), the log does not tell; whether \
                     it has some, --schema asks a server",
                    self.name
                ));
            }
        }
        Ok(())
    }

    fn contents(mut self, table: &TableName, base: Note, files: u64) -> Result<Contents, String> {
        if !self.is_there || self.name != *table {
            return Err(format!("there was no table {table} then: {base}"));
        }
        if let Some(((column, why), rows)) = self.rows.not_known().into_iter().next() {
            return Err(format!(
                "the value of {column} in {rows} of the rows is not known: {why}. {}",
                way_out(table)
            ));
        }
        let mut doubts = Vec::new();
        self.of_parents(&mut doubts)?;
        if !self.is_defined {
            let keys = cascades(self.known, table)?;
            if !keys.is_empty() {
                return Err(format!(
                    "foreign keys change rows of {table} without the log (CASCADE, SET NULL): {}. {}",
                    keys.join(", "),
                    way_out(table)
                ));
            }
            if self.known.connection().is_none() {
                doubts.push(
                    "the log does not have the statement that made the table: whether a foreign key (CASCADE, SET NULL) changed rows \
                     without the log, --schema asks a server"
                        .to_owned(),
                );
            }
        }
        if self.elsewhere > 0 {
            doubts.push(format!(
                "of other tables the log has statements in the place of rows, {} in all: what joins, triggers and foreign keys of theirs did to {table} \
                 does not stand there",
                self.elsewhere
            ));
        }
        Ok(Contents {
            table: table.clone(),
            base,
            last: self.last,
            files,
            changes: self.changes,
            doubts,
            to: self.to,
            rows: self.rows,
        })
    }
}
