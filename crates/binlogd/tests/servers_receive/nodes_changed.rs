//! Three binlogds become a quorum, its nodes are restarted one by one, and another machine takes the place of one: under load, and
//! no commit goes without an acknowledgement.
//!
//! `BINLOGD_BEFORE` names a program of an older version, with which the three begin.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::Server;
use crate::common::daemon::Launch;
use crate::common::ledger::{Ledger, copied_entries, create_table};
use crate::common::nodes::Nodes;
use crate::common::semi_sync::SemiSync;
use crate::common::verbs::{binlogd, text};
use crate::quorum::source;

const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than a test: a commit that nobody acknowledges hangs.
const NEVER: Duration = Duration::from_secs(600);

/// The older program, or the one that is tested.
fn before() -> String {
    std::env::var("BINLOGD_BEFORE").unwrap_or_else(|_| env!("CARGO_BIN_EXE_binlogd").to_owned())
}

/// `name` leads to a program from now on.
fn install(program: &str, name: &Path) {
    let _ = std::fs::remove_file(name);
    symlink(program, name).expect("a link");
}

/// Nodes, and clients that commit all the time.
struct Scene<'a> {
    server: &'a Server,
    nodes: Nodes,
    ledger: Ledger,
}

impl Scene<'_> {
    fn commits_go_on(&self) {
        self.ledger.wait_progress(&self.ledger.committed());
        self.ledger.wait_progress(&self.ledger.committed());
    }

    fn all_count(&self) {
        for node in 0..3 {
            self.nodes.wait_counting(node);
            let all_count = |other: &Value| other["counts"] == true;
            self.nodes.daemon(node).wait_until(
                |source| {
                    source["quorum"]["others"].as_array().is_some_and(|others| others.iter().all(all_count))
                },
                PATIENCE,
            );
        }
    }

    /// One after the other.
    fn restarts(&mut self) {
        for node in 0..3 {
            self.nodes.daemon_mut(node).terminate();
            self.commits_go_on();
            self.nodes.restart(node);
            self.all_count();
        }
    }

    /// The third machine dies, and another one takes its place, at an address that the others learn one by one.
    fn another_machine(&mut self) {
        let nodes = &mut self.nodes;
        nodes.daemon_mut(2).kill();
        let mut replaced = nodes.begin_apart(2, Launch::default(), true).expect("it was started");
        self.nodes.wait_counting(2);
        for other in 0..2 {
            self.nodes.daemon_mut(other).terminate();
            self.commits_go_on();
            self.nodes.lead(other, 2);
            self.nodes.restart(other);
            self.nodes.wait_counting(other);
        }
        self.all_count();

        // The machine that was replaced comes back with its disk. It knows the others, and confirms and acknowledges nothing.
        let flags = self.nodes.flags(2);
        replaced.restart(&flags.iter().map(String::as_str).collect::<Vec<_>>());
        let is_blank = |source: &Value| {
            source["quorum"]["standing"] == "blank" && source["semi_sync"]["active"] == false
        };
        replaced.wait_until(|source| source["state"] == "receiving" && is_blank(source), PATIENCE);
        replaced.wait_log("another machine has taken the place of this one", PATIENCE);
        replaced.wait_log("all nodes of the quorum are there", PATIENCE);
        assert!(is_blank(&replaced.source()));
        [1, 2].iter().for_each(|node| self.nodes.daemon(*node).signal(Signal::STOP));
        std::thread::scope(|scope| {
            let client = scope.spawn(|| self.server.sql("INSERT INTO d.t (v) VALUES (2)"));
            let waits = |source: &Value| source["verdict"].to_string().contains("Commits wait: ");
            self.nodes.daemon(0).wait_until(waits, PATIENCE);
            assert!(!client.is_finished());
            [1, 2].iter().for_each(|node| self.nodes.daemon(*node).signal(Signal::CONT));
            client.join().expect("it commits");
        });
        self.all_count();
    }
}

/// Two machines burn down. The one that is left goes on without them when that was said, and not before.
fn a_majority_is_lost(server: &Server, nodes: &mut Nodes) {
    [1, 2].iter().for_each(|node| nodes.daemon_mut(*node).kill());
    let data_dir = nodes.daemon(0).data_dir().display().to_string();
    let leave = |more: &[&str]| {
        let line: Vec<&str> = ["leave-quorum", &data_dir].into_iter().chain(more.iter().copied()).collect();
        let output = binlogd(&line);
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let (code, said) = leave(&["--accept-loss"]);
    assert!(code == Some(1) && said.contains("stop it first"), "{said}");
    nodes.daemon_mut(0).terminate();
    nodes.restart_without_quorum(0);
    let refuses = |source: &Value| {
        source["state"] == "stopped" && source["last_error"].to_string().contains("binlogd leave-quorum")
    };
    nodes.daemon(0).wait_until(refuses, PATIENCE);
    nodes.daemon_mut(0).terminate();
    let (code, said) = leave(&[]);
    assert!(
        code == Some(1) && said.contains("a node of 3") && said.contains("nothing was changed"),
        "{said}"
    );
    let (code, said) = leave(&["--accept-loss"]);
    assert!(code == Some(0) && said.contains("never start again"), "{said}");
    nodes.restart_without_quorum(0);
    server.sql("INSERT INTO d.t (v) VALUES (3)");
    nodes.daemon(0).wait_caught_up(server);
}

fn changes_under_load(name: &str) {
    let server = source(name);
    create_table(&server);
    let folder = tempfile::tempdir().expect("a folder");
    let programs: Vec<_> = (0..3).map(|node| folder.path().join(format!("binlogd{node}"))).collect();
    let mut nodes = Nodes::prepare(&[&server], vec![None; 3]);
    for (node, program) in programs.iter().enumerate() {
        install(&before(), program);
        nodes.begin_apart(node, Launch { program: program.clone(), ..Launch::default() }, false);
    }
    let semi_sync = SemiSync::enable(&server, NEVER);
    semi_sync.wait_until(|counters| counters.clients == 3);
    let ledger = Ledger::start(&server, 2);
    let mut scene = Scene { server: &server, nodes, ledger };
    scene.commits_go_on();

    // Each becomes a node. Those that are none yet acknowledge until the last one is stopped.
    for (node, program) in programs.iter().enumerate() {
        scene.nodes.daemon_mut(node).terminate();
        if node < 2 {
            scene.commits_go_on();
        }
        install(env!("CARGO_BIN_EXE_binlogd"), program);
        scene.nodes.restart(node);
        if node < 2 {
            scene.commits_go_on();
        }
    }
    scene.all_count();
    scene.commits_go_on();

    scene.restarts();
    scene.another_machine();

    let counters = semi_sync.counters();
    assert_eq!(counters.no_tx, 0, "{counters:?}");
    let committed = scene.ledger.finish();
    for node in 0..3 {
        let daemon = scene.nodes.daemon(node);
        daemon.wait_caught_up(&server);
        copied_entries(&daemon.timeline_dir()).assert_holds(&committed, daemon, "in the end");
    }
    let mut nodes = scene.nodes;
    a_majority_is_lost(&server, &mut nodes);
}

#[test]
fn changes_under_load_mysql() {
    changes_under_load("mysql-9.7");
}

#[test]
fn changes_under_load_mariadb() {
    changes_under_load("mariadb-11.8");
}
