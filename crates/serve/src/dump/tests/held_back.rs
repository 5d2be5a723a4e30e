//! Dumps that are held back although the log goes on: by a point at which they stop, or a delay.

use super::mariadb::{behind, mariadb_file, mariadb_timeline};
use super::*;
use crate::dump::progress::Rest;
use config::Point;
use std::sync::atomic::AtomicI64;

const SECOND: i64 = 1_000_000;

fn stop(text: &str, is_before: bool, kind: ServerKind) -> StopAt {
    StopAt::of(&text.parse::<Point>().unwrap(), is_before, kind).unwrap()
}

/// A file of transactions with the moments of their commits, in seconds.
fn timed(before: &str, transactions: &[(u64, i64)]) -> Vec<u8> {
    let mut builder = FileBuilder::new().previous_gtids(&set(before));
    for (number, seconds) in transactions {
        let mut gtid = vec![0u8];
        gtid.extend_from_slice(SERVER_UUID.parse::<Uuid>().unwrap().as_bytes());
        gtid.extend_from_slice(&number.to_le_bytes());
        gtid.push(2);
        gtid.extend_from_slice(&[0; 16]);
        gtid.extend_from_slice(&(seconds * SECOND).to_le_bytes()[..7]);
        builder.event(33, &gtid);
        let mut begin = vec![0u8; 14];
        begin.extend_from_slice(b"BEGIN");
        builder.event(2, &begin);
        builder.event(16, &number.to_le_bytes());
    }
    builder.finish()
}

#[test]
fn a_point_of_mysql_stops_each_reader_there_or_at_once() {
    let copy = three_files();
    let sent = |from: From, text: &str, is_before| {
        let stop = vec![stop(&set(text), is_before, ServerKind::MySql)];
        let got = copy.read_as(&DumpRequest { stop, ..request(from) });
        assert!(got.eof, "a reader that does not wait has everything that it may have: {got:?}");
        got.gtids()
    };
    let bytes = file("a:1-2", "a3 a4 a5", Some("b.000003"));
    let place = offsets(&bytes)[5]; // Of a4.
    let position = format!("b.000002:{place}");
    for (from, text, before, after) in [
        (lacking(""), "a:4", "a1 a2 a3", "a1 a2 a3 a4"),
        (lacking(""), "a:2:4-5", "a1", "a1 a2 a3 a4 a5"),
        (lacking(&set("a:1-2")), "a:3", "", "a3"),
        // The reader is at the point, or behind it.
        (lacking(&set("a:1-4")), "a:4", "", ""),
        (lacking(&set("a:1-6")), "a:2", "", ""),
        (at("b.000003", 4), "a:2", "", ""),
        (at("b.000002", place), "a:3", "", ""),
        (at("b.000002", place), "a:4", "", "a4"),
        (at("b.000001", 4), "a:5", "a1 a2 a3 a4", "a1 a2 a3 a4 a5"),
        // Nothing of it comes.
        (lacking(&set("a:1-5")), "a:99", "a6 a7", "a6 a7"),
        (lacking(""), &position, "a1 a2 a3", "a1 a2 a3 a4"),
        (at("b.000002", 4), &position, "a3", "a3 a4"),
        (at("b.000003", 4), &position, "", ""),
        (lacking(&set("a:1-5")), &position, "", ""),
        (lacking(&set("a:1-6")), "b.000009:4", "a7", "a7"),
    ] {
        assert_eq!(sent(from.clone(), text, true), before, "{from:?} before {text}");
        assert_eq!(sent(from.clone(), text, false), after, "{from:?} after {text}");
    }
    let first = vec![stop(&set("a:5"), true, ServerKind::MySql), stop(&set("a:2"), false, ServerKind::MySql)];
    let got = copy.read_as(&DumpRequest { stop: first, ..request(lacking("")) });
    assert_eq!(got.gtids(), "a1 a2", "of several the first one counts");
}

#[test]
fn a_time_is_that_of_the_commit() {
    let copy = Copy::with(&[("b.000001", timed("", &[(1, 100), (2, 200), (3, 300), (4, 250)]))]);
    let sent = |seconds, is_before| {
        let text = jiff::Timestamp::from_second(seconds).unwrap().to_string();
        let stop = vec![stop(&text, is_before, ServerKind::MySql)];
        copy.read_as(&DumpRequest { stop, ..request(lacking("")) }).gtids()
    };
    assert_eq!((sent(200, true).as_str(), sent(200, false).as_str()), ("a1", "a1 a2"));
    assert_eq!((sent(299, true).as_str(), sent(299, false).as_str()), ("a1 a2", "a1 a2"));
    assert_eq!(sent(301, true), "a1 a2 a3 a4");
    assert_eq!(sent(50, true), "");
}

#[test]
fn a_point_of_mariadb_names_one_transaction_of_each_domain() {
    let mut copy = Copy::new();
    copy.timeline(
        mariadb_timeline(1, Reason::First, "", ""),
        &[
            ("b.000001", mariadb_file("", "0-1-1 5-1-1 0-1-2")),
            ("b.000002", mariadb_file("5-1-1,0-1-2", "0-1-3 5-1-2 0-1-4")),
        ],
    );
    let sent = |from: From, text: &str, is_before| {
        let stop = vec![stop(text, is_before, ServerKind::MariaDb)];
        copy.read_as(&DumpRequest { stop, ..request(from) }).mariadb_gtids()
    };
    for (from, text, before, after) in [
        (behind(""), "0-1-2", "0-1-1 5-1-1", "0-1-1 5-1-1 0-1-2"),
        (behind(""), "0-1-3,5-1-2", "0-1-1 5-1-1 0-1-2", "0-1-1 5-1-1 0-1-2 0-1-3 5-1-2"),
        (behind("0-1-2,5-1-1"), "0-1-3", "", "0-1-3"),
        (behind("0-1-3,5-1-1"), "0-1-2", "", ""),
        (at("b.000002", 4), "0-1-2", "", ""),
        (at("b.000002", 4), "5-1-2", "0-1-3", "0-1-3 5-1-2"),
        (behind("0-1-2,5-1-1"), "9-1-1", "0-1-3 5-1-2 0-1-4", "0-1-3 5-1-2 0-1-4"),
        // A number that there is not stands for the one that comes before the next.
        (behind(""), "0-9-2", "0-1-1 5-1-1", "0-1-1 5-1-1 0-1-2"),
    ] {
        assert_eq!(sent(from.clone(), text, true), before, "{from:?} before {text}");
        assert_eq!(sent(from.clone(), text, false), after, "{from:?} after {text}");
    }
    assert!(StopAt::of(&"0-1-2".parse().unwrap(), true, ServerKind::MySql).unwrap_err().contains("MariaDB"));
}

/// A replica is not sent away in a loop: its connection stays, and it hears heartbeats at the place.
#[test]
fn at_its_stop_a_dump_waits_and_never_goes_on() {
    let copy = three_files();
    let (reader, progress) = (Reader::default(), ReaderProgress::default());
    let waiting = DumpRequest {
        non_blocking: false,
        heartbeat_period: Duration::from_millis(20),
        stop: vec![stop(&set("a:7"), false, ServerKind::MySql)],
        ..request(lacking(&set("a:1-5")))
    };
    let served = copy.served();
    thread::scope(|scope| {
        let dump = scope.spawn(|| dump(&served, &waiting, &mut &reader, &progress));
        let shown = || reader.got(Ok(DumpEnd::Complete)).shown();
        wait_until(|| progress.rest() == Rest::Stopped && shown().contains("beat@"));
        let end = progress.position().unwrap().offset;
        assert!(shown().contains(&format!("a6 a7 beat@{end}")), "{}", shown());
        assert_eq!(progress.not_here(), "");
        copy.write("b.000003", &file("a:1-5", "a6 a7 a8", Some("b.000004")));
        copy.write("b.000004", &file("a:1-8", "a9", None));
        let beats = || shown().matches(&format!("beat@{end}")).count();
        let before = beats();
        wait_until(|| beats() > before + 2);
        assert!(!shown().contains("a8") && !shown().contains("eof"), "{}", shown());
        copy.published.withdraw();
        assert_eq!(
            dump.join().unwrap().unwrap(),
            DumpEnd::Moved,
            "it comes back when the files become others"
        );
    });
    let later = DumpRequest { stop: vec![stop(&set("a:7:12"), true, ServerKind::MySql)], ..waiting };
    let copy = three_files();
    let served = copy.served();
    thread::scope(|scope| {
        let dump = scope.spawn(|| dump(&served, &later, &mut &reader, &progress));
        wait_until(|| progress.not_here().starts_with(&format!("{SERVER_UUID}:12 is not in")));
        reader.cancelled.store(true, SeqCst);
        copy.published.wake_all();
        assert_eq!(dump.join().unwrap().unwrap(), DumpEnd::Cancelled);
    });
}

#[test]
fn a_delayed_reader_gets_transactions_of_an_age() {
    let bytes = timed("", &[(1, 1000), (2, 1010), (3, 1020)]);
    let mut copy = Copy::with(&[("b.000001", bytes)]);
    let now = Arc::new(AtomicI64::new(1_069 * SECOND));
    let clock = now.clone();
    copy.wall_time = Arc::new(move || jiff::Timestamp::from_microsecond(clock.load(SeqCst)).unwrap());
    let at_once = copy.read(lacking(""));
    assert_eq!(at_once.gtids(), "a1 a2 a3", "another reader is not held back");
    let delayed = DumpRequest { delay: Duration::from_secs(60), ..request(lacking("")) };
    assert_eq!(copy.read_as(&delayed).gtids(), "a1", "one that does not wait has what it may have");
    let (reader, progress) = (Reader::default(), ReaderProgress::default());
    let waiting = DumpRequest { non_blocking: false, heartbeat_period: Duration::from_millis(10), ..delayed };
    let served = copy.served();
    thread::scope(|scope| {
        let dump = scope.spawn(|| dump(&served, &waiting, &mut &reader, &progress));
        let got = || reader.got(Ok(DumpEnd::Complete));
        wait_until(|| progress.rest() == Rest::Delayed && got().shown().contains("beat@"));
        assert_eq!(got().gtids(), "a1");
        now.store(1_070 * SECOND - 1, SeqCst);
        let before = got().shown().matches("beat@").count();
        wait_until(|| got().shown().matches("beat@").count() > before + 1);
        assert_eq!(got().gtids(), "a1", "a microsecond too early");
        now.store(1_070 * SECOND, SeqCst);
        copy.published.wake_all();
        wait_until(|| got().gtids() == "a1 a2");
        now.store(1_090 * SECOND, SeqCst);
        copy.published.wake_all();
        wait_until(|| progress.rest() == Rest::End);
        assert_eq!(got().gtids(), "a1 a2 a3");
        reader.cancelled.store(true, SeqCst);
        copy.published.wake_all();
        assert_eq!(dump.join().unwrap().unwrap(), DumpEnd::Cancelled);
    });
}
