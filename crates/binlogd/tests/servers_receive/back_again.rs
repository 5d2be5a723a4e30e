//! Back within a second: commits wait for binlogd, so it comes back at once when the source listens again after a restart,
//! and when a reset has begun another timeline.
//!
//! The measurement is `make back-again`; what runs with all tests only checks that binlogd comes back, each time.

use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wire::{ConnectOptions, Connection, TlsMode};

use crate::common::compare::{AfterCrash, assert_identical};
use crate::common::daemon::Daemon;
use crate::common::semi_sync::SemiSync;
use crate::common::{Server, connect_options};
use codec::ServerKind;

/// Longer than the test: a commit without acknowledgement hangs instead of passing for an acknowledged one.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Longest wait for a server's end and its start again: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(90);
/// Restarts that are measured on each server.
const MEASURED: usize = 20;
const RESETS_MEASURED: usize = 12;
const BETWEEN_RESETS: Duration = Duration::from_millis(1500);
/// The goal, in the median: from "the source listens again" to "it acknowledges again", and from a reset to that.
const GOAL: Duration = Duration::from_millis(500);

/// Switched on from the server's first moment, so that its first commit waits.
fn options(server_name: &str) -> Vec<String> {
    let (role, replica) =
        if server_name.starts_with("mariadb") { ("master", "slave") } else { ("source", "replica") };
    vec![
        format!("--rpl-semi-sync-{role}-enabled=ON"),
        format!("--rpl-semi-sync-{role}-timeout={}", TIMEOUT.as_millis()),
        format!("--rpl-semi-sync-{role}-wait-no-{replica}=ON"),
    ]
}

fn client(server: &Server) -> ConnectOptions {
    connect_options(server, "root", "", TlsMode::Disabled)
}

/// Commits once, and says how long that took from the moment in which the server listened.
fn first_commit(options: ConnectOptions) -> JoinHandle<Duration> {
    std::thread::spawn(move || {
        let address: SocketAddr = format!("{}:{}", options.host, options.port).parse().expect("an address");
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline, "the server does not listen");
            std::thread::sleep(Duration::from_millis(1));
        }
        let listens = Instant::now();
        let mut connection = loop {
            match Connection::connect(&options) {
                Ok(connection) => break connection,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
        };
        connection.set_timeout(PATIENCE);
        connection.query("INSERT INTO d.t VALUES (NULL)").expect("a commit that is acknowledged");
        listens.elapsed()
    })
}

struct Source {
    server: Server,
    daemon: Daemon,
    kills: bool,
    /// How often the server was killed.
    killed: usize,
}

impl Source {
    fn start(server_name: &str) -> Self {
        let mut server = Server::start(server_name, &[]);
        server.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY AUTO_INCREMENT)");
        // As an operator runs it: every pause is the default.
        let daemon = Daemon::start(&server, &[]);
        daemon.wait_caught_up(&server);
        server.stop();
        let options = options(server_name);
        server.restart(&options.iter().map(String::as_str).collect::<Vec<_>>());
        SemiSync::of(&server).wait_attached();
        Self { server, daemon, kills: false, killed: 0 }
    }

    /// One restart, in good order and by a kill in turn.
    fn restart(&mut self) -> Duration {
        // MariaDB can leave half an event when it is killed while it writes; nobody writes here.
        if self.kills {
            self.killed += 1;
            self.server.kill()
        } else {
            self.server.stop()
        }
        self.kills = !self.kills;
        let commit = first_commit(client(&self.server));
        self.server.restart(&[]);
        let took = commit.join().expect("the client");
        self.was_acknowledged();
        took
    }

    /// One reset of the source's logs, and how long the next commit takes.
    fn reset(&mut self) -> Duration {
        // Resets that follow one another without end are answered more slowly; this measures a single one.
        std::thread::sleep(BETWEEN_RESETS);
        self.server.sql("FLUSH BINARY LOGS; INSERT INTO d.t VALUES (NULL)");
        self.daemon.wait_caught_up(&self.server);
        let mysql = self.server.kind() == ServerKind::MySql;
        self.server.sql(if mysql { "RESET BINARY LOGS AND GTIDS" } else { "RESET MASTER" });
        self.killed = 0; // Those files are gone.
        let took = first_commit(client(&self.server)).join().expect("the client");
        self.was_acknowledged();
        took
    }

    #[track_caller]
    fn was_acknowledged(&self) {
        let counters = SemiSync::of(&self.server).wait_attached();
        assert_eq!(
            counters.no_tx,
            0,
            "a commit went without acknowledgement: {counters:?}\n{}",
            self.daemon.log()
        );
    }

    fn finish(self) {
        self.daemon.wait_caught_up(&self.server);
        let leaves_flag = self.server.kind() == ServerKind::MariaDb;
        let after_crash = if leaves_flag { AfterCrash::InUseIn(self.killed) } else { AfterCrash::Identical };
        assert_identical(&self.server, &self.daemon, after_crash);
    }
}

/// Says median and maximum, and returns the median.
fn report(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort();
    let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
    println!("{what}: {} times, median {median:.2?}, longest {longest:.2?}", times.len());
    median
}

fn comes_back(server_name: &str) {
    let mut source = Source::start(server_name);
    let restarts = vec![source.restart(), source.restart()];
    report(&format!("{server_name}, restarts"), restarts);
    source.finish();
}

fn is_measured(server_name: &str) {
    let mut source = Source::start(server_name);
    let restarts = (0..MEASURED).map(|_| source.restart()).collect();
    let median = report(&format!("{server_name}, from listening to the first commit"), restarts);
    let resets = (0..RESETS_MEASURED).map(|_| source.reset()).collect();
    let after_resets = report(&format!("{server_name}, the first commit after a reset of the logs"), resets);
    source.finish();
    assert!(median.max(after_resets) <= GOAL, "the goal is {GOAL:?} in the median");
}

#[test]
fn mysql_finds_binlogd_back() {
    comes_back("mysql-9.7");
}

#[test]
fn mariadb_finds_binlogd_back() {
    comes_back("mariadb-11.8");
}

#[test]
#[ignore = "measures, on a quiet machine: make back-again"]
fn measured_on_mysql() {
    is_measured("mysql-9.7");
}

#[test]
#[ignore = "measures, on a quiet machine: make back-again"]
fn measured_on_mariadb() {
    is_measured("mariadb-11.8");
}
