//! The live end: sleeping, waking, and what happens to the files meanwhile.

use super::*;
use status::{Ladder, SourceState};

#[test]
fn at_the_live_end_a_reader_sleeps_and_is_woken() {
    let copy = three_files();
    let (reader, progress) = (Reader::default(), ReaderProgress::default());
    let waiting = DumpRequest {
        non_blocking: false,
        heartbeat_period: Duration::from_millis(50),
        ..request(at("b.000003", 4))
    };
    let served = copy.served();
    thread::scope(|scope| {
        let dump = scope.spawn(|| dump(&served, &waiting, &mut &reader, &progress));
        let shown = || reader.got(Ok(DumpEnd::Complete)).shown();
        wait_until(|| shown().contains("beat@"));
        let end = progress.position().unwrap();
        assert!(progress.is_waiting() && shown().contains(&format!("beat@{}", end.offset)));
        // What stands in the file and is not published is not sent.
        let longer = file("a:1-5", "a6 a7 a8", Some("b.000004"));
        std::fs::write(copy.timelines[0].join("b.000003"), &longer).unwrap();
        let beats = || shown().matches("beat@").count();
        let before = beats();
        wait_until(|| beats() > before + 1);
        assert!(!shown().contains("a8"));
        copy.write("b.000003", &longer);
        wait_until(|| shown().contains("a8 4:4"));
        copy.write("b.000004", &file("a:1-8", "a9", None));
        wait_until(|| shown().contains("4:4 ~4:4 format before a9"));
        // Another timeline has nothing that anybody could be placed in; then the log fails: the reader is to come back.
        copy.published.is_at(&copy.timelines[0].with_file_name("0002-x"), None);
        let before = beats();
        wait_until(|| beats() > before + 1);
        copy.published.withdraw();
        assert_eq!(dump.join().unwrap().unwrap(), DumpEnd::Moved);
        assert!(!shown().contains("eof"));
    });
}

#[test]
fn a_cancelled_reader_wakes_up() {
    let copy = three_files();
    let (reader, progress) = (Reader::default(), ReaderProgress::default());
    let waiting = DumpRequest { non_blocking: false, ..request(lacking("")) };
    let served = copy.served();
    thread::scope(|scope| {
        let dump = scope.spawn(|| dump(&served, &waiting, &mut &reader, &progress));
        wait_until(|| progress.is_waiting());
        reader.cancelled.store(true, SeqCst);
        copy.published.wake_all();
        assert_eq!(dump.join().unwrap().unwrap(), DumpEnd::Cancelled);
    });
}

/// Takes nothing, until the time for a write is up.
#[derive(Default)]
struct Stuck {
    writes: usize,
}

impl PacketOut for Stuck {
    fn write(&mut self, _: &[u8]) -> io::Result<()> {
        self.writes += 1;
        Err(io::ErrorKind::TimedOut.into())
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

#[test]
fn a_reader_that_takes_nothing_is_waited_for_once() {
    let copy = three_files();
    for from in [lacking(""), at("b.000001", 4), at("b.000009", 4)] {
        let mut stuck = Stuck::default();
        let ended = dump(&copy.served(), &request(from), &mut stuck, &ReaderProgress::default());
        assert!(matches!(&ended, Err(DumpError::Reader(error)) if error.kind() == io::ErrorKind::TimedOut));
        assert_eq!(stuck.writes, 1);
    }
}

/// A replica that is moved here from the source may have what is on its way to the copy.
#[test]
fn a_reader_that_is_ahead_by_a_moment_is_waited_for() {
    let copy = three_files();
    let end = std::fs::read(copy.timelines[0].join("b.000003")).unwrap().len() as u64;
    let longer = file("a:1-5", "a6 a7 a8", Some("b.000004"));
    let next = file("a:1-8", "a9", None);
    let served = copy.served();
    let requests = [
        (lacking(&set("a:1-8")), "a9"),
        (at("b.000003", longer.len() as u64), "a9"),
        (at("b.000004", 4), "a9"),
        (at("b.000003", end), "a8 a9"),
    ];
    let readers = [(); 4].map(|()| (Reader::default(), ReaderProgress::default()));
    thread::scope(|scope| {
        let served = &served;
        let dumps: Vec<_> = requests
            .into_iter()
            .zip(&readers)
            .map(|((from, gtids), (reader, progress))| {
                let waiting = DumpRequest { non_blocking: false, ..request(from) };
                (gtids, reader, scope.spawn(move || dump(served, &waiting, &mut &*reader, progress)))
            })
            .collect();
        wait_until(|| readers.iter().all(|(reader, _)| reader.looks.load(SeqCst) > 0));
        copy.write("b.000003", &longer);
        copy.write("b.000004", &next);
        for (gtids, reader, dump) in dumps {
            wait_until(|| reader.got(Ok(DumpEnd::Moved)).gtids() == gtids);
            reader.cancelled.store(true, SeqCst);
            copy.published.wake_all();
            assert_eq!(dump.join().unwrap().unwrap(), DumpEnd::Cancelled);
        }
    });
}

/// A replica stops at error 1236; after 1105 it comes again.
#[test]
fn a_reader_that_is_ahead_of_a_copy_which_lags_is_to_come_again() {
    let mut copy = three_files();
    let monitor = Arc::new(SourceMonitor::new("s"));
    copy.monitor = Some(monitor.clone());
    let ask = || {
        let ahead = || [lacking(&set("a:1-9")), at("b.000003", 90_000), at("b.000007", 4)];
        thread::scope(|scope| {
            let copy = &copy;
            let dumps = ahead().map(|from| scope.spawn(move || copy.read(from)));
            dumps.map(|dump| dump.join().unwrap())
        })
    };
    let told = |why: &str| {
        for got in ask() {
            let said = &got.error.as_ref().expect("an error packet").message;
            assert!(
                matches!(&got.ended, Err(DumpError::Behind(error)) if error.code == 1105),
                "{why}: {got:?}"
            );
            assert!(
                said.starts_with("binlogd is behind its source: what it can serve ends at b.000003:"),
                "{said}"
            );
        }
    };
    told("no connection to the source");
    let end = Position::new("b.000003", copy.published.live().unwrap().end());
    let more = Position { offset: end.offset + 1, ..end.clone() };
    let ladder = |received: &Position| {
        let (written, durable) = (Some(end.clone()), Some(end.clone()));
        Ladder { received: Some(received.clone()), written, durable, acknowledged: None }
    };
    monitor.set_state(SourceState::Receiving);
    monitor.publish_positions(&ladder(&more));
    monitor.publish_caught_up();
    told("what was received last is not durable");
    monitor.publish_positions(&ladder(&end));
    monitor.publish_event_time(1_700_000_000);
    told("the newest event is old, and the source has not said that there is no newer one");
    monitor.publish_caught_up();
    let [by_set, past_end, no_file] = ask();
    assert!(by_set.refused().starts_with("Replica has more GTIDs than the source has"));
    assert!(past_end.refused().ends_with("position > file size"));
    assert!(no_file.refused().starts_with("Could not find first log file name"));
}

/// After a failover, until the new source has sent the beginning of its file.
#[test]
fn while_a_timeline_is_empty_the_older_one_is_served() {
    let copy = three_files();
    let next = Timeline {
        reason: Reason::Fork,
        gtid_before: set("a:1-7"),
        source_lacks: set("a:7"),
        previous: copy.timelines[0].file_name().unwrap().to_str().unwrap().to_owned(),
        ..first_timeline(OTHER)
    };
    let folder = next.create(&PosixStorage, copy.dir.path(), 2).unwrap();
    copy.published.is_at(&folder, None);
    assert_eq!(copy.read(lacking(&set("a:1-5"))).gtids(), "a6 a7");
    assert_eq!(copy.read(lacking(&set("a:1-7"))).shown(), {
        let end = copy.published.live().unwrap().end();
        format!("~3:4 format before beat@{end} eof")
    });
    let got = copy.read(lacking(&set("a:1-8")));
    assert!(got.refused().starts_with("Replica has more GTIDs"), "as the older server says it: {got:?}");
    let bytes = file("a:1-5", "a6 o1", None);
    std::fs::write(folder.join("c.000001"), &bytes).unwrap();
    copy.published.is_at(&folder, Some(&Position::new("c.000001", bytes.len() as u64)));
    assert_eq!(copy.read(lacking(&set("a:1-5"))).gtids(), "a6 o1");
}

#[test]
fn files_that_are_taken_away_below_a_reader_lead_nobody_astray() {
    let copy = Copy::with(&[
        ("b.000001", file("", "a1", Some("b.000002"))),
        ("b.000002", file("a:1", "a2", Some("b.000003"))),
        ("b.000003", file("a:1-2", "a3", Some("b.000004"))),
        ("b.000004", file("a:1-3", "a4", None)),
    ]);
    /// Takes files away when the reader has come to one of them.
    struct Purging<'a>(&'a Reader, &'a Path, Option<&'static [u8]>);
    impl PacketOut for Purging<'_> {
        fn write(&mut self, framed: &[u8]) -> io::Result<()> {
            if self.2.is_some_and(|name| framed.windows(name.len()).any(|part| part == name)) {
                self.2 = None;
                ["b.000001", "b.000002"]
                    .iter()
                    .for_each(|name| PosixStorage.remove_file(&self.1.join(name)).unwrap());
            }
            (&mut &*self.0).write(framed)
        }

        fn is_cancelled(&self) -> bool {
            false
        }
    }
    let reader = Reader::default();
    let mut purging = Purging(&reader, &copy.timelines[0], Some(b"b.000004"));
    let ended = dump(&copy.served(), &request(at("", 4)), &mut purging, &ReaderProgress::default());
    assert_eq!(reader.got(ended).gtids(), "a1 a2 a3 a4");
}

#[test]
fn a_copy_that_is_not_open_serves_nobody() {
    let copy = Copy::new();
    let got = copy.read(at("", 4));
    assert_eq!(got.ended.unwrap(), DumpEnd::Moved);
    assert!(got.events.is_empty() && !got.eof);
}

/// Of each event, whether an acknowledgement is asked for; and the packet's number.
fn asked_for(reader: &Reader) -> Vec<(u8, u8)> {
    let bytes = reader.bytes.lock().unwrap();
    let (mut rest, mut asked) = (&bytes[..], Vec::new());
    while let Some((head, tail)) = rest.split_first_chunk::<HEADER_BYTES>() {
        let header = codec::packet::Header::parse(*head);
        let (payload, tail) = tail.split_at(header.length);
        if payload[0] == OK {
            assert_eq!(payload[1], 0xef);
            asked.push((payload[2], header.sequence));
        }
        rest = tail;
    }
    asked
}

#[test]
fn semi_sync_readers_are_asked_at_the_live_end() {
    let copy = three_files();
    let (reader, progress) = (Reader::default(), ReaderProgress::default());
    progress.asked.receiver_is("x");
    let asked = DumpRequest { semi_sync: true, non_blocking: false, ..request(at("b.000001", 4)) };
    let served = copy.served();
    let confirmed = || copy.published.confirmed(&copy.timelines[0], 1, &["b.000003".to_owned()]);
    let wait_for = |count| {
        wait_until(|| asked_for(&reader).iter().filter(|(flag, _)| *flag == 1).count() == count);
        wait_until(|| progress.is_waiting());
    };
    thread::scope(|scope| {
        let dump = scope.spawn(|| dump(&served, &asked, &mut &reader, &progress));
        wait_for(1);
        assert_eq!(asked_for(&reader).last().unwrap().0, 1, "nothing is asked for while a reader catches up");
        copy.write("b.000003", &file("a:1-5", "a6 a7 a8 a9", None));
        wait_for(2);
        let shown = asked_for(&reader);
        let first = shown.iter().position(|(flag, _)| *flag == 1).unwrap();
        assert_eq!(shown[first + 1].1, 1, "the next one counts anew, without an answer");
        assert_eq!(shown.last().unwrap().0, 1);
        assert!(confirmed().is_none(), "it has not answered");
        let end = progress.position().unwrap();
        let answer = codec::packet::SemiSyncAcknowledgement { position: end.offset, file: b"b.000003" };
        progress.asked.hears(&answer, &copy.published).unwrap();
        assert_eq!(confirmed().unwrap().position(), &end);
        reader.cancelled.store(true, SeqCst);
        copy.published.wake_all();
        dump.join().unwrap().unwrap();
    });
    // Who does not stay is not asked.
    let reader = Reader::default();
    dump(&served, &DumpRequest { non_blocking: true, ..asked }, &mut &reader, &progress).unwrap();
    assert!(asked_for(&reader).iter().all(|(flag, _)| *flag == 0));
}

/// It could not be waited for otherwise, where the next transaction does not come before it is.
#[test]
fn what_a_reader_has_by_its_own_word_need_not_be_sent_to_count() {
    let copy = three_files();
    let files = ["b.000001", "b.000002", "b.000003"].map(str::to_owned);
    let end = copy.published.live().unwrap().end();
    for (from, confirmed) in [
        (lacking(&set("a:1-99")), None), // It has more than the copy: it is waited for, and refused.
        (lacking(&set("a:1-7")), Some(end)),
        (at("b.000003", end), Some(end)),
        (at("b.000003", 4), None),
        (lacking(&set("a:1-6")), None),
        (lacking(""), None),
    ] {
        let published = &copy.published;
        // What was confirmed before counts for an older generation.
        published.withdraw();
        published.is_at(&copy.timelines[0], Some(&Position::new("b.000003", end)));
        let (reader, progress) = (Reader::default(), ReaderProgress::default());
        progress.asked.receiver_is("x");
        let what = format!("{from:?}");
        let asked = DumpRequest { semi_sync: true, non_blocking: false, ..request(from) };
        let served = copy.served();
        thread::scope(|scope| {
            let dump = scope.spawn(|| dump(&served, &asked, &mut &reader, &progress));
            wait_until(|| progress.is_waiting() || dump.is_finished());
            let found = published.confirmed(&copy.timelines[0], 1, &files);
            assert_eq!(found.map(|found| found.position().offset), confirmed, "{what}");
            reader.cancelled.store(true, SeqCst);
            copy.published.wake_all();
            let _ = dump.join().unwrap();
        });
    }
}
