//! Answers beyond those that clients need when they connect.

use super::made_up::{ADMINISTERED, MARIADB, MYSQL, Server, UUID};
use super::*;
use crate::sql::{Statements, parse};
use codec::ServerKind;
use config::Privileges;
use proptest::prelude::*;
use std::time::Duration;

fn ask_in(server: &Server, session: &mut SessionState, sql: &str) -> Answer {
    let statement = parse(sql.as_bytes(), session.dialect(server.dialect()))
        .unwrap_or_else(|error| panic!("{sql:.80}: {error}"));
    answer(&statement, session, &server.client(), server)
}

fn ask(server: &Server, sql: &str) -> Answer {
    ask_in(server, &mut SessionState::default(), sql)
}

fn rows(answer: Answer) -> Rows {
    match answer {
        Answer::Rows(rows) => rows,
        other => panic!("{other:?}"),
    }
}

fn error(answer: Answer) -> (u16, String) {
    match answer {
        Answer::Error(error) => (error.code, error.message),
        other => panic!("{other:?}"),
    }
}

/// The values of the one row, NULL as such.
fn row_in(server: &Server, session: &mut SessionState, sql: &str) -> Vec<String> {
    let rows = rows(ask_in(server, session, sql));
    assert_eq!(rows.rows.len(), 1, "{sql}");
    assert_eq!(rows.rows[0].len(), rows.columns.len(), "{sql}");
    rows.rows[0].iter().map(|value| value.clone().unwrap_or_else(|| "NULL".to_owned())).collect()
}

fn row(sql: &str) -> Vec<String> {
    row_in(&MYSQL, &mut SessionState::default(), sql)
}

#[test]
fn expressions_are_computed_as_by_a_server() {
    let columns = |sql: &str| row(&format!("select {sql}")).join("|");
    assert_eq!(
        columns("if(1,2,3), ifnull(null,2), concat('a',1), nullif(1,1), coalesce(null,3), 1=1, 1+1"),
        "2|2|a1|NULL|3|1|2"
    );
    assert_eq!(
        columns("1 + 2 * 3 - 4, -5, - '3', not 0, not null, 1.5, 'a' 'b', 0x41, true"),
        "3|-5|-3|1|NULL|1.5|ab|A|1"
    );
    assert_eq!(columns("null and 0, null or 1, null = null, null <=> null, 1 <=> null"), "0|1|NULL|1|0");
    assert_eq!(
        columns("'a' like 'A%', 2 in (1, 2), 2 not in (1, null), @@global.gtid_mode is not null"),
        "1|1|NULL|1"
    );
    assert_eq!(
        columns(
            "now(), now(3), curdate(), curtime(), utc_timestamp(), unix_timestamp('2023-11-14 22:13:20')"
        ),
        "2023-11-14 22:13:20|2023-11-14 22:13:20.123|2023-11-14|22:13:20|2023-11-14 22:13:20|1700000000"
    );
    assert_eq!(
        columns("now() - interval 1 day, date_add('2023-01-01', interval 1 hour), 'x' + interval 1 day"),
        "2023-11-13 22:13:20|2023-01-01 01:00:00|NULL"
    );
    assert_eq!(columns("uuid()"), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    assert_eq!(
        columns("sha2('abc', 256), sha2('abc', 7), upper('a'), lower('B')"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad|NULL|A|b"
    );
    assert_eq!(
        columns(&format!("gtid_subset('{UUID}:2', '{UUID}:1-5'), gtid_subset('{UUID}:2-6', '{UUID}:1-5')")),
        "1|0"
    );
    assert_eq!(
        columns("current_user, user(), connection_id(), database(), version()"),
        "repl@%|repl@10.0.0.1|7|NULL|9.7.4"
    );
    assert!(rows(ask(&MYSQL, "select 1 limit 0")).rows.is_empty());
    assert!(rows(ask(&MYSQL, "select 1 from dual where 1 = 2")).rows.is_empty());
}

#[test]
fn the_servers_own_databases_may_be_used() {
    let mut session = SessionState::default();
    let mut databases = |sql: &str| match ask_in(&MYSQL, &mut session, sql) {
        Answer::Error(error) => error.code.to_string(),
        _ => row_in(&MYSQL, &mut session, "select database()").join(""),
    };
    assert_eq!(databases("use information_schema"), "information_schema");
    assert_eq!(databases("use Performance_Schema"), "Performance_Schema");
    assert_eq!(databases("use shop"), "1049");
    assert_eq!(databases("select 1"), "Performance_Schema", "an unknown one changes nothing");
    session.use_database(None);
    assert_eq!(row_in(&MYSQL, &mut session, "select schema()"), ["NULL"]);
}

#[test]
fn what_is_said_of_tls() {
    assert_eq!(row("select @@ssl_cipher, @@global.require_secure_transport"), ["", "1"]);
    let shown = |sql: &str| rows(ask(&MYSQL, sql)).rows[0][1].clone().unwrap();
    assert_eq!(shown("show status like 'ssl_cipher'"), "TLS_AES_256_GCM_SHA384");
    assert_eq!(shown("show variables like 'require_secure_transport'"), "ON");
}

#[test]
fn numbers_are_columns_of_numbers() {
    let kinds =
        |sql: &str| rows(ask(&MYSQL, sql)).columns.into_iter().map(|column| column.kind).collect::<Vec<_>>();
    use ColumnKind::{Integer, Text, Unsigned};
    assert_eq!(
        kinds("select @@server_id, @@autocommit, @@version, 1, 'a', null, @x"),
        [Integer, Integer, Text, Integer, Text, Text, Text]
    );
    assert_eq!(kinds("show binary logs"), [Text, Unsigned, Text]);
    assert_eq!(kinds("show master status")[..2], [Text, Unsigned]);
}

/// Numbers and texts as MySQL 9.7 gives them.
#[test]
fn what_cannot_be_computed_is_an_error_of_the_server() {
    for (sql, code) in [
        ("select @@nosuch", 1193),
        ("select @@mysql.server_id", 1193),
        ("select @@session.server_id", 1238),
        ("select @@global.warning_count", 1238),
        ("select a", 1054),
        ("select foo()", 1305),
        ("select version(1)", 1582),
        ("select now('x')", 1582),
        ("select 18446744073709551615 + 1", 1690),
        ("select 1.5 + 1", 1235),
        ("select gtid_subset('a', 'b')", 1772),
        ("show variables where nosuch = 1", 1054),
        ("show databases where nosuch = 1", 1054),
        ("use shop", 1049),
        ("show tables", 1046),
        ("show tables from shop", 1049),
        ("kill 9999", 1094),
        ("kill -1", 1094),
        ("set nosuch = 1", 1193),
        ("set server_id = 3", 1229),
        ("set version = '3'", 1238),
        ("set global sql_log_bin = 0", 1238),
        ("set global server_id = 3", 1227),
        ("set global transaction isolation level serializable", 1227),
        ("set autocommit = banana", 1231),
        ("set wait_timeout = abc", 1232),
        ("set sql_mode = 'foo'", 1231),
        ("set transaction_isolation = 'x'", 1231),
        ("set time_zone = 'Mars/Base'", 1298),
        ("set sql_mode = null", 1231),
        ("set names foo", 1115),
        ("set names utf8mb4 collate latin1_bin", 1253),
        ("set names utf8mb4 collate foo", 1273),
        ("show replica status for channel 'x'", 3074),
        ("show grants for 'root'@'%'", 1141),
        ("show binlog events in 'nosuch'", 1220),
        ("purge binary logs to 'mysql-bin.000001'", 1227),
        ("stop replica", 1227),
        ("flush logs", 1235),
        ("change replication source to source_host = 'x'", 1235),
        ("insert into t values (1)", 1235),
    ] {
        assert_eq!(error(ask(&MYSQL, sql)).0, code, "{sql}");
    }
    assert_eq!(error(ask(&MARIADB, "show slave 'x' status")).0, 1617);
    assert_eq!(error(ask(&MARIADB, "select gtid_subset(1, 2)")).0, 1305);
    // MariaDB gives the global value.
    assert_eq!(row_in(&MARIADB, &mut SessionState::default(), "select @@session.server_id"), ["1"]);
    let (_, message) = error(ask(&MYSQL, "select * from orders"));
    assert!(message.contains("snapshot"), "{message}");
}

#[test]
fn what_is_set_is_kept_by_the_session() {
    let mut session = SessionState::default();
    let mut row = |sql: &str| row_in(&MYSQL, &mut session, sql);
    assert_eq!(row("select @a"), ["NULL"]);
    let mut session = SessionState::default();
    // All values are those from before the statement, as MySQL 9.7 and MariaDB 11.8 do.
    assert_eq!(ask_in(&MYSQL, &mut session, "set @a = 1, @B := @a, @`c d` = 'x'"), Answer::Done);
    assert_eq!(row_in(&MYSQL, &mut session, "select @A, @b, @`C d`"), ["1", "NULL", "x"]);
    assert_eq!(session.user_variable_of(&["b", "a"]), Some(&crate::sql::Value::Integer(1)));
    // A statement that fails changes nothing.
    assert_eq!(error(ask_in(&MYSQL, &mut session, "set @a = 2, nosuch = 1")).0, 1193);
    assert_eq!(row_in(&MYSQL, &mut session, "select @a"), ["1"]);

    ask_in(&MYSQL, &mut session, "set names latin1, wait_timeout = 5, tx_isolation = 'serializable'");
    assert_eq!(error(ask_in(&MYSQL, &mut session, "select @@tx_isolation")).0, 1193);
    ask_in(
        &MYSQL,
        &mut session,
        "set names latin1, wait_timeout = 5, transaction_isolation = 'serializable'",
    );
    let select =
        "select @@character_set_client, @@collation_connection, @@wait_timeout, @@transaction_isolation";
    assert_eq!(row_in(&MYSQL, &mut session, select), ["latin1", "latin1_swedish_ci", "5", "SERIALIZABLE"]);
    assert_eq!(
        row_in(&MYSQL, &mut session, "select @@global.wait_timeout, @@global.character_set_client"),
        ["28800", "utf8mb4"]
    );
    assert_eq!(session.wait_timeout(), Some(Duration::from_secs(5)));
    ask_in(&MYSQL, &mut session, "set wait_timeout = default, names default");
    assert_eq!(row_in(&MYSQL, &mut session, select)[..3], ["utf8mb4", "utf8mb4_general_ci", "28800"]);
    ask_in(&MYSQL, &mut session, "set character_set_connection = utf8mb3");
    assert_eq!(row_in(&MYSQL, &mut session, select)[1], "utf8mb3_general_ci");

    ask_in(&MYSQL, &mut session, "set time_zone = '+01:00'");
    assert_eq!(row_in(&MYSQL, &mut session, "select now()"), ["2023-11-14 23:13:20"]);
    assert_eq!(session.server_status(), 2);
    ask_in(&MYSQL, &mut session, "set autocommit = off");
    ask_in(&MYSQL, &mut session, "begin");
    assert_eq!(session.server_status(), 1);
    ask_in(&MYSQL, &mut session, "set sql_mode = ansi");
    assert_eq!(rows(ask_in(&MYSQL, &mut session, "select 1 as \"a b\"")).columns[0].title, "a b");
    assert!(session.dialect(MYSQL.dialect()).ansi_quotes);
}

#[test]
fn a_session_keeps_no_more_than_it_may() {
    let mut session = SessionState::default();
    let long = format!("set @a = '{}'", "x".repeat(USER_VARIABLES_BYTES_MAX));
    assert_eq!(error(ask_in(&MYSQL, &mut session, &long)).0, 1235);
    for number in 0..USER_VARIABLES_MAX {
        assert_eq!(ask_in(&MYSQL, &mut session, &format!("set @a{number} = 1")), Answer::Done);
    }
    assert_eq!(error(ask_in(&MYSQL, &mut session, "set @one_more = 1")).0, 1235);
    assert_eq!(ask_in(&MYSQL, &mut session, "set @a0 = 2"), Answer::Done);
}

#[test]
fn no_statement_computes_without_a_bound() {
    let mut session = SessionState::default();
    ask_in(&MYSQL, &mut session, &format!("set @a = '{}'", "x".repeat(USER_VARIABLES_BYTES_MAX / 2)));
    let many = |one: &str| vec![one; 4_000].join(",");
    for sql in [
        format!("select {}", many("@a")),
        format!("select {}", many("sha2(@a, 0)")),
        format!("select concat({})", many("@a")),
        format!("do @a in ({})", many("1")),
        format!("do '{}' like '{}'", "a".repeat(1 << 19), "%a".repeat(500)),
        format!("do 'a' like '{}'", "%".repeat(2_000)),
        format!("show variables where value in ({})", many("@a")),
    ] {
        assert_eq!(error(ask_in(&MYSQL, &mut session, &sql)).0, 1235, "{}", &sql[..40]);
    }
}

#[test]
fn the_statement_before_is_what_warnings_tell_of() {
    let mut session = SessionState::default();
    ask_in(&MYSQL, &mut session, "select @@nosuch");
    assert_eq!(
        row_in(&MYSQL, &mut session, "show warnings"),
        ["Error", "1193", "Unknown system variable 'nosuch'"]
    );
    assert_eq!(row_in(&MYSQL, &mut session, "show count(*) errors"), ["1"]);
    assert!(rows(ask_in(&MYSQL, &mut session, "show warnings limit 0")).rows.is_empty());
    assert_eq!(row_in(&MYSQL, &mut session, "select @@error_count"), ["1"]);
    assert!(rows(ask_in(&MYSQL, &mut session, "show warnings")).rows.is_empty());
    session.remember(&crate::sql::SqlError::Empty.packet());
    assert_eq!(rows(ask_in(&MYSQL, &mut session, "show errors")).rows.len(), 1);
}

#[test]
fn variables_are_shown_by_pattern_condition_and_scope() {
    let names = |server: &Server, sql: &str| {
        rows(ask(server, sql)).rows.into_iter().map(|row| row[0].clone().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(names(&MYSQL, "show variables like 'server\\_id'"), ["server_id"]);
    assert_eq!(names(&MYSQL, "show global variables like 'SQL_LOG%'"), [""; 0]);
    assert_eq!(names(&MYSQL, "show variables like 'sql_log%'"), ["sql_log_bin"]);
    assert_eq!(
        names(&MYSQL, "show variables where `variable_name` in ('server_id', 'LOG_BIN') and value <> 'ON'"),
        ["server_id"]
    );
    assert!(names(&MYSQL, "show variables like 'gtid%'").contains(&"gtid_executed".to_owned()));
    assert!(names(&MARIADB, "show variables like 'gtid%'").contains(&"gtid_binlog_state".to_owned()));
    assert_eq!(row("select @@max_binlog_size"), ["4096"]);
    // Each variable can be selected under the name under which it is shown.
    for server in [&MYSQL, &MARIADB, &Server { version: "5.7.22", ..MYSQL }] {
        for name in names(server, "show variables") {
            rows(ask(server, &format!("select @@{name}")));
        }
    }
}

#[test]
fn our_own_receiving_is_shown_in_the_columns_of_each_server() {
    let shown = |server: &Server, sql: &str| {
        let rows = rows(ask(server, sql));
        let titles: Vec<String> = rows.columns.iter().map(|column| column.title.clone()).collect();
        (titles, rows.rows[0].clone())
    };
    let value = |(titles, row): &(Vec<String>, Row), title: &str| {
        let at = titles
            .iter()
            .position(|other| other == title)
            .unwrap_or_else(|| panic!("no {title} in {titles:?}"));
        row[at].clone().unwrap_or_else(|| "NULL".to_owned())
    };
    let new = shown(&MYSQL, "show replica status");
    assert_eq!(new.0.len(), 60);
    assert_eq!(value(&new, "Replica_IO_Running"), "Yes");
    assert_eq!(value(&new, "Exec_Source_Log_Pos"), "512");
    assert_eq!(value(&new, "Seconds_Behind_Source"), "0");
    assert_eq!(value(&new, "Last_IO_Error_Timestamp"), "231114 22:13:20");
    let old = shown(&MYSQL, "show slave status");
    for title in
        ["Slave_IO_State", "Relay_Master_Log_File", "Replicate_Do_DB", "Get_master_public_key", "Master_UUID"]
    {
        value(&old, title);
    }
    let mariadb = shown(&MARIADB, "show replica status");
    assert_eq!(mariadb.0.len(), 54);
    assert_eq!(value(&mariadb, "Read_Master_Log_Pos"), "600");
    assert_eq!(value(&mariadb, "Slave_DDL_Groups"), "0");
    let all = shown(&MARIADB, "show all slaves status");
    assert_eq!(all.0[..2], ["Connection_name", "Slave_SQL_State"]);
}

#[test]
fn who_may_administer_may_act() {
    let act = |sql: &str| match ask(&ADMINISTERED, sql) {
        Answer::Act(action) => action,
        other => panic!("{sql}: {other:?}"),
    };
    assert_eq!(act("kill 8"), Action::Kill { connection_id: 8, query_only: false });
    assert_eq!(act("kill query connection_id()"), Action::Kill { connection_id: 7, query_only: true });
    assert_eq!(
        act("purge binary logs to 'mysql-bin.000002'"),
        Action::PurgeTo("mysql-bin.000002".to_owned())
    );
    assert_eq!(
        act("purge binary logs before '2023-11-14 22:13:20'"),
        Action::PurgeBefore(1_700_000_000_000_000)
    );
    assert_eq!(
        act("purge binary logs before now() - interval 1 hour"),
        Action::PurgeBefore(1_699_996_400_000_000)
    );
    assert_eq!(act("stop slave"), Action::StopReplica);
    assert_eq!(act("start replica"), Action::StartReplica);
    assert_eq!(error(ask(&ADMINISTERED, "purge binary logs to 'x'")).0, 1373);
    assert_eq!(error(ask(&ADMINISTERED, "purge binary logs before 'x'")).0, 1292);
    let sessions = rows(ask(&ADMINISTERED, "show processlist"));
    assert_eq!(sessions.rows.len(), 2);
    assert_eq!(sessions.rows[1][7].as_deref().map(str::len), Some(100));
    let grants = rows(ask(&ADMINISTERED, "show grants"));
    assert_eq!(grants.columns[0].title, "Grants for repl@%");
    assert!(grants.rows[1][0].as_deref().unwrap().contains("BINLOG_ADMIN"));
}

#[test]
fn each_privilege_allows_what_it_says_and_no_more() {
    const NONE: Privileges = Privileges { read: false, purge: false, control: false };
    let outcome = |of: Server, sql: &str| match ask(&of, sql) {
        Answer::Error(error) => (error.code, error.message),
        _ => (0, String::new()),
    };
    for (sql, may) in [
        ("show binary logs", Privileges { read: true, control: true, ..NONE }),
        ("show replica status", Privileges { read: true, control: true, ..NONE }),
        ("show replicas", Privileges::READ),
        ("show binlog events", Privileges::READ),
        ("purge binary logs to 'mysql-bin.000002'", Privileges { purge: true, ..NONE }),
        ("start slave", Privileges { control: true, ..NONE }),
        ("stop replica", Privileges { control: true, ..NONE }),
        ("kill 8", Privileges { control: true, ..NONE }),
    ] {
        for (has, is_allowed) in [
            (NONE, false),
            (Privileges::READ, may.read),
            (Privileges { purge: true, ..NONE }, may.purge),
            (Privileges { control: true, ..NONE }, may.control),
            (Privileges::ALL, true),
        ] {
            let (code, message) = outcome(Server { privileges: has, ..MYSQL }, sql);
            let expected = match is_allowed {
                true => 0,
                false if sql == "kill 8" => 1095,
                false => 1227,
            };
            assert_eq!(code, expected, "{sql}, {has:?}: {message}");
        }
    }
    assert_eq!(outcome(MYSQL, "kill 7").0, 0, "one's own connection needs no privilege");
    let said = outcome(MYSQL, "purge binary logs to 'nosuch'").1;
    let words =
        "Access denied; you need (at least one of) the SUPER or BINLOG_ADMIN privilege(s) for this operation";
    assert!(said.starts_with(words) && said.contains("privileges = [\"purge\"]"), "{said}");
    assert!(may_dump(Privileges::READ, ServerKind::MySql).is_ok());
    let refused = may_dump(Privileges { control: true, ..NONE }, ServerKind::MariaDb).unwrap_err();
    assert!(
        refused.code == 1227 && refused.message.contains("the REPLICATION SLAVE privilege(s)"),
        "{refused:?}"
    );
}

#[test]
fn grants_are_shown_as_the_server_would() {
    let shown = |server: &Server, privileges| {
        let rows = rows(ask(&Server { privileges, ..*server }, "show grants")).rows;
        rows.into_iter().map(|row| row[0].clone().unwrap()).collect::<Vec<_>>()
    };
    const TO: &str = "ON *.* TO `repl`@`%`";
    let nothing = Privileges::default();
    assert_eq!(shown(&MYSQL, nothing), [format!("GRANT USAGE {TO}")]);
    assert_eq!(
        shown(&MYSQL, Privileges::READ),
        [format!("GRANT REPLICATION SLAVE, REPLICATION CLIENT {TO}")]
    );
    assert_eq!(
        shown(&MYSQL, Privileges::ALL),
        [
            format!("GRANT PROCESS, REPLICATION SLAVE, REPLICATION CLIENT {TO}"),
            format!("GRANT BINLOG_ADMIN,CONNECTION_ADMIN,REPLICATION_SLAVE_ADMIN {TO}")
        ]
    );
    let old = Server { version: "5.7.22-log", ..MYSQL };
    assert_eq!(shown(&old, Privileges { purge: true, ..nothing }), [format!("GRANT SUPER {TO}")]);
    assert_eq!(
        shown(&MARIADB, Privileges::READ),
        [format!("GRANT REPLICATION SLAVE, BINLOG MONITOR, SLAVE MONITOR {TO}")]
    );
}

#[test]
fn a_session_of_mariadb_knows_its_transaction() {
    let mut session = SessionState::default();
    let mut row = |sql| row_in(&MARIADB, &mut session, sql);
    assert_eq!(row("select @@in_transaction, @@last_gtid, @@global.log_slave_updates"), ["0", "", "1"]);
    assert_eq!(ask_in(&MARIADB, &mut session, "begin"), Answer::Done);
    assert_eq!(row_in(&MARIADB, &mut session, "select @@in_transaction"), ["1"]);
    assert_eq!(ask_in(&MARIADB, &mut session, "flush tables"), Answer::Done);
    assert_eq!(row_in(&MARIADB, &mut session, "select @@in_transaction"), ["0"]);
    assert_eq!(row_in(&MYSQL, &mut session, "select @@global.log_slave_updates"), ["1"]);
}

#[test]
fn a_login_brings_its_character_set() {
    let mut session = SessionState::default();
    session.set_login_collation(8);
    assert_eq!(
        row_in(&MYSQL, &mut session, "select @@character_set_results, @@collation_connection"),
        ["latin1", "latin1_swedish_ci"]
    );
    session.set_login_collation(9_999);
    assert_eq!(row_in(&MYSQL, &mut session, "select @@character_set_results"), ["latin1"]);
}

/// Statements that get deep into the answers.
fn statements() -> impl Strategy<Value = String> {
    let value = prop::sample::select(vec![
        "@@server_id",
        "@@global.gtid_executed",
        "@a",
        "@b",
        "'x'",
        "'2023-01-01'",
        "5",
        "-1",
        "1.5",
        "null",
        "now()",
        "uuid()",
        "concat(@a, @b)",
        "gtid_subset(@a, @@gtid_executed)",
        "binlog_gtid_pos(@a, @b)",
        "unix_timestamp(@a)",
        "if(@a, @b, 1)",
        "@@nosuch",
        "foo(1)",
        "c",
        "variable_name",
    ]);
    let operator = prop::sample::select(vec![
        "+",
        "-",
        "*",
        "=",
        "<=>",
        "<",
        "and",
        "or",
        "like",
        "+ interval 1 week *",
    ]);
    let expression = (value.clone(), operator, value)
        .prop_map(|(left, operator, right)| format!("({left} {operator} {right})"));
    let frame = prop::sample::select(vec![
        "select {}",
        "do {}",
        "set @a = {}",
        "set @b = {}",
        "set sql_mode = {}",
        "set wait_timeout = {}",
        "set time_zone = {}",
        "set names utf8",
        "show variables where {}",
        "show status where {}",
        "kill {}",
        "purge binary logs before {}",
        "show replica status",
        "show all slaves status",
        "show grants",
        "show warnings",
        "show character set where {}",
        "show collation like 'utf8%'",
        "begin",
        "commit",
    ]);
    (frame, expression).prop_map(|(frame, expression)| frame.replace("{}", &expression))
}

proptest! {
    #[test]
    fn any_statements_are_answered(
        list in prop::collection::vec(statements(), 1..6),
        mariadb: bool,
        read: bool,
        control: bool,
    ) {
        let privileges = Privileges { read, purge: control, control };
        let server = Server { privileges, ..if mariadb { MARIADB } else { MYSQL } };
        let mut session = SessionState::default();
        let sql = list.join(";");
        for statement in Statements::new(sql.as_bytes(), server.dialect()) {
            let Ok(statement) = statement else { break };
            if let Answer::Rows(rows) = answer(&statement, &mut session, &server.client(), &server) {
                prop_assert!(!rows.columns.is_empty());
                prop_assert!(rows.rows.iter().all(|row| row.len() == rows.columns.len()));
            }
        }
    }
}
