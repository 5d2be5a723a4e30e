//! Tables with what the log and a server know of them.

use super::definition::TableDefinition;
use super::definitions::{Change, Definitions, Place};
use codec::rows::Table;
use std::collections::HashMap;
use std::rc::Rc;
use wire::Connection;

/// A table of the log, completed by a server's definition where one was asked.
#[derive(Debug)]
pub struct KnownTable {
    /// As the log has it. Columns without a name are `@1`, `@2`.
    pub table: Table,
    /// Each column has its own name.
    pub has_names: bool,
    /// As the server defines it now.
    pub definition: Option<TableDefinition>,
    /// Why it has no definition although a server was asked.
    pub note: Option<String>,
    /// What nobody has compared: a definition of it that stands behind the rows.
    pub doubt: Option<String>,
}

impl KnownTable {
    /// `schema.table`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.table.schema, self.table.name)
    }
}

/// Who completes tables.
#[derive(Debug, Default)]
pub struct Known {
    connection: Option<Connection>,
    /// By the source's name.
    definitions: HashMap<String, Definitions>,
    /// Somebody vouches that columns were as they are now.
    as_now: bool,
    at: At,
    /// By schema and name; why there is none.
    asked: HashMap<(String, String), Result<TableDefinition, String>>,
}

/// What the rows are of that are read.
#[derive(Debug, Default)]
struct At {
    source: String,
    place: Place,
    /// When they were committed, in seconds since 1970.
    second: i64,
}

impl Known {
    /// A server is asked for what the log does not say, where there is one; `definitions` are those of each source's log. `as_now`:
    /// somebody vouches that the columns of tables were as they are now.
    pub fn new(
        connection: Option<Connection>,
        definitions: HashMap<String, Definitions>,
        as_now: bool,
    ) -> Known {
        Known { connection, definitions, as_now, ..Known::default() }
    }

    /// The next rows are of a transaction at that place, committed in that second since 1970.
    pub fn is_at(&mut self, source: &str, place: Place, second: i64) {
        self.at = At { source: source.to_owned(), place, second };
    }

    /// The server, for what else it is asked.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut()
    }

    /// Completes a table.
    pub(super) fn table(&mut self, mut table: Table) -> Rc<KnownTable> {
        let (mut definition, mut note, mut doubt) = (None, None, None);
        let change = self.change(&table);
        match (self.asked(&table), change) {
            (None, None) => {}
            (None, Some(change)) if change.moved_to.is_some() => note = Some(change.words()),
            (None, Some(change)) => doubt = Some(change.words()),
            (Some(asked), change) => {
                let behind =
                    change.as_ref().map_or_else(String::new, |change| format!("; {}", change.words()));
                let asked = asked.map_err(|why| why + &behind);
                match asked.and_then(|asked| self.fits(asked, &table, change.as_ref())) {
                    Ok(asked) => {
                        for (there, column) in asked.columns.iter().zip(&mut table.columns) {
                            there.complete(column);
                        }
                        definition = Some(asked);
                    }
                    Err(why) => note = Some(why),
                }
            }
        }
        let note = note.map(|why| format!("{}.{}: {why}", table.schema, table.name));
        let has_names = table.columns.iter().all(|column| column.name.is_some());
        for (at, column) in table.columns.iter_mut().enumerate() {
            column.name.get_or_insert_with(|| format!("@{}", at + 1));
        }
        Rc::new(KnownTable { table, has_names, definition, note, doubt })
    }

    /// What the server says; `None` where none was given.
    fn asked(&mut self, table: &Table) -> Option<Result<TableDefinition, String>> {
        let connection = self.connection.as_mut()?;
        let key = (table.schema.clone(), table.name.clone());
        let answer = self.asked.entry(key).or_insert_with_key(|(schema, name)| {
            match TableDefinition::ask(connection, schema, name) {
                Ok(Some(definition)) => Ok(definition),
                Ok(None) => Err("the server has no such table, or the account may not see it".to_owned()),
                Err(error) => Err(format!("the server could not be asked for it: {error}")),
            }
        });
        Some(answer.clone())
    }

    /// The first definition behind the rows that may have changed the table's columns.
    fn change(&self, table: &Table) -> Option<Change> {
        let definitions = self.definitions.get(&self.at.source)?;
        definitions.change(&table.schema, &table.name, self.at.place).filter(|_| !self.as_now)
    }

    /// The definition, if the rows of the log are of it: it tells of the columns what the log does, and where the log does not tell
    /// their names, nobody has changed it since.
    fn fits(
        &self,
        definition: TableDefinition,
        table: &Table,
        change: Option<&Change>,
    ) -> Result<TableDefinition, String> {
        if let Some(why) = definition.disagrees(&table.columns) {
            let behind = change.map_or_else(String::new, |one| format!("; {}", one.words()));
            return Err(format!("the server's definition is another one than the log's: {why}{behind}"));
        }
        let doubt = match change {
            Some(change) if change.moved_to.is_some() => Some("another one may have its name"),
            Some(_) if !table.has_names => Some("the log does not name the columns"),
            Some(change) if change.renames => Some("columns may have got other names"),
            Some(_) => definition.untold(&table.columns),
            None => None,
        };
        if let (Some(change), Some(doubt)) = (change, doubt) {
            return Err(format!("{}, and {doubt}: {UNPROVEN}", change.words()));
        }
        // A definition may be changed without the log (SET sql_log_bin = 0), or behind the end of the copy.
        let of_source = self.definitions.get(&self.at.source);
        let is_logged = |at| of_source.is_some_and(|all| all.has_one_at(&table.schema, &table.name, at));
        match definition.created.filter(|at| *at >= self.at.second && !is_logged(*at)) {
            Some(at) if !table.has_names && !self.as_now => {
                let time = jiff::Timestamp::from_second(at).unwrap_or_default();
                Err(format!(
                    "the server's definition is of {time}, behind these rows, no statement of that time stands in the log, and the \
                     log does not name the columns: {UNPROVEN}"
                ))
            }
            _ => Ok(definition),
        }
    }
}

/// What follows from a doubt.
const UNPROVEN: &str = "that the server's columns are those of these rows is not proven. If you know that they are, --columns-as-now \
                        takes them";
