//! A source that lost what clients were told of, and goes on under `on_fork = "withhold"`: acknowledgements are withheld until
//! it is whole, by a rescue or by what an operator decides.

use std::time::Duration;

use serde_json::Value;

use crate::common::Server;
use crate::common::alert::Scrape;
use crate::common::compare::binary_logs;
use crate::common::daemon::Daemon;
use crate::common::fork_scene::{
    FLAGS, PATIENCE, Scene, binlogd, forks, http, rescue, semi_sync_options, told,
};
use crate::common::proxy::{Direction, Ending, Fault, Proxy};
use crate::common::semi_sync::SemiSync;
use codec::ServerKind;

fn acknowledgements_are_withheld_until_the_source_is_whole_or_the_loss_accepted(name: &str) {
    let options = semi_sync_options(name);
    let options = [options[0].as_str(), options[1].as_str()];
    let mut scene = Scene::new(name, &["--on-fork", "withhold"]);
    scene.put_back(&options);
    let withheld = |daemon: &Daemon| {
        let source = daemon.wait_until(|source| source["state"] == "withholding acknowledgements", PATIENCE);
        assert!(source["state_detail"].as_str().unwrap().contains("lacks transactions"), "{source:#}");
        let health = http(daemon, "/healthz");
        assert!(health.contains("withholding acknowledgements"), "{health}");
    };
    withheld(&scene.daemon);
    let metrics = http(&scene.daemon, "/metrics");
    assert!(metrics.contains("state=\"withholding acknowledgements\"} 1"), "{metrics}");
    assert!(scene.daemon.log().contains("acknowledgements are withheld"), "{}", scene.daemon.log());
    // A rescue's own commits wait for acknowledgements too.
    let (code, text) = rescue(&scene.daemon, &scene.server);
    assert_eq!(code, Some(0), "{text}\n{}", scene.daemon.log());
    scene
        .daemon
        .wait_until(|source| source["state"] == "receiving" && source["source_lacks"] == "", PATIENCE);
    scene.server.sql("INSERT INTO d.t VALUES (20, 'acknowledged')");
    assert_eq!(counter(&scene.server, "no_tx"), 0);
    assert_eq!(
        scene.rows(),
        "0=kept; 1=told to clients 1; 2=told to clients 2; 3=told to clients 3; 20=acknowledged"
    );

    // Once more to the same state, which is from before the present timeline, and clients write before anybody has looked. With
    // binlogd restarted in between: where a replica begins is an acknowledgement too. That is the last transaction that the copy
    // holds, so another one waits before it.
    scene.put_back(&options);
    scene.daemon.wait_until(|source| source["state"] == "withholding acknowledgements", PATIENCE);
    let Scene { server, daemon } = &mut scene;
    std::thread::scope(|scope| {
        let server = &*server;
        let client = scope.spawn(move || server.sql("INSERT INTO d.t VALUES (30, 'waits')"));
        daemon.wait_until(|source| source["gtids_given_twice"] == 1, PATIENCE);
        let behind = scope.spawn(move || server.sql("INSERT INTO d.t VALUES (31, 'waits')"));
        daemon.wait_until(|source| source["gtids_given_twice"] == 2, PATIENCE);
        daemon.terminate();
        daemon.restart(&[&FLAGS[..], &["--on-fork", "withhold"]].concat());
        withheld(daemon);
        daemon.wait_until(|source| source["gtids_given_twice"] == 2, PATIENCE);
        assert!(!client.is_finished() && !behind.is_finished(), "a commit returned\n{}", daemon.log());
        let (code, text) = forks(daemon, &["--accept-loss", "all", "--note", "a test"]);
        assert_eq!(code, Some(0), "{text}");
        client.join().expect("the commit returns");
        behind.join().expect("the commit behind it returns");
    });
    daemon.wait_until(|source| source["state"] == "receiving" && source["source_lacks"] == "", PATIENCE);
    assert_eq!(counter(server, "no_tx"), 0, "by an acknowledgement");
    server.sql("INSERT INTO d.t VALUES (32, 'acknowledged')");

    // And with an operator who wants to be asked.
    scene.daemon.terminate();
    let before = scene.daemon.log().len();
    scene.daemon.restart(&[&FLAGS[..], &["--on-fork", "stop"]].concat());
    scene.write_what_is_lost(41, &[]);
    scene.put_back(&[]);
    let source = scene.daemon.wait_until(|source| source["state"] == "stopped", PATIENCE);
    let detail = source["state_detail"].as_str().unwrap();
    assert!(
        detail.contains("on_fork = \"stop\"") && detail.contains("reload (SIGHUP) or restart"),
        "{source:#}"
    );
    assert!(!scene.daemon.log()[before..].contains("going on with it"), "{}", scene.daemon.log());
    scene.daemon.terminate();
    let (code, text) = forks(&scene.daemon, &["--accept-loss", "all"]);
    assert_eq!(code, Some(0), "{text}");
    scene.daemon.restart(&[&FLAGS[..], &["--on-fork", "stop"]].concat());
    scene.server.sql("INSERT INTO d.t VALUES (50, 'goes on')");
    scene.daemon.wait_caught_up(&scene.server);
}

fn counter(server: &Server, name: &str) -> u64 {
    let role = if server.kind() == ServerKind::MySql { "source" } else { "master" };
    let row = server.sql(&format!("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_{role}_{name}'"));
    row.trim().rsplit('\t').next().and_then(|value| value.parse().ok()).expect("a counter")
}

#[test]
fn acknowledgements_are_withheld_mysql() {
    acknowledgements_are_withheld_until_the_source_is_whole_or_the_loss_accepted("mysql-9.7");
}

#[test]
fn acknowledgements_are_withheld_mariadb() {
    acknowledgements_are_withheld_until_the_source_is_whole_or_the_loss_accepted("mariadb-11.8");
}

/// While acknowledgements are withheld the source is looked at as ever: what it says of semi-sync, and how many commits it
/// told clients of without an acknowledgement, is shown as it happens, and nothing claims that it gets any.
/// A commit that waits keeps `read_only = ON` from taking effect, by which rescue keeps clients out. Rescue says so and goes on where
/// it is told to, and what it hands over lets the commit go that stands before it.
fn a_rescue_goes_on_while_commits_wait(name: &str) {
    let options = semi_sync_options(name);
    let mut scene = Scene::new(name, &["--on-fork", "withhold"]);
    scene.put_back(&[options[0].as_str(), options[1].as_str()]);
    withheld(&scene.daemon, "lacks transactions");
    let Scene { server, daemon } = &scene;
    std::thread::scope(|scope| {
        let client = scope.spawn(move || server.sql("INSERT INTO d.t VALUES (30, 'waits')"));
        daemon.wait_until(|source| source["gtids_given_twice"] == 1, PATIENCE);
        let target = format!("mysql://root@127.0.0.1:{}", server.port());
        let flags = ["--to", target.as_str(), "--yes", "--allow-writers"];
        let (code, text) = told(&binlogd(&["rescue"], &daemon.data_dir(), &flags));
        // That one GTID was given twice is a problem that is left.
        assert_eq!(code, Some(1), "{text}");
        for words in ["error 1205", "now has these 2 transactions, verified by GTID"] {
            assert!(text.contains(words), "no {words:?} in {text}");
        }
        client.join().expect("the commit returns");
    });
    assert!(scene.rows().contains("3=told to clients 3; 30=waits"), "{}", scene.rows());
}

#[test]
fn a_rescue_goes_on_while_commits_wait_mysql() {
    a_rescue_goes_on_while_commits_wait("mysql-9.7");
}

#[test]
fn a_rescue_goes_on_while_commits_wait_mariadb() {
    a_rescue_goes_on_while_commits_wait("mariadb-11.8");
}

fn withholding_is_told(name: &str) {
    let withhold = [&FLAGS[..], &["--on-fork", "withhold"]].concat();
    let mut scene = Scene::new(name, &["--on-fork", "withhold"]);
    let before = scene.daemon.log().len();
    if name.starts_with("mysql") {
        // Semi-sync is switched on when acknowledgements are withheld already.
        scene.put_back(&[]);
        withheld(&scene.daemon, "lacks transactions");
        SemiSync::enable(&scene.server, Duration::from_secs(1));
    } else {
        scene.put_back(&["--rpl-semi-sync-master-enabled=1", "--rpl-semi-sync-master-timeout=1000"]);
    }
    let Scene { server, daemon } = &mut scene;
    let semi_sync = SemiSync::of(server);
    let source = daemon.wait_until(|source| source["semi_sync_source"]["on"] == true, PATIENCE);
    assert_eq!(source["semi_sync_source"]["clients"], 1, "{source:#}");
    assert_told_withheld(daemon);
    assert_eq!(Scrape::of(&daemon.admin_address()).value("binlogd_source_watched"), Some(1.0));

    // A client is told without an acknowledgement.
    server.sql("INSERT INTO d.t VALUES (11, 'else')");
    let counted = semi_sync.counters().no_tx;
    assert!(counted > 0);
    let source = daemon.wait_until(|source| source["unacknowledged_commits"]["commits"] == counted, PATIENCE);
    assert_eq!(source["state"], "withholding acknowledgements", "{source:#}");
    daemon.wait_log("the source told clients that commits were made without", PATIENCE);
    let metrics = Scrape::of(&daemon.admin_address());
    assert_eq!(metrics.value("binlogd_source_semi_sync_no_tx_total"), Some(counted as f64));
    withheld(daemon, "gave GTIDs twice");
    assert_told_withheld(daemon);

    // Two of the three are handed back; the third GTID belongs to another transaction.
    semi_sync.set_timeout(Duration::from_secs(600));
    let (code, text) = rescue(daemon, server);
    assert_eq!(code, Some(1), "{text}\n{}", daemon.log());
    let source = daemon.wait_until(|source| source["source_lacks"] == "", PATIENCE);
    let detail = source["state_detail"].as_str().unwrap();
    assert!(detail.contains("gave GTIDs twice") && !detail.contains("lacks transactions"), "{source:#}");
    assert_told_withheld(daemon);

    // binlogd is restarted, and a commit waits.
    daemon.terminate();
    daemon.restart(&withhold);
    daemon.wait_until(|source| source["semi_sync_source"]["clients"] == 1, PATIENCE);
    withheld(daemon, "gave GTIDs twice");
    assert_told_withheld(daemon);
    assert!(!daemon.log()[before..].contains("semi-sync is active:"), "{}", &daemon.log()[before..]);
    let (code, text) = forks(daemon, &["--settle", "all", "--note", "a test"]);
    assert_eq!(code, Some(0), "{text}");
    daemon.wait_until(|source| source["state"] == "receiving", PATIENCE);
    server.sql("INSERT INTO d.t VALUES (40, 'acknowledged')");
    daemon.wait_until(|source| source["semi_sync"]["active"] == true, PATIENCE);
    let log = daemon.log()[before..].to_owned();
    let line = |words: &str| log.find(words).unwrap_or_else(|| panic!("no {words:?} in\n{log}"));
    assert!(line("acknowledgements are not withheld any more") < line("semi-sync is active:"), "{log}");
}

/// Waits until acknowledgements are withheld for a reason with these words.
#[track_caller]
fn withheld(daemon: &Daemon, words: &str) {
    let is_so = |source: &Value| source["state_detail"].as_str().is_some_and(|detail| detail.contains(words));
    daemon.wait_until(|source| source["state"] == "withholding acknowledgements" && is_so(source), PATIENCE);
}

#[track_caller]
fn assert_told_withheld(daemon: &Daemon) {
    let source = daemon.source();
    assert_eq!(source["semi_sync"]["active"], false, "{source:#}");
    let reason = source["semi_sync"]["reason"].as_str().unwrap();
    assert!(reason.contains("acknowledgements are withheld"), "{source:#}");
    assert_eq!(Scrape::of(&daemon.admin_address()).value("binlogd_semi_sync_active"), Some(0.0));
}

#[test]
fn withholding_is_told_mysql() {
    withholding_is_told("mysql-9.7");
}

#[test]
fn withholding_is_told_mariadb() {
    withholding_is_told("mariadb-11.8");
}

/// Options by which a server waits for acknowledgements, and can begin another file meanwhile: with AFTER_SYNC a rotation of
/// MySQL waits for the commit that waits.
fn rotating_options(name: &str) -> Vec<String> {
    let role = if name.starts_with("mysql") { "source" } else { "master" };
    let wait_point = format!("--rpl-semi-sync-{role}-wait-point=AFTER_COMMIT");
    semi_sync_options(name).into_iter().chain([wait_point]).collect()
}

fn newest_file(server: &Server) -> String {
    binary_logs(server).pop().expect("a binary log")
}

/// Where a replica begins is an acknowledgement too, of all files before. So what waits in an earlier file waits on when
/// binlogd comes back.
fn what_is_withheld_waits_over_a_rotation(name: &str) {
    let options = rotating_options(name);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    // What is written is not durable by itself before the test has ended.
    let flags = [&FLAGS[..], &["--on-fork", "withhold", "--fsync-interval", "60s"]].concat();
    let mut scene = Scene::new(name, &["--on-fork", "withhold"]);
    scene.put_back(&options);
    scene.daemon.wait_until(|source| source["state"] == "withholding acknowledgements", PATIENCE);
    let Scene { server, daemon } = &mut scene;
    std::thread::scope(|scope| {
        let server = &*server;
        let insert = |id: u32| move || server.sql(&format!("INSERT INTO d.t VALUES ({id}, 'waits')"));
        let mut clients = Vec::new();
        for id in [30, 31] {
            clients.push(scope.spawn(insert(id)));
            daemon.wait_until(|source| source["gtids_given_twice"] == clients.len(), PATIENCE);
            server.sql("FLUSH BINARY LOGS");
            let newest = newest_file(server);
            daemon.wait_until(|source| source["positions"]["durable"]["file"] == *newest, PATIENCE);
        }
        for _ in 0..2 {
            // MySQL counts those that wait behind another one as one.
            assert_ne!(counter(server, "wait_sessions"), 0, "{}", daemon.log());
            daemon.terminate();
            daemon.restart(&flags);
            daemon.wait_until(|source| source["state"] == "withholding acknowledgements", PATIENCE);
            daemon.wait_until(|source| source["gtids_given_twice"] == 2, PATIENCE);
        }
        server.sql("FLUSH BINARY LOGS");
        let newest = newest_file(server);
        daemon.wait_until(|source| source["positions"]["received"]["file"] == *newest, PATIENCE);
        assert!(clients.iter().all(|client| !client.is_finished()), "a commit returned\n{}", daemon.log());
        let (code, text) = forks(daemon, &["--accept-loss", "all", "--note", "a test"]);
        assert_eq!(code, Some(0), "{text}");
        for client in clients {
            client.join().expect("the commit returns");
        }
    });
    daemon.wait_until(|source| source["state"] == "receiving" && source["source_lacks"] == "", PATIENCE);
    assert_eq!(counter(server, "no_tx"), 0, "by an acknowledgement");
    server.sql("INSERT INTO d.t VALUES (32, 'acknowledged')");
    daemon.wait_caught_up(server);
    daemon.terminate();
    let verified = binlogd(&["verify"], &daemon.data_dir(), &[]);
    assert!(verified.status.success(), "{}", told(&verified).1);
}

#[test]
fn what_is_withheld_waits_over_a_rotation_mysql() {
    what_is_withheld_waits_over_a_rotation("mysql-9.7");
}

#[test]
fn what_is_withheld_waits_over_a_rotation_mariadb() {
    what_is_withheld_waits_over_a_rotation("mariadb-11.8");
}

/// The acknowledgement of a transaction that a rescue hands over is lost with the connection: it is acknowledged again, just
/// there, also when the source `rotates` meanwhile.
fn a_rescue_goes_on_after_a_lost_acknowledgement(name: &str, rotates: bool) {
    let server = Server::start(name, &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(200)); INSERT INTO d.t VALUES (0, 'kept')");
    let proxy = Proxy::before(&server);
    let daemon = Daemon::start_on(&proxy.url(), &[&FLAGS[..], &["--on-fork", "withhold"]].concat());
    let mut scene = Scene { server, daemon };
    scene.daemon.wait_caught_up(&scene.server);
    scene.write_what_is_lost(1, &[]);
    let options = rotating_options(name);
    scene.put_back(&options.iter().map(String::as_str).collect::<Vec<_>>());
    let Scene { server, daemon } = &scene;
    daemon.wait_until(|source| source["state"] == "withholding acknowledgements", PATIENCE);
    proxy.fault_present(Fault::Silence(Direction::ToSource));
    std::thread::scope(|scope| {
        let rescued = scope.spawn(|| rescue(daemon, server));
        let acknowledged = |source: &Value| !source["positions"]["acknowledged"].is_null();
        daemon.wait_until(acknowledged, PATIENCE);
        if rotates {
            server.sql("FLUSH BINARY LOGS");
            let newest = newest_file(server);
            daemon.wait_until(|source| source["positions"]["durable"]["file"] == *newest, PATIENCE);
        }
        assert!(!rescued.is_finished());
        proxy.cut(Ending::Reset);
        let (code, text) = rescued.join().expect("the rescue ends");
        assert_eq!(code, Some(0), "{text}\n{}", daemon.log());
    });
    daemon.wait_until(|source| source["state"] == "receiving" && source["source_lacks"] == "", PATIENCE);
    assert_eq!(counter(server, "no_tx"), 0, "by acknowledgements");
    assert_eq!(scene.rows(), "0=kept; 1=told to clients 1; 2=told to clients 2; 3=told to clients 3");
}

#[test]
fn a_rescue_goes_on_after_a_lost_acknowledgement_mysql() {
    a_rescue_goes_on_after_a_lost_acknowledgement("mysql-9.7", true);
}

#[test]
fn a_rescue_goes_on_after_a_lost_acknowledgement_mysql_in_the_same_file() {
    a_rescue_goes_on_after_a_lost_acknowledgement("mysql-9.7", false);
}

#[test]
fn a_rescue_goes_on_after_a_lost_acknowledgement_mariadb() {
    a_rescue_goes_on_after_a_lost_acknowledgement("mariadb-11.8", true);
}
