//! Foreign keys that a definition makes, as far as they change rows.

use super::whole::{Word, name_at};
use crate::table::TableName;

/// A foreign key that may change rows of its table where the parent's change, without a word in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cascade {
    /// The table that it points to.
    pub parent: TableName,
    /// ON DELETE CASCADE, SET NULL or SET DEFAULT.
    pub on_delete: bool,
    /// The same ON UPDATE.
    pub on_update: bool,
}

/// Those among the words of a statement with that default schema.
pub fn cascades(words: &[Word], default_schema: &str) -> Vec<Cascade> {
    let mut found = Vec::new();
    for at in (0..words.len()).filter(|at| words[*at].is("REFERENCES")) {
        let Some((schema, table, mut behind)) = name_at(words, at + 1) else { continue };
        let parent =
            TableName { schema: schema.unwrap_or(default_schema).to_owned(), table: table.to_owned() };
        let mut cascade = Cascade { parent, on_delete: false, on_update: false };
        while let Some(word) = words.get(behind).filter(|word| !word.is("REFERENCES")) {
            let does = || words.get(behind + 2).is_some_and(|word| word.is("CASCADE") || word.is("SET"));
            let next = |event| words.get(behind + 1).is_some_and(|word| word.is(event));
            if word.is("ON") {
                cascade.on_delete |= next("DELETE") && does();
                cascade.on_update |= next("UPDATE") && does();
            }
            behind += 1;
        }
        if cascade.on_delete || cascade.on_update {
            found.push(cascade);
        }
    }
    found
}
