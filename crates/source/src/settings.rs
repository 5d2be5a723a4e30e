//! Settings of the source that its readers decide by, and that readers of the copy therefore ask for too.

use wire::{Connection, ResultSet, WireError};

/// The variable of MariaDB, from 12.3 on, that names the storage engine which keeps the binary log. Empty where files do.
pub const LOG_ENGINE: &str = "binlog_storage_engine";

/// The names, and what keeps a source from being copied at all. All are of text or numbers that SHOW VARIABLES does not cut.
const NAMES: &[&str] = &[
    "auto_increment_increment",
    "auto_increment_offset",
    "binlog_annotate_row_events",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_metadata",
    "binlog_row_value_options",
    "binlog_rows_query_log_events",
    LOG_ENGINE,
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

/// The storage engine that keeps the server's binary log, by the value of [`LOG_ENGINE`]; `None` where files do.
pub fn log_engine(value: Option<&str>) -> Option<&str> {
    value.filter(|engine| !engine.is_empty())
}

/// Why a server whose binary log is kept in a storage engine is not taken for a source, and what helps. By MariaDB's
/// `Docs/replication/binlog.md` and its page "InnoDB-Based Binary Log".
pub fn log_in_engine(engine: &str) -> String {
    format!(
        "the server keeps its binary log in a storage engine ({LOG_ENGINE} = {engine}), which binlogd does not copy: such a \
         log goes out without its files, positions and checksums, and without semi-sync. So no file could be the source's \
         byte for byte, no commit would wait for binlogd, and no reader could go on by file and position. What was copied \
         before is kept and served. Take {LOG_ENGINE} out of the server's option file and restart the server; what it has \
         committed with it stands in no file, so take a backup after the restart"
    )
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

    #[test]
    fn a_log_in_files_is_in_no_engine() {
        assert_eq!([None, Some(""), Some("innodb")].map(log_engine), [None, None, Some("innodb")]);
        assert!(NAMES.contains(&LOG_ENGINE), "it is asked for");
    }

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
