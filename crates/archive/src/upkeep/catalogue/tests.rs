use super::*;
use crate::chain::backup::{BackupPoint, BackupRecord, Stream, Tool};
use crate::chain::history::History;
use binlog::testing::{SERVER_UUID, first_timeline};
use codec::ServerKind;

fn gtids(range: &str) -> String {
    if range.is_empty() { String::new() } else { format!("{SERVER_UUID}:{range}") }
}

fn file(number: u64, sealed: bool) -> Arc<ArchivedFile> {
    let before = if number > 0 { gtids(&format!("1-{}", number * 10)) } else { String::new() };
    let seal = if sealed { r#", "sealed": {"sha256": "", "list": ""}"# } else { "" };
    let text = format!(
        r#"{{"name": "b.{:06}", "head": "", "gtids_before": "{before}", "gtids": "{}", "last_time": {}, "segments": [{{"from": 0,
            "to": 900, "sha256": "", "object": "", "stored": 9, "stored_sha256": ""}}]{seal}}}"#,
        number + 1,
        gtids(&format!("1-{}", number * 10 + 10)),
        (number + 1) * 1000
    );
    Arc::new(serde_json::from_str(&text).unwrap())
}

/// Files `from..to`, in each of which ten transactions are, numbered on from `from * 10`; the last one is written.
fn timeline(previous: &str, reason: Reason, from: u64, to: u64) -> Arc<Archived> {
    let record = Timeline { previous: previous.into(), reason, ..first_timeline(SERVER_UUID) };
    let files = (from..to).map(|number| file(number, number + 1 < to)).collect();
    Arc::new(Archived { record: record.to_text().unwrap(), files, expired: String::new() })
}

fn backup(at: &str, point: BackupPoint) -> Arc<ArchivedBackup> {
    let digits = at.split_once('-').map_or(at, |(at, _)| at);
    let parsed = jiff::fmt::strtime::parse("%Y%m%dT%H%M%SZ", digits).unwrap().to_datetime().unwrap();
    let finished = parsed.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp();
    let record = BackupRecord {
        id: at.to_owned(),
        tool: Tool::Mysqldump,
        tool_version: String::new(),
        stream: Stream::Sql,
        server_kind: ServerKind::MySql,
        server_version: "9.7.0".into(),
        server_uuid: SERVER_UUID.into(),
        started: finished,
        finished,
        point,
        remarks: Vec::new(),
    };
    let mut file = ArchivedFile::clone(&file(0, true));
    file.name = at.to_owned();
    Arc::new(ArchivedBackup { record, file: Arc::new(file) })
}

/// Timelines `0001-<uuid>` of the files 2 to 4, and `0002-<uuid>` of 4 to 7, which continues it; and backups at these points.
pub(crate) fn scene<'a>(backups: impl Iterator<Item = (&'a str, &'a str)>) -> History {
    let first = format!("0001-{SERVER_UUID}");
    let second = timeline(&first, Reason::SourceChanged, 4, 8);
    let timelines = [(first, timeline("", Reason::First, 2, 5)), (format!("0002-{SERVER_UUID}"), second)];
    let point = |range: &str| BackupPoint { gtids: gtids(range), ..BackupPoint::default() };
    History {
        timelines: timelines.into(),
        backups: backups.map(|(at, range)| (at.to_owned(), backup(at, point(range)))).collect(),
        ..History::default()
    }
}

fn of_points(points: &[&str]) -> History {
    let names: Vec<String> = (0..points.len()).map(|at| format!("19700101T{at:02}0000Z-{at}")).collect();
    scene(names.iter().map(String::as_str).zip(points.iter().copied()))
}

fn whole(listed: &Listed) -> (&str, &str, &str, u64) {
    match &listed.log {
        Log::Whole { timeline, file, until } => (&timeline[..4], file, &until.file, until.position),
        Log::Lacking(why) => panic!("{why}"),
    }
}

fn lacking(listed: &Listed) -> &str {
    match &listed.log {
        Log::Lacking(why) => why,
        whole => panic!("{whole:?}"),
    }
}

#[test]
fn a_log_goes_on_over_timelines_until_the_first_gap() {
    let history = of_points(&["1-25", "1-45", "1-72", "1-19", "1-99", ""]);
    let listed = list(&history);
    assert_eq!(whole(&listed[0]), ("0001", "b.000003", "b.000008", 900));
    assert_eq!(whole(&listed[1]).2, "b.000008");
    assert_eq!(whole(&listed[2]), ("0002", "b.000008", "b.000008", 900));
    for (at, words) in [(3, "not in the archive any more"), (4, "not archived so far"), (5, "told no point")]
    {
        assert!(lacking(&listed[at]).contains(words), "{}", lacking(&listed[at]));
    }
    let found = span(&listed).unwrap();
    assert_eq!((&*found.from.backup.record.id, &*found.until.file), ("19700101T000000Z-0", "b.000008"));

    // A file is missing: the log of the first ends before it, and the span begins behind it.
    let mut holed = history.clone();
    let name = holed.timelines.keys().next_back().unwrap().clone();
    let archived = Arc::make_mut(holed.timelines.get_mut(&name).unwrap());
    archived.files.remove(1);
    let listed = list(&holed);
    assert_eq!(whole(&listed[0]).2, "b.000005");
    assert_eq!(span(&listed).unwrap().from.backup.record.id, "19700101T020000Z-2");
    // A gap between the timelines.
    for (reason, missing) in [(Reason::Gap, ""), (Reason::SourceReset, ""), (Reason::SourceChanged, "x:1")] {
        let mut parted = history.clone();
        let archived = Arc::make_mut(parted.timelines.get_mut(&name).unwrap());
        let record =
            Timeline { reason, missing: missing.into(), ..Timeline::parse(&archived.record).unwrap() };
        archived.record = record.to_text().unwrap();
        assert_eq!(whole(&list(&parted)[0]).2, "b.000005", "{reason:?}");
    }
}

#[test]
fn a_point_without_gtids_is_one_of_the_same_server() {
    let mut history = of_points(&[]);
    let at = |position| BackupPoint { file: "b.000004".into(), position, ..BackupPoint::default() };
    history.backups = [("19700101T000000Z".to_owned(), backup("19700101T000000Z", at(500)))].into();
    assert_eq!(whole(&list(&history)[0]), ("0001", "b.000004", "b.000008", 900));
    history.backups = [("19700101T000000Z".to_owned(), backup("19700101T000000Z", at(901)))].into();
    assert!(lacking(&list(&history)[0]).contains("not archived so far"));
    let mut other = ArchivedBackup::clone(&backup("19700101T000000Z", at(500)));
    other.record.server_uuid = "00000000-0000-0000-0000-000000000009".into();
    history.backups = [(other.record.id.clone(), Arc::new(other))].into();
    assert!(lacking(&list(&history)[0]).contains("another server's log"));
}

#[test]
fn the_newest_backup_before_the_point_is_chosen() {
    let history = of_points(&["1-25", "1-45", "1-72", "1-99"]);
    let listed = list(&history);
    let chosen = |reach: &Reach| choose(&listed, reach).map(|one| one.backup.record.point.gtids.clone());
    let gtid = |range: &str| Reach::Gtids(GtidState::parse(ServerKind::MySql, &gtids(range)).unwrap());
    let position = |file: &str, offset| Reach::Position(Position::new(file.to_owned(), offset));
    for (reach, range) in [
        (Reach::End, "1-72"),
        (gtid("73"), "1-72"),
        (gtid("72"), "1-45"),
        (gtid("26"), "1-25"),
        (Reach::Time(2 * 3600 * 1_000_000), "1-72"),
        (Reach::Time(3600 * 1_000_000), "1-45"),
        (Reach::Time(1), "1-25"),
        (position("b.000008", 4), "1-72"),
        (position("b.000006", 4), "1-45"),
    ] {
        let found = chosen(&reach);
        let expected = gtids(range);
        assert_eq!(found.as_ref(), Ok(&expected), "{reach:?}");
    }
    for (reach, words) in [
        (gtid("7"), "later than the point"),
        (gtid("99"), "before the point"),
        (position("b.000009", 4), "before the point"),
    ] {
        let error = chosen(&reach).unwrap_err();
        assert!(error.contains(words) && error.contains("19700101T020000Z-2"), "{error}");
    }
    assert!(choose(&[], &Reach::End).unwrap_err().contains("no backup"));
}
