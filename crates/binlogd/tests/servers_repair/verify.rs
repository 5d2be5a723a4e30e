//! `binlogd verify` and the offline `binlogd status` as an operator sees them, on binary logs of real servers.

use crate::common::Server;
use codec::ServerKind;
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_binlogd")).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn verify(data_dir: &Path) -> (i32, String) {
    let (code, out, errors) = run(&["verify", data_dir.to_str().unwrap()]);
    assert_eq!(errors, "");
    (code, out)
}

/// A data folder with the binary logs of `server` as its only timeline.
fn copy_of(server: &Server, uuid: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("orders").join(format!("0001-{uuid}"));
    std::fs::create_dir_all(&folder).unwrap();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(server.datadir()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        // Not the index, nor MariaDB's GTID indexes (mysql-bin.000001.idx).
        let is_log = |number: &str| number.bytes().all(|byte| byte.is_ascii_digit());
        if name.strip_prefix("mysql-bin.").is_some_and(is_log) {
            std::fs::copy(&path, folder.join(&name)).unwrap();
            names.push(name);
        }
    }
    names.sort();
    std::fs::write(folder.join("binlog.index"), names.join("\n") + "\n").unwrap();
    let toml = format!(
        "began_at = \"2026-01-02T03:04:05Z\"\nreason = \"first\"\nserver_uuid = \"{uuid}\"\nserver_version = \"1\"\n\
         server_kind = \"{}\"\nfirst_file = \"{}\"\n",
        server.kind().name(),
        names[0]
    );
    std::fs::write(folder.join("timeline.toml"), toml).unwrap();
    (dir, folder)
}

/// Files that end with a rotation, a shutdown and a crash, with transactions in each.
fn history(server: &mut Server) {
    server
        .sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT) ENGINE=InnoDB");
    for round in 0..3 {
        server.sql("INSERT INTO d.t (v) VALUES (REPEAT('x', 1000)), ('y'); BEGIN; DELETE FROM d.t; ROLLBACK; UPDATE d.t SET v = 'z'; FLUSH BINARY LOGS; INSERT INTO d.t (v) VALUES ('w'); CREATE TABLE d.u (id INT); DROP TABLE d.u");
        match round {
            0 => server.stop(),
            1 => server.kill(),
            _ => continue,
        }
        // An operator may change it: that is no other server.
        server.restart(&["--server-id=11"]);
    }
    server.sql("INSERT INTO d.t (v) VALUES ('last')");
    server.kill();
}

/// As a binlogd below another one took it: a file of this server in the timeline of the one that was promoted.
#[track_caller]
fn assert_another_server_is_found(data_dir: &Path, folder: &Path, file: &str, uuid: &str) {
    let other =
        if uuid.starts_with("mariadb-") { "mariadb-2" } else { "11111111-2222-3333-4444-555555555555" };
    let promoted = data_dir.join("orders").join(format!("0002-{other}"));
    std::fs::create_dir_all(&promoted).unwrap();
    std::fs::copy(folder.join(file), promoted.join(file)).unwrap();
    std::fs::write(promoted.join("binlog.index"), format!("{file}\n")).unwrap();
    let described = std::fs::read_to_string(folder.join("timeline.toml")).unwrap();
    let first = described.lines().find(|line| line.starts_with("first_file")).unwrap();
    let described = described.replace(uuid, other).replace(first, &format!("first_file = \"{file}\""));
    std::fs::write(promoted.join("timeline.toml"), described).unwrap();
    let (code, out) = verify(data_dir);
    let found = format!(
        "damage: {file}: another server wrote it than {other}: timeline 0001-{uuid} has the same file"
    );
    assert!(code == 1 && out.contains(&found) && out.contains("DAMAGED (1 problem found)"), "{out}");
    std::fs::remove_dir_all(&promoted).unwrap();
    assert_eq!(verify(data_dir).0, 0);
}

fn check(name: &str, uuid: &str) {
    let mut server = Server::start(name, &[]);
    let uuid = &match server.kind() {
        ServerKind::MySql => uuid.to_owned(),
        ServerKind::MariaDb => format!("mariadb-{}", server.sql("SELECT @@server_id").trim()),
    };
    history(&mut server);
    let (dir, folder) = copy_of(&server, uuid);
    let (code, out) = verify(dir.path());
    assert_eq!(code, 0, "{name}\n{out}");
    assert!(
        out.contains("ok, the source was stopped")
            && out.contains("without ROTATE or STOP: the source crashed"),
        "{out}"
    );
    assert!(out.contains("ok, live, 0 bytes after the last boundary"), "{out}");
    assert!(out.lines().last().unwrap().starts_with("no damage: "), "{out}");

    let status = run(&["status", "--json", "--data-dir", dir.path().to_str().unwrap()]);
    let json: serde_json::Value = serde_json::from_str(&status.1).unwrap();
    let source = &json["sources"][0];
    let mut names: Vec<String> =
        std::fs::read_to_string(folder.join("binlog.index")).unwrap().lines().map(str::to_owned).collect();
    let live = names.pop().unwrap();
    let len = std::fs::metadata(folder.join(&live)).unwrap().len();
    assert_eq!((status.0, &json["running"], &source["state"]), (1, &false.into(), &"not running".into()));
    assert_eq!(source["positions"]["durable"], serde_json::json!({"file": live, "position": len}));
    assert_eq!(source["positions"]["acknowledged"], serde_json::Value::Null);
    server.restart(&[]);
    let executed = match server.kind() {
        ServerKind::MySql => server.sql("SELECT @@global.gtid_executed"),
        ServerKind::MariaDb => server.sql("SELECT @@global.gtid_binlog_pos"),
    };
    assert_eq!(source["gtid"]["durable"], executed.trim().replace("\\n", ""), "{name}");

    assert_another_server_is_found(dir.path(), &folder, &names[1], uuid);

    // Any byte of a sealed file.
    let path = folder.join(&names[1]);
    let sound = std::fs::read(&path).unwrap();
    let mut bytes = sound.clone();
    let at = bytes.len() / 2;
    bytes[at] ^= 0x10;
    std::fs::write(&path, &bytes).unwrap();
    let (code, out) = verify(dir.path());
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("DAMAGED") && out.contains(&format!("damage: {} at ", names[1])), "{out}");
    // An end that is gone.
    std::fs::write(&path, &sound[..sound.len() - 1]).unwrap();
    assert_eq!(verify(dir.path()).0, 1);
    std::fs::remove_file(&path).unwrap();
    let (code, out) = verify(dir.path());
    assert!(code == 1 && out.contains("it is in binlog.index, but not in the folder"), "{out}");
    let (code, json, _) = run(&["verify", dir.path().to_str().unwrap(), "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &json["sound"]), (1, &serde_json::Value::Bool(false)));
}

#[test]
fn mysql_9_7() {
    check("mysql-9.7", "3e11fa47-71ca-11e1-9e33-c80aa9429562");
}

#[test]
fn mysql_5_7_without_gtids() {
    check("mysql-5.7.22", "3e11fa47-71ca-11e1-9e33-c80aa9429562");
}

#[test]
fn mariadb_11_8() {
    check("mariadb-11.8", "");
}

#[test]
fn the_wrong_folder_is_a_usage_error_that_says_which_is_right() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let timeline = root.join("orders/0001-x");
    std::fs::create_dir_all(&timeline).unwrap();
    let told = |path: &Path| {
        let (code, out, errors) = run(&["verify", path.to_str().unwrap()]);
        assert_eq!((code, out.as_str()), (2, ""));
        errors
    };
    let hint = format!("name the folder above, as in binlogd verify {} --source orders", root.display());
    assert!(told(&root.join("orders")).contains(&hint));
    assert!(told(&timeline).contains(&hint));
    assert!(told(&root.join("none")).contains("cannot read"));
    std::fs::create_dir(root.join("empty")).unwrap();
    assert!(told(&root.join("empty")).contains("holds no source"));
    let (code, _, errors) = run(&["verify", root.to_str().unwrap(), "--source", "stock"]);
    assert!(code == 2 && errors.contains("holds no source \"stock\"; there are: orders"), "{errors}");
    assert_eq!(run(&["verify"]).0, 2);
}
