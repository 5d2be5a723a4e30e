//! Over HTTP: what is answered, who is let in, and what keeps nobody out.

mod forms;
mod tools;

use super::testing::Nothing;
use super::*;
use jiff::Timestamp;
use status::{DaemonStatus, SourceMonitor, SourceState, StateName, Stuck};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

fn server(names: &[&str]) -> (AdminServer, Vec<Arc<SourceMonitor>>) {
    let daemon = Arc::new(DaemonMonitor::new(Path::new("data")));
    names.iter().for_each(|name| daemon.add(Arc::new(SourceMonitor::new(name))));
    let sources = daemon.sources();
    (AdminServer::start("127.0.0.1:0".parse().unwrap(), daemon).unwrap(), sources)
}

/// The answer to raw bytes: status code, headers, body.
fn exchange(server: &AdminServer, request: &[u8]) -> (u16, String, String) {
    let mut stream = TcpStream::connect(server.local_addr()).unwrap();
    // The server may answer and close before it has read everything.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    (code, head.to_lowercase(), body.to_owned())
}

fn get(server: &AdminServer, path: &str) -> (u16, String, String) {
    exchange(server, format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
}

#[test]
fn healthz_is_200_only_while_every_source_receives() {
    let (server, sources) = server(&["orders", "stock"]);
    sources[0].set_state(SourceState::Receiving);
    let until = Timestamp::from_second(1_800_000_000).unwrap();
    sources[1].set_state(SourceState::BackingOff { until, error: "refused\nfor now".to_owned() });
    let (code, _, body) = get(&server, "/healthz");
    assert_eq!(code, 503);
    assert_eq!(body, "stock: backing off: refused for now; next attempt at 2027-01-15 08:00:00 UTC\n");
    sources[1].set_state(SourceState::Receiving);
    assert_eq!(get(&server, "/healthz").0, 200);
    assert_eq!(get(&server, "/healthz").2, "ok\n");
}

#[test]
fn livez_fails_only_where_a_restart_helps() {
    let (server, sources) = server(&["orders", "stock"]);
    sources[0].set_state(SourceState::stopped("gone".to_owned()));
    let stuck = |is_for_good| Stuck { what: "recv-stock is stuck".to_owned(), is_for_good };
    sources[1].set_stuck(Some(stuck(false)));
    assert_eq!(get(&server, "/livez").0, 200, "it may yet come round");
    assert!(get(&server, "/healthz").2.contains("stock: stuck: recv-stock is stuck\n"));
    sources[1].set_stuck(Some(stuck(true)));
    let (code, _, body) = get(&server, "/livez");
    assert_eq!((code, body.as_str()), (503, "recv-stock is stuck\n"));
    sources[1].set_stuck(None);
    assert_eq!(get(&server, "/livez").0, 200);
}

#[test]
fn a_daemon_without_sources_is_not_healthy() {
    let (server, _) = server(&[]);
    assert_eq!(get(&server, "/healthz").0, 503);
}

#[test]
fn status_is_the_json_contract() {
    let (server, _) = server(&["orders"]);
    let (code, head, body) = get(&server, "/status");
    assert_eq!(code, 200);
    assert!(head.contains("content-type: application/json"), "{head}");
    let status: DaemonStatus = serde_json::from_str(&body).unwrap();
    assert!(status.running);
    assert_eq!(status.pid, Some(std::process::id()));
    assert_eq!(status.sources[0].name, "orders");
    assert_eq!(status.sources[0].state, StateName::Starting);
}

#[test]
fn metrics_say_what_they_are() {
    let (server, _) = server(&["orders"]);
    let (code, head, body) = get(&server, "/metrics");
    assert_eq!(code, 200);
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    assert!(body.contains("# TYPE binlogd_events_total counter\n") && !body.contains("# EOF"));
    let asked =
        b"GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: application/openmetrics-text; version=1.0.0\r\n\r\n";
    let (code, head, body) = exchange(&server, asked);
    assert_eq!(code, 200);
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(body.ends_with("# EOF\n"));
}

#[test]
fn other_paths_and_methods_are_refused_with_a_hint() {
    let (server, _) = server(&["orders"]);
    assert!(get(&server, "/").2.contains("/healthz"));
    let (code, _, body) = get(&server, "/nothing");
    assert!(code == 404 && body.contains("/status"));
    assert_eq!(exchange(&server, b"POST /status HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").0, 405);
}

#[test]
fn an_oversized_or_broken_request_is_refused_and_the_server_lives() {
    let (server, _) = server(&["orders"]);
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(4 * REQUEST_BYTES_MAX));
    assert!(matches!(exchange(&server, long.as_bytes()).0, 0 | 400..500));
    assert_eq!(exchange(&server, b"\x00\xff nonsense\r\n\r\n").0, 400);
    assert_eq!(get(&server, "/status").0, 200);
}

#[test]
fn silent_clients_do_not_keep_others_out() {
    let (server, _) = server(&["orders"]);
    let silent: Vec<_> =
        (0..CONNECTIONS_MAX).map(|_| TcpStream::connect(server.local_addr()).unwrap()).collect();
    // Served once the silent connections run into the limit for headers.
    assert_eq!(get(&server, "/status").0, 200);
    drop(silent);
}

/// A server of a source that receives and one that does not, with a user.
fn guarded() -> AdminServer {
    let daemon = Arc::new(DaemonMonitor::new(Path::new("data")));
    daemon.add(Arc::new(SourceMonitor::new("orders")));
    let proof = config::Proof::Password(Secret::new("s:cret"));
    let users = vec![config::AdminUser { name: "dba".to_owned(), proof, write: false }];
    let listen = "127.0.0.1:0".parse().unwrap();
    let config = AdminConfig { listen: Some(listen), tls: None, write: false, users };
    AdminServer::start_with(listen, &config, daemon, Arc::new(Nothing)).unwrap()
}

fn get_as(address: SocketAddr, path: &str, authorization: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: {authorization}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

#[test]
fn who_does_not_log_in_learns_whether_all_is_well_and_no_more() {
    let server = guarded();
    for path in ["/", "/status", "/metrics", "/events", "/source/orders", "/nothing", "/page.css"] {
        let (code, head, _) = get(&server, path);
        assert_eq!(code, 401, "{path}");
        assert!(head.contains("www-authenticate: basic"), "{head}");
    }
    let (code, _, body) = get(&server, "/healthz");
    assert_eq!((code, body.contains("orders")), (503, false), "{body}");
    // base64 of dba:s:cret, of dba:wrong, of eve:s:cret
    let address = server.local_addr();
    assert_eq!(get_as(address, "/status", "Basic ZGJhOnM6Y3JldA==").0, 200);
    assert!(get_as(address, "/healthz", "Basic ZGJhOnM6Y3JldA==").1.contains("orders"));
    for wrong in ["Basic ZGJhOndyb25n", "Basic ZXZlOnM6Y3JldA==", "Basic !", "Bearer x"] {
        assert_eq!(get_as(address, "/status", wrong).0, 401, "{wrong}");
    }
}

#[test]
fn somebody_who_guesses_is_refused_for_a_while() {
    let server = guarded();
    let address = server.local_addr();
    let codes: Vec<u16> = (0..12).map(|_| get_as(address, "/status", "Basic ZGJhOndyb25n").0).collect();
    assert_eq!((codes[0], codes[8], codes[9], codes[11]), (401, 401, 429, 429), "{codes:?}");
    assert_eq!(get_as(address, "/status", "Basic ZGJhOnM6Y3JldA==").0, 429, "right or wrong");
}

#[test]
fn this_machine_has_a_door_of_its_own_and_a_token() {
    let server = guarded();
    let (door, token) = server.for_this_machine();
    assert_ne!(door, server.local_addr());
    assert!(door.ip().is_loopback());
    let token = token.unwrap().expose().to_owned();
    assert_eq!(get_as(door, "/status", &format!("Bearer {token}")).0, 200);
    for wrong in ["Bearer x", "Bearer ", "Basic ZGJhOnM6Y3JldA=="] {
        assert_eq!(get_as(door, "/healthz", wrong).0, 403, "{wrong}");
    }
}

#[test]
fn listeners_keep_nobody_out() {
    let (server, _) = server(&["orders"]);
    let listen = || {
        let mut stream = TcpStream::connect(server.local_addr()).unwrap();
        stream.write_all(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        (stream, String::from_utf8_lossy(&answer).into_owned())
    };
    let listeners: Vec<_> = (0..page::LISTENERS_MAX).map(|_| listen()).collect();
    assert!(listeners.iter().all(|(_, answer)| answer == "HTTP/1.1 200"), "{:?}", listeners[0].1);
    assert_eq!(listen().1, "HTTP/1.1 503");
    // As many as may ask at once ask beside them.
    let silent: Vec<_> =
        (1..CONNECTIONS_MAX).map(|_| TcpStream::connect(server.local_addr()).unwrap()).collect();
    assert_eq!(get(&server, "/status").0, 200);
    drop((silent, listeners));
}

#[test]
fn an_address_in_use_is_explained() {
    let (server, _) = server(&["orders"]);
    let daemon = Arc::new(DaemonMonitor::new(Path::new("data")));
    let error = AdminServer::start(server.local_addr(), daemon).map(|_| ()).unwrap_err().to_string();
    let address = server.local_addr();
    assert!(error.starts_with(&format!("cannot listen on {address} for status and metrics: ")), "{error}");
    assert!(error.contains("in use") && error.contains("`listen` in section [admin]"), "{error}");
}

#[test]
fn shutdown_frees_the_address() {
    let (server, _) = server(&["orders"]);
    let address = server.local_addr();
    assert_eq!(get(&server, "/status").0, 200);
    drop(server);
    assert!(TcpStream::connect(address).is_err());
}
