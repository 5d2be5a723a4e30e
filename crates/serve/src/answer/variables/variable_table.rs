//! The system variables that binlogd has: those that replicas, readers of binary logs, drivers and command-line clients
//! ask for. Kinds and scopes as MySQL 9.7, 8.0 and 5.7 and MariaDB 11.8 have them.

use codec::ServerKind;

/// Which servers have a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::answer) enum Servers {
    Both,
    Mariadb,
    /// MySQL from one version on and before another, each as 80026 for 8.0.26.
    Mysql(u32, u32),
    /// MariaDB, and MySQL before a version.
    Older(u32),
}

impl Servers {
    pub(in crate::answer) fn include(self, kind: ServerKind, version: u32) -> bool {
        match (self, kind) {
            (Servers::Both, _) | (Servers::Mariadb | Servers::Older(_), ServerKind::MariaDb) => true,
            (Servers::Mysql(..), ServerKind::MariaDb) | (Servers::Mariadb, ServerKind::MySql) => false,
            (Servers::Mysql(from, below), ServerKind::MySql) => (from..below).contains(&version),
            (Servers::Older(below), ServerKind::MySql) => version < below,
        }
    }
}

/// Where a variable has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::answer) enum Held {
    /// For the server alone.
    Global,
    /// For the server alone, and never set.
    ReadOnly,
    /// For the server, and for each session.
    Both,
    /// For each session alone.
    Session,
}

/// What values a variable takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::answer) enum Kind {
    Text,
    Integer,
    /// `ON` and `OFF` in SHOW, 1 and 0 in SELECT.
    Boolean,
    CharacterSet,
    Collation,
    TimeZone,
    SqlMode,
    Isolation,
}

/// Where the global value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::answer) enum Origin {
    /// Always this.
    Fixed(&'static str),
    /// Always this: for MySQL, for MariaDB.
    Either(&'static str, &'static str),
    /// What the source said; where it was not asked, this.
    Source(&'static str),
    /// The same: for MySQL, for MariaDB.
    SourceEither(&'static str, &'static str),
    /// A fact of the moment.
    Fact(Fact),
}

/// Facts that are values of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::answer) enum Fact {
    Version,
    VersionOfEngine,
    ServerId,
    ServerUuid,
    GtidExecuted,
    GtidPurged,
    GtidBinlogState,
    Hostname,
    Port,
    MaxAllowedPacket,
    SemiSyncEnabled,
    SemiSyncTimeout,
    SemiSyncCount,
    WaitTimeout,
    NetWriteTimeout,
    ConnectionsMax,
    ConnectionId,
    InTransaction,
    Timestamp,
    ErrorCount,
    RequireSecureTransport,
    Timelines,
    History,
}

/// One variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::answer) struct Variable {
    pub(in crate::answer) name: &'static str,
    pub(in crate::answer) servers: Servers,
    pub(in crate::answer) held: Held,
    pub(in crate::answer) kind: Kind,
    pub(in crate::answer) origin: Origin,
}

const fn v(name: &'static str, servers: Servers, held: Held, kind: Kind, origin: Origin) -> Variable {
    Variable { name, servers, held, kind, origin }
}

use Held::{Both, Global, ReadOnly, Session};
use Kind::{Boolean, CharacterSet, Collation, Integer, Isolation, SqlMode, Text, TimeZone};
use Origin::{Either, Fixed, Source, SourceEither};

const ALL: Servers = Servers::Both;
const MARIADB: Servers = Servers::Mariadb;
const MYSQL: Servers = Servers::Mysql(0, u32::MAX);
/// MySQL since the words source and replica are the names of variables.
const NEW_WORDS: Servers = Servers::Mysql(80_026, u32::MAX);
/// MariaDB, and MySQL before.
const OLD_WORDS: Servers = Servers::Older(80_026);
const BEFORE_8: Servers = Servers::Older(80_003);

const ISOLATION: Origin = Fixed("REPEATABLE-READ");
const SQL_MODE_MYSQL: &str = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,\
                              ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";
const SQL_MODE_MARIADB: &str =
    "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION";
/// 2^64 - 1, no limit.
const UNLIMITED: Origin = Fixed("18446744073709551615");

/// All of them, in the order of their names, as SHOW VARIABLES has them.
pub(in crate::answer) const VARIABLES: &[Variable] = &[
    v("auto_increment_increment", ALL, Both, Integer, Source("1")),
    v("auto_increment_offset", ALL, Both, Integer, Source("1")),
    v("autocommit", ALL, Both, Boolean, Fixed("ON")),
    v("binlog_annotate_row_events", MARIADB, Both, Boolean, Source("ON")),
    v("binlog_checksum", ALL, Global, Text, Source("CRC32")),
    v("binlog_format", ALL, Both, Text, Source("ROW")),
    v("binlog_row_image", ALL, Both, Text, Source("FULL")),
    v("binlog_row_metadata", ALL, Global, Text, SourceEither("MINIMAL", "NO_LOG")),
    v("binlog_row_value_options", MYSQL, Both, Text, Source("")),
    v("binlog_rows_query_log_events", MYSQL, Both, Boolean, Source("OFF")),
    v("binlog_transaction_compression", MYSQL, Both, Boolean, Source("OFF")),
    // Ours: by these binlogds know each other.
    v("binlogd_history", ALL, ReadOnly, Text, Origin::Fact(Fact::History)),
    v("binlogd_timelines", ALL, ReadOnly, Text, Origin::Fact(Fact::Timelines)),
    v("character_set_client", ALL, Both, CharacterSet, Fixed("utf8mb4")),
    v("character_set_connection", ALL, Both, CharacterSet, Fixed("utf8mb4")),
    v("character_set_database", ALL, Both, CharacterSet, Source("utf8mb4")),
    v("character_set_filesystem", ALL, Both, CharacterSet, Fixed("binary")),
    v("character_set_results", ALL, Both, CharacterSet, Fixed("utf8mb4")),
    v("character_set_server", ALL, Both, CharacterSet, Source("utf8mb4")),
    v("character_set_system", ALL, ReadOnly, Text, Fixed("utf8mb3")),
    v("collation_connection", ALL, Both, Collation, Fixed("utf8mb4_general_ci")),
    v("collation_database", ALL, Both, Collation, Source("utf8mb4_general_ci")),
    v("collation_server", ALL, Both, Collation, Source("utf8mb4_general_ci")),
    v("default_storage_engine", ALL, Both, Text, Source("InnoDB")),
    v("enforce_gtid_consistency", MYSQL, Global, Text, Source("ON")),
    v("error_count", ALL, Session, Integer, Origin::Fact(Fact::ErrorCount)),
    v("event_scheduler", ALL, Global, Text, Fixed("OFF")),
    v("foreign_key_checks", ALL, Both, Boolean, Fixed("ON")),
    v("group_concat_max_len", ALL, Both, Integer, Source("1024")),
    v("gtid_binlog_pos", MARIADB, ReadOnly, Text, Origin::Fact(Fact::GtidExecuted)),
    v("gtid_binlog_state", MARIADB, Global, Text, Origin::Fact(Fact::GtidBinlogState)),
    v("gtid_current_pos", MARIADB, ReadOnly, Text, Origin::Fact(Fact::GtidExecuted)),
    v("gtid_domain_id", MARIADB, Both, Integer, Source("0")),
    v("gtid_executed", MYSQL, ReadOnly, Text, Origin::Fact(Fact::GtidExecuted)),
    v("gtid_ignore_duplicates", MARIADB, Global, Boolean, Fixed("OFF")),
    v("gtid_mode", MYSQL, Global, Text, Source("ON")),
    v("gtid_next", MYSQL, Session, Text, Fixed("AUTOMATIC")),
    v("gtid_owned", MYSQL, ReadOnly, Text, Fixed("")),
    v("gtid_purged", MYSQL, Global, Text, Origin::Fact(Fact::GtidPurged)),
    v("gtid_slave_pos", MARIADB, Global, Text, Fixed("")),
    v("gtid_strict_mode", MARIADB, Global, Boolean, Source("OFF")),
    v("have_query_cache", ALL, ReadOnly, Text, Fixed("NO")),
    v("have_ssl", ALL, ReadOnly, Text, Fixed("YES")),
    v("hostname", ALL, ReadOnly, Text, Origin::Fact(Fact::Hostname)),
    v("identity", ALL, Session, Integer, Fixed("0")),
    v("in_transaction", MARIADB, Session, Integer, Origin::Fact(Fact::InTransaction)),
    v("init_connect", ALL, Global, Text, Fixed("")),
    v("innodb_lock_wait_timeout", ALL, Both, Integer, Fixed("50")),
    v("innodb_version", MYSQL, ReadOnly, Text, Origin::Fact(Fact::VersionOfEngine)),
    v("insert_id", ALL, Session, Integer, Fixed("0")),
    v("interactive_timeout", ALL, Both, Integer, Origin::Fact(Fact::WaitTimeout)),
    v("last_gtid", MARIADB, Session, Text, Fixed("")),
    v("last_insert_id", ALL, Session, Integer, Fixed("0")),
    v("lc_messages", ALL, Both, Text, Fixed("en_US")),
    v("lc_time_names", ALL, Both, Text, Fixed("en_US")),
    v("license", ALL, ReadOnly, Text, Fixed("Apache-2.0")),
    v("lock_wait_timeout", ALL, Both, Integer, Either("31536000", "86400")),
    v("log_bin", ALL, ReadOnly, Boolean, Fixed("ON")),
    v("log_bin_compress", MARIADB, Global, Boolean, Source("OFF")),
    v("log_replica_updates", NEW_WORDS, ReadOnly, Boolean, Fixed("ON")),
    v("log_slave_updates", ALL, ReadOnly, Boolean, Fixed("ON")),
    v("lower_case_file_system", ALL, ReadOnly, Boolean, Fixed("OFF")),
    v("lower_case_table_names", ALL, ReadOnly, Integer, Source("0")),
    v("max_allowed_packet", ALL, Both, Integer, Origin::Fact(Fact::MaxAllowedPacket)),
    v("max_binlog_size", ALL, Global, Integer, Source("1073741824")),
    v("max_connections", ALL, Global, Integer, Origin::Fact(Fact::ConnectionsMax)),
    v("max_execution_time", MYSQL, Both, Integer, Fixed("0")),
    v("max_statement_time", MARIADB, Both, Text, Fixed("0.000000")),
    v("net_buffer_length", ALL, Both, Integer, Fixed("16384")),
    v("net_read_timeout", ALL, Both, Integer, Fixed("30")),
    v("net_write_timeout", ALL, Both, Integer, Origin::Fact(Fact::NetWriteTimeout)),
    v("performance_schema", ALL, ReadOnly, Boolean, Fixed("OFF")),
    v("port", ALL, ReadOnly, Integer, Origin::Fact(Fact::Port)),
    v("protocol_version", ALL, ReadOnly, Integer, Fixed("10")),
    v("pseudo_thread_id", ALL, Session, Integer, Origin::Fact(Fact::ConnectionId)),
    v("query_cache_size", BEFORE_8, Global, Integer, Fixed("0")),
    v("query_cache_type", BEFORE_8, Both, Text, Fixed("OFF")),
    v("read_only", ALL, Global, Boolean, Fixed("ON")),
    v("report_host", ALL, ReadOnly, Text, Fixed("")),
    v("report_port", ALL, ReadOnly, Integer, Origin::Fact(Fact::Port)),
    v("require_secure_transport", ALL, Global, Boolean, Origin::Fact(Fact::RequireSecureTransport)),
    v("rpl_semi_sync_master_enabled", OLD_WORDS, Global, Boolean, Origin::Fact(Fact::SemiSyncEnabled)),
    v("rpl_semi_sync_master_timeout", OLD_WORDS, Global, Integer, Origin::Fact(Fact::SemiSyncTimeout)),
    v(
        "rpl_semi_sync_master_wait_for_slave_count",
        Servers::Mysql(50_703, 80_026),
        Global,
        Integer,
        Origin::Fact(Fact::SemiSyncCount),
    ),
    v("rpl_semi_sync_master_wait_no_slave", OLD_WORDS, Global, Boolean, Fixed("ON")),
    v("rpl_semi_sync_master_wait_point", OLD_WORDS, Global, Text, Fixed("AFTER_SYNC")),
    v("rpl_semi_sync_source_enabled", NEW_WORDS, Global, Boolean, Origin::Fact(Fact::SemiSyncEnabled)),
    v("rpl_semi_sync_source_timeout", NEW_WORDS, Global, Integer, Origin::Fact(Fact::SemiSyncTimeout)),
    v(
        "rpl_semi_sync_source_wait_for_replica_count",
        NEW_WORDS,
        Global,
        Integer,
        Origin::Fact(Fact::SemiSyncCount),
    ),
    v("rpl_semi_sync_source_wait_no_replica", NEW_WORDS, Global, Boolean, Fixed("ON")),
    v("rpl_semi_sync_source_wait_point", NEW_WORDS, Global, Text, Fixed("AFTER_SYNC")),
    v("server_id", ALL, Global, Integer, Origin::Fact(Fact::ServerId)),
    v("server_id_bits", MYSQL, ReadOnly, Integer, Fixed("32")),
    v("server_uuid", MYSQL, ReadOnly, Text, Origin::Fact(Fact::ServerUuid)),
    v("session_track_gtids", MYSQL, Both, Text, Fixed("OFF")),
    v("session_track_schema", ALL, Both, Boolean, Fixed("OFF")),
    v("session_track_system_variables", ALL, Both, Text, Fixed("")),
    v("skip_networking", ALL, ReadOnly, Boolean, Fixed("OFF")),
    v("skip_replication", MARIADB, Session, Boolean, Fixed("OFF")),
    v("sql_auto_is_null", ALL, Both, Boolean, Fixed("OFF")),
    v("sql_log_bin", ALL, Session, Boolean, Fixed("ON")),
    v("sql_mode", ALL, Both, SqlMode, SourceEither(SQL_MODE_MYSQL, SQL_MODE_MARIADB)),
    v("sql_notes", ALL, Both, Boolean, Fixed("ON")),
    v("sql_quote_show_create", ALL, Both, Boolean, Fixed("ON")),
    v("sql_safe_updates", ALL, Both, Boolean, Fixed("OFF")),
    v("sql_select_limit", ALL, Both, Integer, UNLIMITED),
    v("sql_warnings", ALL, Both, Boolean, Fixed("OFF")),
    v("ssl_cipher", ALL, Global, Text, Fixed("")),
    v("storage_engine", MARIADB, Both, Text, Source("InnoDB")),
    v("super_read_only", MYSQL, Global, Boolean, Fixed("ON")),
    v("sync_binlog", ALL, Global, Integer, Fixed("1")),
    v("system_time_zone", ALL, ReadOnly, Text, Fixed("UTC")),
    v("time_zone", ALL, Both, TimeZone, Fixed("SYSTEM")),
    v("timestamp", ALL, Session, Text, Origin::Fact(Fact::Timestamp)),
    v("transaction_isolation", ALL, Both, Isolation, ISOLATION),
    v("transaction_read_only", ALL, Both, Boolean, Fixed("OFF")),
    v("tx_isolation", BEFORE_8, Both, Isolation, ISOLATION),
    v("tx_read_only", BEFORE_8, Both, Boolean, Fixed("OFF")),
    v("unique_checks", ALL, Both, Boolean, Fixed("ON")),
    v("version", ALL, ReadOnly, Text, Origin::Fact(Fact::Version)),
    v("version_comment", ALL, ReadOnly, Text, Fixed("binlogd, which keeps and serves binary logs")),
    v("version_compile_machine", ALL, ReadOnly, Text, Fixed(std::env::consts::ARCH)),
    v("version_compile_os", ALL, ReadOnly, Text, Fixed("Linux")),
    v("wait_timeout", ALL, Both, Integer, Origin::Fact(Fact::WaitTimeout)),
    v("warning_count", ALL, Session, Integer, Origin::Fact(Fact::ErrorCount)),
    v("wsrep_on", MARIADB, Both, Boolean, Fixed("OFF")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_each_stands_once() {
        let names: Vec<_> = VARIABLES.iter().map(|variable| variable.name).collect();
        assert!(names.is_sorted_by(|left, right| left < right), "{names:?}");
    }

    #[test]
    fn servers_by_version() {
        assert!(
            NEW_WORDS.include(ServerKind::MySql, 80_026) && !NEW_WORDS.include(ServerKind::MySql, 80_025)
        );
        assert!(!NEW_WORDS.include(ServerKind::MariaDb, 110_806));
        assert!(
            OLD_WORDS.include(ServerKind::MySql, 80_025) && OLD_WORDS.include(ServerKind::MariaDb, 110_806)
        );
        assert!(!MARIADB.include(ServerKind::MySql, 80_025));
    }
}
