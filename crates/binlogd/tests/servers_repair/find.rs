//! `binlogd find` and `binlogd stats` as an operator uses them, on copies of real servers: what was done is found by each option,
//! with the rows that were changed.

use crate::common::Server;
use crate::common::daemon::Daemon;
use crate::common::verbs;
use codec::ServerKind;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// How long the daemon may take for the indexes of a few small files.
const INDEXES_MAX: Duration = Duration::from_secs(30);

/// Every kind of column, so that rows are stepped over exactly.
const TYPES: &str = "
    CREATE TABLE shop.wide (a TINYINT, b SMALLINT, c MEDIUMINT, d INT, e BIGINT, f FLOAT, g DOUBLE, h DECIMAL(20,7), i DECIMAL(5,5),
        j BIT(1), k BIT(17), l YEAR, m DATE, n TIME, o TIME(5), p DATETIME, q DATETIME(1), r TIMESTAMP NULL, s TIMESTAMP(6) NULL,
        t CHAR(10), u CHAR(255), v VARCHAR(10), w VARCHAR(3000), x BINARY(16), y VARBINARY(300), z TINYBLOB, aa BLOB,
        ab MEDIUMBLOB, ac LONGTEXT, ad ENUM('x','y'), ae SET('x','y','z'), af JSON, ag GEOMETRY, ah CHAR(200)) CHARACTER SET utf8mb4";

const WIDE_ROW: &str = "(1, 2, 3, 4, 5, 6.5, 7.5, 8.25, 0.12345, b'1', b'10101010101010101', 2026, '2026-01-02', '03:04:05',
    '03:04:05.12345', '2026-01-02 03:04:05', '2026-01-02 03:04:05.1', '2026-01-02 03:04:05', '2026-01-02 03:04:05.123456', 'char',
    'a longer char', 'var', REPEAT('w', 2000), 'binary', REPEAT('y', 290), 'tiny', REPEAT('b', 1000), REPEAT('m', 70000), 'text', 'y',
    'x,z', '{\"a\": 1}', POINT(1, 2), 'äöü')";

fn binlogd(arguments: &[&str]) -> (i32, String, String) {
    let output = verbs::binlogd(arguments);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// What `binlogd find` finds.
#[track_caller]
fn find(data_dir: &Path, options: &[&str]) -> Vec<Value> {
    let all = [&["find", data_dir.to_str().unwrap(), "--json", "--limit", "0"], options].concat();
    let (code, out, errors) = binlogd(&all);
    let answer: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{options:?}: {out}{errors}"));
    assert_eq!(answer["complete"], true, "{options:?}: {errors}");
    let found = answer["sources"][0]["transactions"].as_array().unwrap().clone();
    assert_eq!(code, i32::from(found.is_empty()), "{options:?}");
    assert!(found.iter().all(|one| one["unread"].is_null()), "{options:?}: {found:#?}");
    found
}

/// Rows of a table, inserted, updated and deleted.
fn rows(transaction: &Value, table: &str) -> (u64, u64, u64) {
    let tables = transaction["tables"].as_array().unwrap();
    let table = tables.iter().find(|one| one["table"] == table).unwrap_or_else(|| panic!("{transaction:#?}"));
    assert_eq!(table["uncounted"], false, "{transaction:#?}");
    let count = |name: &str| table[name].as_u64().unwrap();
    (count("inserted"), count("updated"), count("deleted"))
}

/// The one that is found.
#[track_caller]
fn one(data_dir: &Path, options: &[&str]) -> Value {
    let mut found = find(data_dir, options);
    assert_eq!(found.len(), 1, "{options:?}: {found:#?}");
    found.remove(0)
}

fn an_hour_after(time: &str) -> String {
    let at: jiff::Timestamp = time.parse().unwrap();
    (at + Duration::from_secs(3600)).to_string()
}

fn finds_what_was_done(server: &Server, compress: &str) {
    server.sql("CREATE DATABASE shop; CREATE DATABASE stock");
    server.sql(TYPES);
    server.sql("CREATE TABLE shop.orders (id INT PRIMARY KEY, v VARCHAR(400)); CREATE TABLE stock.parts (id INT PRIMARY KEY, v TEXT); CREATE TABLE shop.old (id INT); CREATE TABLE shop.log (id INT)");
    let daemon = Daemon::start(server, &[]);
    server.sql(&format!(
        "{compress} INSERT INTO shop.wide VALUES {}; INSERT INTO shop.wide (a) VALUES (1), (2); INSERT INTO shop.wide SELECT * FROM shop.wide",
        [WIDE_ROW; 3].join(",")
    ));
    let values: Vec<String> = (1..=500).map(|id| format!("({id}, REPEAT('v', {}))", id % 300)).collect();
    server.sql(&format!("{compress} INSERT INTO shop.orders VALUES {}", values.join(",")));
    server.sql("FLUSH BINARY LOGS");
    server.sql(&format!(
        "{compress} BEGIN; INSERT INTO stock.parts VALUES (1, 'a'), (2, 'b'); UPDATE shop.orders SET v = 'changed' WHERE id <= 40; DELETE FROM shop.orders WHERE id > 480; COMMIT"
    ));
    server.sql(&format!(
        "{compress} UPDATE shop.wide SET d = 99, af = '[1, 2]' WHERE a = 1; DELETE FROM shop.wide WHERE a = 2"
    ));
    server.sql("INSERT INTO shop.old VALUES (1); DROP TABLE shop.old");
    server.sql("TRUNCATE TABLE shop.log");
    server.sql("FLUSH BINARY LOGS");
    server.sql("INSERT INTO shop.log VALUES (7)");
    server.sql("DROP DATABASE stock");
    daemon.wait_caught_up(server);
    let dir = &daemon.data_dir();

    // By table, kind and rows; the wide rows were counted.
    let wide = find(dir, &["--table", "shop.wide", "--kind", "insert"]);
    let written: Vec<_> = wide.iter().map(|one| rows(one, "shop.wide").0).collect();
    assert_eq!(written, [3, 2, 5]);
    let updated = one(dir, &["--table", "shop.wide", "--kind", "update"]);
    assert_eq!(rows(&updated, "shop.wide"), (0, 8, 0));
    assert_eq!(rows(&one(dir, &["--table", "shop.wide", "--kind", "delete"]), "shop.wide"), (0, 0, 2));
    let mixed = one(dir, &["--table", "stock.*", "--min-rows", "2"]);
    assert_eq!((rows(&mixed, "stock.parts"), rows(&mixed, "shop.orders")), ((2, 0, 0), (0, 40, 20)));
    assert_eq!(rows(&one(dir, &["--min-rows", "500"]), "shop.orders"), (500, 0, 0));
    assert_eq!(find(dir, &["--table", "shop.or*", "--kind", "delete"]), std::slice::from_ref(&mixed));
    assert!(find(dir, &["--table", "nowhere.none"]).is_empty());

    // What was dropped: by name, and with its schema.
    let dropped = one(dir, &["--table", "shop.old", "--kind", "drop"]);
    assert!(dropped["statements"][0].as_str().unwrap().starts_with("DROP TABLE"), "{dropped:#?}");
    let schema = one(dir, &["--table", "stock.parts", "--kind", "drop"]);
    assert_eq!(
        (schema["kind"].as_str(), schema["tables"][0]["table"].as_str()),
        (Some("ddl"), Some("stock.*"))
    );
    assert_eq!(find(dir, &["--kind", "drop"]).len(), 2);
    assert_eq!(find(dir, &["--kind", "truncate"])[0]["tables"][0]["table"], "shop.log");
    assert_eq!(find(dir, &["--kind", "truncate", "--kind", "drop"]).len(), 3);

    // By GTID, text, size, connection and time.
    let gtid = mixed["gtid"].as_str().unwrap();
    assert_eq!(find(dir, &["--gtid", gtid]), std::slice::from_ref(&mixed));
    assert_eq!(one(dir, &["--text", "drop database STOCK"]), schema);
    let biggest = one(dir, &["--min-bytes", &biggest_size(&find(dir, &[]))]);
    assert!(biggest["bytes"].as_u64().unwrap() > 1000, "{biggest:#?}");
    let thread = schema["thread"].as_u64().unwrap().to_string();
    assert!(find(dir, &["--thread", &thread, "--kind", "drop"]).contains(&schema));
    assert!(find(dir, &["--thread", "4000000000", "--kind", "drop"]).is_empty());
    let at = schema["committed"].as_str().unwrap();
    assert!(find(dir, &["--time", &format!("{at}..")]).contains(&schema));
    assert!(!find(dir, &["--time", &format!("..{at}")]).contains(&schema));
    assert!(find(dir, &["--time", &format!("{}..", an_hour_after(at))]).is_empty());
    assert_eq!(schema["committed_exact"], server.kind() == ServerKind::MySql);

    // The daemon makes the indexes of sealed files, and says so; a damaged one is made again.
    daemon.wait_until(|source| source["search_index_missing"] == 0, INDEXES_MAX);
    let (_, all, _) = binlogd(&["find", dir.to_str().unwrap(), "--json", "--limit", "0"]);
    let all: Value = serde_json::from_str(&all).unwrap();
    assert_eq!((&all["sources"][0]["files"], &all["sources"][0]["files_by_index"]), (&3.into(), &2.into()));
    let folder = daemon.timeline_dir().join("search-index");
    let index = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&index, "damaged").unwrap();
    assert_eq!(find(dir, &[]), *all["sources"][0]["transactions"].as_array().unwrap());
    assert!(std::fs::metadata(&index).unwrap().len() > 100, "it was made again");

    for (options, why) in [
        (&["--gtid", "nonsense"][..], "names no GTIDs"),
        (&["--time", "yesterday"], "is no range"),
        (&["--table", "orders"], "SCHEMA.TABLE"),
        (&["--timeline", "99"], "there is no timeline"),
        (&["--source", "other"], "holds no source \"other\""),
    ] {
        let (code, _, errors) = binlogd(&[&["find", dir.to_str().unwrap()], options].concat());
        assert!(code == 2 && errors.contains(why), "{options:?}: {errors}");
    }

    let (code, out, errors) = binlogd(&["stats", dir.to_str().unwrap(), "--json"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    let stats: Value = serde_json::from_str(&out).unwrap();
    let source = &stats["sources"][0];
    let tables = source["tables"].as_array().unwrap();
    let orders = tables.iter().find(|table| table["table"] == "shop.orders").unwrap();
    assert_eq!(
        (&orders["inserted"], &orders["updated"], &orders["deleted"]),
        (&500.into(), &40.into(), &20.into())
    );
    assert_eq!(source["biggest"][0]["bytes"], biggest["bytes"]);
    let counted: u64 =
        source["writes"].as_array().unwrap().iter().map(|one| one["transactions"].as_u64().unwrap()).sum();
    assert_eq!(counted, source["transactions"].as_u64().unwrap());
    let (code, text, _) = binlogd(&["stats", dir.to_str().unwrap()]);
    assert!(code == 0 && text.contains("shop.orders: 500 inserted, 40 updated, 20 deleted"), "{text}");
    let (code, text, _) = binlogd(&["find", dir.to_str().unwrap(), "--kind", "drop"]);
    assert!(code == 0 && text.contains("stock.*") && text.contains("DROP DATABASE stock"), "{text}");
}

/// The size of the biggest.
fn biggest_size(found: &[Value]) -> String {
    found.iter().map(|one| one["bytes"].as_u64().unwrap()).max().unwrap().to_string()
}

#[test]
fn what_was_done_on_mysql_is_found() {
    let options = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"];
    finds_what_was_done(&Server::start("mysql-9.7", &options), "");
}

#[test]
fn what_was_done_in_packed_transactions_is_found() {
    let options = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--binlog-row-image=MINIMAL"];
    finds_what_was_done(&Server::start("mysql-9.7", &options), "SET binlog_transaction_compression = ON;");
}

#[test]
fn what_was_done_on_mariadb_is_found() {
    finds_what_was_done(&Server::start("mariadb-11.8", &["--binlog-format=ROW"]), "");
}

#[test]
fn what_mariadb_has_packed_is_found() {
    let options = ["--binlog-format=ROW", "--log-bin-compress=1", "--log-bin-compress-min-len=20"];
    finds_what_was_done(&Server::start("mariadb-11.8", &options), "");
}
