//! The source is killed, purges too early; the copy is damaged; another receiver has our `server_id`; the start takes long.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::stage::Stage;
use super::{PATIENCE, received, receives, source};
use crate::common::compare::copied_files;
use crate::common::daemon::{Daemon, Launch, binlog_end, command, url, wait_child};
use crate::common::semi_sync::SemiSync;
use crate::common::{Server, strace, wait_within};

/// Longer than the test.
const NEVER: Duration = Duration::from_secs(600);

fn new_file(server: &Server) {
    server.sql("INSERT INTO d.t (v) VALUES ('x'); FLUSH BINARY LOGS; INSERT INTO d.t (v) VALUES ('y')");
}

fn verify(daemon: &Daemon) -> i32 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    command.arg("verify").arg(daemon.data_dir()).stdin(Stdio::null()).stdout(Stdio::null());
    command.status().expect("binlogd runs").code().expect("an exit code")
}

#[test]
#[ignore = "make test-alerts"]
fn the_copy_is_damaged_the_source_is_killed_and_purges_too_early() {
    let mut server = source(&[]);
    new_file(&server);
    let mut stage = {
        let daemon = Daemon::start_from(&received(&server, ""));
        daemon.wait_caught_up(&server);
        SemiSync::enable(&server, NEVER).wait_attached();
        Stage::new(daemon, &[])
    };
    let a_year_earlier = |path: &Path| {
        let text = std::fs::read_to_string(path).expect("a file");
        let year = jiff::Timestamp::now().to_string()[..4].to_owned();
        let before: u32 = year.parse::<u32>().expect("a year") - 1;
        std::fs::write(path, text.replacen(&year, &before.to_string(), 1)).expect("a file");
    };
    // As if it had been there for a year, and was never verified.
    stage.stop();
    a_year_earlier(&stage.daemon.timeline_dir().join("timeline.toml"));
    stage.start();
    stage.prometheus.wait_fires("BinlogdNotVerified");
    assert_eq!(verify(&stage.daemon), 0);
    stage.daemon.wait_until(|source| source["verified"]["findings"] == 0, PATIENCE);
    stage.prometheus.wait_ends("BinlogdNotVerified");

    // As if no timer had run for three weeks.
    a_year_earlier(&stage.daemon.data_dir().join("default/verified.toml"));
    stage.prometheus.wait_fires("BinlogdNotVerified");
    stage.play("The copy was not verified for long", &server);
    stage.prometheus.wait_ends("BinlogdNotVerified");

    // What arrives is old, as while a copy catches up.
    let until = Instant::now() + 2 * PATIENCE;
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) && Instant::now() < until {
                server.sql("SET timestamp = UNIX_TIMESTAMP() - 900; INSERT INTO d.t (v) VALUES ('old')");
            }
        });
        stage.prometheus.wait_fires("BinlogdCopyBehind");
        stage.play("The copy is behind", &server);
        ends.store(true, Ordering::Relaxed);
    });
    stage.prometheus.wait_ends("BinlogdCopyBehind");

    let sealed = stage.daemon.timeline_dir().join("mysql-bin.000001");
    let mut bytes = std::fs::read(&sealed).expect("a sealed file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&sealed, bytes).expect("a file");
    assert_eq!(verify(&stage.daemon), 1, "what the timer finds");
    stage.prometheus.wait_fires("BinlogdDamaged");
    stage.daemon.wait_log("binlogd verify found damage in the copy", PATIENCE);
    stage.play("The copy is damaged", &server);
    stage.prometheus.wait_ends("BinlogdDamaged");

    server.kill();
    stage.prometheus.wait_fires("BinlogdSourceUnreachable");
    stage.play("The source is not received", &server);
    server.restart(&[]);
    stage.prometheus.wait_ends("BinlogdSourceUnreachable");

    server.sql("INSERT INTO d.t (v) VALUES ('x')");
    stage.daemon.wait_caught_up(&server);
    stage.stop();
    new_file(&server);
    new_file(&server);
    server.sql(&format!("PURGE BINARY LOGS TO '{}'", binlog_end(&server).0));
    stage.start();
    stage.prometheus.wait_fires("BinlogdSourceStopped");
    stage.daemon.write_config(&received(&server, "on_gap = 'record'"));
    stage.play("A source is stopped", &server);
    stage.prometheus.wait_ends("BinlogdSourceStopped");
    stage.prometheus.wait_fires("BinlogdGap");
    stage.daemon.wait_caught_up(&server);
    stage.play("The copy has a gap", &server);
    stage.prometheus.wait_ends("BinlogdGap");
    stage.daemon.wait_caught_up(&server);
    assert!(!copied_files(&stage.daemon.timeline_dir()).is_empty());
    assert_eq!(verify(&stage.daemon), 0);
}

/// MySQL serves both. The one that was first learns of the other from the source's list, and when that one is gone.
#[test]
#[ignore = "make test-alerts"]
fn two_receivers_have_one_server_id() {
    let server = source(&[]);
    let older = Daemon::start(&server, &["--server-id", "77"]);
    receives(&older);
    let daemon = Daemon::start(&server, &[]);
    receives(&daemon);
    SemiSync::enable(&server, NEVER).wait_until(|counters| counters.clients == 2);
    let mut stage = Stage::new(daemon, &["--server-id", "77"]);
    stage.others = vec![("binlogd2:9306", older.admin_address())];
    stage.restart();
    stage.prometheus.wait_fires("BinlogdServerIdRival");
    wait_within(PATIENCE, "both say so", || stage.prometheus.firing("BinlogdServerIdRival").len() == 2);
    stage.flags.clear();
    stage.play("Two receivers with one server_id", &server);
    stage.prometheus.wait_ends("BinlogdServerIdRival");
    older.wait_log("server_id: seen no more: another replica", PATIENCE);
}

/// A start that reads a file slowly, as from a bad disk: strace holds up each read.
#[test]
#[ignore = "make test-alerts"]
fn the_start_takes_long() {
    let Some(strace) = strace::find() else { return };
    let server = source(&[]);
    let daemon = Daemon::start(&server, &[]);
    receives(&daemon);
    SemiSync::enable(&server, NEVER).wait_attached();
    server.sql(&"INSERT INTO d.t (v) VALUES (REPEAT('x', 4000000));".repeat(5));
    daemon.wait_caught_up(&server);
    let mut stage = Stage::new(daemon, &[]);
    stage.stop();
    // Without the mark all of the newest file is read.
    let data_dir = stage.daemon.data_dir();
    std::fs::remove_file(data_dir.join("default/mark")).expect("a mark");
    let wrapper = [
        "-D",
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "trace=pread64",
        "-e",
        "inject=pread64:delay_enter=400000",
    ];
    let wrapper = [strace.display().to_string()].into_iter().chain(wrapper.map(str::to_owned)).collect();
    let launch = Launch { wrapper, program: env!("CARGO_BIN_EXE_binlogd").into() };
    let mut slow =
        command(&launch, &url(&server), &data_dir, &[]).stderr(Stdio::null()).spawn().expect("it starts");
    wait_within(PATIENCE, "it answers", || data_dir.join("admin.address").exists());
    stage.runs_by_itself();
    stage.prometheus.wait_fires("BinlogdStartsLong");
    stage.play("The start takes long", &server);
    stage.prometheus.wait_ends("BinlogdStartsLong");
    let pid = rustix::process::Pid::from_raw(slow.id().cast_signed()).expect("a process id");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    assert!(wait_child(&mut slow, PATIENCE).is_some_and(|status| status.success()));
}
