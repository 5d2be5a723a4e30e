//! A quorum of binlogds on this machine. Each reaches each server and each other node by a way of its own, which can be cut.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::common::Server;
use crate::common::daemon::{Daemon, Launch, temporary_folder};
use crate::common::proxy::{Direction, Ending, Fault, Proxy, address_of};
use crate::common::readers::serve_port;

const PATIENCE: Duration = Duration::from_secs(60);
const FLAGS: [&str; 8] =
    ["--heartbeat-period", "1s", "--net-read-timeout", "3s", "--backoff-max", "1s", "--serve", "127.0.0.1:0"];
/// From now on nothing passes, and what comes is closed at once.
pub const CUT: Fault = Fault::CutAfter { direction: Direction::ToSource, bytes: 0, ending: Ending::Reset };

/// The nodes, by number. They log in as the account of readers.
pub struct Nodes {
    nodes: Vec<Node>,
}

struct Node {
    daemon: Option<Daemon>,
    /// Where its data folder is, if that is to be kept apart.
    data_dir: Option<PathBuf>,
    /// Where it served last.
    served: SocketAddr,
    to_servers: Vec<Proxy>,
    /// To the other nodes, in their order.
    to_others: Vec<Proxy>,
}

/// An address that refuses connections, for now.
pub fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
}

impl Nodes {
    /// Starts `count` of them, all with empty disks. These servers are the hosts of their source.
    pub fn start(servers: &[&Server], count: usize) -> Nodes {
        Nodes::start_in(servers, vec![None; count])
    }

    /// As [`Nodes::start`]: one for each of these data folders. One without a folder gets a temporary one.
    pub fn start_in(servers: &[&Server], data_dirs: Vec<Option<PathBuf>>) -> Nodes {
        let mut nodes = Nodes::prepare(servers, data_dirs);
        (0..nodes.count()).for_each(|node| nodes.begin(node));
        nodes
    }

    /// The same, and none of them runs yet.
    pub fn prepare(servers: &[&Server], data_dirs: Vec<Option<PathBuf>>) -> Nodes {
        let count = data_dirs.len();
        let node = |data_dir| Node {
            daemon: None,
            data_dir,
            served: nobody(),
            to_servers: servers.iter().map(|server| Proxy::before(server)).collect(),
            to_others: (1..count).map(|_| Proxy::start(nobody())).collect(),
        };
        Nodes { nodes: data_dirs.into_iter().map(node).collect() }
    }

    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    fn hosts(&self, node: usize) -> Vec<String> {
        self.nodes[node].to_servers.iter().map(|way| way.address().to_string()).collect()
    }

    fn others(&self, node: usize) -> Vec<String> {
        self.nodes[node].to_others.iter().map(|way| way.address().to_string()).collect()
    }

    /// Of its command line.
    pub fn flags(&self, node: usize) -> Vec<String> {
        let quorum = ["--quorum".to_owned(), self.others(node).join(",")];
        FLAGS.iter().map(ToString::to_string).chain(quorum).collect()
    }

    /// Starts a node with an empty disk.
    pub fn begin(&mut self, node: usize) {
        let url = format!("mysql://repl:secret@{}", self.hosts(node).join(","));
        let flags = self.flags(node);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let daemon = match &self.nodes[node].data_dir {
            Some(data_dir) => {
                let _ = std::fs::remove_dir_all(data_dir);
                Daemon::start_in(data_dir, &url, &flags)
            }
            None => Daemon::start_on(&url, &flags),
        };
        self.nodes[node].daemon = Some(daemon);
        self.lead_to(node);
    }

    /// Starts a binlogd in the place of a node, with an empty disk, at an address that no other node knows, with the flags of a node or
    /// without a quorum. Gives the one that was there before.
    pub fn begin_apart(&mut self, node: usize, launch: Launch, is_node: bool) -> Option<Daemon> {
        let url = format!("mysql://repl:secret@{}", self.hosts(node).join(","));
        let flags = if is_node { self.flags(node) } else { FLAGS.map(str::to_owned).to_vec() };
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let folder = temporary_folder();
        let data_dir = folder.path().join("data");
        let daemon = Daemon::start_with(launch, folder, &data_dir, &url, &flags);
        self.nodes[node].daemon.replace(daemon)
    }

    /// One node is told where another one serves.
    pub fn lead(&self, from: usize, to: usize) {
        self.between(from, to).move_to(([127, 0, 0, 1], serve_port(self.daemon(to))).into());
    }

    /// Starts a node again on its disk.
    pub fn restart(&mut self, node: usize) {
        let flags = self.flags(node);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        self.daemon_mut(node).restart(&flags);
        self.lead_to(node);
    }

    /// Starts it again on its disk, with a configuration that has no quorum.
    pub fn restart_without_quorum(&mut self, node: usize) {
        self.daemon_mut(node).restart(&FLAGS);
    }

    /// The ways of the others lead to where it serves.
    fn lead_to(&mut self, node: usize) {
        let address = ([127, 0, 0, 1], serve_port(self.daemon(node))).into();
        self.nodes[node].served = address;
        for other in self.all_but(node) {
            self.between(other, node).move_to(address);
        }
    }

    /// The ways to one of the servers lead to another one, which has taken its place.
    pub fn replace(&self, number: usize, server: &Server) {
        for node in &self.nodes {
            node.to_servers[number].move_to(address_of(server));
            node.to_servers[number].cut(Ending::Reset);
        }
    }

    fn all_but(&self, node: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.nodes.len()).filter(move |other| *other != node)
    }

    /// From a node to another.
    fn between(&self, from: usize, to: usize) -> &Proxy {
        &self.nodes[from].to_others[if to < from { to } else { to - 1 }]
    }

    /// How a node calls another.
    pub fn name(&self, from: usize, to: usize) -> String {
        self.between(from, to).address().to_string()
    }

    /// From a node to one of the servers.
    pub fn to_server(&self, node: usize, server: usize) -> &Proxy {
        &self.nodes[node].to_servers[server]
    }

    /// Cuts a node off from the others, both ways, or ends that.
    pub fn cut_off(&self, node: usize, fault: Fault) {
        for other in self.all_but(node) {
            self.between(node, other).fault(fault);
            self.between(other, node).fault(fault);
        }
    }

    /// No way has a fault any more.
    pub fn heal(&self) {
        for node in &self.nodes {
            node.to_servers.iter().chain(&node.to_others).for_each(|way| way.fault(Fault::None));
        }
    }

    pub fn daemon(&self, node: usize) -> &Daemon {
        self.nodes[node].daemon.as_ref().expect("it was started")
    }

    pub fn daemon_mut(&mut self, node: usize) -> &mut Daemon {
        self.nodes[node].daemon.as_mut().expect("it was started")
    }

    /// Where a node serves, or has served last.
    pub fn served(&self, node: usize) -> SocketAddr {
        self.nodes[node].served
    }

    /// Waits until a node acknowledges.
    #[track_caller]
    pub fn wait_counting(&self, node: usize) -> Value {
        self.daemon(node).wait_until(
            |source| source["quorum"]["counts"] == true && source["semi_sync"]["active"] == true,
            PATIENCE,
        )
    }

    /// A node's configuration as its operator has it, below `folder`.
    pub fn config(&self, node: usize, folder: &Path) -> PathBuf {
        let path = folder.join(format!("node{node}.toml"));
        let text = format!(
            "data_dir = {:?}\n[serve]\nlisten = '{}'\n[[source]]\nname = 'default'\nuser = 'repl'\npassword = 'secret'\n\
             hosts = {:?}\nquorum = {:?}\n",
            self.daemon(node).data_dir(),
            self.served(node),
            self.hosts(node),
            self.others(node)
        );
        std::fs::write(&path, text).expect("a file");
        path
    }
}
