//! The disk as it fails in practice: full, read-only after an error, without direct output; files that somebody removes
//! or that have become somebody else's. Each on a file system of its own, with the built binary and a real server under
//! load. A disk whose single calls fail is in `disk_faults.rs`; a second binlogd on the same folder in `messages.rs`.

use std::io::IoSlice;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::common::compare::{AfterCrash, assert_identical, copied_files};
use crate::common::daemon::{Daemon, Launch, command, temporary_folder, url, wait_child};
use crate::common::doctor::{doctor, line};
use crate::common::ledger::{self, Ledger, copied_entries, entries_left};
use crate::common::semi_sync::SemiSync;
use crate::common::skip::skip;
use crate::common::volume::{Kind, Volume, open_flags};
use crate::common::{Server, wait_within};
use binlog::storage::Storage;
use binlog::storage::posix::PosixStorage;
use serde_json::Value;

/// Longer than the test: a commit without acknowledgement hangs instead of passing for an acknowledged one.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Longest wait for anything: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(40);
/// Nothing is acknowledged when no client has got an answer for so long.
const STANDSTILL: Duration = Duration::from_secs(1);
const WRITERS: usize = 4;
const FLAGS: [&str; 3] = ["--backoff-max", "500ms", "--disk-warn=30%"];

/// Size of a volume, and what is left on it for the load to fill.
const VOLUME_BYTES: u64 = 160 << 20;
const LEFT_BYTES: u64 = 6 << 20;

/// An account without rights: nobody, on every Linux.
const NOBODY: u32 = 65_534;

/// Ends the load and holds the copy against the ledger and against the source.
#[track_caller]
fn assert_complete(server: &Server, semi_sync: &SemiSync<'_>, daemon: &Daemon, ledger: Ledger) {
    let committed = ledger.finish();
    daemon.wait_caught_up(server);
    copied_entries(&daemon.timeline_dir()).assert_holds(&committed, daemon, "at the end");
    assert_identical(server, daemon, AfterCrash::Identical);
    assert_eq!(daemon.timeline_dirs().len(), 1, "the history is one");
    assert_eq!(semi_sync.counters().no_tx, 0, "commits that went without acknowledgement prove nothing");
}

/// How the one source is, in the words of `/status`.
fn is(state: &'static str) -> impl Fn(&Value) -> bool {
    move |source| source["state"] == state
}

fn last_error(source: &Value) -> &str {
    source["last_error"]["message"].as_str().unwrap_or_default()
}

fn live_file(daemon: &Daemon) -> PathBuf {
    let timeline = daemon.timeline_dir();
    let live = copied_files(&timeline).pop().expect("a binary log");
    timeline.join(live)
}

fn journal(daemon: &Daemon) -> PathBuf {
    daemon.data_dir().join("default/journal")
}

/// How often the log holds these words.
fn told(daemon: &Daemon, words: &str) -> usize {
    daemon.log().matches(words).count()
}

fn goes_on_when_space_returns(server_name: &str, kind: Kind) {
    let Some(volume) = Volume::mount(kind, VOLUME_BYTES) else { return };
    let server = Server::start(server_name, &[]);
    ledger::create_table(&server);
    let semi_sync = SemiSync::enable(&server, TIMEOUT);
    let mut daemon = Daemon::start_in(&volume.path().join("data"), &url(&server), &FLAGS);
    semi_sync.wait_attached();
    assert_eq!(daemon.status()["disk"]["low"], false);
    let ledger = Ledger::start(&server, WRITERS);
    ledger.wait_progress(&ledger.committed());
    // A source counts from when its copy has caught up.
    daemon.wait_until_status(|status| status["disk"]["hours_left"].is_number(), PATIENCE);

    volume.fill_but(LEFT_BYTES);
    let source = daemon.wait_until(is("waiting for disk space"), PATIENCE);
    assert!(last_error(&source).contains("No space left on device"), "{}", last_error(&source));
    let committed = ledger.wait_standstill(STANDSTILL);
    entries_left(&daemon.timeline_dir()).assert_holds(&committed, &daemon, "on the full disk");
    let status = daemon.wait_until_status(|status| status["disk"]["low"] == true, PATIENCE);
    assert!(status["disk"]["hours_left"].as_f64().is_some_and(|hours| hours < 1.0), "{:#}", status["disk"]);
    assert_eq!(told(&daemon, "the disk is running full"), 1);
    // The doctor sees it too, and does not ask for the daemon that runs.
    let (code, out) = doctor(&url(&server), &volume.path().join("data"), &[]);
    line(&out, "error", "disk: ");
    assert!(code == 1 && !out.contains("Start binlogd now"), "{out}");

    // A restart, as a first attempt to help, changes nothing.
    daemon.kill();
    daemon.restart(&FLAGS);
    daemon.wait_until(is("waiting for disk space"), PATIENCE);
    let committed = ledger.wait_standstill(STANDSTILL);
    entries_left(&daemon.timeline_dir()).assert_holds(&committed, &daemon, "after the restart");

    volume.make_space();
    ledger.wait_progress(&committed);
    daemon.wait_until(is("receiving"), PATIENCE);
    daemon.wait_until_status(|status| status["disk"]["low"] == false, PATIENCE);
    assert_eq!((told(&daemon, "the disk is running full"), told(&daemon, "has space again")), (2, 1));
    assert_complete(&server, &semi_sync, &daemon, ledger);
}

#[test]
fn mysql_waits_for_space_on_tmpfs() {
    goes_on_when_space_returns("mysql-9.7", Kind::Tmpfs);
}

#[test]
fn mariadb_waits_for_space_on_ext4() {
    goes_on_when_space_returns("mariadb-11.8", Kind::Ext4);
}

/// The journal has its space, so a transaction can be acknowledged that the full disk has no room for. It stands in the
/// journal alone then, and a restart must neither fail for want of space nor forget it.
#[test]
fn what_only_the_journal_holds_outlasts_a_restart_on_a_full_disk() {
    let Some(volume) = Volume::mount(Kind::Tmpfs, VOLUME_BYTES) else { return };
    let server = Server::start("mysql-9.7", &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (a MEDIUMTEXT)");
    let semi_sync = SemiSync::enable(&server, TIMEOUT);
    let mut daemon = Daemon::start_in(&volume.path().join("data"), &url(&server), &FLAGS);
    semi_sync.wait_attached();
    server.sql("INSERT INTO d.t VALUES ('makes the journal needed')");
    volume.fill_but(0);
    // Returns, so it is acknowledged. Small enough that the source sends it as one, which the journal takes as one: of a larger
    // one a part may arrive first and have no room in the file.
    server.sql("INSERT INTO d.t VALUES (REPEAT('x', 14000))");
    let cannot_put_back = |source: &Value| {
        let error = last_error(source);
        is("waiting for disk space")(source)
            && error.contains("cannot write to ")
            && error.contains("the journal")
    };
    daemon.wait_until(cannot_put_back, PATIENCE);
    daemon.kill();
    daemon.restart(&FLAGS);
    daemon.wait_until(cannot_put_back, PATIENCE);
    // Between two tries; during one it says that it recovers.
    wait_within(PATIENCE, "binlogd status says what is waited for", || {
        let mut status = Command::new(env!("CARGO_BIN_EXE_binlogd"));
        status.args(["status", "--admin", &daemon.admin_address()]);
        let shown = status.output().expect("binlogd runs").stdout;
        String::from_utf8_lossy(&shown).contains("waiting for disk space")
    });

    volume.make_space();
    daemon.wait_caught_up(&server);
    assert!(told(&daemon, "were put back from the journal") >= 1, "{}", daemon.log());
    assert_identical(&server, &daemon, AfterCrash::Identical);
    assert_eq!(semi_sync.counters().no_tx, 0);
}

/// The journal needs 8 MiB at once. Without them each acknowledgement waits for a sync of the binary log.
#[test]
fn a_disk_too_small_for_the_journal_is_used_without_it() {
    let Some(volume) = Volume::mount(Kind::Tmpfs, 7 << 20) else { return };
    let server = Server::start("mysql-9.7", &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT)");
    let semi_sync = SemiSync::enable(&server, TIMEOUT);
    let daemon = Daemon::start_in(&volume.path().join("data"), &url(&server), &FLAGS);
    semi_sync.wait_attached();
    daemon.wait_log("going on without it: each acknowledgement waits", PATIENCE);
    assert!(!journal(&daemon).exists() && !journal(&daemon).with_extension("tmp").exists());
    for number in 0..20 {
        server.sql(&format!("INSERT INTO d.t VALUES ({number})"));
    }
    daemon.wait_caught_up(&server);
    assert_identical(&server, &daemon, AfterCrash::Identical);
    assert_eq!(semi_sync.counters().no_tx, 0);
    assert_eq!(daemon.source()["gtid"]["acknowledged"], daemon.source()["gtid"]["durable"]);
}

/// Where the file system refuses O_DIRECT the journal is written by O_DSYNC alone, and keeps its promise.
#[test]
fn the_journal_works_without_direct_output() {
    let Some(volume) = Volume::mount(Kind::Ramfs, VOLUME_BYTES) else { return };
    let server = Server::start("mysql-9.7", &[]);
    ledger::create_table(&server);
    let semi_sync = SemiSync::enable(&server, TIMEOUT);
    let mut daemon = Daemon::start_in(&volume.path().join("data"), &url(&server), &FLAGS);
    semi_sync.wait_attached();
    let ledger = Ledger::start(&server, WRITERS);
    ledger.wait_progress(&ledger.committed());
    let flags = open_flags(daemon.pid(), &journal(&daemon)).expect("an open journal");
    assert_eq!(flags & libc::O_DSYNC, libc::O_DSYNC, "{flags:o}");
    assert_eq!(
        flags & libc::O_DIRECT,
        0,
        "ramfs takes direct output now; which file system does not? {flags:o}"
    );
    // ramfs has no size, so there is nothing to warn about.
    assert_eq!(daemon.status()["disk"], Value::Null);

    daemon.kill();
    let committed = ledger.wait_standstill(STANDSTILL);
    entries_left(&daemon.timeline_dir()).assert_holds(&committed, &daemon, "after the kill");
    daemon.restart(&FLAGS);
    ledger.wait_progress(&committed);
    assert_complete(&server, &semi_sync, &daemon, ledger);
}

/// A disk that promises more than it has fails late: writes succeed, and the sync does not. The system then takes the bytes
/// in its page cache for written, so that a second sync succeeds without them, and reads show what the disk does not have.
#[test]
fn what_a_failed_sync_has_lost_is_not_taken_for_durable() {
    let Some(volume) = Volume::mount(Kind::Thin, VOLUME_BYTES) else { return };
    let server = Server::start("mysql-9.7", &[]);
    ledger::create_table(&server);
    let semi_sync = SemiSync::enable(&server, TIMEOUT);
    let mut daemon = Daemon::start_in(&volume.path().join("data"), &url(&server), &FLAGS);
    semi_sync.wait_attached();
    let ledger = Ledger::start(&server, WRITERS);
    ledger.wait_progress(&ledger.committed());
    volume.fill_but(LEFT_BYTES);
    daemon.wait_until(|_| told(&daemon, "cannot sync ") > 0, PATIENCE);
    // The kernel's word for it is ENOSPC or EIO, as the device says.
    daemon.wait_until(|source| source["state"] != "receiving", PATIENCE);
    let committed = ledger.wait_standstill(STANDSTILL);
    daemon.kill();
    // What is read now comes from the disk.
    volume.mount_again();
    entries_left(&daemon.timeline_dir()).assert_holds(&committed, &daemon, "on the disk");

    volume.make_space();
    daemon.restart(&FLAGS);
    ledger.wait_progress(&committed);
    let committed = ledger.finish();
    daemon.wait_caught_up(&server);
    assert_identical(&server, &daemon, AfterCrash::Identical);
    assert_eq!(semi_sync.counters().no_tx, 0);
    daemon.terminate();
    volume.mount_again();
    copied_entries(&daemon.timeline_dir()).assert_holds(&committed, &daemon, "on the disk at the end");
}

/// An error of the device makes ext4 refuse every write. That needs a check of the file system, so an operator; until
/// then binlogd stays, says so, and acknowledges nothing.
#[test]
fn a_file_system_that_turns_read_only_loses_nothing() {
    let Some(volume) = Volume::mount(Kind::Ext4, VOLUME_BYTES) else { return };
    let server = Server::start("mysql-9.7", &[]);
    ledger::create_table(&server);
    let semi_sync = SemiSync::enable(&server, TIMEOUT);
    let mut daemon = Daemon::start_in(&volume.path().join("data"), &url(&server), &FLAGS);
    semi_sync.wait_attached();
    let ledger = Ledger::start(&server, WRITERS);
    ledger.wait_progress(&ledger.committed());
    let flags = open_flags(daemon.pid(), &journal(&daemon)).expect("an open journal");
    assert_eq!(flags & libc::O_DIRECT, libc::O_DIRECT, "ext4 takes direct output: {flags:o}");

    volume.abort();
    let is_told =
        |source: &Value| is("backing off")(source) && last_error(source).contains("Read-only file system");
    daemon.wait_until(is_told, PATIENCE);
    let committed = ledger.wait_standstill(STANDSTILL);
    daemon.terminate();
    volume.mount_again();
    entries_left(&daemon.timeline_dir()).assert_holds(&committed, &daemon, "after the repair");
    daemon.restart(&FLAGS);
    ledger.wait_progress(&committed);
    assert_complete(&server, &semi_sync, &daemon, ledger);
}

/// While ext4 is stopped, a sync may be called done although its bytes are thrown away; so may that of a folder. Found by
/// the test above, once in hundreds of runs: a sync that ended just then gave the journal's records up.
#[test]
fn a_sync_that_ext4_only_says_is_done_is_not_believed() {
    // Without the second look about one round in fifteen shows it.
    for round in 0..30 {
        let Some(volume) = Volume::mount(Kind::Ext4, VOLUME_BYTES) else { return };
        let (synced, named) = (AtomicU64::new(0), AtomicU64::new(0));
        let file = volume.path().join("file");
        let name = |number: u64| volume.path().join(format!("named-{number}"));
        let grow = || -> std::io::Result<()> {
            let open = PosixStorage.create(&file)?;
            for end in (0..).step_by(300).skip(1) {
                open.write_all_at(&mut [IoSlice::new(&[1; 300])], end - 300)?;
                open.sync_data()?;
                synced.store(end, Ordering::Release);
            }
            Ok(())
        };
        let rename = || -> std::io::Result<()> {
            drop(PosixStorage.create(&name(0))?);
            for number in 1.. {
                PosixStorage.rename(&name(number - 1), &name(number))?;
                PosixStorage.sync_dir(&volume.path())?;
                named.store(number, Ordering::Release);
            }
            Ok(())
        };
        let (growing, renaming) = std::thread::scope(|scope| {
            let (growing, renaming) = (scope.spawn(grow), scope.spawn(rename));
            wait_within(PATIENCE, "both are under way", || {
                synced.load(Ordering::Acquire) > 0 && named.load(Ordering::Acquire) > 0
            });
            volume.abort();
            (growing.join().expect("no panic"), renaming.join().expect("no panic"))
        });
        for ended in [growing, renaming] {
            let error = ended.expect_err("the file system was stopped").to_string();
            assert!(
                error.contains("Read-only file system") || error.contains("Input/output error"),
                "{error}"
            );
        }
        volume.mount_again();
        let len = std::fs::metadata(&file).expect("the file").len();
        let synced = synced.into_inner();
        assert!(len >= synced, "round {round}: {synced} bytes were called durable, {len} are there");
        let named = named.into_inner();
        // The next name may have become durable as well.
        assert!(
            name(named).exists() || name(named + 1).exists(),
            "round {round}: the name {named} was called durable, and is not there"
        );
    }
}

/// Somebody removes or replaces the files that binlogd writes to: it must not go on writing into files that have no
/// name any more.
#[test]
fn files_removed_under_a_running_binlogd_are_missed() {
    let server = Server::start("mysql-9.7", &[]);
    ledger::create_table(&server);
    let semi_sync = SemiSync::enable(&server, TIMEOUT);
    let daemon = Daemon::start(&server, &FLAGS);
    semi_sync.wait_attached();
    let ledger = Ledger::start(&server, WRITERS);
    type Harm = fn(&Daemon);
    let harms: [(&str, Harm); 5] = [
        ("the live file is removed", |daemon| std::fs::remove_file(live_file(daemon)).expect("a file")),
        ("the journal is removed", |daemon| std::fs::remove_file(journal(daemon)).expect("a file")),
        ("the journal is emptied", |daemon| cut(&journal(daemon), 0)),
        ("the journal loses its second half", |daemon| cut(&journal(daemon), 4 << 20)),
        ("the live file is replaced by a copy of it", |daemon| {
            let copy = daemon.data_dir().join("copy");
            std::fs::copy(live_file(daemon), &copy).expect("a copy");
            std::fs::rename(copy, live_file(daemon)).expect("another file of that name");
        }),
    ];
    for (number, (what, harm)) in harms.iter().enumerate() {
        println!("{what}");
        ledger.wait_progress(&ledger.committed());
        // After the harm before, another one is made when it is needed.
        wait_within(PATIENCE, "the journal stands", || journal(&daemon).exists());
        harm(&daemon);
        daemon.wait_until(|_| told(&daemon, "was removed, replaced or cut") > number, PATIENCE);
        daemon.wait_until(is("receiving"), PATIENCE);
        ledger.wait_progress(&ledger.committed());
    }
    assert!(journal(&daemon).exists(), "another journal is made");
    // What the journal held of the file that was gone has no place, so it is kept beside.
    let entries = std::fs::read_dir(daemon.data_dir().join("default")).expect("a folder").flatten();
    let kept = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("journal.kept-"));
    assert!(kept.count() >= 1, "{}", daemon.log());
    assert_eq!(told(&daemon, "the journal was cut or replaced from outside"), 2, "{}", daemon.log());
    assert_complete(&server, &semi_sync, &daemon, ledger);
}

fn cut(path: &Path, len: u64) {
    let file = std::fs::File::options().write(true).open(path).expect("a file");
    file.set_len(len).expect("a shorter file");
}

/// The built binary as another account runs it; `None`, and the test is to be skipped, where that cannot be tried.
#[track_caller]
fn launch_as_nobody(folder: &Path) -> Option<Launch> {
    if !rustix::process::geteuid().is_root() {
        skip(
            "only root can run binlogd as another account, and what it does without permissions is not tested",
        );
        return None;
    }
    // The build's own folder may be closed to others.
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).expect("our folder");
    let program = folder.join("binlogd");
    std::fs::copy(env!("CARGO_BIN_EXE_binlogd"), &program).expect("a copy of the binary");
    let identity = format!("{NOBODY}");
    let wrapper = ["setpriv", "--reuid", &identity, "--regid", &identity, "--clear-groups"];
    Some(Launch { wrapper: wrapper.map(str::to_owned).to_vec(), program })
}

/// Starts it, which must fail, and returns what it said.
#[track_caller]
fn refused(launch: &Launch, data_dir: &Path) -> String {
    let mut command = command(launch, "mysql://repl@127.0.0.1:1", data_dir, &[]);
    let mut child = command.stderr(Stdio::piped()).spawn().expect("binlogd starts");
    let status = wait_child(&mut child, PATIENCE).expect("it ends by itself");
    let said = std::io::read_to_string(child.stderr.take().expect("a pipe")).expect("text");
    assert_eq!(status.code(), Some(1), "{said}");
    said.lines().find(|line| line.starts_with("error: ")).unwrap_or_default().to_owned()
}

#[test]
fn missing_permissions_are_named_at_the_start() {
    let folder = temporary_folder();
    let Some(launch) = launch_as_nobody(folder.path()) else { return };
    let data_dir = folder.path().join("data");
    let said = refused(&launch, &data_dir);
    let cannot = format!("cannot create {}: Permission denied", data_dir.display());
    assert!(said.contains("the data folder") && said.contains(&cannot), "{said}");

    // A folder that root has made by a run of its own.
    std::fs::create_dir_all(data_dir.join("default")).expect("a folder");
    std::fs::write(data_dir.join("default/lock"), "").expect("a file");
    std::fs::set_permissions(data_dir.join("default/lock"), PermissionsExt::from_mode(0o600))
        .expect("a mode");
    let said = refused(&launch, &data_dir);
    let path = data_dir.join("default/lock").display().to_string();
    assert!(said.contains(&path) && said.contains("Permission denied"), "{said}");
}

#[test]
fn permissions_taken_away_stop_it_and_given_back_let_it_go_on() {
    let folder = temporary_folder();
    let Some(launch) = launch_as_nobody(folder.path()) else { return };
    let data_dir = folder.path().join("data");
    std::fs::create_dir(&data_dir).expect("a folder");
    chown(&data_dir, Some(NOBODY), Some(NOBODY)).expect("another owner");
    let server = Server::start("mysql-9.7", &[]);
    ledger::create_table(&server);
    let semi_sync = SemiSync::enable(&server, TIMEOUT);
    let daemon = Daemon::start_with(launch, folder, &data_dir, &url(&server), &FLAGS);
    semi_sync.wait_attached();
    let ledger = Ledger::start(&server, WRITERS);
    ledger.wait_progress(&ledger.committed());

    let timeline = daemon.timeline_dir();
    std::fs::set_permissions(&timeline, PermissionsExt::from_mode(0o500)).expect("our folder");
    server.sql("FLUSH BINARY LOGS");
    let is_told =
        |source: &Value| is("backing off")(source) && last_error(source).contains("Permission denied");
    let source = daemon.wait_until(is_told, PATIENCE);
    assert!(last_error(&source).contains("cannot begin"), "{}", last_error(&source));
    let committed = ledger.wait_standstill(STANDSTILL);
    entries_left(&timeline).assert_holds(&committed, &daemon, "without permissions");
    std::fs::set_permissions(&timeline, PermissionsExt::from_mode(0o700)).expect("our folder");
    ledger.wait_progress(&committed);
    assert_complete(&server, &semi_sync, &daemon, ledger);
}

/// `disk_warn` without a source that answers: below it at the start, and not any more after a reload.
#[test]
fn the_watermark_follows_the_configuration() {
    let folder = temporary_folder();
    let config = folder.path().join("binlogd.toml");
    let write = |disk_warn: &str| {
        let text = format!(
            "data_dir = \"data\"\ndisk_warn = \"{disk_warn}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
             [[source]]\nhosts = [\"127.0.0.1:1\"]\nuser = \"repl\"\n"
        );
        std::fs::write(&config, text).expect("a configuration");
    };
    write("1024TiB");
    let log = std::fs::File::create(folder.path().join("binlogd.log")).expect("a log file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    command.arg("run").arg("--config").arg(&config).env("NO_COLOR", "1");
    let child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("binlogd starts");
    let mut child = KilledAtTheEnd(child);
    let wait = |what: &str, wanted: &dyn Fn(&str, &str) -> bool| {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let log = std::fs::read_to_string(folder.path().join("binlogd.log")).expect("a log");
            let (json, text) = (status(folder.path(), &["--json"]), status(folder.path(), &[]));
            if wanted(&json, &(text + &log)) {
                return;
            }
            assert!(Instant::now() < deadline, "{what}: not so:\n{json}\n{log}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    wait("at the start", &|json, text| {
        json.contains("\"low\": true")
            && text.contains("disk is low: ")
            && text.contains("the disk is running full: ")
            && text.contains("disk_warn=1024TiB")
    });
    write("1MiB");
    let pid = rustix::process::Pid::from_raw(child.0.id().cast_signed()).expect("a process id");
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).expect("a child of ours");
    wait("after the reload", &|json, text| {
        json.contains("\"low\": false")
            && json.contains("\"warn_below_bytes\": 1048576")
            && !text.contains("disk is low")
            && text.contains("the disk has space again: ")
    });
    let log = std::fs::read_to_string(folder.path().join("binlogd.log")).expect("a log");
    assert!(!log.contains("only after a restart"), "{log}");
    assert_eq!(log.matches("the disk is running full").count(), 1, "{log}");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a child of ours");
    assert!(wait_child(&mut child.0, PATIENCE).is_some_and(|status| status.success()));
}

/// `binlogd status` of a folder's configuration.
fn status(folder: &Path, flags: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    command.arg("status").arg("--config").arg(folder.join("binlogd.toml")).args(flags);
    let output = command.stdin(Stdio::null()).output().expect("binlogd runs");
    String::from_utf8(output.stdout).expect("text")
}

/// A failed test leaves no process behind.
struct KilledAtTheEnd(std::process::Child);

impl Drop for KilledAtTheEnd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
