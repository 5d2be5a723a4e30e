//! Settings of the source that its readers decide by, and that readers of the copy therefore ask for too.

use wire::{Connection, ResultSet, WireError};

/// The names. All are of text or numbers that SHOW VARIABLES does not cut.
const NAMES: &[&str] = &[
    "auto_increment_increment",
    "auto_increment_offset",
    "binlog_annotate_row_events",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_metadata",
    "binlog_row_value_options",
    "binlog_rows_query_log_events",
    "binlog_transaction_compression",
    "character_set_server",
    "collation_server",
    "enforce_gtid_consistency",
    "gtid_domain_id",
    "gtid_mode",
    "gtid_strict_mode",
    "log_bin_compress",
    "lower_case_table_names",
    "max_binlog_size",
    "sql_mode",
];

/// Longest value that is kept, in bytes: a peer may say anything.
const VALUE_BYTES_MAX: usize = 1024;

/// Names and values, as SHOW VARIABLES has them, of those that this server has. Needs no privilege.
///
/// # Errors
/// When the connection fails. A server that refuses to say has none.
pub fn settings(connection: &mut Connection) -> Result<Vec<(String, String)>, WireError> {
    let names: Vec<String> = NAMES.iter().map(|name| format!("'{name}'")).collect();
    let statement = format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({})", names.join(", "));
    let rows = match connection.query(&statement) {
        Ok(rows) => rows,
        Err(WireError::Server { .. } | WireError::AccessDenied { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    Ok(pairs(&rows))
}

fn pairs(rows: &ResultSet) -> Vec<(String, String)> {
    let pair = |row| {
        let name = rows.get(row, "Variable_name")?.to_ascii_lowercase();
        let value = rows.get(row, "Value").filter(|value| value.len() <= VALUE_BYTES_MAX)?;
        NAMES.contains(&name.as_str()).then(|| (name, value.to_owned()))
    };
    (0..rows.rows.len()).filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A peer may say anything.
    #[test]
    fn only_what_was_asked_for_is_kept() {
        let long = "x".repeat(VALUE_BYTES_MAX + 1);
        let said = [
            ("Binlog_Format", Some("ROW")),
            ("secret", Some("1")),
            ("sql_mode", Some(long.as_str())),
            ("max_binlog_size", None),
            ("binlog_row_metadata", Some("FULL")),
        ];
        let bytes = |text: &str| text.as_bytes().to_vec();
        let rows = said.iter().map(|(name, value)| vec![Some(bytes(name)), value.map(bytes)]).collect();
        let rows = ResultSet { columns: vec!["Variable_name".to_owned(), "Value".to_owned()], rows };
        let kept = [("binlog_format", "ROW"), ("binlog_row_metadata", "FULL")];
        assert_eq!(pairs(&rows), kept.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(pairs(&ResultSet { columns: Vec::new(), rows: vec![Vec::new()] }).is_empty());
    }
}
