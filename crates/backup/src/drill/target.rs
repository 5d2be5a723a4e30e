//! The point to which a drill brings a backup, and whether that was reached.

use super::pair::random;
use crate::new_server::Hear;
use crate::new_server::choose::backup_at;
use archive::chain::backup::BackupRecord;
use codec::gtid::{GtidSet, GtidState, MariadbGtidState};
use codec::{Position, ServerKind};
use config::{Point, PointPlace};
use jiff::Timestamp;
use repair::history::{Copied, Until};
use repair::restore::{Course, NoCourse, NoRestore, ahead};
use source::identify::SourceIdentity;
use std::fmt::Display;

/// See [the module](self).
#[derive(Debug)]
pub(super) struct Target {
    /// It, as a restore is told.
    pub(super) until: Until,
    /// What is between the backup and it.
    pub(super) course: Course,
}

impl Target {
    /// The point of the next backup; where there is none a random one behind the backup.
    ///
    /// # Errors
    /// In words: the log does not lead there, or has no such point.
    pub(super) fn of(
        copied: &Copied,
        first: &BackupRecord,
        next: Option<&BackupRecord>,
        hear: &mut Hear<'_>,
    ) -> Result<Target, String> {
        let has_gtids = first.server_kind == ServerKind::MariaDb || !first.point.gtids.is_empty();
        let mut way = |until: Until| {
            let course = ahead(copied, &backup_at(&first.point), has_gtids, &until, hear)?;
            Ok::<Target, NoRestore>(Target { until, course })
        };
        let lost = |error: NoRestore| {
            let is_gap = matches!(&error, NoRestore::Course(why) if why.is_gap());
            let begin = if is_gap { "gap in the log: " } else { "" };
            format!("{begin}backup {} cannot be brought forward: {error}", first.id)
        };
        let Some(next) = next else {
            let whole = way(Until::End).map_err(lost)?;
            return match whole.at_random(copied, first)? {
                Some(until) => way(until).map_err(lost),
                None => Ok(whole),
            };
        };
        let wrong = |there: &str| {
            format!(
                "wrong point: backup {} is recorded with {}, and the log has no such moment: there it is {there}. The backup is another server's, or \
                 what was recorded is not what its tool said",
                next.id, next.point
            )
        };
        if has_gtids {
            let set = GtidState::parse(next.server_kind, &next.point.gtids).map_err(words)?;
            let target = way(Until::Executed(set.clone())).map_err(lost)?;
            let there = &target.course.at_the_point;
            return if is_same(there, &set) { Ok(target) } else { Err(wrong(&there.to_line())) };
        }
        let at = Position::new(next.point.file.clone(), next.point.position);
        let place = PointPlace::Position(at.clone());
        let before = Until::Before(Point { text: at.to_string(), place });
        let target = match way(before) {
            // Nothing comes behind it.
            Err(NoRestore::Course(why)) if matches!(*why, NoCourse::NotReached { .. }) => way(Until::End),
            found => found,
        };
        let target = target.map_err(lost)?;
        let end = target.course.stretch.as_ref().map(|stretch| &stretch.end);
        // A file that has just begun has nothing of its own yet.
        let is_there = |end: &Position| *end == at || *end.file < *at.file || target.course.transactions == 0;
        match end {
            Some(end) if !is_there(end) => Err(wrong(&end.to_string())),
            _ => Ok(target),
        }
    }

    /// A random point of the way; `None` where there is nothing on it.
    fn at_random(&self, copied: &Copied, first: &BackupRecord) -> Result<Option<Until>, String> {
        let course = &self.course;
        if course.transactions == 0 {
            return Ok(None);
        }
        let after = match (&course.lacked, &course.stretch) {
            (_, Some(stretch)) => {
                let files = copied.files().map_err(words)?;
                let names: Vec<_> = files.iter().map(|file| file.name.clone()).collect();
                let at = |name: &str| names.iter().rposition(|other| **other == *name).unwrap_or(0);
                let (from, to) = (at(&stretch.begin.file), at(&stretch.end.file));
                let chosen = from + random((to - from + 1) as u64) as usize;
                let least = if chosen == from { stretch.begin.offset } else { 4 };
                let most = if chosen == to { stretch.end.offset } else { files[chosen].end };
                let at = Position::new(names[chosen].clone(), least + random(most.saturating_sub(least)));
                let point = Point { text: at.to_string(), place: PointPlace::Position(at) };
                return Ok(Some(Until::After(point)));
            }
            (GtidState::Mysql(lacked), None) => of_mysql(lacked),
            (GtidState::Mariadb(lacked), None) => of_mariadb(lacked, &first.point.gtids),
        };
        let point = after.map(|text| text.parse::<Point>().map_err(words)).transpose()?;
        Ok(point.map(Until::After))
    }

    /// Whether the servers go by GTIDs.
    pub(super) fn has_gtids(&self) -> bool {
        self.course.stretch.is_none()
    }

    /// The point as it is told.
    pub(super) fn reached(&self) -> String {
        match &self.course.stretch {
            Some(stretch) => stretch.end.to_string(),
            None => self.course.at_the_point.to_line(),
        }
    }

    /// When its last transaction was committed, by the source's clock.
    pub(super) fn time(&self) -> Option<Timestamp> {
        Timestamp::from_microsecond(self.course.last.as_ref()?.committed.micros).ok()
    }

    /// Whether the server has what it must have, and nothing else.
    ///
    /// # Errors
    /// In words, what it has.
    pub(super) fn is_reached(&self, after: &SourceIdentity) -> Result<(), String> {
        let wanted = &self.course.at_the_point;
        if !self.has_gtids() || is_same(&after.executed, wanted) {
            return Ok(());
        }
        Err(format!(
            "the server has executed {}, and should have executed exactly {}",
            after.executed.to_line(),
            wanted.to_line()
        ))
    }
}

/// An error as it is said.
pub(super) fn words(error: impl Display) -> String {
    error.to_string()
}

/// Whether two states are of one moment. Of MariaDB a position is known, which names the last of each domain.
fn is_same(one: &GtidState, other: &GtidState) -> bool {
    match (one, other) {
        (GtidState::Mysql(one), GtidState::Mysql(other)) => one == other,
        _ => one.to_line() == other.to_line(),
    }
}

/// One of a set.
fn of_mysql(lacked: &GtidSet) -> Option<String> {
    let mut left = random(lacked.len());
    for (uuid, tag, range) in lacked.iter() {
        let len = range.end() - range.start() + 1;
        if left < len {
            let tag = tag.as_str();
            let tag = if tag.is_empty() { String::new() } else { format!("{tag}:") };
            return Some(format!("{uuid}:{tag}{}", range.start() + left));
        }
        left -= len;
    }
    None
}

/// One behind the backup, of any domain.
fn of_mariadb(lacked: &MariadbGtidState, backup: &str) -> Option<String> {
    let had = backup.parse::<MariadbGtidState>().unwrap_or_default();
    let domains: Vec<_> = lacked.positions().collect();
    let last = domains.get(random(domains.len() as u64) as usize)?;
    let from = had.positions().find(|had| had.domain == last.domain).map_or(0, |had| had.sequence);
    let sequence = from + 1 + random(last.sequence.saturating_sub(from));
    Some(format!("{}-{}-{sequence}", last.domain, last.server_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_transaction_is_one_of_those_that_are_lacked() {
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let set: GtidSet = format!("{uuid}:3-4:9").parse().unwrap();
        let lacked: MariadbGtidState = "0-1-12".parse().unwrap();
        let (mut seen, mut of_maria) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
        for _ in 0..200 {
            seen.insert(of_mysql(&set).unwrap());
            of_maria.insert(of_mariadb(&lacked, "0-1-10").unwrap());
        }
        assert_eq!(seen, [3, 4, 9].map(|number| format!("{uuid}:{number}")).into());
        assert_eq!(of_maria, [11, 12].map(|number| format!("0-1-{number}")).into());
    }
}
