//! All that became of a row, the newest first.

use crate::backward::{Backward, Step};
use crate::key::Key;
use crate::point::cut;
use crate::reader::Reader;
use crate::request::Request;
use crate::seen::{Cell, Change, NamedColumn, Note, Seen};
use points::table::TableName;
use repair::detail::Known;
use std::collections::HashMap;

/// One thing that became of it.
#[derive(Debug)]
pub enum Item {
    /// A change.
    Change {
        /// Which.
        change: Box<Change>,
        /// Why it does not count: its XA transaction was not committed up to the point.
        no_effect: Option<&'static str>,
        /// What the change behind it found otherwise: something changed the row in between that the log does not have.
        unlike_next: Vec<String>,
    },
    /// The table was emptied, dropped, made or renamed, or got other columns.
    Definition(Note),
    /// Rows may have changed, and the log does not have them.
    Unseen(Note),
}

/// Where what is older begins.
#[derive(Debug)]
pub struct Older {
    /// The point before which it stands: `FILE:POSITION`.
    pub at: String,
    /// The row's key there.
    pub key: Key,
    /// The table's name there.
    pub table: TableName,
}

/// The answer.
#[derive(Debug)]
pub struct History {
    /// The newest first.
    pub items: Vec<Item>,
    /// There may be older ones.
    pub older: Option<Older>,
    /// Why there is nothing older: where the log held begins.
    pub edge: Option<String>,
    /// Why it may not be all.
    pub doubts: Vec<String>,
    /// Keys of other rows that a collation may take for this one.
    pub near: Vec<String>,
}

/// Finds `limit` changes before the point, and all of the transaction of the last; 0 for all.
///
/// # Errors
/// In words: the point is not there, or the log cannot be read.
pub fn history(request: &Request<'_>, limit: u64, known: &mut Known) -> Result<History, String> {
    let point = cut(request.line, request.at)?;
    let mut reader = Reader::new(request.line, known, request.table, request.key);
    let mut backward = Backward::from(point.place);
    let mut ended: HashMap<String, bool> = HashMap::new();
    let mut history = History {
        items: Vec::new(),
        older: None,
        edge: None,
        doubts: point.doubt.into_iter().collect(),
        near: Vec::new(),
    };
    // What the change behind found, as long as nothing stands between.
    let (mut behind, mut count): (Option<Box<Change>>, u64) = (None, 0);
    let mut last = None;
    loop {
        // The reader follows the row to those that it had before.
        let (key, table) = (reader.key.clone(), reader.table.clone());
        let seen = match backward.next(&mut reader)? {
            Step::Seen(seen) => seen,
            Step::Edge(why) => {
                history.edge = Some(why);
                break;
            }
        };
        match seen {
            // As in `state`.
            Seen::Ended { xid, is_commit } => drop(ended.insert(xid, is_commit)),
            Seen::Altered(note) | Seen::Emptied(note) | Seen::Moved { note, .. } => {
                behind = None;
                history.items.push(Item::Definition(note));
            }
            Seen::Unseen(note) => {
                behind = None;
                history.doubts.push(note.to_string());
                history.items.push(Item::Unseen(note));
            }
            Seen::Row(change) => {
                if limit != 0 && count >= limit && last.as_ref() != Some(&change.at) {
                    history.older = Some(Older {
                        at: format!("after {}:{}", change.at.file, change.at.position),
                        key,
                        table,
                    });
                    break;
                }
                count += 1;
                last = Some(change.at.clone());
                let no_effect = match change.xid.as_ref().map(|xid| ended.get(xid)) {
                    None | Some(Some(true)) => None,
                    Some(Some(false)) => Some("rolled back"),
                    Some(None) => Some("prepared, and not committed yet"),
                };
                let unlike_next = match (&behind, no_effect) {
                    (Some(next), None) => unlike(&change, next),
                    _ => Vec::new(),
                };
                behind = Some(change.clone());
                history.items.push(Item::Change { change, no_effect, unlike_next });
            }
        }
    }
    history.near = reader.near.into_iter().collect();
    Ok(history)
}

/// The columns that were another value when the next change came.
fn unlike(change: &Change, next: &Change) -> Vec<String> {
    let left = if change.has_key { change.side(true) } else { None };
    match (left, next.side(false)) {
        (None, None) => Vec::new(),
        (Some(_), None) => vec!["the row was gone".to_owned()],
        (None, Some(_)) => vec!["the row was there".to_owned()],
        (Some(left), Some(found)) => {
            let all = change.columns.iter().zip(left);
            let other = |(column, cell): (&NamedColumn, Option<Cell>)| {
                let at = next.columns.iter().position(|one| one.name == column.name)?;
                let (own, there) = (cell?, found.get(at)?.as_ref()?);
                let is_same = own.is_partial || own.text == there.text;
                (!is_same).then(|| format!("{}: {} → {}", column.name, own.text, there.text))
            };
            all.filter_map(other).collect()
        }
    }
}
