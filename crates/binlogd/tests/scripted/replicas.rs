//! Acknowledgements that wait for receivers further down (`ack_after_replicas`): nothing is acknowledged before they have it, in
//! so many words or by the place at which a session begins; and readers whose acknowledgements make no sense.

use crate::common::daemon::Daemon;
use crate::common::readers::serve_port;
use codec::packet::{command, semi_sync_acknowledgement};
use scripted_source::{LogOptions, Place, Script, ScriptedSource, SourceLog};
use serde_json::Value;
use std::time::Duration;
use wire::{ConnectOptions, Connection, DumpStream, TlsMode, TlsOptions};

/// Longest wait for anything: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

const SERVED: [&str; 6] = [
    "--serve=127.0.0.1:0",
    "--serve-auto-generate-certs=false",
    "--backoff-min=10ms",
    "--backoff-max=50ms",
    "--heartbeat-period=500ms",
    "--net-read-timeout=3s",
];

/// Three files; each group asks for an acknowledgement.
fn sample() -> SourceLog {
    let mut log = SourceLog::default();
    for _ in 0..2 {
        log.group(2, 300);
        log.group(1, 3_000);
        log.rotate();
    }
    for _ in 0..3 {
        log.group(2, 10);
    }
    log
}

fn receiver_of(source: &ScriptedSource, flags: &[&str]) -> Daemon {
    let url = format!("mysql://any:secret@127.0.0.1:{}", source.port());
    Daemon::start_on(&url, &[&SERVED[..], flags].concat())
}

/// A binlogd behind that one.
fn receiver_behind(daemon: &Daemon, flags: &[&str]) -> Daemon {
    let url = format!("mysql://any:secret@127.0.0.1:{}", serve_port(daemon));
    Daemon::start_on(&url, &[&SERVED[..], flags].concat())
}

fn has_durable(end: &Place) -> impl Fn(&Value) -> bool {
    let end = end.clone();
    move |status| {
        let durable = &status["positions"]["durable"];
        durable["file"] == *end.file && durable["position"] == end.position
    }
}

#[test]
fn a_session_begins_at_no_place_that_no_receiver_has_confirmed() {
    let source = ScriptedSource::start(Script::new(sample())).unwrap();
    let mut first = receiver_of(&source, &["--ack-after-replicas=1"]);
    let end = source.log(SourceLog::end);
    first.wait_until(has_durable(&end), PATIENCE);
    let nothing_is_acknowledged = |when: &str| {
        let places = (source.acknowledgements(), source.implied_acknowledgements());
        assert!(places.0.is_empty() && places.1.is_empty(), "{when}: {places:?}");
    };
    nothing_is_acknowledged("at first");
    let dumps = source.dumps();
    source.disconnect();
    assert!(source.wait_for_dumps(dumps + 1, PATIENCE));
    first.wait_until(|status| status["state"] == "receiving", PATIENCE);
    nothing_is_acknowledged("after a reconnection");
    let dumps = source.dumps();
    first.kill();
    first.restart(&[&SERVED[..], &["--ack-after-replicas=1"]].concat());
    assert!(source.wait_for_dumps(dumps + 1, PATIENCE));
    first.wait_until(|status| status["state"] == "receiving", PATIENCE);
    let end = source.append(|log| {
        log.group(1, 100);
        log.end()
    });
    first.wait_until(has_durable(&end), PATIENCE);
    nothing_is_acknowledged("after a restart");

    let second = receiver_behind(&first, &[]);
    assert!(source.wait_for_acknowledgement(&end, PATIENCE), "{}\n{}", first.log(), second.log());
    second.wait_until(has_durable(&end), PATIENCE);
    // Now the end of the copy may be where a session begins.
    let (dumps, copied) = (source.dumps(), source.implied_acknowledgements().len());
    source.disconnect();
    assert!(source.wait_for_dumps(dumps + 1, PATIENCE));
    first.wait_until(|status| status["state"] == "receiving", PATIENCE);
    let implied = &source.implied_acknowledgements()[copied..];
    assert!(!implied.is_empty(), "the session begins with the last transaction again");
    for file in source.log(|log| log.files().to_vec()) {
        for copy in [&first, &second] {
            let copied =
                std::fs::read(copy.timeline_dir().join(&file.name)).expect("the copy has every file");
            assert!(copied == file.bytes, "the copy of {} differs", file.name);
        }
    }
}

/// The source may have begun its logs anew meanwhile, and to those an old place would acknowledge new transactions.
#[test]
fn what_was_held_for_long_is_acknowledged_after_the_place_was_compared_again() {
    let source = ScriptedSource::start(Script::new(sample())).unwrap();
    let first = receiver_of(&source, &["--ack-after-replicas=1", "--ack-timeout=2s"]);
    first.wait_until(|status| status["state"] == "waiting for replicas", PATIENCE);
    let dumps = source.dumps();
    let _second = receiver_behind(&first, &[]);
    let end = source.log(SourceLog::end);
    assert!(source.wait_for_acknowledgement(&end, PATIENCE), "{}", first.log());
    assert!(
        source.dumps() > dumps && first.log().contains("a new session compares the place"),
        "{}",
        first.log()
    );
    first.wait_until(|status| status["state"] == "receiving", PATIENCE);
    let acknowledged: Vec<Place> = source.acknowledgements().into_iter().map(|it| it.place).collect();
    assert_eq!(acknowledged, [end], "nothing was told by the session that had waited");
}

#[test]
fn so_many_different_receivers_must_have_it() {
    let source = ScriptedSource::start(Script::new(sample())).unwrap();
    let first = receiver_of(&source, &["--ack-after-replicas=2", "--ack-timeout=300ms"]);
    let mut one = receiver_behind(&first, &[]);
    let end = source.log(SourceLog::end);
    one.wait_until(has_durable(&end), PATIENCE);
    let status = first.wait_until(|status| status["state"] == "waiting for replicas", PATIENCE);
    assert!(status["state_detail"].as_str().unwrap().contains("of 2 receivers have confirmed"), "{status}");
    first.wait_until(|status| status["ack_replicas"]["confirmed"] == 1, PATIENCE);
    // The same one once more is no second one.
    one.kill();
    one.restart(&SERVED);
    let url = format!("mysql://any:secret@127.0.0.1:{}", serve_port(&first));
    first.wait_until_status(|status| status["serve"]["readers"][0]["confirmed"].is_object(), PATIENCE);
    assert!(source.acknowledgements().is_empty() && source.implied_acknowledgements().is_empty());
    let _two = Daemon::start_on(&url, &SERVED);
    assert!(source.wait_for_acknowledgement(&end, PATIENCE), "{}", first.log());
    let status = first.wait_until(|status| status["state"] == "receiving", PATIENCE);
    assert_eq!(
        (&status["ack_replicas"]["confirmed"], &status["ack_replicas"]["waiting"]),
        (&2.into(), &false.into())
    );
    assert_eq!(status["counters"]["acknowledged_alone"], 0);
}

/// The files of the new history have the names of the old one's, and its place lies before what was confirmed of that.
#[test]
fn what_was_confirmed_of_an_older_timeline_counts_for_nothing_on_the_new_one() {
    let source = ScriptedSource::start(Script::new(sample())).unwrap();
    let first = receiver_of(&source, &["--ack-after-replicas=1"]);
    let mut second = receiver_behind(&first, &[]);
    assert!(source.wait_for_acknowledgement(&source.log(SourceLog::end), PATIENCE), "{}", first.log());
    second.kill();
    let before = (source.acknowledgements().len(), source.implied_acknowledgements().len());
    let mut new = SourceLog::new(LogOptions { timestamp: 1_800_000_000, ..LogOptions::default() });
    for _ in 0..2 {
        new.group(1, 100);
        new.rotate();
    }
    new.group(1, 10);
    source.replace_log(new);
    let end = source.log(SourceLog::end);
    first.wait_until(|status| first.timeline_dirs().len() == 2 && has_durable(&end)(status), PATIENCE);
    assert_eq!(
        (source.acknowledgements().len(), source.implied_acknowledgements().len()),
        before,
        "{}",
        first.log()
    );
    second.restart(&SERVED);
    second.wait_until(|status| second.timeline_dirs().len() == 2 && has_durable(&end)(status), PATIENCE);
    let is_acknowledged = |status: &Value| status["positions"]["acknowledged"]["position"] == end.position;
    first.wait_until(is_acknowledged, PATIENCE);
    let last = source.acknowledgements().split_off(before.0).pop();
    assert_eq!(last.map(|acknowledgement| acknowledgement.place), Some(end), "{}", first.log());
}

#[test]
fn without_them_it_goes_on_alone_where_the_operator_accepts_that() {
    let source = ScriptedSource::start(Script::new(sample())).unwrap();
    let flags = ["--ack-after-replicas=1", "--ack-timeout=200ms", "--ack-timeout-action=go_on"];
    let first = receiver_of(&source, &flags);
    let append = || {
        source.append(|log| {
            log.group(1, 100);
            log.end()
        })
    };
    assert!(source.wait_for_acknowledgement(&source.log(SourceLog::end), PATIENCE), "{}", first.log());
    let status = first.wait_until(|status| status["ack_replicas"]["alone"] == true, PATIENCE);
    assert_eq!(status["state"], "receiving");
    assert!(status["counters"]["acknowledged_alone"].as_u64() > Some(0), "{status}");
    assert!(first.log().contains("acknowledging alone from now on: 0 of 1 receivers"), "{}", first.log());
    // Once they have caught up, they are waited for again.
    let mut second = receiver_behind(&first, &[]);
    let end = append();
    second.wait_until(has_durable(&end), PATIENCE);
    first.wait_until(|status| status["ack_replicas"]["alone"] == false, PATIENCE);
    assert!(first.log().contains("1 receivers have caught up"), "{}", first.log());
    let alone = first.source()["counters"]["acknowledged_alone"].clone();
    let end = append();
    assert!(source.wait_for_acknowledgement(&end, PATIENCE));
    assert_eq!(first.source()["counters"]["acknowledged_alone"], alone);
    second.terminate();
    assert!(source.wait_for_acknowledgement(&append(), PATIENCE));
    first.wait_until(|status| status["ack_replicas"]["alone"] == true, PATIENCE);
}

/// A raw semi-sync reader of all that there is.
fn reader(port: u16) -> DumpStream {
    let mut connection = Connection::connect(&ConnectOptions {
        host: "127.0.0.1".to_owned(),
        port,
        user: "any".to_owned(),
        password: "secret".into(),
        connect_timeout: PATIENCE,
        tls: TlsOptions { mode: TlsMode::Disabled, ..TlsOptions::default() },
    })
    .unwrap();
    connection.query("SET @source_binlog_checksum = 'CRC32', @rpl_semi_sync_replica = 1").unwrap();
    let mut stream = connection.start_dump(&command::binlog_dump(4, 0, 77, b"mysql-bin.000001")).unwrap();
    stream.set_blocking(PATIENCE).unwrap();
    stream.set_read_timeout(PATIENCE).unwrap();
    stream
}

#[test]
fn a_reader_that_acknowledges_what_it_cannot_have_is_sent_away() {
    let source = ScriptedSource::start(Script::new(sample())).unwrap();
    let first = receiver_of(&source, &["--ack-after-replicas=1"]);
    let end = source.log(SourceLog::end);
    first.wait_until(has_durable(&end), PATIENCE);
    let acknowledgement = |position: u64, file: &str| {
        let mut bytes = Vec::new();
        semi_sync_acknowledgement(&mut bytes, position, file.as_bytes());
        bytes
    };
    // Up to the end of the last group, which asks for it.
    let read_all = |stream: &mut DumpStream| {
        let (mut bytes, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        while !bytes.windows(3).any(|three| three == [0, 0xef, 1]) {
            let read = stream.read(&mut buffer).unwrap();
            assert!(read > 0, "{}", first.log());
            bytes.extend_from_slice(&buffer[..read]);
        }
    };
    for (answer, words) in [
        (acknowledgement(end.position + 1, &end.file), "lies behind mysql-bin.000003"),
        (acknowledgement(4, "mysql-bin.000009"), "was not asked for anything in that file"),
        (b"\x03\0\0\0\x03hi".to_vec(), "what it sends is no acknowledgement"),
    ] {
        let mut stream = reader(serve_port(&first));
        read_all(&mut stream);
        stream.write_all_blocking(&answer, PATIENCE).unwrap();
        first.wait_log(words, PATIENCE);
        while stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
    }
    assert!(source.acknowledgements().is_empty(), "nobody has confirmed anything");
    let mut stream = reader(serve_port(&first));
    read_all(&mut stream);
    stream.write_all_blocking(&acknowledgement(end.position, &end.file), PATIENCE).unwrap();
    assert!(source.wait_for_acknowledgement(&end, PATIENCE), "{}", first.log());
}
