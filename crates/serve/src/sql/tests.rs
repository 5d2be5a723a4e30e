//! The grammar as a whole.

use super::*;
use codec::ServerKind;
use proptest::prelude::*;

fn mysql() -> Dialect {
    Dialect::new(ServerKind::MySql, "8.0.31")
}

fn read(text: &str) -> Statement {
    parse(text.as_bytes(), mysql()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> SqlError {
    match parse(text.as_bytes(), mysql()) {
        Err(error) => error,
        Ok(statement) => panic!("{text}: {statement:?}"),
    }
}

fn near(text: &str) -> String {
    match error(text) {
        SqlError::Syntax { near, .. } => near,
        other => panic!("{text}: {other}"),
    }
}

fn titles(text: &str) -> Vec<String> {
    match read(text) {
        Statement::Select(select) => select.items.into_iter().map(|item| item.title).collect(),
        other => panic!("{text}: {other:?}"),
    }
}

fn refusal(text: &str) -> Refusal {
    match read(text) {
        Statement::Refused(refusal) => refusal,
        other => panic!("{text}: {other:?}"),
    }
}

fn variable(scope: Option<Scope>, name: &str) -> Expression {
    Expression::SystemVariable { scope, name: name.to_owned() }
}

fn integer(number: i128) -> Expression {
    Expression::Literal(Value::Integer(number))
}

/// As MySQL 9.7 and MariaDB 11.8 title them.
#[test]
fn titles_are_as_typed() {
    assert_eq!(titles("SELECT @@GLOBAL.SERVER_ID"), ["@@GLOBAL.SERVER_ID"]);
    assert_eq!(titles("SELECT   @@global . server_id ;"), ["@@global . server_id"]);
    assert_eq!(
        titles("select 1 as `a b`, 2 'c', 3 d, \"e\", NULL, version( ), -5, (1)"),
        ["a b", "c", "d", "e", "NULL", "version( )", "-5", "(1)"]
    );
    assert_eq!(titles("/* x */ select @@version_comment /* y */ limit 1"), ["@@version_comment"]);
    assert_eq!(titles("select 1 from dual"), ["1"]);
}

#[test]
fn variables_of_each_scope() {
    let select = |text: &str| match read(text) {
        Statement::Select(select) => select.items[0].expression.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(select("select @@x"), variable(None, "x"));
    assert_eq!(select("select @@GLOBAL.`Server_Id`"), variable(Some(Scope::Global), "server_id"));
    assert_eq!(select("select @@local.x"), variable(Some(Scope::Session), "x"));
    assert_eq!(select("select @@hot.key_buffer_size"), variable(None, "hot.key_buffer_size"));
    assert_eq!(select("select @A.b"), Expression::UserVariable("a.b".to_owned()));
}

#[test]
fn operators_bind_as_those_of_a_server() {
    let shape = |text: &str| match read(&format!("do {text}")) {
        Statement::Do(list) => format!("{:?}", list[0]),
        other => panic!("{other:?}"),
    };
    for (flat, nested) in [
        ("1 + 2 * 3 = 7 and not 0 or 1", "(((1 + (2 * 3)) = 7) and (not 0)) or 1"),
        ("1 - 2 - 3", "(1 - 2) - 3"),
        ("not a = b", "not (a = b)"),
        ("a = 1 or a = 2 and b = 3", "(a = 1) or ((a = 2) and (b = 3))"),
        ("a like 'x' or a not in (1, 2)", "(a like 'x') or (a not in (1, 2))"),
        ("! a = b", "(! a) = b"),
        ("date_sub(now(), interval 3 day)", "now() - interval 3 day"),
    ] {
        assert_eq!(shape(flat), shape(nested), "{flat}");
    }
}

#[test]
fn set_of_several() {
    let Statement::Set(list) = read(
        "SET @master_heartbeat_period= 123, @B := @@global.binlog_checksum, NAMES utf8mb4 COLLATE utf8mb4_bin, \
         SESSION net_write_timeout = 60, sql_mode=ANSI, @@session.autocommit=ON, global x = DEFAULT, y=1",
    ) else {
        panic!()
    };
    let system = |scope, name: &str, value| Assignment::System { scope, name: name.to_owned(), value };
    let text = |text: &str| Some(Expression::Literal(Value::text(text)));
    assert_eq!(
        list,
        [
            Assignment::User { name: "master_heartbeat_period".to_owned(), value: integer(123) },
            Assignment::User {
                name: "b".to_owned(),
                value: variable(Some(Scope::Global), "binlog_checksum")
            },
            Assignment::Names {
                character_set: Some("utf8mb4".to_owned()),
                collation: Some("utf8mb4_bin".to_owned())
            },
            system(Some(Scope::Session), "net_write_timeout", Some(integer(60))),
            system(Some(Scope::Session), "sql_mode", text("ANSI")),
            system(Some(Scope::Session), "autocommit", text("ON")),
            system(Some(Scope::Global), "x", None),
            system(Some(Scope::Global), "y", Some(integer(1))),
        ]
    );
    let Statement::Set(list) = read("set session transaction isolation level read committed, read only")
    else {
        panic!()
    };
    assert_eq!(
        list,
        [Assignment::Transaction {
            scope: Some(Scope::Session),
            isolation: Some("READ-COMMITTED"),
            read_only: Some(true),
        }]
    );
    assert_eq!(refusal("set password = 'x'"), Refusal::Change("SET PASSWORD".to_owned()));
    assert_eq!(near("set @a=1 @b=2"), "@b=2");
    assert_eq!(near("set @x="), "");
}

#[test]
fn show_in_all_its_words() {
    let shows = |text: &str| match read(text) {
        Statement::Show(show) => show,
        other => panic!("{text}: {other:?}"),
    };
    for text in ["show binary log status", "SHOW MASTER STATUS", "show binlog status"] {
        assert_eq!(shows(text), Show::BinaryLogStatus);
    }
    assert_eq!(shows("show master logs"), shows("show binary logs"));
    assert_eq!(shows("show slave hosts"), Show::Replicas(Words::Old));
    assert_eq!(shows("show replicas"), Show::Replicas(Words::New));
    assert_eq!(
        shows("show binlog events in 'f.000001' from 4 limit 2, 3"),
        Show::BinlogEvents {
            file: Some("f.000001".to_owned()),
            from: Some(4),
            limit: Limit { offset: 2, rows: 3 },
        }
    );
    assert_eq!(
        shows("show replica status for channel 'c'"),
        Show::ReplicaStatus { words: Words::New, all: false, channel: Some("c".to_owned()) }
    );
    assert!(matches!(shows("show all slaves status"), Show::ReplicaStatus { all: true, .. }));
    assert!(matches!(shows("show slave 'c' status"), Show::ReplicaStatus { channel: Some(_), .. }));
    assert!(matches!(shows("show count(*) warnings"), Show::Warnings { count: true, .. }));
    assert_eq!(shows("show full processlist"), Show::ProcessList { full: true });
    assert_eq!(
        shows("show full tables in `a` where Table_Type = 'BASE TABLE'"),
        Show::InDatabase(Some("a".to_owned()))
    );
    assert_eq!(shows("show grants for current_user()"), Show::Grants(None));
    assert_eq!(shows("show grants for 'u'@'%'"), Show::Grants(Some("u".to_owned())));
    assert_eq!(
        shows("show global variables like 'a%'"),
        Show::Variables { scope: Scope::Global, filter: Filter::Like("a%".to_owned()) }
    );
    assert_eq!(refusal("show create table a.b"), Refusal::Tables);
    assert_eq!(near("show variables like 5"), "5");
    assert_eq!(near("show foo"), "foo");
}

#[test]
fn statements_that_act() {
    assert_eq!(read("KILL QUERY 5"), Statement::Kill { connection: integer(5), query_only: true });
    assert_eq!(read("kill connection 5"), Statement::Kill { connection: integer(5), query_only: false });
    assert_eq!(read("purge master logs to 'x'"), Statement::Purge(Purge::To("x".to_owned())));
    assert!(matches!(
        read("PURGE BINARY LOGS BEFORE NOW() - INTERVAL 3 DAY"),
        Statement::Purge(Purge::Before(_))
    ));
    assert_eq!(read("stop slave io_thread"), Statement::Replica(ReplicaCommand::Stop));
    assert_eq!(read("start replica for channel ''"), Statement::Replica(ReplicaCommand::Start));
    assert_eq!(refusal("start replica until sql_after_gtids = 'x'"), Refusal::PartOfReplica);
    assert_eq!(read("start transaction read only"), Statement::Begin);
    assert_eq!(refusal("start transaction with consistent snapshot"), Refusal::Snapshot);
    assert_eq!(read("commit and no chain"), Statement::Commit);
}

#[test]
fn what_reads_a_table_is_refused_for_that() {
    for text in [
        "select * from t",
        "select count(*) from a.b where x = 'y'",
        "SELECT c.COLLATION_NAME, c.IS_DEFAULT='Yes' from INFORMATION_SCHEMA.COLLATIONS AS c LEFT JOIN x",
        "select case when 1 then 2 end from t",
        "table t",
        "with x as (select 1) select * from x",
    ] {
        assert_eq!(refusal(text), Refusal::Tables, "{text}");
    }
    assert_eq!(near("select *"), "*");
    assert_eq!(refusal("flush tables with read lock"), Refusal::Flush);
    assert_eq!(refusal("flush local tables a"), Refusal::Flush);
    assert_eq!(read("flush local tables"), Statement::Commit);
    assert_eq!(refusal("insert into t values ('it''s;')"), Refusal::Change("INSERT".to_owned()));
}

#[test]
fn what_does_not_fit_is_named_with_its_place() {
    assert_eq!(near("selec 1"), "selec 1");
    assert_eq!(near("select"), "");
    assert_eq!(near("select 1 frm x"), "x");
    assert_eq!(near("show binary logs limit 1"), "limit 1");
    assert_eq!(near("kill"), "");
    assert!(matches!(error("select\n\n 1 2"), SqlError::Syntax { line: 3, .. }));
    assert_eq!(error(""), SqlError::Empty);
    assert_eq!(error(" ; /* nothing */ ;"), SqlError::Empty);
    assert!(matches!(parse(b"select '\xFF'", mysql()), Err(SqlError::NotUtf8(_))));
    assert!(parse(b"/* \xFF */ select 1", mysql()).is_ok());
    assert_eq!(error("selec 1").packet().code, 1064);
}

#[test]
fn one_statement_a_packet_unless_the_session_may_send_several() {
    assert_eq!(near("select 1; select 2"), "select 2");
    assert_eq!(read("select 1;;").clone(), read("select 1"));
    let list =
        |text: &str| Statements::new(text.as_bytes(), mysql()).map(|one| one.is_ok()).collect::<Vec<_>>();
    assert_eq!(list("select 1; ; select 2 ;"), [true, true]);
    assert_eq!(list("select 1; selec 2; select 3"), [true, false]);
    assert_eq!(list("select 1; '"), [true, false]);
    assert_eq!(list("'"), [false]);
    assert!(list(" ; ").is_empty());
    let mut statements = Statements::new(b"select 1; select", mysql());
    assert!(statements.has_more());
    statements.next().unwrap().unwrap();
    assert!(statements.has_more());
    assert!(statements.next().unwrap().is_err());
    assert!(!statements.has_more());
    assert!(statements.next().is_none());
}

#[test]
fn nothing_is_read_without_a_bound() {
    let long = "x".repeat(STATEMENT_BYTES_MAX + 1);
    assert!(matches!(error(&long), SqlError::TooLong { .. }));
    for (begin, end) in
        [("(", ")"), ("not ", ""), ("- ", ""), ("! ", ""), ("concat(", ")"), ("+", ""), ("1+(", ")")]
    {
        for count in [NESTING_MAX + 1, STATEMENT_BYTES_MAX / 16] {
            let deep = format!("do {}1{}", begin.repeat(count), end.repeat(count));
            assert!(matches!(error(&deep), SqlError::TooDeep { .. }), "{begin}");
        }
    }
    let chain = format!("do 1{}", " or 1".repeat(OPERATORS_MAX + 1));
    assert!(matches!(error(&chain), SqlError::TooDeep { .. }));
    let chain = format!("do 1{}", " or 1".repeat(OPERATORS_MAX));
    read(&chain);
    let wide = format!("select 1{}", ",1".repeat(4_096));
    assert_eq!(error(&wide), SqlError::TooManyColumns);
}

/// Words of the grammar, in any order: what gets deepest into the parser.
fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "select",
        "set",
        "show",
        "global",
        "session",
        "variables",
        "status",
        "like",
        "where",
        "'x'",
        "`y`",
        "@a",
        "@@",
        "b",
        ".",
        ",",
        ";",
        "(",
        ")",
        "=",
        "and",
        "or",
        "not",
        "in",
        "is",
        "null",
        "1",
        "1.5",
        "now()",
        "interval",
        "day",
        "+",
        "-",
        "binary",
        "logs",
        "log",
        "master",
        "slave",
        "replica",
        "hosts",
        "binlog",
        "events",
        "from",
        "dual",
        "limit",
        "kill",
        "purge",
        "to",
        "before",
        "start",
        "stop",
        "transaction",
        "names",
        "default",
        "collate",
        "/*!40000",
        "*/",
        "/*",
        "--",
        "#",
        "'",
        "\"",
        "full",
        "count(*)",
        "warnings",
        "for",
        "channel",
        "as",
        "isolation",
        "level",
        "read",
        "only",
    ]);
    prop::collection::vec(word, 0..40).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut statements = Statements::new(&bytes, mysql());
        prop_assert!(statements.by_ref().count() <= bytes.len());
    }

    #[test]
    fn any_words_are_read_or_refused(text in words(), maria: bool, ansi_quotes: bool) {
        let kind = if maria { ServerKind::MariaDb } else { ServerKind::MySql };
        let dialect = Dialect { ansi_quotes, ..Dialect::new(kind, "11.8.6") };
        for statement in Statements::new(text.as_bytes(), dialect) {
            if let Err(error) = statement {
                prop_assert!(!error.packet().message.is_empty());
            }
        }
    }

    #[test]
    fn strings_are_read_back(text in "\\PC*") {
        let quoted = format!("do '{}'", text.replace('\\', "\\\\").replace('\'', "''"));
        prop_assert_eq!(read(&quoted), Statement::Do(vec![Expression::Literal(Value::Text(text))]));
    }
}
