//! A source that means harm, or is no MySQL server at all: garbage, packets that never end, sets and answers without measure.
//! The real binary must stay small, say clearly who did what, wait between its attempts, end when it is asked to, and never
//! crash. What such a source sends as a stream is in `hostile_streams.rs`.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::peer::{
    EOF, FLAGS, LARGE_MIB, Listener, NO_PROTOCOL, PATIENCE, Peer, SMALL_MIB, assert_arrived, assert_unharmed,
    cpu_ticks, garbage, has_failed_twice, peak_memory_mib, scripted, withstands,
};
use crate::common::archive::reason;
use crate::common::daemon::Daemon;
use crate::common::seed;
use crate::common::workload::Random;
use codec::packet::append_message;
use scripted_source::{LogOptions, Script, ScriptedSource, SemiSync, SourceLog};

#[test]
fn garbage_in_the_place_of_a_greeting() {
    let mut random = Random::new(seed());
    let bytes = garbage(&mut random, 1 << 16);
    let endless = bytes.clone();
    withstands("garbage", NO_PROTOCOL, SMALL_MIB, move |peer| {
        let _ = peer.socket.write_all(&bytes);
    });
    withstands("endless garbage", NO_PROTOCOL, SMALL_MIB, move |peer| peer.repeat(&endless));
    let http = b"HTTP/1.1 400 Bad Request\r\n\r\n";
    withstands("another protocol", NO_PROTOCOL, SMALL_MIB, move |peer| peer.repeat(http));
}

#[test]
fn greetings_without_an_end() {
    withstands("packets that go on and on", "the message is longer", SMALL_MIB, |peer| {
        // Each packet says that another one continues it.
        let mut sequence = 0_u8;
        let body = vec![b'x'; 0xFF_FFFF];
        while peer.socket.write_all(&[0xFF, 0xFF, 0xFF, sequence]).is_ok() {
            let _ = peer.socket.write_all(&body);
            sequence = sequence.wrapping_add(1);
        }
    });
    withstands("an error of 12 MiB", "the server reports: xxx", SMALL_MIB, |peer| {
        peer.say(0, &[b"\xFF\x10\x04", &vec![b'x'; 12 << 20][..]].concat());
    });
    withstands("an endless login", "while authenticating", SMALL_MIB, |peer| {
        peer.greet();
        let challenge =
            [&b"\xFEmysql_native_password\0abcdefghijklmnopqrst\0"[..], &vec![0; 8 << 20]].concat();
        let mut sequence = 2_u8;
        while peer.say(sequence, &challenge) && peer.hear().is_some() {
            sequence = sequence.wrapping_add(2);
        }
    });
}

#[test]
fn silence_and_drips_cost_no_time_of_the_processor() {
    for (what, dripping) in [("silence", false), ("a byte at a time", true)] {
        let peer = Listener::start(move |peer| {
            peer.admit();
            peer.hear();
            if !dripping {
                return peer.linger();
            }
            // The answer to the first question never ends, and never pauses for long.
            let rows = endless_rows(&[b'x'; 200]);
            for byte in rows.iter().cycle() {
                if peer.socket.write_all(&[*byte]).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let daemon = Daemon::start_on(&format!("mysql://any@127.0.0.1:{}", peer.port), &FLAGS);
        let (began, ticks) = (Instant::now(), cpu_ticks(daemon.pid()));
        daemon.wait_until(has_failed_twice, PATIENCE);
        let share = (cpu_ticks(daemon.pid()) - ticks) as f64 * 10.0 / began.elapsed().as_millis() as f64;
        assert!(share < 0.5, "{what}: {:.0} % of a processor", share * 100.0);
        assert_unharmed(daemon, what, peer.port, "no answer within 2s", SMALL_MIB);
    }
}

/// A source that says nothing, before the login or after it, does not hold up the end of the process.
#[test]
fn silence_does_not_outlast_a_signal() {
    for (what, greets) in [("no greeting", false), ("no answer", true)] {
        let waits = Arc::new(AtomicBool::new(false));
        let reached = waits.clone();
        let peer = Listener::start(move |peer| {
            if greets {
                peer.admit();
                peer.hear();
            }
            reached.store(true, Ordering::Release);
            peer.linger();
        });
        let url = format!("mysql://any@127.0.0.1:{}", peer.port);
        let mut daemon = Daemon::start_on(&url, &["--connect-timeout=600s", "--tls=disabled"]);
        daemon.wait_until(|_| waits.load(Ordering::Acquire), PATIENCE);
        println!("{what}");
        daemon.terminate();
    }
}

/// A result set's beginning with one column, and one row; further ones follow by repetition.
fn endless_rows(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut sequence = append_message(&mut out, 1, &[1]);
    let column = b"\x03def\0\0\0\x01a\0\x0C\x3F\0\x01\0\0\0\x08\x81\0\0\0\0";
    sequence = append_message(&mut out, sequence, column);
    sequence = append_message(&mut out, sequence, EOF);
    append_message(&mut out, sequence, value);
    out
}

/// Answers the first question with these messages and then with the last of them for ever.
fn endless_answer(messages: Vec<Vec<u8>>) -> impl Fn(&mut Peer) + Send + Sync + 'static {
    move |peer| {
        peer.admit();
        peer.hear();
        let mut sequence = 1_u8;
        for message in messages.iter().chain(std::iter::repeat(messages.last().expect("a message"))) {
            if !peer.say(sequence, message) {
                return;
            }
            sequence = sequence.wrapping_add(1);
        }
    }
}

#[test]
fn answers_without_measure() {
    let column = b"\x03def\0\0\0\x01a\0\x0C\x3F\0\x01\0\0\0\x08\x81\0\0\0\0".to_vec();
    let head = |row: Vec<u8>| vec![vec![1], column.clone(), EOF.to_vec(), row];
    let large_row = [&b"\xFD"[..], &(1_u32 << 20).to_le_bytes()[..3], &vec![b'x'; 1 << 20][..]].concat();
    withstands("rows of 1 MiB", "result set is larger", LARGE_MIB, endless_answer(head(large_row)));
    let huge_column =
        [&b"\x03def\0\0\0\xFD"[..], &(15_u32 << 20).to_le_bytes()[..3], &vec![b'x'; 15 << 20][..]].concat();
    let columns = vec![b"\xFC\x00\x10".to_vec(), huge_column];
    // 4096 definitions of 15 MiB each: only the time ends them.
    withstands("columns of 15 MiB", "while running a query", LARGE_MIB, endless_answer(columns));
    let lie = b"\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F".to_vec();
    withstands("2^63 columns", "columns, more than", SMALL_MIB, endless_answer(vec![lie]));
    let long_value = head(b"\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7Fx".to_vec());
    withstands("a value of 2^63 bytes", "a value of the row", SMALL_MIB, endless_answer(long_value));
    let local_file = b"\xFB/etc/passwd".to_vec();
    withstands("a wish for a file", "asked for a local file", SMALL_MIB, endless_answer(vec![local_file]));
}

#[test]
fn identities_without_measure() {
    let huge = "x".repeat(8 << 20);
    for (variable, value, words) in [
        ("server_uuid", huge.as_str(), "not a UUID"),
        ("server_uuid", "../../../../tmp/elsewhere", "not a UUID"),
    ] {
        let (source, daemon) =
            scripted(|script| drop(script.variables.insert(variable.to_owned(), value.to_owned())));
        daemon.wait_until(has_failed_twice, PATIENCE);
        assert_unharmed(daemon, variable, source.port(), words, SMALL_MIB);
    }
    // Taken, and cut where it is shown and stored.
    let (source, daemon) = scripted(|script| drop(script.variables.insert("version".to_owned(), huge)));
    assert_arrived("a version of 8 MiB", &source, &daemon);
    let shown = daemon.source()["server_version"].as_str().expect("a text").len();
    assert!(shown <= 128, "a version of {shown} bytes is shown");
    let stored = std::fs::metadata(daemon.timeline_dir().join("timeline.toml")).expect("a description").len();
    assert!(stored < 4_096, "a description of {stored} bytes");
}

/// Read as the empty set, it would make a successor that has everything look like a stranger that has nothing.
#[test]
fn a_gtid_set_that_cannot_be_read_is_not_the_empty_one() {
    const SUCCESSOR: &str = "5ccce550-71ca-11e1-9e33-c80aa9429562";
    let (first, mut daemon) = scripted(|_| {});
    assert_arrived("the first source", &first, &daemon);
    let (data_dir, log) = (daemon.data_dir(), first.log(SourceLog::clone));
    let executed = log.executed();
    daemon.terminate();
    let successor = |variables: &[(&str, &str)]| {
        let mut script = Script { semi_sync: SemiSync::Absent, ..Script::new(log.clone()) };
        for (name, value) in [("server_uuid", SUCCESSOR)].iter().chain(variables) {
            script.variables.insert((*name).to_owned(), (*value).to_owned());
        }
        let source = ScriptedSource::start(script).expect("a free port");
        let url = format!("mysql://any@127.0.0.1:{}", source.port());
        let flags = [&FLAGS[..], &["--on-stranger=follow"]].concat();
        let daemon = Daemon::start_in(&data_dir, &url, &flags);
        (source, daemon)
    };
    for (variable, value) in [
        ("gtid_executed", format!("{executed}x")),
        ("gtid_executed", "everything".to_owned()),
        ("gtid_purged", "0-1-100".to_owned()),
        ("server_id", "many".to_owned()),
    ] {
        let (source, daemon) = successor(&[(variable, &value)]);
        daemon.wait_until(has_failed_twice, PATIENCE);
        assert_eq!(daemon.timeline_dirs().len(), 1, "{variable}");
        assert_unharmed(
            daemon,
            variable,
            source.port(),
            &format!("@@{variable} is \"{value}\", not"),
            SMALL_MIB,
        );
    }
    // The same server with the set that it has.
    let (source, daemon) = successor(&[]);
    daemon.wait_until(|source| source["state"] == "receiving", PATIENCE);
    let timelines = daemon.timeline_dirs();
    assert_eq!((timelines.len(), reason(&timelines[1])), (2, "source-changed".to_owned()));
    assert_arrived("the successor", &source, &daemon);
}

/// MySQL counts its versions by years now: a number above 9 is no MariaDB.
#[test]
fn a_version_is_not_taken_for_another_server() {
    for version in ["26.7.0", "28.4.1-lts", "26.7", "8.4.0-4.1-percona", "8.0.mysql_aurora.3.04.0", "x"] {
        let (source, daemon) = scripted(|script| {
            let options = LogOptions { server_version: version.to_owned(), ..LogOptions::default() };
            script.log = SourceLog::new(options);
            script.log.group(2, 100);
        });
        assert_arrived(version, &source, &daemon);
        let status = daemon.source();
        assert_eq!(status["server_version"], version);
        let uuid = status["server_uuid"].as_str().expect("a text");
        assert!(!uuid.starts_with("mariadb"), "{version} is {uuid}");
        assert_eq!(status["gtid"]["durable"], source.log(SourceLog::executed), "{version}");
    }
}

/// As many intervals as a message of the protocol holds: allowed, and more than any server has.
#[test]
fn gtid_sets_without_measure() {
    let intervals: String = (0..1_500_000_u64).map(|number| format!(":{}", 1_000_000 + number * 2)).collect();
    let set = format!("3e11fa47-71ca-11e1-9e33-c80aa9429562{intervals}");
    assert!(set.len() > 11 << 20);
    let (source, daemon) = scripted(|script| {
        script.variables.insert("gtid_executed".to_owned(), set);
    });
    assert_arrived("12 MiB of GTIDs", &source, &daemon);
    let peak = peak_memory_mib(daemon.pid());
    println!("12 MiB of GTIDs: {peak} MiB at most");
    assert!(peak <= LARGE_MIB, "{peak} MiB");

    let many: String =
        (0..50_000_u64).map(|number| format!("{number:08x}-71ca-11e1-9e33-c80aa9429562:1,")).collect();
    let (source, daemon) = scripted(|script| drop(script.variables.insert("gtid_executed".to_owned(), many)));
    assert_arrived("50 000 UUIDs", &source, &daemon);
    let peak = peak_memory_mib(daemon.pid());
    assert!(peak <= LARGE_MIB, "{peak} MiB");
}
