//! A quorum of three binlogds: each acknowledges what two of them have, whichever of them is not there.

use std::net::SocketAddr;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::Server;
use crate::common::compare::{binary_logs, copied_files};
use crate::common::daemon::Daemon;
use crate::common::proxy::{Direction, Ending, Fault, Proxy};
use crate::common::readers::serve_port;
use crate::common::semi_sync::SemiSync;
use crate::common::wait_within;
use crate::quorum::{nobody, source};

const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than a test: a commit that nobody acknowledges hangs.
const NEVER: Duration = Duration::from_secs(600);
const FLAGS: [&str; 8] =
    ["--heartbeat-period", "1s", "--net-read-timeout", "3s", "--backoff-max", "1s", "--serve", "127.0.0.1:0"];
/// From now on nothing passes, and what comes is closed at once.
const CUT: Fault = Fault::CutAfter { direction: Direction::ToSource, bytes: 0, ending: Ending::Reset };

/// A node, and the ways that it has.
struct Node {
    daemon: Option<Daemon>,
    to_source: Proxy,
    /// To the other nodes, in their order.
    to_others: Vec<Proxy>,
}

struct Nodes<'a> {
    server: &'a Server,
    nodes: Vec<Node>,
}

impl Nodes<'_> {
    fn start(server: &Server, count: usize) -> Nodes<'_> {
        let node = |_| Node {
            daemon: None,
            to_source: Proxy::before(server),
            to_others: (1..count).map(|_| Proxy::start(nobody())).collect(),
        };
        let nodes = (0..count).map(node).collect();
        let mut nodes = Nodes { server, nodes };
        for node in 0..count {
            nodes.begin(node);
        }
        nodes
    }

    fn flags(&self, node: usize) -> Vec<String> {
        let others: Vec<String> =
            self.nodes[node].to_others.iter().map(|way| way.address().to_string()).collect();
        FLAGS.iter().map(ToString::to_string).chain(["--quorum".to_owned(), others.join(",")]).collect()
    }

    /// Starts a node with an empty disk.
    fn begin(&mut self, node: usize) {
        let url = format!("mysql://repl:secret@{}", self.nodes[node].to_source.address());
        let flags = self.flags(node);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        self.nodes[node].daemon = Some(Daemon::start_on(&url, &flags));
        self.lead_to(node);
    }

    fn restart(&mut self, node: usize) {
        let flags = self.flags(node);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        self.daemon_mut(node).restart(&flags);
        self.lead_to(node);
    }

    /// The ways of the others lead to where it serves.
    fn lead_to(&self, node: usize) {
        let address: SocketAddr = ([127, 0, 0, 1], serve_port(self.daemon(node))).into();
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            self.way(other, node).move_to(address);
        }
    }

    /// From a node to another.
    fn way(&self, from: usize, to: usize) -> &Proxy {
        &self.nodes[from].to_others[if to < from { to } else { to - 1 }]
    }

    /// Cuts a node off from the others, both ways, or ends that.
    fn cut_off(&self, node: usize, fault: Fault) {
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            self.way(node, other).fault(fault);
            self.way(other, node).fault(fault);
        }
    }

    fn daemon(&self, node: usize) -> &Daemon {
        self.nodes[node].daemon.as_ref().expect("it was started")
    }

    fn daemon_mut(&mut self, node: usize) -> &mut Daemon {
        self.nodes[node].daemon.as_mut().expect("it was started")
    }

    /// Waits until so many nodes have confirmed to this one that acknowledgements go.
    fn wait_counting(&self, node: usize) -> Value {
        self.daemon(node).wait_until(
            |source| source["quorum"]["counts"] == true && source["semi_sync"]["active"] == true,
            PATIENCE,
        )
    }

    /// A commit returns although the source would wait for ever.
    fn commits(&self) {
        self.server.sql("INSERT INTO d.t (v) VALUES (1); INSERT INTO d.t (v) VALUES (2)");
    }

    /// A commit waits until `then` is done, and `node` says so.
    fn waits_until(&self, node: usize, then: impl FnOnce()) {
        std::thread::scope(|scope| {
            let client = scope.spawn(|| self.commits());
            self.daemon(node).wait_until(|source| source["ack_replicas"]["waiting"] == true, PATIENCE);
            assert!(!client.is_finished());
            then();
            client.join().expect("it commits");
        });
    }
}

/// Everything that can happen to one of three, and to two.
fn one_of_three_may_be_away(name: &str) {
    let server = source(name);
    let mut nodes = Nodes::start(&server, 3);
    let semi_sync = SemiSync::enable(&server, NEVER);
    (0..3).for_each(|node| drop(nodes.wait_counting(node)));
    nodes.commits();
    let quorum = nodes.wait_counting(0)["quorum"].clone();
    assert!(quorum["standing"] == "counting" && quorum["others"][0]["standing"] == "counting", "{quorum:#}");
    nodes.daemon(0).wait_until(|source| source["quorum"]["others"][1]["behind_bytes"] == 0, PATIENCE);
    // An older binlogd, which would acknowledge alone, refuses the folder.
    let replica = nodes.daemon(0).data_dir().join("default/replica.toml");
    assert!(std::fs::read_to_string(replica).expect("it is there").contains("\nformat = 2\n"));

    // Stopped in good order, killed, hung.
    nodes.daemon_mut(0).terminate();
    nodes.commits();
    nodes.restart(0);
    nodes.wait_counting(0);
    nodes.daemon_mut(1).kill();
    nodes.commits();
    nodes.restart(1);
    nodes.wait_counting(1);
    nodes.daemon(2).signal(Signal::STOP);
    nodes.commits();
    // A second one hangs: nothing is acknowledged that one alone has.
    nodes.daemon(1).signal(Signal::STOP);
    nodes.waits_until(0, || nodes.daemon(1).signal(Signal::CONT));
    nodes.daemon(2).signal(Signal::CONT);
    (0..3).for_each(|node| drop(nodes.wait_counting(node)));

    // Cut off from the source, from the others, from both.
    nodes.nodes[0].to_source.fault(CUT);
    nodes.commits();
    nodes.cut_off(0, CUT);
    nodes.commits();
    nodes.nodes[0].to_source.fault(Fault::None);
    nodes.commits();
    nodes.daemon(0).wait_until(|source| source["state"] == "receiving", PATIENCE);
    // The one that is cut off from the others, and has everything, does not count for them.
    nodes.daemon(1).signal(Signal::STOP);
    nodes.waits_until(2, || nodes.cut_off(0, Fault::None));
    nodes.daemon(1).signal(Signal::CONT);
    (0..3).for_each(|node| drop(nodes.wait_counting(node)));

    // Another file, and a disk that is lost: the node joins anew, and counts in a later epoch.
    server.sql("FLUSH BINARY LOGS");
    nodes.commits();
    let before = nodes.wait_counting(1)["quorum"]["epoch"].as_u64();
    nodes.daemon_mut(2).kill();
    nodes.begin(2);
    let joined = nodes.wait_counting(2)["quorum"]["epoch"].as_u64();
    assert!(joined > before, "{joined:?} after {before:?}");
    nodes.wait_counting(0);
    nodes.wait_counting(1);
    nodes.daemon(0).signal(Signal::STOP);
    nodes.commits();
    nodes.daemon(0).signal(Signal::CONT);

    // Nobody went without an acknowledgement, and each has the source's bytes.
    let counters = semi_sync.counters();
    assert_eq!(counters.no_tx, 0, "{counters:?}");
    for node in 0..3 {
        nodes.daemon(node).wait_caught_up(&server);
        let copied = || copied_files(&nodes.daemon(node).timeline_dir()) == binary_logs(&server);
        wait_within(PATIENCE, "the copy is the source's log", copied);
    }
}

#[test]
fn one_of_three_may_be_away_mysql() {
    one_of_three_may_be_away("mysql-9.7");
}

#[test]
fn one_of_three_may_be_away_mariadb() {
    one_of_three_may_be_away("mariadb-11.8");
}
