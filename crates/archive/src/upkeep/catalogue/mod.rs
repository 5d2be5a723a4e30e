//! The backups of a source beside its log: how far each can be brought forward, and which one leads to a point.

use crate::chain::history::{Archived, ArchivedBackup, ArchivedFile, History};
use crate::upkeep::backup::{NoPlace, Point, places};
use crate::upkeep::scrub::follows;
use binlog::timeline::{Reason, Timeline};
use codec::gtid::GtidState;
use codec::{BinlogName, Position};
use jiff::Timestamp;
use std::sync::Arc;

/// A backup, and the log behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// What the archive has of it.
    pub backup: Arc<ArchivedBackup>,
    /// Whether it can be brought forward.
    pub log: Log,
}

/// The log behind a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Log {
    /// It is there from the backup's point on, and has no gap until its end.
    Whole {
        /// The timeline in which the point lies.
        timeline: String,
        /// The file in which it lies.
        file: String,
        /// Where it ends.
        until: End,
    },
    /// The backup restores its own moment and nothing behind it; why, in words.
    Lacking(String),
}

/// The end of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Its timeline.
    pub timeline: String,
    /// Its last file.
    pub file: String,
    /// Offset of its end, in bytes.
    pub position: u64,
    /// GTIDs executed up to there.
    pub gtids: String,
    /// Of the last event, by the source's clock, in seconds since 1970; 0 when no event has a time.
    pub time: u32,
}

impl End {
    /// When the last event was, by the source's clock; `None` when no event has a time.
    pub fn at(&self) -> Option<Timestamp> {
        (self.time != 0).then(|| Timestamp::from_second(i64::from(self.time)).ok()).flatten()
    }
}

/// What can be brought back: any moment from a backup on to the end of the log behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span<'a> {
    /// The oldest backup from which that is so.
    pub from: &'a Listed,
    /// Until there.
    pub until: &'a End,
}

/// Where a restore is to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// The end of the log.
    End,
    /// A time, in microseconds since 1970, by the source's clock.
    Time(i64),
    /// The transaction of this GTID, which the backup must not have.
    Gtids(GtidState),
    /// A place in the source's log.
    Position(Position),
}

impl Listed {
    /// Until where the log behind it is whole.
    pub fn until(&self) -> Option<&End> {
        match &self.log {
            Log::Whole { until, .. } => Some(until),
            Log::Lacking(_) => None,
        }
    }
}

/// All backups of a source, the oldest first.
pub fn list(history: &History) -> Vec<Listed> {
    let listed = |backup: &Arc<ArchivedBackup>| Listed { backup: backup.clone(), log: log(history, backup) };
    history.backups.values().map(listed).collect()
}

/// From the oldest backup that leads to the end to which the newest leads. `None` where no backup has its log.
pub fn span(listed: &[Listed]) -> Option<Span<'_>> {
    let until = listed.iter().rev().find_map(Listed::until)?;
    let from = listed.iter().find(|listed| listed.until() == Some(until))?;
    Some(Span { from, until })
}

/// Until when a span of these goes. Behind its last event a log says nothing of time, and a backup that was made later does.
pub fn ends(listed: &[Listed], span: Span<'_>) -> Option<Timestamp> {
    let there = listed.iter().filter(|listed| listed.until() == Some(span.until));
    there.map(|listed| listed.backup.record.finished).chain(span.until.at()).max()
}

/// The newest backup that is not behind a point, and whose log reaches it.
///
/// # Errors
/// In words, of each backup why it does not lead there.
pub fn choose<'a>(listed: &'a [Listed], reach: &Reach) -> Result<&'a Listed, String> {
    if listed.is_empty() {
        return Err("the archive has no backup of this source: binlogd backup makes one".to_owned());
    }
    let newest = span(listed).map(|span| span.until);
    let mut why_not = Vec::new();
    for one in listed.iter().rev() {
        match leads_to(one, reach, newest) {
            Ok(()) => return Ok(one),
            Err(why) => why_not.push(format!("{}: {why}", one.backup.record.id)),
        }
    }
    Err(format!("no backup leads there. {}", why_not.join(". ")))
}

/// Where the log behind a backup begins and ends.
fn log(history: &History, backup: &ArchivedBackup) -> Log {
    let record = &backup.record;
    let lacking = |why: &str| Log::Lacking(why.to_owned());
    let Some(point) = Point::of(&record.point) else {
        return lacking("its tool told no point, so nobody knows from where on the log is to be applied");
    };
    let mut places = match places(history, &point) {
        Ok(places) => places,
        Err(NoPlace::Before) => return lacking("the log behind it is not in the archive any more"),
        Err(NoPlace::Unread(why)) => return Log::Lacking(why),
        Err(NoPlace::Nowhere) => {
            return lacking(
                "the archive does not have the log of its point: the log is not archived so far yet, or the backup is of a server with \
                 transactions that the source does not have",
            );
        }
    };
    if record.point.gtids.is_empty() {
        // Files of one name are on several servers.
        places.retain(|timeline, _| {
            timeline.split_once('-').is_some_and(|(_, uuid)| uuid == record.server_uuid)
        });
    }
    let whole = |(timeline, place): (&str, usize)| {
        let file = history.timelines.get(timeline)?.files.get(place)?.name.clone();
        Some((timeline.to_owned(), file, end(history, timeline, place)?))
    };
    // Where timelines continue one another the point is in several of them: the newest end counts.
    let found = places.into_iter().filter_map(whole).max_by(|(_, _, one), (_, _, other)| {
        (&one.timeline, one.position).cmp(&(&other.timeline, other.position))
    });
    match found {
        Some((timeline, file, until)) => Log::Whole { timeline, file, until },
        None => lacking("its point is one of another server's log, and has no GTIDs"),
    }
}

/// The end of the log that is whole from a file on: of its timeline, or of the one that continues that.
fn end(history: &History, timeline: &str, place: usize) -> Option<End> {
    let (mut timeline, mut place, mut last) = (timeline, place, None);
    loop {
        let archived = history.timelines.get(timeline)?;
        let (file, is_last) = whole_until(archived.files.get(place..)?)?;
        last = Some(end_of(timeline, file)).or(last);
        let next = history.timelines.iter().rev().find(|(name, next)| continues(next, timeline, name));
        match next {
            Some((name, next)) if is_last && !next.files.is_empty() => (timeline, place) = (name, 0),
            _ => return last,
        }
    }
}

fn end_of(timeline: &str, file: &ArchivedFile) -> End {
    End {
        timeline: timeline.to_owned(),
        file: file.name.clone(),
        position: file.end(),
        gtids: file.gtids.clone(),
        time: file.last_time,
    }
}

/// The last of some files up to which there is no gap, and whether it is the last of all.
fn whole_until(files: &[Arc<ArchivedFile>]) -> Option<(&ArchivedFile, bool)> {
    let goes_on = |pair: &[Arc<ArchivedFile>]| {
        pair[0].sealed.is_some() && pair[0].end() > 0 && follows(&pair[0].name, &pair[1].name)
    };
    let whole = files.windows(2).take_while(|pair| goes_on(pair)).count();
    Some((files.get(whole)?, whole + 1 == files.len()))
}

/// Whether a timeline goes on with the history of the one before it, with nothing lost between.
fn continues(next: &Archived, timeline: &str, name: &str) -> bool {
    let Ok(record) = Timeline::parse(&next.record) else { return false };
    let is_one_history = matches!(record.reason, Reason::SourceChanged | Reason::Fork);
    name != timeline && record.previous == timeline && is_one_history && record.missing.is_empty()
}

/// Whether a backup is not behind the point, and its log reaches it.
fn leads_to(listed: &Listed, reach: &Reach, newest: Option<&End>) -> Result<(), String> {
    let record = &listed.backup.record;
    let (file, until) = match &listed.log {
        Log::Whole { file, until, .. } => (file, until),
        Log::Lacking(why) => return Err(why.clone()),
    };
    let is_newest = Some(until) == newest;
    let (is_behind, is_reached) = match reach {
        Reach::End => (false, is_newest),
        Reach::Time(micros) => (
            record.finished.as_microsecond() > *micros,
            is_newest || i64::from(until.time) * 1_000_000 >= *micros,
        ),
        Reach::Gtids(wanted) => {
            let has = |text: &str| {
                GtidState::parse(record.server_kind, text).map(|all| wanted.subtract(&all).is_empty())
            };
            let has_no_gtids = |_| "it has no GTIDs, and the point is one".to_owned();
            let of_backup =
                !record.point.gtids.is_empty() && has(&record.point.gtids).map_err(has_no_gtids)?;
            (of_backup, has(&until.gtids).map_err(has_no_gtids)?)
        }
        Reach::Position(position) => {
            let wanted = BinlogName::parse(&position.file).map_err(|error| error.to_string())?;
            let number = |name| BinlogName::parse(name).map_err(|error| error.to_string());
            let is_same = **file == *position.file && *file == record.point.file;
            let is_behind = number(file)? > wanted || is_same && record.point.position > position.offset;
            (is_behind, (number(&until.file)?, until.position) >= (wanted, position.offset))
        }
    };
    match (is_behind, is_reached) {
        (true, _) => Err("it is of later than the point".to_owned()),
        (false, false) => Err(format!("its log ends at {}:{}, before the point", until.file, until.position)),
        (false, true) => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests;
