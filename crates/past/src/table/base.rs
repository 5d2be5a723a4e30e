//! Where the log knows that a table had no row: it was made, emptied or dropped there, or its schema was made.

use super::told::Definition;
use crate::definition::{Effect, effect};
use crate::line::{Beside, FileAt, Line, Place};
use crate::reader::Within;
use crate::saying::said;
use crate::seen::{At, Note, Seen};
use points::criteria::Criteria;
use points::effects::Effects;
use points::statement::redefined::redefined;
use points::table::TableName;
use repair::detail::{Known, Part};
use std::rc::Rc;

/// See [the module](self).
pub(super) struct Base {
    pub(super) file: FileAt,
    pub(super) within: Within,
    /// The table's name there.
    pub(super) name: TableName,
    pub(super) note: Note,
}

/// Finds the last one before a place; what is there is the table that has this name at the place.
///
/// # Errors
/// In words: there is none in the log held, or it cannot be read.
pub(super) fn find(
    line: &Line<'_>,
    known: &mut Known,
    table: &TableName,
    place: Place,
) -> Result<Base, String> {
    let (mut file, mut until, mut name, mut doubtful) = (place.file, place.at, table.clone(), None);
    loop {
        for (at, within, definition) in definitions(line, known, file, until)?.into_iter().rev() {
            let note = || Note { at: at.clone(), words: definition.shown.clone() };
            match effect(&definition.text, &definition.schema, &name) {
                Effect::Moved { from: Some(from), .. } => name = from,
                Effect::Emptied => return Ok(Base { file, within, name, note: note() }),
                // Behind it nothing has the name. What had it is another table now, which is not followed.
                Effect::Moved { .. } => {
                    let within = (within.0, within.1 + 1);
                    return Ok(Base { file, within, name, note: note() });
                }
                Effect::Nothing if definition.may_make(&name) => doubtful = Some(note()),
                _ => {}
            }
        }
        match line.before(file) {
            Beside::File(before) => (file, until) = (before, u64::MAX),
            Beside::Edge(why) => {
                let doubtful = doubtful
                    .map_or_else(String::new, |note| format!(" ({note} may have found the table there)"));
                return Err(format!(
                    "the rows of {table} are not all in the log held: {why}, and from there to the point no CREATE TABLE, TRUNCATE or CREATE \
                     DATABASE tells that it was empty{doubtful}. A backup has the rest"
                ));
            }
        }
    }
}

/// The definitions of a file before a place that may be about tables.
fn definitions(
    line: &Line<'_>,
    known: &mut Known,
    file: FileAt,
    until: u64,
) -> Result<Vec<(Rc<At>, Within, Definition)>, String> {
    let (mut found, criteria) = (Vec::new(), Criteria { kinds: Effects::DDL, ..Criteria::default() });
    let no_table = TableName { schema: String::new(), table: String::new() };
    line.each(file, &criteria, &mut |at, transaction| {
        if transaction.at >= until {
            return false;
        }
        let (all, _) =
            said::<(Rc<At>, Definition)>((at, transaction), known, &no_table, &mut |saying, part| {
                if let Part::Statement { is_for_people: false, schema, raw, text } = part
                    && redefined(raw.as_bytes(), schema.as_bytes()).is_some()
                {
                    let definition = Definition::of(schema, raw, text);
                    saying.all.push(Seen::Row((saying.at.clone(), definition)));
                }
            });
        for (part, seen) in all {
            if let Seen::Row((at, definition)) = seen {
                found.push((at, (transaction.at, part), definition));
            }
        }
        true
    })?;
    Ok(found)
}
