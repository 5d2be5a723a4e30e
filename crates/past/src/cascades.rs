//! Foreign keys that change rows of a table without the log.

use points::table::TableName;
use repair::detail::{Known, is_table};

/// Their names, as a server says; none where no server was given. MySQL from 9.6 on logs what they do.
///
/// # Errors
/// In words, when the server does not say.
pub(crate) fn cascades(known: &mut Known, table: &TableName) -> Result<Vec<String>, String> {
    let Some(connection) = known.connection() else { return Ok(Vec::new()) };
    let is_this = is_table("constraint_schema", "table_name", &table.schema, &table.table);
    let does = |rule: &str| format!("{rule} IN ('CASCADE', 'SET NULL', 'SET DEFAULT')");
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
