//! Over timelines: switches of servers, forks, resets and gaps.

use super::*;

fn later(reason: Reason, uuid: &str, before: &str, lacks: &str) -> Timeline {
    Timeline { reason, gtid_before: set(before), source_lacks: set(lacks), ..first_timeline(uuid) }
}

#[test]
fn over_a_switch_of_servers_each_transaction_comes_once() {
    let mut copy = Copy::with(&[
        ("b.000001", file("", "a1 a2", Some("b.000002"))),
        ("b.000002", file("a:1-2", "a3 a4 o1", None)),
    ]);
    // The successor's file has transactions that the older timeline has too.
    copy.timeline(
        later(Reason::SourceChanged, OTHER, "a:1-4,o:1", ""),
        &[
            ("b.000002", file("a:1", "a2 o1 a3 a4 o2", Some("b.000003"))),
            ("b.000003", file("a:1-4,o:1-2", "o3", None)),
        ],
    );
    assert_eq!(copy.read(lacking("")).gtids(), "a1 a2 a3 a4 o1 o2 o3");
    assert_eq!(
        copy.read(lacking(&set("a:1"))).gtids(),
        "a2 o1 a3 a4 o2 o3",
        "from the newest file that will do"
    );
    assert_eq!(copy.read(lacking(&set("a:1-4,o:1-2"))).shown(), "~3:4 format before o3 eof");
    // By name the newer timeline's file counts, and no reader comes to another one under that name.
    assert_eq!(copy.read(at("b.000002", 4)).gtids(), "a2 o1 a3 a4 o2 o3");
    let got = copy.read(at("b.000001", 4));
    assert_eq!(got.gtids(), "a1 a2");
    assert!(got.refused().contains("could not find next log"), "{got:?}");
}

#[test]
fn what_a_fork_took_is_not_sent() {
    let mut copy = Copy::with(&[
        ("b.000001", file("", "a1 a2 a3 o1", Some("b.000002"))),
        ("b.000002", file("a:1-3,o:1", "a4", None)),
    ]);
    copy.timeline(
        later(Reason::Fork, OTHER, "a:1-4,o:1", "a:3-4"),
        &[("c.000001", file("a:1", "a2 o1 o2 a3", None))],
    );
    // 3 was handed back later; 4 never was.
    assert_eq!(copy.read(lacking("")).gtids(), "a1 a2 o1 o2 a3");
    assert_eq!(copy.read(lacking(&set("a:1"))).gtids(), "a2 o1 o2 a3");
    let got = copy.read(at("b.000001", 4));
    assert!(got.refused().contains("lost transactions"), "{got:?}");
}

/// Another binlogd of the source wants what this one holds, history or not.
#[test]
fn one_timeline_alone_is_sent_as_it_stands() {
    let mut copy = Copy::with(&[
        ("b.000001", file("", "a1 a2 a3 o1", Some("b.000002"))),
        ("b.000002", file("a:1-3,o:1", "a4", None)),
    ]);
    let name =
        |copy: &Copy, number: usize| copy.timelines[number].file_name().unwrap().to_str().unwrap().to_owned();
    let of = |timeline: String, from| DumpRequest { timeline: Some(timeline), ..request(from) };
    // While it is the one that is written it ends as far as it is published.
    let got = copy.read_as(&of(name(&copy, 0), at("b.000001", 4)));
    assert_eq!(got.shown(), "~1:4 format before a1 a2 a3 o1 2:4 ~2:4 format before a4 eof");
    copy.timeline(
        later(Reason::Fork, OTHER, "a:1-4,o:1", "a:3-4"),
        &[("b.000002", file("a:1", "a2 o1 o2 a3", None))],
    );
    let whole = copy.read_as(&of(name(&copy, 0), at("b.000001", 4)));
    assert_eq!(whole.shown(), got.shown(), "what a fork took, and a file whose name a newer one has");
    assert_eq!((whole.events, whole.ended.unwrap()), (got.events, DumpEnd::Complete));
    let newer = copy.read_as(&of(name(&copy, 1), at("b.000002", 4)));
    assert_eq!(newer.shown(), "~2:4 format before a2 o1 o2 a3 eof");
    // What ends in half a transaction ends before it.
    let torn = copy.timelines[0].join("b.000002");
    let bytes = std::fs::read(&torn).unwrap();
    std::fs::write(&torn, &bytes[..bytes.len() - 3]).unwrap();
    let cut = copy.read_as(&of(name(&copy, 0), at("b.000002", 4)));
    assert_eq!(cut.shown(), "~2:4 format before eof");
    // A binlogd that knows of no timelines takes all that it is sent for the log of the server that is presented.
    let present = copy.read_as(&of(String::new(), at("", 4)));
    assert_eq!(present.shown(), "~2:4 format before a2 o1 o2 a3 eof");
    let located = copy.read_as(&of(String::new(), lacking(&set("a:1"))));
    assert_eq!(located.gtids(), "a2 o1 o2 a3");
    assert!(copy.read_as(&of(String::new(), lacking(""))).refused().contains("purged required binary logs"));
    let none = copy.read_as(&of("0003-x".to_owned(), at("b.000002", 4)));
    assert_eq!((none.shown().as_str(), none.ended.unwrap()), ("", DumpEnd::Moved));
    // A timeline of which nothing is published yet.
    copy.published.withdraw();
    copy.published.is_at(&copy.timelines[0], Some(&Position::new("b.000001", 200)));
    let early = copy.read_as(&of(name(&copy, 1), at("b.000002", 4)));
    assert_eq!(early.ended.unwrap(), DumpEnd::Moved);
}

/// Waits for nothing.
struct NoPause;

impl Waits for NoPause {
    fn pause(&self, _: Duration) {}
}

/// A binlogd that has more of a timeline than there is. The older one has a file of the name that it asks for, of another server.
#[test]
fn who_is_ahead_of_one_timeline_is_not_given_files_of_another() {
    let mut copy = Copy::with(&[
        ("b.000001", file("", "a1 a2", Some("b.000002"))),
        ("b.000002", file("a:1-2", "a3 a4", None)),
    ]);
    copy.timeline(
        later(Reason::SourceChanged, OTHER, "a:1-4", ""),
        &[("b.000001", file("a:1-4", "o1", Some("b.000002")))],
    );
    let served = Served { waits: Arc::new(NoPause), ..copy.served() };
    for timeline in [copy.timelines[1].file_name().unwrap().to_str().unwrap(), ""] {
        let request = DumpRequest { timeline: Some(timeline.to_owned()), ..request(at("b.000002", 4)) };
        let reader = Reader::default();
        let ended = dump(&served, &request, &mut &reader, &ReaderProgress::default());
        let got = reader.got(ended);
        assert_eq!(got.shown(), "", "of the other server");
        assert!(got.refused().starts_with("Could not find first log"), "{got:?}");
    }
}

#[test]
fn a_server_that_lost_its_tail_goes_on_in_its_own_file() {
    let mut copy = Copy::with(&[
        ("b.000001", file("", "a1 a2", Some("b.000002"))),
        ("b.000002", file("a:1-2", "a3 a4", Some("b.000003"))),
        ("b.000003", file("a:1-4", "a5", None)),
    ]);
    copy.timeline(
        later(Reason::Fork, SERVER_UUID, "a:1-5", "a:4-5"),
        &[("b.000002", file("a:1-2", "a3 a4 a5 a6", None))],
    );
    assert_eq!(
        copy.read(lacking("")).shown(),
        "~1:4 format before a1 a2 2:4 ~2:4 format before a3 a4 a5 a6 eof"
    );
    assert_eq!(
        copy.read(at("", 4)).shown(),
        "~1:4 format before a1 a2 2:4 ~2:4 format before a3 a4 a5 a6 eof"
    );
    assert!(copy.read(at("b.000003", 4)).refused().starts_with("Could not find first log"));
}

#[test]
fn nobody_is_led_over_a_gap() {
    let mut copy = Copy::with(&[("b.000001", file("", "a1 a2", None))]);
    let gap = Timeline { missing: set("a:3-4"), ..later(Reason::Gap, SERVER_UUID, "a:1-2", "") };
    copy.timeline(gap, &[("b.000003", file("a:1-4", "a5", None))]);
    let got = copy.read(lacking(&set("a:1")));
    assert!(got.refused().ends_with(&format!("the missing transactions are '{}'", set("a:3-4"))), "{got:?}");
    assert_eq!(copy.read(lacking(&set("a:1-4"))).gtids(), "a5");
    let got = copy.read(at("b.000001", 4));
    assert_eq!(got.gtids(), "a1 a2");
    assert!(got.refused().contains("never copied"), "{got:?}");
}

#[test]
fn what_another_history_has_is_served_no_more() {
    let mut copy =
        Copy::with(&[("b.000001", file("", "a1 a2", None)), ("b.000002", file("a:1-2", "a3", None))]);
    copy.timeline(
        later(Reason::SourceReset, SERVER_UUID, "a:1-3", ""),
        &[("b.000001", file("", "a1", None))],
    );
    assert_eq!(copy.read(at("", 4)).gtids(), "a1");
    assert!(copy.read(at("b.000002", 4)).refused().starts_with("Could not find first log"));
}

/// The tail that a broken connection left in an older timeline is half a transaction.
#[test]
fn an_older_timeline_is_sent_up_to_its_last_boundary() {
    let whole = file("", "a1 a2", None);
    let torn = file("", "a1 a2 a3", None);
    let mut copy = Copy::with(&[("b.000001", torn[..whole.len() + 70].to_vec())]);
    copy.timeline(
        later(Reason::SourceChanged, OTHER, "a:1-2", ""),
        &[("c.000001", file("a:1-2", "a3", None))],
    );
    assert_eq!(copy.read(lacking("")).gtids(), "a1 a2 a3");
}

/// A source that went away while its next file began leaves one in the older timeline that says nothing.
#[test]
fn a_file_that_has_not_begun_ends_no_older_timeline() {
    for begun in [codec::event::BINLOG_MAGIC.to_vec(), FileBuilder::new().finish()] {
        let mut copy = Copy::with(&[("b.000001", file("", "a1 a2", Some("b.000002"))), ("b.000002", begun)]);
        copy.timeline(
            later(Reason::SourceChanged, OTHER, "a:1-2", ""),
            &[("c.000001", file("a:1-2", "a3", None))],
        );
        assert_eq!(copy.read(lacking("")).gtids(), "a1 a2 a3");
        assert_eq!(copy.read(lacking(&set("a:1"))).gtids(), "a2 a3");
        // Who mirrors the timeline is told that the file before it is whole.
        let name = copy.timelines[0].file_name().unwrap().to_str().unwrap().to_owned();
        let of = |from| DumpRequest { timeline: Some(name.clone()), ..request(from) };
        assert_eq!(copy.read_as(&of(at("b.000001", 4))).shown(), "~1:4 format before a1 a2 2:4 ~2:4 eof");
        assert!(copy.read_as(&of(at("b.000002", 4))).refused().starts_with("Could not find first log"));
    }
}
