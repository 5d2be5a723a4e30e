//! `binlogd show` on copies of real servers: every value of every type is what SELECT gives, and what `mysqlbinlog -v` prints.

mod charsets;
pub(crate) mod types;
mod verbose;

use crate::common::Server;
use crate::common::daemon::{Daemon, url};
use crate::common::verbs::{binlogd, binlogd_on_a_terminal, text};
use codec::ServerKind;
use serde_json::Value;
use std::process::Output;
use types::{Compared, Typed};

/// The servers' sql_mode here lets in zero dates; the time zone is another one than UTC.
const SESSION: &str = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'";

fn start(name: &str) -> Server {
    match name.starts_with("mysql") {
        true => Server::start(
            name,
            &["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--default-time-zone=+05:30"],
        ),
        false => Server::start(name, &["--binlog-format=ROW", "--default-time-zone=+05:30"]),
    }
}

/// One value of `binlogd show --json`, and what SELECT gives for it; `None` is NULL.
#[track_caller]
fn assert_same(what: &str, compared: Compared, shown: &Value, selected: Option<&str>) {
    let Some(selected) = selected else {
        assert!(shown.is_null(), "{what}: {shown}");
        return;
    };
    let decoded = || String::from_utf8(unhex(selected)).expect("UTF-8");
    let hex = || shown["hex"].as_str().unwrap_or_else(|| panic!("{what}: {shown}"));
    match compared {
        Compared::Plain | Compared::Timestamp | Compared::Bit => {
            let text = shown.as_str().map_or_else(|| shown.to_string(), str::to_owned);
            assert_eq!(text, selected, "{what}");
        }
        Compared::Float => {
            let (shown, selected) = (shown.as_f64().unwrap() as f32, selected.parse::<f64>().unwrap() as f32);
            assert_eq!(shown, selected, "{what}");
        }
        Compared::Double => assert_eq!(shown.as_f64().unwrap(), selected.parse::<f64>().unwrap(), "{what}"),
        Compared::Text | Compared::OtherText | Compared::Packed | Compared::Enum | Compared::Set => {
            assert_eq!(shown.as_str(), Some(decoded().as_str()), "{what}");
        }
        Compared::Json => {
            let parse =
                |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|_| panic!("{what}: {text}"));
            assert_eq!(
                parse(shown.as_str().unwrap_or_else(|| panic!("{what}: {shown}"))),
                parse(&decoded()),
                "{what}"
            );
        }
        Compared::NotTold => {
            assert_eq!(shown["encoded"].as_str().map(str::to_uppercase).as_deref(), Some(selected), "{what}");
        }
        Compared::Bytes | Compared::PackedBytes | Compared::Raw => {
            assert_eq!(hex().to_uppercase(), selected, "{what}")
        }
        Compared::Address => match shown.as_str() {
            Some(text) => assert_eq!(text, decoded(), "{what}"),
            // Without --schema, which says what the bytes are.
            None => assert!(matches!(hex().len(), 8 | 32), "{what}"),
        },
    }
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hex")).collect()
}

struct Scene {
    source: Server,
    daemon: Daemon,
    types: Vec<Typed>,
}

impl Scene {
    fn new(name: &str) -> Scene {
        let source = start(name);
        let daemon = Daemon::start(&source, &[]);
        source.sql("CREATE DATABASE shop");
        Scene { types: types::all(&source), source, daemon }
    }

    /// The rows of a table as SELECT gives them, by id.
    fn selected(&self, table: &str) -> Vec<Vec<Option<String>>> {
        let columns: Vec<String> =
            (0..).zip(&self.types).map(|(at, (_, compared, _))| types::selected(at, *compared)).collect();
        let out =
            self.source.sql(&format!("{SESSION}; SELECT {} FROM {table} ORDER BY id", columns.join(", ")));
        let value = |text: &str| (text != "NULL").then(|| text.to_owned());
        out.lines().map(|line| line.split('\t').map(value).collect()).collect()
    }

    fn show(&self, arguments: &[&str]) -> Output {
        let dir = self.daemon.data_dir();
        binlogd(&[&["show", dir.to_str().unwrap()], arguments].concat())
    }

    #[track_caller]
    fn shown(&self, arguments: &[&str]) -> Vec<Value> {
        let output = self.show(&[&["--json", "--rows", "0"], arguments].concat());
        assert!(output.status.success(), "{arguments:?}: {} {}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// The only change of rows of the only transaction.
    #[track_caller]
    fn change(&self, arguments: &[&str]) -> Value {
        let found = self.shown(arguments);
        assert_eq!(found.len(), 1, "{arguments:?}");
        let changes = found[0]["changes"].as_array().unwrap();
        let rows: Vec<&Value> = changes.iter().filter(|change| change.get("rows").is_some()).collect();
        assert_eq!(rows.len(), 1, "{arguments:?}: {changes:?}");
        rows[0].clone()
    }

    #[track_caller]
    fn assert_images(&self, change: &Value, image: &str, selected: &[Vec<Option<String>>]) {
        let rows = change["rows"].as_array().unwrap();
        assert_eq!(rows.len(), selected.len(), "{image}");
        for (number, (row, selected)) in rows.iter().zip(selected).enumerate() {
            for (at, ((sql, compared, _), selected)) in self.types.iter().zip(selected).enumerate() {
                let what = format!("{} {image} of row {number}: {sql}", change["change"]);
                assert_same(&what, *compared, &row[image][at + 1], selected.as_deref());
            }
        }
    }
}

fn every_value_is_what_select_gives(name: &str) {
    let mut scene = Scene::new(name);
    let is_mysql = scene.source.kind() == ServerKind::MySql;
    let schema = url(&scene.source);
    let lesser = if is_mysql { "MINIMAL" } else { "NO_LOG" };
    let packed = if is_mysql {
        "SET SESSION binlog_transaction_compression = ON"
    } else {
        "SET GLOBAL log_bin_compress = ON"
    };
    for (table, metadata, before) in
        [("full", "FULL", "SELECT 1"), ("lesser", lesser, "SELECT 1"), ("packed", "FULL", packed)]
    {
        let table = format!("shop.{table}");
        // What the log says of columns stands there by their kinds, in their order: in another one too.
        if table == "shop.packed" {
            scene.types.reverse();
        }
        let tiny = scene.types.iter().position(|(sql, ..)| *sql == "TINYINT").map(types::name).unwrap();
        scene.source.sql(&format!("SET GLOBAL binlog_row_metadata = {metadata}"));
        scene.source.sql(&types::create(&table, &scene.types));
        scene.source.sql(&format!("{SESSION}; {before}; {}", types::insert(&table, &scene.types)));
        let inserted = scene.selected(&table);
        assert_eq!(inserted.len(), types::rows(&scene.types));
        scene
            .source
            .sql(&format!("{SESSION}; {before}; UPDATE {table} SET {tiny} = 7, id = id + 1000 ORDER BY id"));
        let updated = scene.selected(&table);
        scene.source.sql(&format!("{SESSION}; {before}; DELETE FROM {table} ORDER BY id"));
        scene.daemon.wait_caught_up(&scene.source);
        let ask = if metadata == "FULL" { vec![] } else { vec!["--schema", &schema] };
        let change = |kind| scene.change(&[&["--table", &table, "--kind", kind][..], &ask].concat());
        let insert = change("insert");
        assert_eq!((&insert["named"], &insert["columns"][1]["name"]), (&true.into(), &"c0".into()));
        assert_eq!(insert["columns"][0]["key"], true);
        // Told where a server was asked; to a log it is BINARY.
        let has_uuid = insert["columns"].as_array().unwrap().iter().any(|column| column["type"] == "UUID");
        assert_eq!(has_uuid, !is_mysql && !ask.is_empty());
        scene.assert_images(&insert, "after", &inserted);
        let update = change("update");
        scene.assert_images(&update, "before", &inserted);
        scene.assert_images(&update, "after", &updated);
        scene.assert_images(&change("delete"), "before", &updated);
    }

    scene.types.reverse();

    // Without the names, and nobody to ask.
    let change = scene.change(&["--table", "shop.lesser", "--kind", "insert"]);
    assert_eq!((&change["named"], &change["columns"][1]["name"]), (&false.into(), &"@2".into()));
    let output = scene.show(&["--table", "shop.lesser", "--kind", "insert", "--rows", "2"]);
    let said = text(&output.stdout);
    for words in
        ["INSERT shop.lesser", "@1=0", "more rows: --rows 0 shows all", "the log does not name the columns"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    // A server whose table has become another one is not believed.
    scene.source.sql("ALTER TABLE shop.lesser DROP COLUMN c3");
    let change = scene.change(&["--table", "shop.lesser", "--kind", "insert", "--schema", &schema]);
    assert!(change["note"].as_str().unwrap().contains("another one than the log's"), "{}", change["note"]);

    // For people.
    let output = scene.show(&["--table", "shop.full", "--kind", "update"]);
    let said = text(&output.stdout);
    assert!(
        output.status.success()
            && said.contains("UPDATE shop.full")
            && said.contains("id: 0 → 1000, c0: -128 → 7"),
        "{said}"
    );

    by_its_place(&scene);
    colours_are_for_a_terminal(&scene);

    // MySQL's mysqlbinlog breaks off a row at a geometry.
    let mut types = scene.types.clone();
    types.retain(|(_, compared, _)| !is_mysql || *compared != Compared::Raw);
    scene.source.sql("SET GLOBAL binlog_row_metadata = FULL");
    scene.source.sql(&types::create("shop.verbose", &types));
    scene.source.sql(&format!("{SESSION}; {}", types::insert("shop.verbose", &types)));
    scene.daemon.wait_caught_up(&scene.source);
    let shown = scene.change(&["--table", "shop.verbose", "--kind", "insert"]);
    verbose::compare(&scene.source, &scene.daemon, &types, &shown);
    charsets::compare(&scene.source);
}

fn by_its_place(scene: &Scene) {
    let update = &scene.shown(&["--table", "shop.full", "--kind", "update"])[0];
    let file = update["file"].as_str().unwrap();
    let (from, to) = (update["position"].as_u64().unwrap(), update["end_position"].as_u64().unwrap());
    for at in [from, from + 1, to - 1] {
        let shown = scene.shown(&["--at", &format!("{file}:{at}")]);
        assert_eq!((shown.len(), &shown[0]["gtid"]), (1, &update["gtid"]), "{at}");
    }
    assert_ne!(scene.shown(&["--at", &format!("{file}:{to}")])[0]["gtid"], update["gtid"]);
    for (at, code, words) in [
        (&format!("{file}:99999999"), 1, "nothing was found"),
        (&"mysql-bin.999999:4".to_owned(), 1, "nothing was found"),
        (&file.to_owned(), 2, "write FILE:POSITION"),
    ] {
        let output = scene.show(&["--at", at]);
        let said = text(&[&output.stdout[..], &output.stderr].concat());
        assert!(output.status.code() == Some(code) && said.contains(words), "{at}: {said}");
    }
}

fn colours_are_for_a_terminal(scene: &Scene) {
    let asked = ["--table", "shop.full", "--kind", "update"];
    let piped = scene.show(&asked);
    assert!(piped.status.success() && !piped.stdout.contains(&0x1b), "{}", text(&piped.stdout));
    let dir = scene.daemon.data_dir();
    let arguments = [&["show", dir.to_str().unwrap()][..], &asked].concat();
    let Some(seen) = binlogd_on_a_terminal(&arguments, &[]) else { return };
    let seen = text(&seen.stdout);
    for words in
        ["\u{1b}[1;33mUPDATE\u{1b}[0m shop.full", "c0: \u{1b}[1;31m-128\u{1b}[0m → \u{1b}[1;32m7\u{1b}[0m"]
    {
        assert!(seen.contains(words), "{words:?}: {seen:?}");
    }
    let plain = binlogd_on_a_terminal(&arguments, &[("NO_COLOR", "1")]).unwrap();
    assert_eq!(text(&plain.stdout).replace("\r\n", "\n"), text(&piped.stdout));
}

#[test]
fn mysql_types() {
    every_value_is_what_select_gives("mysql-9.7");
}

#[test]
fn mariadb_types() {
    every_value_is_what_select_gives("mariadb-11.8");
}

#[test]
fn mysql_8_0_31_types() {
    every_value_is_what_select_gives("mysql-8.0.31");
}

#[test]
fn mariadb_10_11_types() {
    every_value_is_what_select_gives("mariadb-10.11");
}
