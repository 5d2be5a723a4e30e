//! `binlogd table` in the scene of `row`: at many points its rows are those that the server had then. The server itself kept them: at each
//! point a copy of the table was made that does not stand in the log.

use super::{Moment, Rows};
use crate::common::daemon::{Daemon, url};
use crate::common::verbs::{binlogd, text};
use crate::common::{Server, seed};
use binlog::testing::Random;
use codec::ServerKind;
use past::{Line, TableRequest, To};
use points::table::TableName;
use repair::detail::Known;
use repair::history::Until;
use repair::searched::{Searchable, SearchedSource};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

/// A table with a primary key and many types, and one without a key.
const CREATE: [&str; 2] = [
    "CREATE TABLE shop.wide (id BIGINT UNSIGNED PRIMARY KEY, n DECIMAL(12,3), f FLOAT, d DOUBLE, t DATETIME(3), ts TIMESTAMP(6) NULL, y YEAR, \
     s VARCHAR(40) CHARACTER SET utf8mb4, l VARCHAR(20) CHARACTER SET latin1, b VARBINARY(20), e ENUM('x','y','z,1'), m SET('p','q','r'), \
     bits BIT(10), j JSON)",
    "CREATE TABLE shop.bag (a INT, b VARCHAR(10))",
];
const STEPS: u64 = 120;

/// The rows at a point, by the library.
pub(super) fn rows_at(source: &SearchedSource, table: &str, at: &str, to: To) -> Result<Vec<u8>, String> {
    let line = Line::of(source, None)?;
    let table = TableName { schema: "shop".to_owned(), table: table.to_owned() };
    let until = Until::parse(at, &|_| None)?;
    let request = TableRequest { line: &line, table: &table, at: &until, to };
    let contents = past::table(&request, &mut Known::default())?;
    // Of a table that is followed from a TRUNCATE the log does not have the foreign keys.
    let is_of_keys = |doubt: &String| doubt.contains("does not have the statement that made the table");
    assert!(contents.doubts.iter().all(is_of_keys), "{:?}", contents.doubts);
    let mut written = Vec::new();
    contents.write(&mut written).unwrap();
    Ok(written)
}

/// The records of RFC 4180: `None` for NULL.
pub(super) fn records(csv: &[u8]) -> Vec<Vec<Option<String>>> {
    let text = std::str::from_utf8(csv).unwrap();
    let (mut all, mut record, mut chars) = (Vec::new(), Vec::new(), text.chars().peekable());
    while chars.peek().is_some() {
        let (mut field, is_quoted) = (String::new(), chars.next_if_eq(&'"').is_some());
        loop {
            match chars.next().unwrap() {
                '"' if is_quoted => {
                    if chars.next_if_eq(&'"').is_none() {
                        break;
                    }
                    field.push('"');
                }
                one => field.push(one),
            }
            if !is_quoted && matches!(chars.peek(), Some(',' | '\r')) {
                break;
            }
        }
        record.push((is_quoted || field != r"\N").then_some(field));
        if chars.next() == Some('\r') {
            assert_eq!(chars.next(), Some('\n'));
            all.push(std::mem::take(&mut record));
        }
    }
    all
}

/// The whole table of `row` at random points.
pub(super) fn compare(source: &SearchedSource, moments: &[Moment], random: &mut Random, count: u64) {
    let (mut whole, columns) = (0, ["a", "k", "v", "w"]);
    for _ in 0..count {
        let moment = random.pick(moments);
        let csv = match rows_at(source, "t", &format!("after {}", moment.gtid), To::Csv) {
            Ok(csv) => records(&csv),
            // In doubt, and said so.
            Err(why) if !moment.is_full && why.contains("binlog_row_image is not FULL") => continue,
            Err(why) => panic!("{}: {why}", moment.gtid),
        };
        whole += 1;
        let mut found = Rows::new();
        let Some((names, rows)) = csv.split_first() else {
            assert!(moment.rows.is_empty(), "{}", moment.gtid);
            continue;
        };
        for row in rows {
            let of = |name: &str| {
                let at = names.iter().position(|own| own.as_deref() == Some(name)).unwrap();
                row[at].clone()
            };
            let [a, k, v, w] = columns.map(of);
            let v = v.map_or(Value::Null, |v| v.parse::<i64>().unwrap().into());
            found.insert((a.unwrap().parse().unwrap(), k.unwrap()), (v, w.map_or(Value::Null, Value::from)));
        }
        assert_eq!(found, moment.rows, "{}", moment.gtid);
    }
    assert!(whole > count / 2, "{whole} of {count}");
}

/// With the columns that there are at that step.
fn change(random: &mut Random, step: u64) -> String {
    let (y, d) = (if step < 40 { "y" } else { "yy" }, if step < 70 { "d" } else { "n" });
    let of = |random: &mut Random, all: &[&str]| {
        if random.one_in(5) { "NULL".to_owned() } else { (*random.pick(all)).to_owned() }
    };
    let (id, number) = (random.below(30), random.below(1000));
    let (a, b) = (random.below(3), of(random, &["'x'", "'X'", "''", "'\\\\N'"]));
    let text = of(
        random,
        &["''", "'a,b'", "'\"q\"'", "'\\\\N'", "'Ä€😀'", "' x '", "'two\\nlines'", "'it''s'", "'NULL'"],
    );
    let wide = [
        format!("n = {number} / 8"),
        format!("f = {number} / 10, {d} = {number} / 10"),
        format!(
            "t = '2026-03-01 10:00:00.5' + INTERVAL {number} HOUR, ts = '2026-03-02 10:00:00.25' + INTERVAL {number} MINUTE"
        ),
        format!("{y} = 1990 + {number} MOD 90, s = {text}"),
        format!("s = {text}, l = {}", of(random, &["'Ä'", "'x'", "''"])),
        format!("b = {}", of(random, &["X'00ff'", "''", "'a'"])),
        format!("e = {}, m = {}", of(random, &["'x'", "'z,1'"]), of(random, &["''", "'p,r'"])),
        format!("bits = {number}, j = JSON_OBJECT('k', {number}, 'a', JSON_ARRAY(1.5, 'x', NULL, true))"),
    ];
    let set = random.pick(&wide);
    match random.below(12) {
        0..=3 => format!("INSERT IGNORE INTO shop.wide SET id = {id}, {set}"),
        4..=5 => format!("UPDATE shop.wide SET {set} WHERE id BETWEEN {id} AND {id} + 5"),
        6 => format!("UPDATE IGNORE shop.wide SET id = {} WHERE id = {id}", random.below(30)),
        7 => format!("DELETE FROM shop.wide WHERE id = {id}"),
        8..=9 => format!("INSERT INTO shop.bag (a, b) VALUES ({a}, {b}), ({a}, {b}), (1, NULL)"),
        10 => format!("UPDATE shop.bag SET b = {b} WHERE a = {a} LIMIT 1"),
        _ => format!(
            "BEGIN; DELETE FROM shop.bag WHERE a = {a} LIMIT 2; INSERT INTO shop.bag (a) VALUES (9); COMMIT"
        ),
    }
}

/// What is done beside at these steps; of a point that is refused by name, the words.
fn definition(step: u64, kind: ServerKind) -> (&'static str, Option<&'static str>) {
    let (pack, unpack) = match kind {
        ServerKind::MySql => {
            ("SET binlog_transaction_compression = ON", "SET binlog_transaction_compression = OFF")
        }
        ServerKind::MariaDb => ("SET GLOBAL log_bin_compress = ON", "SET GLOBAL log_bin_compress = OFF"),
    };
    match step {
        20 => (
            "ALTER TABLE shop.wide ADD x INT UNSIGNED NOT NULL DEFAULT 7, ADD COLUMN z VARCHAR(20) NOT NULL DEFAULT 'new' AFTER s",
            None,
        ),
        30 => (pack, None),
        40 => (
            "ALTER TABLE shop.bag ADD c INT DEFAULT 3 FIRST; ALTER TABLE shop.wide RENAME COLUMN y TO yy, ADD INDEX (n)",
            None,
        ),
        50 => (unpack, None),
        60 => (
            "ALTER TABLE shop.wide MODIFY n DECIMAL(14,4)",
            Some("the log does not tell what MODIFY or CHANGE made of n"),
        ),
        62 => ("UPDATE shop.wide SET n = n + 1, d = 1; UPDATE shop.wide SET d = 2", None),
        70 => ("ALTER TABLE shop.wide DROP COLUMN d; FLUSH BINARY LOGS", None),
        80 => (
            "RENAME TABLE shop.wide TO shop.wider, shop.bag TO shop.wide; RENAME TABLE shop.wide TO shop.bag, shop.wider TO shop.wide",
            None,
        ),
        90 => ("TRUNCATE TABLE shop.bag; ALTER TABLE shop.bag ADD PRIMARY KEY (c)", None),
        95 => ("ALTER TABLE shop.bag DROP PRIMARY KEY, ADD k INT AUTO_INCREMENT PRIMARY KEY", None),
        _ => ("", None),
    }
}

/// A point, with what SELECT gave.
struct Kept {
    gtid: String,
    step: u64,
    is_refused: Option<&'static str>,
}

fn gtid(source: &Server) -> String {
    let (position, kind) = match source.kind() {
        ServerKind::MySql => ("@@GLOBAL.gtid_executed", ServerKind::MySql),
        ServerKind::MariaDb => ("@@GLOBAL.gtid_binlog_pos", ServerKind::MariaDb),
    };
    let all = source.sql(&format!("SELECT REPLACE({position}, '\\n', '')")).trim().to_owned();
    match all.rsplit_once([':', '-']) {
        Some((_, last)) if kind == ServerKind::MySql => format!("{}:{last}", all.split(':').next().unwrap()),
        _ => all,
    }
}

/// Random changes, and at some points a copy of both tables that does not stand in the log.
fn keep(source: &Server, random: &mut Random) -> Vec<Kept> {
    let mut kept = Vec::new();
    source.sql(&format!("{}; {}; SET sql_log_bin = 0; CREATE DATABASE truth", CREATE[0], CREATE[1]));
    let mut script = vec!["SET NAMES utf8mb4; SET time_zone = '+00:00'".to_owned()];
    for step in 1..STEPS {
        let (definition, is_refused) = definition(step, source.kind());
        script.extend((!definition.is_empty()).then(|| definition.to_owned()));
        // A primary key of the second table is there for a moment only.
        let one = change(random, step);
        script.extend((!(90..95).contains(&step) || !one.contains("shop.bag")).then_some(one));
        if is_refused.is_none() && step % 9 != 0 {
            continue;
        }
        script.push("SET sql_log_bin = 0".to_owned());
        for table in ["wide", "bag"] {
            script.push(format!("CREATE TABLE truth.{table}_{step} LIKE shop.{table}"));
            script.push(format!("INSERT INTO truth.{table}_{step} SELECT * FROM shop.{table}"));
        }
        source.sql(&std::mem::take(&mut script).join(";\n"));
        kept.push(Kept { gtid: gtid(source), step, is_refused });
        script.push("SET NAMES utf8mb4; SET time_zone = '+00:00'".to_owned());
    }
    kept
}

/// What the server had: each value as the CSV has it, in hexadecimal digits.
fn truth(source: &Server, table: &str, columns: &[Option<String>]) -> Vec<String> {
    let one = |name: &Option<String>| {
        let name = name.as_deref().unwrap();
        match name {
            "b" if table.starts_with("wide") => "HEX(CONCAT('0x', LOWER(HEX(b))))".to_owned(),
            "bits" => "HEX(CONCAT(bits + 0))".to_owned(),
            _ => format!("HEX(CONVERT(CAST({name} AS CHAR) USING utf8mb4))"),
        }
    };
    let columns: Vec<String> = columns.iter().map(one).collect();
    let said =
        source.sql(&format!("SET time_zone = '+00:00'; SELECT {} FROM truth.{table}", columns.join(", ")));
    let mut rows: Vec<String> = said.lines().map(str::to_owned).collect();
    rows.sort();
    rows
}

/// The table of that point: as CSV value by value, as SQL by what a server makes of it.
fn compare_kept(source: &Server, searched: &SearchedSource, kept: &Kept, table: &str) -> String {
    let (at, name) = (format!("after {}", kept.gtid), format!("{table}_{}", kept.step));
    let csv = rows_at(searched, table, &at, To::Csv).unwrap_or_else(|why| panic!("{name} {at}: {why}"));
    let mut rows = records(&csv);
    if rows.is_empty() {
        assert_eq!(source.sql(&format!("SELECT COUNT(*) FROM truth.{name}")).trim(), "0", "{name}");
        return String::new();
    }
    let columns = rows.remove(0);
    let field = |field: &Option<String>| match field {
        None => "NULL".to_owned(),
        Some(text) => text.bytes().map(|byte| format!("{byte:02X}")).collect(),
    };
    let mut found: Vec<String> =
        rows.iter().map(|row| row.iter().map(field).collect::<Vec<_>>().join("\t")).collect();
    found.sort();
    assert_eq!(found, truth(source, &name, &columns), "{name} {at}");
    let sql = String::from_utf8(rows_at(searched, table, &at, To::Sql).unwrap()).unwrap();
    // The same table, filled by that.
    format!(
        "DROP DATABASE IF EXISTS got; CREATE DATABASE got; USE got; CREATE TABLE {table} LIKE truth.{name};\n{sql}\n\
         CHECKSUM TABLE got.{table}, truth.{name};\n"
    )
}

/// Random changes of two tables, of all sorts of values, with definitions between.
pub(super) fn every_table_was_what_select_gave(source: &Server, daemon: &Daemon, random: &mut Random) {
    println!("seed {}", seed());
    let kept = keep(source, random);
    daemon.wait_caught_up(source);
    let dir = daemon.data_dir();
    let copies = Searchable::Copies { data_dir: &dir, source: None }.sources(None).unwrap();
    let mut script = "SET sql_log_bin = 0;\n".to_owned();
    for kept in &kept {
        if let Some(words) = kept.is_refused {
            let why = rows_at(&copies[0], "wide", &format!("after {}", kept.gtid), To::Csv).unwrap_err();
            assert!(why.contains(words) && why.contains("binlogd restore --table shop.wide"), "{why}");
        } else {
            script += &compare_kept(source, &copies[0], kept, "wide");
        }
        script += &compare_kept(source, &copies[0], kept, "bag");
    }
    let work = tempfile::tempdir().unwrap();
    let path = work.path().join("got.sql");
    std::fs::write(&path, script).unwrap();
    let sums = source.sql_file(&path, &["--binary-mode"]);
    let sums: Vec<&str> = sums.lines().map(|line| line.split('\t').nth(1).unwrap()).collect();
    assert!(sums.len() >= 2 * 24, "{sums:?}");
    for (number, pair) in sums.chunks(2).enumerate() {
        assert_eq!(pair[0], pair[1], "CHECKSUM TABLE of comparison {number}");
    }
}

/// What is refused is refused by name, and with --schema less is.
pub(super) fn what_is_not_whole_is_refused(source: &Server, daemon: &Daemon) {
    let (sql, url, dir) = (|text: &str| source.sql(text), url(source), daemon.data_dir());
    sql(
        "CREATE TABLE shop.g (id INT PRIMARY KEY, twice INT AS (id * 2) STORED); INSERT INTO shop.g (id) VALUES (10), (9)",
    );
    sql(
        "CREATE TABLE shop.base (id INT PRIMARY KEY); SET SESSION binlog_format = STATEMENT; CREATE TABLE shop.filled SELECT 1 AS id",
    );
    sql("SET GLOBAL binlog_row_metadata = FULL");
    sql(
        "CREATE TABLE shop.kept (id INT PRIMARY KEY, password VARCHAR(9), n INT DEFAULT -1, s INT, FOREIGN KEY (s) REFERENCES shop.base (id) ON DELETE SET NULL); INSERT INTO shop.base VALUES (1); INSERT INTO shop.kept (id, s) VALUES (5, 1); CREATE TABLE shop.under (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES shop.child (id) ON DELETE CASCADE); INSERT INTO shop.child VALUES (77, NULL); INSERT INTO shop.under VALUES (1, 77)",
    );
    let before = gtid(source);
    sql("DELETE FROM shop.base");
    sql(
        "CREATE TABLE shop.users (id INT PRIMARY KEY, `password` VARCHAR(9)); INSERT INTO shop.users (id) VALUES (1); CREATE TABLE shop.empty (id INT PRIMARY KEY); CREATE TABLE shop.parted (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2; INSERT INTO shop.parted VALUES (1), (2); ALTER TABLE shop.parted TRUNCATE PARTITION p0",
    );
    if source.kind() == ServerKind::MySql {
        sql(
            "CREATE TABLE shop.doc (id INT PRIMARY KEY, j JSON); INSERT INTO shop.doc VALUES (1, '{\"a\": \"some text that is long enough\", \"b\": 1}'); SET SESSION binlog_row_value_options = PARTIAL_JSON; UPDATE shop.doc SET j = JSON_SET(j, '$.b', 2)",
        );
    } else {
        sql(
            "CREATE TABLE shop.versioned (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING; INSERT INTO shop.versioned VALUES (1, 1)",
        );
    }
    daemon.wait_caught_up(source);
    let run = |table: &str, arguments: &[&str]| {
        let output = binlogd(&[&["table", dir.to_str().unwrap(), table], arguments].concat());
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let refused = |table: &str, arguments: &[&str], words: &str| {
        let (code, rows, said) = run(table, arguments);
        assert!(
            code == 1 && rows.is_empty() && said.contains(words),
            "{table} {arguments:?}: {code} {rows} {said}"
        );
    };
    // As `row` has left them.
    refused("shop.s", &[], "something changed the table that the log does not have");
    refused("shop.unnamed", &[], "does not name the columns of shop.unnamed");
    refused("shop.nowhere", &[], "there was no table shop.nowhere then: CREATE DATABASE shop");
    refused("nowhere.t", &[], "no CREATE TABLE, TRUNCATE or CREATE DATABASE tells that it was empty");
    refused("shop.t", &["--at", "2101-01-01 00:00:00Z"], "may not have been received");
    refused("shop.filled", &[], "CREATE TABLE shop.filled SELECT 1 AS id");
    refused("shop.parted", &[], "TRUNCATE PARTITION");
    match source.kind() {
        ServerKind::MySql => {
            refused("shop.doc", &[], "partial update");
            assert_eq!(run("shop.kept", &[]).1, "id,password,n,s\r\n5,\\N,-1,\\N\r\n");
        }
        ServerKind::MariaDb => {
            refused(
                "shop.kept",
                &[],
                "it changes rows of shop.base, to which a foreign key of the table points",
            );
            refused("shop.versioned", &[], "system versioned");
        }
    }
    // What stands behind a secret in a definition counts.
    assert_eq!(
        run("shop.kept", &["--at", &format!("after {before}")]).1,
        "id,password,n,s\r\n5,\\N,-1,1\r\n"
    );
    // Of foreign keys of the parent the log knows nothing, where it does not have what they do.
    let is_silent = source.kind() == ServerKind::MariaDb;
    for (table, words) in
        [("shop.kept", "what foreign keys of shop.base did"), ("shop.under", "of shop.child did")]
    {
        let at = format!("after {before}");
        let (code, _, said) = run(table, &["--at", &at]);
        assert_eq!((code, said.contains(words)), (i32::from(is_silent), is_silent), "{said}");
        let (code, _, said) = run(table, &["--at", &at, "--schema", &url]);
        let has_some = is_silent && table == "shop.under";
        assert_eq!((code, said.contains(words)), (i32::from(has_some), has_some), "{said}");
    }
    assert_eq!(run("shop.users", &[]).1, "id,password\r\n1,\\N\r\n");
    let (code, rows, said) = run("shop.empty", &[]);
    assert!(rows.is_empty() && said.contains("has not named its columns"), "{code} {said}");
    assert_eq!(run("shop.unnamed", &["--schema", &url]).1, "id,v\r\n1,5\r\n");
    // Numbers in their order; what the server computes is left out of SQL where somebody tells what that is.
    let (_, csv, said) = run("shop.g", &["--schema", &url]);
    assert_eq!(run("shop.bag", &[]).1, run("shop.bag", &[]).1, "two runs give other bytes");
    assert_eq!(csv, "id,twice\r\n9,18\r\n10,20\r\n", "{said}");
    let work = tempfile::tempdir().unwrap();
    let path = work.path().join("g.sql");
    let output = ["--to", "sql", "--schema", &url, "--output", path.to_str().unwrap()];
    let (_, rows, said) = run("shop.g", &output);
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(
        rows.is_empty() && written.contains("INSERT INTO `g` (`id`) VALUES\n(9),\n(10);\nCOMMIT;"),
        "{written} {said}"
    );
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(said.contains("shop.g") && said.contains(": 2 rows") && said.contains("empty at:"), "{said}");
    let (code, _, said) = run("shop.g", &output);
    assert!(code == 2 && said.contains("nothing is written over"), "{said}");
}
