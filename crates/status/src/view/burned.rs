//! What a fire would take that leaves the archive alone: one sentence, by measurements only, which never promises less loss than there
//! would be.

use crate::units::{bytes, counted, duration};
use crate::{ArchiveState, ArchiveStatus, BackupsStatus, DaemonStatus, DrillsStatus, SourceStatus};
use codec::Position;
use jiff::Timestamp;

/// More sources than this are told by the worst of them.
const SOURCES_MAX: usize = 4;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const TWO_DAYS: u64 = 2 * DAY;

/// What would be lost of a source, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Loss {
    Nothing,
    /// What was acknowledged within the last seconds, and so many bytes of the log where that is known.
    Last {
        seconds: u64,
        bytes: Option<u64>,
    },
    /// What was committed behind the end of the log of the newest backup.
    Behind(Timestamp),
    Unknown(&'static str),
    /// Nothing leads back.
    NoBackup,
}

/// The sentences of a daemon: one a source that is archived, or that of the worst of many. None where nothing is archived, and where no
/// daemon runs.
pub fn if_this_site_burned(status: &DaemonStatus, now: Timestamp) -> Vec<String> {
    let of = |source| Some((loss(source, now)?, source));
    let mut found: Vec<(Loss, &SourceStatus)> = status.sources.iter().filter_map(of).collect();
    let count = found.len();
    if count > SOURCES_MAX {
        found.sort_by_key(|(loss, _)| std::cmp::Reverse(*loss));
        found.truncate(1);
    }
    let said = |(loss, source): (Loss, &SourceStatus)| {
        let whose = match (status.sources.len(), count > SOURCES_MAX) {
            (1, _) => String::new(),
            (_, false) => format!(", {}", source.name),
            (_, true) => format!(", {}, the worst of {count}", source.name),
        };
        let archive = source.archive.as_ref()?;
        let parts = [words(loss, source), back(archive, now), oldest(archive, now), remarks(archive)];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Some(format!("If this site burned now{whose}: {}.", parts.join(", ")))
    };
    found.into_iter().filter_map(said).collect()
}

fn loss(source: &SourceStatus, now: Timestamp) -> Option<Loss> {
    let archive = source.archive.as_ref()?;
    if archive.put_back().is_some() {
        return Some(Loss::Unknown("the archive was put back to an older state"));
    }
    let Some(backups) = &archive.backups else {
        return Some(Loss::Unknown("the archive was not read since the start"));
    };
    let Some(to) = backups.recoverable_to else { return Some(Loss::NoBackup) };
    if !backups.reaches_end {
        return Some(Loss::Behind(to));
    }
    let Some(until) = archive.complete_until else {
        return Some(Loss::Unknown("the archive has not had everything since the start"));
    };
    if has_all(source, archive) {
        return Some(Loss::Nothing);
    }
    let seconds = u64::try_from(now.duration_since(until).as_secs()).unwrap_or(0) + 1;
    Some(Loss::Last { seconds, bytes: lacking(source, archive) })
}

/// Whether the archive has all that the copy had when this was told, whatever the copy has acknowledged.
fn has_all(source: &SourceStatus, archive: &ArchiveStatus) -> bool {
    let Some(complete) = &archive.complete_position else { return false };
    let order = |at: &Position| (at.file.len(), at.file.to_string(), at.offset);
    let positions = &source.positions;
    let is_there = |at: &Option<Position>| at.as_ref().is_none_or(|at| order(at) <= order(complete));
    archive.state == ArchiveState::Current
        && archive.complete_timeline.is_some()
        && archive.complete_timeline == source.timeline
        && positions.durable.is_some()
        && [&positions.written, &positions.durable, &positions.acknowledged].into_iter().all(is_there)
}

/// How much of the log the archive lacks, where that is in one file.
fn lacking(source: &SourceStatus, archive: &ArchiveStatus) -> Option<u64> {
    let (written, complete) = (source.positions.written.as_ref()?, archive.complete_position.as_ref()?);
    let is_one = archive.complete_timeline == source.timeline && written.file == complete.file;
    is_one.then(|| written.offset.saturating_sub(complete.offset))
}

fn words(loss: Loss, source: &SourceStatus) -> String {
    let lost = match loss {
        Loss::Nothing => "nothing acknowledged is lost".to_owned(),
        Loss::Last { seconds, bytes: lacking } => {
            let much = lacking.map_or(String::new(), |lacking| format!(" ({} of the log)", bytes(lacking)));
            format!(
                "at most what was acknowledged in the last {}{much} is lost{}",
                above(seconds),
                others(source)
            )
        }
        Loss::Behind(to) => format!(
            "all since {} is lost, where the log behind the newest backup ends{}",
            crate::human_time(to),
            others(source)
        ),
        Loss::Unknown(why) => format!("nobody knows what is lost: {why}{}", others(source)),
        Loss::NoBackup => {
            "the archive leads nowhere, for it has no backup with its log (binlogd backup makes one)"
                .to_owned()
        }
    };
    if source.is_receiving() && source.semi_sync.active {
        return lost;
    }
    lost + " (what was not received yet is lost: commits do not wait for this copy)"
}

/// What of it may be elsewhere.
fn others(source: &SourceStatus) -> String {
    let nodes = source.quorum.iter().flat_map(|quorum| &quorum.others).filter(|node| node.counts).count();
    match nodes {
        0 => String::new(),
        nodes => format!(" unless {} of the quorum survives", counted(nodes as u64, "other node")),
    }
}

fn back(archive: &ArchiveStatus, now: Timestamp) -> String {
    let untried = || "how long the way back takes nobody has tried ([drill] does it each night)".to_owned();
    let Some(drill) = &archive.drill else { return untried() };
    let DrillsStatus { last_passed, .. } = drill;
    let passed = last_passed.as_ref().map(|passed| {
        let took = above(passed.seconds.ceil() as u64);
        let ago = now.duration_since(passed.finished).as_secs();
        format!("back in about {took} (drilled {} ago)", below(u64::try_from(ago).unwrap_or(0)))
    });
    match (passed, drill.failed()) {
        (None, None) => untried(),
        (None, Some(_)) => "the way back has FAILED in the last drill".to_owned(),
        (Some(passed), None) => passed,
        (Some(passed), Some(_)) => format!("{passed}, but the last drill has FAILED"),
    }
}

fn oldest(archive: &ArchiveStatus, now: Timestamp) -> String {
    let from = archive.backups.as_ref().and_then(|backups: &BackupsStatus| backups.recoverable_from);
    let age = from.and_then(|from| u64::try_from(now.duration_since(from).as_secs()).ok());
    age.map_or(String::new(), |age| format!("oldest point {} ago", below(age)))
}

fn remarks(archive: &ArchiveStatus) -> String {
    match (archive.findings(), archive.url.starts_with("file:")) {
        (1.., _) => "as far as the archive is sound: it is damaged".to_owned(),
        (0, true) => format!("if {} is not at this site", archive.url),
        (0, false) => String::new(),
    }
}

/// A time that is not longer, by its largest unit.
fn below(seconds: u64) -> String {
    match seconds {
        0..MINUTE => format!("{seconds} s"),
        MINUTE..HOUR => format!("{} min", seconds / MINUTE),
        HOUR..TWO_DAYS => format!("{} h", seconds / HOUR),
        _ => format!("{} days", seconds / DAY),
    }
}

/// A time that is not shorter, and not longer by more than what nobody asks for.
fn above(seconds: u64) -> String {
    let unit = match seconds {
        0..600 => 10,
        600..36_000 => MINUTE,
        _ => HOUR,
    };
    let text = duration(seconds.div_ceil(unit).max(1) * unit);
    let whole = [" 0 s", " 0 min", " 0 h"].into_iter().find_map(|none| text.strip_suffix(none));
    whole.map_or_else(|| text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DrillResult, Ladder, SemiSyncStatus, StateName};
    use std::sync::Arc;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn place(file: &str, offset: u64) -> Option<Position> {
        Some(Position::new(file, offset))
    }

    /// All is archived, a backup leads there, and a drill has passed.
    fn source() -> SourceStatus {
        let passed =
            DrillResult { finished: at(1000), seconds: 312.4, passed: true, ..DrillResult::default() };
        let backups = BackupsStatus {
            count: 2,
            with_log: 2,
            recoverable_from: Some(at(0)),
            recoverable_to: Some(at(4000)),
            reaches_end: true,
            ..BackupsStatus::default()
        };
        let archive = ArchiveStatus {
            state: ArchiveState::Current,
            url: "s3://b".to_owned(),
            complete_until: Some(at(4995)),
            complete_timeline: Some("0001-a".to_owned()),
            complete_position: place("b.000009", 500),
            backups: Some(backups),
            drill: Some(DrillsStatus {
                last_passed: Some(passed.clone()),
                list: Arc::new([passed]),
                ..DrillsStatus::default()
            }),
            ..ArchiveStatus::default()
        };
        SourceStatus {
            name: "shop".to_owned(),
            state: StateName::Receiving,
            semi_sync: SemiSyncStatus { active: true, reason: String::new() },
            timeline: Some("0001-a".to_owned()),
            positions: ladder(500),
            archive: Some(archive),
            ..SourceStatus::default()
        }
    }

    fn ladder(offset: u64) -> Ladder {
        let here = || place("b.000009", offset);
        Ladder { received: here(), written: here(), durable: here(), acknowledged: here() }
    }

    fn said(change: impl FnOnce(&mut SourceStatus)) -> String {
        let mut source = source();
        change(&mut source);
        let status = DaemonStatus { sources: vec![source], ..DaemonStatus::default() };
        if_this_site_burned(&status, at(5000)).remove(0)
    }

    #[test]
    fn a_site_of_which_all_is_archived_and_drilled_loses_nothing() {
        assert_eq!(
            said(|_| {}),
            "If this site burned now: nothing acknowledged is lost, back in about 5 min 20 s (drilled 1 h ago), oldest point 1 h ago."
        );
        // After a rotation the acknowledged position stands in the file before.
        assert!(
            said(|it| it.positions.acknowledged = place("b.000008", 9_000)).contains("nothing acknowledged")
        );
    }

    #[test]
    fn nothing_is_called_safe_that_the_archive_may_lack() {
        fn archive(it: &mut SourceStatus) -> &mut ArchiveStatus {
            it.archive.as_mut().unwrap()
        }
        type Change = fn(&mut SourceStatus);
        let changes: [(Change, &str); 12] = [
            (
                |it| it.positions = ladder(1_524),
                "at most what was acknowledged in the last 10 s (1.0 KiB of the log) is lost",
            ),
            // With fsync_mode = 0 what is written is acknowledged.
            (|it| it.positions.written = place("b.000009", 600), "in the last 10 s"),
            (|it| it.positions.acknowledged = place("b.000010", 4), "in the last 10 s"),
            (|it| it.timeline = Some("0002-b".to_owned()), "in the last 10 s is lost"),
            (|it| archive(it).state = ArchiveState::Failing, "in the last 10 s"),
            (|it| archive(it).complete_until = None, "nobody knows what is lost"),
            (|it| archive(it).backups = None, "nobody knows what is lost"),
            (|it| archive(it).backups.as_mut().unwrap().recoverable_to = None, "leads nowhere"),
            (
                |it| archive(it).backups.as_mut().unwrap().reaches_end = false,
                "all since 1970-01-01 01:06:40 UTC is lost",
            ),
            (|it| it.semi_sync.active = false, "what was not received yet is lost"),
            (|it| archive(it).kept_findings = 1, "it is damaged"),
            (|it| archive(it).url = "file:///mnt/b".to_owned(), "if file:///mnt/b is not at this site"),
        ];
        for (change, words) in changes {
            let said = said(change);
            assert!(said.contains(words), "{words}: {said}");
        }
    }

    #[test]
    fn without_a_drill_that_passed_it_says_so() {
        let drill = |change: fn(&mut ArchiveStatus)| said(|it| change(it.archive.as_mut().unwrap()));
        assert!(drill(|archive| archive.drill = None).contains("nobody has tried"));
        assert!(drill(|archive| archive.drill = Some(DrillsStatus::default())).contains("nobody has tried"));
        let fails = drill(|archive| {
            archive.drill.as_mut().unwrap().list = Arc::new([DrillResult::default()]);
        });
        assert!(
            fails.contains("back in about 5 min 20 s") && fails.contains("but the last drill has FAILED"),
            "{fails}"
        );
    }

    #[test]
    fn times_are_never_shorter_than_they_are() {
        let shown = [1, 10, 11, 60, 61, 313, 600, 601, 36_000, 36_001, 172_801].map(above);
        let wanted = [
            "10 s",
            "10 s",
            "20 s",
            "1 min",
            "1 min 10 s",
            "5 min 20 s",
            "10 min",
            "11 min",
            "10 h",
            "11 h",
            "2 d 1 h",
        ];
        assert_eq!(shown, wanted);
    }

    #[test]
    fn many_sources_are_told_by_the_worst() {
        let named = |number: u64| {
            let mut one = SourceStatus { name: format!("s{number}"), ..source() };
            one.positions = ladder(500 + number % 2);
            one.archive.as_mut().unwrap().complete_until = Some(at(5000 - 60 * number as i64));
            one
        };
        let status = DaemonStatus { sources: (0..6).map(named).collect(), ..DaemonStatus::default() };
        let said = if_this_site_burned(&status, at(5000));
        assert_eq!(said.len(), 1);
        assert!(
            said[0].starts_with("If this site burned now, s5, the worst of 6: at most what was "),
            "{said:?}"
        );
        let few = DaemonStatus { sources: (0..2).map(named).collect(), ..DaemonStatus::default() };
        assert_eq!(if_this_site_burned(&few, at(5000)).len(), 2);
    }
}
