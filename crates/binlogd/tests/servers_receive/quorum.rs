//! Not enough replicas, and not all copies: commits that wait for another replica are said to wait, and a rescue from one of several
//! copies does not call all what another copy has more of.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::Server;
use crate::common::daemon::{Daemon, url};
use crate::common::fork_scene::{FLAGS, binlogd, copy_folder, told};
use crate::common::nodes::nobody;
use crate::common::pair::{promote, replicate, wait_replicated};
use crate::common::proxy::{Proxy, address_of};
use crate::common::readers::{SERVE, account_url, make_account, serve_port};
use crate::common::semi_sync::SemiSync;

const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than a test: a commit that waits for nobody hangs.
const NEVER: Duration = Duration::from_secs(600);

/// A server with the account of readers, and a table.
pub(crate) fn source(name: &str) -> Server {
    let options: &[&str] = if name.starts_with("mysql") { &[] } else { &["--log-slave-updates=1"] };
    let server = Server::start(name, options);
    make_account(&server);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
    server
}

fn insert(server: &Server, count: usize) {
    server.sql(&"INSERT INTO d.t (v) VALUES (1);".repeat(count));
}

/// Exit code and text of a verb that asks the daemon.
fn asked(daemon: &Daemon, verb: &str) -> (Option<i32>, String) {
    told(&binlogd(&[verb, "--data-dir"], &daemon.data_dir(), &[]))
}

fn reason(source: &Value) -> &str {
    source["semi_sync"]["reason"].as_str().unwrap_or_default()
}

/// Every surface says that commits wait, and none that all is well.
#[track_caller]
fn commits_wait(daemon: &Daemon, words: &str) {
    let source = daemon.wait_until(|source| reason(source).contains(words), PATIENCE);
    assert!(
        reason(&source).starts_with("commits wait: the source wants the acknowledgements of 2"),
        "{source:#}"
    );
    let status = daemon.status();
    let verdict = &status["sources"][0]["verdict"];
    assert_eq!(
        (&verdict["level"], &status["verdict"]["level"]),
        (&"critical".into(), &"critical".into()),
        "{verdict:#}"
    );
    assert!(verdict["headline"].as_str().unwrap().starts_with("Commits wait"), "{verdict:#}");
    let (code, text) = asked(daemon, "health");
    assert!(code == Some(1) && text.contains("commits wait"), "{code:?}: {text}");
    let (code, text) = asked(daemon, "status");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(code == Some(1) && flat.contains(words), "{code:?}: {text}");
}

#[track_caller]
fn all_is_well(daemon: &Daemon) {
    let source = daemon.wait_until(|source| !reason(source).contains("commits wait"), PATIENCE);
    assert_eq!(source["verdict"]["level"], "ok", "{source:#}");
    assert_eq!(asked(daemon, "health"), (Some(0), "ok\n".to_owned()));
}

/// The source wants two replicas. One is attached, then two, then one of the two does not answer.
#[test]
fn commits_that_wait_for_another_replica_are_said_to_wait() {
    let server = source("mysql-9.7");
    let a = Daemon::start(&server, &FLAGS);
    a.wait_caught_up(&server);
    let semi_sync = SemiSync::enable(&server, NEVER);
    semi_sync.wait_attached();
    let doctor = || {
        let data_dir = a.data_dir();
        told(&binlogd(&["doctor", "--source", &url(&server), "--data-dir"], &data_dir, &[]))
    };
    let count = |count: u8| {
        server.sql(&format!("SET GLOBAL rpl_semi_sync_source_wait_for_replica_count = {count}"));
    };
    assert_eq!(doctor().0, Some(0), "{}", doctor().1);
    count(2);
    let b = std::thread::scope(|scope| {
        let client = scope.spawn(|| insert(&server, 1));
        commits_wait(&a, "and 1 is attached");
        let (code, text) = doctor();
        assert!(code == Some(1) && text.contains("only 1 semi-sync replica attached"), "{text}");
        assert!(!client.is_finished());
        let b = Daemon::start(&server, &FLAGS);
        client.join().expect("two acknowledge");
        b
    });
    all_is_well(&a);
    let (code, text) = doctor();
    assert_eq!(code, Some(0), "{text}");
    b.signal(Signal::STOP);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| insert(&server, 1));
        commits_wait(&a, "has not had them for any commit since");
        assert!(!client.is_finished());
        // What the runbook says.
        count(1);
        client.join().expect("one acknowledges");
    });
    all_is_well(&a);
    b.signal(Signal::CONT);
    assert!(a.log().contains("commits wait: the source wants"), "{}", a.log());
}

/// A rescue of `target` from this copy.
fn rescue(daemon: &Daemon, target: &Server, more: &[&str]) -> (Option<i32>, String) {
    told(&binlogd(&["rescue", "--to", &url(target)], &daemon.data_dir(), more))
}

/// A configuration of this copy with that peer, beside the flags that it was started with.
fn configuration(folder: &Path, daemon: &Daemon, source: &Server, peer: SocketAddr) -> String {
    let file = folder.join("binlogd.toml");
    let text = format!(
        "data_dir = '{}'\n[[source]]\nname = 'default'\nhosts = ['{}']\nuser = 'repl'\npassword = 'secret'\npeers = ['{peer}']\n",
        daemon.data_dir().display(),
        address_of(source)
    );
    std::fs::write(&file, text).expect("a file");
    file.display().to_string()
}

const WHOLE: &str = "has every transaction that the copy of default holds";

/// The copy lacks five transactions that its peer alone was sent, and the source is dead.
fn a_peer_has_more(name: &str) {
    let options: &[&str] = if name.starts_with("mysql") { &[] } else { &["--log-slave-updates=1"] };
    let (source, target) = (source(name), Server::start(name, options));
    replicate(&target, &source);
    wait_replicated(&target, &source);
    let way = Proxy::start(nobody());
    let peers = way.address().to_string();
    let flags = [&FLAGS[..], &SERVE, &["--peers", &peers]].concat();
    let mut a = Daemon::start_on(&account_url(&source), &flags);
    let b_flags = [&FLAGS[..], &SERVE].concat();
    let mut b = Daemon::start_on(&account_url(&source), &b_flags);
    a.wait_caught_up(&source);
    let semi_sync = SemiSync::enable(&source, NEVER);
    semi_sync.wait_until(|counters| counters.clients == 2);
    insert(&source, 3);
    wait_replicated(&target, &source);
    a.wait_caught_up(&source);
    a.terminate();
    promote(&target);
    insert(&source, 5);
    b.wait_caught_up(&source);
    source.kill();
    b.terminate();

    // The daemon cannot reach the peer; then there is no daemon; then an account is known, and the peer is down still.
    a.restart(&flags);
    a.wait_until(|source| source["peers"][0]["error"].is_object(), PATIENCE);
    let folder = tempfile::tempdir().expect("a folder");
    let config = configuration(folder.path(), &a, &source, way.address());
    let unasked = |a: &Daemon, more: &[&str]| {
        for how in ["--dry-run", "--yes"] {
            let (code, text) = rescue(a, &target, &[&[how], more].concat());
            assert_eq!(code, Some(1), "{how} {more:?}: {text}");
            assert!(text.contains(&format!("the peer {peers} was not asked")), "{how} {more:?}: {text}");
            assert!(!text.contains(WHOLE), "{how} {more:?}: {text}");
        }
    };
    unasked(&a, &[]);
    let (code, text) = rescue(&a, &target, &["--dry-run", "--without-peers"]);
    assert!(code == Some(0) && text.contains(WHOLE), "{text}");
    let (code, text) = rescue(&a, &target, &["--dry-run", "--json"]);
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert!(code == Some(1) && json["complete"] == false, "{text}");
    assert!(json["peers"][0].as_str().unwrap().contains("was not asked"), "{text}");
    a.terminate();
    unasked(&a, &[]);
    unasked(&a, &["--config", &config]);

    // It is up: asked, it is named with what it alone has.
    b.restart(&b_flags);
    way.move_to(([127, 0, 0, 1], serve_port(&b)).into());
    let (code, text) = rescue(&a, &target, &["--dry-run", "--config", &config]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&format!("the peer {peers} alone holds ")) && !text.contains(WHOLE), "{text}");
    if name.starts_with("mysql") {
        let set = text.split("alone holds ").nth(1).unwrap().split(": they").next().unwrap();
        assert_eq!(set.parse::<codec::gtid::GtidSet>().expect("a set").len(), 5, "{text}");
    }
    // The daemon fetches it, and all of it is handed over.
    a.restart(&flags);
    a.wait_until(|source| source["peers"][0]["fetched_bytes"].as_u64() > Some(0), PATIENCE);
    let (code, text) = rescue(&a, &target, &["--yes"]);
    assert!(code == Some(0) && text.contains("now has all 5 transactions"), "{text}");
    assert_eq!(target.sql("SELECT COUNT(*) FROM d.t").trim(), "8");
    let (code, text) = rescue(&a, &target, &["--dry-run", "--config", &config]);
    assert!(code == Some(0) && text.contains(WHOLE), "{text}");
}

#[test]
fn a_peer_has_more_mysql() {
    a_peer_has_more("mysql-9.7");
}

#[test]
fn a_peer_has_more_mariadb() {
    a_peer_has_more("mariadb-11.8");
}

/// The source lost what the peer alone was sent, and wrote on: the copy, which goes on with it, never had that.
#[test]
fn a_peer_has_what_the_source_lost_and_this_copy_never_had() {
    let mut source = source("mysql-9.7");
    let flags = [&FLAGS[..], &SERVE].concat();
    let mut a = Daemon::start_on(&account_url(&source), &flags);
    let mut b = Daemon::start_on(&account_url(&source), &flags);
    a.wait_caught_up(&source);
    b.wait_caught_up(&source);
    let earlier = source.dir().join("earlier");
    a.terminate();
    source.stop();
    copy_folder(source.datadir(), &earlier);
    source.restart(&[]);
    insert(&source, 3);
    b.wait_caught_up(&source);
    b.terminate();
    source.kill();
    copy_folder(&earlier, source.datadir());
    source.restart(&[]);
    source.sql(&"INSERT INTO d.t (v) VALUES (2);".repeat(4));
    a.restart(&flags);
    a.wait_caught_up(&source);
    b.restart(&flags);
    b.wait_until(|source| source["state"] == "receiving", PATIENCE);
    let folder = tempfile::tempdir().expect("a folder");
    let peer = ([127, 0, 0, 1], serve_port(&b)).into();
    let config = configuration(folder.path(), &a, &source, peer);
    let (code, text) = rescue(&a, &source, &["--dry-run", "--config", &config]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("in the place of its end this copy holds other transactions"), "{text}");
    // The other way round nothing is in doubt: what is at stake is here, and is told as such.
    let back = configuration(folder.path(), &b, &source, ([127, 0, 0, 1], serve_port(&a)).into());
    let (code, text) = rescue(&b, &source, &["--dry-run", "--config", &back]);
    assert!(code == Some(1) && text.contains("given twice"), "{text}");
    assert!(!text.contains("in the place of its end"), "{text}");
}
