//! What an operator changes by the forms of a source's page: with a real source, through plain HTTP, as a browser without script.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::time::Duration;

use crate::common::daemon::{Daemon, binlog_end};
use crate::common::readers::{client_command, make_account, serve_port};
use crate::common::{Server, wait_within};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

/// The lines of `[admin]` by which the page can change something.
pub(super) const WRITE: &str = "write = true\n";

/// A source, and an account whose reader has a slot.
pub(super) fn config(source: &Server) -> String {
    format!(
        "[[serve.user]]\nname = 'repl'\npassword = 'secret'\nslot = 'warehouse'\n\
         [[source]]\nname = 'orders'\nhosts = ['127.0.0.1:{}']\nuser = 'repl'\npassword = 'secret'\n",
        source.port()
    )
}

/// A reader with that slot, ended with the test.
pub(super) struct Reader {
    child: Child,
    _into: tempfile::TempDir,
}

impl Reader {
    pub(super) fn start(source: &Server, daemon: &Daemon) -> Reader {
        let into = tempfile::tempdir().unwrap();
        let file = format!("--result-file={}/", into.path().display());
        let id = "--connection-server-id=77";
        let follow = ["--read-from-remote-server", "--raw", "--stop-never", id, &file, "mysql-bin.000001"];
        let child = client_command(source, "MYSQLBINLOG", serve_port(daemon), &follow).spawn().unwrap();
        Reader { child, _into: into }
    }

    /// Whether the program has ended by itself.
    pub(super) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether the slot's reader is connected; nothing when there is no slot.
pub(super) fn slot_is_connected(status: &Value) -> Option<bool> {
    status["serve"]["slots"][0]["connected"].as_bool()
}

/// An answer: code, head and body.
fn exchange(daemon: &Daemon, request: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(daemon.admin_address()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_lowercase(), body.to_owned())
}

fn get(daemon: &Daemon, path: &str) -> String {
    let host = daemon.admin_address();
    let (code, _, body) = exchange(daemon, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert_eq!(code, 200, "{path}: {body}");
    body
}

/// Follows a link that stands on the source's page, says yes, and gives what the page says then.
#[track_caller]
fn says_yes(daemon: &Daemon, query: &str) -> String {
    let link = format!("/source/orders/ask?{query}");
    let page = get(daemon, "/source/orders");
    assert!(page.contains(&format!("href=\"{}\"", link.replace('&', "&amp;"))), "{query} is not on {page}");
    let question = get(daemon, &link);
    let (_, token) = question.split_once("name=\"token\" value=\"").expect("a token");
    let (host, form) = (daemon.admin_address(), format!("{query}&token={}", &token[..64]));
    let request = format!(
        "POST /source/orders/do HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Length: {}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n\r\n{form}",
        form.len()
    );
    let (code, head, body) = exchange(daemon, &request);
    assert_eq!(code, 303, "{query}: {body}");
    let (_, place) = head.split_once("location: ").expect("a place to go");
    let page = get(daemon, place.split("\r\n").next().unwrap());
    let (_, told) = page.split_once("id=\"did\"").expect("what happened");
    told.split("</p>").next().unwrap().to_owned()
}

#[test]
fn receiving_is_stopped_and_started_a_reader_ended_and_a_slot_dropped() {
    let source =
        Server::start("mysql-9.7", &["--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"]);
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)");
    let daemon = Daemon::start_from_with(WRITE, &config(&source));
    let is = |state: &'static str| move |status: &Value| status["sources"][0]["state"] == state;
    daemon.wait_until_status(is("receiving"), PATIENCE);

    let told = says_yes(&daemon, "do=stop");
    assert!(told.contains("receiving was stopped"), "{told}");
    let stopped = daemon.source();
    let detail = stopped["state_detail"].as_str().unwrap();
    assert_eq!(stopped["state"], "stopped");
    assert!(detail.starts_with("by the web page (somebody from 127.0.0.1) at 20"), "{detail}");
    assert!(detail.ends_with("its web page starts it again"), "{detail}");
    // Nothing of what is written meanwhile arrives before it is started again.
    source.sql("INSERT INTO d.t VALUES (1)");
    let before = daemon.source()["positions"]["durable"].clone();
    let told = says_yes(&daemon, "do=start");
    assert!(told.contains("receiving was started"), "{told}");
    daemon.wait_until(
        |status| {
            let durable = &status["positions"]["durable"];
            let (file, end) = binlog_end(&source);
            *durable != before && durable["file"] == *file && durable["position"] == end
        },
        PATIENCE,
    );

    let mut reader = Reader::start(&source, &daemon);
    daemon.wait_until_status(|status| slot_is_connected(status) == Some(true), PATIENCE);
    assert!(!get(&daemon, "/source/orders").contains("do=drop"), "the slot is in use");
    let id = daemon.status()["serve"]["readers"][0]["id"].clone();
    let told = says_yes(&daemon, &format!("do=end&reader={id}"));
    assert!(told.contains(&format!("reader {id} (repl from 127.0.0.1:")), "{told}");
    wait_within(PATIENCE, "the reader has been sent away", || reader.has_ended());
    daemon.wait_until_status(|status| slot_is_connected(status) == Some(false), PATIENCE);
    let file = daemon.data_dir().join("orders/slots/warehouse.toml");
    assert!(file.exists());
    let told = says_yes(&daemon, "do=drop&slot=warehouse");
    assert!(told.contains("the slot warehouse was dropped") && !file.exists(), "{told}");
    assert_eq!(daemon.status()["serve"]["slots"], json!([]));

    let log = daemon.log();
    for done in
        ["receiving was stopped", "receiving was started", "was ended", "the slot warehouse was dropped"]
    {
        assert!(
            log.lines()
                .any(|line| line.contains("by the web page (somebody from 127.0.0.1): ")
                    && line.contains(done)),
            "{done} is not in\n{log}"
        );
        let status = daemon.source();
        let events = status["events"].as_array().unwrap();
        let is_told =
            |event: &Value| event["kind"] == "operator" && event["text"].as_str().unwrap().contains(done);
        assert!(events.iter().any(is_told), "{done} is not in {events:#?}");
    }
}
