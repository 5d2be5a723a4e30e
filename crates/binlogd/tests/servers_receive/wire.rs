//! Connections to real servers: every authentication method in each of its ways, queries, and the dump stream.
//! Encryption has a file of its own, `wire_tls.rs`.

use std::time::Duration;

use crate::common::tap::Tap;
use crate::common::{Server, connect_options};
use codec::gtid::{GtidState, TransactionId};
use codec::packet::{Assembler, EOF, ERR, ErrPacket, OK, command};
use source::identify::SourceIdentity;
use wire::{ConnectOptions, Connection, DumpStream, TlsMode, WireError};

const PASSWORD: &str = "öpen sesame ✓";

/// What asks for the server's RSA key in the exchange of caching_sha2_password: a packet of one byte, numbered 3.
const KEY_REQUEST: &[u8] = &[1, 0, 0, 3, 2];

fn connect(server: &Server, user: &str, password: &str, mode: TlsMode) -> Result<Connection, WireError> {
    Connection::connect(&connect_options(server, user, password, mode))
}

/// Logs in and makes sure that the session is the user's, encrypted as asked and by that method.
#[track_caller]
fn log_in(options: &ConnectOptions, method: &str) {
    let mut connection = Connection::connect(options).unwrap_or_else(|error| panic!("{options:?}: {error}"));
    assert_eq!(connection.auth_plugin(), method, "{options:?}");
    assert_eq!(connection.tls_version().is_some(), options.tls.mode != TlsMode::Disabled);
    let user = connection.query("SELECT CURRENT_USER()").unwrap();
    assert_eq!(
        user.first().and_then(|user| user.split_once('@')).map(|(name, _)| name),
        Some(&*options.user)
    );
    connection.close();
}

#[track_caller]
fn log_in_both_ways(server: &Server, user: &str, method: &str) {
    for mode in [TlsMode::Disabled, TlsMode::Required] {
        log_in(&connect_options(server, user, PASSWORD, mode), method);
        assert_denied(server, user, "not-the-password", mode);
        assert_denied(server, user, "", mode);
    }
}

#[track_caller]
fn assert_denied(server: &Server, user: &str, password: &str, mode: TlsMode) {
    let error = connect(server, user, password, mode).unwrap_err();
    let WireError::AccessDenied { code, sqlstate, message } = &error else { panic!("{error:?}") };
    assert!([1045, 1698].contains(code), "{error}");
    assert_eq!(sqlstate, "28000");
    assert!(message.contains(user), "{error}");
    assert!(error.is_permanent());
    assert!(password.is_empty() || !format!("{error} {error:?}").contains(password));
}

/// SHOW VARIABLES cuts such a value, and what is left of it reads as another state.
#[test]
fn a_long_state_of_mariadb_is_read_whole() {
    let server = Server::start("mariadb-11.8", &[]);
    let servers = 400;
    let state: Vec<String> =
        (1..=servers).map(|id| format!("0-{}-{}", 1_000_000 + id, 100_000 + id)).collect();
    server.sql(&format!("RESET MASTER; SET GLOBAL gtid_binlog_state = '{}'", state.join(",")));
    let shown = server.sql("SHOW GLOBAL VARIABLES LIKE 'gtid_binlog_state'");
    assert!(shown.len() < state.join(",").len(), "the server shows all of it: {shown}");
    let mut connection = connect(&server, "root", "", TlsMode::Disabled).unwrap();
    let identity = SourceIdentity::ask(&mut connection).unwrap();
    let GtidState::Mariadb(executed) = &identity.executed else { panic!("{identity:?}") };
    assert_eq!(executed.list().count(), servers);
    assert!(state.iter().all(|id| identity.has(&TransactionId::Mariadb(id.parse().unwrap()))));
}

fn queries(name: &str) {
    let server = Server::start(name, &[]);
    let mut connection = connect(&server, "root", "", TlsMode::Disabled).unwrap();
    assert_eq!(connection.server_kind(), server.kind());
    let version = connection.query("SELECT VERSION()").unwrap();
    assert_eq!(version.first(), Some(connection.server_version()));
    let id = connection.query("SELECT CONNECTION_ID()").unwrap();
    assert_eq!(id.first(), Some(connection.connection_id().to_string().as_str()));

    let row = connection.query("SELECT 1 AS a, NULL AS b, '' AS c, _utf8mb4'é' AS d, x'00FF' AS e").unwrap();
    assert_eq!(row.columns, ["a", "b", "c", "d", "e"]);
    assert_eq!((row.get(0, "a"), row.get(0, "b"), row.get(0, "c")), (Some("1"), None, Some("")));
    assert_eq!(row.get(0, "D"), Some("é"));
    assert_eq!(row.rows[0][4].as_deref(), Some(&b"\x00\xFF"[..]));

    assert!(connection.query("SET @a = 1").unwrap().columns.is_empty());
    assert!(connection.query("SELECT 1 FROM DUAL WHERE FALSE").unwrap().rows.is_empty());
    let error = connection.query("SELECT nonsense").unwrap_err();
    assert!(
        matches!(&error, WireError::Server { code: 1054, sqlstate, .. } if sqlstate == "42S22"),
        "{error}"
    );
    assert!(!error.is_permanent());
    connection.query("SELECT 1").expect("an error of a statement leaves the session usable");

    connection.command(&command::register_replica(4711, "binlogd-test", 3307)).unwrap();
    let replicas = connection.query(show_replicas(name)).unwrap();
    assert_eq!((replicas.get(0, "Server_id"), replicas.get(0, "Port")), (Some("4711"), Some("3307")));
    assert_eq!(replicas.rows[0].len(), replicas.columns.len());
    connection.close();
}

fn show_replicas(name: &str) -> &'static str {
    if name == "mysql-9.7" { "SHOW REPLICAS" } else { "SHOW SLAVE HOSTS" }
}

#[test]
fn queries_on_mysql_9_7() {
    queries("mysql-9.7");
}

#[test]
fn queries_on_mysql_8_0_31() {
    queries("mysql-8.0.31");
}

#[test]
fn queries_on_mysql_8_0_15() {
    queries("mysql-8.0.15");
}

#[test]
fn queries_on_mysql_5_7_22() {
    queries("mysql-5.7.22");
}

#[test]
fn queries_on_mariadb_11_8() {
    queries("mariadb-11.8");
}

#[test]
fn queries_on_mariadb_10_11() {
    queries("mariadb-10.11");
}

/// The three ways of caching_sha2_password: RSA, from the server's cache, and in clear within TLS.
fn caching_sha2(name: &str, with_tls: bool) {
    const METHOD: &str = "caching_sha2_password";
    let server = Server::start(name, &[]);
    server.sql(&format!("CREATE USER sha IDENTIFIED WITH caching_sha2_password BY '{PASSWORD}'"));
    server.sql("CREATE USER nopass IDENTIFIED WITH caching_sha2_password BY ''");

    let tap = Tap::new(server.port());
    let through_tap =
        |mode| ConnectOptions { port: tap.port(), ..connect_options(&server, "sha", PASSWORD, mode) };
    log_in(&through_tap(TlsMode::Disabled), METHOD);
    let heard = tap.take();
    assert!(contains(&heard, KEY_REQUEST), "the password is not cached yet");
    assert!(!contains(&heard, PASSWORD.as_bytes()));

    log_in(&through_tap(TlsMode::Disabled), METHOD);
    let heard = tap.take();
    assert!(!contains(&heard, KEY_REQUEST), "the password is cached");
    assert!(!contains(&heard, PASSWORD.as_bytes()));

    let modes: &[TlsMode] =
        if with_tls { &[TlsMode::Disabled, TlsMode::Required] } else { &[TlsMode::Disabled] };
    for mode in modes {
        // Empties the cache.
        server.sql("FLUSH PRIVILEGES");
        assert_denied(&server, "sha", "not-the-password", *mode);
        assert_denied(&server, "sha", "", *mode);
        log_in(&through_tap(*mode), METHOD);
        assert!(!contains(&tap.take(), PASSWORD.as_bytes()));
        log_in(&through_tap(*mode), METHOD);
        log_in(&connect_options(&server, "nopass", "", *mode), METHOD);
        assert_denied(&server, "nopass", "something", *mode);
        assert_denied(&server, "nobody", PASSWORD, *mode);
    }
}

#[test]
fn caching_sha2_on_mysql_9_7() {
    caching_sha2("mysql-9.7", true);
}

#[test]
fn caching_sha2_on_mysql_8_0_31() {
    caching_sha2("mysql-8.0.31", true);
}

/// Its OpenSSL 1.0 has no key exchange in common with rustls, so there is no TLS with it.
#[test]
fn caching_sha2_on_mysql_8_0_15() {
    caching_sha2("mysql-8.0.15", false);
}

#[test]
fn native_and_sha256_by_switching_on_mysql_8_0_31() {
    let server = Server::start("mysql-8.0.31", &[]);
    for (user, method) in [("native", "mysql_native_password"), ("sha256", "sha256_password")] {
        server.sql(&format!("CREATE USER {user} IDENTIFIED WITH {method} BY '{PASSWORD}'"));
        log_in_both_ways(&server, user, method);
    }
    server.sql("CREATE USER nopass IDENTIFIED WITH mysql_native_password BY ''");
    log_in(&connect_options(&server, "nopass", "", TlsMode::Disabled), "mysql_native_password");
}

/// The server's default is another method, so that the client has to switch from it.
#[test]
fn switching_away_from_another_default() {
    for default in ["sha256_password", "mysql_native_password"] {
        let server = Server::start("mysql-8.0.31", &[&format!("--default-authentication-plugin={default}")]);
        for method in ["caching_sha2_password", "mysql_native_password", "sha256_password"] {
            let user = &method[..6];
            server.sql(&format!("CREATE USER {user} IDENTIFIED WITH {method} BY '{PASSWORD}'"));
            log_in_both_ways(&server, user, method);
        }
    }
}

#[test]
fn native_on_mysql_5_7_22() {
    let server = Server::start("mysql-5.7.22", &[]);
    // The client of 5.7 would take the password for latin1.
    server.sql(&format!(
        "SET NAMES utf8mb4; CREATE USER native IDENTIFIED WITH mysql_native_password BY '{PASSWORD}'"
    ));
    log_in(&connect_options(&server, "native", PASSWORD, TlsMode::Disabled), "mysql_native_password");
    assert_denied(&server, "native", "not-the-password", TlsMode::Disabled);
    assert_denied(&server, "native", "", TlsMode::Disabled);
}

fn mariadb_methods(name: &str, methods: &[(&str, &str, &str)]) {
    let server = Server::start(name, &[]);
    for (user, identified, method) in methods {
        if let Some(library) =
            identified.strip_prefix("VIA ").filter(|plugin| *plugin != "mysql_native_password")
        {
            server.sql(&format!("INSTALL SONAME 'auth_{library}'"));
        }
        server.sql(&format!("CREATE USER {user} IDENTIFIED {identified} USING PASSWORD('{PASSWORD}')"));
        log_in_both_ways(&server, user, method);
    }
    server.sql("CREATE USER nopass IDENTIFIED BY ''");
    log_in(&connect_options(&server, "nopass", "", TlsMode::Disabled), "mysql_native_password");
}

#[test]
fn methods_of_mariadb_11_8() {
    mariadb_methods(
        "mariadb-11.8",
        &[
            ("native", "VIA mysql_native_password", "mysql_native_password"),
            ("ed", "VIA ed25519", "client_ed25519"),
            ("par", "VIA parsec", "parsec"),
        ],
    );
}

#[test]
fn methods_of_mariadb_10_11() {
    mariadb_methods(
        "mariadb-10.11",
        &[
            ("native", "VIA mysql_native_password", "mysql_native_password"),
            ("ed", "VIA ed25519", "client_ed25519"),
        ],
    );
}

#[test]
fn locked_accounts_and_missing_privileges_are_permanent() {
    for name in ["mysql-9.7", "mariadb-11.8"] {
        let server = Server::start(name, &[]);
        server.sql(&format!("CREATE USER locked IDENTIFIED BY '{PASSWORD}' ACCOUNT LOCK"));
        let error = connect(&server, "locked", PASSWORD, TlsMode::Disabled).unwrap_err();
        assert!(matches!(&error, WireError::AccessDenied { code: 3118 | 4151, .. }), "{name}: {error}");
        assert!(error.is_permanent());

        server.sql(&format!("CREATE USER weak IDENTIFIED BY '{PASSWORD}'"));
        let mut connection = connect(&server, "weak", PASSWORD, TlsMode::Disabled).unwrap();
        let error = connection.command(&command::register_replica(1, "", 0)).unwrap_err();
        assert!(matches!(&error, WireError::AccessDenied { .. }), "{name}: {error}");
        connection.query("SELECT 1").expect("the session goes on");
    }
}

#[test]
fn large_results_and_their_limits() {
    let server = Server::start("mysql-9.7", &[]);
    for mode in [TlsMode::Disabled, TlsMode::Required] {
        let mut connection = connect(&server, "root", "", mode).unwrap();
        let one = connection.query("SELECT REPEAT('x', 15 << 20) AS a").unwrap();
        assert_eq!(one.first().map(str::len), Some(15 << 20));
        let rows =
            "SELECT REPEAT('y', 1000) FROM information_schema.columns a, information_schema.columns b LIMIT";
        let many = connection.query(&format!("{rows} 50000")).unwrap();
        assert_eq!(many.rows.len(), 50_000);
        assert!(many.rows.iter().all(|row| row[0].as_deref().is_some_and(|value| value == [b'y'; 1000])));

        let error = connection.query(&format!("{rows} 80000")).unwrap_err();
        assert!(matches!(&error, WireError::Protocol { what, .. } if what.contains("larger")), "{error}");
        let mut connection = connect(&server, "root", "", mode).unwrap();
        let error = connection.query("SELECT REPEAT('x', 17 << 20)").unwrap_err();
        assert!(matches!(&error, WireError::Protocol { what, .. } if what.contains("longer")), "{error}");
    }
    // A statement that needs two packets.
    let mut connection = connect(&server, "root", "", TlsMode::Required).unwrap();
    let length = connection.query(&format!("SELECT LENGTH('{}')", "z".repeat(17 << 20))).unwrap();
    assert_eq!(length.first(), Some((17 << 20).to_string().as_str()));
}

#[test]
fn a_slow_answer_and_a_dead_server() {
    let server = Server::start("mariadb-10.11", &[]);
    let mut connection = connect(&server, "root", "", TlsMode::Disabled).unwrap();
    connection.set_timeout(Duration::from_millis(200));
    let error = connection.query("SELECT SLEEP(100)").unwrap_err();
    assert!(matches!(&error, WireError::Timeout { during: "running a query", .. }), "{error}");
    assert!(!error.is_permanent());

    let mut connection = connect(&server, "root", "", TlsMode::Required).unwrap();
    server.kill();
    let error = connection.query("SELECT 1").unwrap_err();
    assert!(matches!(&error, WireError::Closed { .. }), "{error}");
    let error = connect(&server, "root", "", TlsMode::Disabled).unwrap_err();
    assert!(matches!(&error, WireError::Connect { .. }), "{error}");
    assert!(!error.is_permanent());
}

/// The first binlog file, asked for over the wire without waiting for more, against the file itself.
fn dump_stream(name: &str, modes: &[TlsMode]) {
    const DO_NOT_WAIT: u16 = 1;
    // For MariaDB only: the events that hold the text of statements too.
    const ANNOTATE_ROWS: u16 = 2;
    let flags = if name.starts_with("mariadb") { DO_NOT_WAIT | ANNOTATE_ROWS } else { DO_NOT_WAIT };
    const EVENT_HEADER_BYTES: usize = 19;
    let server = Server::start(name, &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (a LONGTEXT)");
    for _ in 0..4 {
        server.sql("INSERT INTO d.t VALUES (REPEAT('x', 1 << 20)), (REPEAT('y', 1 << 20))");
    }
    server.sql("FLUSH BINARY LOGS");
    let files = server.sql("SHOW BINARY LOGS");
    let file = files.split('\t').next().unwrap().to_owned();
    let on_disk = std::fs::read(server.datadir().join(&file)).unwrap();

    for mode in modes {
        let mut connection = connect(&server, "root", "", *mode).unwrap();
        for statement in [
            "SET @master_binlog_checksum = @@GLOBAL.binlog_checksum, @source_binlog_checksum = @@GLOBAL.binlog_checksum",
            "SET @mariadb_slave_capability = 4",
        ] {
            connection.query(statement).unwrap();
        }
        connection.command(&command::register_replica(4711, "", 0)).unwrap();
        let dump = command::binlog_dump(4, flags, 4711, file.as_bytes());
        let mut packets = Packets::new(connection.start_dump(&dump).unwrap());

        let rotate = packets.next();
        assert_eq!(rotate[0], OK);
        assert_eq!(rotate[1..5], [0; 4], "an artificial event has no timestamp");
        assert_eq!(rotate[5], 4, "a ROTATE event comes first");
        let mut received = on_disk[..4].to_vec();
        loop {
            let packet = packets.next();
            match packet[0] {
                OK if received.len() < on_disk.len() => received.extend_from_slice(&packet[1..]),
                OK => {} // The next file.
                EOF => break,
                _ => panic!("{name} {mode}: {:?}", ErrPacket::parse(&packet)),
            }
        }
        // The format description differs in its flags and thus in its checksum.
        let format_length = u32::from_le_bytes(on_disk[4 + 9..4 + 13].try_into().unwrap()) as usize;
        assert!(format_length > EVENT_HEADER_BYTES);
        assert_eq!(received.len(), on_disk.len());
        assert!(received[4 + format_length..] == on_disk[4 + format_length..], "{name} {mode}: bytes differ");
    }

    let connection = connect(&server, "root", "", TlsMode::Disabled).unwrap();
    let dump = command::binlog_dump(4, flags, 4711, b"absent.000001");
    let packet = Packets::new(connection.start_dump(&dump).unwrap()).next();
    assert_eq!(packet[0], ERR);
    assert_eq!(ErrPacket::parse(&packet).unwrap().code, 1236);
}

#[test]
fn dump_of_mysql_9_7() {
    dump_stream("mysql-9.7", &[TlsMode::Disabled, TlsMode::Required]);
}

#[test]
fn dump_of_mysql_5_7_22() {
    dump_stream("mysql-5.7.22", &[TlsMode::Disabled]);
}

#[test]
fn dump_of_mariadb_11_8() {
    dump_stream("mariadb-11.8", &[TlsMode::Disabled, TlsMode::Required]);
}

/// Frames a dump stream, waiting with poll(2) as a receiver does.
struct Packets {
    stream: DumpStream,
    received: Vec<u8>,
    sequence: u8,
}

impl Packets {
    fn new(stream: DumpStream) -> Self {
        Self { stream, received: Vec::new(), sequence: 1 }
    }

    fn next(&mut self) -> Vec<u8> {
        let mut assembler = Assembler::new(64 << 20, self.sequence);
        loop {
            let progress = assembler.feed(&self.received).unwrap();
            self.received.drain(..progress.consumed);
            if progress.complete {
                self.sequence = assembler.next_sequence();
                return assembler.into_message();
            }
            self.read();
        }
    }

    fn read(&mut self) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut buffer = vec![0; 100_000];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => panic!("the server closed the connection"),
                Ok(read) => {
                    self.received.extend_from_slice(&buffer[..read]);
                    return;
                }
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}"),
            }
            assert!(!self.stream.pending(), "nothing is pending after WouldBlock");
            let timeout = Timespec { tv_sec: 20, tv_nsec: 0 };
            let ready = poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], Some(&timeout)).unwrap();
            assert_eq!(ready, 1, "the server sends nothing more");
        }
    }
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}
