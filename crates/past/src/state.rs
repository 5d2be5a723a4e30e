//! A row at a point.
//!
//! What the last change before the point left, and what the first one behind it found, are two witnesses. One is enough where nothing
//! stands between it and the point that the log does not have as rows. Where both are there and differ, something changed the row that
//! the log does not have.

use crate::backward::{Ahead, Backward, Step, ahead};
use crate::cascades::cascades;
use crate::point::{Cut, cut};
use crate::reader::Reader;
use crate::request::Request;
use crate::seen::{Cell, Change, Image, NamedColumn, Note, Seen};
use repair::detail::Known;
use std::collections::HashMap;
use std::rc::Rc;

/// What is known of a row at a point.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// It was this. `None` for a value that the log does not have.
    There {
        /// The columns.
        columns: Rc<[NamedColumn]>,
        /// Their values.
        values: Image,
    },
    /// There was none with this key.
    NotThere,
    /// The log does not tell.
    NotKnown,
}

/// The answer.
#[derive(Debug)]
pub struct Answer {
    /// The row.
    pub state: State,
    /// The change that made it so.
    pub made_by: Option<Box<Change>>,
    /// What else made it so: that the table was emptied, dropped or made.
    pub made_so: Option<Note>,
    /// The first change behind the point.
    pub next: Option<Box<Change>>,
    /// Why the answer may be wrong, or why there is none.
    pub doubts: Vec<String>,
    /// What is to be known of it.
    pub notes: Vec<String>,
}

/// What stands before the point.
#[derive(Default)]
struct Before {
    change: Option<Box<Change>>,
    /// It counts: not prepared only.
    counts: bool,
    emptied: Option<Note>,
    values: Option<(Rc<[NamedColumn]>, Image)>,
    /// Something that the log does not have as rows comes first.
    unseen: Option<String>,
    altered: Vec<Note>,
    edge: Option<String>,
}

/// Finds it. `known` is what the log and a server say of tables.
///
/// # Errors
/// In words: the point is not there, or the log cannot be read.
pub fn state(request: &Request<'_>, known: &mut Known) -> Result<Answer, String> {
    let point = cut(request.line, request.at)?;
    let mut reader = Reader::new(request.line, known, request.table, request.key);
    let before = before(&mut reader, &point)?;
    let (mut near, mut elsewhere) = (std::mem::take(&mut reader.near), reader.elsewhere);
    let mut reader = reader.for_row(request.table, request.key);
    let behind = ahead(&mut reader, point.place)?;
    near.append(&mut reader.near);
    elsewhere += reader.elsewhere;
    let mut answer = combined(before, behind, &point);
    if answer.next.is_none() && matches!(answer.state, State::There { .. }) {
        answer.doubts.extend(cascades(known, request.table)?.into_iter().map(|name| {
            format!(
                "no change behind the point shows the row, and the foreign key {name} (CASCADE, SET NULL) changes rows of {} without the log",
                request.table
            )
        }));
        answer.notes.push(
            "no change behind the point shows that it was still so: what foreign keys (CASCADE, SET NULL), sql_log_bin = 0 and filters at the \
             source did is not in the log"
                .to_owned(),
        );
    }
    if !near.is_empty() {
        let keys: Vec<String> = near.into_iter().collect();
        answer
            .notes
            .push(format!("a collation may take other keys of the log for this one: {}", keys.join(", ")));
    }
    if elsewhere > 0 {
        answer.notes.push(format!(
            "of other tables the log has statements in the place of rows, {elsewhere} in all: what joins and triggers of theirs did to {} does \
             not stand there",
            request.table
        ));
    }
    Ok(answer)
}

fn before(reader: &mut Reader<'_>, point: &Cut) -> Result<Before, String> {
    let (mut found, mut backward) = (Before::default(), Backward::from(point.place));
    let mut ended: HashMap<String, bool> = HashMap::new();
    loop {
        let seen = match backward.next(reader)? {
            Step::Seen(seen) => seen,
            Step::Edge(why) => {
                found.edge = Some(why);
                return Ok(found);
            }
        };
        let is_first = found.change.is_none();
        match seen {
            // A name may be used again: the end that stands next behind a first half is its own.
            Seen::Ended { xid, is_commit } => drop(ended.insert(xid, is_commit)),
            Seen::Altered(note) if is_first => found.altered.push(note),
            Seen::Altered(_) | Seen::Moved { from: Some(_), .. } => {}
            Seen::Unseen(note) => {
                found.unseen = is_first.then(|| note.to_string());
                return Ok(found);
            }
            Seen::Emptied(note) | Seen::Moved { note, .. } => {
                found.emptied = is_first.then_some(note);
                return Ok(found);
            }
            Seen::Row(change) => {
                let counts = change.xid.as_ref().is_none_or(|xid| ended.get(xid) == Some(&true));
                let is_whole = found.add(change, counts);
                if is_whole {
                    return Ok(found);
                }
            }
        }
    }
}

impl Before {
    /// Takes the next older change; true when nothing more is to be known.
    fn add(&mut self, change: Box<Change>, counts: bool) -> bool {
        let is_there = if counts { change.has_key } else { change.had_key };
        match &mut self.values {
            // The row's own beginning, or another one before it.
            Some(_) if !counts || change.after.is_none() => return true,
            Some((columns, values)) => fill(columns, values, &change),
            None if is_there => {
                let values = change.side(counts).unwrap_or_default();
                self.values = Some((change.columns.clone(), values));
            }
            None => {}
        }
        let is_born = change.before.is_none();
        if self.change.is_none() {
            (self.change, self.counts) = (Some(change), counts);
        }
        is_born || self.values.as_ref().is_none_or(|(_, values)| lacks(values).is_empty())
    }
}

/// The values that are left to be found, by their places.
fn lacks(values: &Image) -> Vec<usize> {
    (0..values.len()).filter(|at| values[*at].is_none()).collect()
}

/// What an older change tells of values that newer ones did not touch.
fn fill(columns: &[NamedColumn], values: &mut Image, older: &Change) {
    let Some(there) = older.side(true) else { return };
    for at in lacks(values) {
        let place = older.columns.iter().position(|column| column.name == columns[at].name);
        values[at] = place.and_then(|place| there.get(place)?.clone());
    }
}

fn combined(before: Before, behind: Ahead, point: &Cut) -> Answer {
    let mut answer = Answer {
        state: State::NotKnown,
        made_by: None,
        made_so: before.emptied.clone(),
        next: None,
        doubts: point.doubt.iter().cloned().collect(),
        notes: Vec::new(),
    };
    // What the first change behind the point found.
    let found = match behind.step {
        Step::Seen(Seen::Row(change)) => {
            let found = change.had_key.then(|| change.side(false)).flatten();
            answer.next = Some(change);
            Ok(found)
        }
        Step::Seen(Seen::Unseen(note)) => Err(note.to_string()),
        Step::Seen(Seen::Emptied(note) | Seen::Moved { note, .. }) => Err(note.to_string()),
        Step::Seen(_) => Err(String::new()),
        Step::Edge(why) => Err(why),
    };
    let is_left = before.change.is_some() || before.emptied.is_some();
    match (&before.unseen, &found) {
        (None, _) if is_left => {
            let Before { change, values, altered, .. } = before;
            answer.made_by = change;
            answer.state = match values {
                Some((columns, values)) => State::There { columns, values },
                None => State::NotThere,
            };
            let is_there = matches!(answer.state, State::There { .. });
            if is_there {
                let words = altered.iter().map(|note| {
                    format!("the columns are those before a definition that stands between the last change and the point: {note}")
                });
                answer.notes.extend(words);
            }
            if let (Ok(found), true) = (&found, behind.altered.is_empty() && altered.is_empty()) {
                answer.compare(found.as_ref());
            }
        }
        (unseen, Ok(found)) => {
            let columns = answer.next.as_ref().map(|change| change.columns.clone()).unwrap_or_default();
            answer.state = match found {
                Some(values) => State::There { columns, values: values.clone() },
                None => State::NotThere,
            };
            let words = behind.altered.iter().map(|note| {
                format!("the columns are those behind a definition that stands between the point and the next change: {note}")
            });
            answer.notes.extend(words);
            let why = unseen.clone().or(before.edge).unwrap_or_default();
            answer.notes.push(format!(
                "this is what the first change behind the point found; before the point: {why}"
            ));
        }
        (unseen, Err(behind)) => {
            let why = unseen.clone().or(before.edge).unwrap_or_default();
            answer
                .doubts
                .push(format!("the log does not tell: before the point: {why}; behind it: {behind}"));
        }
    }
    answer.tell_lacking();
    answer
}

impl Answer {
    /// Holds the row against what the next change found there.
    fn compare(&mut self, found: Option<&Image>) {
        let differs = match (&mut self.state, found) {
            (State::NotThere, None) | (State::NotKnown, _) => None,
            (State::There { .. }, None) => Some("the next change did not find it".to_owned()),
            (State::NotThere, Some(_)) => Some("the next change found one".to_owned()),
            (State::There { columns, values }, Some(found)) => {
                let next = self.next.as_ref().map(|next| next.columns.clone()).unwrap_or_default();
                let of = |name: &str| {
                    let at = next.iter().position(|column| column.name == *name)?;
                    found.get(at)?.as_ref()
                };
                let mut other = Vec::new();
                for (column, value) in columns.iter().zip(values) {
                    match (&value, of(&column.name)) {
                        // What nothing touched in between.
                        (None, Some(there)) => *value = Some(there.clone()),
                        (Some(own), Some(there)) if own.is_partial => *value = Some(there.clone()),
                        (Some(own), Some(there)) if own.text != there.text => {
                            other.push(format!("{}: {} there", column.name, there.text));
                        }
                        _ => {}
                    }
                }
                (!other.is_empty())
                    .then(|| format!("the next change found another row ({})", other.join(", ")))
            }
        };
        if let Some(what) = differs {
            self.doubts.push(format!(
                "{what}: something changed it that the log does not have, as a foreign key (CASCADE, SET NULL), sql_log_bin = 0, or a filter \
                 at the source"
            ));
        }
    }

    /// Values that nobody knows.
    fn tell_lacking(&mut self) {
        let State::There { columns, values } = &mut self.state else { return };
        let is_untold = |cell: &Option<Cell>| cell.as_ref().is_none_or(|cell| cell.is_partial);
        let names: Vec<&str> = columns
            .iter()
            .zip(values.iter())
            .filter(|(_, value)| is_untold(value))
            .map(|(column, _)| column.name.as_str())
            .collect();
        if !names.is_empty() {
            self.doubts.push(format!(
                "the log does not have {} of this row (binlog_row_image is not FULL, or binlog_row_value_options)",
                names.join(", ")
            ));
        }
        values.iter_mut().filter(|value| is_untold(value)).for_each(|value| *value = None);
    }
}
