//! The web page in a headless Chromium, against the built binary and real servers: what goes wrong is seen on it as soon as the
//! status says it. Run by `make test-page`, which has the browser; ignored otherwise.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::admin_forms;
use crate::common::daemon::Daemon;
use crate::common::fork_scene::Scene;
use crate::common::readers::{client_command, make_account, serve_port};
use crate::common::semi_sync::SemiSync;
use crate::common::volume::{Kind, Volume};
use crate::common::{Server, wait_within};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);
/// A state must be on the page so soon after the status says it.
const SEEN_WITHIN: Duration = Duration::from_secs(2);
/// Folder of the driver and of what npm has put beside it; set by scripts/test-page.
const DRIVER: &str = "BINLOGD_PAGE_DRIVER";
/// Where screenshots go that a person is to look at; none are made without it.
const SHOTS: &str = "BINLOGD_PAGE_SHOTS";

/// A Chromium.
struct Browser {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Browser {
    fn start() -> Browser {
        let driver =
            std::env::var(DRIVER).unwrap_or_else(|_| panic!("{DRIVER} is not set: run make test-page"));
        let mut command = Command::new("node");
        command.arg("browser.mjs").current_dir(driver).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("node runs");
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Browser { child, input, output }
    }

    /// Sends a request without waiting for the answer.
    fn send(&mut self, request: &Value) {
        writeln!(self.input, "{request}").expect("the driver listens");
    }

    #[track_caller]
    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the driver answers");
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(answer["error"].is_null(), "{answer}");
        answer
    }

    #[track_caller]
    fn ask(&mut self, request: &Value) -> Value {
        self.send(request);
        self.answer()
    }

    #[track_caller]
    fn open(&mut self, page: &str, url: &str, more: &Value) {
        let mut request = json!({"do": "open", "page": page, "url": url});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(self.ask(&request)["status"], 200, "{url}");
    }

    #[track_caller]
    fn wait(&mut self, page: &str, selector: &str, words: &str) {
        self.ask(&wait(page, selector, words));
    }

    #[track_caller]
    fn text(&mut self, page: &str, selector: &str) -> String {
        self.ask(&json!({"do": "text", "page": page, "selector": selector}))["text"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// While `cause` works, the page must come to show the words, no later than a moment after `told` says so of the status.
    #[track_caller]
    fn sees(
        &mut self,
        (selector, words): (&str, &str),
        cause: impl FnOnce(),
        daemon: &Daemon,
        told: impl Fn(&Value) -> bool,
    ) {
        self.send(&wait("", selector, words));
        cause();
        daemon.wait_until_status(told, PATIENCE);
        let told_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let seen_at = Duration::from_millis(self.answer()["at"].as_u64().expect("a time"));
        let late = seen_at.saturating_sub(told_at);
        println!("{words:?} was seen {} ms after the status had it", late.as_millis());
        assert!(late < SEEN_WITHIN, "{words:?} was seen {late:?} after the status had it");
    }

    /// Nothing serious that keeps somebody from using the page.
    #[track_caller]
    fn assert_accessible(&mut self, page: &str) {
        let found = self.ask(&json!({"do": "axe", "page": page}));
        assert_eq!(found["violations"], json!([]), "{page}: {found:#}");
    }

    fn shoot(&mut self, page: &str, name: &str) {
        if let Some(folder) = std::env::var_os(SHOTS) {
            let file = PathBuf::from(folder).join(format!("{name}.png"));
            self.ask(&json!({"do": "shot", "page": page, "file": file}));
        }
    }

    /// The script had no error, and the policy forbade nothing, but for connections that could not be made.
    #[track_caller]
    fn assert_no_complaints(&mut self) {
        let found = self.ask(&json!({"do": "complaints"}))["complaints"].as_array().unwrap().clone();
        let found: Vec<_> =
            found.iter().filter(|one| !one.as_str().is_some_and(|one| one.contains("net::ERR"))).collect();
        assert!(found.is_empty(), "{found:?}");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait(page: &str, selector: &str, words: &str) -> Value {
    let within = u64::try_from(PATIENCE.as_millis()).unwrap();
    json!({"do": "wait", "page": page, "selector": selector, "words": words, "within_ms": within})
}

fn is(state: &'static str) -> impl Fn(&Value) -> bool {
    move |status| status["sources"][0]["state"] == state
}

/// A child that is ended with its owner.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs Chromium and packages of npm: make test-page"]
fn a_reader_that_goes_and_a_dead_source_are_seen_at_once() {
    let server = Server::start("mysql-9.7", &[]);
    make_account(&server);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v MEDIUMTEXT)");
    let semi_sync = SemiSync::enable(&server, Duration::from_secs(600));
    let daemon = Daemon::start_from(&format!(
        "[[serve.user]]\nname = 'repl'\npassword = 'secret'\n\
         [[source]]\nname = 'orders'\nhosts = ['127.0.0.1:{}']\nuser = 'repl'\npassword = 'secret'\nbackoff_max = '1s'\n",
        server.port()
    ));
    semi_sync.wait_attached();
    let base = format!("http://{}", daemon.admin_address());
    let mut browser = Browser::start();
    browser.open("", &base, &json!({}));
    browser.wait("", "#headline", "Protected");
    browser.wait("", "#live", "live");
    browser.assert_accessible("");
    browser.shoot("", "1-healthy");

    // A reader comes and goes.
    let into = tempfile::tempdir().unwrap();
    let into = format!("--result-file={}/", into.path().display());
    let follow = ["--read-from-remote-server", "--raw", "--stop-never", &into, "mysql-bin.000001"];
    let reader =
        Running(client_command(&server, "MYSQLBINLOG", serve_port(&daemon), &follow).spawn().unwrap());
    browser.wait("", "#readers", "Binlog Dump");
    let is_gone = |status: &Value| status["serve"]["readers"] == json!([]);
    browser.sees(("#readers", "No reader is connected"), || drop(reader), &daemon, is_gone);

    // The source dies; a page a source, in the dark, on a phone, says it too.
    browser.open("phone", &format!("{base}/source/orders"), &json!({"phone": true, "dark": true}));
    browser.wait("phone", "#headline", "Protected");
    let dead = || server.kill();
    browser.sees(("#headline", "The source is not reached"), dead, &daemon, |status| {
        status["sources"][0]["verdict"]["headline"]
            .as_str()
            .is_some_and(|headline| headline.contains("not reached"))
    });
    browser.wait("phone", "#headline", "The source is not reached");
    browser.wait("phone", "#events", "not receiving");
    assert!(browser.text("", "#sources").contains("orders"));
    for page in ["", "phone"] {
        browser.assert_accessible(page);
    }
    browser.shoot("", "2-source-dead");
    browser.shoot("phone", "3-source-dead-phone-dark");
    let width = browser
        .ask(&json!({"do": "evaluate", "page": "phone", "script": "document.documentElement.scrollWidth"}));
    assert_eq!(width["value"], 360, "nothing is wider than the phone");
    browser.assert_no_complaints();

    // Without script: the same words, from the server alone.
    browser.open("plain", &base, &json!({"noscript": true}));
    assert!(browser.text("plain", "#headline").contains("The source is not reached"));
    browser.assert_no_complaints();

    // By keyboard: to the content, and to a source.
    browser.ask(&json!({"do": "press", "key": "Tab"}));
    let focused = browser.ask(&json!({"do": "evaluate", "script": "document.activeElement.textContent"}));
    assert_eq!(focused["value"], "To the content");
    browser.ask(&json!({"do": "click", "selector": "#sources a"}));
    browser.wait("", "h1", "orders");

    // A page that is not kept current any more says so.
    drop(daemon);
    browser.wait("", "#lost", "binlogd does not answer");
}

#[test]
#[ignore = "needs Chromium and packages of npm: make test-page"]
fn a_full_disk_is_seen_at_once() {
    let Some(volume) = Volume::mount(Kind::Tmpfs, 160 << 20) else { return };
    let server = Server::start("mysql-9.7", &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v MEDIUMTEXT)");
    let url = crate::common::daemon::url(&server);
    let daemon =
        Daemon::start_in(&volume.path().join("data"), &url, &["--backoff-max", "500ms", "--disk-warn=30%"]);
    let mut browser = Browser::start();
    browser.open("", &format!("http://{}", daemon.admin_address()), &json!({}));
    browser.wait("", "#headline", "Commits do not wait");
    let fill = || {
        volume.fill_but(1 << 20);
        server.sql("INSERT INTO d.t (v) VALUES (REPEAT('x', 3000000))");
    };
    browser.sees(("#headline", "The disk is full"), fill, &daemon, is("waiting for disk space"));
    browser.wait("", "#problems", "The disk is running full");
    browser.assert_accessible("");
    browser.shoot("", "4-disk-full");
    browser.sees(("#headline", "Commits do not wait"), || volume.make_space(), &daemon, is("receiving"));
    browser.wait("", "#events", "the disk is full");
    browser.assert_no_complaints();
}

#[test]
#[ignore = "needs Chromium and packages of npm: make test-page"]
fn a_fork_is_seen_at_once_with_the_command_that_helps() {
    let mut scene = Scene::new("mysql-9.7", &["--serve", "127.0.0.1:0"]);
    let mut browser = Browser::start();
    let base = format!("http://{}", scene.daemon.admin_address());
    browser.open("", &base, &json!({}));
    browser.wait("", "#sources", "receiving");
    browser.send(&wait("", "#headline", "The source lost transactions"));
    scene.put_back(&[]);
    let Scene { server, daemon } = &scene;
    let lacks = |source: &Value| source["source_lacks"].as_str().is_some_and(|lacks| !lacks.is_empty());
    daemon.wait_until(lacks, PATIENCE);
    let (told, began) = (SystemTime::now().duration_since(UNIX_EPOCH).unwrap(), Instant::now());
    let seen = Duration::from_millis(browser.answer()["at"].as_u64().unwrap());
    println!("the fork was seen {} ms after the status had it", seen.saturating_sub(told).as_millis());
    assert!(seen.saturating_sub(told) < SEEN_WITHIN && began.elapsed() < PATIENCE);
    let command = browser.text("", "#problems code");
    let expected = format!(
        "binlogd rescue {} --source default --to mysql://root@127.0.0.1:{} --dry-run",
        daemon.data_dir().canonicalize().unwrap().display(),
        server.port()
    );
    assert_eq!(command, expected);
    // It is the command that an operator runs.
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let output = Command::new(env!("CARGO_BIN_EXE_binlogd")).args(&words).output().unwrap();
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && listed.contains("3 transactions"), "{output:?}");

    browser.open("", &format!("{base}/source/default"), &json!({}));
    browser.wait("", "#timelines", "the source lacks transactions that the copy holds");
    browser.wait("", "#timelines", "the first copy of this source");
    browser.wait("", "#charts", "Transactions");
    browser.assert_accessible("");
    browser.shoot("", "5-fork-source-page");
    let (code, text) = crate::common::fork_scene::rescue(daemon, server);
    assert_eq!(code, Some(0), "{text}");
    browser.wait("", "#events", "the source has again what it lacked");
    wait_within(PATIENCE, "the problem is gone", || {
        !browser.text("", "#problems").contains("The source lacks")
    });
    browser.assert_no_complaints();
}

#[test]
#[ignore = "needs Chromium and packages of npm: make test-page"]
fn what_can_be_changed_is_asked_first_and_told_then() {
    let server =
        Server::start("mysql-9.7", &["--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"]);
    make_account(&server);
    let daemon = Daemon::start_from_with(admin_forms::WRITE, &admin_forms::config(&server));
    daemon.wait_until_status(is("receiving"), PATIENCE);
    let url = format!("http://{}/source/orders", daemon.admin_address());
    let mut browser = Browser::start();
    browser.open("", &url, &json!({}));
    browser.wait("", "#live", "live");
    let click = |browser: &mut Browser, page: &str, selector: &str| {
        browser.ask(&json!({"do": "click", "page": page, "selector": selector}));
    };
    // No is no.
    click(&mut browser, "", "#deeds a");
    browser.wait("", "h1", "Stop receiving orders?");
    browser.assert_accessible("");
    browser.shoot("", "6-question");
    click(&mut browser, "", ".question a");
    browser.wait("", "#facts", "receiving");
    assert_eq!(daemon.source()["state"], "receiving");
    // Yes, and back; somebody else, on a phone in the dark, sees it at once, and starts it again without script.
    browser.open("phone", &url, &json!({"phone": true, "dark": true}));
    browser.wait("phone", "#deeds", "Stop receiving");
    click(&mut browser, "", "#deeds a");
    click(&mut browser, "", ".question button");
    browser.wait("", "#did", "receiving was stopped");
    browser.wait("", "#headline", "Receiving has stopped");
    browser.wait("", "#events", "somebody from 127.0.0.1, on the web page: receiving was stopped");
    browser.wait("phone", "#deeds", "Start receiving");
    for (page, name) in [("", "7-stopped"), ("phone", "8-stopped-phone-dark")] {
        browser.assert_accessible(page);
        browser.shoot(page, name);
    }
    browser.open("plain", &url, &json!({"noscript": true, "phone": true, "dark": true}));
    click(&mut browser, "plain", "#deeds a");
    browser.shoot("plain", "9-question-phone-dark");
    click(&mut browser, "plain", ".question button");
    assert!(browser.text("plain", "#did").contains("receiving was started"));
    browser.wait("", "#facts", "receiving");

    // A reader is ended, and its slot dropped.
    let mut reader = admin_forms::Reader::start(&server, &daemon);
    browser.wait("", "#readers", "Binlog Dump");
    browser.shoot("", "10-reader");
    click(&mut browser, "", "#readers a[href*='do=end']");
    browser.wait("", "h1", "End reader");
    click(&mut browser, "", ".question button");
    browser.wait("", "#did", "was ended");
    wait_within(PATIENCE, "the reader has been sent away", || reader.has_ended());
    browser.wait("", "#readers", "away for");
    browser.assert_accessible("");
    click(&mut browser, "", "#readers a[href*='do=drop']");
    browser.wait("", "h1", "Drop the slot warehouse?");
    browser.shoot("", "11-drop");
    click(&mut browser, "", ".question button");
    browser.wait("", "#did", "the slot warehouse was dropped");
    browser.wait("", "#readers", "No reader is connected");
    assert_eq!(daemon.status()["serve"]["slots"], json!([]));
    browser.assert_no_complaints();
}
