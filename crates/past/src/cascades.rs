//! Foreign keys that change rows of a table without the log.

use points::table::TableName;
use repair::detail::{Known, is_table};

/// Whether a server says that a table is there and that none changes its rows; false where no server was given.
///
/// # Errors
/// In words, when the server does not say.
pub(crate) fn has_none(known: &mut Known, table: &TableName) -> Result<bool, String> {
    let Some(connection) = known.connection() else { return Ok(false) };
    let of = |schema: &str, name: &str| is_table(schema, name, &table.schema, &table.table);
    let found = connection
        .query(&format!(
            "SELECT table_name AS n FROM information_schema.tables WHERE {} AND NOT EXISTS (SELECT 1 FROM \
             information_schema.referential_constraints AS r WHERE {} AND ({} OR {}))",
            of("table_schema", "table_name"),
            of("r.constraint_schema", "r.table_name"),
            does("r.update_rule"),
            does("r.delete_rule")
        ))
        .map_err(|error| format!("--schema: {error}"))?;
    Ok(!found.rows.is_empty())
}

fn does(rule: &str) -> String {
    format!("{rule} IN ('CASCADE', 'SET NULL', 'SET DEFAULT')")
}

/// Their names, as a server says; none where no server was given. MySQL from 9.6 on logs what they do.
///
/// # Errors
/// In words, when the server does not say.
pub(crate) fn cascades(known: &mut Known, table: &TableName) -> Result<Vec<String>, String> {
    let Some(connection) = known.connection() else { return Ok(Vec::new()) };
    let is_this = is_table("constraint_schema", "table_name", &table.schema, &table.table);
    let found = connection
        .query(&format!(
            "SELECT constraint_name AS n FROM information_schema.referential_constraints WHERE {is_this} AND ({} OR {}) \
             /*!90600 AND FALSE */",
            does("update_rule"),
            does("delete_rule")
        ))
        .map_err(|error| format!("--schema: {error}"))?;
    Ok((0..found.rows.len()).map(|row| found.get(row, "n").unwrap_or_default().to_owned()).collect())
}
