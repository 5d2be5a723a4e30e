//! Another source for a quorum of three binlogds, by `binlogd promote`: on real servers, with clients that write meanwhile.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::daemon::Daemon;
use crate::common::ledger::{self, Ledger, Manner};
use crate::common::pair::{gtid_executed, replicate, wait_replicated};
use crate::common::proxy::{Direction, Ending, Fault, Proxy, address_of};
use crate::common::readers::{make_account, serve_port};
use crate::common::semi_sync::SemiSync;
use crate::common::verbs::{binlogd, text};
use crate::common::{Server, connect_options, wait_within};
use codec::ServerKind;
use rustix::process::Signal;
use serde_json::{Value, json};
use wire::{Connection, TlsMode};

const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than a test: a commit that nobody acknowledges hangs.
const NEVER: Duration = Duration::from_secs(600);
const FLAGS: [&str; 9] = [
    "--heartbeat-period",
    "1s",
    "--net-read-timeout",
    "3s",
    "--backoff-max",
    "1s",
    "--serve",
    "127.0.0.1:0",
    "--admin-write",
];
/// No commit for so long: nothing is acknowledged.
const QUIET: Duration = Duration::from_secs(1);
const COMMITS: usize = 50;
/// Each packet to or from the successor comes so much later: a promoter is killed between two of its statements there.
const SLOW: Duration = Duration::from_millis(50);
/// The same where it must be killed before the next of a few statements, on a machine that is busy.
const SLOWER: Duration = Duration::from_secs(1);
/// From now on nothing passes, and what comes is closed at once.
const CUT: Fault = Fault::CutAfter { direction: Direction::ToSource, bytes: 0, ending: Ending::Reset };

/// Three nodes, each reached by an address that is known before it starts; a source and its replica.
struct Scene {
    fronts: Vec<Proxy>,
    nodes: Vec<Daemon>,
    folder: tempfile::TempDir,
    old: Server,
    new: Server,
    /// Another replica, which is to be pointed to the new source.
    third: Option<Server>,
}

fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
}

impl Scene {
    fn start(name: &str) -> Scene {
        Scene::start_with(name, false)
    }

    fn start_with(name: &str, has_third: bool) -> Scene {
        let options: &[&str] = if name.starts_with("mysql") { &[] } else { &["--log-slave-updates=1"] };
        let (old, new) = (Server::start(name, options), Server::start(name, options));
        make_account(&old);
        ledger::create_table(&old);
        replicate(&new, &old);
        let third = has_third.then(|| Server::start(name, options));
        third.iter().for_each(|third| replicate(third, &old));
        wait_replicated(&new, &old);
        let fronts = (0..3).map(|_| Proxy::start(nobody())).collect();
        let folder = tempfile::tempdir().expect("a folder");
        let mut scene = Scene { fronts, nodes: Vec::new(), folder, old, new, third };
        for node in 0..3 {
            let url = format!("mysql://repl:secret@{}", scene.hosts().join(","));
            let others = scene.others(node).join(",");
            let flags: Vec<&str> = FLAGS.into_iter().chain(["--quorum", &others]).collect();
            let daemon = Daemon::start_on(&url, &flags);
            scene.fronts[node].move_to(([127, 0, 0, 1], serve_port(&daemon)).into());
            scene.nodes.push(daemon);
        }
        SemiSync::enable(&scene.old, NEVER);
        (0..3).for_each(|node| drop(scene.wait_counting(node)));
        scene
    }

    fn hosts(&self) -> Vec<String> {
        let servers = [&self.old, &self.new].into_iter().chain(&self.third);
        servers.map(|server| address_of(server).to_string()).collect()
    }

    fn others(&self, node: usize) -> Vec<String> {
        let others = self.fronts.iter().enumerate().filter(|(other, _)| *other != node);
        others.map(|(_, front)| front.address().to_string()).collect()
    }

    fn wait_counting(&self, node: usize) -> Value {
        let counts =
            |source: &Value| source["quorum"]["counts"] == true && source["semi_sync"]["active"] == true;
        self.nodes[node].wait_until(counts, PATIENCE)
    }

    /// A node's configuration, as its operator has it.
    fn config(&self, node: usize) -> PathBuf {
        let path = self.folder.path().join(format!("node{node}.toml"));
        let data_dir = self.nodes[node].data_dir();
        let (others, hosts) = (self.others(node), self.hosts());
        let text = format!(
            "data_dir = {data_dir:?}\n[serve]\nlisten = '127.0.0.1:0'\n[[source]]\nname = 'default'\nuser = 'repl'\npassword = 'secret'\n\
             hosts = {hosts:?}\nquorum = {others:?}\n"
        );
        std::fs::write(&path, text).expect("a file");
        path
    }

    fn arguments(&self, node: usize, to: &Server, more: &[&str]) -> Vec<String> {
        self.arguments_to(node, address_of(to), more)
    }

    fn arguments_to(&self, node: usize, to: SocketAddr, more: &[&str]) -> Vec<String> {
        let (config, front) =
            (self.config(node).display().to_string(), self.fronts[node].address().to_string());
        let to = format!("mysql://root@{to}");
        let line = ["promote", "--config", &config, "--node", &front, "--to", &to];
        line.iter().chain(more).map(ToString::to_string).collect()
    }

    fn promote(&self, node: usize, to: &Server, more: &[&str]) -> Output {
        binlogd(&self.arguments(node, to, more))
    }

    /// Nothing is done, and the words are said.
    #[track_caller]
    fn refuses(&self, node: usize, to: &Server, words: &[&str]) {
        let output = self.promote(node, to, &["--yes"]);
        let told = text(&output.stderr);
        assert!(!output.status.success(), "{}", text(&output.stdout));
        println!("{told}");
        for words in words {
            assert!(told.contains(words), "{words:?} is not in:\n{told}");
        }
    }

    #[track_caller]
    fn promotes(&self, node: usize, more: &[&str]) -> String {
        let output = self.promote(node, &self.new, more);
        let told = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.success(), "{told}\n{}", self.nodes[0].log());
        told
    }

    /// A commit on the new source returns though it would wait for ever, and says how soon.
    fn the_new_one_is_acknowledged(&self, id: u64) {
        let began = Instant::now();
        self.new.sql(&format!("INSERT INTO ledger.entry VALUES ({id}, 'new')"));
        println!("the first commit on the new source took {:?}", began.elapsed());
        let counters = SemiSync::of(&self.new).counters();
        assert_eq!((counters.on, counters.no_tx), (true, 0), "{counters:?}");
        for node in 0..3 {
            self.wait_counting(node);
            self.nodes[node].wait_caught_up(&self.new);
        }
    }

    fn hook(&self) -> PathBuf {
        self.folder.path().join("hook")
    }

    /// The promoter is killed while its hook runs: the successor is open by then. Gives the hook.
    fn killed_in_its_hook(&self, node: usize) -> String {
        let hook = format!("env > {0}.new; mv {0}.new {0}", self.hook().display());
        let lasts = format!("{hook}; sleep 20");
        let mut promoter = Command::new(env!("CARGO_BIN_EXE_binlogd"))
            .args(self.arguments(node, &self.new, &["--yes", "--hook", &lasts]))
            .env("BINLOGD_PASSWORD", "")
            .stdout(Stdio::piped())
            .spawn()
            .expect("binlogd runs");
        wait_within(PATIENCE, "the hook runs", || self.hook().exists());
        promoter.kill().expect("it runs");
        let _ = promoter.wait();
        let old = self.old_uuid();
        assert_eq!(self.hook_was_told(), old);
        std::fs::remove_file(self.hook()).expect("it is there");
        hook
    }

    /// Where the new source is, and no password; gives the old source.
    fn hook_was_told(&self) -> String {
        let told = std::fs::read_to_string(self.hook()).expect("the hook has run");
        for line in
            ["BINLOGD_SOURCE_HOST=127.0.0.1".to_owned(), format!("BINLOGD_SOURCE_PORT={}", self.new.port())]
        {
            assert!(told.lines().any(|told| told == line), "{line}: {told}");
        }
        assert!(told.contains("BINLOGD_EPOCH=2") && !told.contains("BINLOGD_PASSWORD"), "{told}");
        let old = told.lines().find_map(|line| line.strip_prefix("BINLOGD_OLD_SOURCE_UUID="));
        old.expect("it is set, be it empty").to_owned()
    }

    /// As the nodes name the old source.
    fn old_uuid(&self) -> String {
        match self.old.kind() {
            ServerKind::MySql => self.old.sql("SELECT @@server_uuid").trim().to_owned(),
            ServerKind::MariaDb => format!("mariadb-{}", self.old.sql("SELECT @@server_id").trim()),
        }
    }

    /// What tools ask of the nodes, while `source` is the source.
    fn tools_are_told(&self, source: &Server) {
        let (has, lacks) = match source.kind() {
            ServerKind::MySql => {
                let uuid = source.sql("SELECT @@server_uuid").trim().to_owned();
                (format!("{uuid}:1-3"), format!("{uuid}:100000000"))
            }
            ServerKind::MariaDb => {
                let id = source.sql("SELECT @@server_id").trim().to_owned();
                (format!("0-{id}-3"), format!("0-{id}-100000000"))
            }
        };
        for node in &self.nodes {
            let (code, standing) = node.asked("/v1/quorum");
            assert_eq!((code, &standing["quorum"]["nodes"]), (200, &Value::from(3)), "{standing:#}");
            assert_eq!(standing["source_gone_seconds"], Value::Null, "{standing:#}");
            assert!(standing["durable"]["position"].as_u64() > Some(4), "{standing:#}");
            let (_, found) = node.asked(&format!("/v1/durable?gtid_set={has}"));
            let holders = found["holders"].as_array().expect("a list");
            let have = holders.iter().filter(|holder| holder["has"] == true && holder["counts"] == true);
            assert_eq!((&found["agreed"], have.count()), (&Value::from(true), 3), "{found:#}");
            let (_, found) = node.asked(&format!("/v1/durable?gtid_set={lacks}"));
            assert_eq!(found["agreed"], Value::from(false), "{found:#}");
            assert!(
                found["holders"][2]["lacks"].as_str().is_some_and(|lacks| !lacks.is_empty()),
                "{found:#}"
            );
            let (code, refused) = node.asked(&format!("/v1/durable?gtid_set={has},nothing"));
            assert!(code == 400 && refused.to_string().contains("nothing"), "{refused:#}");
        }
    }

    /// Every commit that a client was told of is on the new source.
    #[track_caller]
    fn nothing_told_is_lost(&self, told: &BTreeSet<u64>) {
        let rows = self.new.sql("SELECT id FROM ledger.entry");
        let has: BTreeSet<u64> = rows.lines().filter_map(|id| id.trim().parse().ok()).collect();
        let lost: Vec<_> = told.difference(&has).collect();
        assert!(lost.is_empty(), "LOST, told to clients and not on the new source: {lost:?}");
    }
}

/// What stands against it is named, and nothing is done.
fn what_stands_against_it(scene: &Scene) {
    let new = &scene.new;
    let (lead, change, mode, put_back) = match new.kind() {
        ServerKind::MySql => (
            "STOP REPLICA SQL_THREAD; CHANGE REPLICATION FILTER REPLICATE_WILD_IGNORE_TABLE = ('nothing.%'); \
             CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 5; START REPLICA SQL_THREAD",
            "SET GLOBAL replica_exec_mode = 'IDEMPOTENT'",
            "SET GLOBAL gtid_mode = ON_PERMISSIVE",
            "SET GLOBAL gtid_mode = ON; SET GLOBAL replica_exec_mode = 'STRICT'; STOP REPLICA SQL_THREAD; \
             CHANGE REPLICATION FILTER REPLICATE_WILD_IGNORE_TABLE = (); CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 0; \
             START REPLICA SQL_THREAD",
        ),
        ServerKind::MariaDb => (
            "STOP SLAVE; SET GLOBAL replicate_wild_ignore_table = 'nothing.%'; CHANGE MASTER TO MASTER_DELAY = 5; START SLAVE",
            "SET GLOBAL slave_exec_mode = 'IDEMPOTENT'",
            "SET GLOBAL rpl_semi_sync_master_wait_no_slave = OFF",
            "SET GLOBAL slave_exec_mode = 'STRICT'; SET GLOBAL rpl_semi_sync_master_wait_no_slave = ON; STOP SLAVE; \
             SET GLOBAL replicate_wild_ignore_table = ''; CHANGE MASTER TO MASTER_DELAY = 0; START SLAVE",
        ),
    };
    new.sql(lead);
    new.sql(change);
    scene.refuses(
        1,
        new,
        &["Replicate_Wild_Ignore_Table = nothing.%", "delayed by 5 s", "exec_mode is \"IDEMPOTENT\""],
    );
    new.sql(mode);
    let named =
        if new.kind() == ServerKind::MySql { "gtid_mode = ON_PERMISSIVE" } else { "wait_no_slave is OFF" };
    scene.refuses(0, new, &[named]);
    new.sql(put_back);
    let nobody = binlogd(&scene.arguments_to(0, nobody(), &["--yes"]));
    assert!(text(&nobody.stderr).contains("cannot connect"), "{nobody:?}");
    scene.fronts[..2].iter().for_each(|front| front.fault(CUT));
    scene.refuses(2, new, &["1 of 3 nodes can promise, and 2 must"]);
    scene.fronts[..2].iter().for_each(|front| front.fault(Fault::None));
    for node in 0..3 {
        let status = scene.wait_counting(node);
        assert_eq!(status["quorum"]["promised"], 1, "a refusal changes nothing");
    }
}

/// The old source lives and is written to: from the fence on nobody is told of a commit there.
fn a_source_that_lives(name: &str) {
    let mut scene = Scene::start_with(name, true);
    what_stands_against_it(&scene);
    let said = scene.promotes(1, &["--dry-run"]);
    assert!(said.contains("3 of 3 can promise") && said.contains("feed, fence, agree, accept"), "{said}");
    let present = scene.promote(0, &scene.old, &["--yes"]);
    assert!(
        present.status.success() && text(&present.stdout).contains("is the source already"),
        "{present:?}"
    );

    let ledger = Ledger::start_in(&scene.old, 4, Manner { endures: true, ..Manner::default() });
    ledger.wait_for(COMMITS);
    scene.tools_are_told(&scene.old);
    let other = text(&scene.promote(0, &scene.new, &["--dry-run", "--epoch", "77"]).stderr);
    assert!(other.contains("and not of 77: somebody else"), "{other}");
    let said = scene.killed_in_its_hook(2);
    let told = ledger.committed();
    assert_eq!(ledger.wait_standstill(QUIET), told, "acknowledged after the fence");
    scene.the_new_one_is_acknowledged(90_000_001);
    scene.nothing_told_is_lost(&told);
    let again = scene.promotes(0, &["--yes", "--json", "--hook", &said]);
    let again: Value = serde_json::from_str(&again).expect("JSON");
    assert_eq!(
        (&again["is_source_already"], &again["hook_error"]),
        (&Value::Bool(true), &Value::Null),
        "{again:#}"
    );
    scene.hook_was_told();
    let failed = scene.promote(1, &scene.new, &["--yes", "--hook", "exit 7"]);
    assert!(failed.status.code() == Some(3) && text(&failed.stderr).contains("exit status: 7"), "{failed:?}");
    // Whoever runs it again reads what a promoter that was killed did not come to say.
    let again = scene.promotes(0, &["--yes"]);
    for words in ["is the source already, of epoch", "make it a replica: ", "a commit waits at"] {
        assert!(again.contains(words), "{words:?}: {again}");
    }
    let again = scene.promotes(0, &["--yes", "--repoint"]);
    assert!(again.contains("is the source already, of epoch"), "{again}");
    assert_eq!(ledger.committed(), told);
    // The third replicates from the new source; the old one is no replica.
    let third = scene.third.as_ref().expect("a third");
    let said = |server, words: &str| format!("{} {words} {}", address_of(server), address_of(&scene.new));
    assert!(again.contains(&said(third, "replicates from")), "{again}");
    assert!(again.contains(&said(&scene.old, "does not replicate from")), "{again}");
    wait_replicated(third, &scene.new);

    scene.refuses(0, &scene.old, &["wait for an acknowledgement"]);
    // Behind a partition it lives on, and a client writes. When it has crashed and is back, its tail is listed, and it is refused.
    let options = connect_options(&scene.old, "root", "", TlsMode::Preferred);
    let client = std::thread::spawn(move || {
        let mut client = Connection::connect(&options).expect("a connection");
        client.query("INSERT INTO ledger.entry VALUES (91000000, 'the tail')").map(drop)
    });
    let waits = || scene.promotes(0, &["--yes"]).contains("there for an acknowledgement that does not come");
    wait_within(PATIENCE, "it is seen that a commit waits there", waits);
    scene.old.kill();
    assert!(client.join().expect("it ends").is_err(), "told to a client without an acknowledgement");
    drop(ledger);
    scene.old.restart(&[]);
    let host = format!(
        "127.0.0.1:{} has transactions of its own that were acknowledged to nobody",
        scene.old.port()
    );
    let listed = scene.promotes(1, &["--yes"]);
    assert!(listed.contains(&host), "{listed}");
    scene.refuses(2, &scene.old, &["has transactions of its own"]);
    assert_eq!(scene.new.sql("SELECT COUNT(*) FROM ledger.entry WHERE id = 91000000").trim(), "0");
    if scene.new.kind() == ServerKind::MySql {
        // The same GTID names another transaction in the history: the old one counts it as there.
        let (old, new) = (gtid_executed(&scene.old), gtid_executed(&scene.new));
        let tail = scene.new.sql(&format!("SELECT GTID_SUBTRACT('{old}', '{new}')"));
        // Where the source was fenced, others may have written besides.
        let (uuid, numbers) = tail.trim().split_once(':').expect("a GTID");
        let mut ends = numbers.split('-').map(|number| number.parse::<u64>().expect("a number"));
        let first = ends.next().expect("a number");
        for number in first..=ends.next().unwrap_or(first) {
            let row = 92_000_000 + number;
            scene.new.sql(&format!(
                "SET gtid_next = '{uuid}:{number}'; INSERT INTO ledger.entry VALUES ({row}, 'another'); SET gtid_next = 'AUTOMATIC'"
            ));
        }
        let tail = format!("{uuid}:{first}");
        replicate(&scene.old, &scene.new);
        wait_replicated(&scene.old, &scene.new);
        scene.refuses(2, &scene.old, &["has other transactions than the nodes hold", &tail, "in the copy:"]);
    }
    scene.the_new_one_is_acknowledged(90_000_002);
}

#[test]
fn a_source_that_lives_mysql() {
    a_source_that_lives("mysql-9.7");
}

#[test]
fn a_source_that_lives_mariadb() {
    a_source_that_lives("mariadb-11.8");
}

/// The successor has not received all that was acknowledged, a promoter is killed while it is being fed, the source dies, and others go on
/// at other nodes.
fn a_promoter_and_a_source_die(name: &str) {
    let scene = Scene::start(name);
    let ledger = Ledger::start(&scene.old, 4);
    ledger.wait_for(COMMITS);
    let word = if name.starts_with("mysql") { "REPLICA" } else { "SLAVE" };
    scene.new.sql(&format!("STOP {word} IO_THREAD"));
    wait_within(PATIENCE, "it has applied what it has received", || {
        scene.new.sql(&format!("SHOW {word} STATUS")).contains("has read all relay log")
    });
    // Nothing that it is fed can come to an end, and what the first promoter was killed in ends behind it.
    let options = connect_options(&scene.new, "root", "", TlsMode::Preferred);
    let mut lock = Connection::connect(&options).expect("a connection");
    lock.query("FLUSH TABLES WITH READ LOCK").expect("a lock");
    ledger.wait_for(2 * COMMITS);
    let mut first = Command::new(env!("CARGO_BIN_EXE_binlogd"))
        .args(scene.arguments(0, &scene.new, &["--yes", "--wait", "60"]))
        .stdout(Stdio::null())
        .spawn()
        .expect("binlogd runs");
    let is_led = || match name.starts_with("mysql") {
        true => {
            // It hangs in a statement, or reads from the node and cannot apply.
            let led = "SELECT (SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'CHANGE%' OR INFO LIKE 'STOP%') \
                       + (SELECT COUNT(*) FROM mysql.slave_master_info WHERE Channel_name = 'binlogd_promote')";
            scene.new.sql(led).trim() != "0"
        }
        false => scene.new.sql("SHOW ALL SLAVES STATUS").contains("binlogd_promote"),
    };
    wait_within(PATIENCE, "its replication is led to a node", is_led);
    first.kill().expect("it runs");
    let _ = first.wait();
    // Nothing was fenced: commits go on.
    ledger.wait_for(ledger.committed().len() + COMMITS);
    scene.old.kill();
    drop(lock);
    let told = ledger.of_a_dead_server();

    let at_once = || {
        let two = std::thread::scope(|scope| {
            let one = scope.spawn(|| scene.promote(1, &scene.new, &["--yes"]));
            let other = scope.spawn(|| scene.promote(2, &scene.new, &["--yes"]));
            [one, other].map(|run| run.join().expect("it ends"))
        });
        for output in &two {
            println!("{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr));
        }
        two
    };
    let mut two = at_once();
    let since = Instant::now();
    // On a busy machine the statement in which the first was killed takes longer than its successors wait.
    while two.iter().all(|output| text(&output.stderr).contains("another promotion works on it")) {
        assert!(since.elapsed() < PATIENCE, "the killed promoter holds its lock");
        two = at_once();
    }
    assert!(two.iter().any(|output| output.status.success()), "one wins");
    assert_eq!(scene.new.sql(&format!("SHOW {word} STATUS")), "", "it is no replica any more");
    for output in two.iter().filter(|output| !output.status.success()) {
        let said = text(&output.stderr);
        assert!(said.contains("another promotion") || said.contains("promised"), "{said}");
    }
    // Whoever has lost may have fenced a node, which the first of these frees.
    scene.promotes(0, &["--yes"]);
    let again = scene.promotes(0, &["--yes"]);
    assert!(again.contains("is the source already, of epoch"), "{again}");
    scene.nothing_told_is_lost(&told);
    scene.the_new_one_is_acknowledged(90_000_001);
}

#[test]
fn a_promoter_and_a_source_die_mysql() {
    a_promoter_and_a_source_die("mysql-9.7");
}

#[test]
fn a_promoter_and_a_source_die_mariadb() {
    a_promoter_and_a_source_die("mariadb-11.8");
}

/// Where a promoter is killed.
#[derive(Debug, Clone, Copy)]
enum Killed {
    /// A majority has promised, and nothing else was done.
    Fenced,
    /// The successor has everything, and no node has recorded it.
    Fed,
    /// One node has.
    HalfAccepted,
    /// All have, and nothing was done at the successor.
    Accepted,
    /// The successor has forgotten its source, and cannot be written to yet.
    Opening,
}

impl Scene {
    /// Begins to promote the new one at `node`, and kills that. What it does at the successor takes long, so that it is killed where
    /// it is meant to be.
    fn kill_a_promoter(&self, node: usize, at: Killed) {
        let way = Proxy::before(&self.new);
        let mut verb = Command::new(env!("CARGO_BIN_EXE_binlogd"))
            .args(self.arguments_to(node, way.address(), &["--yes"]))
            .stdout(Stdio::piped())
            .spawn()
            .expect("binlogd runs");
        let mut lines = BufReader::new(verb.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let mut read_to = |beginning: &str| {
            let found = lines.find(|line| line.starts_with(beginning));
            assert!(found.is_some(), "{beginning} was not said: {at:?}");
        };
        read_to("to be done:");
        way.fault(Fault::Latency(SLOW));
        match at {
            Killed::Fenced => read_to("fenced:"),
            Killed::Fed => read_to("fed:"),
            Killed::HalfAccepted => {
                read_to("fed:");
                // Nobody hears the one that will have recorded it.
                let accepts = (node + 1) % 3;
                for (number, front) in self.fronts.iter().enumerate() {
                    match number == accepts {
                        true => front.fault_present(Fault::Blackout),
                        false => front.fault(Fault::Blackout),
                    }
                }
                let epoch = self.epoch(accepts);
                self.nodes[accepts]
                    .wait_until(|source| source["quorum"]["epoch"].as_u64() > Some(epoch), PATIENCE);
            }
            Killed::Accepted => {
                read_to("fed:");
                way.fault(Fault::Latency(SLOWER));
                read_to("accepted:");
            }
            Killed::Opening => {
                read_to("fed:");
                way.fault(Fault::Latency(SLOWER));
                read_to("accepted:");
                let status = if self.new.kind() == ServerKind::MariaDb {
                    "SHOW ALL SLAVES STATUS"
                } else {
                    "SHOW REPLICA STATUS"
                };
                wait_within(PATIENCE, "it forgets its source", || self.new.sql(status).is_empty());
            }
        }
        verb.kill().expect("it runs");
        let _ = verb.wait();
        self.fronts.iter().for_each(|front| front.fault(Fault::None));
        let read_only = self.new.sql("SELECT @@global.read_only");
        assert_eq!(read_only.trim(), "1", "{at:?}: it was killed too late");
    }

    fn epoch(&self, node: usize) -> u64 {
        self.nodes[node].source()["quorum"]["epoch"].as_u64().expect("an epoch")
    }
}

impl Scene {
    fn restart(&mut self, node: usize) {
        let others = self.others(node).join(",");
        let flags: Vec<&str> = FLAGS.into_iter().chain(["--quorum", &others]).collect();
        self.nodes[node].restart(&flags);
        self.fronts[node].move_to(([127, 0, 0, 1], serve_port(&self.nodes[node])).into());
    }

    /// The statement by which the old source is made a replica stands in what was said.
    fn make_the_old_one_a_replica(&self, said: &str) {
        let statement =
            said.lines().find_map(|line| line.split_once("make it a replica: ")).expect("a statement").1;
        self.old.sql(&statement.replacen('…', "repl", 1).replacen('…', "secret", 1));
        wait_replicated(&self.old, &self.new);
    }

    /// A tool asks over HTTP, and goes away; another one asks, too; and the node that promotes is stopped meanwhile.
    fn a_tool_promotes(&mut self, node: usize) {
        let to = address_of(&self.new).to_string();
        let body = |more: Value| {
            let mut body = json!({ "to": to, "user": "root" });
            body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            body
        };
        let ask = |body: &Value| self.nodes[node].told("/v1/promote", body);
        let (code, refused) = ask(&json!({ "to": "db9" }));
        assert!(code == 400 && refused["error"].to_string().contains("one of hosts"), "{refused:#}");
        let (code, refused) = ask(&body(json!({ "epoch": 77 })));
        let error = refused["error"].to_string();
        assert!(code == 409 && refused["done"] == false && error.contains("and not of 77"), "{refused:#}");
        let (code, refused) = ask(&json!({ "to": to, "user": "nobody", "password": "wrong" }));
        assert!(code == 409 && refused["error"].to_string().contains("denies access"), "{refused:#}");
        let (code, found) = ask(&body(json!({ "dry_run": true })));
        assert_eq!(
            (code, &found["done"], &found["nodes_answer"]),
            (200, &json!(false), &json!(3)),
            "{found:#}"
        );
        assert!(found["statements"].as_array().is_some_and(|list| !list.is_empty()), "{found:#}");

        // It waits for the lock that one promotion has.
        let options = connect_options(&self.new, "root", "", TlsMode::Preferred);
        let mut lock = Connection::connect(&options).expect("a connection");
        lock.query("SELECT GET_LOCK('binlogd_promote', 0)").expect("a lock");
        let asked = body(json!({})).to_string();
        let address = self.nodes[node].admin_address();
        let mut gone = TcpStream::connect(&address).expect("a connection");
        let head = format!(
            "POST /v1/promote HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{asked}",
            asked.len()
        );
        gone.write_all(head.as_bytes()).expect("it listens");
        let waits = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User lock'";
        wait_within(PATIENCE, "the promotion waits for the lock", || self.new.sql(waits).trim() != "0");
        drop(gone);
        let (code, refused) = ask(&body(json!({})));
        assert!(code == 409 && refused["error"].to_string().contains("is under way"), "{refused:#}");
        self.nodes[node].signal(Signal::TERM);
        self.nodes[node].wait_log("stopping: finishing what has arrived", PATIENCE);
        drop(lock);
        let status = self.nodes[node].wait_end(PATIENCE);
        assert!(status.success(), "{status}\n{}", self.nodes[node].log());
        let log = self.nodes[node].log();
        assert!(log.contains("it is the source of epoch") && !log.contains("cut off"), "{log}");
        assert_eq!(self.new.sql("SELECT @@global.read_only").trim(), "0");
        let (code, again) = self.nodes[(node + 1) % 3].told("/v1/promote", &body(json!({})));
        let notes = again["notes"].to_string();
        assert_eq!((code, &again["is_source_already"]), (200, &json!(true)), "{again:#}");
        assert!(notes.contains("make it a replica: "), "{again:#}");
        self.restart(node);
    }

    /// A node was away while another source was accepted, and that one has gone on to other files since. With the file of the epoch's
    /// place it has all that it needs to count; where that was purged it joins anew.
    fn a_node_comes_late(&mut self, node: usize) {
        self.new.sql("FLUSH BINARY LOGS");
        match self.new.kind() {
            ServerKind::MySql => {
                drop(self.new.sql("INSERT INTO ledger.entry VALUES (93000000, 'late'); FLUSH BINARY LOGS"))
            }
            ServerKind::MariaDb => {
                let logs = || self.new.sql("SHOW BINARY LOGS");
                let listed = logs();
                let live = listed.lines().last().and_then(|line| line.split('\t').next()).expect("a file");
                // A file that a replica still reads stays, and the server says nothing.
                wait_within(PATIENCE, "the older files are gone", || {
                    self.new.sql(&format!("PURGE BINARY LOGS TO '{live}'"));
                    logs().lines().count() == 1
                });
            }
        }
        self.restart(node);
        let counts = self.wait_counting(node);
        let has_joined = self.nodes[node].log().contains("this node joins the quorum anew");
        assert_eq!(
            has_joined,
            self.new.kind() == ServerKind::MariaDb,
            "{}\n{counts:#}",
            self.nodes[node].log()
        );
    }
}

/// A promoter is killed after each step, and another node goes on. Then the old source is made a replica as is said, and is the next one.
fn a_promoter_is_killed_after_each_step(name: &str) {
    let mut scene = Scene::start(name);
    let mut told = BTreeSet::new();
    let steps = [Killed::Fenced, Killed::Fed, Killed::HalfAccepted, Killed::Accepted, Killed::Opening];
    for (round, at) in steps.iter().copied().enumerate() {
        println!("round {round}: {at:?}");
        let id = 1000 + round as u64;
        scene.old.sql(&format!("INSERT INTO ledger.entry VALUES ({id}, 'told')"));
        told.insert(id);
        let is_last = round + 1 == steps.len();
        if is_last {
            scene.nodes[0].kill();
        }
        scene.kill_a_promoter(round % 3, at);
        // One hangs meanwhile: it is not waited for at each step.
        let hangs = matches!(at, Killed::Fed).then_some((round + 2) % 3);
        hangs.iter().for_each(|node| scene.nodes[*node].signal(Signal::STOP));
        let began = Instant::now();
        let said = scene.promotes((round + 1) % 3, &["--yes"]);
        println!("{said}promoted in {:?}, with {hangs:?} hung", began.elapsed());
        if let Some(node) = hangs {
            scene.nodes[node].signal(Signal::CONT);
            assert!(said.contains("of 3 can promise") && !said.contains("MySQL with semi-sync"), "{said}");
            assert!(began.elapsed() < PATIENCE, "it took too long");
        }
        scene.nothing_told_is_lost(&told);
        if is_last {
            scene.a_node_comes_late(0);
        }
        scene.the_new_one_is_acknowledged(2000 + round as u64);
        told.insert(2000 + round as u64);
        scene.make_the_old_one_a_replica(&said);
        std::mem::swap(&mut scene.old, &mut scene.new);
    }
    scene.a_tool_promotes(1);
    scene.nothing_told_is_lost(&told);
    scene.the_new_one_is_acknowledged(3000);
}

#[test]
fn a_promoter_is_killed_after_each_step_mysql() {
    a_promoter_is_killed_after_each_step("mysql-9.7");
}

#[test]
fn a_promoter_is_killed_after_each_step_mariadb() {
    a_promoter_is_killed_after_each_step("mariadb-11.8");
}
