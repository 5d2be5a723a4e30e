//! A source, and the binlogds that are attached to it.

use super::args::QuorumArgs;
use super::relay::Relays;
use crate::backlog::USER;
use crate::daemon::Daemon;
use anyhow::{Context, ensure};
use codec::ServerKind;
use rig::process::pause;
use rig::server::{Server, Session};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Of the account of the receivers.
const PASSWORD: &str = "bench";

/// Longest wait for the source.
const PATIENCE: Duration = Duration::from_secs(30);

/// One commit.
pub(super) const INSERT: &str = "INSERT INTO bench.t (v) VALUES (REPEAT('x', 200))";

/// Commits before anything is measured.
const FIRST_COMMITS: usize = 50;

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// For nobody: semi-sync is off.
    Nobody,
    One,
    /// For the quickest of three, without a quorum: what three binlogds on one machine cost, and no second copy is waited for.
    QuickestOfThree,
    Quorum,
    /// One node is stopped with SIGSTOP.
    QuorumOneHung,
    /// `ack_after_replicas = 1`.
    Chain,
    /// Two of three, counted by MySQL.
    CountTwo,
}

impl Way {
    pub(super) const ALL: [Way; 7] = [
        Way::Nobody,
        Way::One,
        Way::QuickestOfThree,
        Way::Quorum,
        Way::QuorumOneHung,
        Way::CountTwo,
        Way::Chain,
    ];

    /// MariaDB cannot wait for more than one replica.
    pub(super) fn can_be_had_of(self, kind: ServerKind) -> bool {
        self != Way::CountTwo || kind == ServerKind::MySql
    }

    fn binlogds(self) -> usize {
        match self {
            Way::Nobody => 0,
            Way::One => 1,
            Way::Chain => 2,
            Way::QuickestOfThree | Way::Quorum | Way::QuorumOneHung | Way::CountTwo => 3,
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Nobody => "nobody attached",
            Way::One => "one binlogd",
            Way::QuickestOfThree => "the quickest of three, no quorum",
            Way::Quorum => "quorum of three",
            Way::QuorumOneHung => "quorum of three, one hung",
            Way::Chain => "ack_after_replicas = 1",
            Way::CountTwo => "MySQL's count of 2, three binlogds",
        })
    }
}

/// A source with a table and an account for receivers.
pub(super) struct Scene {
    // Before its folder, so that it ends first.
    source: Server,
    kind: ServerKind,
    _dir: TempDir,
    binlogd: PathBuf,
    nodes_dir: PathBuf,
}

impl Scene {
    pub(super) fn make(args: &QuorumArgs) -> anyhow::Result<Scene> {
        let common = &args.common;
        let parent = args.source_dir.as_ref().unwrap_or(&common.dir);
        let dir = tempfile::Builder::new().prefix("binlogd-bench-").tempdir_in(parent)?;
        let options = ["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"].map(str::to_owned);
        let path = dir.path().canonicalize()?.join("source");
        let source = Server::start(&args.servers_script, &args.server, path, None, &options)?;
        let mut session = source.session()?;
        let kind = session.server_kind();
        session.run(&[
            "CREATE DATABASE bench",
            "CREATE TABLE bench.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(255))",
        ])?;
        session.query(&format!("CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'"))?;
        session.query(&format!("GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {USER}@'%'"))?;
        let (binlogd, nodes_dir) = (common.binlogd.clone(), common.dir.clone());
        Ok(Scene { source, kind, _dir: dir, binlogd, nodes_dir })
    }

    pub(super) fn kind(&self) -> ServerKind {
        self.kind
    }

    pub(super) fn session(&self) -> anyhow::Result<Session> {
        let mut session = self.source.session()?;
        session.set_timeout(PATIENCE);
        Ok(session)
    }

    /// Name of a variable or counter of semi-sync at this source.
    fn semi_sync(&self, name: &str) -> String {
        match self.kind {
            ServerKind::MySql => format!("rpl_semi_sync_source_{name}"),
            ServerKind::MariaDb => format!("rpl_semi_sync_master_{name}"),
        }
    }

    fn counter(&self, name: &str) -> anyhow::Result<u64> {
        let rows = self.session()?.query(&format!("SHOW GLOBAL STATUS LIKE '{}'", self.semi_sync(name)))?;
        rows.get(0, "Value").and_then(|value| value.parse().ok()).with_context(|| format!("no {name}"))
    }

    /// Starts the binlogds, and waits until commits wait for them.
    pub(super) fn attach(&self, way: Way, relays: &Relays) -> anyhow::Result<Attached<'_>> {
        let mut session = self.session()?;
        let set = |name: &str, value: u32| format!("SET GLOBAL {} = {value}", self.semi_sync(name));
        session.query(&set("enabled", 0))?;
        // Each begins with the live file, which is short then.
        session.query("FLUSH BINARY LOGS")?;
        let dir = tempfile::Builder::new().prefix("binlogd-bench-").tempdir_in(&self.nodes_dir)?;
        let ports: Vec<u16> = free_ports(way.binlogds())?;
        let mut nodes = Vec::new();
        for node in 0..ports.len() {
            let path = dir.path().canonicalize()?.join(format!("node{node}"));
            std::fs::create_dir(&path)?;
            let text = self.configuration(way, node, &ports, relays)?;
            nodes.push(Daemon::start(&self.binlogd, &path, &path.join("data"), &text, &[])?);
            if way == Way::Chain && node == 0 {
                nodes[0].wait("it receives", |status| status["sources"][0]["state"] == "receiving")?;
            }
        }
        if way == Way::Nobody {
            return Ok(Attached { scene: self, way, nodes, without: 0, _dir: dir });
        }
        session.query(&set("timeout", 3_600_000))?;
        if self.kind == ServerKind::MySql {
            session.query(&set("wait_for_replica_count", if way == Way::CountTwo { 2 } else { 1 }))?;
        }
        session.query(&set("enabled", 1))?;
        let attached = Attached { scene: self, way, nodes, without: self.counter("no_tx")?, _dir: dir };
        attached.wait()?;
        Ok(attached)
    }

    fn configuration(&self, way: Way, node: usize, ports: &[u16], relays: &Relays) -> anyhow::Result<String> {
        let upstream = if way == Way::Chain && node == 1 { ports[0] } else { self.source.port() };
        let mut text = format!(
            "[serve]\nlisten = \"127.0.0.1:{}\"\n[[source]]\nname = \"bench\"\nhosts = [\"127.0.0.1:{}\"]\nuser = \"{USER}\"\n\
             password = \"{PASSWORD}\"\ntls = \"disabled\"\nfsync_mode = 1\nstart = \"latest\"\n",
            ports[node],
            relays.way_to(upstream)?,
        );
        match way {
            Way::Chain if node == 0 => text += "ack_after_replicas = 1\n",
            Way::Quorum | Way::QuorumOneHung => {
                let others = (0..ports.len()).filter(|other| *other != node);
                let others = others
                    .map(|other| relays.way_to(ports[other]).map(|port| format!("\"127.0.0.1:{port}\"")));
                text += &format!("quorum = [{}]\n", others.collect::<Result<Vec<_>, _>>()?.join(", "));
            }
            _ => {}
        }
        Ok(text)
    }
}

/// The binlogds of one measurement.
pub(super) struct Attached<'a> {
    scene: &'a Scene,
    way: Way,
    // Before their folder, so that they end first.
    nodes: Vec<Daemon>,
    /// Commits without an acknowledgement, before the first.
    without: u64,
    _dir: TempDir,
}

impl Attached<'_> {
    /// Until everything is in force that is to be measured.
    fn wait(&self) -> anyhow::Result<()> {
        for node in &self.nodes {
            node.wait("it acknowledges", |status| {
                let source = &status["sources"][0];
                let counts = !source["quorum"].is_object() || source["quorum"]["counts"] == true;
                source["state"] == "receiving" && source["semi_sync"]["active"] == true && counts
            })?;
        }
        let wanted = if self.way == Way::Chain { 1 } else { self.nodes.len() as u64 };
        let deadline = Instant::now() + PATIENCE;
        while self.scene.counter("clients")? != wanted {
            ensure!(Instant::now() < deadline, "the source has not {wanted} semi-sync replicas");
            std::thread::sleep(Duration::from_millis(20));
        }
        // MySQL notices a new replica's acknowledgements with those of one that it knows, else once a second.
        let mut session = self.scene.session()?;
        for _ in 0..FIRST_COMMITS {
            session.query(INSERT)?;
        }
        if self.way == Way::QuorumOneHung {
            pause(pid(&self.nodes[2])?)?;
        }
        Ok(())
    }

    /// Ends them, and looks whether each commit was acknowledged.
    pub(super) fn end(self) -> anyhow::Result<()> {
        if self.way == Way::Nobody {
            return Ok(());
        }
        let without = self.scene.counter("no_tx")? - self.without;
        ensure!(without == 0, "{without} commits went without an acknowledgement");
        if self.way == Way::QuorumOneHung {
            kill_process(pid(&self.nodes[2])?, Signal::CONT)?;
        }
        self.nodes.into_iter().try_for_each(Daemon::end)?;
        // The source notices that they are gone by its next event.
        let mut session = self.scene.session()?;
        session.query(&format!("SET GLOBAL {} = 0", self.scene.semi_sync("enabled")))?;
        session.query("FLUSH BINARY LOGS")?;
        Ok(())
    }
}

fn pid(node: &Daemon) -> anyhow::Result<Pid> {
    Pid::from_raw(i32::try_from(node.pid())?).context("a process has a number")
}

/// So many ports that nobody listens at now.
fn free_ports(count: usize) -> anyhow::Result<Vec<u16>> {
    let listeners: Result<Vec<TcpListener>, _> =
        (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect();
    listeners?.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}
