//! Settings of the source that its readers decide by, and that readers of the copy therefore ask for too.

use wire::{Connection, ResultSet, WireError};

/// The variable of MariaDB, from 12.3 on, that names the storage engine which keeps the binary log. Empty where files do.
pub const LOG_ENGINE: &str = "binlog_storage_engine";

/// Whether the nodes of a Galera cluster (MariaDB) give a transaction one GTID. OFF, each numbers what it writes to its log.
pub const GALERA_GTIDS: &str = "wsrep_gtid_mode";

/// The domain of those GTIDs. Every other one gets the node's own, `gtid_domain_id`.
pub const GALERA_DOMAIN: &str = "wsrep_gtid_domain_id";

/// How the nodes of a Galera cluster get one history. No statement does it: switched on while a node runs, and in a domain that has
/// GTIDs already, it has the node give some of them again. Seen with MariaDB 10.11.
pub const GALERA_SETTLED_BY: &str = "In the option file of every node: wsrep_gtid_mode = ON, and one wsrep_gtid_domain_id for all that was never used \
     before and is the gtid_domain_id of none of them. Restart the whole cluster, and take a new backup";

/// What tells whether a server is to be refused by [`refusal`].
pub const REFUSED_BY: [&str; 7] = [
    LOG_ENGINE,
    "gtid_domain_id",
    "log_replica_updates",
    "log_slave_updates",
    GALERA_DOMAIN,
    GALERA_GTIDS,
    "wsrep_on",
];

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
    "log_replica_updates",
    "log_slave_updates",
    "lower_case_table_names",
    "max_binlog_size",
    "sql_mode",
    GALERA_DOMAIN,
    GALERA_GTIDS,
    "wsrep_on",
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

/// What keeps a server from being a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The setting and its value: `log_slave_updates: OFF`.
    pub setting: String,
    /// Why, and what helps.
    pub why: String,
}

/// What keeps a server from being one of the `hosts` hosts of a source, by its global variables [`REFUSED_BY`]. What it does not
/// have stands against nothing.
pub fn refusal<'a>(value: impl Fn(&str) -> Option<&'a str>, hosts: usize) -> Option<Refusal> {
    let refused = |name: &str, why| {
        let setting = format!("{name}: {}", value(name).unwrap_or_default());
        Some(Refusal { setting, why })
    };
    let is = |name: &str, words: [&str; 2]| value(name).is_some_and(|value| words.contains(&value));
    let is_off = |name: &&str| is(name, ["OFF", "0"]);
    if let Some(engine) = value(LOG_ENGINE).filter(|engine| !engine.is_empty()) {
        return refused(LOG_ENGINE, log_in_engine(engine));
    }
    if !is("wsrep_on", ["ON", "1"]) {
        return None;
    }
    if let Some(name) = ["log_slave_updates", "log_replica_updates"].into_iter().find(is_off) {
        return refused(name, log_of_one_node(name));
    }
    if hosts < 2 {
        return None;
    }
    if is_off(&GALERA_GTIDS) {
        return refused(GALERA_GTIDS, numbered_by_each_node());
    }
    let domain = value(GALERA_DOMAIN).filter(|domain| value("gtid_domain_id") == Some(domain))?;
    refused(GALERA_DOMAIN, one_domain(domain))
}

/// Why a node of Galera that logs only what its own clients commit is no source. Seen with MariaDB 10.11.
fn log_of_one_node(name: &str) -> String {
    format!(
        "the server is a node of a Galera cluster (wsrep_on is ON) with {name} = OFF: its binary log lacks everything that was \
         committed on another node, so a copy of it would be no history of the data. What was copied before is kept and served. Set \
         {name} = ON in the option file of every node and restart them one by one; what a node wrote before that stands in no \
         other log, so take a backup afterwards"
    )
}

/// Why nodes that number for themselves cannot stand in for each other. Seen with MariaDB 10.11: one write that Galera does not
/// replicate (a table of MyISAM, `wsrep_on = OFF`), and the same transactions have other numbers on every node from then on.
fn numbered_by_each_node() -> String {
    format!(
        "the server is a node of a Galera cluster with {GALERA_GTIDS} = OFF, and `hosts` names several: each node numbers by itself, \
         so one GTID can be two transactions on two nodes, and nobody can say what one lacks. Nothing is copied until that is settled; what was \
         copied before is kept and served. {GALERA_SETTLED_BY}; or leave one node alone in `hosts`"
    )
}

/// Why nodes that number for themselves in the domain of the cluster cannot either. Both are 0 by default. Seen with MariaDB 10.11: after
/// one write that Galera does not replicate a node gives the same GTID twice.
fn one_domain(domain: &str) -> String {
    format!(
        "the server is a node of a Galera cluster whose {GALERA_DOMAIN} is its gtid_domain_id too ({domain}), and `hosts` names several: \
         what Galera does not replicate (a table of MyISAM, wsrep_on = OFF) is numbered in the domain of all nodes, so one GTID can be two \
         transactions. Nothing is copied until that is settled; what was copied before is kept and served. {GALERA_SETTLED_BY}; or leave one \
         node alone in `hosts`"
    )
}

/// Why a server whose binary log is kept in a storage engine is not taken for a source, and what helps. By MariaDB's
/// `Docs/replication/binlog.md` and its page "InnoDB-Based Binary Log".
fn log_in_engine(engine: &str) -> String {
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
    fn what_keeps_a_server_from_being_a_source() {
        assert!(REFUSED_BY.iter().all(|name| NAMES.contains(name)), "they are asked for");
        let said = |variables: &[(&str, &'static str)], hosts| {
            let value =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            refusal(value, hosts).map(|refusal| refusal.setting)
        };
        let mariadb =
            [(LOG_ENGINE, ""), ("wsrep_on", "OFF"), ("log_slave_updates", "OFF"), (GALERA_GTIDS, "OFF")];
        assert_eq!((said(&mariadb, 3), said(&[], 3)), (None, None));
        assert_eq!(said(&[(LOG_ENGINE, "innodb")], 1).as_deref(), Some("binlog_storage_engine: innodb"));
        let node = |logs, gtids| [("wsrep_on", "ON"), ("log_slave_updates", logs), (GALERA_GTIDS, gtids)];
        assert_eq!(said(&node("OFF", "ON"), 1).as_deref(), Some("log_slave_updates: OFF"));
        assert_eq!(said(&node("ON", "OFF"), 2).as_deref(), Some("wsrep_gtid_mode: OFF"));
        assert_eq!((said(&node("ON", "OFF"), 1), said(&node("1", "1"), 3)), (None, None));
        let domains = |of_all| {
            let own = [("gtid_domain_id", "0"), (GALERA_DOMAIN, of_all)];
            [&node("ON", "ON")[..], &own].concat()
        };
        assert_eq!(said(&domains("0"), 2).as_deref(), Some("wsrep_gtid_domain_id: 0"));
        assert_eq!((said(&domains("0"), 1), said(&domains("9"), 2)), (None, None));
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
