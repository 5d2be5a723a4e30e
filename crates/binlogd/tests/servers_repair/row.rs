//! `binlogd row` on copies of real servers: what SELECT gave after each of hundreds of random transactions is what the log tells of that
//! point, row by row, from the copy and from the archive.

mod table;

use crate::common::daemon::{Daemon, url};
use crate::common::verbs::{binlogd, text};
use crate::common::{Server, seed};
use archive::keys::Identities;
use archive::reader::Reader;
use archive::segment::Opener;
use archive::store::remote::Folder;
use binlog::testing::Random;
use codec::ServerKind;
use past::{Answer, Key, Line, Request, State};
use points::table::TableName;
use repair::detail::Known;
use repair::history::Until;
use repair::searched::{Searchable, SearchedSource};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
/// The rows of one moment, by their keys: `a` and `k`.
type Rows = BTreeMap<(u64, String), (Value, Value)>;

const TEXTS: [&str; 5] = ["x", "X", "", "Ä b", "it is"];

/// After each transaction, by its GTID.
struct Moment {
    gtid: String,
    rows: Rows,
    /// The log has whole rows up to here.
    is_full: bool,
}

fn options(name: &str) -> Vec<&'static str> {
    let own: &[&str] = match name.starts_with("mysql") {
        true => &["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--binlog-rows-query-log-events=ON"],
        false => &["--binlog-format=ROW"],
    };
    [own, &["--binlog-row-metadata=FULL"]].concat()
}

/// One random transaction.
fn transaction(random: &mut Random) -> String {
    let key = |random: &mut Random| (random.below(4), *random.pick(&TEXTS));
    let value =
        |random: &mut Random| if random.one_in(4) { "NULL".to_owned() } else { random.below(9).to_string() };
    let one = |random: &mut Random| {
        let ((a, k), v) = (key(random), value(random));
        match random.below(8) {
            0..=2 => format!(
                "REPLACE INTO shop.t (a, k, v, w) VALUES ({a}, '{k}', {v}, REPEAT('w', {}))",
                random.below(6)
            ),
            3 => format!("UPDATE shop.t SET v = {v} WHERE a = {a}"),
            4 => format!("UPDATE shop.t SET w = CONCAT(COALESCE(w, ''), 'u'), v = NULL WHERE k = '{k}'"),
            5 => {
                let (b, l) = key(random);
                format!("UPDATE IGNORE shop.t SET a = {b}, k = '{l}' WHERE a = {a} AND k = '{k}'")
            }
            6 => format!("DELETE FROM shop.t WHERE a = {a} AND k = '{k}'"),
            _ => format!("INSERT IGNORE INTO shop.t (a, k, v) VALUES ({a}, '{k}', {v})"),
        }
    };
    match random.below(12) {
        0 => {
            let (kept, dropped) = (one(random), one(random));
            format!("BEGIN; {kept}; SAVEPOINT s; {dropped}; ROLLBACK TO s; {}; COMMIT", one(random))
        }
        1 => format!("XA START 'x'; {}; XA END 'x'; XA PREPARE 'x'; XA COMMIT 'x'", one(random)),
        2 => format!("XA START 'x'; {}; XA END 'x'; XA PREPARE 'x'; XA ROLLBACK 'x'", one(random)),
        3..=5 => format!("BEGIN; {}; {}; {}; COMMIT", one(random), one(random), one(random)),
        _ => one(random),
    }
}

/// What happens to the table beside its rows, at these steps.
fn definition(step: u64) -> Option<&'static [&'static str]> {
    Some(match step {
        60 => &["ALTER TABLE shop.t ADD x INT DEFAULT 7"],
        110 => &["TRUNCATE TABLE shop.t"],
        160 => &[
            "CREATE TABLE shop.n LIKE shop.t",
            "INSERT INTO shop.n SELECT * FROM shop.t",
            "RENAME TABLE shop.t TO shop.o, shop.n TO shop.t",
            "DROP TABLE shop.o",
        ],
        200 => &["ALTER TABLE shop.t ADD INDEX (v)", "FLUSH BINARY LOGS"],
        230 => &["DROP TABLE shop.t", CREATE],
        step if step % 35 == 0 => &["FLUSH BINARY LOGS"],
        _ => return None,
    })
}

const CREATE: &str = "CREATE TABLE shop.t (a INT UNSIGNED, k VARCHAR(20), v INT, w VARCHAR(90), PRIMARY KEY (a, k)) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";
const STEPS: u64 = 300;
/// From this step on the log has only what changed of a row.
const MINIMAL_FROM: u64 = 250;

/// Does all of it, and keeps what SELECT gives after each transaction.
fn moments(source: &Server, random: &mut Random) -> Vec<Moment> {
    let position = match source.kind() {
        ServerKind::MySql => "@@GLOBAL.gtid_executed",
        ServerKind::MariaDb => "@@GLOBAL.gtid_binlog_pos",
    };
    let look =
        format!("SELECT '#', REPLACE({position}, '\\n', ''); SELECT a, CONCAT('k', k), v, w FROM shop.t");
    let mut script = vec![format!("SET NAMES utf8mb4; CREATE DATABASE shop; {CREATE}"), look.clone()];
    for step in 1..STEPS {
        if step == MINIMAL_FROM {
            script.push("SET SESSION binlog_row_image = MINIMAL".to_owned());
        }
        for statement in definition(step).unwrap_or_default() {
            let is_gone = statement.starts_with("DROP TABLE shop.t");
            script.push((*statement).to_owned());
            script.extend((!is_gone).then(|| look.clone()));
        }
        script.push(transaction(random));
        script.push(format!("SELECT '@', {step}; {look}"));
    }
    let mut moments: Vec<Moment> = Vec::new();
    let mut step = 0;
    for line in source.sql(&script.join(";\n")).lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        match columns[..] {
            ["@", number] => step = number.parse().unwrap(),
            ["#", position] => {
                let gtid = match position.rsplit_once([':', '-']) {
                    Some((_, last)) if source.kind() == ServerKind::MySql => {
                        format!("{}:{last}", position.split(':').next().unwrap())
                    }
                    _ => position.to_owned(),
                };
                moments.push(Moment { gtid, rows: Rows::new(), is_full: step < MINIMAL_FROM });
            }
            [a, k, v, w] => {
                let v = if v == "NULL" { Value::Null } else { v.parse::<i64>().unwrap().into() };
                let w = if w == "NULL" { Value::Null } else { w.into() };
                let key = (a.parse().unwrap(), k[1..].to_owned());
                moments.last_mut().unwrap().rows.insert(key, (v, w));
            }
            _ => panic!("{line}"),
        }
    }
    // What changed nothing has no GTID of its own.
    moments.dedup_by(|later, earlier| {
        let is_same = later.gtid == earlier.gtid;
        assert!(!is_same || later.rows == earlier.rows, "{}", later.gtid);
        is_same
    });
    moments
}

fn ask(source: &SearchedSource, table: &str, key: &[String], at: &str) -> Result<Answer, String> {
    let line = Line::of(source, None)?;
    let table = TableName { schema: "shop".to_owned(), table: table.to_owned() };
    let until = Until::parse(at, &|_| None)?;
    past::state(
        &Request { line: &line, table: &table, key: &Key::given(key), at: &until },
        &mut Known::default(),
    )
}

/// What is wrong with an answer.
fn difference(answer: &Answer, truth: Option<&(Value, Value)>, is_full: bool) -> Option<String> {
    if is_full && !answer.doubts.is_empty() {
        return Some(format!("doubts: {:?}", answer.doubts));
    }
    let (columns, values) = match (&answer.state, truth) {
        (State::NotThere, None) => return None,
        (State::There { columns, values }, Some(_)) => (columns, values),
        // In doubt, and said so.
        (State::NotKnown, _) if !is_full && !answer.doubts.is_empty() => return None,
        (state, truth) => return Some(format!("{state:?} is not {truth:?}, {:?}", answer.doubts)),
    };
    let (v, w) = truth?;
    for (name, truth) in [("v", v), ("w", w)] {
        let at = columns.iter().position(|column| column.name == name)?;
        match &values[at] {
            Some(cell) if cell.json == *truth => {}
            None if !is_full && answer.doubts.iter().any(|doubt| doubt.contains(name)) => {}
            cell => return Some(format!("{name}: {cell:?} is not {truth}")),
        }
    }
    None
}

/// Random rows at random points.
fn compare(source: &SearchedSource, moments: &[Moment], random: &mut Random, count: u64) {
    let mut wrong = Vec::new();
    for _ in 0..count {
        let at = 1 + random.below(moments.len() as u64 - 1) as usize;
        let key = (random.below(4), (*random.pick(&TEXTS)).to_owned());
        let (point, moment) = match random.one_in(2) {
            true => (format!("after {}", moments[at].gtid), &moments[at]),
            false => (format!("before {}", moments[at].gtid), &moments[at - 1]),
        };
        // Between the two stands an XA PREPARE, or what made a table that is looked at later.
        if point.starts_with("before") && !follows(&moments[at - 1].gtid, &moments[at].gtid) {
            continue;
        }
        let is_full = moment.is_full && moments[at].is_full;
        let parts = [format!("a={}", key.0), format!("k={}", key.1)];
        let found =
            ask(source, "t", &parts, &point).unwrap_or_else(|error| panic!("{point} {key:?}: {error}"));
        if let Some(what) = difference(&found, moment.rows.get(&key), is_full) {
            let by = |change: &Option<Box<past::Change>>| {
                change
                    .as_ref()
                    .map(|change| format!("{} of {:?} {:?}", change.verb(), change.at.gtid, change.statement))
            };
            let (made_by, next) = (by(&found.made_by), by(&found.next));
            wrong.push(format!("{point} {key:?}: {what}; made by {made_by:?}, next {next:?}"));
        }
    }
    wrong.truncate(5);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Whether no transaction stands between two.
fn follows(before: &str, at: &str) -> bool {
    let number = |gtid: &str| gtid.rsplit([':', '-']).next().unwrap().parse::<u64>().unwrap();
    number(before) + 1 == number(at)
}

struct Scene {
    source: Server,
    daemon: Daemon,
}

impl Scene {
    fn row(&self, table: &str, arguments: &[&str]) -> (i32, Value, String) {
        self.daemon.wait_caught_up(&self.source);
        let dir = self.daemon.data_dir();
        let output = binlogd(&[&["row", dir.to_str().unwrap(), table, "--json"], arguments].concat());
        let said = text(&output.stderr);
        (output.status.code().unwrap(), serde_json::from_slice(&output.stdout).unwrap_or_default(), said)
    }

    /// It is known, and was this; null where there was none.
    #[track_caller]
    fn was(&self, table: &str, arguments: &[&str], column: &str) -> Value {
        let (code, answer, said) = self.row(table, arguments);
        assert_eq!(code, 0, "{arguments:?}: {answer:#} {said}");
        answer["row"][column].clone()
    }

    #[track_caller]
    fn doubted(&self, table: &str, arguments: &[&str], words: &str) {
        let (code, answer, said) = self.row(table, arguments);
        assert!(
            code == 1 && answer["doubts"].to_string().contains(words),
            "{arguments:?}: {code} {answer:#} {said}"
        );
    }
}

fn every_row_was_what_select_gave(name: &str) {
    let source = Server::start(name, &options(name));
    let work = tempfile::tempdir().unwrap();
    let folder = work.path().join("archive");
    let daemon = Daemon::start(
        &source,
        &["--archive-url", &format!("file://{}", folder.display()), "--archive-interval", "1s"],
    );
    let mut random = Random::new(seed());
    let moments = moments(&source, &mut random);
    assert!(moments.len() > 200, "{}", moments.len());
    let scene = Scene { source, daemon };
    scene.daemon.wait_caught_up(&scene.source);
    let dir = scene.daemon.data_dir();
    let copies = Searchable::Copies { data_dir: &dir, source: None }.sources(None).unwrap();
    compare(&copies[0], &moments, &mut random, 2000);
    let is_archived = |source: &Value| {
        let archived = &source["archive"]["archived"];
        !archived.is_null() && *archived == source["positions"]["durable"]
    };
    scene.daemon.wait_until(is_archived, PATIENCE);
    let archived = archived(&folder);
    compare(&archived[0], &moments, &mut random, 300);
    table::compare(&copies[0], &moments, &mut random, 60);
    table::compare(&archived[0], &moments, &mut random, 10);
    table::every_table_was_what_select_gave(&scene.source, &scene.daemon, &mut random);
    what_became_of_a_row_is_told(&scene);
    what_the_log_does_not_tell_is_said(&scene);
    table::what_is_not_whole_is_refused(&scene.source, &scene.daemon);
}

fn archived(folder: &Path) -> Vec<SearchedSource> {
    let store = Arc::new(Folder::open(folder).unwrap());
    let reader = Reader { store, opener: Arc::new(Opener::new(Identities::new())) };
    Searchable::Archive { reader: &reader, sources: &["default".to_owned()] }.sources(None).unwrap()
}

fn what_became_of_a_row_is_told(scene: &Scene) {
    scene.source.sql(
        "CREATE TABLE shop.orders (id INT PRIMARY KEY, total DECIMAL(9,2)); INSERT INTO shop.orders VALUES (42, 1.50), (7, 9); \
         UPDATE shop.orders SET total = 2.50 WHERE id = 42; UPDATE shop.orders SET id = 43 WHERE id = 42; \
         DELETE FROM shop.orders WHERE id = 43",
    );
    let (code, all, said) = scene.row("shop.orders", &["--key", "43", "--history"]);
    assert_eq!(code, 0, "{all:#} {said}");
    let changes = all["changes"].as_array().unwrap();
    let verbs: Vec<&str> = changes.iter().filter_map(|one| one["change"].as_str()).collect();
    assert_eq!(verbs, ["delete", "update", "update", "insert"], "{all:#}");
    assert_eq!(
        (&changes[2]["before"]["total"], &changes[2]["after"]["total"]),
        (&"1.50".into(), &"2.50".into())
    );
    assert!(changes[2]["statement"].as_str().unwrap().starts_with("UPDATE shop.orders"), "{all:#}");
    assert!(changes[4]["definition"]["words"].as_str().unwrap().starts_with("CREATE TABLE"), "{all:#}");
    let gtid = |at: usize| changes[at]["gtid"].as_str().unwrap();
    for (key, at, total) in [
        ("42", format!("before {}", gtid(2)), "1.50".into()),
        ("42", gtid(1).to_owned(), "2.50".into()),
        ("42", format!("after {}", gtid(1)), Value::Null),
        ("43", format!("after {}", gtid(1)), "2.50".into()),
        ("id=43", "end".to_owned(), Value::Null),
        ("42", "before CREATE TABLE shop.n".to_owned(), Value::Null),
        ("7", "end".to_owned(), "9.00".into()),
    ] {
        if !at.starts_with("before CREATE") {
            assert_eq!(scene.was("shop.orders", &["--key", key, "--at", &at], "total"), total, "{key} {at}");
        }
    }
    // Page by page.
    let (_, page, _) = scene.row("shop.orders", &["--key", "43", "--history", "--limit", "2"]);
    assert_eq!(page["changes"].as_array().unwrap().len(), 2, "{page:#}");
    let (older, key) = (page["older"]["at"].as_str().unwrap(), page["older"]["key"].as_str().unwrap());
    assert_eq!(key, "--key id=42");
    let (_, rest, _) = scene.row("shop.orders", &["--key", "id=42", "--history", "--at", older]);
    assert_eq!(&rest["changes"].as_array().unwrap()[..], &changes[2..], "{rest:#}");
    // For a person.
    let dir = scene.daemon.data_dir();
    let shown = binlogd(&["row", dir.to_str().unwrap(), "shop.orders", "--key", "43", "--history"]);
    let shown = text(&shown.stdout);
    assert!(
        shown.contains("total: 1.50 → 2.50") && shown.contains("# UPDATE shop.orders SET total"),
        "{shown}"
    );
}

fn what_the_log_does_not_tell_is_said(scene: &Scene) {
    let sql = |text: &str| scene.source.sql(text);
    // Something changed it without the log.
    sql(
        "CREATE TABLE shop.s (id INT PRIMARY KEY, v INT); INSERT INTO shop.s VALUES (1, 1), (2, 1); SET sql_log_bin = 0; UPDATE shop.s SET v = 2 WHERE id = 1; SET sql_log_bin = 1; UPDATE shop.s SET v = 3",
    );
    let (_, all, _) = scene.row("shop.s", &["--key", "1", "--history"]);
    let update = all["changes"][0]["gtid"].as_str().unwrap();
    assert_eq!(all["changes"][1]["unlike_next"][0], "v: 1 → 2", "{all:#}");
    scene.doubted(
        "shop.s",
        &["--key", "1", "--at", update],
        "something changed it that the log does not have",
    );
    assert_eq!(scene.was("shop.s", &["--key", "2", "--at", update], "v"), 1);
    // A time before the log, and one that is to come.
    scene.doubted("shop.s", &["--key", "2", "--at", "2001-01-01 00:00:00Z"], "is before that");
    scene.doubted("shop.s", &["--key", "2", "--at", "2101-01-01 00:00:00Z"], "may not have been received");
    // What a foreign key did: MySQL from 9.6 on logs that.
    sql(
        "CREATE TABLE shop.child (id INT PRIMARY KEY, s INT, FOREIGN KEY (s) REFERENCES shop.s (id) ON DELETE CASCADE); INSERT INTO shop.child VALUES (9, 1); DELETE FROM shop.s WHERE id = 1",
    );
    let of_child = ["--key", "9", "--schema", &url(&scene.source)];
    match scene.source.kind() {
        ServerKind::MySql => assert!(scene.was("shop.child", &of_child, "s").is_null()),
        ServerKind::MariaDb => {
            scene.doubted("shop.child", &of_child, "changes rows of shop.child without the log")
        }
    }
    // A key that is none.
    scene.doubted("shop.s", &["--key", "v=3"], "the primary key of shop.s is (id)");
    // A statement in the place of its rows.
    sql("SET SESSION binlog_format = STATEMENT; UPDATE shop.s SET v = 4 WHERE id = 2");
    scene.doubted("shop.s", &["--key", "2"], "a statement stands in the log in the place of its rows");
    // Columns without names.
    sql("SET GLOBAL binlog_row_metadata = MINIMAL");
    sql("CREATE TABLE shop.unnamed (id INT PRIMARY KEY, v INT); INSERT INTO shop.unnamed VALUES (1, 5)");
    scene.doubted("shop.unnamed", &["--key", "1"], "does not name the columns of shop.unnamed");
    assert_eq!(scene.was("shop.unnamed", &["--key", "@1=1"], "@2"), 5);
    assert_eq!(scene.was("shop.unnamed", &["--key", "1", "--schema", &url(&scene.source)], "v"), 5);
    let (code, _, said) =
        scene.row("shop.unnamed", &["--key", "1", "--at", "before DROP TABLE shop.unnamed"]);
    assert!(code == 1 && said.contains("the log held has none"), "{said}");
}

#[test]
fn every_row_was_what_select_gave_mysql() {
    every_row_was_what_select_gave("mysql-9.7");
}

#[test]
fn every_row_was_what_select_gave_mariadb() {
    every_row_was_what_select_gave("mariadb-11.8");
}

/// What a fork took from the source is no history, and what stood in a gap is not known.
#[test]
fn a_fork_and_a_gap_are_seen() {
    const FLAGS: [&str; 4] = ["--backoff-max", "1s", "--on-gap", "record"];
    let name = "mysql-9.7";
    let mut source = Server::start(name, &options(name));
    source.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, v INT); INSERT INTO shop.t VALUES (1, 1), (2, 1), (3, 1)");
    // One transaction changes a row and gives it another key.
    source.sql("BEGIN; UPDATE shop.t SET v = 9 WHERE id = 3; UPDATE shop.t SET id = 4 WHERE id = 3; COMMIT");
    let mut daemon = Daemon::start(&source, &FLAGS);
    daemon.wait_caught_up(&source);
    source.stop();
    let backup = source.dir().join("backup");
    let copied = Command::new("cp").arg("-a").arg(source.datadir()).arg(&backup).status().unwrap();
    assert!(copied.success());
    source.restart(&[]);
    source.sql("UPDATE shop.t SET v = 2 WHERE id = 1");
    daemon.wait_caught_up(&source);
    daemon.terminate();
    source.kill();
    std::fs::remove_dir_all(source.datadir()).unwrap();
    std::fs::rename(&backup, source.datadir()).unwrap();
    source.restart(&[]);
    source.sql("UPDATE shop.t SET v = 3");
    daemon.restart(&FLAGS);
    daemon.wait_until(|_| daemon.timeline_dirs().len() == 2, PATIENCE);
    let mut scene = Scene { source, daemon };
    let (code, all, said) = scene.row("shop.t", &["--key", "1", "--history"]);
    let values = all["changes"].as_array().unwrap().iter().map(|one| one["after"]["v"].clone());
    assert_eq!((code, values.take(2).collect::<Vec<_>>()), (0, vec![3.into(), 1.into()]), "{all:#} {said}");
    let (_, all, said) = scene.row("shop.t", &["--key", "4", "--history"]);
    let values = all["changes"].as_array().unwrap().iter().map(|one| one["after"]["v"].clone());
    assert_eq!(values.take(4).collect::<Vec<_>>(), [3, 9, 9, 1].map(Value::from), "{all:#} {said}");

    scene.daemon.terminate();
    scene.source.sql("UPDATE shop.t SET v = 4 WHERE id = 1; FLUSH BINARY LOGS; FLUSH BINARY LOGS");
    let newest = scene.source.sql("SHOW BINARY LOGS");
    let newest = newest.lines().last().unwrap().split('\t').next().unwrap();
    scene.source.sql(&format!("PURGE BINARY LOGS TO '{newest}'; UPDATE shop.t SET v = 5 WHERE id = 2"));
    scene.daemon.restart(&FLAGS);
    scene.daemon.wait_until(|_| scene.daemon.timeline_dirs().len() == 3, PATIENCE);
    scene.doubted("shop.t", &["--key", "1"], "(a gap)");
    assert_eq!(scene.was("shop.t", &["--key", "2"], "v"), 5);
}

/// How long it takes over many files with search indexes, of which few have the table. Prints it.
#[test]
#[ignore = "a measurement"]
fn a_thousand_files() {
    let name = "mysql-9.7";
    let source = Server::start(name, &options(name));
    let daemon = Daemon::start(&source, &[]);
    source.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, v INT); CREATE TABLE shop.other (id INT PRIMARY KEY, v TEXT); INSERT INTO shop.t VALUES (1, 1)");
    for from in (0..1000).step_by(100) {
        let script =
            |at: u64| format!("INSERT INTO shop.other VALUES ({at}, REPEAT('x', 5000)); FLUSH BINARY LOGS;");
        source.sql(&(from..from + 100).map(script).collect::<String>());
    }
    source.sql("UPDATE shop.t SET v = 2");
    let scene = Scene { source, daemon };
    let (_, all, _) = scene.row("shop.t", &["--key", "1", "--history"]);
    let gtid = all["changes"][0]["gtid"].as_str().unwrap().to_owned();
    for arguments in [&["--key", "1", "--at", &gtid][..], &["--key", "1", "--history"]] {
        let began = Instant::now();
        let (code, answer, _) = scene.row("shop.t", arguments);
        assert_eq!(code, 0, "{answer:#}");
        println!("{arguments:?} over a thousand files: {:?}", began.elapsed());
    }
}
