//! Connections to scripted servers that do what real ones do not: break the rules, stall, or ask for too much.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use codec::packet::{append_message, command};
use wire::{ConnectOptions, Connection, DumpStream, TlsError, TlsMode, TlsOptions, WireError};

const PASSWORD: &str = "open sesame";
const CLIENT_SSL: u32 = 1 << 11;
const OK: &[u8] = b"\0\0\0\x02\0\0\0";
const CHALLENGE: &[u8; 20] = b"abcdefghijklmnopqrst";

/// The greeting of MySQL 8, with further capabilities.
fn greeting(plugin: &str, more: u32) -> Vec<u8> {
    let [a, b, c, d] = (0x0028_8201 | more).to_le_bytes();
    let mut message = b"\x0A8.4.0\0\x07\0\0\0".to_vec();
    message.extend_from_slice(&CHALLENGE[..8]);
    message.extend_from_slice(&[0, a, b, 0xFF, 2, 0, c, d, 21]);
    message.extend_from_slice(&[0; 10]);
    message.extend_from_slice(&CHALLENGE[8..]);
    message.push(0);
    message.extend_from_slice(plugin.as_bytes());
    message.push(0);
    message
}

/// One accepted connection of a scripted server, and everything that the client said.
struct Peer {
    socket: TcpStream,
    heard: Vec<u8>,
}

impl Peer {
    fn say(&mut self, sequence: u8, message: &[u8]) {
        let mut bytes = Vec::new();
        append_message(&mut bytes, sequence, message);
        // The client may have hung up already, which is what some tests want.
        let _ = self.socket.write_all(&bytes);
    }

    fn greet(&mut self, plugin: &str) {
        self.say(0, &greeting(plugin, 0));
    }

    /// One packet of the client; `None` when it has hung up.
    fn hear(&mut self) -> Option<Vec<u8>> {
        let mut header = [0; 4];
        self.socket.read_exact(&mut header).ok()?;
        let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
        self.socket.read_exact(&mut payload).ok()?;
        self.heard.extend_from_slice(&payload);
        Some(payload)
    }

    /// Greets and lets the client in.
    fn admit(&mut self) {
        self.greet("mysql_native_password");
        self.hear();
        self.say(2, OK);
    }

    /// Stays until the client hangs up.
    fn linger(&mut self) {
        let _ = self.socket.read_to_end(&mut self.heard);
    }
}

/// A server that plays `script` to its first connection; the thread gives what the client said.
fn serve(script: impl FnOnce(&mut Peer) + Send + 'static) -> (ConnectOptions, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut peer = Peer { socket, heard: Vec::new() };
        script(&mut peer);
        peer.heard
    });
    let options = ConnectOptions {
        host: "127.0.0.1".into(),
        port,
        user: "repl".into(),
        password: PASSWORD.into(),
        connect_timeout: Duration::from_secs(10),
        tls: TlsOptions { mode: TlsMode::Disabled, ..TlsOptions::default() },
    };
    (options, thread)
}

/// Connects, expects failure, and checks that the password went neither to the server nor into the message.
fn refused(script: impl FnOnce(&mut Peer) + Send + 'static) -> WireError {
    let (options, thread) = serve(script);
    let error = Connection::connect(&options).unwrap_err();
    let heard = thread.join().unwrap();
    assert!(!contains(&heard, PASSWORD.as_bytes()), "the password was sent in clear");
    assert!(!format!("{error} {error:?} {options:?}").contains(PASSWORD));
    error
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

fn switch(plugin: &str, challenge: &[u8]) -> Vec<u8> {
    [b"\xFE", plugin.as_bytes(), b"\0", challenge].concat()
}

#[test]
fn a_password_in_clear_is_never_given_away() {
    for plugin in ["mysql_clear_password", "mysql_old_password", "dialog", "auth_gssapi_client"] {
        let error = refused(move |peer| {
            peer.greet("caching_sha2_password");
            peer.hear();
            peer.say(2, &switch(plugin, CHALLENGE));
            peer.linger();
        });
        assert!(matches!(&error, WireError::UnsupportedAuthPlugin(name) if name == plugin), "{error}");
        assert!(error.is_permanent());
    }
}

#[test]
fn the_short_request_for_the_oldest_method_is_refused() {
    let error = refused(|peer| {
        peer.greet("mysql_native_password");
        peer.hear();
        peer.say(2, b"\xFE");
    });
    assert!(matches!(error, WireError::UnsupportedAuthPlugin(_)), "{error}");
}

#[test]
fn full_authentication_without_tls_asks_for_the_key_and_refuses_a_broken_one() {
    for key in [&b""[..], b"x", b"-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n", &[0xFF; 300]]
    {
        let error = refused(move |peer| {
            peer.greet("caching_sha2_password");
            peer.hear();
            peer.say(2, b"\x01\x04");
            assert_eq!(peer.hear().unwrap(), b"\x02");
            peer.say(4, &[b"\x01", key].concat());
            peer.linger();
        });
        assert!(matches!(error, WireError::Protocol { .. }), "{error}");
    }
}

#[test]
fn an_endless_exchange_ends() {
    let error = refused(|peer| {
        peer.greet("mysql_native_password");
        let mut sequence = 2_u8;
        while peer.hear().is_some() {
            peer.say(sequence, &switch("mysql_native_password", CHALLENGE));
            sequence = sequence.wrapping_add(2);
        }
    });
    assert!(matches!(&error, WireError::Protocol { what, .. } if what.contains("decided")), "{error}");
}

#[test]
fn a_challenge_after_the_last_answer_is_refused() {
    let error = refused(|peer| {
        peer.greet("mysql_native_password");
        peer.hear();
        peer.say(2, &[b"\x01", &CHALLENGE[..]].concat());
        peer.linger();
    });
    assert!(matches!(error, WireError::Protocol { .. }), "{error}");
}

#[test]
fn no_server_is_too_odd_for_a_plain_message() {
    let http = refused(|peer| {
        peer.socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    assert!(matches!(http, WireError::Protocol { .. }), "{http}");

    let full = refused(|peer| peer.say(0, b"\xFF\x10\x04Too many\x1B[2J connections"));
    assert!(
        matches!(&full, WireError::Server { code: 1040, message, .. } if message == "Too many [2J connections")
    );
    assert!(!full.is_permanent());

    let blocked = refused(|peer| peer.say(0, b"\xFF\x6A\x04Host 'x' is not allowed to connect"));
    assert!(blocked.is_permanent(), "{blocked}");

    let closed = refused(|_| {});
    assert!(matches!(closed, WireError::Closed { .. }), "{closed}");
}

#[test]
fn the_deadline_holds_against_a_server_that_trickles() {
    let (mut options, thread) = serve(|peer| {
        for byte in b"\x50\0\0\0\x0A8.4.0-a-very-long-version-that-never-ends-because-the-server-trickles" {
            if peer.socket.write_all(&[*byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    options.connect_timeout = Duration::from_millis(300);
    let error = Connection::connect(&options).unwrap_err();
    assert!(matches!(error, WireError::Timeout { .. }), "{error}");
    assert!(!error.is_permanent());
    thread.join().unwrap();
}

#[test]
fn tls_is_demanded_or_preferred() {
    let (mut options, thread) = serve(|peer| peer.admit());
    options.tls.mode = TlsMode::Preferred;
    assert_eq!(Connection::connect(&options).unwrap().tls_version(), None);
    thread.join().unwrap();

    for mode in [TlsMode::Required, TlsMode::VerifyCa, TlsMode::VerifyFull] {
        let (mut options, thread) = serve(|peer| {
            peer.greet("mysql_native_password");
            peer.linger();
        });
        options.tls.mode = mode;
        let error = Connection::connect(&options).unwrap_err();
        assert!(matches!(error, WireError::Tls(TlsError::NotOffered)), "{error}");
        assert!(error.is_permanent());
        assert_eq!(thread.join().unwrap(), b"", "nothing is said to a server without TLS");
    }
}

#[test]
fn data_before_the_tls_handshake_is_refused() {
    let (mut options, thread) = serve(|peer| {
        // In one write, so that both packets are there when the client looks.
        let mut bytes = Vec::new();
        append_message(&mut bytes, 0, &greeting("mysql_native_password", CLIENT_SSL));
        append_message(&mut bytes, 2, OK);
        peer.socket.write_all(&bytes).unwrap();
        peer.linger();
    });
    options.tls.mode = TlsMode::Required;
    let error = Connection::connect(&options).unwrap_err();
    assert!(matches!(&error, WireError::Protocol { what, .. } if what.contains("after")), "{error}");
    thread.join().unwrap();
}

#[test]
fn nothing_that_arrived_early_is_lost_at_the_hand_over() {
    let (options, thread) = serve(|peer| {
        peer.admit();
        peer.hear();
        // The answer to the command and the beginning of the stream in one write.
        let mut bytes = Vec::new();
        append_message(&mut bytes, 1, OK);
        append_message(&mut bytes, 1, b"\0first");
        append_message(&mut bytes, 2, b"\0second");
        peer.socket.write_all(&bytes).unwrap();
        peer.hear();
        peer.say(3, b"\0third");
    });
    let mut connection = Connection::connect(&options).unwrap();
    connection.command(&command::query("SET @x = 1")).unwrap();
    let mut stream = connection.start_dump(&command::binlog_dump(4, 0, 1, b"")).unwrap();
    assert!(stream.pending());
    let bytes = read_to_end(&mut stream);
    assert_eq!(bytes, b"\x06\0\0\x01\0first\x07\0\0\x02\0second\x06\0\0\x03\0third");
    assert!(!stream.pending());
    thread.join().unwrap();
}

#[test]
fn a_silent_stream_blocks_neither_reading_nor_writing_for_ever() {
    let (client, hang_up) = std::sync::mpsc::channel::<()>();
    let (options, thread) = serve(move |peer| {
        peer.admit();
        peer.hear();
        // Hears nothing more until the client hangs up.
        let _ = hang_up.recv();
    });
    let connection = Connection::connect(&options).unwrap();
    let mut stream = connection.start_dump(&command::binlog_dump(4, 0, 1, b"")).unwrap();
    assert_eq!(stream.read(&mut [0; 10]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    let error = stream.write_all_blocking(&vec![0; 64 << 20], Duration::from_millis(100)).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    drop(client);
    thread.join().unwrap();
}

/// Reads until the server closes.
fn read_to_end(stream: &mut DumpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = [0; 7];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return all,
            Ok(read) => all.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
    }
}
