//! `binlogd doctor` against real servers.

use crate::common::Server;
use std::process::Command;

/// A run of the doctor: exit code, standard output, standard error.
struct Visit {
    code: i32,
    out: String,
    errors: String,
}

impl Visit {
    fn new(arguments: &[&str]) -> Visit {
        let output = Command::new(env!("CARGO_BIN_EXE_binlogd"))
            .arg("doctor")
            .args(arguments)
            .env("BINLOGD_PASSWORD", PASSWORD)
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let visit = Visit {
            code: output.status.code().unwrap(),
            out: text(output.stdout),
            errors: text(output.stderr),
        };
        assert!(
            !visit.out.contains(PASSWORD) && !visit.errors.contains(PASSWORD),
            "{}{}",
            visit.out,
            visit.errors
        );
        visit
    }

    fn of(server: &Server, arguments: &[&str]) -> Visit {
        let folder = server.dir().display().to_string();
        let url = format!("mysql://repl@127.0.0.1:{}", server.port());
        // How full the disk of the machine is, is no matter of these tests.
        Visit::new(&[&["--source", &url, "--data-dir", &folder, "--disk-warn", "off"], arguments].concat())
    }

    /// The line that begins with these words, after its level.
    #[track_caller]
    fn line(&self, level: &str, begins: &str) -> &str {
        let found = self.out.lines().find(|line| {
            line.trim_start().strip_prefix(level).is_some_and(|rest| rest.trim_start().starts_with(begins))
        });
        found.unwrap_or_else(|| {
            panic!("no line {level:?} {begins:?} in exit {}\n{}{}", self.code, self.out, self.errors)
        })
    }

    /// A statement that stands on a line of its own.
    #[track_caller]
    fn statement(&self, sql: &str) {
        assert!(self.out.lines().any(|line| line.trim() == sql), "no line {sql:?}\n{}", self.out);
    }
}

const PASSWORD: &str = "not-to-be-shown";

fn with_account(server: &Server) {
    server.sql(&format!("CREATE USER repl@'%' IDENTIFIED BY '{PASSWORD}'"));
}

fn grant(server: &Server) {
    server.sql("GRANT REPLICATION SLAVE ON *.* TO repl@'%'");
}

/// What holds for every server.
fn check_privilege_and_identity(server: &Server) {
    with_account(server);
    let visit = Visit::of(server, &[]);
    assert_eq!(visit.code, 1, "{}", visit.out);
    visit.line("error", "privileges of 'repl'@'%': REPLICATION SLAVE is missing");
    visit.statement("GRANT REPLICATION SLAVE ON *.* TO 'repl'@'%';");
    grant(server);
    let visit = Visit::of(server, &[]);
    assert_eq!((visit.code, visit.errors.as_str()), (0, ""), "{}", visit.out);
    for what in
        ["connected to 127.0.0.1:", "version ", "authentication: ", "log_bin: ON", "binlog_format: ROW"]
    {
        visit.line("ok", what);
    }
    visit.line("ok", "server_id of binlogd: none yet");
    let own = server.sql("SELECT @@server_id").trim().to_owned();
    let visit = Visit::of(server, &["--server-id", &own]);
    assert_eq!(visit.code, 1);
    assert!(visit.line("error", &format!("server_id of binlogd: {own}")).contains("the source's own"));
}

/// The statements that the doctor suggests must be ones that the server accepts.
fn run_suggestions(server: &Server, visit: &Visit) {
    for line in visit.out.lines().filter(|line| line.starts_with("             ") && !line.contains('<')) {
        server.sql(line.trim());
    }
}

fn check_without_binlog(server: &mut Server) {
    server.stop();
    server.restart(&["--skip-log-bin"]);
    let visit = Visit::of(server, &[]);
    assert_eq!(visit.code, 1, "{}", visit.out);
    visit.line("error", "log_bin: OFF");
    assert!(!visit.out.contains("binlog_format"));
}

#[test]
fn mysql_9_7() {
    let mut server = Server::start("mysql-9.7", &["--plugin-load-add=semisync_source.so"]);
    check_privilege_and_identity(&server);
    server.sql("SET GLOBAL rpl_semi_sync_source_timeout = 5000");
    let visit = Visit::of(&server, &[]);
    visit.line("ok", "TLS: TLSv1.3");
    visit.line("ok", "gtid_mode: ON");
    visit.line("warning", "semi-sync: rpl_semi_sync_source_enabled is OFF");
    let timeout = visit.line("warning", "semi-sync: rpl_semi_sync_source_timeout is 5 s");
    assert!(timeout.contains("stops waiting"));
    run_suggestions(&server, &visit);
    let visit = Visit::of(&server, &[]);
    // Nobody acknowledges here.
    visit.line(
        "warning",
        "semi-sync: rpl_semi_sync_source_enabled is ON, and no semi-sync replica is connected",
    );
    visit.line("ok", "semi-sync: rpl_semi_sync_source_timeout is 10 s");
    assert_eq!(visit.out.matches("warning").count(), 1, "{}", visit.out);

    server.sql("SET PERSIST rpl_semi_sync_source_enabled = OFF");
    server.sql("SET GLOBAL binlog_format = 'MIXED'; SET GLOBAL binlog_expire_logs_seconds = 60; SET GLOBAL sync_binlog = 0");
    let visit = Visit::of(&server, &["--semi-sync=false"]);
    visit.line("ok", "semi-sync: not wanted");
    visit.line("warning", "binlog_format: MIXED");
    visit.line("warning", "retention: binary logs are kept for 60 seconds");
    visit.line("warning", "sync_binlog: 0; innodb_flush_log_at_trx_commit: 1");
    run_suggestions(&server, &visit);
    assert!(!Visit::of(&server, &["--semi-sync=false"]).out.contains("warning"));

    server.sql("CREATE ROLE receivers; GRANT REPLICATION SLAVE ON *.* TO receivers; REVOKE REPLICATION SLAVE ON *.* FROM repl@'%'; GRANT receivers TO repl@'%'");
    assert!(Visit::of(&server, &[]).line("error", "privileges of").contains("It holds a role"));
    server.sql("SET DEFAULT ROLE receivers TO repl@'%'");
    Visit::of(&server, &[]).line("ok", "privileges of 'repl'@'%': REPLICATION SLAVE");
    check_without_binlog(&mut server);
}

#[test]
fn mariadb_11_8() {
    let mut server = Server::start("mariadb-11.8", &[]);
    check_privilege_and_identity(&server);
    let visit = Visit::of(&server, &[]);
    visit.line("warning", "semi-sync: rpl_semi_sync_master_enabled is OFF");
    visit.line("warning", "semi-sync: rpl_semi_sync_master_wait_point is AFTER_COMMIT");
    visit.line("ok", "GTIDs: always on (MariaDB)");
    let identity = Visit::of(&server, &["--server-id", "4100000001"]);
    assert!(identity.line("ok", "server_id of binlogd: 4100000001").contains("REPLICATION MASTER ADMIN"));
    run_suggestions(&server, &visit);
    let visit = Visit::of(&server, &[]);
    visit.line(
        "warning",
        "semi-sync: rpl_semi_sync_master_enabled is ON, and no semi-sync replica is connected",
    );
    visit.line("ok", "semi-sync: rpl_semi_sync_master_wait_point is AFTER_SYNC");
    server.sql("SET GLOBAL rpl_semi_sync_master_enabled = OFF");
    server.sql("CREATE ROLE receivers; GRANT REPLICATION SLAVE ON *.* TO receivers; REVOKE REPLICATION SLAVE ON *.* FROM repl@'%'; GRANT receivers TO repl@'%'; SET DEFAULT ROLE receivers FOR repl@'%'");
    Visit::of(&server, &[]).line("ok", "privileges of 'repl'@'%': REPLICATION SLAVE");
    check_without_binlog(&mut server);
}

#[test]
fn mysql_5_7() {
    let mut server = Server::start("mysql-5.7.22", &[]);
    check_privilege_and_identity(&server);
    let visit = Visit::of(&server, &[]);
    visit.line("warning", "gtid_mode: OFF");
    visit.line("warning", "semi-sync: the plugin is not installed");
    visit.statement("INSTALL PLUGIN rpl_semi_sync_master SONAME 'semisync_master.so';");
    visit.line("ok", "retention: binary logs are kept until somebody purges them");
    check_without_binlog(&mut server);
}

/// A replica that is registered with the id that we are to use.
#[test]
fn a_replica_with_our_server_id_is_named() {
    for (name, level) in [("mysql-9.7", "error"), ("mariadb-11.8", "warning")] {
        let server = Server::start(name, &[]);
        with_account(&server);
        // MariaDB lets only administrators list replicas.
        server.sql("GRANT ALL PRIVILEGES ON *.* TO repl@'%'");
        let mut options = wire::ConnectOptions {
            host: "127.0.0.1".into(),
            port: server.port(),
            user: "repl".into(),
            password: PASSWORD.into(),
            connect_timeout: std::time::Duration::from_secs(20),
            tls: Default::default(),
        };
        options.tls.mode = wire::TlsMode::Preferred;
        let mut other = wire::Connection::connect(&options).unwrap();
        other
            .query("SET @replica_uuid = 'cccccccc-cccc-cccc-cccc-cccccccccccc', @slave_uuid = @replica_uuid")
            .unwrap();
        other.command(&codec::packet::command::register_replica(77, "elsewhere", 0)).unwrap();
        let visit = Visit::of(&server, &["--server-id", "77"]);
        assert!(visit.line(level, "server_id of binlogd: 77").contains("elsewhere"), "{}", visit.out);
        let visit = Visit::of(&server, &["--server-id", "78"]);
        visit.line("ok", "server_id of binlogd: 78, unlike the source's and those of 1 replicas");
        drop(other);
    }
}

#[test]
fn a_source_that_cannot_be_reached_is_one_clear_line_a_host() {
    // Nobody listens on port 1 (tcpmux) of the whole loopback network.
    let (first, second) = ("127.0.0.1:1", "127.0.0.2:1");
    let visit = Visit::new(&["--source", &format!("mysql://repl@{first},{second}")]);
    assert_eq!((visit.code, visit.errors.as_str()), (1, ""));
    for host in [first, second] {
        assert!(visit.line("error", &format!("cannot look at {host}: ")).contains("refused"));
    }
    assert_eq!(Visit::new(&["--source", "no-url"]).code, 2);
    assert_eq!(Visit::new(&[]).code, 2);
}

#[test]
fn a_wrong_password_is_one_clear_line() {
    let server = Server::start("mysql-9.7", &[]);
    server.sql("CREATE USER repl@'%' IDENTIFIED BY 'another'");
    let visit = Visit::of(&server, &[]);
    assert_eq!((visit.code, visit.out.lines().count()), (1, 2), "{}", visit.out);
    assert!(visit.line("error", "cannot look at").contains("denies access"));
}

#[test]
fn one_source_of_a_file() {
    let server = Server::start("mysql-9.7", &[]);
    with_account(&server);
    grant(&server);
    let file = server.dir().join("b.toml");
    let source = |name: &str, port: u16| {
        format!("[[source]]\nname = \"{name}\"\nhosts = [\"127.0.0.1:{port}\"]\nuser = \"repl\"\n")
    };
    std::fs::write(&file, source("orders", server.port()) + &source("stock", 1)).unwrap();
    let file = file.display().to_string();
    let visit = Visit::new(&["--config", &file, "--name", "orders"]);
    assert_eq!(
        (visit.code, visit.out.lines().next().unwrap().starts_with("orders: ")),
        (0, true),
        "{}",
        visit.out
    );
    let visit = Visit::new(&["--config", &file]);
    assert_eq!(visit.code, 1);
    visit.line("error", "cannot look at 127.0.0.1:1: ");
    let visit = Visit::new(&["--config", &file, "--name", "order"]);
    assert_eq!(
        (visit.code, visit.errors.as_str()),
        (2, "error: there is no source \"order\"; there are: orders, stock\n")
    );
}
