//! What a server says against taking rows back: things that the log does not tell.

use crate::detail::hex_text;
use std::collections::BTreeSet;
use wire::{Connection, WireError};

/// Why rows of these tables cannot be taken back there; empty when nothing stands against it.
///
/// # Errors
/// When the server cannot be asked.
pub(crate) fn objections(
    connection: &mut Connection,
    tables: &BTreeSet<(String, String)>,
) -> Result<Vec<String>, WireError> {
    let mut found = Vec::new();
    for (schema, table) in tables {
        let is = |of_schema: &str, of_table: &str| {
            format!("{of_schema} = {} AND {of_table} = {}", hex_text(schema), hex_text(table))
        };
        let triggers = connection.query(&format!(
            "SELECT trigger_name AS n FROM information_schema.triggers WHERE {}",
            is("event_object_schema", "event_object_table")
        ))?;
        for row in 0..triggers.rows.len() {
            let name = triggers.get(row, "n").unwrap_or_default();
            found.push(format!(
                "{schema}.{table} has the trigger {name}: it would fire again, and what it did stands in the log too"
            ));
        }
        let cascades = connection.query(&format!(
            "SELECT constraint_name AS n, table_name AS t FROM information_schema.referential_constraints WHERE {} AND \
             (update_rule IN ('CASCADE', 'SET NULL', 'SET DEFAULT') OR delete_rule IN ('CASCADE', 'SET NULL', 'SET DEFAULT'))",
            is("unique_constraint_schema", "referenced_table_name")
        ))?;
        for row in 0..cascades.rows.len() {
            let (name, of) =
                (cascades.get(row, "n").unwrap_or_default(), cascades.get(row, "t").unwrap_or_default());
            found.push(format!(
                "the foreign key {name} of {of} follows what is done to {schema}.{table} (CASCADE, SET NULL): rows that it changed \
                 may not stand in the log, and taking back would change more"
            ));
        }
        let engines = connection.query(&format!(
            "SELECT t.engine AS e, e.transactions AS y FROM information_schema.tables t LEFT JOIN information_schema.engines e \
             ON e.engine = t.engine WHERE {}",
            is("t.table_schema", "t.table_name")
        ))?;
        match (engines.get(0, "e"), engines.get(0, "y")) {
            (Some(_), Some("YES")) => {}
            (None, _) => found.push(format!("{schema}.{table} is not there, or the account may not see it")),
            (Some(engine), _) => found.push(format!(
                "{schema}.{table} is of {engine}, without transactions: half of it could not be rolled back"
            )),
        }
    }
    Ok(found)
}
