//! It tells by itself: a command and a webhook are told of a source that is gone and back, and a URL is asked while all is well.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

use crate::common::daemon::Daemon;
use crate::common::metrics::metrics;
use crate::common::{Server, wait_within};

const PATIENCE: Duration = Duration::from_secs(60);
/// As short as it can be configured.
const EVERY: Duration = Duration::from_secs(1);

/// Method and path of a request, and its body.
type Request = (String, String);

/// Answers each request with 204, and hands it out.
fn listen(listener: TcpListener) -> Receiver<Request> {
    let (to, requests) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let to = to.clone();
            thread::spawn(move || answer(stream.expect("a connection"), |request| to.send(request).is_ok()));
        }
    });
    requests
}

fn answer(mut stream: TcpStream, hand_out: impl Fn(Request) -> bool) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    loop {
        let (mut first, mut len) = (String::new(), 0);
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a header");
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                len = value.trim().parse().expect("a length");
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; len];
        reader.read_exact(&mut body).expect("a body");
        let asked = first.rsplit_once(' ').expect("a request").0.to_owned();
        if !hand_out((asked, String::from_utf8(body).expect("text"))) {
            return;
        }
        if stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").is_err() {
            return;
        }
    }
}

/// Waits for what is told of the source with this level.
#[track_caller]
fn told(requests: &Receiver<Request>, level: &str) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let (asked, body) =
            requests.recv_timeout(left).unwrap_or_else(|error| panic!("nobody was told of {level}: {error}"));
        assert_eq!(asked, "POST /hook/TOKEN");
        let message: Value = serde_json::from_str(&body).expect("a line of JSON");
        if message["source"] == "a" && message["level"] == level {
            return message;
        }
    }
}

#[test]
fn a_change_is_told_and_a_receiver_that_was_down_is_told_the_newest() {
    let mut server = Server::start("mysql-9.7", &[]);
    let folder = crate::common::daemon::temporary_folder();
    let told_file = folder.path().join("told");
    let alive = TcpListener::bind("127.0.0.1:0").unwrap();
    let alive_at = alive.local_addr().unwrap();
    let beats = listen(alive);
    // The port is taken, and nobody listens there yet.
    let down = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    down.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    let hook = down.local_addr().unwrap().as_socket().unwrap();
    let notify = format!(
        "[notify]\ncommand = '''echo \"$BINLOGD_SOURCE $BINLOGD_BEFORE>$BINLOGD_LEVEL $BINLOGD_REASONS $(cat)\" >> {}'''\n\
         webhook = 'http://{hook}/hook/TOKEN'\nheartbeat = 'http://{alive_at}/alive/TOKEN'\n\
         at_most_every = '1s'\nheartbeat_every = '1s'\n",
        told_file.display()
    );
    let source = format!(
        "[[source]]\nname = 'a'\nhosts = ['127.0.0.1:{}']\nuser = 'root'\nsemi_sync = false\n\
         net_read_timeout = '2s'\nheartbeat_period = '500ms'\nbackoff_max = '500ms'\n",
        server.port()
    );
    // Without certificates of authorities, as in the image: it is this receiver that cannot be reached, and nothing else.
    let no_certificates = tempfile::tempdir().unwrap();
    let nothing = no_certificates.path().display().to_string();
    let environment = [
        ("SSL_CERT_DIR".to_owned(), nothing.clone()),
        ("SSL_CERT_FILE".to_owned(), format!("{nothing}/none")),
    ];
    let secure = "[notify]\nheartbeat = 'https://127.0.0.1:1/TOKEN'\nheartbeat_every = '1s'\n";
    let mut daemon = Daemon::start_from_in(&environment, "", &format!("{secure}{source}"));
    daemon.wait_until(|source| source["state"] == "receiving", PATIENCE);
    daemon.wait_log("heartbeat in [notify] cannot be reached", PATIENCE);
    let why = daemon.status()["notify"][0]["last_error"]["message"].to_string();
    assert!(why.contains("No CA certificates"), "{why}");
    assert!(beats.try_recv().is_err(), "nothing is configured yet");
    // A reload takes it up.
    daemon.write_config(&format!("{notify}{source}"));
    daemon.reload();
    let lines = || std::fs::read_to_string(&told_file).unwrap_or_default();
    let line = |of: &str| lines().lines().rfind(|line| line.starts_with(of)).map(str::to_owned);
    let beat = || assert_eq!(beats.recv_timeout(PATIENCE).expect("a beat").0, "GET /alive/TOKEN");
    daemon.wait_until(|source| source["state"] == "receiving", PATIENCE);
    wait_within(PATIENCE, "the first state is told", || line("a >").is_some());
    beat();
    daemon.wait_log("webhook in [notify] cannot be reached, and is tried again", PATIENCE);

    server.kill();
    let is_gone = || lines().lines().any(|line| line.starts_with("a ") && line.contains(">critical "));
    wait_within(PATIENCE, "the command is told that it is gone", is_gone);
    let webhook = || daemon.status()["notify"][1].clone();
    let failed = webhook();
    assert_eq!((&failed["key"], &failed["down"]), (&json!("webhook"), &json!(true)), "{failed}");
    let (_, text) = metrics(&daemon, "text/plain");
    let counted = text
        .lines()
        .find_map(|line| line.strip_prefix("binlogd_notify_failures_total{receiver=\"webhook\"} "));
    assert!(counted.and_then(|count| count.parse().ok()).is_some_and(|count: u64| count > 0), "{text}");
    down.listen(16).expect("the port is taken by us");
    let requests = listen(down.into());
    let gone = told(&requests, "critical");
    assert_eq!((&gone["before"], &gone["all_clear"]), (&Value::Null, &Value::Bool(false)), "{gone}");
    assert!(!gone["problems"].as_array().expect("a list").is_empty(), "{gone}");
    daemon.wait_log("webhook in [notify] is reached again", PATIENCE);
    assert_eq!(webhook()["down"], false);

    server.restart(&[]);
    let clear = told(&requests, "ok");
    assert_eq!(clear["all_clear"], true, "{clear}");
    assert!(["critical", "warning"].contains(&clear["before"].as_str().unwrap_or("null")), "{clear}");
    wait_within(PATIENCE, "the command is told the all-clear", || {
        line("a ").is_some_and(|last| last.contains(">ok "))
    });
    let last = line("a ").expect("a line");
    let json = last.find('{').map(|at| &last[at..]).expect("JSON on standard input");
    assert_eq!(serde_json::from_str::<Value>(json).expect("one line of JSON")["all_clear"], true, "{json}");

    while beats.try_recv().is_ok() {}
    beat();
    let log = daemon.log();
    assert_eq!(log.matches("webhook in [notify] cannot be reached").count(), 1, "{log}");
    let status = daemon.status().to_string();
    assert!(!log.contains("TOKEN") && !status.contains("TOKEN"), "a URL is shown");
    daemon.kill();
    while beats.try_recv().is_ok() {}
    assert!(beats.recv_timeout(EVERY * 3).is_err(), "it is dead, and nobody may hear it");
}
