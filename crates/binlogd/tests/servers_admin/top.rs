//! `binlogd top` in a real terminal (tmux), over a daemon and a source that go away and come back; `binlogd status --watch`.

use crate::common::daemon::Daemon;
use crate::common::readers::{account_url, make_account};
use crate::common::semi_sync::SemiSync;
use crate::common::skip::skip;
use crate::common::{Server, script, wait_within};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
/// A quick end of the session when the source dies, and quick attempts after that.
const FLAGS: [&str; 3] = ["--backoff-min=100ms", "--backoff-max=500ms", "--connect-timeout=2s"];

/// A shell in a terminal of 80 by 24, ended when dropped.
struct Terminal {
    /// The name of a server of its own, so that nobody's sessions are touched.
    socket: String,
    /// How often its settings were asked for.
    asked: AtomicU32,
}

impl Terminal {
    /// `None` where there is no tmux, which is said.
    fn start() -> Option<Terminal> {
        let found = script().arg("tmux").output().expect("the script runs");
        if !found.status.success() {
            skip(&format!("no terminal: {}", String::from_utf8_lossy(&found.stderr).trim()));
            return None;
        }
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let socket = format!("binlogd-test-{}-{number}", std::process::id());
        let terminal = Terminal { socket, asked: AtomicU32::new(0) };
        terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "80",
            "-y",
            "24",
            "env PS1='$ ' LC_ALL=C.UTF-8 sh",
        ]);
        wait_within(PATIENCE, "the shell is there", || terminal.shown().contains('$'));
        Some(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        // -u: UTF-8, whatever the locale of the tests.
        let output = Command::new("tmux").args(["-u", "-L", &self.socket]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What is on the screen.
    fn shown(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J"])
    }

    fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn run(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.press(&["Enter"]);
    }

    /// Waits until the screen is as wanted, and gives it.
    #[track_caller]
    fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let shown = self.shown();
            if wanted(&shown) {
                return shown;
            }
            assert!(Instant::now() < deadline, "{what}:\n{shown}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The screen of before, the cursor, and the settings of the terminal are back.
    #[track_caller]
    fn is_restored(&self, settings: &str) {
        wait_within(PATIENCE, "the alternate screen is left and the cursor shown", || {
            self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]).trim() == "0 1"
        });
        assert_eq!(self.settings(), settings);
    }

    /// As stty prints them for a machine.
    fn settings(&self) -> String {
        let mark = format!("settings-{}:", self.asked.fetch_add(1, Ordering::Relaxed));
        self.run(&format!("echo \"{mark}$(stty -g)\""));
        let answer = |shown: &str| {
            // Behind a prompt, where it was typed before the shell was there again.
            let behind = |line: &str| line.trim_start_matches("$ ").strip_prefix(&mark).map(str::to_owned);
            let line = shown.lines().find_map(behind);
            line.filter(|line| !line.is_empty())
        };
        answer(&self.wait("stty answers", |shown| answer(shown).is_some())).unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-L", &self.socket, "kill-server"]).output();
    }
}

/// Who closes the window, or loses the connection, leaves no process behind that takes a core.
#[test]
fn top_ends_with_its_terminal() {
    let Some(terminal) = Terminal::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().display().to_string();
    let top = format!("{} top --data-dir {marker}", env!("CARGO_BIN_EXE_binlogd"));
    terminal.run(&format!("exec {top}"));
    wait_within(PATIENCE, "top has taken the terminal", || {
        terminal.tmux(&["display-message", "-p", "#{alternate_on}"]).trim() == "1"
    });
    let process = terminal.tmux(&["display-message", "-p", "#{pane_pid}"]).trim().to_owned();
    let runs = || {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&marker)
    };
    assert!(runs(), "process {process} is not top");
    drop(terminal);
    wait_within(PATIENCE, "top ends", || !runs());
}

#[test]
fn top_shows_what_happens_and_gives_the_terminal_back() {
    let Some(terminal) = Terminal::start() else { return };
    let mut source = Server::start("mariadb-11.8", &["--server-id=1"]);
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY)");
    let mut daemon = Daemon::start_on(&account_url(&source), &FLAGS);
    daemon.wait_caught_up(&source);
    SemiSync::enable(&source, Duration::from_secs(600)).wait_attached();
    source.sql("INSERT INTO d.t VALUES ()");
    let settings = terminal.settings();
    let program = env!("CARGO_BIN_EXE_binlogd");
    let top = format!("{program} top --data-dir {}", daemon.data_dir().display());

    terminal.run(&top);
    let shown =
        terminal.wait("all is well", |shown| shown.contains(" SAFE ") && shown.contains("acknowledged  "));
    println!("{shown}");
    assert!(shown.contains("on stable storage in ") && shown.contains("semi-sync on"), "{shown}");
    terminal.press(&["Enter"]);
    terminal
        .wait("the source in full", |shown| shown.contains("fsync_mode    1") && shown.contains("Esc back"));
    terminal.press(&["Escape"]);
    terminal.wait("back again", |shown| shown.contains("s sort: worst"));

    // The source dies and comes back.
    source.kill();
    let killed = Instant::now();
    let shown = terminal
        .wait("the source is gone", |shown| shown.contains(" ACT ") && shown.contains("is not received"));
    println!("after {:?}:\n{shown}", killed.elapsed());
    let semi_sync = ["--rpl-semi-sync-master-enabled=1", "--rpl-semi-sync-master-timeout=600000"];
    source.restart(&[&["--server-id=1"], &semi_sync[..]].concat());
    terminal.wait("the source is back", |shown| !shown.contains(" ACT ") && shown.contains("receiving"));

    // The daemon dies and comes back, at another address.
    daemon.kill();
    let shown = terminal.wait("the daemon is gone", |shown| {
        shown.contains(" GONE  for ") && shown.contains("no daemon answers")
    });
    println!("{shown}");
    daemon.restart(&FLAGS);
    terminal.wait("the daemon is back", |shown| !shown.contains(" GONE ") && shown.contains("receiving"));

    // Stopped as by Ctrl-Z, it gives the terminal back, and takes it again.
    terminal.press(&["C-z"]);
    terminal.wait("the shell says so", |shown| shown.contains("Stopped") || shown.contains("suspended"));
    terminal.is_restored(&settings);
    terminal.run("fg");
    terminal.wait("it goes on", |shown| shown.contains("q quit"));
    terminal.press(&["q"]);
    terminal.wait("the shell is back", |shown| !shown.contains("q quit"));
    terminal.is_restored(&settings);

    // So it does after a signal, which the shell is told.
    for (signal, told) in [("TERM", "ended with 143"), ("INT", "$")] {
        terminal.run(&format!(
            "sh -c 'echo $$ >{0}/pid; exec {top}'; echo ended with $?",
            daemon.data_dir().display()
        ));
        terminal.wait("it runs", |shown| shown.contains("q quit"));
        let pid = std::fs::read_to_string(daemon.data_dir().join("pid")).unwrap();
        assert!(Command::new("kill").args([&format!("-{signal}"), pid.trim()]).status().unwrap().success());
        // Of a child that SIGINT has ended, a shell ends what else stands on the line.
        terminal.wait("the signal ends it", |shown| !shown.contains("q quit") && shown.contains(told));
        terminal.is_restored(&settings);
    }
    daemon.terminate();
}

#[test]
fn top_without_a_terminal_names_what_works_there() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_binlogd")).arg("top").stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("binlogd status --watch"), "{said}");
}

#[test]
fn a_status_that_is_watched_is_a_block_or_a_line_each_time() {
    let source = Server::start("mariadb-11.8", &["--server-id=1"]);
    let mut daemon = Daemon::start(&source, &FLAGS);
    daemon.wait_caught_up(&source);
    let address = daemon.admin_address();
    let watch = |flags: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
        command.args(["status", "--admin", &address, "--watch", "1"]).args(flags);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut words = watch(&[]);
    let mut json = watch(&["--json"]);
    let mut lines = BufReader::new(json.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        let status: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(status["sources"][0]["state"], "receiving");
    }
    // Without a daemon it says so and goes on.
    daemon.kill();
    let mut errors = BufReader::new(json.stderr.take().unwrap()).lines();
    let error = errors.next().unwrap().unwrap();
    assert!(error.contains("no daemon answers at"), "{error}");
    drop(lines);
    let mut text = BufReader::new(words.stdout.take().unwrap()).lines();
    let mut blocks = 0;
    while blocks < 2 {
        blocks += usize::from(text.next().unwrap().unwrap().starts_with("--- 2"));
    }
    let gone = text.map_while(Result::ok).find(|line| line.contains("no daemon answers at"));
    assert!(gone.is_some());
    for child in [&mut words, &mut json] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
