//! What status, log and metrics say in situations in which they said something else: a fork and its rescue, an idle source,
//! a change of hosts, two receivers with one server_id.

use crate::common::Server;
use crate::common::daemon::{Daemon, url};
use crate::common::doctor::{doctor, line};
use crate::common::metrics::check_metrics;
use crate::common::semi_sync::SemiSync;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const FLAGS: [&str; 4] = ["--heartbeat-period", "1s", "--net-read-timeout", "3s"];

fn source(name: &str, options: &[&str]) -> Server {
    let server = Server::start(name, options);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(50))");
    server
}

fn binlogd(arguments: &[&str], data_dir: &Path) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_binlogd"))
        .args(arguments)
        .arg(data_dir)
        .env_remove("BINLOGD_PASSWORD")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().expect("an exit code"), text)
}

#[track_caller]
fn wait_for_log(daemon: &Daemon, words: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !daemon.log().contains(words) {
        assert!(Instant::now() < deadline, "no {words:?} in\n{}", daemon.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A transaction whose event is old, as those are that took long or waited for an acknowledgement.
fn check_lag_of_an_idle_source(server: &Server, daemon: &Daemon) {
    server.sql("SET timestamp = UNIX_TIMESTAMP() - 67; INSERT INTO d.t (v) VALUES ('begun long ago')");
    daemon.wait_caught_up(server);
    // No heartbeat comes in this time.
    daemon.wait_until(|source| source["seconds_behind"] == 0, Duration::from_secs(20));
}

fn check_sighup_with_flags(daemon: &Daemon) {
    kill_process(Pid::from_raw(daemon.pid().cast_signed()).unwrap(), Signal::HUP).unwrap();
    wait_for_log(daemon, "started with flags and not with --config, so nothing could be reloaded");
    assert_eq!(daemon.source()["state"], "receiving");
}

/// Sealed files that the operator moves away, in the way that docs/running/data.md describes.
fn check_moved_files(server: &Server, daemon: &mut Daemon) {
    for _ in 0..3 {
        server.sql("INSERT INTO d.t (v) VALUES ('x'); FLUSH BINARY LOGS");
    }
    server.sql("INSERT INTO d.t (v) VALUES ('live')");
    daemon.wait_caught_up(server);
    daemon.terminate();
    let (timeline, archive) = (daemon.timeline_dir(), tempfile::tempdir().unwrap());
    for name in ["mysql-bin.000001", "mysql-bin.000002"] {
        std::fs::rename(timeline.join(name), archive.path().join(name)).unwrap();
    }
    let (code, out) = binlogd(&["verify"], &daemon.data_dir());
    assert!(code == 1 && out.contains("DAMAGED"), "files that are missing without a word: {out}");
    let toml = timeline.join("timeline.toml");
    let text = std::fs::read_to_string(&toml).unwrap() + "kept_from = \"mysql-bin.000003\"\n";
    std::fs::write(&toml, text).unwrap();
    let check = |when: &str| {
        let (code, out) = binlogd(&["verify"], &daemon.data_dir());
        let note = "the files before mysql-bin.000003 were moved away";
        assert!(code == 0 && out.contains(note), "{when}: {out}");
    };
    check("before the next start");
    daemon.restart(&FLAGS);
    wait_for_log(daemon, "2 files before mysql-bin.000003 are not in ");
    assert!(!daemon.log().contains("is in binlog.index but not in the folder"), "{}", daemon.log());
    server
        .sql("INSERT INTO d.t (v) VALUES ('after'); FLUSH BINARY LOGS; INSERT INTO d.t (v) VALUES ('more')");
    daemon.wait_caught_up(server);
    let (code, out) = binlogd(&["verify"], &daemon.data_dir());
    assert_eq!(code, 0, "{out}");
    daemon.wait_until(|source| source["verified"]["findings"] == 0, PATIENCE);
    std::fs::remove_file(timeline.join("mysql-bin.000003")).unwrap();
    let (code, out) = binlogd(&["verify"], &daemon.data_dir());
    assert!(code == 1 && out.contains("mysql-bin.000003"), "what was to be kept is missing: {out}");
    // The daemon tells who only looks at it.
    daemon.wait_until(|source| source["verified"]["findings"].as_u64() > Some(0), PATIENCE);
    wait_for_log(daemon, "binlogd verify found damage in the copy");
}

#[test]
fn an_idle_source_and_what_an_operator_does_beside_it() {
    let server = source("mysql-9.7", &[]);
    let slow = ["--heartbeat-period", "60s", "--net-read-timeout", "120s"];
    let mut daemon = Daemon::start(&server, &slow);
    daemon.wait_caught_up(&server);
    check_lag_of_an_idle_source(&server, &daemon);
    check_metrics(&daemon);
    check_sighup_with_flags(&daemon);
    check_moved_files(&server, &mut daemon);
}

/// The procedure of docs/rescue.md: the source loses the end of its log, is started read-only, and gets it back.
#[test]
fn a_fork_and_its_rescue() {
    let mut server = source("mysql-9.7", &[]);
    let mut daemon = Daemon::start(&server, &FLAGS);
    server.sql("INSERT INTO d.t (v) VALUES ('kept')");
    let kept = daemon.wait_caught_up(&server)["positions"]["durable"]["position"].as_u64().unwrap();
    let images = tempfile::tempdir().unwrap();
    server.stop();
    copy_folder(server.datadir(), images.path());
    server.restart(&[]);
    server.sql("INSERT INTO d.t (v) VALUES ('told to a client, then lost')");
    let held = daemon.wait_caught_up(&server);
    let lost = server.sql("SELECT @@global.gtid_executed").trim().replace("\\n", "");
    assert!(kept > 0 && held["gtid"]["durable"] == lost.as_str());
    daemon.terminate();
    let (code, out) = binlogd(&["status", "--data-dir"], &daemon.data_dir());
    assert_eq!(code, 1);
    let acknowledged: Vec<&str> = out.lines().filter(|line| line.contains("acknowledged")).collect();
    assert!(acknowledged.iter().all(|line| line.trim_end().ends_with("not known")), "{out}");
    assert_eq!(acknowledged.len(), 2, "{out}");

    server.kill();
    std::fs::remove_dir_all(server.datadir()).unwrap();
    copy_folder(images.path(), server.datadir());
    server.restart(&["--read-only=ON"]);
    // Before any daemon has looked: the files alone tell it.
    let (code, out) = doctor(&url(&server), &daemon.data_dir(), &[]);
    assert_eq!(code, 1, "{out}");
    line(&out, "error", "logs: the source no longer has mysql-bin.");

    daemon.restart(&FLAGS);
    let forked = |source: &Value| {
        // At each moment what is safe is shown, as soon as the copy was looked at.
        let is_opened = !["starting", "recovering"].contains(&source["state"].as_str().unwrap());
        assert!(!is_opened || source["gtid"]["durable"] != "", "{source:#}");
        source["source_lacks"].as_str().is_some_and(|lacks| !lacks.is_empty())
    };
    let source = daemon.wait_until(forked, PATIENCE);
    let previous = &source["previous_timeline"];
    assert!(previous["name"].as_str().unwrap().starts_with("0001-"), "{source:#}");
    assert_eq!(previous["end"], held["positions"]["durable"], "{source:#}");
    daemon.wait_until(|source| source["state"] == "receiving", PATIENCE);
    let (code, out) = doctor(&url(&server), &daemon.data_dir(), &[]);
    assert_eq!(code, 1, "{out}");
    line(&out, "error", "history: it lacks transactions that the copy holds");

    let to = url(&server);
    let rescue = Command::new(env!("CARGO_BIN_EXE_binlogd"))
        .arg("rescue")
        .arg(daemon.data_dir())
        .args(["--to", &to, "--yes"])
        .output()
        .unwrap();
    let said =
        String::from_utf8_lossy(&rescue.stdout).into_owned() + &String::from_utf8_lossy(&rescue.stderr);
    assert!(rescue.status.success(), "{said}");
    wait_for_log(&daemon, "the source has everything again that it lacked: ");
    let source = daemon.wait_until(|source| source["source_regained"].is_object(), PATIENCE);
    assert_eq!(source["source_lacks"], "");
    let (code, out) = binlogd(&["status", "--data-dir"], &daemon.data_dir());
    assert!(code == 0 && out.contains("nothing any more: it has again what it lacked"), "{out}");
    let (code, out) = doctor(&url(&server), &daemon.data_dir(), &[]);
    assert_eq!(code, 0, "{out}");
    line(&out, "ok", "history: ");
}

/// A file copy of a server that is stopped.
fn copy_folder(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg("-T").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

/// Two receivers with one server_id and different UUIDs: MySQL serves both without a word.
#[test]
fn hosts_and_receivers_are_told_apart() {
    let first = source("mysql-9.7", &["--plugin-load-add=semisync_source.so"]);
    let second = Server::start("mysql-9.7", &["--read-only=ON"]);
    let flags = [&FLAGS[..], &["--server-id", "77"]].concat();
    let older = Daemon::start(&first, &flags);
    older.wait_until(|source| source["state"] == "receiving", PATIENCE);
    let attached = SemiSync::enable(&first, Duration::from_secs(600));
    attached.wait_until(|counters| counters.clients == 1);
    let hosts = format!("{},127.0.0.1:{}", url(&first), second.port());
    let newer = Daemon::start_on(&hosts, &flags);
    newer.wait_until(|source| source["server_id_rival"].is_string(), PATIENCE);
    wait_for_log(&newer, "is registered with 77, ours");
    // The one that was first has lost its place in the list, and learns it from there.
    older.wait_until(|source| source["server_id_rival"].is_string(), PATIENCE);
    attached.wait_until(|counters| counters.clients == 2);
    let (_, out) = doctor(&url(&first), &newer.data_dir(), &["--server-id", "77"]);
    line(&out, "warning", "replicas: 2 semi-sync replicas are attached, and only 1 registered (77)");
    drop(older);

    let uuid = |server: &Server| server.sql("SELECT @@server_uuid").trim().to_owned();
    let uuids = [(first.port(), uuid(&first)), (second.port(), uuid(&second))];
    let pairs_fit = |source: &Value| {
        let (Some(host), Some(uuid)) = (source["host"].as_str(), source["server_uuid"].as_str()) else {
            return false;
        };
        let (_, expected) =
            uuids.iter().find(|(port, _)| host.ends_with(&format!(":{port}"))).expect("a host of the list");
        assert_eq!(uuid, expected, "{source:#}");
        host.ends_with(&format!(":{}", second.port()))
    };
    newer.wait_until(|source| source["state"] == "receiving", PATIENCE);
    first.kill();
    // Each state on the way is looked at.
    newer.wait_until(pairs_fit, PATIENCE);
    for _ in 0..40 {
        pairs_fit(&newer.source());
        std::thread::sleep(Duration::from_millis(25));
    }
}
