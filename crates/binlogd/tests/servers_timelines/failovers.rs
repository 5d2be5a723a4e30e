//! What fails over by itself: clients behind HAProxy, three nodes with a watcher beside each (packaging/failover), and a source that is
//! killed under load. `make failovers` for many rounds.

use std::collections::BTreeSet;
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::daemon::Daemon;
use crate::common::ledger;
use crate::common::pair::{replicate, wait_replicated};
use crate::common::proxy::{Fault, Proxy, address_of};
use crate::common::readers::{make_account, serve_port};
use crate::common::semi_sync::SemiSync;
use crate::common::skip::skip;
use crate::common::{Server, connect_options, wait_within, workspace};
use rustix::process::{Pid, Signal, kill_process};
use wire::{ConnectOptions, Connection, TlsMode};

const PATIENCE: Duration = Duration::from_secs(90);
/// Longer than a test: a commit that nobody acknowledges hangs.
const NEVER: Duration = Duration::from_secs(600);
const DEAD_AFTER: Duration = Duration::from_secs(2);
const FLAGS: [&str; 8] =
    ["--heartbeat-period", "1s", "--net-read-timeout", "3s", "--backoff-max", "1s", "--serve", "127.0.0.1:0"];
const COMMITS: usize = 100;
const CLIENTS: usize = 4;
/// Pause of a client after each statement, whatever came of it.
const PAUSE: Duration = Duration::from_millis(2);
/// No commit for so long: nothing is acknowledged.
const QUIET: Duration = Duration::from_secs(1);

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A commit that a client was told of.
#[derive(Debug, Clone, Copy)]
struct Told {
    id: u64,
    at: Instant,
    /// When its connection began.
    opened: Instant,
}

#[derive(Default)]
struct Shared {
    next: AtomicU64,
    told: Mutex<Vec<Told>>,
    rest: AtomicBool,
    stop: AtomicBool,
}

/// Clients that write to whichever server they are led to.
struct Clients(Arc<Shared>);

impl Clients {
    fn start(at: &ConnectOptions) -> Clients {
        let shared = Arc::new(Shared { next: AtomicU64::new(1), ..Shared::default() });
        for _ in 0..CLIENTS {
            let (shared, at) = (shared.clone(), at.clone());
            std::thread::spawn(move || shared.write(&at));
        }
        Clients(shared)
    }

    fn told(&self) -> Vec<Told> {
        self.0.told.lock().expect("no client panics").clone()
    }

    /// They write nothing meanwhile: a new replica that applies everything from the beginning would not come up beside them.
    fn rest_while(&self, work: impl FnOnce()) {
        self.0.rest.store(true, Ordering::SeqCst);
        work();
        self.0.rest.store(false, Ordering::SeqCst);
    }

    /// Waits for so many commits more.
    #[track_caller]
    fn wait_for(&self, more: usize) {
        let before = self.told().len();
        wait_within(PATIENCE, "commits go on", || self.told().len() >= before + more);
    }

    /// The first commit by a connection that began after `since`.
    #[track_caller]
    fn first_after(&self, since: Instant, said: &dyn Fn() -> String) -> Told {
        let until = since + PATIENCE;
        loop {
            if let Some(told) = self.told().into_iter().find(|told| told.opened > since) {
                return told;
            }
            assert!(Instant::now() < until, "no commit since {:?}\n{}", since.elapsed(), said());
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::SeqCst);
    }
}

impl Shared {
    fn write(&self, at: &ConnectOptions) {
        let mut present: Option<(Instant, Connection)> = None;
        while !self.stop.load(Ordering::SeqCst) {
            if self.rest.load(Ordering::SeqCst) {
                std::thread::sleep(PAUSE);
                continue;
            }
            let id = self.next.fetch_add(1, Ordering::SeqCst);
            let opened = Instant::now();
            let (opened, mut connection) = match present.take() {
                Some(present) => present,
                None => match Connection::connect(at) {
                    Ok(connection) => (opened, connection),
                    Err(_) => {
                        std::thread::sleep(PAUSE);
                        continue;
                    }
                },
            };
            connection.set_timeout(NEVER);
            // Whoever is sent away, as by a read-only server, comes again.
            if connection.query(&format!("INSERT INTO ledger.entry VALUES ({id}, '')")).is_ok() {
                self.told.lock().expect("no client panics").push(Told { id, at: Instant::now(), opened });
                present = Some((opened, connection));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

struct Scene {
    /// Before each server, for everybody but the nodes: the address stays, though the server is another one after each round.
    hosts: [Proxy; 2],
    /// The same for each node by itself.
    seen: Vec<[Proxy; 2]>,
    /// Before each node.
    fronts: Vec<Proxy>,
    nodes: Vec<Daemon>,
    servers: [Server; 2],
    source: usize,
    watchers: Vec<Running>,
    haproxy: Option<Running>,
    folder: tempfile::TempDir,
    clients: ConnectOptions,
}

fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
}

fn server(name: &str) -> Server {
    let options: &[&str] = if name.starts_with("mysql") { &[] } else { &["--log-slave-updates=1"] };
    let server = Server::start(name, options);
    SemiSync::of(&server).set_timeout(NEVER);
    server
}

impl Scene {
    fn start(name: &str, haproxy: &Path) -> Scene {
        let servers = [server(name), server(name)];
        make_account(&servers[0]);
        ledger::create_table(&servers[0]);
        servers[0].sql("CREATE USER clerk@'%' IDENTIFIED BY 'secret'; GRANT INSERT ON ledger.* TO clerk@'%'");
        replicate(&servers[1], &servers[0]);
        wait_replicated(&servers[1], &servers[0]);
        let before = || [Proxy::before(&servers[0]), Proxy::before(&servers[1])];
        let mut clients = connect_options(&servers[0], "clerk", "secret", TlsMode::Preferred);
        clients.port = nobody().port();
        let mut scene = Scene {
            hosts: before(),
            seen: (0..3).map(|_| before()).collect(),
            fronts: (0..3).map(|_| Proxy::start(nobody())).collect(),
            nodes: Vec::new(),
            servers,
            source: 0,
            watchers: Vec::new(),
            haproxy: None,
            folder: tempfile::tempdir().expect("a folder"),
            clients,
        };
        for node in 0..3 {
            let url = format!(
                "mysql://repl:secret@{},{}",
                scene.seen[node][0].address(),
                scene.seen[node][1].address()
            );
            let others = scene.others(node).join(",");
            let flags: Vec<&str> = FLAGS.into_iter().chain(["--quorum", &others]).collect();
            let daemon = Daemon::start_on(&url, &flags);
            scene.fronts[node].move_to(([127, 0, 0, 1], serve_port(&daemon)).into());
            scene.nodes.push(daemon);
        }
        SemiSync::enable(&scene.servers[0], NEVER);
        scene.wait_counting();
        scene.start_haproxy(haproxy);
        scene.watchers = (0..3).map(|node| scene.watcher(node)).collect();
        scene
    }

    fn others(&self, node: usize) -> Vec<String> {
        let others = self.fronts.iter().enumerate().filter(|(other, _)| *other != node);
        others.map(|(_, front)| front.address().to_string()).collect()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start_haproxy(&mut self, program: &Path) {
        let (socket, config) = (self.path("admin.sock"), self.path("haproxy.cfg"));
        let text = format!(
            "global\n  stats socket {} mode 600 level admin\n\
             defaults\n  mode tcp\n  timeout connect 1s\n  timeout client 1h\n  timeout server 1h\n\
             listen clients\n  bind 127.0.0.1:{}\n  server source {}\n",
            socket.display(),
            self.clients.port,
            self.hosts[0].address()
        );
        std::fs::write(&config, text).expect("a file");
        let haproxy = Command::new(program).arg("-f").arg(&config).stdin(Stdio::null()).spawn();
        self.haproxy = Some(Running(haproxy.expect("HAProxy runs")));
        wait_within(PATIENCE, "HAProxy listens", || socket.exists());
    }

    fn watcher(&self, node: usize) -> Running {
        let packaged = |name: &str| workspace().join("packaging/failover").join(name);
        let hosts: Vec<String> = self.seen[node].iter().map(|seen| seen.address().to_string()).collect();
        let config = self.path(&format!("node{node}.toml"));
        let text = format!(
            "data_dir = {:?}\n[serve]\nlisten = '127.0.0.1:0'\n[[source]]\nname = 'default'\nuser = 'repl'\npassword = 'secret'\n\
             hosts = {hosts:?}\nquorum = {:?}\n",
            self.nodes[node].data_dir(),
            self.others(node)
        );
        std::fs::write(&config, text).expect("a file");
        let mut watcher = Command::new("python3");
        watcher.arg(packaged("binlogd-failover")).args(["--binlogd", env!("CARGO_BIN_EXE_binlogd")]);
        for node in &self.nodes {
            watcher.args(["--node", &format!("http://{}", node.admin_address())]);
        }
        for host in &self.hosts {
            watcher.args(["--to", &format!("mysql://root@{}", host.address())]);
        }
        let (switch, socket) = (packaged("haproxy-switch"), self.path("admin.sock"));
        let hook = format!("python3 {} {} clients/source", switch.display(), socket.display());
        let log = File::create(self.path(&format!("watcher{node}.log"))).expect("a file");
        watcher
            .args(["--dead-after", &DEAD_AFTER.as_secs().to_string(), "--", "--hook", &hook, "--config"])
            .arg(config)
            .args(["--node", &self.fronts[node].address().to_string()])
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log);
        Running(watcher.spawn().expect("python3 runs"))
    }

    /// What the watchers said.
    fn said(&self) -> String {
        let read =
            |node| std::fs::read_to_string(self.path(&format!("watcher{node}.log"))).unwrap_or_default();
        let said: String = (0..3).map(|node| format!("--- watcher {node}\n{}", read(node))).collect();
        format!("{said}\n{}", self.nodes[0].log())
    }

    fn wait_counting(&self) {
        for node in &self.nodes {
            let counts = |source: &serde_json::Value| {
                source["quorum"]["counts"] == true && source["semi_sync"]["active"] == true
            };
            node.wait_until(counts, PATIENCE);
        }
    }

    fn epochs(&self) -> Vec<u64> {
        let epoch = |node: &Daemon| node.asked("/v1/quorum").1["quorum"]["epoch"].as_u64().expect("an epoch");
        self.nodes.iter().map(epoch).collect()
    }

    fn gone(&self, node: usize) -> Duration {
        let gone = self.nodes[node].asked("/v1/quorum").1["source_gone_seconds"].as_f64();
        Duration::from_secs_f64(gone.unwrap_or(0.0))
    }

    /// One node does not reach the source, and then all reach it slowly: nobody fails over.
    fn only_cut_off_and_slow(&self, clients: &Clients) {
        let before = self.epochs();
        let one = &self.seen[0][self.source];
        one.fault(Fault::Blackout);
        wait_within(PATIENCE, "one node misses the source", || self.gone(0) > 2 * DEAD_AFTER);
        clients.wait_for(COMMITS);
        one.fault(Fault::None);
        self.wait_counting();
        let all = |fault| self.seen.iter().for_each(|seen| seen[self.source].fault(fault));
        all(Fault::Latency(Duration::from_millis(400)));
        let since = Instant::now();
        while since.elapsed() < 2 * DEAD_AFTER {
            clients.wait_for(1);
        }
        all(Fault::None);
        assert_eq!(self.epochs(), before, "{}", self.said());
        self.wait_counting();
    }

    /// The source is killed. Gives the time from then to the first commit of a client.
    fn round(&mut self, clients: &Clients) -> Duration {
        clients.wait_for(COMMITS);
        let (old, new) = (self.source, 1 - self.source);
        let pid = self.servers[old].env("PID").parse().ok().and_then(Pid::from_raw).expect("a process");
        let killed = Instant::now();
        kill_process(pid, Signal::KILL).expect("it runs");
        self.source = new;
        let first = clients.first_after(killed, &|| self.said());
        let told: BTreeSet<u64> = clients.told().iter().map(|told| told.id).collect();
        let rows = self.servers[new].sql("SELECT id FROM ledger.entry");
        let has: BTreeSet<u64> = rows.lines().filter_map(|id| id.trim().parse().ok()).collect();
        let lost: Vec<_> = told.difference(&has).collect();
        assert!(
            lost.is_empty(),
            "LOST, told to clients and not on the new source: {lost:?}\n{}",
            self.said()
        );
        let counters = SemiSync::of(&self.servers[new]).counters();
        assert_eq!((counters.on, counters.no_tx), (true, 0), "{counters:?}");
        self.the_old_one_comes_back(old, clients);
        first.at - killed
    }

    /// It can be written to, and nobody is told of a commit there. Then another server stands in its place.
    fn the_old_one_comes_back(&mut self, old: usize, clients: &Clients) {
        let name = self.servers[old].name().to_owned();
        let role = if name.starts_with("mysql") { "source" } else { "master" };
        let options = [
            format!("--loose-rpl-semi-sync-{role}-enabled=1"),
            format!("--loose-rpl-semi-sync-{role}-timeout={}", NEVER.as_millis()),
        ];
        self.servers[old].restart(&options.each_ref().map(String::as_str));
        let back = &self.servers[old];
        self.hosts[old].move_to(address_of(back));
        self.seen.iter().for_each(|seen| seen[old].move_to(address_of(back)));
        assert!(SemiSync::of(back).counters().on, "it waits for acknowledgements");
        let mut client = Connection::connect(&connect_options(back, "clerk", "secret", TlsMode::Preferred))
            .expect("a connection");
        client.set_timeout(QUIET);
        let told = client.query("INSERT INTO ledger.entry VALUES (2000000000, 'old')");
        assert!(told.is_err(), "two sources: the old one was acknowledged\n{}", self.said());
        drop(client);
        self.servers[old] = server(&name);
        let (fresh, source) = (&self.servers[old], &self.servers[self.source]);
        self.hosts[old].move_to(address_of(fresh));
        self.seen.iter().for_each(|seen| seen[old].move_to(address_of(fresh)));
        clients.rest_while(|| {
            replicate(fresh, source);
            wait_replicated(fresh, source);
        });
        self.wait_counting();
    }
}

/// Of `make failovers`.
fn rounds() -> Option<usize> {
    std::env::var("BINLOGD_FAILOVER_ROUNDS").ok().map(|text| text.parse().expect("a number"))
}

fn fails_over_by_itself(name: &str) {
    let haproxy = match rig::object_store::program(&workspace().join("scripts/stores"), "haproxy") {
        Ok(haproxy) => haproxy,
        Err(error) => return skip(&format!("HAProxy cannot be had: {error}")),
    };
    let mut scene = Scene::start(name, &haproxy);
    let clients = Clients::start(&scene.clients);
    scene.only_cut_off_and_slow(&clients);
    let rounds = rounds().unwrap_or(1);
    let mut took: Vec<Duration> = Vec::new();
    for round in 1..=rounds {
        let before = scene.epochs();
        took.push(scene.round(&clients));
        let epochs = scene.epochs();
        println!(
            "{name}: round {round}: the first commit after {:?}, epoch {}",
            took[took.len() - 1],
            epochs[0]
        );
        assert!(
            epochs[0] > before[0] && epochs == [epochs[0]; 3],
            "{epochs:?} after {before:?}\n{}",
            scene.said()
        );
    }
    took.sort_unstable();
    println!(
        "{name}: {rounds} kills, {} commits told: p50 {:?}, max {:?}",
        clients.told().len(),
        took[took.len() / 2],
        took[took.len() - 1]
    );
}

#[test]
fn by_itself_mysql() {
    fails_over_by_itself("mysql-9.7");
}

#[test]
fn by_itself_mariadb() {
    fails_over_by_itself("mariadb-11.8");
}
