//! What systemd is told, and what it reads in the journal: the built binary with a real server, and a socket of the test in the
//! place of systemd's.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::daemon::{Daemon, Launch, temporary_folder, url};
use crate::common::injection::Injection;
use crate::common::skip::skip;
use crate::common::{Server, strace};

/// Longest wait for anything: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// Half of the watchdog's time is the patience with a thread.
const WATCHDOG: Duration = Duration::from_secs(4);
/// A wait for the source may last so long.
const FLAGS: [&str; 6] =
    ["--net-read-timeout", "2s", "--heartbeat-period", "500ms", "--backoff-max", "500ms"];
/// More than fall into the time of the watchdog.
const PINGS: usize = 20;
/// Four times as long as the pause between two pings.
const SILENCE: Duration = Duration::from_secs(2);
const PING: &str = "WATCHDOG=1";

/// In the place of systemd.
struct Manager {
    socket: UnixDatagram,
    /// Lines in the order in which they came.
    heard: RefCell<Vec<String>>,
}

impl Manager {
    fn listen(path: &Path) -> Manager {
        let socket = UnixDatagram::bind(path).expect("a socket");
        Manager { socket, heard: RefCell::default() }
    }

    /// Waits for one message; false when none comes in time.
    fn hear(&self, timeout: Duration) -> bool {
        let mut message = [0; 4096];
        self.socket.set_read_timeout(Some(timeout)).expect("a time");
        let Ok(len) = self.socket.recv(&mut message) else { return false };
        let text = String::from_utf8_lossy(&message[..len]).into_owned();
        self.heard.borrow_mut().extend(text.lines().map(str::to_owned));
        true
    }

    /// Forgets what has come until now.
    fn forget(&self) {
        while self.hear(Duration::from_millis(1)) {}
        self.heard.borrow_mut().clear();
    }

    /// Waits until so many lines begin with these words, and returns the last.
    #[track_caller]
    fn wait(&self, words: &str, count: usize) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found: Vec<String> =
                self.heard.borrow().iter().filter(|line| line.starts_with(words)).cloned().collect();
            if found.len() >= count {
                return found.last().cloned().unwrap_or_default();
            }
            assert!(
                Instant::now() < deadline,
                "{words} did not come {count} times: {:?}",
                self.heard.borrow()
            );
            self.hear(Duration::from_secs(1));
        }
    }
}

/// Code and body of an answer over HTTP.
fn get(daemon: &Daemon, path: &str) -> (u16, String) {
    let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(10)));
    let agent: ureq::Agent = config.http_status_as_error(false).build().into();
    let mut answer = agent.get(format!("http://{}{path}", daemon.admin_address())).call().expect("an answer");
    (answer.status().as_u16(), answer.body_mut().read_to_string().expect("text"))
}

/// The number of the thread that receives.
fn receiving_thread(daemon: &Daemon) -> u32 {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", daemon.pid())).expect("the threads of a process");
    let is_it = |task: &std::fs::DirEntry| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "recv-default")
    };
    let task = tasks.flatten().find(is_it).expect("a thread that receives");
    task.file_name().to_string_lossy().parse().expect("a number")
}

/// The folder above the data folder is read-only, as the unit and the containers have it (`ProtectSystem=strict`).
#[test]
fn it_starts_where_nothing_but_its_folder_can_be_written_to() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can mount a folder as read-only");
    }
    let folder = temporary_folder();
    let state = folder.path().join("state");
    let data_dir = state.join("binlogd");
    std::fs::create_dir_all(&data_dir).unwrap();
    let mounts = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && mount --bind \"$1/binlogd\" \"$1/binlogd\" && \
                  mount -o remount,bind,rw \"$1/binlogd\" && ! touch \"$1/file\" 2>/dev/null && shift && exec \"$@\"";
    let wrapper =
        ["unshare", "--mount", "--propagation=private", "sh", "-c", mounts, "sh", state.to_str().unwrap()];
    let launch = Launch { wrapper: wrapper.map(str::to_owned).to_vec(), ..Launch::default() };
    let mut daemon = Daemon::start_with(launch, folder, &data_dir, "mysql://any@127.0.0.1:1", &[]);
    daemon.wait_until(|source| source["state"] == "backing off", PATIENCE);
    assert!(data_dir.join("default/replica.toml").exists());
    daemon.terminate();
}

#[test]
fn systemd_is_told_how_it_goes_and_a_stuck_thread_starves_the_watchdog() {
    let Some(strace) = strace::find() else { return };
    let mut server = Server::start("mysql-9.7", &[]);
    let folder = temporary_folder();
    let manager = Manager::listen(&folder.path().join("notify"));
    // As systemd leads standard error into the journal.
    let log = File::create(folder.path().join("binlogd.log")).unwrap().metadata().unwrap();
    let wrapper = vec![
        "env".to_owned(),
        format!("NOTIFY_SOCKET={}", folder.path().join("notify").display()),
        format!("WATCHDOG_USEC={}", WATCHDOG.as_micros()),
        format!("JOURNAL_STREAM={}:{}", log.dev(), log.ino()),
    ];
    let data_dir = folder.path().join("data");
    let launch = Launch { wrapper, ..Launch::default() };
    let mut daemon = Daemon::start_with(launch, folder, &data_dir, &url(&server), &FLAGS);
    manager.wait("READY=1", 1);
    manager.wait("STATUS=1 of 1 sources receives", 1);

    // Nothing is written at the source.
    manager.forget();
    manager.wait(PING, PINGS);
    let signal = |signal| kill_process(Pid::from_raw(daemon.pid().cast_signed()).unwrap(), signal).unwrap();
    signal(Signal::HUP);
    manager.wait("RELOADING=1", 1);
    let since = manager.wait("MONOTONIC_USEC=", 1);
    assert!(since.split_once('=').unwrap().1.parse::<u64>().is_ok_and(|micros| micros > 0), "{since}");
    manager.wait("READY=1", 1);

    // The source is gone.
    server.kill();
    let status = manager.wait("STATUS=0 of 1 sources receive; default: backing off: ", 1);
    assert!(!status.contains("next attempt"), "{status}");
    manager.forget();
    manager.wait(PING, PINGS);
    assert_eq!(get(&daemon, "/livez"), (200, "ok\n".to_owned()));
    assert_eq!(get(&daemon, "/healthz").0, 503);
    server.restart(&[]);
    manager.wait("STATUS=1 of 1 sources receives", 1);

    // The thread comes round no more.
    let held = Injection::hold_up(&strace, receiving_thread(&daemon), "recvfrom");
    daemon.wait_log("<3>ERROR the thread recv-default is stuck: it has not come round for ", PATIENCE);
    daemon.wait_until(|source| source["state"] == "stuck", PATIENCE);
    daemon.wait_log("It is given up: /livez is 503", PATIENCE);
    let (code, said) = get(&daemon, "/livez");
    assert!(
        code == 503 && said.contains("recv-default") && said.contains("reading from the source"),
        "{said}"
    );
    assert_eq!(get(&daemon, "/healthz").0, 503);
    manager.wait("WATCHDOG=trigger", 1);
    manager.wait("STATUS=0 of 1 sources receive; default: stuck: the thread recv-default ", 1);
    manager.forget();
    let until = Instant::now() + SILENCE;
    while Instant::now() < until {
        manager.hear(SILENCE / 4);
    }
    assert!(
        !manager.heard.borrow().iter().any(|line| line.starts_with("WATCHDOG=")),
        "{:?}",
        manager.heard.borrow()
    );

    // It does again: nobody restarts it here.
    held.heal();
    manager.wait(PING, 2);
    manager.wait("STATUS=1 of 1 sources receives", 1);
    server.sql("CREATE DATABASE d");
    daemon.wait_caught_up(&server);
    assert_eq!(get(&daemon, "/livez").0, 200);

    daemon.terminate();
    manager.wait("STOPPING=1", 1);
    let log = daemon.log();
    let is_for_journal = |line: &str| {
        let rest = line.strip_prefix('<').and_then(|line| line.split_once('>'));
        rest.is_some_and(|(priority, rest)| {
            ["ERROR", "WARN", "INFO"]
                .iter()
                .zip(["3", "4", "6"])
                .any(|(word, number)| priority == number && rest.starts_with(word))
        })
    };
    for line in log.lines() {
        assert!(is_for_journal(line), "{line}");
    }
}
