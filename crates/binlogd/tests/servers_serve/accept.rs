//! Real clients against our server's side of a connection: the command-line clients, and the replicas inside the servers,
//! which are the only clients of MySQL 8.0 and 5.7 that `scripts/servers` has.

use std::net::{IpAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::common::{Server, wait_within};
use codec::ServerKind;
use codec::packet::reply::{self, Column, STATUS_AUTOCOMMIT};
use codec::packet::{ErrPacket, OkPacket, Request};
use wire::{AcceptOptions, Accepted, Accounts, Client, ClientError, Method, Methods, ServerTls, Verifiers};

const USER: &str = "repl";
const PASSWORD: &str = "öpen sesame ✓";
const PATIENCE: Duration = Duration::from_secs(30);
const COMMAND_BYTES_MAX: usize = 1 << 20;

struct Only(Verifiers);

impl Accounts for Only {
    fn find(&self, user: &str, _: IpAddr) -> Option<Verifiers> {
        (user == USER).then_some(self.0)
    }

    fn methods(&self) -> Vec<Methods> {
        vec![self.0.methods()]
    }
}

/// A client that was let in, and the first thing that it asked.
#[derive(Debug, Clone)]
struct Seen {
    client: Client,
    plugin: &'static str,
    encrypted: bool,
    asked: String,
}

/// A server that answers every query with the number 1.
struct Answering {
    port: u16,
    seen: Arc<Mutex<Vec<Result<Seen, String>>>>,
}

impl Answering {
    /// It lives as long as the test's process.
    fn start(options: AcceptOptions, verifiers: Verifiers) -> Answering {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let shared = seen.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let (options, seen) = (options.clone(), shared.clone());
                std::thread::spawn(move || {
                    if let Err(error) = serve(socket.unwrap(), &options, verifiers, &seen) {
                        seen.lock().unwrap_or_else(PoisonError::into_inner).push(Err(error.to_string()));
                    }
                });
            }
        });
        Answering { port, seen }
    }

    /// What came first.
    fn first(&self) -> Option<Result<Seen, String>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).first().cloned()
    }
}

fn serve(
    socket: TcpStream,
    options: &AcceptOptions,
    verifiers: Verifiers,
    seen: &Mutex<Vec<Result<Seen, String>>>,
) -> Result<(), ClientError> {
    let mut accepted = wire::accept(socket, options, &Only(verifiers))?;
    while let Some(message) = accepted.receive(PATIENCE, COMMAND_BYTES_MAX)? {
        let mut out = Vec::new();
        let sequence = accepted.sequence();
        match Request::parse(&message, accepted.client().capabilities).unwrap() {
            Request::Query(sql) => {
                note(&accepted, sql, seen);
                if sql.starts_with(b"select $$") {
                    // The client of MySQL finds out whether dollars quote, and waits for an error.
                    let error =
                        ErrPacket { code: 1064, sqlstate: "42000".to_owned(), message: "no".to_owned() };
                    reply::err(&mut out, sequence, &error);
                    accepted.send(&out).unwrap();
                    continue;
                }
                let is_select = sql.to_ascii_uppercase().starts_with(b"S") && !sql.starts_with(b"SET");
                if is_select {
                    let rows = [vec![Some("1")]];
                    reply::result_set(&mut out, sequence, &[Column::text("1")], &rows, STATUS_AUTOCOMMIT);
                } else {
                    ok(&mut out, sequence);
                }
            }
            Request::Quit => break,
            _ => ok(&mut out, sequence),
        }
        if accepted.send(&out).is_err() {
            break;
        }
    }
    Ok(())
}

fn ok(out: &mut Vec<u8>, sequence: u8) {
    let ok = OkPacket { affected_rows: 0, last_insert_id: 0, status: STATUS_AUTOCOMMIT, warnings: 0 };
    reply::ok(out, sequence, &ok);
}

fn note(accepted: &Accepted, sql: &[u8], seen: &Mutex<Vec<Result<Seen, String>>>) {
    let noted = Seen {
        client: accepted.client().clone(),
        plugin: accepted.auth_plugin(),
        encrypted: accepted.tls_version().is_some(),
        asked: String::from_utf8_lossy(sql).into_owned(),
    };
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(Ok(noted));
}

fn options(kind: ServerKind, version: &str, tls: Option<ServerTls>) -> AcceptOptions {
    AcceptOptions {
        version: version.to_owned(),
        kind,
        connection_id: 7,
        default_method: if kind == ServerKind::MySql { Method::CachingSha2 } else { Method::Native },
        databases: &[],
        tls,
        require_tls: false,
        login_timeout: PATIENCE,
        write_timeout: PATIENCE,
    }
}

fn kind(server: &Server) -> ServerKind {
    server.env("SERVER_KIND").parse().unwrap()
}

fn all() -> Verifiers {
    Verifiers::from_password(&PASSWORD.into())
}

fn only(method: Method) -> Verifiers {
    let Verifiers { sha256, native, ed25519 } = all();
    match method {
        Method::CachingSha2 => Verifiers { sha256, ..Verifiers::default() },
        Method::Native => Verifiers { native, ..Verifiers::default() },
        Method::Ed25519 => Verifiers { ed25519, ..Verifiers::default() },
    }
}

/// The certificate of `server`, which its own authority has signed.
fn certificate(server: &Server) -> ServerTls {
    let file = |name: &str| -> PathBuf { server.dir().join("tls").join(name) };
    ServerTls::load(&file("server-cert.pem"), &file("server-key.pem")).unwrap()
}

/// Asks by the command-line client of `server`; gives what was answered.
fn ask(server: &Server, port: u16, password: &str, flags: &[&str]) -> Result<String, String> {
    let mut command = Command::new(server.env("MYSQL"));
    command.arg(format!("--port={port}")).arg(format!("--user={USER}")).arg(format!("--password={password}"));
    command.args(flags).args(["--batch", "--skip-column-names", "-e", "SELECT 1"]).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// Flags of the client without and with TLS.
fn tls_flags(server: &Server) -> [&'static str; 2] {
    if kind(server) == ServerKind::MySql {
        ["--ssl-mode=DISABLED", "--ssl-mode=REQUIRED"]
    } else {
        ["--skip-ssl", "--ssl"]
    }
}

/// By every method that its kind has, in clear and encrypted, whatever server we say we are.
fn command_line(name: &str, methods: &[(Verifiers, Method, Method)]) {
    let server = Server::start(name, &[]);
    let tls = certificate(&server);
    let own_name = if kind(&server) == ServerKind::MySql { "libmysql" } else { "libmariadb" };
    for (encrypted, flag) in tls_flags(&server).into_iter().enumerate() {
        for (is_like, version) in [(ServerKind::MySql, "9.7.0"), (ServerKind::MariaDb, "11.8.3-MariaDB-log")]
        {
            for (verifiers, as_mysql, as_mariadb) in methods {
                let ours = Answering::start(options(is_like, version, Some(tls.clone())), *verifiers);
                let what = format!("{name} {flag}, we are {version}, {verifiers:?}");
                assert_eq!(ask(&server, ours.port, PASSWORD, &[flag]).as_deref(), Ok("1"), "{what}");
                let seen = ours.first().unwrap().unwrap();
                let method = if is_like == ServerKind::MySql { as_mysql } else { as_mariadb };
                assert_eq!((seen.plugin, seen.encrypted), (method.name(), encrypted == 1), "{what}");
                assert_eq!(seen.client.attribute("_client_name"), Some(own_name), "{what}");
                assert_eq!(seen.client.is_mariadb, kind(&server) == ServerKind::MariaDb, "{what}");
            }
            let ours = Answering::start(options(is_like, version, Some(tls.clone())), all());
            let denied = ask(&server, ours.port, "wrong", &[flag]).unwrap_err();
            assert!(denied.contains("1045") && denied.contains("(using password: YES)"), "{denied}");
            let denied = ask(&server, ours.port, "", &[flag]).unwrap_err();
            assert!(denied.contains("1045") && denied.contains("(using password: NO)"), "{denied}");
        }
    }
    let demanding =
        AcceptOptions { require_tls: true, ..options(kind(&server), server.env("VERSION"), Some(tls)) };
    let ours = Answering::start(demanding, all());
    let refused = ask(&server, ours.port, PASSWORD, &[tls_flags(&server)[0]]).unwrap_err();
    assert!(refused.contains("3159"), "{refused}");
}

#[test]
fn the_command_line_client_of_mysql_9_7() {
    let (sha2, native) = (Method::CachingSha2, Method::Native);
    command_line(
        "mysql-9.7",
        &[(all(), sha2, native), (only(sha2), sha2, sha2), (only(native), native, native)],
    );
}

fn methods_of_mariadb() -> Vec<(Verifiers, Method, Method)> {
    let single = Method::ALL.map(|method| (only(method), method, method));
    [(all(), Method::CachingSha2, Method::Native)].into_iter().chain(single).collect()
}

#[test]
fn the_command_line_client_of_mariadb_11_8() {
    command_line("mariadb-11.8", &methods_of_mariadb());
}

#[test]
fn the_command_line_client_of_mariadb_10_11() {
    command_line("mariadb-10.11", &methods_of_mariadb());
}

/// MariaDB's clients since 11.4 believe a certificate that nobody they know has signed, when the server shows that it knows
/// the password's hash.
#[test]
fn mariadb_trusts_a_certificate_by_the_password() {
    let server = Server::start("mariadb-11.8", &[]);
    let tls = certificate(&server);
    // The client does not look when it connects to 127.0.0.1.
    let flags = ["--host=localhost", "--ssl", "--ssl-verify-server-cert"];
    for method in [Method::Native, Method::Ed25519] {
        let ours =
            Answering::start(options(ServerKind::MariaDb, "11.8.3-MariaDB", Some(tls.clone())), only(method));
        assert_eq!(ask(&server, ours.port, PASSWORD, &flags).as_deref(), Ok("1"), "{method:?}");
        assert!(ours.first().unwrap().unwrap().encrypted);
    }
    let ours =
        Answering::start(options(ServerKind::MariaDb, "11.8.3-MariaDB", Some(tls)), only(Method::Native));
    server.sql(&format!(
        "CHANGE MASTER TO MASTER_HOST='localhost', MASTER_PORT={}, MASTER_USER='{USER}', MASTER_PASSWORD='{PASSWORD}', \
         MASTER_SSL=1, MASTER_SSL_VERIFY_SERVER_CERT=1; START SLAVE",
        ours.port
    ));
    wait_within(PATIENCE, "a replica logs in", || ours.first().is_some());
    assert!(ours.first().unwrap().unwrap().encrypted);
}

/// The replica inside a server logs in and begins to ask, in clear and encrypted.
fn replica(name: &str) {
    let server = Server::start(name, &[]);
    for is_encrypted in [false, true] {
        // The TLS of MySQL 5.7.22 and 8.0.15 as they come knows nothing that we speak.
        if !is_encrypted || !["mysql-5.7.22", "mysql-8.0.15"].contains(&name) {
            replica_logs_in(&server, is_encrypted);
        }
    }
}

fn replica_logs_in(server: &Server, is_encrypted: bool) {
    let tls = is_encrypted.then(|| certificate(server));
    let options = options(kind(server), server.env("VERSION"), tls);
    // MySQL 5.7 does not know the collation that the client says the statement is in, and takes the text for latin1.
    let ours = Answering::start(options, Verifiers::from_password(&"sesame".into()));
    let new_words = server.name() == "mysql-9.7";
    let (source, replica) = if new_words { ("SOURCE", "REPLICA") } else { ("MASTER", "SLAVE") };
    let change = if new_words { "CHANGE REPLICATION SOURCE" } else { "CHANGE MASTER" };
    // MySQL 9.7 and MariaDB 11.8 encrypt unless they are told not to; MariaDB verifies too.
    let ssl = i32::from(is_encrypted);
    let verify = if kind(server) == ServerKind::MariaDb { ", MASTER_SSL_VERIFY_SERVER_CERT=0" } else { "" };
    server.sql(&format!(
        "STOP {replica}; {change} TO {source}_HOST='127.0.0.1', {source}_PORT={}, {source}_USER='{USER}', \
         {source}_PASSWORD='sesame', {source}_SSL={ssl}{verify}; START {replica}",
        ours.port
    ));
    wait_within(PATIENCE, "a replica logs in", || ours.first().is_some());
    let seen = ours.first().unwrap().unwrap();
    assert_eq!((seen.client.user.as_str(), seen.encrypted), (USER, is_encrypted));
    assert_eq!(seen.client.is_mariadb, kind(server) == ServerKind::MariaDb, "{seen:?}");
    assert!(["SELECT", "SET", "SHOW"].iter().any(|word| seen.asked.starts_with(word)), "{seen:?}");
}

#[test]
fn the_replica_of_mysql_9_7() {
    replica("mysql-9.7");
}

#[test]
fn the_replica_of_mysql_8_0_31() {
    replica("mysql-8.0.31");
}

#[test]
fn the_replica_of_mysql_8_0_15() {
    replica("mysql-8.0.15");
}

#[test]
fn the_replica_of_mysql_5_7_22() {
    replica("mysql-5.7.22");
}

#[test]
fn the_replica_of_mariadb_11_8() {
    replica("mariadb-11.8");
}

#[test]
fn the_replica_of_mariadb_10_11() {
    replica("mariadb-10.11");
}
