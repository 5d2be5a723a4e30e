//! Both sides of this crate against each other over loopback, and clients that say what no client says.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread::JoinHandle;
use std::time::Instant;

use codec::packet::reply::Column;
use codec::packet::{
    AuthSwitchRequest, ErrPacket, Handshake, Request, SemiSyncAcknowledgement, append_message, command,
    semi_sync_acknowledgement,
};
use mysql_common::auth::plugins::mysql_native_password::scramble_native;

use super::*;
use crate::{ConnectOptions, Connection, TlsError, TlsMode, TlsOptions, WireError};

const PASSWORD: &str = "öpen sesame ✓";
const PATIENCE: Duration = Duration::from_secs(20);
const COMMAND_BYTES_MAX: usize = 1000;

/// One account.
struct Only {
    user: &'static str,
    verifiers: Verifiers,
}

impl Accounts for Only {
    fn find(&self, user: &str, from: IpAddr) -> Option<Verifiers> {
        assert!(from.is_loopback());
        (user == self.user).then_some(self.verifiers)
    }

    fn methods(&self) -> Vec<Methods> {
        vec![self.verifiers.methods()]
    }
}

fn all() -> Verifiers {
    Verifiers::from_password(&PASSWORD.into())
}

fn only(method: Method) -> Verifiers {
    let methods = Methods {
        caching_sha2: method == Method::CachingSha2,
        native: method == Method::Native,
        ed25519: method == Method::Ed25519,
    };
    all().only(methods)
}

fn options() -> AcceptOptions {
    AcceptOptions {
        version: "9.7.0".to_owned(),
        kind: ServerKind::MySql,
        connection_id: 7,
        default_method: Method::CachingSha2,
        databases: &["information_schema"],
        tls: None,
        require_tls: false,
        login_timeout: PATIENCE,
        write_timeout: PATIENCE,
    }
}

fn certificate() -> ServerTls {
    let dir = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    ServerTls::load(&cert, &key).unwrap()
}

/// Accepts one client and lets `serve` have it.
fn server<T: Send + 'static>(
    options: AcceptOptions,
    verifiers: Verifiers,
    serve: impl FnOnce(Accepted) -> T + Send + 'static,
) -> (u16, JoinHandle<Result<T, ClientError>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        accept(socket, &options, &Only { user: "repl", verifiers }).map(serve)
    });
    (port, thread)
}

/// Answers every query with one row, until the client goes; gives how it was let in.
fn answer(mut accepted: Accepted) -> (String, Option<&'static str>) {
    while let Some(message) = accepted.receive(PATIENCE, COMMAND_BYTES_MAX).unwrap() {
        let mut out = Vec::new();
        match Request::parse(&message, accepted.client().capabilities).unwrap() {
            Request::Query(sql) => {
                let row = [Some(sql), None].map(|value| value.map(<[u8]>::to_vec)).to_vec();
                let columns = ["said", "nothing"].map(Column::text);
                reply::result_set(&mut out, accepted.sequence(), &columns, &[row], STATUS_AUTOCOMMIT);
            }
            Request::Quit => break,
            other => panic!("{other:?}"),
        }
        accepted.send(&out).unwrap();
    }
    assert_eq!(accepted.tls_cipher().is_some(), accepted.tls_version().is_some());
    assert!(accepted.tls_cipher().is_none_or(|name| name.starts_with("TLS_")), "{:?}", accepted.tls_cipher());
    (accepted.auth_plugin().to_owned(), accepted.tls_version())
}

fn connect(port: u16, user: &str, password: &str, mode: TlsMode) -> Result<Connection, WireError> {
    Connection::connect(&ConnectOptions {
        host: "127.0.0.1".to_owned(),
        port,
        user: user.to_owned(),
        password: password.into(),
        connect_timeout: PATIENCE,
        tls: TlsOptions { mode, ..TlsOptions::default() },
    })
}

fn error<T>(result: Result<T, ClientError>) -> ClientError {
    result.err().expect("the client was let in")
}

#[test]
fn every_method_in_clear_and_encrypted() {
    let tls = certificate();
    for (greeted, verifiers, method) in [
        (Method::CachingSha2, all(), Method::CachingSha2),
        (Method::Native, all(), Method::Native),
        (Method::CachingSha2, only(Method::Native), Method::Native),
        (Method::Native, only(Method::CachingSha2), Method::CachingSha2),
        (Method::CachingSha2, only(Method::Ed25519), Method::Ed25519),
        (Method::Ed25519, only(Method::Ed25519), Method::Ed25519),
    ] {
        for mode in [TlsMode::Disabled, TlsMode::Required] {
            let options = AcceptOptions { default_method: greeted, tls: Some(tls.clone()), ..options() };
            let (port, served) = server(options, verifiers, answer);
            let mut connection = connect(port, "repl", PASSWORD, mode).unwrap();
            assert_eq!(connection.auth_plugin(), method.name());
            assert_eq!((connection.server_version(), connection.connection_id()), ("9.7.0", 7));
            let rows = connection.query("SELECT 1").unwrap();
            assert_eq!((rows.first(), rows.get(0, "nothing")), (Some("SELECT 1"), None));
            connection.close();
            let (plugin, version) = served.join().unwrap().unwrap();
            assert_eq!((plugin.as_str(), version.is_some()), (method.name(), mode == TlsMode::Required));
        }
    }
}

#[test]
fn a_client_says_who_it_is() {
    let options =
        AcceptOptions { kind: ServerKind::MariaDb, version: "11.8.3-MariaDB".to_owned(), ..options() };
    let (port, served) = server(options, all(), |accepted| (accepted.client().clone(), accepted.address()));
    let connection = connect(port, "repl", PASSWORD, TlsMode::Disabled).unwrap();
    assert_eq!(connection.server_kind(), ServerKind::MariaDb);
    let (client, address) = served.join().unwrap().unwrap();
    assert_eq!((client.user.as_str(), &client.database), ("repl", &None));
    assert_eq!(client.attribute("program_name"), Some("binlogd"));
    assert!(address.ip().is_loopback());
}

#[test]
fn a_wrong_password_and_an_unknown_user_are_told_the_same() {
    for verifiers in [all(), only(Method::Native), only(Method::Ed25519)] {
        for (user, password, with_password) in
            [("repl", "wrong", true), ("nobody", "wrong", true), ("repl", "", false), ("nobody", "", false)]
        {
            let (port, served) = server(options(), verifiers, drop);
            let denied = connect(port, user, password, TlsMode::Disabled).unwrap_err();
            let WireError::AccessDenied { code, sqlstate, message } = &denied else { panic!("{denied:?}") };
            // An answer of client_ed25519 does not show that the password is empty.
            let shown =
                if with_password || verifiers.methods().has(Method::Ed25519) && !verifiers.methods().native {
                    "YES"
                } else {
                    "NO"
                };
            let expected = format!("Access denied for user '{user}'@'127.0.0.1' (using password: {shown})");
            assert_eq!((*code, sqlstate.as_str(), message.as_str()), (1045, "28000", expected.as_str()));
            let ClientError::Denied { with_password, .. } = error(served.join().unwrap()) else { panic!() };
            assert_eq!(with_password, shown == "YES", "no password is no guess");
        }
    }
}

#[test]
fn who_does_not_encrypt_is_refused_where_that_is_demanded() {
    let tls = Some(certificate());
    for user in ["repl", "nobody"] {
        let options = AcceptOptions { tls: tls.clone(), require_tls: true, ..options() };
        let (port, served) = server(options, all(), drop);
        let refused = connect(port, user, PASSWORD, TlsMode::Disabled).unwrap_err();
        assert!(matches!(refused, WireError::Server { code: 3159, .. }), "{refused:?}");
        assert!(matches!(error(served.join().unwrap()), ClientError::NotEncrypted));
    }
    let (port, served) = server(options(), all(), drop);
    let refused = connect(port, "repl", PASSWORD, TlsMode::Required).unwrap_err();
    assert!(matches!(refused, WireError::Tls(TlsError::NotOffered)), "{refused:?}");
    assert!(matches!(error(served.join().unwrap()), ClientError::Closed { .. }));
}

/// A client in its own hands.
struct Raw(TcpStream);

impl Raw {
    fn connect(port: u16) -> Raw {
        let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Raw(socket)
    }

    fn read(&mut self) -> Vec<u8> {
        let mut header = [0; 4];
        self.0.read_exact(&mut header).unwrap();
        let mut message = vec![0; codec::packet::Header::parse(header).length];
        self.0.read_exact(&mut message).unwrap();
        message
    }

    fn greeting(&mut self) -> Handshake {
        Handshake::parse(&self.read()).unwrap()
    }

    fn say(&mut self, sequence: u8, message: &[u8]) {
        let mut bytes = Vec::new();
        append_message(&mut bytes, sequence, message);
        // The server may be gone already.
        let _ = self.0.write_all(&bytes);
    }

    fn error(&mut self) -> ErrPacket {
        ErrPacket::parse(&self.read()).unwrap()
    }
}

const OLD: u32 = capability::MYSQL | capability::PROTOCOL_41 | capability::SECURE_CONNECTION;

/// A login without a name of its method, as of zongji; with `PLUGIN_AUTH` that of mysql_native_password.
fn login(capabilities: u32, user: &str, answer: &[u8]) -> Vec<u8> {
    let mut message = capabilities.to_le_bytes().to_vec();
    message.extend_from_slice(&[0, 0, 0, 1, 33]);
    message.extend_from_slice(&[0; 23]);
    message.extend_from_slice(user.as_bytes());
    message.extend_from_slice(&[0, answer.len() as u8]);
    message.extend_from_slice(answer);
    if capabilities & capability::PLUGIN_AUTH != 0 {
        message.extend_from_slice(b"mysql_native_password\0");
    }
    message
}

#[test]
fn a_client_that_knows_no_names_of_methods() {
    let (port, served) = server(options(), all(), |accepted| accepted.auth_plugin());
    let mut raw = Raw::connect(port);
    let challenge = raw.greeting().challenge;
    let answer = scramble_native(&challenge, PASSWORD.as_bytes()).unwrap();
    raw.say(1, &login(OLD, "repl", &answer));
    assert_eq!(raw.read()[0], codec::packet::OK);
    assert_eq!(served.join().unwrap().unwrap(), "mysql_native_password");

    let (port, served) = server(options(), only(Method::CachingSha2), drop);
    let mut raw = Raw::connect(port);
    raw.greeting();
    raw.say(1, &login(OLD, "repl", &answer));
    assert_eq!(raw.error().code, 1251);
    let error_of = error(served.join().unwrap());
    assert!(matches!(error_of, ClientError::NoCommonMethod { with_password: true, .. }), "{error_of}");

    let (port, served) = server(options(), only(Method::CachingSha2), drop);
    let mut raw = Raw::connect(port);
    raw.greeting();
    raw.say(1, &login(OLD, "repl", b""));
    assert_eq!(raw.error().code, 1251);
    let error = error(served.join().unwrap());
    assert!(matches!(error, ClientError::NoCommonMethod { with_password: false, .. }), "{error}");
}

/// The client of MySQL 5.7, greeted for caching_sha2_password.
#[test]
fn an_answer_left_empty_for_want_of_a_challenge_is_asked_for_again() {
    let (port, served) = server(options(), all(), |accepted| accepted.auth_plugin());
    let mut raw = Raw::connect(port);
    raw.greeting();
    raw.say(1, &login(OLD | capability::PLUGIN_AUTH, "repl", b""));
    let message = raw.read();
    let switch = AuthSwitchRequest::parse(&message).unwrap();
    assert_eq!(switch.plugin, b"mysql_native_password");
    let answer = scramble_native(switch.challenge, PASSWORD.as_bytes()).unwrap();
    raw.say(3, &answer);
    assert_eq!(raw.read()[0], codec::packet::OK);
    assert_eq!(served.join().unwrap().unwrap(), "mysql_native_password");
}

#[test]
fn an_old_answer_lets_nobody_in() {
    let (port, served) = server(options(), all(), drop);
    let mut raw = Raw::connect(port);
    let answer = scramble_native(&raw.greeting().challenge, PASSWORD.as_bytes()).unwrap();
    drop(raw);
    assert!(matches!(error(served.join().unwrap()), ClientError::Closed { .. }));
    let (port, served) = server(options(), all(), drop);
    let mut raw = Raw::connect(port);
    raw.greeting();
    raw.say(1, &login(OLD, "repl", &answer));
    assert_eq!(raw.error().code, 1045);
    let error = error(served.join().unwrap());
    assert!(matches!(error, ClientError::Denied { with_password: true, .. }), "{error}");
}

#[test]
fn silent_and_slow_clients_end_at_the_deadline() {
    let short = || AcceptOptions { login_timeout: Duration::from_millis(300), ..options() };
    let (port, served) = server(short(), all(), drop);
    let mut silent = Raw::connect(port);
    assert!(matches!(error(served.join().unwrap()), ClientError::Timeout { .. }));
    silent.greeting();

    let (port, served) = server(short(), all(), drop);
    let mut slow = Raw::connect(port);
    let begun = Instant::now();
    // A byte now and then, of a login that never ends.
    while !served.is_finished() {
        assert!(begun.elapsed() < PATIENCE, "the server still listens");
        let _ = slow.0.write_all(&[1]);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(matches!(
        error(served.join().unwrap()),
        ClientError::Timeout { .. } | ClientError::Protocol { .. }
    ));
}

#[test]
fn what_no_client_says_is_refused() {
    let framed = |message: &[u8]| {
        let mut bytes = Vec::new();
        append_message(&mut bytes, 1, message);
        bytes
    };
    let refused = |said: &[u8], code: Option<u16>| {
        let (port, served) = server(options(), all(), drop);
        let mut raw = Raw::connect(port);
        raw.greeting();
        raw.0.write_all(said).unwrap();
        if let Some(code) = code {
            assert_eq!(raw.error().code, code);
        }
        drop(raw);
        error(served.join().unwrap())
    };
    let no_packet = refused(b"GET / HTTP/1.1\r\n\r\n", None);
    assert!(matches!(no_packet, ClientError::Protocol { .. }), "{no_packet:?}");
    let tls_not_offered = &login(OLD | capability::SSL, "", b"")[..32];
    for message in [b"", &login(0, "repl", b"")[..], tls_not_offered, &login(OLD, "repl", b"")[..35]] {
        let malformed = refused(&framed(message), Some(1043));
        assert!(matches!(malformed, ClientError::BadHandshake { .. }), "{malformed:?}");
    }
    let long = refused(&framed(&vec![1; LOGIN_BYTES_MAX + 1]), Some(1153));
    assert!(matches!(long, ClientError::TooLong { limit: LOGIN_BYTES_MAX }), "{long:?}");
}

/// As OpenSSL does, which does not wait between the two.
#[test]
fn a_tls_handshake_may_begin_in_the_same_segment_as_the_request() {
    let options = AcceptOptions { tls: Some(certificate()), require_tls: true, ..options() };
    let (port, served) = server(options, all(), answer);
    let mut raw = Raw::connect(port);
    let challenge = raw.greeting().challenge;
    let tls = TlsOptions { mode: TlsMode::Required, ..TlsOptions::default() };
    let mut session = crate::tls::new_session(&tls, "localhost").unwrap();
    let mut begun = Vec::new();
    append_message(&mut begun, 1, &login(OLD | capability::SSL, "", b"")[..32]);
    session.write_tls(&mut begun).unwrap();
    raw.0.write_all(&begun).unwrap();
    let mut encrypted = rustls::Stream::new(&mut session, &mut raw.0);
    let answer = scramble_native(&challenge, PASSWORD.as_bytes()).unwrap();
    let mut said = Vec::new();
    append_message(&mut said, 2, &login(OLD | capability::SSL, "repl", &answer));
    // A command that does not wait for the OK.
    append_message(&mut said, 0, &command::quit());
    encrypted.write_all(&said).unwrap();
    let mut ok = [0; 5];
    encrypted.read_exact(&mut ok).unwrap();
    assert_eq!((ok[3], ok[4]), (3, codec::packet::OK));
    assert!(served.join().unwrap().unwrap().1.is_some());
}

#[test]
fn garbage_in_the_place_of_a_tls_handshake() {
    let options = AcceptOptions { tls: Some(certificate()), ..options() };
    let (port, served) = server(options, all(), drop);
    let mut raw = Raw::connect(port);
    raw.greeting();
    raw.say(1, &login(OLD | capability::SSL, "", b"")[..32]);
    raw.0.write_all(&[0xFF; 100]).unwrap();
    let error = error(served.join().unwrap());
    assert!(matches!(error, ClientError::Tls(_)), "{error:?}");
}

#[test]
fn a_command_that_is_too_long_is_refused() {
    let (port, served) =
        server(options(), all(), |mut accepted| accepted.receive(PATIENCE, COMMAND_BYTES_MAX).map(|_| ()));
    let mut connection = connect(port, "repl", PASSWORD, TlsMode::Disabled).unwrap();
    let refused = connection.query(&"x".repeat(1 << 20)).unwrap_err();
    assert!(matches!(refused, WireError::Server { code: 1153, .. }), "{refused:?}");
    drop(connection);
    let received = served.join().unwrap().unwrap();
    assert!(matches!(received, Err(ClientError::TooLong { limit: COMMAND_BYTES_MAX })));
}

#[test]
fn an_idle_client_ends_at_its_time() {
    let (port, served) = server(options(), all(), |mut accepted| {
        accepted.receive(Duration::from_millis(50), COMMAND_BYTES_MAX)
    });
    let connection = connect(port, "repl", PASSWORD, TlsMode::Disabled).unwrap();
    assert!(matches!(served.join().unwrap().unwrap(), Err(ClientError::Timeout { .. })));
    drop(connection);
}

#[test]
fn a_client_that_takes_nothing_holds_nobody_for_long() {
    let options = AcceptOptions { write_timeout: Duration::from_millis(200), ..options() };
    let (port, served) = server(options, all(), |mut accepted| {
        let piece = vec![0; 1 << 20];
        loop {
            if let Err(error) = accepted.send(&piece) {
                return error.kind();
            }
        }
    });
    let connection = connect(port, "repl", PASSWORD, TlsMode::Disabled).unwrap();
    assert_eq!(served.join().unwrap().unwrap(), std::io::ErrorKind::TimedOut);
    drop(connection);
}

#[test]
fn a_session_ends_from_another_thread() {
    let (send, receive) = std::sync::mpsc::channel();
    let (port, served) = server(options(), all(), move |mut accepted| {
        send.send(accepted.closer().unwrap()).unwrap();
        accepted.receive(PATIENCE, COMMAND_BYTES_MAX)
    });
    let connection = connect(port, "repl", PASSWORD, TlsMode::Disabled).unwrap();
    receive.recv().unwrap().close();
    assert!(matches!(served.join().unwrap().unwrap(), Ok(None)));
    drop(connection);
}

#[test]
fn a_client_that_has_gone_is_noticed() {
    let (port, served) = server(options(), all(), |accepted| {
        let begun = Instant::now();
        while !accepted.is_gone() {
            assert!(begun.elapsed() < PATIENCE);
            std::thread::yield_now();
        }
    });
    drop(connect(port, "repl", PASSWORD, TlsMode::Disabled).unwrap());
    served.join().unwrap().unwrap();
}

/// More than the buffers of both sockets hold, so that each side waits for the other in turn.
#[test]
fn one_thread_reads_acknowledgements_while_another_one_sends() {
    const PIECES: u64 = 64;
    let tls = certificate();
    for mode in [TlsMode::Disabled, TlsMode::Required] {
        let options = AcceptOptions { tls: Some(tls.clone()), ..options() };
        let (port, served) = server(options, all(), |mut accepted| {
            let dump = accepted.receive(PATIENCE, COMMAND_BYTES_MAX).unwrap().unwrap();
            assert!(matches!(Request::parse(&dump, 0), Ok(Request::BinlogDump(_))));
            let mut reader = accepted.reader().unwrap();
            let reading = std::thread::spawn(move || {
                let mut acknowledged = 0;
                while let Some(message) = reader.receive(PATIENCE, COMMAND_BYTES_MAX).unwrap() {
                    let read = SemiSyncAcknowledgement::parse(&message).unwrap();
                    assert_eq!((read.position, read.file), (acknowledged + 1, &b"b.000001"[..]));
                    acknowledged += 1;
                }
                acknowledged
            });
            for piece in 0..PIECES {
                accepted.send(&vec![piece as u8; 1 << 18]).unwrap();
            }
            assert!(accepted.receive(PATIENCE, COMMAND_BYTES_MAX).is_err());
            reading.join().unwrap()
        });
        let connection = connect(port, "repl", PASSWORD, mode).unwrap();
        let mut stream = connection.start_dump(&command::binlog_dump(4, 0, 9, b"b.000001")).unwrap();
        stream.set_blocking(PATIENCE).unwrap();
        stream.set_read_timeout(PATIENCE).unwrap();
        let mut buffer = vec![0; 1 << 18];
        for piece in 0..PIECES {
            let mut filled = 0;
            while filled < buffer.len() {
                match stream.read(&mut buffer[filled..]) {
                    Ok(0) => panic!("the server has closed the connection"),
                    Ok(read) => filled += read,
                    Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}"),
                }
            }
            assert!(buffer.iter().all(|byte| *byte == piece as u8));
            let mut acknowledgement = Vec::new();
            semi_sync_acknowledgement(&mut acknowledgement, piece + 1, b"b.000001");
            stream.write_all_blocking(&acknowledgement, PATIENCE).unwrap();
        }
        drop(stream);
        assert_eq!(served.join().unwrap().unwrap(), PIECES);
    }
}
