//! Two binlogds of one source complete each other: what only one of them was sent is fetched from it when the source is gone, and
//! before another server is followed.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::Server;
use crate::common::archive::source_lacks;
use crate::common::compare::{binary_logs, copied_files};
use crate::common::daemon::{Daemon, binlog_end, url};
use crate::common::ledger::{self, Ledger, copied_entries};
use crate::common::metrics::{check_metrics, metrics};
use crate::common::pair::replicate_once;
use crate::common::pair::{promote, replicate, wait_replicated};
use crate::common::proxy::{Direction, Ending, Fault, Proxy, address_of};
use crate::common::readers::{SERVE, make_account, serve_port};
use crate::common::semi_sync::SemiSync;
use codec::event::{BINLOG_MAGIC, CHECKSUM_LEN, EventHeader, EventType, HEADER_LEN};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than a test: a commit without acknowledgement hangs instead of passing for an acknowledged one.
const TIMEOUT: Duration = Duration::from_secs(600);
const FLAGS: [&str; 6] = ["--heartbeat-period", "1s", "--net-read-timeout", "3s", "--backoff-max", "1s"];
const WRITERS: usize = 3;
/// From now on nothing passes, and what comes is closed at once.
const CUT: Fault = Fault::CutAfter { direction: Direction::ToSource, bytes: 0, ending: Ending::Reset };

/// Two servers, of which each could be the other's successor.
fn servers(name: &str) -> (Server, Server) {
    let options: &[&str] = if name.starts_with("mysql") { &[] } else { &["--log-slave-updates=1"] };
    (Server::start(name, options), Server::start(name, options))
}

/// An address that refuses connections, for now.
fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
}

fn account_at(hosts: &str) -> String {
    format!("mysql://repl:secret@{hosts}")
}

/// Starts a binlogd that serves, with these peers.
fn start(hosts: &str, peers: &str) -> Daemon {
    Daemon::start_on(&account_at(hosts), &flags(peers))
}

fn flags(peers: &str) -> Vec<&str> {
    [&FLAGS[..], &SERVE, &["--peers", peers]].concat()
}

fn served_at(daemon: &Daemon) -> SocketAddr {
    ([127, 0, 0, 1], serve_port(daemon)).into()
}

fn durable(daemon: &Daemon) -> Value {
    daemon.source()["positions"]["durable"].clone()
}

fn wait_durable(daemon: &Daemon, end: &Value) -> Value {
    daemon.wait_until(|source| source["positions"]["durable"] == *end, PATIENCE)
}

fn durable_file(position: &Value) -> &str {
    position["file"].as_str().expect("a file")
}

/// A binary log whose last event is another one: a sound event, with one bit that is not the source's.
fn with_another_end(mut file: Vec<u8>) -> Vec<u8> {
    let mut begin = BINLOG_MAGIC.len();
    loop {
        let size = EventHeader::parse(&file[begin..]).expect("a sound event").event_size as usize;
        if begin + size == file.len() {
            break;
        }
        begin += size;
    }
    let end = file.len() - CHECKSUM_LEN;
    assert!(EventType(file[begin + 4]) == EventType::XID, "it ends with a commit");
    file[begin + HEADER_LEN] ^= 1;
    let checksum = crc32fast::hash(&file[begin..end]);
    file[end..].copy_from_slice(&checksum.to_le_bytes());
    file
}

/// The same files with the same bytes.
#[track_caller]
fn assert_same_files(one: &Path, other: &Path) {
    let files = copied_files(one);
    assert_eq!(files, copied_files(other));
    for file in &files {
        let read = |folder: &Path| std::fs::read(folder.join(file)).expect("a file of the copy");
        assert!(read(one) == read(other), "{file} differs: {} and {}", one.display(), other.display());
    }
}

#[track_caller]
fn assert_sound(daemon: &Daemon) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    let output = command.arg("verify").arg(daemon.data_dir()).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// What `binlogd rescue` prints when it has handed everything over.
#[track_caller]
fn rescued(daemon: &Daemon, target: &Server, more: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    command.arg("rescue").arg(daemon.data_dir()).args(["--to", &url(target), "--yes"]).args(more);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// What `binlogd doctor` prints.
fn doctor(url: &str, daemon: &Daemon, peers: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    command.args(["doctor", "--source", url, "--peers", peers, "--data-dir"]).arg(daemon.data_dir());
    let output = command.stdin(Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn error_of_peer(source: &Value, peer: usize) -> String {
    source["peers"][peer]["error"]["message"].as_str().unwrap_or_default().to_owned()
}

/// Each receiver is cut off in turn under load, the source dies while they differ: afterwards both have everything that a client
/// was told of, and either hands it over.
fn each_completes_from_the_other(name: &str) {
    let (source, other) = servers(name);
    ledger::create_table(&source);
    make_account(&source);
    replicate_once(&source, &other);
    let account = account_at(&address_of(&other).to_string());
    let of_other = Daemon::start_on(&account, &[&FLAGS[..], &SERVE].concat());
    // The ways: from each receiver to the source, and to the other receiver.
    let (source_of_a, source_of_b) = (Proxy::before(&source), Proxy::before(&source));
    let (a_of_b, b_of_a) = (Proxy::start(nobody()), Proxy::start(nobody()));
    let stranger = Proxy::start(served_at(&of_other));
    let server = Proxy::before(&other);
    let peer_of_a = b_of_a.address().to_string();
    let mut a = start(&source_of_a.address().to_string(), &peer_of_a);
    let of_b = [&a_of_b, &stranger, &server].map(|peer| peer.address().to_string()).join(",");
    let mut b = start(&source_of_b.address().to_string(), &of_b);
    a_of_b.move_to(served_at(&a));
    b_of_a.move_to(served_at(&b));
    a.wait_caught_up(&source);
    b.wait_caught_up(&source);
    let doctor = doctor(&account_at(&address_of(&source).to_string()), &b, &of_b);
    for words in [
        "a binlogd of the same source, which holds all up to",
        "another source",
        "no binlogd that knows peers",
    ] {
        assert!(doctor.contains(words), "no {words:?} in {doctor}");
    }
    let semi_sync = SemiSync::enable(&source, TIMEOUT);
    semi_sync.wait_until(|counters| counters.on && counters.clients == 2);
    assert_eq!(a.source()["peers"][0]["asked_at"], Value::Null, "while the source is there nobody is asked");
    let ledger = Ledger::start(&source, WRITERS);
    ledger.wait_for(40);

    // To the first one the source is gone, to the other it is not.
    source_of_a.fault(CUT);
    ledger.wait_for(ledger.committed().len() + 40);
    let fetched = |source: &Value| source["peers"][0]["fetched_transactions"].as_u64() > Some(0);
    a.wait_until(fetched, PATIENCE);
    source_of_a.fault(Fault::None);
    a.wait_until(|source| source["state"] == "receiving", PATIENCE);
    semi_sync.wait_until(|counters| counters.clients == 2);
    ledger.wait_for(ledger.committed().len() + 20);

    // What a receiver lacks the source has purged when it is back.
    a.terminate();
    ledger.wait_for(ledger.committed().len() + 20);
    source.sql("FLUSH BINARY LOGS");
    ledger.wait_for(ledger.committed().len() + 10);
    let (newest, _) = binlog_end(&source);
    source.sql(&format!("PURGE BINARY LOGS TO '{newest}'"));
    assert_eq!(binary_logs(&source), [newest]);
    a.restart(&flags(&peer_of_a));
    a_of_b.move_to(served_at(&a));
    a.wait_until(|source| source["state"] == "receiving", PATIENCE);
    semi_sync.wait_until(|counters| counters.clients == 2);
    assert!(
        a.log().contains("what the source does not have any more, or some of it, was fetched from a peer"),
        "{}",
        a.log()
    );
    assert_eq!(a.timeline_dirs().len(), 1, "no gap\n{}", a.log());

    // The other way round, and the second one reaches nobody until the source is dead.
    a_of_b.fault(CUT);
    source_of_b.fault(CUT);
    ledger.wait_for(ledger.committed().len() + 20);
    source.sql("FLUSH BINARY LOGS");
    ledger.wait_for(ledger.committed().len() + 20);
    source.kill();
    let told = ledger.of_a_dead_server();
    let end =
        a.wait_until(|source| source["state"] == "backing off" || source["state"] == "connecting", PATIENCE)
            ["positions"]["durable"]
            .clone();
    let b_ended = durable(&b);
    assert_ne!(b_ended, end, "they differ when the source is dead");

    // Where its last transaction is another one nothing is taken.
    b.terminate();
    let live = b.timeline_dir().join(durable_file(&b_ended));
    let sound = std::fs::read(&live).unwrap();
    let changed = with_another_end(sound.clone());
    std::fs::write(&live, &changed).unwrap();
    a_of_b.fault(Fault::None);
    b.restart(&flags(&of_b));
    b.wait_until(|source| error_of_peer(source, 0).contains("its logs are not those of this copy"), PATIENCE);
    b.terminate();
    assert!(std::fs::read(&live).unwrap() == changed, "nothing was taken, nothing was changed");
    std::fs::write(&live, &sound).unwrap();
    b.restart(&flags(&of_b));
    wait_durable(&b, &end);
    // What was fetched is counted once all of it is.
    b.wait_until(fetched, PATIENCE);
    assert_eq!(durable(&a), end);
    assert_same_files(&a.timeline_dir(), &b.timeline_dir());
    for daemon in [&a, &b] {
        copied_entries(&daemon.timeline_dir()).assert_holds(&told, daemon, "after both completed each other");
        assert_sound(daemon);
    }
    let status = b.wait_until(|source| (1..=2).all(|peer| !error_of_peer(source, peer).is_empty()), PATIENCE);
    assert!(error_of_peer(&status, 1).contains("a binlogd of another source"), "{:#}", status["peers"]);
    assert!(error_of_peer(&status, 2).contains("no binlogd that knows peers"), "{:#}", status["peers"]);
    let (_, text) = metrics(&b, "text/plain");
    let labels = format!("{{source=\"default\",peer=\"{}\"}}", a_of_b.address());
    assert!(text.contains(&format!("binlogd_peer_answered{labels} 1")), "{text}");
    assert!(!text.contains(&format!("binlogd_peer_fetched_transactions_total{labels} 0")), "{text}");
    check_metrics(&b);

    // Either of them hands over everything.
    // Two that it names as peers are none.
    let handed_over = rescued(&b, &other, &["--without-peers"]);
    assert!(handed_over.contains("now has all"), "{handed_over}");
    let ids = other.sql("SELECT id FROM ledger.entry");
    let there: std::collections::BTreeSet<u64> = ids.lines().map(|id| id.parse().unwrap()).collect();
    let lost: Vec<_> = told.difference(&there).collect();
    assert!(lost.is_empty(), "LOST, confirmed to clients and not handed over: {lost:?}");
    // It was started again, at another port.
    b_of_a.move_to(served_at(&b));
    a.wait_until(|source| source["peers"][0]["error"].is_null(), PATIENCE);
    let again = rescued(&a, &other, &[]);
    assert!(again.contains("has every transaction that the copy of default holds"), "{again}");
}

#[test]
fn each_completes_from_the_other_mysql() {
    each_completes_from_the_other("mysql-9.7");
}

#[test]
fn each_completes_from_the_other_mariadb() {
    each_completes_from_the_other("mariadb-11.8");
}

/// A successor that lacks the end is followed: who lacks the end too completes from the peer first, though that one has followed
/// already. Where the peer cannot be reached the failover goes on, and what stays with the peer is said.
fn completes_before_it_follows(name: &str) {
    let (source, successor) = servers(name);
    ledger::create_table(&source);
    make_account(&source);
    replicate(&successor, &source);
    wait_replicated(&successor, &source);
    let hosts = format!("{},{}", address_of(&source), address_of(&successor));
    let (way, blocked) = (Proxy::start(nobody()), Proxy::start(nobody()));
    let a = start(&hosts, &nobody().to_string());
    let mut b = start(&hosts, &way.address().to_string());
    let mut c = start(&hosts, &blocked.address().to_string());
    way.move_to(served_at(&a));
    blocked.move_to(served_at(&a));
    let receivers = [&a, &b, &c];
    for daemon in receivers {
        daemon.wait_caught_up(&source);
    }
    let semi_sync = SemiSync::enable(&source, TIMEOUT);
    semi_sync.wait_until(|counters| counters.on && counters.clients == 3);
    let ledger = Ledger::start(&source, WRITERS);
    ledger.wait_for(30);
    let stop = if name.starts_with("mysql") { "STOP REPLICA IO_THREAD" } else { "STOP SLAVE IO_THREAD" };
    successor.sql(stop);
    ledger.wait_for(ledger.committed().len() + 20);
    b.terminate();
    c.terminate();
    ledger.wait_for(ledger.committed().len() + 20);
    source.sql("FLUSH BINARY LOGS");
    ledger.wait_for(ledger.committed().len() + 20);
    source.kill();
    let told = ledger.of_a_dead_server();
    promote(&successor);
    let follows = |source: &Value| {
        source["state"] == "receiving" && source["host"] == address_of(&successor).to_string()
    };
    a.wait_until(follows, PATIENCE);
    successor.sql("INSERT INTO ledger.entry VALUES (90000001, 'by the successor')");
    a.wait_caught_up(&successor);

    b.restart(&flags(&way.address().to_string()));
    b.wait_until(follows, PATIENCE);
    b.wait_caught_up(&successor);
    let (of_a, of_b) = (a.timeline_dirs(), b.timeline_dirs());
    assert_eq!((of_a.len(), of_b.len()), (2, 2), "{}", b.log());
    assert_same_files(&of_a[0], &of_b[0]);
    assert_same_files(&of_a[1], &of_b[1]);
    copied_entries(&of_b[0]).assert_holds(&told, &b, "before it followed");
    let lacks = source_lacks(&of_a[1], source.kind());
    assert!(!lacks.is_empty(), "{}", a.log());
    assert_eq!(source_lacks(&of_b[1], source.kind()), lacks, "{}", b.log());
    assert_sound(&b);

    // Connections are taken, and nothing is answered.
    blocked.fault(Fault::Blackout);
    let began = Instant::now();
    c.restart(&flags(&blocked.address().to_string()));
    c.wait_until(follows, PATIENCE);
    println!("{name}: followed {:?} after its start, with a peer that does not answer", began.elapsed());
    c.wait_log("the timeline ends, and not everything could be had from", PATIENCE);
    assert_eq!(c.timeline_dirs().len(), 2, "{}", c.log());
    blocked.fault(Fault::None);
    let only_there = |source: &Value| source["peers"][0]["only_there_transactions"].as_u64() > Some(0);
    let status = c.wait_until(only_there, PATIENCE);
    assert!(c.log().contains("the peer holds transactions at the end of an older timeline"), "{}", c.log());
    let there = codec::gtid::GtidState::parse(
        source.kind(),
        status["peers"][0]["only_there"].as_str().unwrap_or_default(),
    );
    let there = there.unwrap();
    assert!(there.subtract(&lacks).is_empty(), "{} is not of {}", there.to_line(), lacks.to_line());
    assert!(!copied_entries(&c.timeline_dirs()[0]).ids.is_superset(&told), "the scene is none");

    // What the peer hands over comes with the log of the successor.
    let handed_over = rescued(&a, &successor, &["--without-peers"]);
    assert!(handed_over.contains("now has all"), "{handed_over}");
    c.wait_until(|source| source["peers"][0]["only_there_transactions"] == 0, PATIENCE);
    c.wait_log("the peer holds nothing any more that this copy lacks", PATIENCE);
}

#[test]
fn completes_before_it_follows_mysql() {
    completes_before_it_follows("mysql-9.7");
}

#[test]
fn completes_before_it_follows_mariadb() {
    completes_before_it_follows("mariadb-11.8");
}
