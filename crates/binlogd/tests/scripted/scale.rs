//! Many sources in one process: descriptors, the start, a copy that cannot be opened.

use crate::configured::{Daemon, PATIENCE, is};
use codec::event::{BINLOG_MAGIC, EventType, HEADER_LEN};
use rustix::process::{Pid, Signal, kill_process};
use scripted_source::{LogOptions, Script, ScriptedSource, SourceLog};
use serde_json::Value;
use std::fs::File;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Bytes of one event of a file that takes long to check.
const LONG_EVENT: u32 = 1 << 30;
/// How many of them: a check of 200 GiB of holes does not end within a test.
const LONG_EVENTS: u64 = 200;

/// A log with one transaction that wants to be acknowledged.
pub(crate) fn log() -> SourceLog {
    let mut log = SourceLog::new(LogOptions::default());
    log.transaction(100);
    log.flag_last();
    log
}

/// The timeline of a source whose live file takes long to check: each event is a hole.
fn make_long_copy(source: &Path) {
    let timeline = source.join("0001-abababab-abab-abab-abab-abababababab");
    std::fs::create_dir_all(&timeline).unwrap();
    std::fs::write(
        timeline.join("timeline.toml"),
        "began_at = \"2026-01-02T03:04:05Z\"\nreason = \"first\"\nserver_uuid = \"abababab-abab-abab-abab-abababababab\"\n\
         server_version = \"9.7.0\"\nserver_kind = \"mysql\"\nfirst_file = \"mysql-bin.000001\"\n",
    )
    .unwrap();
    std::fs::write(timeline.join("binlog.index"), "mysql-bin.000001\n").unwrap();
    let begun = log().files()[0].bytes.clone();
    assert!(begun.starts_with(&BINLOG_MAGIC));
    let mut file = File::create(timeline.join("mysql-bin.000001")).unwrap();
    file.write_all(&begun).unwrap();
    let zeros = crc_of_zeros(u64::from(LONG_EVENT) - HEADER_LEN as u64 - 4);
    let mut at = begun.len() as u64;
    for _ in 0..LONG_EVENTS {
        let end = at + u64::from(LONG_EVENT);
        let mut header = 1_700_000_000u32.to_le_bytes().to_vec();
        header.push(EventType::IGNORABLE.0);
        header.extend_from_slice(&1u32.to_le_bytes());
        header.extend_from_slice(&LONG_EVENT.to_le_bytes());
        header.extend_from_slice(&(end as u32).to_le_bytes());
        header.extend_from_slice(&[0, 0]);
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&header);
        checksum.combine(&zeros);
        file.write_all_at(&header, at).unwrap();
        file.write_all_at(&checksum.finalize().to_le_bytes(), end - 4).unwrap();
        at = end;
    }
}

fn crc_of_zeros(len: u64) -> crc32fast::Hasher {
    let block = vec![0; 1 << 20];
    let mut hasher = crc32fast::Hasher::new();
    let mut left = len;
    while left > 0 {
        let part = left.min(block.len() as u64);
        hasher.update(&block[..part as usize]);
        left -= part;
    }
    hasher
}

/// One source has a live file that takes long, one has a description of garbage, one is as it should be.
#[test]
fn each_source_starts_for_itself() {
    let (long, good) = (ScriptedSource::start(Script::new(log())), ScriptedSource::start(Script::new(log())));
    let (long, good) = (long.unwrap(), good.unwrap());
    let named = |name: &str, port| (name.to_owned(), port);
    let mut daemon = Daemon::configured(&[
        named("long", long.port()),
        named("garbage", long.port()),
        named("good", good.port()),
    ]);
    make_long_copy(&daemon.data_dir().join("long"));
    let bad_copy = daemon.data_dir().join("garbage/0001-abababab-abab-abab-abab-abababababab");
    std::fs::create_dir_all(&bad_copy).unwrap();
    std::fs::write(bad_copy.join("timeline.toml"), "began_at = garbage").unwrap();
    daemon.start();

    let end = good.log(SourceLog::end);
    assert!(good.wait_for_acknowledgement(&end, PATIENCE), "{}", daemon.log());
    let sources = daemon.wait_until("one recovers, one stops, one receives", |sources| {
        sources.len() == 3
            && sources[0]["recovery"]["checked_bytes"].as_u64() > Some(0)
            && is(&sources[1], "stopped")
            && is(&sources[2], "receiving")
    });
    let (long, garbage) = (&sources[0], &sources[1]);
    assert!(is(long, "recovering"), "{long:#}");
    let (checked, of) = (&long["recovery"]["checked_bytes"], long["recovery"]["of_bytes"].as_u64().unwrap());
    assert!(checked.as_u64() < Some(of) && of > LONG_EVENTS * u64::from(LONG_EVENT), "{checked} of {of}");
    let said = garbage["state_detail"].as_str().unwrap();
    assert!(said.contains("timeline.toml"), "{said}");
    assert!(garbage["last_error"]["message"].as_str().unwrap().contains("timeline.toml"));
    let (code, body) = daemon.get("/healthz").unwrap();
    assert_eq!(code, 503);
    assert!(body.contains("long: recovering: checked ") && body.contains("garbage: stopped: "), "{body}");
    assert!(!body.contains("good"), "{body}");
    let told = daemon.log();
    assert!(told.contains("ERROR") && told.contains("other sources are not concerned"), "{told}");

    // Put right and told so, it goes on. The check of the other one goes on too, and gives way to a stop.
    std::fs::remove_dir_all(&bad_copy).unwrap();
    kill_process(Pid::from_raw(daemon.pid() as i32).unwrap(), Signal::HUP).unwrap();
    daemon.wait_until("the repaired one receives", |sources| {
        sources.len() == 3 && is(&sources[1], "receiving") && is(&sources[0], "recovering")
    });
    daemon.terminate();
}

/// 33 sources fit a limit of 300 descriptors, and only they are started; all of them begin a file at once.
#[test]
fn descriptors_are_raised_counted_and_kept_for_the_admin_address() {
    let sources: Vec<ScriptedSource> =
        (0..41).map(|_| ScriptedSource::start(Script::new(log())).unwrap()).collect();
    let named: Vec<_> =
        sources.iter().enumerate().map(|(n, source)| (format!("s{n:02}"), source.port())).collect();
    let mut daemon = Daemon::configured(&named);
    daemon.wrapper = ["prlimit", "--nofile=100:300", "--"].map(str::to_owned).to_vec();
    daemon.start();
    let served = |sources: &[Value]| sources.iter().filter(|source| is(source, "receiving")).count();
    let found = daemon.wait_until("33 receive", |sources| served(sources) == 33);
    for left_out in &found[33..] {
        assert!(is(left_out, "stopped"), "{left_out:#}");
        let said = left_out["state_detail"].as_str().unwrap();
        assert!(
            said.contains("41 sources need 351 file descriptors") && said.contains("300 files"),
            "{said}"
        );
    }
    assert!(daemon.log().contains("only the first 33 sources can be received"), "{}", daemon.log());

    // Connections that say nothing take what is kept for them, and no more.
    let address = daemon.address().unwrap();
    let _silent: Vec<_> = (0..30).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let held = std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap().count();
    println!("{held} descriptors for 33 sources and 30 connections to the admin address");
    for source in &sources {
        source.append(|log| {
            log.rotate();
            log.transaction(100);
            log.flag_last();
        });
    }
    for source in &sources[..33] {
        let end = source.log(SourceLog::end);
        assert!(source.wait_for_acknowledgement(&end, PATIENCE), "{}", daemon.log());
    }
    let found = daemon.wait_until("they still receive", |sources| served(sources) == 33);
    for source in &found[..33] {
        assert_eq!(source["counters"]["reconnects"], 0, "{source:#}\n{}", daemon.log());
    }
    daemon.terminate();
}

#[test]
fn a_check_of_the_configuration_counts_descriptors() {
    let named: Vec<_> = (0..40).map(|n| (format!("s{n}"), 1)).collect();
    let daemon = Daemon::configured(&named);
    let check = |limit: &str| {
        let mut command = Command::new("prlimit");
        command.args([limit, "--", env!("CARGO_BIN_EXE_binlogd"), "config", "check", "binlogd.toml"]);
        let output = command.current_dir(daemon.folder.path()).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let said = check("--nofile=100:300");
    assert!(said.contains("warning: ") && said.contains("40 sources need 344 file descriptors"), "{said}");
    assert_eq!(check("--nofile=100:344"), "");
}

/// How long commits wait after a start: of 40 sources with 24 MiB in their live files, and of one with 1 GiB; after a kill and
/// after a stop. `cargo test -p binlogd --test scripted scale:: -- --ignored --nocapture`, with `BINLOGD_BINARY` for
/// another build.
#[test]
#[ignore = "a measurement: a minute and 3 GiB of memory and disk"]
fn time_to_the_first_acknowledgement() {
    for (count, bytes) in [(40, 24 << 20), (1, 1 << 30)] {
        let mut log = SourceLog::new(LogOptions { rotate_after: 4 << 30, ..LogOptions::default() });
        while log.end().position < bytes {
            log.transaction(16 << 10);
        }
        log.flag_last();
        let sources: Vec<_> =
            (0..count).map(|_| ScriptedSource::start(Script::new(log.clone())).unwrap()).collect();
        let named: Vec<_> =
            sources.iter().enumerate().map(|(n, source)| (format!("s{n:02}"), source.port())).collect();
        let mut daemon = Daemon::configured(&named);
        daemon.start();
        wait_for_the_end(&sources, &daemon);
        for kill in [true, false] {
            // Long enough that what was received has been synced in the background, as that of a running source has.
            std::thread::sleep(Duration::from_secs(3));
            if kill {
                let mut child = daemon.child.take().unwrap();
                child.kill().unwrap();
                child.wait().unwrap();
            } else {
                daemon.terminate();
            }
            for source in &sources {
                source.append(|log| {
                    log.transaction(100);
                    log.flag_last();
                });
            }
            let began = Instant::now();
            daemon.start();
            let first = loop {
                let acknowledged = |source: &&ScriptedSource| {
                    source.wait_for_acknowledgement(&source.log(SourceLog::end), Duration::from_millis(1))
                };
                if sources.iter().any(|source| acknowledged(&source)) {
                    break began.elapsed();
                }
                assert!(began.elapsed() < 2 * PATIENCE, "{}", daemon.log());
            };
            wait_for_the_end(&sources, &daemon);
            let (all, after) = (began.elapsed(), if kill { "a kill" } else { "a stop" });
            let process = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
            let memory = process.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
            let size = bytes >> 20;
            println!(
                "{count} sources of {size} MiB after {after}: first {first:.2?}, all {all:.2?}; {memory}"
            );
        }
    }
}

#[track_caller]
fn wait_for_the_end(sources: &[ScriptedSource], daemon: &Daemon) {
    for source in sources {
        let end = source.log(SourceLog::end);
        assert!(source.wait_for_acknowledgement(&end, 4 * PATIENCE), "{}", daemon.log());
    }
}
