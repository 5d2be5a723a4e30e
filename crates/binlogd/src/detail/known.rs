//! Tables with what the log and a server know of them.

use super::definition::TableDefinition;
use codec::rows::Table;
use std::collections::HashMap;
use std::rc::Rc;
use wire::Connection;

/// A table of the log, completed by a server's definition where one was asked.
#[derive(Debug)]
pub(crate) struct KnownTable {
    /// As the log has it. Columns without a name are `@1`, `@2`.
    pub(crate) table: Table,
    /// Each column has its own name.
    pub(crate) has_names: bool,
    /// As the server defines it now.
    pub(crate) definition: Option<TableDefinition>,
    /// Why it has no definition although a server was asked.
    pub(crate) note: Option<String>,
}

impl KnownTable {
    /// `schema.table`.
    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.table.schema, self.table.name)
    }
}

/// Who completes tables.
#[derive(Debug, Default)]
pub(crate) struct Known {
    connection: Option<Connection>,
    /// By schema and name; why there is none.
    asked: HashMap<(String, String), Result<TableDefinition, String>>,
}

impl Known {
    /// A server is asked for what the log does not say.
    pub(crate) fn of(connection: Connection) -> Known {
        Known { connection: Some(connection), asked: HashMap::new() }
    }

    /// The server, for what else it is asked.
    pub(crate) fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut()
    }

    /// Completes a table.
    pub(super) fn table(&mut self, mut table: Table) -> Rc<KnownTable> {
        let (mut definition, mut note) = (None, None);
        match self.asked(&table).map(|asked| asked.and_then(|asked| fits(asked, &table))) {
            None => {}
            Some(Ok(asked)) => {
                for (there, column) in asked.columns.iter().zip(&mut table.columns) {
                    there.complete(column);
                }
                definition = Some(asked);
            }
            Some(Err(why)) => note = Some(format!("{}.{}: {why}", table.schema, table.name)),
        }
        let has_names = table.columns.iter().all(|column| column.name.is_some());
        for (at, column) in table.columns.iter_mut().enumerate() {
            column.name.get_or_insert_with(|| format!("@{}", at + 1));
        }
        Rc::new(KnownTable { table, has_names, definition, note })
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
}

/// The definition, if the rows of the log may be of it; where the log has names, these must be the same.
fn fits(definition: TableDefinition, table: &Table) -> Result<TableDefinition, String> {
    if let Some(why) = definition.disagrees(&table.columns) {
        return Err(format!("the server's definition is another one than the log's: {why}"));
    }
    let columns = definition.columns.iter().zip(&table.columns);
    let other =
        columns.filter_map(|(there, here)| Some((&there.name, here.name.as_ref()?))).find(|(a, b)| a != b);
    match other {
        Some((there, here)) => Err(format!("a column is {there} on the server and {here} in the log")),
        None => Ok(definition),
    }
}
