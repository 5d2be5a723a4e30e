//! A binlogd below a binlogd, and one below that: each has the timelines of the one above, whatever that went through while it was
//! away, and commits go on with what the one above takes.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::serve_semi_sync::{DEMAND, PATIENCE, TIMEOUT, as_flags, copied_ids, options, wait_equal, with};
use crate::common::archive::{described, held_gtids, source_lacks};
use crate::common::compare::{AfterCrash, assert_holds, binary_logs, copied_files};
use crate::common::daemon::{Daemon, binlog_end};
use crate::common::ledger;
use crate::common::pair::reset;
use crate::common::pair::{promote, replicate, wait_replicated};
use crate::common::proxy::{Ending, Fault, Proxy};
use crate::common::readers::{account_url, make_account, serve_port};
use crate::common::semi_sync::SemiSync;
use crate::common::switching;
use crate::common::switching::Clients;
use crate::common::{Server, seed, wait_within};
use binlog::storage::posix::PosixStorage;
use codec::ServerKind;
use codec::dump_stream::{DumpFramer, Frame};
use codec::event::{EventHeader, EventType};
use codec::packet::command;
use serde_json::Value;
use wire::{ConnectOptions, Connection, TlsMode, TlsOptions};

/// A daemon that serves at a port which stays its own.
struct Link {
    daemon: Daemon,
    flags: Vec<String>,
    port: u16,
}

impl Link {
    fn start(url: &str, flags: &[&str]) -> Link {
        let daemon = Daemon::start_on(url, &as_flags(&with(flags, "127.0.0.1:0")));
        let port = serve_port(&daemon);
        Link { daemon, flags: with(flags, &format!("127.0.0.1:{port}")), port }
    }

    fn below(above: &Link, flags: &[&str]) -> Link {
        Link::start(&format!("mysql://repl:secret@127.0.0.1:{}", above.port), flags)
    }

    fn restart(&mut self) {
        self.daemon.restart(&as_flags(&self.flags));
    }

    /// Nothing of what it held is left.
    fn lose_disk(&mut self) {
        self.daemon.kill();
        std::fs::remove_dir_all(self.daemon.data_dir().join("default")).unwrap();
        self.restart();
    }

    /// Each timeline's description, by its name.
    fn descriptions(&self) -> BTreeMap<String, String> {
        let dirs = self.daemon.timeline_dirs().into_iter();
        dirs.map(|dir| {
            let text = std::fs::read_to_string(dir.join("timeline.toml")).unwrap();
            (dir.file_name().unwrap().to_string_lossy().into_owned(), text)
        })
        .collect()
    }
}

/// Two servers whose files have other names, the second a replica of the first; and a list of both.
fn servers(name: &str) -> (Server, Server, String) {
    let (first, second) = (
        Server::start(name, &options(name, "--server-id=1")),
        Server::start(name, &options(name, "--server-id=2")),
    );
    make_account(&first);
    ledger::create_table(&first);
    replicate(&second, &first);
    first.sql("FLUSH BINARY LOGS");
    first.sql("FLUSH BINARY LOGS");
    wait_replicated(&second, &first);
    let hosts = format!("{},127.0.0.1:{}", account_url(&first), second.port());
    (first, second, hosts)
}

fn insert(server: &Server, id: u64) {
    server.sql(&format!("INSERT INTO ledger.entry VALUES ({id}, CONCAT('ledger', '-{id}-'))"));
}

/// Which server has made the oldest file that a binlogd is sent which knows of no timelines, and takes all for the log of the server
/// that is presented.
fn oldest_for_an_older_version(link: &Link) -> u32 {
    let mut connection = Connection::connect(&ConnectOptions {
        host: "127.0.0.1".to_owned(),
        port: link.port,
        user: "repl".to_owned(),
        password: "secret".into(),
        connect_timeout: PATIENCE,
        tls: TlsOptions { mode: TlsMode::Disabled, ..TlsOptions::default() },
    })
    .unwrap();
    let words = "SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'";
    connection.query(words).unwrap();
    // Flag 1: no waiting for more than there is.
    let mut stream = connection.start_dump(&command::binlog_dump(4, 1, 77, b"")).unwrap();
    stream.set_blocking(PATIENCE).unwrap();
    let (mut bytes, mut start, mut framer) = (Vec::new(), 0, DumpFramer::new(false));
    loop {
        let mut part = [0; 4096];
        let read = stream.read(&mut part).unwrap();
        bytes.extend_from_slice(&part[..read]);
        while let Some((consumed, frame)) = framer.next(&bytes[start..], usize::MAX).unwrap() {
            if let Frame::Event { bytes, .. } = frame
                && let Ok(header) = EventHeader::parse(bytes)
                && header.event_type == EventType::FORMAT_DESCRIPTION
            {
                return header.server_id;
            }
            start += consumed;
        }
        assert!(read > 0, "it ends before a file has begun");
    }
}

/// What its log says of each dump that another binlogd was sent.
fn read_by_binlogd(link: &Link) -> impl Iterator<Item = String> {
    let log = link.daemon.log();
    let is_it = |line: &&str| line.contains("a reader reads from") && line.contains("program=\"binlogd\"");
    log.lines().filter(is_it).map(str::to_owned).collect::<Vec<_>>().into_iter()
}

fn receives_from(source: &Value, server: &Server) -> bool {
    source["state"] == "receiving" && source["host"] == format!("127.0.0.1:{}", server.port())
}

#[track_caller]
fn assert_mirrors(above: &Link, below: &Link) {
    wait_equal(&above.daemon, &below.daemon);
    assert_eq!(above.descriptions(), below.descriptions(), "{}", below.daemon.log());
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    command.arg("verify").arg(below.daemon.data_dir()).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Deletes what a stopped one holds before this file.
fn purge(link: &Link, to: &str) {
    let purge = Command::new(env!("CARGO_BIN_EXE_binlogd"))
        .arg("purge")
        .arg(link.daemon.data_dir())
        .args(["--to", to, "--without-archive"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(purge.status.success(), "{}", String::from_utf8_lossy(&purge.stderr));
}

/// The oldest timeline above cannot be read: whoever is below gets the others, new or not, and says which one lacks.
fn unreadable_above(above: &Link, below: &mut Link, source: &Server) {
    let oldest = above.daemon.timeline_dirs().remove(0);
    let (name, description) = (oldest.file_name().unwrap().to_string_lossy(), oldest.join("timeline.toml"));
    let text = std::fs::read(&description).unwrap();
    std::fs::write(&description, "rubbish").unwrap();
    below.daemon.terminate();
    below.restart();
    let newcomer = Link::below(above, &[]);
    insert(source, 90_000_009);
    for link in [&*below, &newcomer] {
        link.daemon.wait_caught_up(source);
        let told = link.daemon.source()["last_error"]["message"].to_string();
        assert!(told.contains(&*name) && told.contains("timeline.toml"), "{told}\n{}", link.daemon.log());
    }
    assert!(
        above.daemon.log().contains("another binlogd cannot have all of the copy: "),
        "{}",
        above.daemon.log()
    );
    assert_eq!((below.daemon.timeline_dirs().len(), newcomer.daemon.timeline_dirs().len()), (3, 2));
    std::fs::write(&description, text).unwrap();
    assert_mirrors(above, below);
}

/// Away over a failover to a server with other files, a purge above, and a reset.
fn catches_up(name: &str) {
    let (old, new, hosts) = servers(name);
    let mut first = Link::start(&hosts, &[]);
    let mut second = Link::below(&first, &[]);
    first.daemon.wait_caught_up(&old);
    wait_equal(&first.daemon, &second.daemon);
    second.daemon.kill();
    insert(&old, 90_000_001);
    old.sql("FLUSH BINARY LOGS");
    insert(&old, 90_000_002);
    wait_replicated(&new, &old);
    new.sql("FLUSH BINARY LOGS");
    first.daemon.wait_caught_up(&old);
    old.kill();
    promote(&new);
    insert(&new, 90_000_003);
    new.sql("FLUSH BINARY LOGS");
    insert(&new, 90_000_004);
    first.daemon.wait_caught_up(&new);
    reset(&new);
    insert(&new, 90_000_005);
    first.daemon.wait_caught_up(&new);
    assert_eq!(first.daemon.timeline_dirs().len(), 3, "{}", first.daemon.log());

    assert_eq!(oldest_for_an_older_version(&first), 2, "of the present server alone");

    // Killed on its way.
    let mut moment = seed();
    for _ in 0..4 {
        second.restart();
        moment = moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis((moment >> 33) % 150));
        second.daemon.kill();
    }
    second.restart();
    let mut third = Link::below(&second, &[]);
    assert_mirrors(&first, &second);
    assert_mirrors(&second, &third);
    assert!(!second.daemon.log().contains("error 1236"), "{}", second.daemon.log());
    let reasons: Vec<String> =
        third.daemon.timeline_dirs().iter().map(|timeline| described(timeline, "reason")).collect();
    assert_eq!(reasons, ["first", "source-changed", "source-reset"]);
    if new.kind() == ServerKind::MySql {
        unreadable_above(&second, &mut third, &new);
    }

    // The first one was put back to nothing, and begins anew with what its source has.
    first.lose_disk();
    first.daemon.wait_caught_up(&new);
    insert(&new, 90_000_006);
    new.sql("FLUSH BINARY LOGS");
    insert(&new, 90_000_007);
    first.daemon.wait_caught_up(&new);
    second.daemon.wait_caught_up(&new);
    third.daemon.wait_caught_up(&new);
    assert_mirrors(&second, &third);
    assert_eq!((first.daemon.timeline_dirs().len(), second.daemon.timeline_dirs().len()), (1, 3));
    assert!((90_000_001..90_000_008).all(|id| copied_ids(&third.daemon).contains(&id)));
    // A new one begins with what is left above.
    new.sql("FLUSH BINARY LOGS");
    insert(&new, 90_000_008);
    first.daemon.wait_caught_up(&new);
    first.daemon.terminate();
    let (newest, _) = binlog_end(&new);
    purge(&first, &newest);
    first.restart();
    assert!(!binlog::purge::purge_record::read(&PosixStorage, &first.daemon.timeline_dir()).is_empty());
    let newcomer = Link::below(&first, &[]);
    newcomer.daemon.wait_caught_up(&new);
    assert_mirrors(&first, &newcomer);
}

#[test]
fn one_that_was_away_catches_up_with_mysql_9_7() {
    catches_up("mysql-9.7");
}

#[test]
fn one_that_was_away_catches_up_with_mariadb_11_8() {
    catches_up("mariadb-11.8");
}

/// A failover above while one below is away and another one is not there yet.
fn follows_a_failover(name: &str) {
    let (old, new, hosts) = servers(name);
    let first = Link::start(&hosts, &[]);
    let mut second = Link::below(&first, &[]);
    first.daemon.wait_caught_up(&old);
    wait_equal(&first.daemon, &second.daemon);
    second.daemon.kill();
    insert(&old, 90_000_001);
    first.daemon.wait_caught_up(&old);
    wait_replicated(&new, &old);
    old.kill();
    promote(&new);
    insert(&new, 90_000_002);
    new.sql("FLUSH BINARY LOGS");
    insert(&new, 90_000_003);
    first.daemon.wait_caught_up(&new);
    second.restart();
    let third = Link::below(&second, &[]);
    assert_mirrors(&first, &second);
    assert_mirrors(&second, &third);
    insert(&new, 90_000_004);
    third.daemon.wait_caught_up(&new);
    let dirs = third.daemon.timeline_dirs();
    assert_eq!(
        dirs.iter().map(|dir| described(dir, "reason")).collect::<Vec<_>>(),
        ["first", "source-changed"]
    );
    let copied = copied_files(&dirs[1]);
    assert!(copied.len() >= 2 && binary_logs(&new).ends_with(&copied), "{copied:?}");
    assert_holds(&new, &third.daemon, &copied, AfterCrash::Identical);
    assert!((90_000_001..90_000_005).all(|id| copied_ids(&third.daemon).contains(&id)));
}

#[test]
fn a_failover_of_mysql_8_0_31_goes_down_the_chain() {
    follows_a_failover("mysql-8.0.31");
}

#[test]
fn a_failover_of_mariadb_10_11_goes_down_the_chain() {
    follows_a_failover("mariadb-10.11");
}

/// The new source lacks acknowledged transactions, and its files have other names. A commit returns when two copies have it.
/// What it lacks of the timeline in which it was is gone above: that is a gap, as below a server, and no end of a timeline.
#[test]
fn what_was_purged_above_meanwhile_is_a_gap() {
    let (old, new, hosts) = servers("mysql-9.7");
    let mut first = Link::start(&hosts, &[]);
    let mut second = Link::below(&first, &[]);
    first.daemon.wait_caught_up(&old);
    wait_equal(&first.daemon, &second.daemon);
    second.daemon.kill();
    insert(&old, 90_000_001);
    first.daemon.wait_caught_up(&old);
    let lacked = old.sql("SELECT @@global.gtid_executed").trim().replace('\n', "");
    wait_replicated(&new, &old);
    old.kill();
    promote(&new);
    for id in 2..5 {
        new.sql("FLUSH BINARY LOGS");
        insert(&new, 90_000_000 + id);
    }
    first.daemon.wait_caught_up(&new);
    first.daemon.terminate();
    purge(&first, &binlog_end(&new).0);
    first.restart();
    second.restart();
    let source = second.daemon.wait_until(|source| source["state"] == "stopped", PATIENCE);
    let told = source["state_detail"].as_str().unwrap();
    assert!(told.contains("a gap: the source no longer has"), "{told}\n{}", second.daemon.log());
    assert_eq!(second.daemon.timeline_dirs().len(), 1, "nothing was changed");
    second.daemon.terminate();
    second.flags.push("--on-gap=record".to_owned());
    second.restart();
    second.daemon.wait_caught_up(&new);
    let missing = described(&second.daemon.timeline_dirs()[1], "missing");
    let (server, last) = lacked.split_once(":1-").expect("one server, from 1 on");
    assert!(missing.contains(server) && missing.contains(last), "{missing} of {lacked}");
    assert!(copied_ids(&second.daemon).contains(&90_000_004));
}

/// The server of an older timeline is back above just after the one below has asked which timelines there are: what it gets of that one
/// is acknowledged all the same.
#[test]
fn who_is_back_above_behind_a_look_is_acknowledged() {
    let (older, newer) = (
        Server::start("mysql-9.7", &options("mysql-9.7", "--server-id=1")),
        Server::start("mysql-9.7", &options("mysql-9.7", "--server-id=2")),
    );
    for server in [&older, &newer] {
        make_account(server);
        ledger::create_table(server);
    }
    let source = Proxy::before(&older);
    let url = |proxy: &Proxy| format!("mysql://repl:secret@{}", proxy.address());
    let first = Link::start(&url(&source), &["--on-stranger=follow"]);
    first.daemon.wait_caught_up(&older);
    let way = Proxy::start(([127, 0, 0, 1], first.port).into());
    let mut second = Link::start(&url(&way), &["--on-stranger=follow"]);
    second.daemon.wait_caught_up(&older);
    second.daemon.kill();
    insert(&older, 90_000_001);
    first.daemon.wait_caught_up(&older);
    let leads_to = |server: &Server| {
        source.move_to(([127, 0, 0, 1], server.port()).into());
        source.cut(Ending::Close);
        first.daemon.wait_caught_up(server);
    };
    leads_to(&newer);
    // It has asked, over one connection, and goes on over the next ones.
    way.fault(Fault::Latency(Duration::from_millis(100)));
    let before = way.accepted().len();
    second.restart();
    wait_within(PATIENCE, "it asks", || way.accepted().len() > before + 1);
    way.fault(Fault::Blackout);
    leads_to(&older);
    way.fault(Fault::None);
    second.daemon.wait_until(|source| source["semi_sync"]["active"] == true, PATIENCE);
    insert(&older, 90_000_002);
    second.daemon.wait_caught_up(&older);
    leads_to(&newer);
    second.daemon.wait_caught_up(&newer);
    // From here on only the watch asks: where nothing arrives, for the end.
    let before = read_by_binlogd(&first).count();
    assert_mirrors(&first, &second);
    wait_within(PATIENCE, "the watch asks", || read_by_binlogd(&first).count() > before);
    assert!(read_by_binlogd(&first).all(|line| line.contains("timeline=\"0")), "{}", first.daemon.log());
}

fn goes_on(name: &str) {
    let (old, new, hosts) = servers(name);
    let mut first = Link::start(&hosts, &DEMAND);
    let second = Link::below(&first, &[]);
    let third = Link::below(&second, &[]);
    second.daemon.wait_until(|source| source["semi_sync"]["active"] == true, PATIENCE);
    SemiSync::enable(&old, TIMEOUT).wait_attached();
    insert(&old, 90_000_001);
    let common = held_gtids(&first.daemon, old.kind());
    new.sql(if new.kind() == ServerKind::MariaDb {
        "STOP SLAVE IO_THREAD"
    } else {
        "STOP REPLICA IO_THREAD"
    });
    insert(&old, 90_000_002);
    insert(&old, 90_000_003);
    assert_eq!(SemiSync::of(&old).counters().no_tx, 0, "acknowledged");
    let lost = held_gtids(&first.daemon, old.kind()).subtract(&common);
    old.kill();
    promote(&new);
    first.daemon.wait_until(|source| receives_from(source, &new), PATIENCE);
    let semi_sync = SemiSync::enable(&new, TIMEOUT);
    semi_sync.wait_attached();
    let began = Instant::now();
    insert(&new, 90_000_004);
    println!("{name}: the first commit took {:?}", began.elapsed());
    assert_eq!(semi_sync.counters().no_tx, 0, "acknowledged by two");
    new.sql("FLUSH BINARY LOGS");
    insert(&new, 90_000_005);
    first.daemon.kill();
    first.restart();
    insert(&new, 90_000_006);
    assert_eq!(semi_sync.counters().no_tx, 0, "acknowledged by two");
    first.daemon.wait_caught_up(&new);
    assert_mirrors(&first, &second);
    assert_mirrors(&second, &third);
    assert_eq!(source_lacks(&third.daemon.timeline_dir(), new.kind()), lost);
    for below in [&second, &third] {
        let log = below.daemon.log();
        assert!(!log.contains("read-only") && !log.contains("error 1236"), "{log}");
    }
    // Without its disk the first one takes the log of its source anew, and what is below goes on with that.
    first.lose_disk();
    insert(&new, 90_000_007);
    assert_eq!(semi_sync.counters().no_tx, 0, "acknowledged by two");
    third.daemon.wait_caught_up(&new);
    assert_mirrors(&second, &third);
    assert_eq!(third.daemon.timeline_dirs().len(), 2, "{}", second.daemon.log());
    assert!((90_000_001..90_000_008).all(|id| copied_ids(&third.daemon).contains(&id)));
}

#[test]
fn commits_go_on_below_a_lossy_failover_of_mysql_9_7() {
    goes_on("mysql-9.7");
}

#[test]
fn commits_go_on_below_a_lossy_failover_of_mariadb_11_8() {
    goes_on("mariadb-11.8");
}

/// A planned switch-over, and back, above a chain of three: a commit returns when all of them have it, so each level must follow
/// before the first one does.
fn follows_a_switch_over(name: &str) {
    let servers = switching::servers(name, 2);
    make_account(&servers[0]);
    wait_replicated(&servers[1], &servers[0]);
    let hosts = format!("{},127.0.0.1:{}", account_url(&servers[0]), servers[1].port());
    let demand = ["--ack-after-replicas", "1"];
    let first = Link::start(&hosts, &demand);
    let second = Link::below(&first, &demand);
    let third = Link::below(&second, &[]);
    third.daemon.wait_caught_up(&servers[0]);
    for link in [&second, &third] {
        link.daemon.wait_until(|source| source["semi_sync"]["active"] == true, PATIENCE);
    }
    SemiSync::enable(&servers[0], switching::TIMEOUT).wait_attached();
    let clients = Clients::start(&servers);
    let (mut source, mut took) = (0, Vec::new());
    for _ in 0..switching::rounds(2) {
        took.push(switching::switch_over(&servers, source, 1 - source, &clients));
        source = 1 - source;
    }
    println!("{name}, a chain of three: {}", switching::in_words(&took));
    let told = clients.finish();
    for link in [&first, &second, &third] {
        link.daemon.wait_caught_up(&servers[source]);
        let held = copied_ids(&link.daemon);
        assert!(told.is_subset(&held), "LOST: {:?}\n{}", told.difference(&held), link.daemon.log());
    }
    assert_mirrors(&first, &second);
    assert_mirrors(&second, &third);
}

#[test]
fn a_switch_over_of_mysql_9_7_goes_down_the_chain() {
    follows_a_switch_over("mysql-9.7");
}

#[test]
fn a_switch_over_of_mariadb_11_8_goes_down_the_chain() {
    follows_a_switch_over("mariadb-11.8");
}
