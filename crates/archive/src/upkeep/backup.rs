//! Points of backups, from which on history must stay: a backup without what was written after it is worth its own moment only.

use crate::chain::backup::BackupPoint;
use crate::chain::history::{Archived, History};
use crate::fetch::{Bound, first};
use binlog::timeline::Timeline;
use codec::BinlogName;
use codec::gtid::GtidState;
use std::collections::BTreeMap;
use std::fmt;

/// Where a backup stands in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    bound: Bound,
    /// The place in the file, where that was said.
    offset: Option<u64>,
}

/// What a point keeps of a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeps {
    /// The point, as it was given.
    pub point: String,
    /// The timeline.
    pub timeline: String,
    /// The first file that stays.
    pub from: String,
    /// So many files stay: from that one on all that there are.
    pub files: usize,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.bound, self.offset) {
            (Bound::Gtids(text), _) => f.write_str(text),
            (Bound::File(name), Some(offset)) => write!(f, "{name}:{offset}"),
            (Bound::File(name), None) => f.write_str(name),
            (Bound::Time(at), _) => write!(f, "{at}"),
        }
    }
}

impl Point {
    /// Reads a point: a set of GTIDs as `gtid_executed` has it, `FILE:POS`, or a line of `xtrabackup_binlog_info`, whose set
    /// of GTIDs counts where it has one.
    ///
    /// # Errors
    /// In words.
    pub fn parse(text: &str) -> Result<Point, String> {
        let mut words = text.split_whitespace();
        if let (Some(name), Some(offset)) = (words.next(), words.next())
            && BinlogName::parse(name).is_ok()
            && let Ok(offset) = offset.parse()
        {
            let gtids: String = words.collect();
            return match gtids.is_empty() {
                true => Ok(Point { bound: Bound::File(name.to_owned()), offset: Some(offset) }),
                false => Ok(Point { bound: Bound::Gtids(gtids), offset: None }),
            };
        }
        let text: String = text.split_whitespace().collect();
        if let Some((name, offset)) = text.rsplit_once(':')
            && BinlogName::parse(name).is_ok()
        {
            let offset = offset.parse().map_err(|_| format!("{text:?}: {offset:?} is no position"))?;
            return Ok(Point { bound: Bound::File(name.to_owned()), offset: Some(offset) });
        }
        if !text.contains([':', '-']) || BinlogName::parse(&text).is_ok() {
            return Err(format!(
                "{text:?} is no point of a backup: give the GTIDs that it has executed, or FILE:POS, as mysql-bin.000123:4567"
            ));
        }
        Ok(Point { bound: Bound::Gtids(text), offset: None })
    }

    /// That of a backup in the archive; `None` where its tool told none.
    pub fn of(point: &BackupPoint) -> Option<Point> {
        match (&*point.gtids, &*point.file) {
            ("", "") => None,
            ("", file) => Some(Point { bound: Bound::File(file.to_owned()), offset: Some(point.position) }),
            (gtids, _) => Some(Point { bound: Bound::Gtids(gtids.to_owned()), offset: None }),
        }
    }

    /// Reads a file of points: one a line, a set of GTIDs goes on in the next line behind a comma. Empty lines, and what begins
    /// with #, are passed over.
    ///
    /// # Errors
    /// In words, with the line.
    pub fn parse_lines(text: &str) -> Result<Vec<Point>, String> {
        let mut points = Vec::new();
        let mut open = String::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            open.push_str(line);
            if !line.ends_with(',') {
                points.push(
                    Point::parse(&std::mem::take(&mut open))
                        .map_err(|why| format!("line {}: {why}", at + 1))?,
                );
            }
        }
        match open.is_empty() {
            true => Ok(points),
            false => Err(format!("the last line ends with a comma: {open:?} goes on nowhere")),
        }
    }
}

/// What the points keep of each timeline, point by point. Where a point lies, everything from its file on stays, and of the
/// timelines that continue that one, everything.
///
/// # Errors
/// In words, with what to do, when the archive does not have one of the points.
pub fn keeps(history: &History, points: &[Point]) -> Result<Vec<Keeps>, String> {
    let mut all = Vec::new();
    for point in points {
        let places = places(history, point).map_err(|no| no.words(point, history))?;
        all.extend(keep(history, point, places));
    }
    Ok(all)
}

/// What a point keeps that lies at these places.
pub(crate) fn keep<'a>(history: &'a History, point: &Point, places: BTreeMap<&'a str, usize>) -> Vec<Keeps> {
    let concerned = with_successors(history, places);
    let keeps = |(timeline, place): (&str, usize)| {
        let archived = history.timelines.get(timeline)?;
        let files = archived.files.len().saturating_sub(place);
        let from = archived.files.get(place)?.name.clone();
        Some(Keeps { point: point.to_string(), timeline: timeline.to_owned(), from, files })
    };
    concerned.into_iter().filter_map(keeps).collect()
}

/// Why a point lies nowhere in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// The archive begins behind it.
    Before,
    /// It cannot be read as one of a timeline; in words.
    Unread(String),
    /// No timeline has it.
    Nowhere,
}

impl NoPlace {
    fn words(self, point: &Point, history: &History) -> String {
        match self {
            NoPlace::Before => format!(
                "the archive begins behind the point {point}: what came next is not there any more, so that backup cannot be brought \
                 forward from here. Leave the point out, if that is known; nothing was pruned"
            ),
            NoPlace::Unread(why) if history.timelines.len() == 1 => format!("{why}; nothing was pruned"),
            _ => format!(
                "the archive does not have the point {point}: the backup is of another source, or newer than what is archived, or \
                 what it names was let go. Look at `binlogd verify URL` and `binlogd status`, and leave the point out or wait; \
                 nothing was pruned"
            ),
        }
    }
}

/// Where the point lies: timelines, and places of files in them.
pub(crate) fn places<'a>(history: &'a History, point: &Point) -> Result<BTreeMap<&'a str, usize>, NoPlace> {
    let mut places = BTreeMap::new();
    let (mut is_before, mut unread) = (false, None);
    for (timeline, archived) in &history.timelines {
        match place(archived, point) {
            Ok(Found::In(place)) => drop(places.insert(timeline.as_str(), place)),
            Ok(Found::Before) => is_before = true,
            Ok(Found::Nowhere) => {}
            Err(why) => unread = Some(why),
        }
    }
    if !places.is_empty() {
        return Ok(places);
    }
    Err(match unread {
        _ if is_before => NoPlace::Before,
        Some(why) => NoPlace::Unread(why),
        None => NoPlace::Nowhere,
    })
}

enum Found {
    In(usize),
    /// In front of the first file that is there.
    Before,
    Nowhere,
}

fn place(archived: &Archived, point: &Point) -> Result<Found, String> {
    if archived.files.is_empty() {
        return Ok(Found::Nowhere);
    }
    let found = first(archived, &point.bound).map_err(|error| error.to_string())?;
    match (&point.bound, found) {
        (Bound::File(name), None) if archived.has_expired(name) => Ok(Found::Before),
        (Bound::File(_), Some(place)) => {
            let is_in = point.offset.is_none_or(|offset| offset <= archived.files[place].end());
            Ok(if is_in { Found::In(place) } else { Found::Nowhere })
        }
        (Bound::Gtids(text), None) => {
            let record = Timeline::parse(&archived.record)?;
            let read = |text: &str| GtidState::parse(record.server_kind, text).map_err(|e| e.to_string());
            let Some(before) = archived.files[0].gtids_before.as_deref() else { return Ok(Found::Nowhere) };
            let (wanted, before) = (read(text)?, read(before)?);
            Ok(match (wanted.subtract(&before).is_empty(), before.subtract(&wanted).is_empty()) {
                (true, true) => Found::In(0),
                (true, false) => Found::Before,
                _ => Found::Nowhere,
            })
        }
        (_, Some(place)) if place < archived.files.len() => Ok(Found::In(place)),
        _ => Ok(Found::Nowhere),
    }
}

/// With the timelines that continue those in which the point lies, whatever of them: names stand in the order in which
/// timelines began.
fn with_successors<'a>(
    history: &'a History,
    mut places: BTreeMap<&'a str, usize>,
) -> BTreeMap<&'a str, usize> {
    for (timeline, archived) in &history.timelines {
        let previous = Timeline::parse(&archived.record).map(|record| record.previous).unwrap_or_default();
        if !previous.is_empty() && places.contains_key(previous.as_str()) {
            places.entry(timeline).or_insert(0);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::history::ArchivedFile;
    use binlog::testing::{SERVER_UUID, first_timeline};
    use std::sync::Arc;

    fn gtids(range: &str) -> String {
        format!("{SERVER_UUID}:{range}")
    }

    /// Files `from..to`, in each of which ten transactions are, numbered on from `from * 10`.
    fn timeline(previous: &str, from: u64, to: u64) -> Arc<Archived> {
        let record = Timeline { previous: previous.into(), ..first_timeline(SERVER_UUID) };
        let file = |number: u64| {
            let before = if number > 0 { gtids(&format!("1-{}", number * 10)) } else { String::new() };
            let text = format!(
                r#"{{"name": "b.{:06}", "head": "", "gtids_before": "{before}", "gtids": "{}", "last_time": 0}}"#,
                number + 1,
                gtids(&format!("1-{}", number * 10 + 10))
            );
            Arc::new(serde_json::from_str::<ArchivedFile>(&text).unwrap())
        };
        let files = (from..to).map(file).collect();
        Arc::new(Archived { record: record.to_text().unwrap(), files, expired: String::new() })
    }

    /// Timeline 2 continues 1, and 3 is of another history.
    fn history() -> History {
        let timelines = [
            ("0001-a".to_owned(), timeline("", 2, 5)),
            ("0002-b".to_owned(), timeline("0001-a", 4, 8)),
            ("0003-c".to_owned(), timeline("", 20, 22)),
        ];
        History { timelines: timelines.into(), ..History::default() }
    }

    fn kept(point: &str) -> Result<Vec<(String, String, usize)>, String> {
        let found = keeps(&history(), &[Point::parse(point)?])?;
        Ok(found.into_iter().map(|keeps| (keeps.timeline, keeps.from, keeps.files)).collect())
    }

    fn of(rows: &[(&str, &str, usize)]) -> Result<Vec<(String, String, usize)>, String> {
        Ok(rows.iter().map(|(t, f, n)| ((*t).to_owned(), (*f).to_owned(), *n)).collect())
    }

    #[test]
    fn a_point_keeps_its_file_and_all_that_continues() {
        let both = |from: &str, files| of(&[("0001-a", from, files), ("0002-b", "b.000005", 4)]);
        assert_eq!(kept(&gtids("1-25")), both("b.000003", 3));
        assert_eq!(kept(&gtids("1-30")), both("b.000003", 3));
        assert_eq!(kept(&gtids("1-31")), both("b.000004", 2));
        // In both: the successor's first file has what the end of the one before has.
        assert_eq!(kept(&gtids("1-45")), both("b.000005", 1));
        assert_eq!(kept(&gtids("1-72")), of(&[("0002-b", "b.000008", 1)]));
        assert_eq!(kept("b.000004:0"), both("b.000004", 2));
        assert_eq!(kept("b.000022:0"), of(&[("0003-c", "b.000022", 1)]));
        // Exactly where the archive begins.
        assert_eq!(kept(&gtids("1-20")), both("b.000003", 3));
    }

    #[test]
    fn a_point_that_is_not_there_is_an_error_that_says_what_to_do() {
        for (point, words) in [
            (gtids("1-19"), "the archive begins behind the point"),
            (gtids("1-999"), "does not have the point"),
            ("b.000004:99".to_owned(), "does not have the point"),
            ("b.000044:0".to_owned(), "does not have the point"),
            ("mysql-bin.000001".to_owned(), "is no point of a backup"),
            ("yesterday".to_owned(), "is no point of a backup"),
            ("b.000004:four".to_owned(), "is no position"),
        ] {
            let error = kept(&point).unwrap_err();
            assert!(error.contains(words), "{point}: {error}");
        }
    }

    #[test]
    fn points_are_read_as_the_tools_write_them() {
        let one = gtids("1-31");
        let text = format!(
            "# of the weekly backup\n{one}\n\nb.000003\t157\t{SERVER_UUID}:1-25,\n{SERVER_UUID}:31\nmysql-bin.000002 157\n"
        );
        let points = Point::parse_lines(&text).unwrap();
        let shown: Vec<String> = points.iter().map(ToString::to_string).collect();
        let two = format!("{SERVER_UUID}:1-25,{SERVER_UUID}:31");
        assert_eq!(shown, [one, two, "mysql-bin.000002:157".to_owned()]);
        assert!(Point::parse_lines("a:1-2,\n").unwrap_err().contains("goes on nowhere"));
        assert!(Point::parse_lines("\nnonsense\n").unwrap_err().contains("line 2"));
    }
}
