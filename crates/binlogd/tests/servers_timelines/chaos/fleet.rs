//! Three binlogds, three servers, and clients: the machines, and what is done to them.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::clients::Clients;
use super::event::{NODES, OfNode, OfSource, SERVERS};
use crate::common::compare::copied_files;
use crate::common::ledger;
use crate::common::nodes::Nodes;
use crate::common::pair::{demote, replicate, wait_replicated};
use crate::common::readers::make_account;
use crate::common::semi_sync::SemiSync;
use crate::common::verbs::{binlogd, text};
use crate::common::volume::{Kind, Volume};
use crate::common::{Server, wait_within};
use codec::ServerKind;

pub(super) const PATIENCE: Duration = Duration::from_secs(90);
/// A new server applies everything from the beginning.
const CONVERGES_MAX: Duration = Duration::from_secs(240);
/// Longer than a test: a commit that nobody acknowledges hangs.
pub(super) const NEVER: Duration = Duration::from_secs(3_600);
/// What a node has for its copy: enough for an era.
const VOLUME_BYTES: u64 = 160 << 20;
/// Of the low byte of the flags in a file's first event, the bit that says that the file is in use; it is never sent.
const FLAGS_AT: usize = 4 + 17;
const IN_USE: u8 = 0x01;

/// The machines. Declared in the order in which they go: the daemons before their disks.
pub(super) struct Fleet {
    name: &'static str,
    pub(super) clients: Clients,
    pub(super) nodes: Nodes,
    volumes: Vec<Volume>,
    pub(super) servers: Vec<Server>,
    folder: tempfile::TempDir,
}

/// Options of a server. Whoever may become the source waits for acknowledgements as long as the source does.
fn options(name: &str, more: &[&str]) -> Vec<String> {
    let (log, role) = if name.starts_with("mysql") { ("replica", "source") } else { ("slave", "master") };
    let timeout = format!("--rpl-semi-sync-{role}-timeout={}", NEVER.as_millis());
    let options = ["--max-binlog-size=256K".to_owned(), format!("--log-{log}-updates=1"), timeout];
    options.into_iter().chain(more.iter().map(ToString::to_string)).collect()
}

fn start(name: &str) -> Server {
    let options = options(name, &[]);
    Server::start(name, &options.iter().map(String::as_str).collect::<Vec<_>>())
}

impl Fleet {
    /// `None`, which is said, where no disks can be mounted that fill.
    pub(super) fn start(name: &'static str) -> Option<Fleet> {
        let volumes: Vec<Volume> =
            (0..NODES).map_while(|_| Volume::mount(Kind::Tmpfs, VOLUME_BYTES)).collect();
        if volumes.len() < NODES {
            return None;
        }
        let servers: Vec<Server> = (0..SERVERS).map(|_| start(name)).collect();
        make_account(&servers[0]);
        ledger::create_table(&servers[0]);
        servers[0].sql("CREATE USER clerk@'%' IDENTIFIED BY 'secret'; GRANT INSERT ON ledger.* TO clerk@'%'");
        for replica in &servers[1..] {
            replicate(replica, &servers[0]);
            wait_replicated(replica, &servers[0]);
        }
        let data_dirs = volumes.iter().map(|volume| Some(volume.path().join("data"))).collect();
        let nodes = Nodes::start_in(&servers.iter().collect::<Vec<_>>(), data_dirs);
        SemiSync::enable(&servers[0], NEVER);
        (0..NODES).for_each(|node| drop(nodes.wait_counting(node)));
        let clients = Clients::start(&servers);
        let folder = tempfile::tempdir().expect("a folder");
        Some(Fleet { name, clients, nodes, volumes, servers, folder })
    }

    fn is_mysql(&self) -> bool {
        self.name.starts_with("mysql")
    }

    /// Every row of a server.
    #[track_caller]
    pub(super) fn rows(&self, server: usize) -> BTreeSet<u64> {
        let rows = self.servers[server].sql("SELECT id FROM ledger.entry");
        rows.lines().filter_map(|id| id.trim().parse().ok()).collect()
    }

    fn signal_server(&self, server: usize, signal: Signal) {
        let pid = self.servers[server].env("PID").parse().ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("a server of ours");
    }

    pub(super) fn harm_node(&mut self, node: usize, source: usize, harm: OfNode) {
        match harm {
            OfNode::Nothing => {}
            OfNode::Killed => self.nodes.daemon_mut(node).kill(),
            OfNode::Stopped => self.nodes.daemon(node).signal(Signal::STOP),
            OfNode::FullDisk => self.volumes[node].fill_but(0),
            OfNode::Cut { from_source, from_others, by } => {
                if from_source {
                    self.nodes.to_server(node, source).fault(by);
                }
                if from_others {
                    self.nodes.cut_off(node, by);
                }
            }
        }
    }

    pub(super) fn heal_node(&mut self, node: usize, harm: OfNode) {
        match harm {
            OfNode::Nothing | OfNode::Cut { .. } => {}
            OfNode::Killed => self.nodes.restart(node),
            OfNode::Stopped => self.nodes.daemon(node).signal(Signal::CONT),
            OfNode::FullDisk => self.volumes[node].make_space(),
        }
    }

    pub(super) fn harm_source(&self, source: usize, harm: OfSource) {
        match harm {
            OfSource::Nothing => {}
            OfSource::ReadOnly => demote(&self.servers[source]),
            OfSource::Killed => self.servers[source].kill(),
            OfSource::Stopped => self.signal_server(source, Signal::STOP),
            OfSource::CutOff(by) => {
                (0..NODES).for_each(|node| self.nodes.to_server(node, source).fault(by));
            }
        }
    }

    /// What was stopped goes on, and what was cut is whole.
    pub(super) fn heal_source(&self, source: usize, harm: OfSource) {
        if harm == OfSource::Stopped {
            self.signal_server(source, Signal::CONT);
        }
    }

    /// Starts a server that has ended, as a source that does not know what has happened.
    pub(super) fn comes_back(&mut self, server: usize) {
        let role = if self.is_mysql() { "source" } else { "master" };
        self.restart(server, &[&format!("--rpl-semi-sync-{role}-enabled=1")]);
    }

    /// Starts a server that has ended: nobody writes to it, and it replicates from nobody.
    pub(super) fn comes_back_closed(&mut self, server: usize) {
        let closed: &[&str] = if self.is_mysql() {
            // What a promotion has persisted is for a source.
            &["--persisted-globals-load=OFF", "--super-read-only=1", "--skip-replica-start"]
        } else {
            &["--read-only=1", "--skip-slave-start"]
        };
        self.restart(server, closed);
    }

    fn restart(&mut self, server: usize, more: &[&str]) {
        let options = options(self.name, more);
        self.servers[server].restart(&options.iter().map(String::as_str).collect::<Vec<_>>());
    }

    pub(super) fn stop_replication(&self, server: usize) {
        self.servers[server].sql(if self.is_mysql() { "STOP REPLICA" } else { "STOP ALL SLAVES" });
    }

    /// A new server takes the place of one, with everything that the source has.
    pub(super) fn rebuild(&mut self, server: usize, source: usize) {
        let fresh = start(self.name);
        replicate(&fresh, &self.servers[source]);
        self.nodes.replace(server, &fresh);
        self.clients.replace(server, &fresh);
        self.servers[server] = fresh;
    }

    /// The statements by which promote says that the old source becomes a replica.
    pub(super) fn becomes_replica(&self, server: usize, said: &str) {
        let statements = said
            .replacen("_USER = '…'", "_USER = 'root'", 1)
            .replacen("_PASSWORD = '…'", "_PASSWORD = ''", 1)
            // Of this machine's certificates none is signed.
            .replace("MASTER_USE_GTID", "MASTER_SSL_VERIFY_SERVER_CERT = 0, MASTER_USE_GTID");
        self.servers[server].sql(&statements);
    }

    /// A server that was a replica already gets another source.
    pub(super) fn replicates(&self, server: usize, source: usize) {
        let semi_sync = SemiSync::of(&self.servers[server]);
        semi_sync.set_enabled(false);
        replicate(&self.servers[server], &self.servers[source]);
    }

    fn arguments(&self, at: usize, to: usize, more: &[&str]) -> Vec<String> {
        let config = self.nodes.config(at, self.folder.path()).display().to_string();
        let node = self.nodes.served(at).to_string();
        let to = format!("mysql://root@127.0.0.1:{}", self.servers[to].port());
        let line = ["promote", "--config", &config, "--node", &node, "--to", &to, "--wait", "3"];
        line.iter().chain(more).map(ToString::to_string).collect()
    }

    pub(super) fn promote(&self, at: usize, to: usize, more: &[&str]) -> Output {
        binlogd(&self.arguments(at, to, more))
    }

    /// Begins to promote, is killed after so long, and returns what it said.
    pub(super) fn promote_for(&self, at: usize, to: usize, time: Duration) -> String {
        let mut child = Command::new(env!("CARGO_BIN_EXE_binlogd"))
            .args(self.arguments(at, to, &["--yes"]))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("binlogd runs");
        std::thread::sleep(time);
        let _ = child.kill();
        let output = child.wait_with_output().expect("a child of ours");
        text(&output.stdout) + &text(&output.stderr)
    }

    /// What a failed promotion names as the way on.
    pub(super) fn rescue(&self, at: usize, to: usize) -> Output {
        // As the page of rescue has it: read-only, and no replication meanwhile.
        self.stop_replication(to);
        if self.is_mysql() {
            self.servers[to].sql("SET GLOBAL super_read_only = 0; SET GLOBAL read_only = 1");
        }
        let data_dir = self.nodes.daemon(at).data_dir().display().to_string();
        let to = format!("mysql://root@127.0.0.1:{}", self.servers[to].port());
        binlogd(&["rescue", &data_dir, "--source", "default", "--to", &to, "--yes"])
    }

    /// As nodes call a server.
    pub(super) fn uuid(&self, server: usize) -> String {
        let server = &self.servers[server];
        match server.kind() {
            ServerKind::MySql => server.sql("SELECT @@server_uuid").trim().to_owned(),
            ServerKind::MariaDb => format!("mariadb-{}", server.sql("SELECT @@server_id").trim()),
        }
    }

    /// What each node has of the source's log is what the source has, byte for byte.
    #[track_caller]
    pub(super) fn assert_bytes_of(&self, source: usize) {
        for node in 0..NODES {
            let timeline = self.nodes.daemon(node).timeline_dir();
            for name in copied_files(&timeline) {
                let ours = std::fs::read(timeline.join(&name)).expect("a file of the copy");
                let theirs = self.servers[source].datadir().join(&name);
                let mut theirs = std::fs::read(theirs).expect("a file of the source");
                theirs.truncate(ours.len());
                assert!(without_flag(theirs) == without_flag(ours), "node {node}: {name} differs");
            }
        }
    }

    /// Ends all, and holds the copies against one another.
    #[track_caller]
    pub(super) fn end(&mut self) {
        self.clients.finish();
        let mut files: BTreeMap<(String, Vec<u8>), Vec<u8>> = BTreeMap::new();
        for node in 0..NODES {
            self.nodes.daemon_mut(node).terminate();
            let daemon = self.nodes.daemon(node);
            crate::common::verbs::verifies(&daemon.data_dir());
            for timeline in daemon.timeline_dirs() {
                for name in copied_files(&timeline) {
                    let bytes = without_flag(std::fs::read(timeline.join(&name)).expect("a file"));
                    // Server, time and name tell a file from others of its name.
                    let key = (name, bytes[..bytes.len().min(120)].to_vec());
                    match files.get_mut(&key) {
                        None => drop(files.insert(key, bytes)),
                        Some(known) => {
                            let common = known.len().min(bytes.len());
                            assert!(known[..common] == bytes[..common], "node {node}: {} differs", key.0);
                            if bytes.len() > known.len() {
                                *known = bytes;
                            }
                        }
                    }
                }
            }
        }
    }

    /// Each replica gets everything that the source has now.
    pub(super) fn wait_converged(&self, source: usize) {
        let count = |server: usize| -> u64 {
            let count = self.servers[server].sql("SELECT COUNT(*) FROM ledger.entry");
            count.trim().parse().expect("a number")
        };
        let wanted = count(source);
        for replica in (0..SERVERS).filter(|replica| *replica != source) {
            // One that has taken a place applies everything from the beginning, and its table comes with that.
            let has_table = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'ledger' AND table_name = 'entry'";
            let there = || self.servers[replica].sql(has_table).trim() == "1";
            wait_within(CONVERGES_MAX, "a replica has all that the source has", || {
                there() && count(replica) >= wanted
            });
        }
    }

    /// A client is told of a commit that began after `since`.
    #[track_caller]
    pub(super) fn wait_told(&self, source: usize, since: Instant) -> Duration {
        let mut first = None;
        wait_within(PATIENCE, "a client is told of a commit on the new source", || {
            let told = self.clients.told();
            first = told
                .iter()
                .filter(|told| told.server == source && told.began >= since)
                .map(|told| told.at)
                .min();
            first.is_some()
        });
        first.expect("it was waited for").saturating_duration_since(since)
    }

    pub(super) fn logs(&self) -> String {
        let log = |node| format!("--- the log of node {node} ---\n{}", self.nodes.daemon(node).log());
        (0..NODES).map(log).collect()
    }
}

impl Drop for Fleet {
    /// What stands on the disks of the nodes goes with them.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for server in &self.servers {
            let mut client = Command::new(server.env("MYSQL"));
            client.args(["--vertical", "--connect-timeout=3", "-e"]);
            client.arg(if self.is_mysql() { "SHOW REPLICA STATUS" } else { "SHOW SLAVE STATUS" });
            let said = client
                .stdin(Stdio::null())
                .output()
                .map_or_else(|error| error.to_string(), |output| text(&output.stdout));
            let told =
                |line: &&str| ["Error:", "Running:", "Gtid", "Port:"].iter().any(|word| line.contains(word));
            let lines: Vec<&str> = said.lines().filter(told).collect();
            println!("--- server at {} ---\n{}", server.port(), lines.join("\n"));
        }
        for volume in &self.volumes {
            let data_dir = volume.path().join("data");
            let memory = std::fs::read_to_string(data_dir.join("default/quorum.toml"));
            let forks = binlogd(&["forks".as_ref(), data_dir.as_os_str()]);
            println!("--- {} ---\n{memory:?}\n{}", data_dir.display(), text(&forks.stdout));
        }
    }
}

fn without_flag(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(flags) = bytes.get_mut(FLAGS_AT) {
        *flags &= !IN_USE;
    }
    bytes
}
