//! Which backups a drill takes: one, and the next behind it in the log.

use archive::chain::backup::BackupRecord;
use archive::chain::history::ArchivedBackup;
use archive::upkeep::catalogue::{Listed, Log, span};
use codec::BinlogName;
use codec::gtid::GtidState;
use jiff::Timestamp;
use std::sync::Arc;

/// Which backup is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The last but one, so that the newest is what it must become; the newest where it is the only one.
    Newest,
    /// Any.
    Random,
    /// The one of this name.
    Named(String),
}

/// See [the module](self).
#[derive(Debug)]
pub(super) struct Pair {
    /// What is brought forward.
    pub(super) first: Arc<ArchivedBackup>,
    /// What that must become.
    pub(super) next: Option<Arc<ArchivedBackup>>,
}

/// Why none is chosen.
#[derive(Debug)]
pub(super) enum NoPair {
    /// It stays so; in words.
    Never(String),
    /// The log behind the newest backup may be on its way into the archive; in words.
    NotYet(String),
}

/// Where a backup stands in the log. What the clocks said when it was made does not count.
type Place<'a> = (&'a str, Option<BinlogName<'a>>, u128);

impl Pair {
    /// Chooses it. `notes` is told what should be known of these backups and is no fault of them.
    ///
    /// # Errors
    /// In words, why nothing can be restored, or what of the newest is wrong.
    pub(super) fn choose(
        listed: &[Listed],
        which: &Which,
        now: Timestamp,
        notes: &mut Vec<String>,
    ) -> Result<Pair, NoPair> {
        let newest = span(listed).map(|span| span.until.clone());
        let mut whole: Vec<(Place<'_>, &Listed)> =
            listed.iter().filter_map(|one| Some((place(one)?, one))).collect();
        whole.sort_by_key(|(place, _)| *place);
        if let Which::Named(id) = which
            && !listed.iter().any(|one| one.backup.record.id == *id)
        {
            return Err(NoPair::Never(format!(
                "the archive has no backup {id}: binlogd backups lists what there is"
            )));
        }
        // One that has no log is the newest until another is taken: whoever needs it at night finds that it leads nowhere.
        let newest_named = whole.iter().map(|(_, one)| &one.backup.record.id).max();
        for one in listed {
            let record = &one.backup.record;
            let Log::Lacking(why) = &one.log else { continue };
            let is_meant = *which == Which::Named(record.id.clone());
            if is_meant || newest_named.is_none_or(|newest| record.id > *newest) {
                return Err(lacks(record, why, listed));
            }
            notes.push(format!("backup {} cannot be brought forward: {why}", record.id));
        }
        clocks(&whole, now, notes);
        let at = match which {
            Which::Newest => whole.len().saturating_sub(2),
            Which::Random => random(whole.len() as u64) as usize,
            Which::Named(id) => whole.iter().position(|(_, one)| one.backup.record.id == *id).unwrap_or(0),
        };
        let Some((_, first)) = whole.get(at) else {
            let why = "the archive has no backup of this source: binlogd backup makes one";
            return Err(NoPair::Never(why.to_owned()));
        };
        let next = whole.get(at + 1).map(|(_, next)| next.backup.clone());
        if let (Some(next), Some(until)) = (&next, first.until())
            && first.until() != newest.as_ref()
        {
            return Err(NoPair::Never(format!(
                "gap in the log: backup {} can be brought forward until {}:{} of {}, and no further, so not to what backup {} holds; from there \
                 on the log is whole again",
                first.backup.record.id, until.file, until.position, until.timeline, next.record.id
            )));
        }
        Ok(Pair { first: first.backup.clone(), next })
    }
}

/// Why a backup that should be the newest is none.
fn lacks(record: &BackupRecord, why: &str, listed: &[Listed]) -> NoPair {
    let of = |text: &str| GtidState::parse(record.server_kind, text).ok();
    let known = listed.iter().filter_map(|one| of(&one.until()?.gtids));
    let (mut has_known, mut is_of_source) = (false, false);
    if let Some(GtidState::Mysql(mine)) = of(&record.point.gtids).filter(|mine| !mine.is_empty()) {
        for known in known {
            let GtidState::Mysql(known) = known else { continue };
            has_known |= !known.is_empty();
            is_of_source |= !known.intersect(&mine).is_empty();
        }
    }
    if has_known && !is_of_source {
        return NoPair::Never(format!(
            "backup {} is another source's: it holds {}, and nothing of that is in the log of this source. It must not be restored here",
            record.id, record.point
        ));
    }
    NoPair::NotYet(format!("backup {} cannot be brought forward: {why}", record.id))
}

/// Where a backup stands in the log; `None` where it has none.
fn place(listed: &Listed) -> Option<Place<'_>> {
    let Log::Whole { timeline, file, .. } = &listed.log else { return None };
    let point = &listed.backup.record.point;
    let within = match GtidState::parse(listed.backup.record.server_kind, &point.gtids) {
        Ok(GtidState::Mysql(set)) if !set.is_empty() => u128::from(set.len()),
        Ok(GtidState::Mariadb(state)) => state.positions().map(|last| u128::from(last.sequence)).sum(),
        _ => u128::from(point.position),
    };
    Some((timeline.as_str(), BinlogName::parse(file).ok(), within))
}

/// Says where the clocks of those who made backups contradict the log, or this machine's.
fn clocks(whole: &[(Place<'_>, &Listed)], now: Timestamp, notes: &mut Vec<String>) {
    for pair in whole.windows(2) {
        let [one, other] = [&pair[0].1.backup.record, &pair[1].1.backup.record];
        if one.finished > other.finished {
            notes.push(format!(
                "clock jumped: backup {} is recorded as finished at {:.0}, after {}, which holds more of the log and says {:.0}: a clock was \
                 wrong when one of them was made. They are taken in the order of the log",
                one.id, one.finished, other.id, other.finished
            ));
        }
    }
    if let Some((_, last)) = whole.iter().find(|(_, one)| one.backup.record.finished > now) {
        let record = &last.backup.record;
        notes.push(format!(
            "clock jumped: backup {} is recorded as finished at {:.0}, and here it is {now:.0} now: one of the two clocks is wrong",
            record.id, record.finished
        ));
    }
}

/// A number below another one, which is not 0.
pub(super) fn random(below: u64) -> u64 {
    getrandom::u64().unwrap_or(0) % below.max(1)
}
