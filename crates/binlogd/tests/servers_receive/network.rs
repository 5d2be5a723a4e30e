//! A network that fails between binlogd and real sources, with TLS and without: connections that are cut at any byte,
//! reset, half open, slow, or refused. After each failure binlogd comes back by itself, nothing that was acknowledged is
//! lost, the copy stays byte-identical, and the source returns to semi-sync.
//!
//! The load commits under semi-sync with a timeout that never ends, so that each confirmed commit was acknowledged by
//! binlogd. `BINLOGD_TEST_SEED` replays where connections are cut.

use std::time::{Duration, Instant};

use crate::common::compare::{AfterCrash, assert_identical};
use crate::common::daemon::{Daemon, binlog_end};
use crate::common::ledger::{self, Ledger, copied_entries};
use crate::common::proxy::{Direction, Ending, Fault, Proxy};
use crate::common::semi_sync::SemiSync;
use crate::common::workload::Random;
use crate::common::{Server, connect_options, seed};
use codec::ServerKind;
use serde_json::Value;
use wire::{Connection, TlsMode};

/// Longer than the test: a commit without acknowledgement hangs instead of passing for an acknowledged one.
const NEVER: Duration = Duration::from_secs(600);
/// Longest wait for anything: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
const WRITERS: usize = 4;
/// Commits that prove, by being confirmed, that acknowledgements arrive again.
const COMMITS: usize = 20;
/// Bytes of the load's large transactions in the stream, at least.
const LARGE_BYTES: u64 = 400_000;
const SOURCE_OPTIONS: [&str; 1] = ["--max-binlog-size=4M"];
/// Silence is noticed soon, and attempts follow soon.
const FLAGS: [&str; 4] =
    ["--heartbeat-period=500ms", "--net-read-timeout=4s", "--backoff-min=50ms", "--backoff-max=300ms"];

const fn cut(direction: Direction, bytes: u64, ending: Ending) -> Fault {
    Fault::CutAfter { direction, bytes, ending }
}

/// What happens to established streams.
fn failures(random: &mut Random) -> Vec<Fault> {
    use Direction::{ToReceiver, ToSource};
    use Ending::{Close, Reset};
    vec![
        cut(ToReceiver, 0, Close),
        cut(ToReceiver, 0, Reset),
        // Inside the header of a packet or of an event, when it begins there; inside a TLS record in any case.
        cut(ToReceiver, 1 + random.below(3), Close),
        cut(ToReceiver, 4 + random.below(22), Reset),
        cut(ToReceiver, 100 + random.below(3_000), Close),
        // Inside a transaction of many packets.
        cut(ToReceiver, 20_000 + random.below(LARGE_BYTES), Close),
        cut(ToReceiver, 20_000 + random.below(LARGE_BYTES), Reset),
        // Inside an acknowledgement: 4 bytes of header, 9 and the file's name.
        cut(ToSource, 1 + random.below(4), Close),
        cut(ToSource, 5 + random.below(20), Reset),
        Fault::Silence(ToReceiver),
        Fault::Blackout,
    ]
}

fn reconnects(source: &Value) -> u64 {
    source["counters"]["reconnects"].as_u64().expect("a number")
}

/// Waits until further commits were confirmed.
#[track_caller]
fn wait_for_commits(ledger: &Ledger, daemon: &Daemon) {
    let wanted = ledger.committed().len() + COMMITS;
    let deadline = Instant::now() + PATIENCE;
    while ledger.committed().len() < wanted {
        assert!(Instant::now() < deadline, "commits are not acknowledged any more\n{}", daemon.log());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Breaks the established stream, and waits until a new one receives and acknowledges.
#[track_caller]
fn break_stream(fault: Fault, proxy: &Proxy, daemon: &Daemon, ledger: &Ledger) {
    let before = reconnects(&daemon.source());
    proxy.fault_present(fault);
    let back = |source: &Value| reconnects(source) > before && source["state"] == "receiving";
    let source = daemon.wait_until(back, PATIENCE);
    if matches!(fault, Fault::Silence(_) | Fault::Blackout) {
        // The look at the source may see it sooner, where the source can still be asked.
        let is_seen =
            ["net_read_timeout", "but nothing arrives"].iter().any(|text| daemon.log().contains(text));
        assert!(is_seen, "after {fault:?}: {source:#}\n{}", daemon.log());
    }
    wait_for_commits(ledger, daemon);
}

/// Lets two attempts break off after so many bytes of the source, then lets one succeed.
#[track_caller]
fn break_attempts(bytes: u64, ending: Ending, proxy: &Proxy, daemon: &Daemon, ledger: &Ledger) {
    let before = reconnects(&daemon.source());
    proxy.fault(cut(Direction::ToReceiver, bytes, ending));
    proxy.cut(ending);
    daemon.wait_until(|source| reconnects(source) >= before + 2, PATIENCE);
    proxy.fault(Fault::None);
    wait_for_commits(ledger, daemon);
}

/// Bytes of the source up to the end of a login.
fn login_bytes(server: &Server, proxy: &Proxy, tls: &str) -> u64 {
    let mode = if tls == "--tls=required" { TlsMode::Required } else { TlsMode::Disabled };
    let options = connect_options(server, "root", "", mode);
    let through = wire::ConnectOptions { port: proxy.address().port(), ..options };
    let _login = Connection::connect(&through).expect("a connection through the proxy");
    let passed = proxy.passed(Direction::ToReceiver);
    assert!(passed > 0);
    proxy.cut(Ending::Close);
    passed
}

fn recovers_by_itself(server_name: &str, tls: &str) {
    let mut random = Random::new(seed());
    let server = Server::start(server_name, &SOURCE_OPTIONS);
    ledger::create_table(&server);
    let proxy = Proxy::before(&server);
    let login = login_bytes(&server, &proxy, tls);
    let semi_sync = SemiSync::enable(&server, NEVER);
    let daemon = Daemon::start_on(&proxy.url(), &[&FLAGS[..], &[tls]].concat());
    semi_sync.wait_attached();
    // What a session takes up to its first events: greeting, TLS, answers. MariaDB hangs when a connection is cut in the moment
    // of attaching (docs/mariadb.md), so there the cuts end with the first answers.
    let setup = match server.kind() {
        ServerKind::MySql => proxy.passed(Direction::ToReceiver),
        ServerKind::MariaDb => login + 200,
    };
    let encrypted = daemon.source()["tls"].is_string();
    assert_eq!(encrypted, tls == "--tls=required");

    let ledger = Ledger::start(&server, WRITERS);
    wait_for_commits(&ledger, &daemon);
    for fault in failures(&mut random) {
        println!("{server_name} {tls}: {fault:?}");
        break_stream(fault, &proxy, &daemon, &ledger);
    }
    for round in 0..4 {
        let bytes = if round == 0 { random.below(4) } else { random.below(setup) };
        let ending = if round % 2 == 0 { Ending::Close } else { Ending::Reset };
        println!("{server_name} {tls}: attempts end after {bytes} of {setup} bytes: {ending:?}");
        break_attempts(bytes, ending, &proxy, &daemon, &ledger);
    }
    let committed = ledger.finish();
    daemon.wait_caught_up(&server);
    copied_entries(&daemon.timeline_dir()).assert_holds(&committed, &daemon, "at the end");
    assert_identical(&server, &daemon, AfterCrash::Identical);
    assert_eq!(daemon.timeline_dirs().len(), 1, "a broken connection begins no timeline");
    let counters = semi_sync.wait_attached();
    assert_eq!(counters.no_tx, 0, "commits that went without acknowledgement prove nothing: {counters:?}");
}

#[test]
fn broken_connections_to_mysql() {
    recovers_by_itself("mysql-9.7", "--tls=disabled");
}

#[test]
fn broken_encrypted_connections_to_mysql() {
    recovers_by_itself("mysql-9.7", "--tls=required");
}

#[test]
fn broken_connections_to_mariadb() {
    recovers_by_itself("mariadb-11.8", "--tls=disabled");
}

#[test]
fn broken_encrypted_connections_to_mariadb() {
    recovers_by_itself("mariadb-11.8", "--tls=required");
}

/// Acknowledgements do not arrive, though events do: the source falls back as its timeout says, binlogd goes on
/// receiving. When they arrive again, and after a time without any connection, the source returns to semi-sync.
fn semi_sync_comes_back_on(server_name: &str) {
    let server = Server::start(server_name, &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY)");
    let proxy = Proxy::before(&server);
    let semi_sync = SemiSync::enable(&server, Duration::from_secs(1));
    let daemon = Daemon::start_on(&proxy.url(), &FLAGS);
    semi_sync.wait_attached();

    proxy.fault(Fault::Silence(Direction::ToSource));
    server.sql("INSERT INTO d.t VALUES (1)");
    semi_sync.wait_until(|counters| !counters.on);
    server.sql("INSERT INTO d.t VALUES (2)");
    let source = daemon.wait_caught_up(&server);
    assert_eq!(reconnects(&source), 0, "heartbeats arrive, so the connection is not lost: {source:#}");
    proxy.fault(Fault::None);
    semi_sync.wait_attached();

    proxy.fault(cut(Direction::ToReceiver, 0, Ending::Reset));
    server.sql("INSERT INTO d.t VALUES (3)");
    semi_sync.wait_until(|counters| !counters.on);
    server.sql("INSERT INTO d.t VALUES (4)");
    proxy.fault(Fault::None);
    semi_sync.wait_attached();

    let before = semi_sync.counters();
    semi_sync.set_timeout(NEVER);
    server.sql("INSERT INTO d.t VALUES (5)");
    let after = semi_sync.counters();
    assert_eq!((after.yes_tx, after.no_tx), (before.yes_tx + 1, before.no_tx));
    daemon.wait_caught_up(&server);
    assert_identical(&server, &daemon, AfterCrash::Identical);
}

#[test]
fn semi_sync_comes_back_on_mysql() {
    semi_sync_comes_back_on("mysql-9.7");
}

#[test]
fn semi_sync_comes_back_on_mariadb() {
    semi_sync_comes_back_on("mariadb-11.8");
}

/// A slow network is no broken one: everything arrives, by one connection, and is acknowledged.
fn slow_is_not_broken(server_name: &str, tls: &str) {
    let server = Server::start(server_name, &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT, b TEXT)");
    let proxy = Proxy::before(&server);
    proxy.fault(Fault::Drip { direction: Direction::ToReceiver, bytes: 70, pause: Duration::from_millis(1) });
    let semi_sync = SemiSync::enable(&server, NEVER);
    let flags = [tls, "--connect-timeout=60s", "--net-read-timeout=4s", "--heartbeat-period=1s"];
    let daemon = Daemon::start_on(&proxy.url(), &flags);
    semi_sync.wait_attached();
    server.sql(
        "INSERT INTO d.t VALUES (1, REPEAT('x', 5000)); FLUSH BINARY LOGS; INSERT INTO d.t VALUES (2, 'y')",
    );
    // An acknowledgement, a byte at a time.
    proxy.fault(Fault::Drip { direction: Direction::ToSource, bytes: 1, pause: Duration::from_millis(10) });
    server.sql("INSERT INTO d.t VALUES (3, 'z')");
    proxy.fault(Fault::Latency(Duration::from_millis(80)));
    server.sql("INSERT INTO d.t VALUES (4, 'z'); INSERT INTO d.t VALUES (5, REPEAT('x', 50000))");
    let source = daemon.wait_caught_up(&server);
    assert_identical(&server, &daemon, AfterCrash::Identical);
    let counters = semi_sync.counters();
    assert_eq!((reconnects(&source), counters.no_tx), (0, 0), "{counters:?}\n{}", daemon.log());
}

#[test]
fn a_slow_network_is_not_broken() {
    slow_is_not_broken("mysql-9.7", "--tls=disabled");
    slow_is_not_broken("mariadb-11.8", "--tls=required");
}

/// What has arrived becomes durable in time while the next event drips in: bytes now and then that are no whole record
/// of TLS must not keep the receiver from what is due.
#[test]
fn durable_while_the_next_event_drips_in() {
    let server = Server::start("mysql-9.7", &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT, b MEDIUMTEXT)");
    let proxy = Proxy::before(&server);
    // Without semi-sync nobody asks for a sync. The interval is long enough for the statements below.
    let flags = [
        "--tls=required",
        "--semi-sync=false",
        "--fsync-interval=10s",
        "--net-read-timeout=30s",
        "--heartbeat-period=5s",
    ];
    let daemon = Daemon::start_on(&proxy.url(), &flags);
    daemon.wait_caught_up(&server);
    server.sql("INSERT INTO d.t VALUES (1, 'small')");
    let (file, position) = binlog_end(&server);
    let reached = |source: &Value, rung: &str| {
        let rung = &source["positions"][rung];
        rung["file"] == *file && rung["position"] == position
    };
    daemon.wait_until(|source| reached(source, "written"), PATIENCE);
    // So slow that not even the first event of the next transaction arrives meanwhile.
    proxy.fault(Fault::Drip {
        direction: Direction::ToReceiver,
        bytes: 1,
        pause: Duration::from_millis(400),
    });
    server.sql("INSERT INTO d.t VALUES (2, REPEAT('x', 200000))");
    let source = daemon.wait_until(|source| reached(source, "durable"), Duration::from_secs(25));
    assert!(reached(&source, "received"), "the second row has not arrived: {source:#}");
    proxy.fault(Fault::None);
    let source = daemon.wait_caught_up(&server);
    assert_eq!(reconnects(&source), 0, "a connection on which bytes arrive is not lost\n{}", daemon.log());
    assert_identical(&server, &daemon, AfterCrash::Identical);
}

/// A source that takes connections and drops them is not asked in a hot loop, at whichever point it drops them.
#[test]
fn attempts_follow_the_back_off() {
    const BACKOFF_MIN: Duration = Duration::from_millis(100);
    const BACKOFF_MAX: Duration = Duration::from_millis(800);
    const ATTEMPTS: usize = 6;
    /// On a busy machine the proxy notices a connection late, so that the next one seems to follow sooner.
    const LATE: Duration = Duration::from_millis(40);
    let server = Server::start("mysql-9.7", &[]);
    let proxy = Proxy::before(&server);
    // Without the watch and without semi-sync an attempt is one connection: the place at which it begins need not be
    // compared over another first.
    let flags = [
        "--backoff-min=100ms",
        "--backoff-max=800ms",
        "--tls=required",
        "--heartbeat-period=1s",
        "--semi-sync=false",
        "--watch-interval=0s",
    ];
    let mut daemon = Daemon::start_on(&proxy.url(), &flags);
    daemon.wait_caught_up(&server);
    daemon.terminate();
    // What a session takes that goes on with a copy: the first one asked for more, and must not be counted.
    proxy.cut(Ending::Close);
    daemon.restart(&flags);
    daemon.wait_caught_up(&server);
    let setup = proxy.passed(Direction::ToReceiver);
    // At once; in the greeting; in the TLS handshake; in the answers after the login; in the first events.
    for bytes in [0, 30, 500, setup / 2, setup] {
        daemon.terminate();
        proxy.fault(cut(Direction::ToReceiver, bytes, Ending::Reset));
        let earlier = proxy.accepted().len();
        daemon.restart(&flags);
        daemon.wait_until(|_| proxy.accepted().len() >= earlier + ATTEMPTS, PATIENCE);
        let attempts = proxy.accepted();
        // A pause is at least half of its nominal length, which doubles up to the maximum.
        let mut nominal = BACKOFF_MIN;
        for pair in attempts[earlier..earlier + ATTEMPTS].windows(2) {
            let pause = pair[1] - pair[0];
            assert!(
                pause + LATE >= nominal / 2,
                "cut after {bytes} bytes: {pause:?}, where {nominal:?} belongs"
            );
            nominal = (nominal * 2).min(BACKOFF_MAX);
        }
        let count = reconnects(&daemon.source());
        assert!(count + 2 >= ATTEMPTS as u64, "{count} attempts are counted, {ATTEMPTS} connections came");
    }
}

/// The address moves to another server while the old one runs on, as a virtual address does: present connections stay,
/// later ones reach the new server.
#[test]
fn a_forwarded_address_moves() {
    let servers = [Server::start("mysql-9.7", &[]), Server::start("mysql-9.7", &[])];
    let proxy = Proxy::before(&servers[0]);
    let ask = || {
        let options = connect_options(&servers[0], "root", "", TlsMode::Disabled);
        let through = wire::ConnectOptions { port: proxy.address().port(), ..options };
        Connection::connect(&through).expect("a connection through the proxy")
    };
    let port = |connection: &mut Connection| {
        let rows = connection.query("SELECT @@port").expect("an answer");
        rows.first().and_then(|text| text.parse::<u16>().ok()).expect("a number")
    };
    let mut old = ask();
    proxy.move_to(crate::common::proxy::address_of(&servers[1]));
    assert_eq!(port(&mut ask()), servers[1].port());
    assert_eq!(port(&mut old), servers[0].port());
    proxy.cut(Ending::Reset);
    assert!(old.query("SELECT 1").is_err(), "the connection was cut");
}
