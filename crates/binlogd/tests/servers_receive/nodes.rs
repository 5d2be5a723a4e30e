//! A quorum of binlogds: each acknowledges what a majority of them has, whichever of them is not there, and however it is away.
//!
//! Each commit is timed. `make node-away` makes `BINLOGD_COMMITS` of them in each case, and prints what docs/measured shows.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::common::compare::{binary_logs, copied_files};
use crate::common::injection::Injection;
use crate::common::nodes::{CUT, Nodes};
use crate::common::proxy::Fault;
use crate::common::semi_sync::SemiSync;
use crate::common::volume::{Kind, Volume};
use crate::common::{Server, connect_options, strace, wait_within};
use crate::quorum::source;
use wire::{Connection, TlsMode};

const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than a test: a commit that nobody acknowledges hangs.
const NEVER: Duration = Duration::from_secs(600);
const VOLUME_BYTES: u64 = 256 << 20;
/// What each durable write takes more on a slow disk.
const SLOW: Duration = Duration::from_millis(50);

/// A source, and the nodes that receive from it.
struct Scene<'a> {
    server: &'a Server,
    nodes: Nodes,
}

impl Scene<'_> {
    /// Semi-sync goes from now on, and all count.
    fn start(server: &Server, nodes: Nodes) -> Scene<'_> {
        SemiSync::enable(server, NEVER);
        let scene = Scene { server, nodes };
        scene.wait_all();
        println!("\n| commits, ms | p50 | p99 | longest |\n|---|---|---|---|");
        scene
    }

    fn wait_all(&self) {
        (0..self.nodes.count()).for_each(|node| drop(self.nodes.wait_counting(node)));
    }

    /// Commits return although the source would wait for ever.
    fn commits(&self, case: &str) {
        let count: usize =
            std::env::var("BINLOGD_COMMITS").map_or(5, |count| count.parse().expect("a number"));
        let mut connection =
            Connection::connect(&connect_options(self.server, "root", "", TlsMode::Disabled))
                .expect("a client");
        connection.set_timeout(PATIENCE);
        let commit = |_| {
            let began = Instant::now();
            connection
                .query("INSERT INTO d.t (v) VALUES (1)")
                .unwrap_or_else(|error| panic!("{case}: a commit waits: {error}\n{}", self.logs()));
            began.elapsed()
        };
        let mut times: Vec<Duration> = (0..count).map(commit).collect();
        times.sort_unstable();
        let of = |share: usize| times[(count - 1) * share / 100].as_secs_f64() * 1e3;
        println!("| {case} | {:.2} | {:.2} | {:.2} |", of(50), of(99), of(100));
    }

    fn logs(&self) -> String {
        (0..self.nodes.count()).map(|node| self.nodes.daemon(node).log()).collect()
    }

    /// A commit waits until `then` is done; `node` says so, and for which others.
    fn waits_until(&self, node: usize, absent: &[usize], then: impl FnOnce()) {
        std::thread::scope(|scope| {
            let client = scope.spawn(|| self.server.sql("INSERT INTO d.t (v) VALUES (2)"));
            let names: Vec<String> = absent.iter().map(|absent| self.nodes.name(node, *absent)).collect();
            let daemon = self.nodes.daemon(node);
            daemon.wait_until(|source| source["ack_replicas"]["waiting"] == true, PATIENCE);
            let said = daemon.wait_until(
                |source| {
                    let said = source["verdict"].to_string();
                    said.contains("Commits wait: ") && names.iter().all(|name| said.contains(name.as_str()))
                },
                PATIENCE,
            );
            assert_eq!(said["verdict"]["level"], "critical", "{said:#}");
            assert!(!client.is_finished());
            then();
            client.join().expect("it commits");
        });
    }

    /// Everything that can happen to one of three, and to two.
    fn goes_on_without_one(&mut self, volumes: &[Volume]) {
        self.commits("all there");
        let quorum = self.nodes.wait_counting(0)["quorum"].clone();
        assert!(
            quorum["standing"] == "counting" && quorum["others"][0]["standing"] == "counting",
            "{quorum:#}"
        );
        let first = self.nodes.daemon(0);
        first.wait_until(|source| source["quorum"]["others"][1]["behind_bytes"] == 0, PATIENCE);
        // An older binlogd, which would acknowledge alone, refuses the folder.
        let replica = first.data_dir().join("default/replica.toml");
        assert!(std::fs::read_to_string(replica).expect("it is there").contains("\nformat = 2\n"));
        // Stopped in good order, killed, hung.
        self.nodes.daemon_mut(0).terminate();
        self.commits("stopped");
        self.nodes.restart(0);
        self.nodes.wait_counting(0);
        self.nodes.daemon_mut(1).kill();
        self.commits("killed");
        self.nodes.restart(1);
        self.nodes.wait_counting(1);
        self.nodes.daemon(2).signal(Signal::STOP);
        self.commits("hung (SIGSTOP)");
        // A second one hangs: nothing is acknowledged that one alone has.
        self.nodes.daemon(1).signal(Signal::STOP);
        self.waits_until(0, &[1, 2], || self.nodes.daemon(1).signal(Signal::CONT));
        self.nodes.daemon(2).signal(Signal::CONT);
        self.wait_all();

        // Cut off from the source, from the others, from both.
        self.nodes.to_server(0, 0).fault(CUT);
        self.commits("cut off from the source");
        self.nodes.cut_off(0, CUT);
        self.commits("cut off from both");
        self.nodes.to_server(0, 0).fault(Fault::None);
        self.nodes.daemon(0).wait_until(|source| source["state"] == "receiving", PATIENCE);
        self.commits("cut off from the others");
        // The one that is cut off from the others, and has everything, does not count for them.
        self.nodes.daemon(1).signal(Signal::STOP);
        self.waits_until(2, &[0, 1], || self.nodes.cut_off(0, Fault::None));
        self.nodes.daemon(1).signal(Signal::CONT);
        self.wait_all();
        self.goes_on_with_a_bad_disk(volumes);
    }

    /// Of one node the disk is slow or does not answer; then of two.
    fn goes_on_with_a_bad_disk(&self, volumes: &[Volume]) {
        if let Some(strace) = strace::find() {
            let daemon = self.nodes.daemon(1);
            let journal = daemon.data_dir().join("default/journal");
            let slow = Injection::slow_down(&strace, daemon, "pwritev", &journal, SLOW);
            self.commits("a disk of 50 ms");
            slow.heal();
        }
        let [_, second, third] = volumes else { return };
        let frozen = third.freeze();
        self.commits("a frozen file system");
        let second = second.freeze();
        self.waits_until(0, &[1, 2], || drop(second));
        drop(frozen);
        self.wait_all();
    }

    /// Nobody went without an acknowledgement, and each has the source's bytes.
    fn ends(&self) {
        let counters = SemiSync::of(self.server).counters();
        assert_eq!((counters.on, counters.no_tx), (true, 0), "{counters:?}");
        for node in 0..self.nodes.count() {
            let daemon = self.nodes.daemon(node);
            daemon.wait_caught_up(self.server);
            let copied = || copied_files(&daemon.timeline_dir()) == binary_logs(self.server);
            wait_within(PATIENCE, "the copy is the source's log", copied);
        }
    }
}

fn one_of_three_may_be_away(name: &str) {
    let server = source(name);
    let mounted = || Volume::mount(Kind::Ext4, VOLUME_BYTES);
    let volumes: Vec<Volume> = (0..3).map_while(|_| mounted()).collect();
    let data_dirs = (0..3).map(|node| volumes.get(node).map(|volume| volume.path().join("data"))).collect();
    let mut scene = Scene::start(&server, Nodes::start_in(&[&server], data_dirs));
    scene.goes_on_without_one(&volumes);

    // Another file, and a disk that is lost: the node joins anew, and counts in a later epoch.
    server.sql("FLUSH BINARY LOGS");
    scene.commits("all there again");
    let before = scene.nodes.wait_counting(1)["quorum"]["epoch"].as_u64();
    scene.nodes.daemon_mut(2).kill();
    scene.nodes.begin(2);
    let joined = scene.nodes.wait_counting(2)["quorum"]["epoch"].as_u64();
    assert!(joined > before, "{joined:?} after {before:?}");
    scene.wait_all();
    scene.nodes.daemon(0).signal(Signal::STOP);
    scene.commits("hung, beside one that has joined");
    scene.nodes.daemon(0).signal(Signal::CONT);
    scene.ends();
}

#[test]
fn one_of_three_may_be_away_mysql() {
    one_of_three_may_be_away("mysql-9.7");
}

#[test]
fn one_of_three_may_be_away_mariadb() {
    one_of_three_may_be_away("mariadb-11.8");
}

/// Five bear the loss of any two, and of three they wait.
#[test]
fn two_of_five_may_be_away() {
    let server = source("mariadb-11.8");
    let mut scene = Scene::start(&server, Nodes::start(&[&server], 5));
    scene.commits("none of five");
    scene.nodes.daemon_mut(0).kill();
    scene.commits("killed, of five");
    scene.nodes.daemon(4).signal(Signal::STOP);
    scene.commits("killed and hung, of five");
    // From the source alone would not do: another node would bring it what it lacks.
    scene.nodes.cut_off(2, CUT);
    scene.waits_until(1, &[0, 2, 4], || scene.nodes.cut_off(2, Fault::None));
    scene.nodes.daemon(4).signal(Signal::CONT);
    scene.nodes.restart(0);
    scene.wait_all();
    scene.ends();
}
