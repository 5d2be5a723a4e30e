//! What goes from the archive, and in which order.
//!
//! 1. Backups that [`Keep`] lets go, and files that a rule of retention takes and no point of a backup keeps ([`backup`]), are named in
//!    a [`Change::BackupsExpired`] and a [`Change::Expired`]: the archive does not have them any more. Their folders are retired, as objects are that a merge has replaced.
//! 2. Objects that were retired long enough ago, and those that no commit names, are found folder by folder (`unneeded.rs`), and
//!    named in a [`Change::Doomed`], so many at a time. Only when that commit is in the chain are they deleted.
//! 3. Search indexes of files that the archive does not have any more ([`search_index`]). No commit names them, so none says that
//!    they go, and what a crash leaves of them the next run finds.
//! 4. Snapshots older than the newest two, and the commits behind which a kept snapshot stands, the oldest first.
//!
//! # What the grace is for
//!
//! Readers, and nobody else: one who read the history an hour ago fetches objects that a merge has replaced since, and reads
//! commits one by one that a snapshot has by now. And listings: a store that lists a new snapshot late must list it within the
//! grace.
//!
//! Writers need none. One that uploaded objects before the doom was committed has planned its own commit under that number or
//! an earlier one; it is told that it comes too late, and uploads under new names, for no two uploads give the same name
//! ([`frames`](crate::frames)). One that slept while commits went finds a snapshot that goes further than what it knows
//! ([`Chain::append`]). And a deletion that arrives late finds a name that nobody uses again.

use crate::chain::commit::{Change, Writer};
use crate::chain::history::{Archived, History};
use crate::chain::{Appended, Chain, ChainError, SNAPSHOTS_KEPT, usable};
use crate::names;
use crate::reader::Reader;
use crate::segment::search_index;
use crate::store::{Meta, Store, StoreError};
use crate::upkeep::backup;
use crate::upkeep::backup::{Keeps, Point};
use crate::upkeep::catalogue::list;
use crate::upkeep::keep::Keep;
use crate::upkeep::presence::{any, look};
use crate::upkeep::unneeded::{Group, Past, groups, kept};
use binlog::timeline::Timeline;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeSet;
use std::fmt;

/// How long what nothing names any more is kept for readers, unless told otherwise.
pub(crate) const GRACE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// About so many objects are named in one commit, and deleted behind it.
const DOOMED_AT_ONCE: usize = 1000;

/// So often others may commit before what is to be deleted is, each time.
const TRIES_MAX: u32 = 20;

/// What is to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Files whose last event is older go, by the source's clock. A file in which no event has a time stays.
    pub keep_for: Option<SignedDuration>,
    /// So many of the newest files of each timeline stay, and no more; at least one stays always.
    pub keep_files: Option<usize>,
    /// Points of backups: nothing from the files on in which they lie goes, whatever the other rules say.
    pub backups: Vec<Point>,
    /// Backups in the archive that it does not keep go, and with them the log before the oldest that stays. Without it all of them stay.
    /// What a backup that stays needs never goes, whatever the other rules say.
    pub keep: Option<Keep>,
    /// See [the module](self).
    pub grace: SignedDuration,
    /// What somebody has agreed to, as [`dry_run`] has shown it: no other file goes. `None` for whatever the rules say.
    pub agreed: Option<Vec<Change>>,
}

/// Why nothing more could be pruned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PruneError {
    /// The store, or what stands in it.
    Chain(ChainError),
    /// The archive does not have what is needed: nothing was changed. In words, with what to do.
    Lacks(String),
}

impl fmt::Display for PruneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PruneError::Chain(error) => error.fmt(f),
            PruneError::Lacks(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for PruneError {}

impl From<ChainError> for PruneError {
    fn from(error: ChainError) -> PruneError {
        PruneError::Chain(error)
    }
}

impl From<StoreError> for PruneError {
    fn from(error: StoreError) -> PruneError {
        PruneError::Chain(error.into())
    }
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            keep_for: None,
            keep_files: None,
            backups: Vec::new(),
            keep: None,
            grace: GRACE,
            agreed: None,
        }
    }
}

/// What is to go, or has gone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pruned {
    /// [`Change::Expired`], one a timeline, and [`Change::BackupsExpired`] before them.
    pub expired: Vec<Change>,
    /// What points of backups keep.
    pub kept: Vec<Keeps>,
    /// How many objects of files, retired or never named, and search indexes of files that are gone.
    pub objects: u64,
    /// Snapshots, the oldest first.
    pub snapshots: Vec<String>,
    /// Commits, the oldest first.
    pub commits: Vec<String>,
    /// Somebody else has committed meanwhile: the next run finds what this one has left.
    pub is_behind: bool,
}

impl Pruned {
    /// Whether nothing goes.
    pub fn is_nothing(&self) -> bool {
        let Pruned { expired, objects, snapshots, commits, .. } = self;
        expired.is_empty() && *objects == 0 && snapshots.is_empty() && commits.is_empty()
    }
}

/// Says what [`prune`] would do now, and does nothing.
///
/// # Errors
/// When the store cannot be read, or what stands in it cannot be, or it does not have the point of a backup.
pub fn dry_run(
    store: &dyn Store,
    chain: &mut Chain,
    rules: &Rules,
    now: Timestamp,
) -> Result<Pruned, PruneError> {
    chain.refresh(store)?;
    chain.check_whole(store)?;
    let (kept, expired) = planned(chain.history(), rules, now)?;
    let (snapshots, commits) = behind_snapshots(store, chain, rules, now)?;
    let history = chain.history().if_changed(&expired, now).map_err(ChainError::from)?;
    let mut objects = 0;
    groups::<ChainError>(store, chain.source(), &history, Past { now, grace: rules.grace }, &mut |group| {
        objects += group.objects().count() as u64;
        Ok(())
    })?;
    let past = Past { now, grace: rules.grace };
    objects += search_index::not_needed(store, chain.source(), &history, past)?.len() as u64;
    Ok(Pruned { expired, kept, objects, snapshots, commits, is_behind: false })
}

/// Removes what may go. What is in the result has gone, all of it unless there was an error; the next run goes on.
///
/// # Errors
/// When the archive does not have the point of a backup: then nothing has gone. When the store could not be read or did not do
/// something: nothing is lost by that, what was not deleted is found again.
pub fn prune(
    store: &dyn Store,
    chain: &mut Chain,
    writer: &Writer,
    rules: &Rules,
    now: Timestamp,
) -> Result<Pruned, PruneError> {
    chain.refresh(store)?;
    chain.check_whole(store)?;
    let (kept, expired) = planned(chain.history(), rules, now)?;
    if rules.agreed.as_ref().is_some_and(|agreed| expired.iter().any(|change| !agreed.contains(change))) {
        return Err(PruneError::Lacks("other files would go than was shown: look again".to_owned()));
    }
    let mut pruned = Pruned { expired, kept, ..Pruned::default() };
    if !pruned.expired.is_empty()
        && chain.append(store, writer, now, pruned.expired.clone())? == Appended::Behind
    {
        return Ok(Pruned { is_behind: true, ..Pruned::default() });
    }
    let (source, history) = (chain.source().to_owned(), chain.history().clone());
    let mut doom = Doom { store, chain, writer, rules, now, waiting: Vec::new(), deleted: 0 };
    let found =
        groups(store, &source, &history, Past { now, grace: rules.grace }, &mut |group| doom.add(group));
    let found = found.and_then(|()| doom.carry_out());
    pruned.objects = doom.deleted;
    match found {
        Ok(()) => {}
        Err(DoomError::Behind) => return Ok(Pruned { is_behind: true, ..pruned }),
        Err(DoomError::Chain(error)) => return Err(error.into()),
    }
    let past = Past { now, grace: rules.grace };
    let indexes = search_index::not_needed(store, &source, chain.history(), past)?;
    delete(store, &indexes)?;
    pruned.objects += indexes.len() as u64;
    (pruned.snapshots, pruned.commits) = behind_snapshots(store, chain, rules, now)?;
    // Whoever finds a snapshot listed before and after it looked for the snapshot's commit has found the commit.
    delete(store, &pruned.snapshots)?;
    delete(store, &pruned.commits)?;
    Ok(pruned)
}

/// The files that a prune took and that can be had back, as changes to commit: all behind the first of which something was to be
/// deleted.
pub fn undoable(history: &History) -> Vec<Change> {
    let mut changes = Vec::new();
    for (timeline, archived) in &history.timelines {
        let (mut files, mut last) = (Vec::new(), &archived.expired);
        while let Some(gone) = history.gone(timeline, last) {
            files.insert(0, last.clone());
            last = &gone.before;
        }
        if !files.is_empty() {
            changes.push(Change::Restored { timeline: timeline.clone(), files });
        }
    }
    changes
}

/// Takes back what prunes took, as far as it is [`undoable`]; gives what is there again. Every object of it was looked for, and one of
/// each file was read. `None` when others have committed meanwhile: to be tried again.
///
/// # Errors
/// When the store could not be read, or somebody has deleted something of it all the same: then nothing is changed.
pub fn undo(
    reader: &Reader,
    chain: &mut Chain,
    writer: &Writer,
    now: Timestamp,
) -> Result<Option<Vec<Change>>, PruneError> {
    let store = &*reader.store;
    chain.refresh(store)?;
    chain.check_whole(store)?;
    let changes = undoable(chain.history());
    for change in &changes {
        let Change::Restored { timeline, files } = change else { continue };
        for gone in files.iter().filter_map(|name| chain.history().gone(timeline, name)) {
            if let Some(finding) = look(reader, chain.source(), timeline, &gone.file, any())?.first() {
                return Err(PruneError::Lacks(format!("nothing is taken back, for {finding}")));
            }
        }
    }
    if changes.is_empty() {
        return Ok(Some(changes));
    }
    let done = chain.append(store, writer, now, changes.clone())? == Appended::Done;
    Ok(done.then_some(changes))
}

/// Names in commits what may go, and deletes it.
struct Doom<'a> {
    store: &'a dyn Store,
    chain: &'a mut Chain,
    writer: &'a Writer,
    rules: &'a Rules,
    now: Timestamp,
    waiting: Vec<Group>,
    deleted: u64,
}

/// Why not all of it has gone.
enum DoomError {
    /// Others commit faster.
    Behind,
    /// The store, or what stands in it.
    Chain(ChainError),
}

impl From<ChainError> for DoomError {
    fn from(error: ChainError) -> DoomError {
        DoomError::Chain(error)
    }
}

impl From<StoreError> for DoomError {
    fn from(error: StoreError) -> DoomError {
        DoomError::Chain(error.into())
    }
}

impl Doom<'_> {
    fn add(&mut self, group: Group) -> Result<(), DoomError> {
        for part in group.parts(DOOMED_AT_ONCE) {
            self.waiting.push(part);
            let waiting: usize = self.waiting.iter().map(|group| group.names.len()).sum();
            if waiting >= DOOMED_AT_ONCE {
                self.carry_out()?;
            }
        }
        Ok(())
    }

    /// What was found was judged by a history that may be hours old: each try judges once more, by the one behind which it commits.
    fn carry_out(&mut self) -> Result<(), DoomError> {
        let waiting = std::mem::take(&mut self.waiting);
        for _ in 0..TRIES_MAX {
            let (history, past) = (self.chain.history(), Past { now: self.now, grace: self.rules.grace });
            let kept = kept(history, past);
            let names: Vec<String> = waiting.iter().flat_map(|group| group.still(history, &kept)).collect();
            if names.is_empty() {
                return Ok(());
            }
            let doomed = vec![Change::Doomed { objects: names.clone() }];
            if self.chain.append(self.store, self.writer, self.now, doomed)? == Appended::Done {
                let objects: Vec<String> = names.into_iter().filter(|name| !name.ends_with('/')).collect();
                delete(self.store, &objects)?;
                self.deleted += objects.len() as u64;
                return Ok(());
            }
        }
        Err(DoomError::Behind)
    }
}

/// One after another; none is deleted while the one before it may still be there.
fn delete(store: &dyn Store, objects: &[String]) -> Result<(), StoreError> {
    objects.iter().try_for_each(|object| store.delete(object))
}

/// What points of backups keep, and what goes.
fn planned(
    history: &History,
    rules: &Rules,
    now: Timestamp,
) -> Result<(Vec<Keeps>, Vec<Change>), PruneError> {
    let mut kept = backup::keeps(history, &rules.backups).map_err(PruneError::Lacks)?;
    let listed = list(history);
    let gone = rules.keep.as_ref().map(|keep| keep.lets_go(&listed)).unwrap_or_default();
    let stay =
        listed.iter().filter(|listed| listed.until().is_some() && !gone.contains(&listed.backup.record.id));
    let of_archive: Vec<Keeps> = stay
        .filter_map(|listed| Point::of(&listed.backup.record.point))
        .filter_map(|point| Some((backup::places(history, &point).ok()?, point)))
        .flat_map(|(places, point)| backup::keep(history, &point, places))
        .collect();
    let mut changes = Vec::new();
    if let Some(keep) = rules.keep.as_ref().filter(|_| !gone.is_empty()) {
        changes.push(Change::BackupsExpired { backups: gone, why: format!("not among {keep}") });
    }
    let only_older = rules.keep.is_some().then_some(&of_archive[..]);
    let free =
        |name: &str, archived: &Archived| only_older.map_or(0, |kept| older(history, kept, name, archived));
    for (name, archived) in &history.timelines {
        let all = kept.iter().chain(&of_archive);
        let stay = all.filter(|keeps| keeps.timeline == *name).map(|keeps| keeps.files).max().unwrap_or(0);
        let may_go = archived.files.len().saturating_sub(stay);
        let count = expired_files(archived, rules, free(name, archived), now).min(may_go);
        let files: Vec<String> = archived.files[..count].iter().map(|file| file.name.clone()).collect();
        if !files.is_empty() {
            changes.push(Change::Expired { timeline: name.clone(), files, why: why(rules) });
        }
    }
    kept.extend(of_archive);
    Ok((kept, changes))
}

/// How many of a timeline's oldest files stand before all that backups keep: those of this timeline, or all of one that comes before
/// theirs in the same history.
fn older(history: &History, kept: &[Keeps], name: &str, archived: &Archived) -> usize {
    let of = |name: &str| kept.iter().filter(|keeps| keeps.timeline == name).map(|keeps| keeps.files).max();
    if let Some(stay) = of(name) {
        return archived.files.len().saturating_sub(stay);
    }
    let mut before: Vec<String> = kept.iter().map(|keeps| keeps.timeline.clone()).collect();
    let mut seen = BTreeSet::new();
    while let Some(timeline) = before.pop().filter(|timeline| timeline != name) {
        let record = history.timelines.get(&timeline).map(|archived| Timeline::parse(&archived.record));
        let previous = record.and_then(Result::ok).map(|record| record.previous).unwrap_or_default();
        if previous == name {
            return archived.files.len();
        }
        if seen.insert(timeline) {
            before.push(previous);
        }
    }
    0
}

/// How many of the oldest files go. The last one stays: it is written, or is that by which another copy knows the timeline.
fn expired_files(archived: &Archived, rules: &Rules, older: usize, now: Timestamp) -> usize {
    let all = archived.files.len();
    let is_old = |last_time: u32| {
        rules.keep_for.is_some_and(|keep| {
            last_time != 0
                && now.duration_since(Timestamp::UNIX_EPOCH).as_secs() - i64::from(last_time) > keep.as_secs()
        })
    };
    let too_many = rules.keep_files.map_or(0, |keep| all.saturating_sub(keep.max(1))).max(older);
    let old = archived.files.iter().take(all.saturating_sub(1)).enumerate();
    old.take_while(|(place, file)| file.sealed.is_some() && (*place < too_many || is_old(file.last_time)))
        .count()
}

fn why(rules: &Rules) -> String {
    let age = rules.keep_for.map(|keep| format!("older than {} s", keep.as_secs()));
    let count = rules.keep_files.map(|keep| format!("more than {keep} files"));
    let older = rules.keep.as_ref().map(|keep| format!("before the oldest backup of {keep}"));
    age.into_iter().chain(count).chain(older).collect::<Vec<_>>().join(", or ")
}

/// The snapshots and commits before the oldest snapshot that is kept, which was read, and whose commit was compared.
fn behind_snapshots(
    store: &dyn Store,
    chain: &Chain,
    rules: &Rules,
    now: Timestamp,
) -> Result<(Vec<String>, Vec<String>), ChainError> {
    let source = chain.source();
    let mut listed = store.list(&names::snapshots(source), None)?;
    // One that no commit names yet stands for nothing to who believes only what is signed.
    listed.retain(|meta| names::snapshot_seq(&meta.name).is_some_and(|seq| seq <= chain.history().snapshot));
    let is_past = |meta: &Meta| now.duration_since(meta.modified) >= rules.grace;
    let mut sound = 0;
    let mut oldest_kept = None;
    for meta in listed.iter().rev() {
        if usable(store, source, &meta.name)?.is_err() {
            continue;
        }
        sound += 1;
        if sound >= SNAPSHOTS_KEPT && is_past(meta) {
            oldest_kept = names::snapshot_seq(&meta.name);
            break;
        }
    }
    let Some(oldest_kept) = oldest_kept else { return Ok(Default::default()) };
    let before = |seq: Option<u64>| seq.is_some_and(|seq| seq < oldest_kept);
    let snapshots = listed.iter().filter(|meta| before(names::snapshot_seq(&meta.name)));
    let commits = store.list(&names::commits(source), None)?;
    let commits =
        commits.iter().filter(|meta| before(names::commit_seq(&meta.name))).take_while(|meta| is_past(meta));
    Ok((snapshots.map(|meta| meta.name.clone()).collect(), commits.map(|meta| meta.name.clone()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upkeep::catalogue::tests::scene;

    /// What goes, with two backups: one at the first file of the first timeline, and one at the third file of the timeline that goes on.
    fn gone(rules: &Rules) -> Vec<String> {
        let history = scene([("20260101T030000Z", "1-25"), ("20260102T030000Z", "1-65")].into_iter());
        let (_, changes) = planned(&history, rules, Timestamp::UNIX_EPOCH).unwrap();
        let names = changes.into_iter().flat_map(|change| match change {
            Change::Expired { timeline, files, .. } => {
                files.into_iter().map(|file| format!("{}/{file}", &timeline[..4])).collect()
            }
            Change::BackupsExpired { backups, .. } => backups,
            other => panic!("{other:?}"),
        });
        names.collect()
    }

    #[test]
    fn what_a_backup_of_the_archive_needs_stays_whatever_the_rules_say() {
        assert_eq!(gone(&Rules { keep_files: Some(1), ..Rules::default() }), [""; 0]);
        assert_eq!(gone(&Rules { keep: Some("2d".parse().unwrap()), ..Rules::default() }), [""; 0]);
    }

    #[test]
    fn one_rule_takes_backups_and_the_log_before_the_oldest_that_stays() {
        let keep = Some("1d".parse().unwrap());
        let all = ["20260101T030000Z", "0001/b.000003", "0001/b.000004", "0002/b.000005", "0002/b.000006"];
        assert_eq!(gone(&Rules { keep: keep.clone(), ..Rules::default() }), all);
        // No other rule takes more.
        assert_eq!(gone(&Rules { keep, keep_files: Some(1), ..Rules::default() }), all);
    }
}
