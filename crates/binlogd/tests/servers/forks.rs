//! A source that lost what clients were told of, and goes on: GTIDs that it gives twice, acknowledgements that are withheld,
//! what an operator decides; and a server that has nothing to do with the copy.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::common::Server;
use crate::common::alert::Scrape;
use crate::common::archive::reason;
use crate::common::compare::binary_logs;
use crate::common::daemon::{Daemon, url};
use crate::common::forward::Forward;
use crate::common::proxy::{Direction, Ending, Fault, Proxy};
use crate::common::semi_sync::SemiSync;

const PATIENCE: Duration = Duration::from_secs(60);
const FLAGS: [&str; 6] = ["--heartbeat-period", "1s", "--net-read-timeout", "3s", "--backoff-max", "1s"];
/// Longer than a test.
const TIMEOUT_MS: u32 = 600_000;

fn is_mysql(server: &Server) -> bool {
    server.name().starts_with("mysql")
}

fn binlogd(arguments: &[&str], data_dir: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    command.args(arguments).arg(data_dir).args(more);
    command.env_remove("BINLOGD_PASSWORD").stdin(Stdio::null()).output().expect("binlogd runs")
}

/// Exit code, and what was printed.
fn told(output: &Output) -> (Option<i32>, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

fn forks(daemon: &Daemon, flags: &[&str]) -> (Option<i32>, String) {
    told(&binlogd(&["forks"], &daemon.data_dir(), flags))
}

fn rescue(daemon: &Daemon, server: &Server) -> (Option<i32>, String) {
    told(&binlogd(&["rescue", "--to", &url(server), "--yes"], &daemon.data_dir(), &[]))
}

fn http(daemon: &Daemon, path: &str) -> String {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let url = format!("http://{}{path}", daemon.admin_address());
    agent.get(url).call().unwrap().body_mut().read_to_string().unwrap()
}

fn copy_folder(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs");
    assert!(done.success());
}

/// A source with a copy, and a state of its disk from before the rows 1, 2 and 3, each a transaction.
struct Scene {
    server: Server,
    daemon: Daemon,
}

impl Scene {
    fn new(name: &str, flags: &[&str]) -> Scene {
        let server = Server::start(name, &[]);
        server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(200)); INSERT INTO d.t VALUES (0, 'kept')");
        let daemon = Daemon::start(&server, &[&FLAGS[..], flags].concat());
        let mut scene = Scene { server, daemon };
        scene.daemon.wait_caught_up(&scene.server);
        scene.write_what_is_lost(1, &[]);
        scene
    }

    /// A state of the disk is kept, and then three rows are written from number `first` on.
    fn write_what_is_lost(&mut self, first: u32, options: &[&str]) {
        self.server.stop();
        copy_folder(self.server.datadir(), &self.earlier());
        self.server.restart(options);
        self.daemon.wait_until(|source| source["state"] == "receiving", PATIENCE);
        for id in first..first + 3 {
            self.server.sql(&format!("INSERT INTO d.t VALUES ({id}, 'told to clients {id}')"));
        }
        self.daemon.wait_caught_up(&self.server);
    }

    fn earlier(&self) -> std::path::PathBuf {
        self.server.dir().join("earlier")
    }

    /// The server is put back, and started with these options.
    fn put_back(&mut self, options: &[&str]) {
        self.server.kill();
        copy_folder(&self.earlier(), self.server.datadir());
        self.server.restart(options);
    }

    fn rows(&self) -> String {
        self.server
            .sql("SELECT GROUP_CONCAT(CONCAT(id, '=', v) ORDER BY id SEPARATOR '; ') FROM d.t")
            .trim()
            .to_owned()
    }
}

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
    assert!(list.contains("2 GTIDs given twice, 1 transactions lost and not handed back"), "{list}");
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
    assert_eq!(
        sql.matches("\n-- ").count(),
        5 * 2 + 1,
        "two versions of two, one that is lacked, and the head\n{sql}"
    );
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
    let gtids = if is_mysql(&scene.server) { "all" } else { newest };
    let (code, text) = forks(&scene.daemon, &["--accept-loss", gtids, "--note", "lost for good"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("1 handed back, 5 decided"), "{text}");
    let notes: Vec<String> = open(&scene.daemon, "decided")
        .iter()
        .map(|one| one["decision"]["note"].as_str().unwrap().to_owned())
        .collect();
    let expected = ["kept second", "kept second", "lost for good", "lost for good", "lost for good"];
    assert_eq!(notes, expected, "{text}");
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

/// Options by which a server waits for acknowledgements from its start on.
fn semi_sync_options(name: &str) -> [String; 2] {
    let role = if name.starts_with("mysql") { "source" } else { "master" };
    [format!("--rpl-semi-sync-{role}-enabled=1"), format!("--rpl-semi-sync-{role}-timeout={TIMEOUT_MS}")]
}

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
    let role = if is_mysql(server) { "source" } else { "master" };
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
        text.contains("nothing was sent") && text.contains("no semi-sync replica is connected"),
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
