//! Commits that follow, and commits that cannot be.

use super::*;

const TIMELINE: &str = "0001-a";
const FILE: &str = "b.000002";

fn segment(from: u64, to: u64) -> Segment {
    let stored_sha256 = names::sha256(format!("{from}-{to}").as_bytes());
    let object = names::segment("shop", TIMELINE, FILE, from, to, &stored_sha256, false);
    Segment { from, to, sha256: String::new(), object, stored: 1, stored_sha256, keys: Vec::new() }
}

fn grown(file: &str, segments: Vec<Segment>) -> Change {
    Change::Grown(Grown {
        timeline: TIMELINE.into(),
        file: file.into(),
        segments,
        head: "head".into(),
        gtids_before: None,
        gtids: String::new(),
        last_time: 0,
    })
}

#[test]
fn a_snapshot_with_names_that_lead_elsewhere_is_refused() {
    let history = |timeline: &str, file: &str, segments: Vec<Segment>| {
        let file = ArchivedFile {
            name: file.into(),
            head: String::new(),
            segments,
            gtids_before: None,
            gtids: String::new(),
            last_time: 0,
            sealed: None,
        };
        let archived =
            Archived { record: String::new(), files: vec![Arc::new(file)], expired: String::new() };
        let timelines = [(timeline.to_owned(), Arc::new(archived))].into();
        History { timelines, ..History::default() }
    };
    let sound = || vec![segment(0, 9), segment(9, 10)];
    assert_eq!(history(TIMELINE, FILE, sound()).check(), Ok(()));
    for (timeline, file, segments) in [
        ("../..", FILE, sound()),
        ("0001-a/..", FILE, sound()),
        (TIMELINE, "../b.000001", sound()),
        (TIMELINE, "timeline.toml", sound()),
        (TIMELINE, FILE, vec![segment(0, 9), segment(10, 11)]),
        (TIMELINE, FILE, vec![segment(0, 9), segment(9, 3)]),
    ] {
        assert!(history(timeline, file, segments.clone()).check().is_err(), "{timeline} {file} {segments:?}");
    }
}

fn commit(history: &History, id: &str, epoch: u64, changes: Vec<Change>) -> Commit {
    Commit {
        format: FORMAT,
        seq: history.seq + 1,
        previous: history.hash.clone(),
        writer: Writer { id: id.into(), epoch, host: String::new(), version: String::new() },
        at: Timestamp::UNIX_EPOCH,
        changes,
        signed: None,
    }
}

fn after(history: &History, changes: Vec<Change>) -> Result<History, Unsound> {
    history.with(&commit(history, "one", 1, changes), &format!("hash {}", history.seq + 1))
}

fn why(result: Result<History, Unsound>) -> String {
    result.unwrap_err().why
}

/// Bytes 0 to 20 of a file.
fn begun() -> History {
    let timeline = Change::Timeline { timeline: TIMELINE.into(), record: String::new() };
    let first = after(&History::default(), vec![timeline, grown(FILE, vec![segment(0, 10)])]).unwrap();
    after(&first, vec![grown(FILE, vec![segment(10, 20)])]).unwrap()
}

/// In format 1.
fn sealed(history: &History, size: u64) -> Result<History, Unsound> {
    sealed_with(history, size, None)
}

fn sealed_with(history: &History, size: u64, index: Option<Index>) -> Result<History, Unsound> {
    let (timeline, file) = (TIMELINE.into(), FILE.into());
    let list = names::list("shop", TIMELINE, FILE, &names::sha256(b"list"));
    after(history, vec![Change::Sealed { timeline, file, size, sha256: "ab".into(), list, index }])
}

fn index(segments: &[Segment]) -> Index {
    Index::of(segments, names::index("shop", TIMELINE, FILE, &names::sha256(b"index")))
}

fn merged(segment: Segment) -> Change {
    Change::Merged { timeline: TIMELINE.into(), file: FILE.into(), segment }
}

fn expire(file: &str) -> Change {
    Change::Expired { timeline: TIMELINE.into(), files: vec![file.to_owned()], why: String::new() }
}

fn restore(file: &str) -> Change {
    Change::Restored { timeline: TIMELINE.into(), files: vec![file.to_owned()] }
}

/// What a later commit takes back is as if it had never been, but for the commits.
#[test]
fn what_expired_comes_back_as_it_was() {
    let before = sealed_with(&begun(), 20, Some(index(&[segment(0, 10), segment(10, 20)]))).unwrap();
    let expired = after(&before, vec![expire(FILE)]).unwrap();
    let back = after(&expired, vec![restore(FILE)]).unwrap();
    assert_eq!((&back.timelines, &back.retired), (&before.timelines, &before.retired));
    assert!(why(after(&back, vec![restore(FILE)])).contains("not the last that expired"));
    // An older binlogd has kept nothing of it.
    let mut older = commit(&before, "one", 1, vec![expire(FILE)]);
    older.format = 2;
    let expired = before.with(&older, "x").unwrap();
    assert_eq!(expired.gone(TIMELINE, FILE), None);
    assert!(why(after(&expired, vec![restore(FILE)])).contains("is to be there again"));
}

#[test]
fn a_commit_follows_or_is_refused() {
    let history = begun();
    let mut replaced = commit(&history, "one", 1, Vec::new());
    replaced.previous = "another".into();
    assert!(why(history.with(&replaced, "x")).contains("replaced"));
    let mut elsewhere = commit(&history, "one", 1, Vec::new());
    elsewhere.seq += 1;
    assert!(why(history.with(&elsewhere, "x")).contains("says that it is commit 4"));
    for (id, epoch) in [("one", 2), ("one", 0), ("other", 1), ("other", 3)] {
        let stale = commit(&history, id, epoch, Vec::new());
        assert!(why(history.with(&stale, "x")).contains("stale writer"), "{id} {epoch}");
    }
    history.with(&commit(&history, "other", 2, Vec::new()), "x").unwrap();
}

#[test]
fn a_file_grows_without_gaps_and_under_the_names_of_its_content() {
    let history = begun();
    for (from, to) in [(21, 30), (10, 30), (0, 10), (20, 20)] {
        assert!(why(after(&history, vec![grown(FILE, vec![segment(from, to)])])).contains("bytes up to 20"));
    }
    let mut renamed = segment(20, 30);
    renamed.object = segment(20, 31).object;
    assert!(why(after(&history, vec![grown(FILE, vec![renamed])])).contains("name of its content"));
    let Change::Grown(mut other) = grown(FILE, vec![segment(20, 30)]) else { unreachable!() };
    other.head = "another".into();
    assert!(why(after(&history, vec![Change::Grown(other)])).contains("another file"));
}

#[test]
fn a_sealed_file_grows_no_more() {
    let history = begun();
    assert!(why(sealed(&history, 19)).contains("ends at 20"));
    let history = sealed(&history, 20).unwrap();
    after(&history, vec![grown(FILE, vec![segment(20, 30)])]).unwrap_err();
    sealed(&history, 20).unwrap_err();
}

#[test]
fn a_merge_replaces_whole_segments_and_retires_them() {
    let history = begun();
    for (from, to) in [(0, 10), (0, 15), (5, 20), (0, 30)] {
        after(&history, vec![merged(segment(from, to))]).unwrap_err();
    }
    let history = after(&history, vec![merged(segment(0, 20))]).unwrap();
    assert_eq!(history.retired.len(), 2);
    assert_eq!(history.objects().collect::<Vec<_>>(), [segment(0, 20).object]);
    let doomed = vec![Change::Doomed { objects: vec![segment(0, 20).object] }];
    assert!(why(after(&history, doomed)).contains("is needed"));
    let doomed = vec![Change::Doomed { objects: vec![segment(0, 10).object] }];
    assert_eq!(after(&history, doomed).unwrap().retired.len(), 1);
}

#[test]
fn what_has_expired_does_not_come_back() {
    let history = sealed(&begun(), 20).unwrap();
    assert!(why(after(&history, vec![expire("b.000003")])).contains("not the oldest"));
    let history = after(&history, vec![expire(FILE)]).unwrap();
    for file in ["b.000001", FILE] {
        assert!(why(after(&history, vec![grown(file, vec![segment(0, 10)])])).contains("has expired"));
    }
    after(&history, vec![grown("b.000003", vec![segment(0, 10)])]).unwrap();
}

#[test]
fn a_finished_file_is_kept_without_its_segments() {
    let history = begun();
    let history = after(&history, vec![merged(segment(0, 20))]).unwrap();
    let of_file = |history: &History| history.file(TIMELINE, FILE).unwrap().clone();
    let before = of_file(&history);
    let history = sealed_with(&history, 20, Some(index(&[segment(0, 20)]))).unwrap();
    let file = of_file(&history);
    assert_eq!((file.inline(), before.inline()), (None, Some(&[segment(0, 20)][..])));
    for file in [&before, &file] {
        assert_eq!((file.end(), file.count(), file.stored()), (20, 1, 1));
    }
    // What merges have replaced is known by the folder from then on.
    assert_eq!(history.retired, []);
    assert_eq!(file.sealed.as_ref().unwrap().at, Some(Timestamp::UNIX_EPOCH));
    assert!(why(after(&history, vec![grown(FILE, vec![segment(20, 30)])])).contains("is sealed"));
    let doomed = vec![Change::Doomed { objects: vec![file.index().unwrap().object.clone()] }];
    assert!(why(after(&history, doomed)).contains("is needed"));
}

#[test]
fn an_index_of_other_segments_is_refused() {
    let history = begun();
    let sound = || index(&[segment(0, 10), segment(10, 20)]);
    let history_of = |index| sealed_with(&history, 20, Some(index));
    history_of(sound()).unwrap();
    let other = Index { sha256: names::sha256(b"other"), ..sound() };
    for wrong in [
        index(&[segment(0, 20)]),
        index(&[segment(0, 10)]),
        Index { end: 19, ..sound() },
        Index { keys: ["key".to_owned()].into(), ..sound() },
        other,
    ] {
        assert!(why(history_of(wrong)).contains("has others"));
    }
    for elsewhere in ["shop/0001-a/b.000003/x.segments.json.zst", "shop/0001-a/../b.000002/x", "x"] {
        history_of(Index { object: elsewhere.into(), ..sound() }).unwrap_err();
    }
}

#[test]
fn a_finished_file_expires_as_a_whole() {
    let segments = [segment(0, 10), segment(10, 20)];
    let history = sealed_with(&begun(), 20, Some(index(&segments))).unwrap();
    let history = after(&history, vec![expire(FILE)]).unwrap();
    let folder = names::file("shop", TIMELINE, FILE);
    let of_folder = |gone| Retired { object: folder.clone(), at: Timestamp::UNIX_EPOCH, gone };
    let gone = history.gone(TIMELINE, FILE).cloned();
    assert!(gone.is_some());
    assert_eq!(history.retired, [of_folder(gone)]);
    let objects = |objects: &[&str]| objects.iter().map(|object| (*object).to_owned()).collect();
    let part = after(&history, vec![Change::Doomed { objects: objects(&[&segments[0].object]) }]).unwrap();
    assert_eq!(part.retired, [of_folder(None)], "more of it is left");
    assert!(why(after(&part, vec![restore(FILE)])).contains("was to be deleted"));
    let all = Change::Doomed { objects: objects(&[&segments[1].object, &folder]) };
    assert_eq!(after(&part, vec![all]).unwrap().retired, []);
    assert!(why(after(&history, vec![grown(FILE, vec![segment(0, 10)])])).contains("has expired"));
}

#[test]
fn a_file_is_found_by_its_name_in_any_order_of_series() {
    let timeline = Change::Timeline { timeline: TIMELINE.into(), record: String::new() };
    let mut history = after(&History::default(), vec![timeline]).unwrap();
    let names = ["b.000001", "b.000003", "c.000001", "b.000002", "b.1000000", "a.000009", "b.999999"];
    for name in names {
        history = after(&history, vec![grown(name, vec![segment(0, 10)])]).unwrap();
    }
    for name in names {
        assert_eq!(history.file(TIMELINE, name).map(|file| &*file.name), Some(name));
    }
    for name in ["b.000004", "d.000001", "none"] {
        assert_eq!(history.file(TIMELINE, name), None, "{name}");
    }
}
