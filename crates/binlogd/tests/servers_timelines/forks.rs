//! A source that lost what clients were told of, and goes on: GTIDs that it gives twice, what an operator decides, a rescue
//! beside a daemon that stopped; and a server that has nothing to do with the copy.

mod printed;

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::common::Server;
use crate::common::archive::reason;
use crate::common::daemon::{Daemon, binlog_end, url};
use crate::common::fork_scene::{
    FLAGS, PATIENCE, Scene, binlogd, copy_folder, forks, http, rescue, semi_sync_options, told,
};
use crate::common::forward::Forward;
use crate::common::semi_sync::SemiSync;
use codec::ServerKind;

fn gtids_given_twice_are_open_until_somebody_decides(name: &str) {
    let mut scene = Scene::new(name, &[]);
    scene.put_back(&[]);
    // Opened to clients: two of the three GTIDs are given to other transactions.
    scene.server.sql("INSERT INTO d.t VALUES (11, 'else'); INSERT INTO d.t VALUES (12, 'else')");
    let Scene { server, daemon } = &scene;
    daemon.wait_until(|source| source["gtids_given_twice"] == 2, PATIENCE);
    let source = daemon.wait_caught_up(server);
    assert_ne!(source["given_twice"], "", "{source:#}");
    assert_ne!(source["source_lacks"], "", "the third is lost: {source:#}");
    let metrics = http(daemon, "/metrics");
    assert!(metrics.contains("binlogd_gtids_given_twice{source=\"default\"} 2"), "{metrics}");
    assert!(daemon.log().contains("the source gave 2 GTIDs twice"), "{}", daemon.log());
    let status = told(&binlogd(&["status", "--data-dir"], &daemon.data_dir(), &[]));
    assert!(status.1.contains("given twice"), "{}", status.1);
    let doctor = |daemon: &Daemon| {
        told(&binlogd(&["doctor", "--source", &url(server), "--data-dir"], &daemon.data_dir(), &[]))
    };
    let (code, text) = doctor(daemon);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("2 GTIDs were given twice"), "{text}");

    let (code, list) = forks(daemon, &[]);
    assert_eq!(code, Some(1), "{list}");
    assert!(list.contains("2 GTIDs given twice, 1 transaction lost and not handed back"), "{list}");
    for timeline in daemon.timeline_dirs() {
        assert!(list.contains(timeline.file_name().unwrap().to_str().unwrap()), "{list}");
    }
    let json: Value =
        serde_json::from_slice(&binlogd(&["forks", "--json"], &daemon.data_dir(), &[]).stdout).unwrap();
    let twice = json["sources"][0]["given_twice"].as_array().unwrap();
    assert_eq!((twice.len(), json["open"].as_u64()), (2, Some(3)), "{json:#}");
    for one in twice {
        let versions = one["versions"].as_array().unwrap();
        assert_eq!(versions.len(), 2, "{json:#}");
        for version in versions {
            assert!(
                version["position"].as_u64() > Some(4) && version["bytes"].as_u64() > Some(50),
                "{json:#}"
            );
            let changes = version["changes"][0].as_str().unwrap();
            assert!(changes == "d.t" || changes.starts_with("INSERT INTO d.t"), "{json:#}");
        }
    }

    let printed = binlogd(&["rescue", "--to", &url(server), "--print-sql"], &daemon.data_dir(), &[]);
    let sql = told(&printed).1;
    assert_eq!(sql.matches("\n\n-- ").count(), 5, "two versions of two, one that is lacked\n{sql}");
    assert!(sql.contains("2 of 2: the one that the source has now") && sql.contains("BINLOG '"), "{sql}");
    assert!(
        told(&binlogd(&["forks", "--print-sql"], &daemon.data_dir(), &[]))
            .1
            .contains("1 of 2: lost by the source")
    );

    // What can be handed over is, and it is not called all.
    let (code, text) = rescue(daemon, server);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("2 GTIDs were given twice") && !text.contains("now has all"), "{text}");
    assert_eq!(scene.rows(), "0=kept; 3=told to clients 3; 11=else; 12=else");
    daemon.wait_until(|source| source["source_lacks"] == "" && source["gtids_given_twice"] == 2, PATIENCE);
    let again = rescue(daemon, server);
    assert!(again.0 == Some(1) && again.1.contains("2 GTIDs were given twice"), "{}", again.1);

    // An operator puts the rows right and says so.
    server.sql("INSERT INTO d.t VALUES (1, 'told to clients 1'), (2, 'told to clients 2')");
    let (code, text) = forks(daemon, &["--settle", "nonsense"]);
    assert_eq!(code, Some(2), "{text}");
    let (code, text) = forks(daemon, &["--settle", "all", "--note", "rows 1 and 2 put in by hand"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("rows 1 and 2 put in by hand"), "{text}");
    daemon.wait_until(|source| source["gtids_given_twice"] == 0, PATIENCE);
    assert!(http(daemon, "/metrics").contains("binlogd_gtids_given_twice{source=\"default\"} 0"));
    let (code, text) = rescue(daemon, server);
    assert_eq!(code, Some(0), "{text}");
    assert!(!doctor(daemon).1.contains("given twice"));
}

#[test]
fn gtids_given_twice_mysql() {
    gtids_given_twice_are_open_until_somebody_decides("mysql-9.7");
}

#[test]
fn gtids_given_twice_mariadb() {
    gtids_given_twice_are_open_until_somebody_decides("mariadb-11.8");
}

/// A server on a copy of the data folder of one that is stopped.
fn twin(server: &Server, options: &[&str]) -> Server {
    let mut twin = Server::start(server.name(), options);
    twin.stop();
    copy_folder(server.datadir(), twin.datadir());
    // MySQL makes itself a UUID of its own.
    let _ = std::fs::remove_file(twin.datadir().join("auto.cnf"));
    twin.restart(options);
    twin
}

/// Another server, which has neither of the two transactions, is given the later one of each GTID, in the order of the source.
fn a_settled_gtid_goes_to_another_server(name: &str) {
    let mysql = name.starts_with("mysql");
    let mut scene = Scene::new(name, &[]);
    scene.put_back(&[]);
    scene.daemon.wait_until(|source| source["source_lacks"] != "", PATIENCE);
    let strict: &[&str] = if mysql { &[] } else { &["--server-id=2", "--gtid-strict-mode=ON"] };
    scene.server.stop();
    let others = [twin(&scene.server, strict), twin(&scene.server, strict)];
    scene.server.restart(&[]);
    let Scene { server, daemon } = &scene;
    server.sql("INSERT INTO d.t VALUES (11, 'else'); INSERT INTO d.t VALUES (12, 'else')");
    daemon.wait_until(|source| source["gtids_given_twice"] == 2, PATIENCE);
    daemon.wait_caught_up(server);
    assert_eq!(rescue(daemon, server).0, Some(1));
    daemon.wait_until(|source| source["source_lacks"] == "", PATIENCE);
    let rows = |server: &Server| {
        let rows = server.sql("SELECT GROUP_CONCAT(CONCAT(id, '=', v) ORDER BY id SEPARATOR '; ') FROM d.t");
        rows.trim().to_owned()
    };
    let json: Value =
        serde_json::from_slice(&binlogd(&["forks", "--json"], &daemon.data_dir(), &[]).stdout).unwrap();
    let twice: Vec<&str> = json["sources"][0]["given_twice"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["gtid"].as_str().unwrap())
        .collect();
    assert_eq!(twice.len(), 2, "{json:#}");

    if !mysql {
        // MariaDB takes nothing behind a later number, so that what comes later has to wait for the decision.
        for flags in [&["--dry-run"], &["--yes"]] {
            let (code, text) =
                told(&binlogd(&["rescue", "--to", &url(&others[0])], &daemon.data_dir(), flags));
            assert_eq!(code, Some(1), "{text}");
            assert!(text.contains("nothing was sent") && text.contains("binlogd forks"), "{text}");
            assert!(twice.iter().all(|gtid| text.contains(gtid)), "{text}");
        }
        assert_eq!(rows(&others[0]), "0=kept");
        // An operator who does not want to wait loses them there for good, and is told so again and again.
        let without = ["--yes", "--leave-out", &twice.join(",")];
        let (code, text) =
            told(&binlogd(&["rescue", "--to", &url(&others[1])], &daemon.data_dir(), &without));
        assert_eq!(code, Some(1), "{text}");
        assert_eq!(rows(&others[1]), "0=kept; 3=told to clients 3");
    }
    let (code, text) = forks(daemon, &["--settle", "all", "--note", "else is right"]);
    assert_eq!(code, Some(0), "{text}");
    server.sql("INSERT INTO d.t VALUES (20, 'later')");
    daemon.wait_caught_up(server);
    let compared = |other: &Server, more: &[&str]| {
        let flags = [&["--yes", "--compare"][..], more].concat();
        told(&binlogd(&["rescue", "--to", &url(other)], &daemon.data_dir(), &flags))
    };
    let (code, text) = compared(&others[0], &["all"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("now has all 4 transactions"), "{text}");
    assert_eq!(rows(&others[0]), rows(server));
    assert_eq!(rows(server), "0=kept; 3=told to clients 3; 11=else; 12=else; 20=later");
    let (code, text) = compared(&others[0], &["all"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("has every transaction") && !text.contains("could not be compared"), "{text}");
    if mysql {
        return;
    }
    for scope in ["sample", "all", "sample"] {
        let (code, text) = compared(&others[1], &[scope]);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("lacks 2 transactions that its GTIDs count as there"), "{text}");
        assert!(twice.iter().all(|gtid| text.contains(gtid)), "{text}");
        assert!(!text.contains("has every") && !text.contains("now has all"), "{text}");
    }
    assert_eq!(rows(&others[1]), "0=kept; 3=told to clients 3; 20=later", "what can be handed over was");
    let (code, text) = compared(&others[1], &["all", "--json"]);
    let report = text[text.find('{').expect(&text)..].to_owned();
    let report: Value =
        serde_json::Deserializer::from_str(&report).into_iter().next().expect("a report").unwrap();
    assert_eq!((code, &report["complete"]), (Some(1), &json!(false)), "{text}");
    assert_eq!(report["compared"]["missing"], 2, "{report:#}");
    assert_eq!(report["compared"]["missing_transactions"][0]["gtid"], twice[0], "{report:#}");
}

#[test]
fn a_settled_gtid_goes_to_another_server_mysql() {
    a_settled_gtid_goes_to_another_server("mysql-9.7");
}

#[test]
fn a_settled_gtid_goes_to_another_server_mariadb() {
    a_settled_gtid_goes_to_another_server("mariadb-11.8");
}

/// Each decision is about the transactions that were open when it was made, and about no others.
fn a_decision_is_about_no_other_transactions(name: &str) {
    let mut scene = Scene::new(name, &[]);
    scene.put_back(&[]);
    scene.server.sql("INSERT INTO d.t VALUES (11, 'else'); INSERT INTO d.t VALUES (12, 'else')");
    scene.daemon.wait_until(|source| source["gtids_given_twice"] == 2, PATIENCE);
    scene.daemon.wait_caught_up(&scene.server);
    assert_eq!(rescue(&scene.daemon, &scene.server).0, Some(1));
    scene.daemon.wait_until(|source| source["source_lacks"] == "", PATIENCE);
    let (code, text) = forks(&scene.daemon, &["--settle", "all", "--note", "kept second"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("1 handed back, 2 decided"), "{text}");

    // The same state comes back once more: the server never gave those GTIDs, and gets what was decided for.
    scene.put_back(&[]);
    scene.daemon.wait_until(|source| source["source_lacks"] != "", PATIENCE);
    scene.daemon.wait_caught_up(&scene.server);
    let (code, text) = forks(&scene.daemon, &[]);
    assert!(code == Some(1) && text.contains(": 0 GTIDs given twice, 3 transactions lost"), "{text}");
    let (code, text) = rescue(&scene.daemon, &scene.server);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(scene.rows(), "0=kept; 3=told to clients 3; 11=else; 12=else");
    scene.daemon.wait_until(|source| source["source_lacks"] == "", PATIENCE);
    let (code, text) = forks(&scene.daemon, &[]);
    assert!(code == Some(0) && text.contains("3 handed back, 0 decided"), "{text}");

    scene.write_what_is_lost(31, &[]);
    scene.put_back(&[]);
    scene.daemon.wait_until(|source| source["source_lacks"] != "", PATIENCE);
    let open = |daemon: &Daemon, list: &str| -> Vec<Value> {
        let printed = binlogd(&["forks", "--json"], &daemon.data_dir(), &[]).stdout;
        let json: Value = serde_json::from_slice(&printed).unwrap();
        json["sources"][0][list].as_array().unwrap().clone()
    };
    // The first file of the timeline says from where on the tail was lost.
    scene.daemon.wait_caught_up(&scene.server);
    let lost = open(&scene.daemon, "lacking");
    assert_eq!(lost.len(), 3, "{lost:#?}");
    // MySQL takes a set, MariaDB the newest.
    let newest = lost[2]["gtid"].as_str().unwrap();
    let gtids = if scene.server.kind() == ServerKind::MySql { "all" } else { newest };
    let (code, text) = forks(&scene.daemon, &["--accept-loss", gtids, "--note", "lost for good"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("3 handed back, 3 decided"), "{text}");
    let notes: Vec<String> = open(&scene.daemon, "decided")
        .iter()
        .map(|one| one["decision"]["note"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(notes, ["lost for good"; 3], "{text}");
    scene.daemon.wait_until(|source| source["source_lacks"] == "", PATIENCE);
}

#[test]
fn a_decision_is_about_no_other_transactions_mysql() {
    a_decision_is_about_no_other_transactions("mysql-9.7");
}

#[test]
fn a_decision_is_about_no_other_transactions_mariadb() {
    a_decision_is_about_no_other_transactions("mariadb-11.8");
}

fn folder_len(path: &Path) -> u64 {
    let files = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    files.sum()
}

/// The address leads to another server for a while, as that of a proxy may.
fn a_stranger_is_not_the_source(name: &str) {
    let ours = Server::start(name, &[]);
    let other = Server::start(name, &["--server-id=77"]);
    for server in [&ours, &other] {
        server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v LONGTEXT); INSERT INTO d.t VALUES (0, REPEAT('x', 100000))");
    }
    let forward = Forward::to(ours.port());
    let address = format!("mysql://root@127.0.0.1:{}", forward.port());
    let mut daemon = Daemon::start_on(&address, &FLAGS);
    daemon.wait_caught_up(&ours);
    forward.move_to(other.port());
    let source = daemon.wait_until(
        |source| {
            source["last_error"]["message"].as_str().is_some_and(|error| error.contains("shares no history"))
        },
        PATIENCE,
    );
    assert_ne!(source["state"], "receiving");
    assert!(source["last_error"]["message"].as_str().unwrap().contains("on_stranger"), "{source:#}");
    assert_eq!(daemon.timeline_dirs().len(), 1, "{}", daemon.log());
    // Nobody there gets an acknowledgement.
    let semi_sync = SemiSync::enable(&other, Duration::from_millis(10));
    other.sql("INSERT INTO d.t VALUES (1, 'alone')");
    assert_eq!(semi_sync.counters().yes_tx, 0);
    forward.move_to(ours.port());
    ours.sql("INSERT INTO d.t VALUES (1, 'ours')");
    daemon.wait_caught_up(&ours);
    assert_eq!(daemon.timeline_dirs().len(), 1, "{}", daemon.log());

    // Followed when an operator wants it, there and back and there again: nothing is copied twice, or mixed up.
    let follow = [&FLAGS[..], &["--on-stranger", "follow"]].concat();
    daemon.terminate();
    daemon.restart(&follow);
    daemon.wait_caught_up(&ours);
    forward.move_to(other.port());
    daemon.wait_until(|source| source["state"] == "receiving" && daemon.timeline_dirs().len() == 2, PATIENCE);
    daemon.wait_caught_up(&other);
    let timelines = daemon.timeline_dirs();
    assert_eq!(reason(&timelines[1]), "stranger");
    let copied = timelines.iter().map(|timeline| folder_len(timeline)).sum::<u64>();
    for (round, server) in [&ours, &other, &ours].into_iter().enumerate() {
        forward.move_to(server.port());
        server.sql(&format!("INSERT INTO d.t VALUES ({}, 'there and back')", 10 + round));
        let source = daemon.wait_caught_up(server);
        assert_eq!(source["source_lacks"], "", "{source:#}");
        if round == 1 {
            daemon.terminate();
            daemon.restart(&follow);
            daemon.wait_caught_up(server);
        }
        let present = timelines[if std::ptr::eq(server, &ours) { 0 } else { 1 }].file_name().unwrap();
        assert_eq!(daemon.source()["timeline"], present.to_str().unwrap());
    }
    assert_eq!(daemon.timeline_dirs(), timelines, "{}", daemon.log());
    let now = timelines.iter().map(|timeline| folder_len(timeline)).sum::<u64>();
    assert!(now < copied + 50_000, "{copied} became {now} bytes");
    assert!(forks(&daemon, &[]).1.contains("no fork took anything"));
    // Nothing of the stranger is offered to our server, nor the other way round.
    let (code, text) = rescue(&daemon, &ours);
    assert_eq!(code, Some(0), "{text}");
    daemon.terminate();
    let verified = binlogd(&["verify"], &daemon.data_dir(), &[]);
    assert!(verified.status.success(), "{}", told(&verified).1);
}

#[test]
fn a_stranger_is_not_the_source_mysql() {
    a_stranger_is_not_the_source("mysql-9.7");
}

#[test]
fn a_stranger_is_not_the_source_mariadb() {
    a_stranger_is_not_the_source("mariadb-11.8");
}

/// Nothing is received while the operator is to decide, and so nothing acknowledged; a rescue works all the same.
fn a_rescue_beside_a_daemon_that_stopped(name: &str) {
    let options = semi_sync_options(name);
    let mut scene = Scene::new(name, &["--on-fork", "stop"]);
    scene.put_back(&[&options[0], &options[1]]);
    let Scene { server, daemon } = &scene;
    let source = daemon.wait_until(|source| source["state"] == "stopped", PATIENCE);
    let detail = source["state_detail"].as_str().unwrap();
    assert!(detail.contains("on_fork = \"stop\"") && detail.contains("binlogd rescue"), "{detail}");
    // A commit would wait for nobody, and the rescue with it.
    let (code, text) = rescue(daemon, server);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("nothing was sent")
            && text.contains("too few semi-sync replicas are connected: 0 of 1"),
        "{text}"
    );
    let semi_sync = SemiSync::of(server);
    semi_sync.set_enabled(false);
    let (code, text) = rescue(daemon, server);
    assert_eq!(code, Some(0), "{text}\n{}", daemon.log());
    assert_eq!(scene.rows(), "0=kept; 1=told to clients 1; 2=told to clients 2; 3=told to clients 3");
    semi_sync.set_enabled(true);
    assert_eq!(daemon.source()["state"], "stopped", "until somebody says that it goes on");
    let process = Pid::from_raw(daemon.pid().cast_signed()).expect("a process id");
    kill_process(process, Signal::HUP).expect("a reload");
    daemon.wait_caught_up(server);
    server.sql("INSERT INTO d.t VALUES (4, 'acknowledged')");
    let source = daemon.wait_caught_up(server);
    assert_eq!((&source["source_lacks"], &source["gtids_given_twice"]), (&json!(""), &json!(0)));
    assert_eq!(semi_sync.counters().no_tx, 0);
    let (code, text) = rescue(daemon, server);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn a_rescue_beside_a_daemon_that_stopped_mysql() {
    a_rescue_beside_a_daemon_that_stopped("mysql-9.7");
}

#[test]
fn a_rescue_beside_a_daemon_that_stopped_mariadb() {
    a_rescue_beside_a_daemon_that_stopped("mariadb-11.8");
}

/// The copy keeps its newest files only, and the source is put back to before these: they have no file in common, as after a reset.
#[test]
fn a_source_put_back_to_before_the_oldest_file_that_is_left_is_a_fork() {
    let mut scene = Scene::new("mysql-9.7", &[]);
    for _ in 0..4 {
        scene.server.sql("FLUSH BINARY LOGS");
    }
    scene.server.sql("INSERT INTO d.t VALUES (21, 'told to clients 21')");
    scene.daemon.wait_caught_up(&scene.server);
    scene.daemon.terminate();
    let live = binlog_end(&scene.server).0;
    let (code, text) = told(&binlogd(&["purge", "--to", &live], &scene.daemon.data_dir(), &[]));
    assert_eq!(code, Some(0), "{text}");
    scene.put_back(&[]);
    let end = binlog_end(&scene.server).0;
    assert!(!scene.daemon.timeline_dir().join(&end).exists(), "{end} must be purged for this");
    scene.daemon.restart(&FLAGS);
    let Scene { server, daemon } = &scene;
    let source = daemon.wait_until(|source| source["source_lacks"] != "", PATIENCE);
    daemon.wait_caught_up(server);
    let timelines = daemon.timeline_dirs();
    assert_eq!(
        (timelines.len(), reason(&timelines[1])),
        (2, "fork".to_owned()),
        "{source:#}\n{}",
        daemon.log()
    );
    // Three rows stood in files that were purged, one does in what is left.
    let (code, list) = forks(daemon, &[]);
    assert_eq!(code, Some(1), "{list}");
    assert!(list.contains("1 transaction lost and not handed back"), "{list}");
    assert!(list.contains("lost, and purged here before that was known"), "{list}");
    let (code, text) = rescue(daemon, server);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("which stood in files that were purged or moved away"), "{text}");
    assert_eq!(scene.rows(), "0=kept; 21=told to clients 21");
    daemon.wait_caught_up(server);
    assert_ne!(daemon.source()["source_lacks"], "", "three are still lost");
    let (code, text) = forks(daemon, &["--accept-loss", "all", "--note", "of a test"]);
    assert_eq!(code, Some(0), "{text}");
    daemon.wait_until(|source| source["source_lacks"] == "", PATIENCE);
}
