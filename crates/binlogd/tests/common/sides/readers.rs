//! Readers of binlogd: replicas that are pointed at it, and the address at which it serves.

use crate::common::Server;
use crate::common::daemon::Daemon;
use crate::common::skip::skip_what_cannot_be_fetched;
use crate::common::wait_within;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// The flags with which a daemon serves on a port of its own.
pub const SERVE: [&str; 2] = ["--serve", "127.0.0.1:0"];

/// How long a replica may take for what it is asked.
const REPLICA_MAX: Duration = Duration::from_secs(120);

/// How a replica says where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By GTID.
    Gtid,
    /// By file and position.
    Position,
}

/// Makes the account by which binlogd and readers read.
pub fn make_account(source: &Server) {
    source.sql("CREATE USER 'repl'@'%' IDENTIFIED BY 'secret'; GRANT REPLICATION SLAVE ON *.* TO 'repl'@'%'");
}

/// The URL by which that account reaches the source.
pub fn account_url(source: &Server) -> String {
    format!("mysql://repl:secret@127.0.0.1:{}", source.port())
}

/// The port at which the daemon serves readers.
#[track_caller]
pub fn serve_port(daemon: &Daemon) -> u16 {
    let address = daemon.status()["serve"]["address"].as_str().expect("it serves").to_owned();
    address.rsplit(':').next().unwrap().parse().expect("a port")
}

fn is_mariadb(server: &Server) -> bool {
    server.env("SERVER_KIND") == "mariadb"
}

/// Whether the server knows SOURCE and REPLICA.
fn knows_replica(server: &Server) -> bool {
    !is_mariadb(server) && !["mysql-5.7.22", "mysql-8.0.15"].contains(&server.name())
}

/// Points `replica` at a port of this machine; by position from that file and position on.
pub fn attach(replica: &Server, port: u16, by: By, (file, position): (&str, u64)) {
    let place = match (by, is_mariadb(replica), knows_replica(replica)) {
        (By::Gtid, true, _) => ", MASTER_USE_GTID = slave_pos".to_owned(),
        (By::Position, true, _) => {
            format!(", MASTER_USE_GTID = no, MASTER_LOG_FILE = '{file}', MASTER_LOG_POS = {position}")
        }
        (By::Gtid, _, false) => ", MASTER_AUTO_POSITION = 1".to_owned(),
        (By::Position, _, false) => {
            format!(", MASTER_AUTO_POSITION = 0, MASTER_LOG_FILE = '{file}', MASTER_LOG_POS = {position}")
        }
        (By::Gtid, _, true) => ", SOURCE_AUTO_POSITION = 1".to_owned(),
        (By::Position, _, true) => {
            format!(", SOURCE_AUTO_POSITION = 0, SOURCE_LOG_FILE = '{file}', SOURCE_LOG_POS = {position}")
        }
    };
    let tls = if is_mariadb(replica) && replica.name() != "mariadb-10.11" {
        ", MASTER_SSL = 0, MASTER_SSL_VERIFY_SERVER_CERT = 0"
    } else {
        ""
    };
    replica.sql(&if knows_replica(replica) {
        format!(
            "STOP REPLICA; CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, SOURCE_USER = 'repl', \
             SOURCE_PASSWORD = 'secret', SOURCE_SSL = 0, SOURCE_CONNECT_RETRY = 1, SOURCE_HEARTBEAT_PERIOD = 1{place}; START REPLICA"
        )
    } else {
        format!(
            "STOP SLAVE; CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'repl', \
             MASTER_PASSWORD = 'secret', MASTER_CONNECT_RETRY = 1, MASTER_HEARTBEAT_PERIOD = 1{place}{tls}; START SLAVE"
        )
    });
}

/// The columns of SHOW REPLICA STATUS, in the words of the server.
pub fn replica_status(replica: &Server) -> Vec<(String, String)> {
    let statement = if knows_replica(replica) { "SHOW REPLICA STATUS" } else { "SHOW SLAVE STATUS" };
    let mut command = Command::new(replica.env("MYSQL"));
    command.args(["--batch", "--vertical", "-e", statement]).stdin(Stdio::null());
    let output = command.output().expect("the client runs");
    assert!(output.status.success(), "{statement}: {}", String::from_utf8_lossy(&output.stderr));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    shown
        .lines()
        .filter_map(|line| line.split_once(": ").or_else(|| line.strip_suffix(':').map(|name| (name, ""))))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

/// File and position up to which the replica has executed its source's log.
pub fn executed(replica: &Server) -> (String, u64) {
    let status = replica_status(replica);
    let file = column(&status, ["Relay_Source_Log_File", "Relay_Master_Log_File"]);
    let position = column(&status, ["Exec_Source_Log_Pos", "Exec_Master_Log_Pos"]);
    (file, position.parse().expect("a position"))
}

fn column(status: &[(String, String)], names: [&str; 2]) -> String {
    let found = status.iter().find(|(name, _)| names.contains(&name.as_str()));
    found.map(|(_, value)| value.clone()).unwrap_or_else(|| panic!("no {names:?} in {status:?}"))
}

/// Waits until the replica has executed the source's log to its end, which is looked up each time: MariaDB writes a
/// checkpoint into a new file when nobody expects it.
#[track_caller]
pub fn wait_applied(replica: &Server, end: impl Fn() -> (String, u64), daemon: &Daemon) {
    let deadline = std::time::Instant::now() + REPLICA_MAX;
    loop {
        let (file, position) = end();
        let at = executed(replica);
        let last = replica_status(replica);
        if at == (file.clone(), position) {
            return;
        }
        let io_error = column(&last, ["Last_IO_Error", "Last_IO_Error"]);
        let sql_error = column(&last, ["Last_SQL_Error", "Last_SQL_Error"]);
        assert!(
            sql_error.is_empty() && std::time::Instant::now() < deadline,
            "{} does not come to {file}:{position}, it is at {at:?}: {io_error} {sql_error}\n{last:#?}\nbinlogd:\n{}",
            replica.name(),
            daemon.log()
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Waits until the replica's receiver has stopped with an error, which is returned.
#[track_caller]
pub fn wait_io_error(replica: &Server) -> String {
    let mut error = String::new();
    wait_within(REPLICA_MAX, "the replica's receiver has stopped with an error", || {
        error = column(&replica_status(replica), ["Last_IO_Error", "Last_IO_Error"]);
        !error.is_empty()
    });
    error
}

/// Check sums of all tables of a database, by name.
pub fn checksums(server: &Server, database: &str) -> String {
    let tables = server.sql(&format!(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = '{database}' AND table_type = 'BASE TABLE' ORDER BY 1"
    ));
    let tables: Vec<String> = tables.lines().map(|table| format!("{database}.{table}")).collect();
    assert!(!tables.is_empty(), "no tables in {database}");
    server.sql(&format!("CHECKSUM TABLE {} EXTENDED", tables.join(", ")))
}

/// Runs a client program of this server's against a port of this machine, as the account of readers.
pub fn client(server: &Server, program: &str, port: u16, arguments: &[&str]) -> Output {
    client_command(server, program, port, arguments).output().expect("the client runs")
}

/// As [`client`], to be started.
pub fn client_command(server: &Server, program: &str, port: u16, arguments: &[&str]) -> Command {
    let mut command = Command::new(server.env(program));
    command
        .args(["--host=127.0.0.1", &format!("--port={port}"), "--user=repl", "--password=secret"])
        .args(arguments);
    if is_mariadb(server) {
        // Its clients insist on TLS, which this daemon has none of.
        command.arg("--skip-ssl");
    }
    command.stdin(Stdio::null());
    command
}

/// The log reader of that name below tests/clients, which is fetched and built first; `None`, and said, where it cannot be had.
pub fn foreign_reader(name: &str) -> Option<PathBuf> {
    let output = crate::common::script().args(["client", name]).output().expect("scripts/servers runs");
    if !output.status.success() {
        skip_what_cannot_be_fetched(&format!(
            "the log reader in {name}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
        return None;
    }
    Some(String::from_utf8(output.stdout).expect("a path").trim().into())
}
