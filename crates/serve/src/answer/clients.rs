//! What each client sends when it connects, and what it needs to get: read in the clients' sources and in the logs of
//! the servers that they talked to.

use super::made_up::{MARIADB, MYSQL, Server, UUID};
use super::{Answer, SessionState};
use crate::sql::Statements;

/// An answer in a line: OK, the number of an error, or rows with `|` between values and ` / ` between rows.
fn told(answer: &Answer) -> String {
    match answer {
        Answer::Done => "OK".to_owned(),
        Answer::Error(error) => format!("ERROR {}", error.code),
        Answer::Warned(warning) => format!("WARNING {}", warning.code),
        Answer::Act(action) => format!("{action:?}"),
        Answer::Rows(rows) => {
            let row = |row: &super::Row| {
                row.iter()
                    .map(|value| value.as_deref().unwrap_or("NULL").replace('\n', ""))
                    .collect::<Vec<_>>()
                    .join("|")
            };
            rows.rows.iter().map(row).collect::<Vec<_>>().join(" / ")
        }
    }
}

/// Sends statements one after the other in one session.
fn hold(server: &Server, client: &str, statements: &[(&str, &str)]) {
    let mut session = SessionState::default();
    for (sql, expected) in statements {
        let read: Vec<_> = Statements::new(sql.as_bytes(), server.dialect()).collect();
        assert_eq!(read.len(), 1, "{client}: {sql}");
        let got = match &read[0] {
            Ok(statement) => told(&super::answer(statement, &mut session, &server.client(), server)),
            Err(error) => format!("ERROR {}", error.packet().code),
        };
        assert_eq!(got, *expected, "{client}: {sql}");
    }
}

#[test]
fn replicas_of_mysql() {
    hold(
        &MYSQL,
        "9.7",
        &[
            ("SELECT UNIX_TIMESTAMP()", "1700000000"),
            ("SELECT @@GLOBAL.SERVER_ID", "1"),
            ("SET @master_heartbeat_period = 30000001024, @source_heartbeat_period = 30000001024", "OK"),
            (
                "SET @master_binlog_checksum = @@global.binlog_checksum, \
                 @source_binlog_checksum = @@global.binlog_checksum",
                "OK",
            ),
            ("SELECT @source_binlog_checksum", "CRC32"),
            ("SELECT @@GLOBAL.GTID_MODE", "ON"),
            ("SELECT @@GLOBAL.SERVER_UUID", UUID),
            ("SET @slave_uuid = 'a', @replica_uuid = 'a'", "OK"),
            ("SELECT @@global.rpl_semi_sync_source_enabled", "1"),
            ("SET @rpl_semi_sync_replica = 1, @rpl_semi_sync_slave = 1", "OK"),
        ],
    );
    let old = Server { version: "5.7.22-log", ..MYSQL };
    hold(
        &old,
        "5.7",
        &[
            ("SELECT UNIX_TIMESTAMP()", "1700000000"),
            ("SELECT @@GLOBAL.SERVER_ID", "1"),
            ("SET @master_heartbeat_period= 30000001024", "OK"),
            ("SET @master_binlog_checksum= @@global.binlog_checksum", "OK"),
            ("SELECT @master_binlog_checksum", "CRC32"),
            ("SELECT @@GLOBAL.GTID_MODE", "ON"),
            ("SELECT @@GLOBAL.SERVER_UUID", UUID),
            ("SET @slave_uuid= 'a'", "OK"),
            ("SELECT @@global.rpl_semi_sync_master_enabled", "1"),
            ("SET @rpl_semi_sync_slave= 1", "OK"),
            // A newer replica asks for the new name first.
            ("SELECT @@global.rpl_semi_sync_source_enabled", "ERROR 1193"),
        ],
    );
}

#[test]
fn replicas_of_mariadb() {
    hold(
        &MARIADB,
        "11.8",
        &[
            ("SELECT UNIX_TIMESTAMP()", "1700000000"),
            ("SHOW VARIABLES LIKE 'SERVER_ID'", "server_id|1"),
            ("SET @master_heartbeat_period= 30000001024", "OK"),
            ("SET @master_binlog_checksum= @@global.binlog_checksum", "OK"),
            ("SELECT @master_binlog_checksum", "CRC32"),
            ("SET @mariadb_slave_capability=4", "OK"),
            ("SELECT @@GLOBAL.gtid_domain_id", "0"),
            ("SET @slave_connect_state='0-1-5'", "OK"),
            ("SET @slave_gtid_strict_mode=0", "OK"),
            ("SET @slave_gtid_ignore_duplicates=0", "OK"),
            ("SET @slave_until_gtid='0-1-9'", "OK"),
            ("SET skip_replication=1", "OK"),
            ("SELECT binlog_gtid_pos('mysql-bin.000002',300)", "0-1-7"),
            ("SHOW VARIABLES LIKE 'rpl_semi_sync_master_enabled'", "rpl_semi_sync_master_enabled|ON"),
            ("SET @rpl_semi_sync_slave= 1", "OK"),
            ("SELECT @@GLOBAL.gtid_mode", "ERROR 1193"),
        ],
    );
}

#[test]
fn mysqlbinlog_and_command_lines() {
    hold(
        &MYSQL,
        "mysqlbinlog",
        &[
            ("SELECT VERSION()", "9.7.4"),
            ("SET @master_binlog_checksum = 'NONE', @source_binlog_checksum = 'NONE'", "OK"),
        ],
    );
    hold(
        &MARIADB,
        "mariadb-binlog",
        &[
            ("SELECT VERSION()", "11.8.6-MariaDB-log"),
            ("SET @master_binlog_checksum='NONE'", "OK"),
            ("SET @mariadb_slave_capability=4", "OK"),
        ],
    );
    hold(
        &MYSQL,
        "mysql",
        &[
            ("select @@version_comment limit 1", "binlogd, which keeps and serves binary logs"),
            ("select DATABASE(), USER() limit 1", "NULL|repl@10.0.0.1"),
            (
                "select @@character_set_client, @@character_set_connection, @@character_set_server, \
                 @@character_set_database limit 1",
                "utf8mb4|utf8mb4|utf8mb4|utf8mb4",
            ),
            ("SHOW /*!50002 GLOBAL */ STATUS LIKE 'Uptime'", "Uptime|77"),
            ("show /*!40003 GLOBAL*/ variables like 'gtid_mode'", "gtid_mode|ON"),
            ("show session status like 'ssl_cipher'", "Ssl_cipher|TLS_AES_256_GCM_SHA384"),
            ("SHOW BINARY LOGS", "mysql-bin.000001|1000|No / mysql-bin.000002|512|No"),
            ("show processlist", "7|repl|10.0.0.1:5|NULL|Query|0|starting|show processlist"),
            ("kill 7", "Kill { connection_id: 7, query_only: false }"),
            ("show databases", ""),
            ("show warnings", ""),
        ],
    );
}

#[test]
fn connector_java_and_debezium() {
    let connect = "/* mysql-connector-j-9.4.0 (Revision: x) */SELECT  @@session.auto_increment_increment AS \
        auto_increment_increment, @@character_set_client AS character_set_client, @@character_set_connection AS \
        character_set_connection, @@character_set_results AS character_set_results, @@character_set_server AS \
        character_set_server, @@collation_server AS collation_server, @@collation_connection AS collation_connection, \
        @@init_connect AS init_connect, @@interactive_timeout AS interactive_timeout, @@license AS license, \
        @@lower_case_table_names AS lower_case_table_names, @@max_allowed_packet AS max_allowed_packet, \
        @@net_write_timeout AS net_write_timeout, @@performance_schema AS performance_schema, @@sql_mode AS sql_mode, \
        @@system_time_zone AS system_time_zone, @@time_zone AS time_zone, @@transaction_isolation AS \
        transaction_isolation, @@wait_timeout AS wait_timeout";
    let settings = "1|utf8mb4|utf8mb4|utf8mb4|utf8mb4|utf8mb4_general_ci|utf8mb4_general_ci||28800|Apache-2.0|0|\
        16777216|60|0|ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,\
        NO_ENGINE_SUBSTITUTION|UTC|SYSTEM|REPEATABLE-READ|28800";
    hold(
        &MYSQL,
        "connector-j",
        &[
            (connect, settings),
            ("SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci", "OK"),
            ("SET character_set_results = NULL", "OK"),
            ("SELECT @@character_set_results", "NULL"),
            ("SET autocommit=0", "OK"),
            ("SET sql_mode='STRICT_TRANS_TABLES,ONLY_FULL_GROUP_BY'", "OK"),
            ("SET SESSION TRANSACTION READ ONLY", "OK"),
            ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "OK"),
            ("SELECT @@session.transaction_isolation, @@session.transaction_read_only", "READ-COMMITTED|1"),
            ("SET sql_select_limit=DEFAULT", "OK"),
            ("SET SESSION time_zone='+02:00'", "OK"),
            ("SELECT CONNECTION_ID()", "7"),
            ("KILL QUERY 7", "Kill { connection_id: 7, query_only: true }"),
            ("commit", "OK"),
        ],
    );
    hold(
        &MYSQL,
        "mysql-binlog-connector-java",
        &[
            ("show global variables like 'gtid_purged'", "gtid_purged|"),
            ("show binary log status", &format!("mysql-bin.000002|512|||{UUID}:1-9")),
            ("show master status", &format!("mysql-bin.000002|512|||{UUID}:1-9")),
            ("show global variables like 'binlog_checksum'", "binlog_checksum|CRC32"),
            ("set @master_binlog_checksum= @@global.binlog_checksum", "OK"),
            ("set @master_heartbeat_period=60000000000", "OK"),
            ("set net_write_timeout=60", "OK"),
            ("set net_read_timeout=60", "OK"),
            ("select @@server_id", "1"),
            ("SET @mariadb_slave_capability=4", "OK"),
        ],
    );
    hold(
        &MYSQL,
        "debezium",
        &[
            ("SELECT VERSION()", "9.7.4"),
            (
                "SHOW VARIABLES WHERE Variable_name = 'sql_mode'",
                "sql_mode|ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,\
            NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
            ),
            (
                "SHOW VARIABLES WHERE Variable_name IN ('character_set_server','collation_server')",
                "character_set_server|utf8mb4 / collation_server|utf8mb4_general_ci",
            ),
            ("SHOW SESSION STATUS LIKE 'Ssl_version'", "Ssl_version|TLSv1.3"),
            ("SHOW GLOBAL VARIABLES LIKE 'binlog_row_image'", "binlog_row_image|FULL"),
            ("SHOW GLOBAL VARIABLES LIKE 'binlog_format'", "binlog_format|ROW"),
            ("SHOW GLOBAL VARIABLES LIKE 'GTID_MODE'", "gtid_mode|ON"),
            ("SELECT @@global.gtid_purged", ""),
            (&format!("SELECT GTID_SUBTRACT('{UUID}:1-9', '{UUID}:2')"), &format!("{UUID}:1:3-9")),
            (
                "SHOW GRANTS FOR CURRENT_USER",
                "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `repl`@`%`",
            ),
            // The snapshot, which cannot be taken here.
            ("SHOW DATABASES", ""),
            ("START TRANSACTION WITH CONSISTENT SNAPSHOT", "ERROR 1235"),
            ("FLUSH TABLES WITH READ LOCK", "ERROR 1235"),
            ("SELECT * FROM `shop`.`orders`", "ERROR 1235"),
            ("SHOW FULL TABLES IN `shop` where Table_Type = 'BASE TABLE'", "ERROR 1049"),
        ],
    );
    hold(
        &MARIADB,
        "mariadb-connector-j",
        &[
            ("SELECT @@time_zone, @@system_time_zone", "SYSTEM|UTC"),
            ("set autocommit=1,sql_mode=concat(@@sql_mode,',STRICT_TRANS_TABLES'),time_zone='+00:00'", "OK"),
            ("set NAMES utf8mb4", "OK"),
            ("SHOW GLOBAL VARIABLES LIKE 'GTID_BINLOG_POS'", "gtid_binlog_pos|0-1-9"),
        ],
    );
}

#[test]
fn readers_in_go_java_python_and_javascript() {
    hold(
        &MYSQL,
        "go-mysql",
        &[
            ("SHOW GLOBAL VARIABLES LIKE 'BINLOG_CHECKSUM'", "binlog_checksum|CRC32"),
            ("SET @master_binlog_checksum='CRC32', @source_binlog_checksum='CRC32'", "OK"),
            (
                "SHOW VARIABLES WHERE Variable_name IN ('rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled')",
                "rpl_semi_sync_source_enabled|ON",
            ),
            ("SET @master_heartbeat_period = 1, @source_heartbeat_period = 1", "OK"),
            ("SHOW GLOBAL VARIABLES LIKE 'binlog_format';", "binlog_format|ROW"),
            ("SHOW GLOBAL VARIABLES LIKE 'binlog_row_image'", "binlog_row_image|FULL"),
            ("SHOW BINARY LOG STATUS", &format!("mysql-bin.000002|512|||{UUID}:1-9")),
            ("SELECT @@GLOBAL.GTID_EXECUTED", &format!("{UUID}:1-9")),
            ("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci", "OK"),
            ("KILL 7", "Kill { connection_id: 7, query_only: false }"),
            ("KILL 8", "ERROR 1095"),
            ("KILL 9", "ERROR 1094"),
            ("FLUSH BINARY LOGS", "ERROR 1235"),
            ("show full columns from `a`.`b`", "ERROR 1235"),
        ],
    );
    hold(
        &MARIADB,
        "go-mysql",
        &[
            ("SHOW BINLOG STATUS", "mysql-bin.000002|512||"),
            ("SELECT @@GLOBAL.gtid_current_pos", "0-1-9"),
            ("SET @slave_gtid_strict_mode=1", "OK"),
        ],
    );
    hold(
        &MYSQL,
        "canal",
        &[
            ("set wait_timeout=9999999", "OK"),
            ("set net_write_timeout=7200", "OK"),
            ("set net_read_timeout=7200", "OK"),
            ("set names 'binary'", "OK"),
            ("set @master_binlog_checksum= @@global.binlog_checksum", "OK"),
            ("set @slave_uuid=uuid()", "OK"),
            ("SET @mariadb_slave_capability='4'", "OK"),
            ("SET @master_heartbeat_period=15000000000", "OK"),
            ("show variables like 'binlog_format'", "binlog_format|ROW"),
            ("show variables like 'binlog_row_image'", "binlog_row_image|FULL"),
            ("select @@global.binlog_checksum", "CRC32"),
            ("show variables like 'server_id'", "server_id|1"),
            (
                "show binlog events limit 1",
                "BinlogEvents { file: \"mysql-bin.000001\", from: 4, end: 1000, limit: Limit { offset: 0, rows: 1 } }",
            ),
        ],
    );
    hold(
        &MYSQL,
        "python-mysql-replication",
        &[
            ("SET AUTOCOMMIT = 1", "OK"),
            ("SET NAMES utf8", "OK"),
            ("SHOW GLOBAL VARIABLES LIKE 'BINLOG_CHECKSUM'", "binlog_checksum|CRC32"),
            ("SET @master_binlog_checksum= @@global.binlog_checksum", "OK"),
            ("SET @slave_uuid = 'a', @replica_uuid = 'a'", "OK"),
            ("SET @master_heartbeat_period = 10000000000", "OK"),
            ("SET @mariadb_slave_capability=4", "OK"),
            ("SHOW MASTER STATUS", &format!("mysql-bin.000002|512|||{UUID}:1-9")),
            ("SHOW VARIABLES LIKE 'BINLOG_ROW_METADATA';", "binlog_row_metadata|MINIMAL"),
            ("SELECT @@version", "9.7.4"),
        ],
    );
    hold(
        &MYSQL,
        "zongji",
        &[
            ("select @@GLOBAL.binlog_checksum as checksum", "CRC32"),
            ("set @master_binlog_checksum=@@global.binlog_checksum", "OK"),
            ("SELECT 1", "1"),
            ("SHOW BINARY LOGS", "mysql-bin.000001|1000|No / mysql-bin.000002|512|No"),
            (
                "SELECT COLUMN_NAME, COLUMN_TYPE FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_SCHEMA='a'",
                "ERROR 1235",
            ),
        ],
    );
}

/// What binlogd sends to its own source, which may be a binlogd.
#[test]
fn another_binlogd() {
    let uptime = ("SHOW GLOBAL STATUS LIKE 'Uptime'", "Uptime|77");
    hold(
        &MYSQL,
        "binlogd",
        &[
            ("SELECT @@global.server_id, @@version", "1|9.7.4"),
            ("SHOW GLOBAL VARIABLES LIKE 'server_uuid'", &format!("server_uuid|{UUID}")),
            ("SHOW GLOBAL VARIABLES LIKE 'read_only'", "read_only|ON"),
            ("SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync_source_enabled'", "rpl_semi_sync_source_enabled|ON"),
            ("SELECT @@global.gtid_executed", &format!("{UUID}:1-9")),
            (
                "SELECT SHA2(@@global.gtid_executed, 256)",
                "d0f802266de2663100f0449e336f5661527ad25bf56e483b81a111f6eb1448c9",
            ),
            (
                "SHOW GLOBAL STATUS LIKE 'rpl_semi_sync%'",
                "Rpl_semi_sync_source_clients|1 / Rpl_semi_sync_source_no_tx|3 / Rpl_semi_sync_source_status|ON / \
             Rpl_semi_sync_source_wait_sessions|0 / Rpl_semi_sync_source_yes_tx|2",
            ),
            ("SHOW GLOBAL STATUS LIKE 'rpl_semi_sync%wait_sessions'", "Rpl_semi_sync_source_wait_sessions|0"),
            (
                "SHOW GLOBAL VARIABLES WHERE Variable_name LIKE 'rpl_semi_sync%enabled' OR \
                 Variable_name IN ('gtid_mode', 'nothing')",
                "gtid_mode|ON / rpl_semi_sync_source_enabled|ON",
            ),
            ("SHOW REPLICAS", "12|reader|3306|1|c0ffee"),
            ("SELECT CURRENT_USER()", "repl@%"),
            uptime,
        ],
    );
    hold(
        &MARIADB,
        "binlogd",
        &[
            ("SELECT @@global.server_id, @@version", "1|11.8.6-MariaDB-log"),
            ("SELECT @@global.gtid_binlog_state", "0-1-9,0-2-8"),
            ("SELECT @@global.gtid_slave_pos", ""),
            ("SHOW SLAVE HOSTS", "12|reader|3306|1"),
            (
                "SELECT COUNT(*) FROM information_schema.processlist WHERE command = 'Binlog Dump' AND \
             user = SUBSTRING_INDEX(USER(), '@', 1)",
                "ERROR 1235",
            ),
            uptime,
        ],
    );
}
