//! A source that loses what clients were told of: put back to an earlier state of its disk, beside a copy that has all.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::common::Server;
use crate::common::daemon::{Daemon, url};

pub const PATIENCE: Duration = Duration::from_secs(60);
pub const FLAGS: [&str; 6] = ["--heartbeat-period", "1s", "--net-read-timeout", "3s", "--backoff-max", "1s"];
/// Longer than a test.
pub const TIMEOUT_MS: u32 = 600_000;

pub fn binlogd(arguments: &[&str], data_dir: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    command.args(arguments).arg(data_dir).args(more);
    command.env_remove("BINLOGD_PASSWORD").stdin(Stdio::null()).output().expect("binlogd runs")
}

/// Exit code, and what was printed.
pub fn told(output: &Output) -> (Option<i32>, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

pub fn forks(daemon: &Daemon, flags: &[&str]) -> (Option<i32>, String) {
    told(&binlogd(&["forks"], &daemon.data_dir(), flags))
}

pub fn rescue(daemon: &Daemon, server: &Server) -> (Option<i32>, String) {
    told(&binlogd(&["rescue", "--to", &url(server), "--yes"], &daemon.data_dir(), &[]))
}

pub fn http(daemon: &Daemon, path: &str) -> String {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let url = format!("http://{}{path}", daemon.admin_address());
    agent.get(url).call().unwrap().body_mut().read_to_string().unwrap()
}

pub fn copy_folder(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs");
    assert!(done.success());
}

/// Options by which a server waits for acknowledgements from its start on.
pub fn semi_sync_options(name: &str) -> [String; 2] {
    let role = if name.starts_with("mysql") { "source" } else { "master" };
    [format!("--rpl-semi-sync-{role}-enabled=1"), format!("--rpl-semi-sync-{role}-timeout={TIMEOUT_MS}")]
}

/// A source with a copy, and a state of its disk from before the rows 1, 2 and 3, each a transaction.
pub struct Scene {
    pub server: Server,
    pub daemon: Daemon,
}

impl Scene {
    pub fn new(name: &str, flags: &[&str]) -> Scene {
        let server = Server::start(name, &[]);
        server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(200)); INSERT INTO d.t VALUES (0, 'kept')");
        let daemon = Daemon::start(&server, &[&FLAGS[..], flags].concat());
        let mut scene = Scene { server, daemon };
        scene.daemon.wait_caught_up(&scene.server);
        scene.write_what_is_lost(1, &[]);
        scene
    }

    /// A state of the disk is kept, and then three rows are written from number `first` on.
    pub fn write_what_is_lost(&mut self, first: u32, options: &[&str]) {
        self.server.stop();
        copy_folder(self.server.datadir(), &self.earlier());
        self.server.restart(options);
        self.daemon.wait_until(|source| source["state"] == "receiving", PATIENCE);
        for id in first..first + 3 {
            self.server.sql(&format!("INSERT INTO d.t VALUES ({id}, 'told to clients {id}')"));
        }
        self.daemon.wait_caught_up(&self.server);
    }

    pub fn earlier(&self) -> std::path::PathBuf {
        self.server.dir().join("earlier")
    }

    /// The server is put back, and started with these options.
    pub fn put_back(&mut self, options: &[&str]) {
        self.server.kill();
        copy_folder(&self.earlier(), self.server.datadir());
        self.server.restart(options);
    }

    pub fn rows(&self) -> String {
        self.server
            .sql("SELECT GROUP_CONCAT(CONCAT(id, '=', v) ORDER BY id SEPARATOR '; ') FROM d.t")
            .trim()
            .to_owned()
    }
}
