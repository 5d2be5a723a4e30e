//! What the archive of a source holds: its commits, applied one after another.
//!
//! A commit that does not follow, or says what cannot be, is refused as a whole. So what is wrong in a store is seen by whoever
//! reads, and what would be wrong is never written.
//!
//! What it keeps does not grow with the bytes that are archived, but with the files: of one that is finished only what is needed
//! without its segments, which stand in an object of their own ([`segments`](crate::segment::segments)).

use crate::chain::backup::BackupRecord;
use crate::chain::commit::{Change, Commit, FORMAT, Grown, Index, Segment, WholeBackup, Writer};
use crate::names;
use crate::segment::segments::{check, check_object, check_one};
use codec::BinlogName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// From this format on the history keeps what it takes to have a file back that expired.
const FORMAT_OF_GONE: u32 = 3;

/// From this format on uploads of backups that were to be deleted are kept in mind.
const FORMAT_OF_BACKUPS: u32 = 4;

/// Everything that the commits up to [`History::seq`] say. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// [`FORMAT`].
    pub format: u32,
    /// Number of the last commit in it; 0 for none.
    pub seq: u64,
    /// Hexadecimal SHA-256 of that commit.
    pub hash: String,
    /// Who wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<Writer>,
    /// When, by its writer's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Whether it is signed, so that whoever adds to it must sign too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub signed: bool,
    /// The timelines by name, so in the order in which they began.
    pub timelines: BTreeMap<String, Arc<Archived>>,
    /// The last commit that the newest snapshot has; 0 for none.
    pub snapshot: u64,
    /// Objects that nothing names any more, and since when. Of files that are finished only those that expired are here: what a
    /// merge has replaced there is older than [`Seal::at`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retired: Vec<Retired>,
    /// Objects that were to be deleted and may be named no more: those of the last commit that said so.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub doomed: BTreeSet<String>,
    /// The backups by name, so in the order in which they began.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub backups: BTreeMap<String, Arc<ArchivedBackup>>,
    /// Backups that no commit named when objects of theirs were to be deleted, and that none may name any more. An upload lasts for
    /// hours, and `doomed` has only what the last such commit said.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub given_up: BTreeSet<String>,
}

/// A timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archived {
    /// See [`Change::Timeline`].
    pub record: String,
    /// Its files in their order, without those that expired.
    pub files: Vec<Arc<ArchivedFile>>,
    /// Name of the last file that retention took; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub expired: String,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchivedFile {
    /// Its name.
    pub name: String,
    /// See [`Grown::head`].
    pub head: String,
    /// Its pieces: from 0 on, one after another. None where an object has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    segments: Vec<Segment>,
    /// See [`Grown::gtids_before`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gtids_before: Option<String>,
    /// See [`Grown::gtids`].
    pub gtids: String,
    /// See [`Grown::last_time`].
    pub last_time: u32,
    /// Once nothing is added any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Seal>,
}

/// What [`Change::Sealed`] says of a whole file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seal {
    /// Hexadecimal SHA-256 of the plain file.
    pub sha256: String,
    /// The object that lists its objects.
    pub list: String,
    /// The object that has its segments; `None` for a file that was sealed in format 1, whose segments the history has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<Index>,
    /// When it was sealed, by the clock of who wrote the commit; `None` without an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// An object that nothing names any more. It stays for those who read by an earlier commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retired {
    /// Its name; or that of a folder, with the slash at its end: all objects of a file that expired.
    pub object: String,
    /// Since when, by the clock of who wrote the commit.
    pub at: Timestamp,
    /// For the folder of a file that expired, as long as nothing in it was to be deleted: what it takes to have the file back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<Arc<Gone>>,
}

/// A file that expired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gone {
    /// What the archive had of it.
    pub file: Arc<ArchivedFile>,
    /// [`Archived::expired`] before it.
    pub before: String,
}

/// A backup that the archive has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchivedBackup {
    /// What it is.
    pub record: BackupRecord,
    /// Its stream, which is read and verified as a finished binary log is. Its name is the backup's.
    pub file: Arc<ArchivedFile>,
}

/// A commit that cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsound {
    /// The commit's number by where it stands.
    pub seq: u64,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "commit {}: {}", self.seq, self.why)
    }
}

impl std::error::Error for Unsound {}

impl Default for History {
    fn default() -> History {
        History {
            format: FORMAT,
            seq: 0,
            hash: String::new(),
            writer: None,
            at: None,
            signed: false,
            timelines: BTreeMap::new(),
            snapshot: 0,
            retired: Vec::new(),
            doomed: BTreeSet::new(),
            backups: BTreeMap::new(),
            given_up: BTreeSet::new(),
        }
    }
}

impl ArchivedFile {
    /// One that is finished from the beginning.
    ///
    /// # Errors
    /// In words, when it cannot be.
    pub(super) fn finished(name: String, gtids: String, seal: Seal) -> Result<ArchivedFile, String> {
        check_object(&seal.list)?;
        let (head, segments) = (String::new(), Vec::new());
        let file = ArchivedFile {
            name,
            head,
            segments,
            gtids_before: None,
            gtids,
            last_time: 0,
            sealed: Some(seal),
        };
        file.check().map(|()| file)
    }

    /// End of what the archive has of it, in bytes.
    pub fn end(&self) -> u64 {
        self.index().map_or_else(|| self.segments.last().map_or(0, |last| last.to), |index| index.end)
    }

    /// Where its segments stand, once the history does not have them any more.
    pub fn index(&self) -> Option<&Index> {
        self.sealed.as_ref()?.index.as_ref()
    }

    /// Its segments where the history has them: of a file that grows, and of one that was sealed in format 1. `None` where they
    /// must be read ([`Reader::segments`](crate::reader::Reader::segments)).
    pub fn inline(&self) -> Option<&[Segment]> {
        self.index().is_none().then_some(&*self.segments)
    }

    /// How many segments it has.
    pub fn count(&self) -> u64 {
        self.index().map_or(self.segments.len() as u64, |index| index.segments)
    }

    /// Bytes of its segments' objects.
    pub fn stored(&self) -> u64 {
        let inline = || self.segments.iter().map(|segment| segment.stored).sum();
        self.index().map_or_else(inline, |index| index.stored)
    }

    /// All keys of which one opens any of its segments; empty when it is not encrypted.
    pub fn keys(&self) -> BTreeSet<&str> {
        match self.index() {
            Some(index) => index.keys.iter().map(String::as_str).collect(),
            None => self.segments.iter().flat_map(|segment| &segment.keys).map(String::as_str).collect(),
        }
    }

    /// The objects by which the history names it: its segments where the history has them, its list, its index.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &str> {
        let seal = self.sealed.iter().map(|seal| &*seal.list);
        let index = self.index().map(|index| &*index.object);
        self.segments.iter().map(|segment| &*segment.object).chain(seal).chain(index)
    }

    /// From now on its segments stand in an object, which must be those that it has.
    fn seal(&mut self, seal: Seal) -> Result<(), String> {
        if let Some(index) = &seal.index {
            check_index(index, &seal.list)?;
            if *index != Index::of(&self.segments, index.object.clone()) {
                return Err(format!("{} is to have its segments, and has others", index.object));
            }
            if let Some(other) =
                self.objects().find(|name| names::folder_of(name) != names::folder_of(&seal.list))
            {
                return Err(format!("{other} stands elsewhere than its list {}", seal.list));
            }
            self.segments = Vec::new();
        }
        self.sealed = Some(seal);
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let Some(index) = self.index() else { return check(&self.segments).map(drop) };
        if !self.segments.is_empty() {
            return Err("it has its segments twice".into());
        }
        check_index(index, self.sealed.as_ref().map_or("", |seal| &seal.list))
    }
}

impl ArchivedBackup {
    /// What a commit makes of it.
    ///
    /// # Errors
    /// In words, when it cannot be.
    pub(crate) fn of(whole: &WholeBackup, at: Timestamp) -> Result<ArchivedBackup, String> {
        let id = &whole.record.id;
        if !names::is_part(id) {
            return Err(format!("{id:?} is no name of a backup"));
        }
        if names::owner(&whole.index.object) != Some((names::BACKUPS, id)) {
            return Err(format!("{} stands elsewhere than the backup {id}", whole.index.object));
        }
        let seal = Seal {
            sha256: whole.sha256.clone(),
            list: whole.list.clone(),
            index: Some(whole.index.clone()),
            at: Some(at),
        };
        let file = ArchivedFile::finished(id.clone(), whole.record.point.gtids.clone(), seal)
            .map_err(|why| format!("backup {id}: {why}"))?;
        Ok(ArchivedBackup { record: whole.record.clone(), file: Arc::new(file) })
    }
}

/// Index and list of a file stand beside each other.
fn check_index(index: &Index, list: &str) -> Result<(), String> {
    check_object(&index.object)?;
    if names::folder_of(&index.object) == names::folder_of(list) {
        return Ok(());
    }
    Err(format!("{} stands elsewhere than {list}", index.object))
}

impl Archived {
    /// The file of that name.
    pub fn file(&self, name: &str) -> Option<&Arc<ArchivedFile>> {
        // Those of one series stand in the order of their numbers, and most timelines have one series.
        let wanted = BinlogName::parse(name).ok()?;
        let is_before = |file: &Arc<ArchivedFile>| BinlogName::parse(&file.name).is_ok_and(|of| of < wanted);
        let place = self.files.partition_point(is_before);
        let found = self.files.get(place).filter(|file| file.name == name);
        // The newest are asked for most.
        found.or_else(|| self.files.iter().rev().find(|file| file.name == name))
    }

    /// Whether retention took the file of that name, or one of its series with a higher number.
    pub fn has_expired(&self, name: &str) -> bool {
        match (BinlogName::parse(name), BinlogName::parse(&self.expired)) {
            (Ok(name), Ok(expired)) => name.base() == expired.base() && name <= expired,
            _ => false,
        }
    }

    /// Whether retention took the first of some files of a copy, in their order, or one behind it.
    pub(crate) fn has_let_go(&self, files: &[String]) -> bool {
        files.iter().any(|name| self.has_expired(name))
    }
}

impl History {
    /// The file of that name on that timeline; the stream of that backup in [`names::BACKUPS`].
    pub fn file(&self, timeline: &str, name: &str) -> Option<&Arc<ArchivedFile>> {
        if timeline == names::BACKUPS {
            return self.backups.get(name).map(|backup| &backup.file);
        }
        self.timelines.get(timeline)?.file(name)
    }

    /// The objects that it names itself, without commits and snapshots: those of files that grow, and of each finished file the list
    /// and the index, which has its segments.
    pub fn objects(&self) -> impl Iterator<Item = &str> {
        let files = self.timelines.values().flat_map(|timeline| &timeline.files);
        let files = files.chain(self.backups.values().map(|backup| &backup.file));
        files.flat_map(|file| file.objects())
    }

    /// Whether a history that was read as a whole, from a snapshot, could be the sum of commits: names that lead nowhere else, and
    /// pieces one behind the other.
    ///
    /// # Errors
    /// In words, what cannot be.
    pub fn check(&self) -> Result<(), String> {
        for (timeline, archived) in &self.timelines {
            let mut names = archived.files.iter().map(|file| &file.name);
            let is_name = |name: &String| names::is_part(name) && BinlogName::parse(name).is_ok();
            if !names::is_part(timeline) || !names.all(is_name) {
                return Err(format!("{timeline:?} or one of its files has a name that none can have"));
            }
            let gone = self.retired.iter().filter_map(|retired| Some(&retired.gone.as_ref()?.file));
            for file in archived.files.iter().chain(gone) {
                file.check().map_err(|why| format!("{timeline}/{}: {why}", file.name))?;
            }
        }
        for (id, backup) in &self.backups {
            if !names::is_part(id) || *id != backup.record.id || *id != backup.file.name {
                return Err(format!("{id:?} is no name of a backup, or it has several"));
            }
            backup.file.check().map_err(|why| format!("backup {id}: {why}"))?;
        }
        Ok(())
    }

    /// The history with one commit more. `hash` is that of the commit's bytes.
    ///
    /// # Errors
    /// When the commit does not follow, or cannot be.
    pub fn with(&self, commit: &Commit, hash: &str) -> Result<History, Unsound> {
        let mut next = self.clone();
        next.apply(commit, hash).map_err(|why| Unsound { seq: self.seq + 1, why })?;
        Ok(next)
    }

    /// What it would be with changes that nobody has committed, at that time.
    ///
    /// # Errors
    /// When they cannot be.
    pub(crate) fn if_changed(&self, changes: &[Change], at: Timestamp) -> Result<History, Unsound> {
        let mut next = self.clone();
        let done = changes.iter().try_for_each(|change| next.change(change, at, FORMAT));
        done.map_err(|why| Unsound { seq: self.seq + 1, why })?;
        Ok(next)
    }

    fn apply(&mut self, commit: &Commit, hash: &str) -> Result<(), String> {
        if commit.seq != self.seq + 1 {
            return Err(format!("it says that it is commit {}", commit.seq));
        }
        if commit.previous != self.hash {
            return Err(format!(
                "it follows a commit with hash {}, and the one before it has {}: one of the two was replaced",
                or_none(&commit.previous),
                or_none(&self.hash)
            ));
        }
        if let Some(before) = &self.writer {
            let may = if before.id == commit.writer.id { before.epoch } else { before.epoch + 1 };
            if commit.writer.epoch != may {
                return Err(format!(
                    "it has epoch {} of writer {}, behind epoch {} of writer {}: the store has let a stale writer in",
                    commit.writer.epoch, commit.writer.id, before.epoch, before.id
                ));
            }
        }
        if self.signed && commit.signed.is_none() {
            return Err("it is not signed, and the one before it is: whoever wrote it has no key of this archive's writers".into());
        }
        for change in &commit.changes {
            self.change(change, commit.at, commit.format)?;
        }
        self.signed = commit.signed.is_some();
        self.seq = commit.seq;
        hash.clone_into(&mut self.hash);
        self.writer = Some(commit.writer.clone());
        self.at = Some(commit.at);
        Ok(())
    }

    fn change(&mut self, change: &Change, at: Timestamp, format: u32) -> Result<(), String> {
        match change {
            Change::Timeline { timeline, record } => self.timeline(timeline, record),
            Change::Grown(grown) => self.grown(grown),
            Change::Sealed { timeline, file, size, sha256, list, index } => {
                check_object(list)?;
                let found = self.open_file(timeline, file)?;
                if found.end() != *size {
                    return Err(format!(
                        "{timeline}/{file} is sealed at {size}, and ends at {}",
                        found.end()
                    ));
                }
                let (sha256, list, index) = (sha256.clone(), list.clone(), index.clone());
                let at = index.as_ref().map(|_| at);
                found
                    .seal(Seal { sha256, list, index, at })
                    .map_err(|why| format!("{timeline}/{file}: {why}"))?;
                self.forget_replaced(timeline, file);
                Ok(())
            }
            Change::Merged { timeline, file, segment } => self.merged(timeline, file, segment, at),
            Change::Expired { timeline, files, .. } => self.expired(timeline, files, at, format),
            Change::Restored { timeline, files } => self.restored(timeline, files),
            Change::Snapshot { through, .. } => {
                if *through > self.seq || *through <= self.snapshot {
                    return Err(format!(
                        "a snapshot up to commit {through} cannot be, behind {}",
                        self.snapshot
                    ));
                }
                self.snapshot = *through;
                Ok(())
            }
            Change::Doomed { objects } => self.doom(objects, format),
            Change::Backup(whole) => self.backed_up(ArchivedBackup::of(whole, at)?),
            Change::BackupsExpired { backups, .. } => self.backups_expired(backups, at),
        }
    }

    /// What merges have replaced in a file that has an index is known by where it stands: it was replaced before [`Seal::at`].
    fn forget_replaced(&mut self, timeline: &str, file: &str) {
        let index = self.file(timeline, file).and_then(|file| file.index());
        let Some(folder) = index.map(|index| names::folder_of(&index.object).to_owned()) else { return };
        self.retired.retain(|retired| !retired.object.starts_with(&folder));
    }

    fn timeline(&mut self, timeline: &str, record: &str) -> Result<(), String> {
        if !names::is_part(timeline) {
            return Err(format!("{timeline:?} is no name of a timeline"));
        }
        let new = || Arc::new(Archived { record: String::new(), files: Vec::new(), expired: String::new() });
        let archived = self.timelines.entry(timeline.to_owned()).or_insert_with(new);
        record.clone_into(&mut Arc::make_mut(archived).record);
        Ok(())
    }

    fn find(&mut self, timeline: &str) -> Result<&mut Archived, String> {
        let found = self.timelines.get_mut(timeline);
        found.map(Arc::make_mut).ok_or_else(|| format!("there is no timeline {timeline}"))
    }

    fn open_file(&mut self, timeline: &str, file: &str) -> Result<&mut ArchivedFile, String> {
        let found = self.find(timeline)?.files.iter_mut().find(|found| found.name == file);
        let found = found.map(Arc::make_mut).ok_or_else(|| format!("there is no {timeline}/{file}"))?;
        if found.sealed.is_some() {
            return Err(format!("{timeline}/{file} is sealed and changes all the same"));
        }
        Ok(found)
    }

    fn grown(&mut self, grown: &Grown) -> Result<(), String> {
        let what = format!("{}/{}", grown.timeline, grown.file);
        let doomed = grown.segments.iter().find(|segment| self.doomed.contains(&segment.object));
        if let Some(doomed) = doomed {
            return Err(format!("{what}: {} was to be deleted", doomed.object));
        }
        let archived = self.find(&grown.timeline)?;
        if !archived.files.iter().any(|file| file.name == grown.file) {
            if archived.has_expired(&grown.file) {
                return Err(format!("{what} begins again, and has expired"));
            }
            let place = place(archived, &grown.file)?;
            let file = ArchivedFile {
                name: grown.file.clone(),
                head: grown.head.clone(),
                segments: Vec::new(),
                gtids_before: None,
                gtids: String::new(),
                last_time: 0,
                sealed: None,
            };
            archived.files.insert(place, Arc::new(file));
        }
        let file = self.open_file(&grown.timeline, &grown.file)?;
        if file.head != grown.head {
            return Err(format!("{what} goes on as another file: its format description is another one"));
        }
        let mut end = file.end();
        for segment in &grown.segments {
            if segment.from != end || segment.is_empty() {
                return Err(format!(
                    "{what} has bytes up to {end}, and {}..{} come next",
                    segment.from, segment.to
                ));
            }
            check_one(segment)?;
            end = segment.to;
        }
        file.segments.extend(grown.segments.iter().cloned());
        file.gtids_before.clone_from(&grown.gtids_before);
        file.gtids.clone_from(&grown.gtids);
        file.last_time = grown.last_time;
        Ok(())
    }

    fn merged(&mut self, timeline: &str, file: &str, segment: &Segment, at: Timestamp) -> Result<(), String> {
        check_one(segment)?;
        if self.doomed.contains(&segment.object) {
            return Err(format!("{} was to be deleted", segment.object));
        }
        let what = format!("{timeline}/{file}");
        let found = self.open_file(timeline, file)?;
        let first = found.segments.iter().position(|old| old.from == segment.from);
        let last = found.segments.iter().position(|old| old.to == segment.to);
        let (Some(first), Some(last)) = (first, last.filter(|last| Some(*last) > first)) else {
            return Err(format!(
                "{what} has no segments that {}..{} could replace",
                segment.from, segment.to
            ));
        };
        let old: Vec<Segment> = found.segments.splice(first..=last, [segment.clone()]).collect();
        self.retired.extend(old.into_iter().map(|old| Retired { object: old.object, at, gone: None }));
        Ok(())
    }

    fn expired(
        &mut self,
        timeline: &str,
        files: &[String],
        at: Timestamp,
        format: u32,
    ) -> Result<(), String> {
        let archived = self.find(timeline)?;
        let mut retired = Vec::new();
        for name in files {
            // The oldest first: what stays has no hole.
            if archived.files.first().is_none_or(|first| first.name != *name) {
                return Err(format!("{timeline}/{name} is not the oldest file of its timeline, and expires"));
            }
            let file = archived.files.remove(0);
            let before = std::mem::replace(&mut archived.expired, name.clone());
            match file.index() {
                Some(index) => {
                    let object = names::folder_of(&index.object).to_owned();
                    let gone = (format >= FORMAT_OF_GONE).then(|| Arc::new(Gone { file, before }));
                    retired.push(Retired { object, at, gone });
                }
                None => {
                    let objects = file.objects().map(ToOwned::to_owned);
                    retired.extend(objects.map(|object| Retired { object, at, gone: None }));
                }
            }
        }
        self.retired.extend(retired);
        Ok(())
    }

    /// A file of a timeline that expired and of which nothing was to be deleted yet.
    pub fn gone(&self, timeline: &str, name: &str) -> Option<&Arc<Gone>> {
        let is_it = |retired: &&Retired| names::owner(&retired.object) == Some((timeline, name));
        self.retired.iter().filter(is_it).find_map(|retired| retired.gone.as_ref())
    }

    fn restored(&mut self, timeline: &str, files: &[String]) -> Result<(), String> {
        // The newest first: what is there has no hole.
        for name in files.iter().rev() {
            let gone = self.gone(timeline, name).cloned();
            let archived = self.find(timeline)?;
            let Some(gone) = gone.filter(|_| archived.expired == *name) else {
                return Err(format!(
                    "{timeline}/{name} is to be there again, and is not the last that expired, or was to be deleted"
                ));
            };
            archived.files.insert(0, gone.file.clone());
            archived.expired.clone_from(&gone.before);
            self.retired.retain(|retired| retired.gone.as_ref() != Some(&gone));
        }
        Ok(())
    }

    fn backed_up(&mut self, backup: ArchivedBackup) -> Result<(), String> {
        let id = backup.record.id.clone();
        if self.given_up.contains(&id) {
            return Err(format!(
                "backup {id}: objects of it were to be deleted, because no commit named them for so long"
            ));
        }
        match self.backups.insert(id.clone(), Arc::new(backup)) {
            None => Ok(()),
            Some(_) => Err(format!("backup {id} is there already")),
        }
    }

    fn backups_expired(&mut self, backups: &[String], at: Timestamp) -> Result<(), String> {
        for id in backups {
            let backup = self.backups.remove(id).ok_or_else(|| format!("there is no backup {id}"))?;
            let index = backup.file.index().map(|index| names::folder_of(&index.object).to_owned());
            self.retired.extend(index.map(|object| Retired { object, at, gone: None }));
        }
        Ok(())
    }

    /// Backups of which objects are to be deleted that no commit has ever named.
    fn give_up(&mut self, objects: &[String]) {
        let retired: BTreeSet<&str> = self.retired.iter().map(|retired| &*retired.object).collect();
        let owners = objects.iter().filter(|object| !retired.contains(names::folder_of(object)));
        let ids = owners.filter_map(|object| names::owner(object)).filter(|(of, _)| *of == names::BACKUPS);
        let given_up: Vec<String> =
            ids.filter(|(_, id)| !self.backups.contains_key(*id)).map(|(_, id)| id.to_owned()).collect();
        self.given_up.extend(given_up);
    }

    /// That no segment of a finished file is among them is for those to see who have read its index.
    fn doom(&mut self, objects: &[String], format: u32) -> Result<(), String> {
        let doomed: BTreeSet<&str> = objects.iter().map(String::as_str).collect();
        if let Some(needed) = self.objects().find(|object| doomed.contains(object)) {
            return Err(format!("{needed} is to be deleted, and is needed"));
        }
        if format >= FORMAT_OF_BACKUPS {
            self.give_up(objects);
        }
        self.retired.retain(|retired| !doomed.contains(&*retired.object));
        let folders: BTreeSet<&str> = objects.iter().map(|object| names::folder_of(object)).collect();
        for retired in self.retired.iter_mut().filter(|retired| folders.contains(&*retired.object)) {
            retired.gone = None;
        }
        // Of the last such commit only: what was uploaded before it can be named by one that comes right behind it at most.
        self.doomed = objects.iter().cloned().collect();
        Ok(())
    }
}

/// Where a new file stands among those of its timeline: behind all, but before those of its series with a higher number, which
/// another copy began with.
fn place(archived: &Archived, name: &str) -> Result<usize, String> {
    let parsed = BinlogName::parse(name).map_err(|error| error.to_string())?;
    if !names::is_part(name) {
        return Err(format!("{name:?} has characters that names in an archive must not have"));
    }
    let is_behind = |other: &Arc<ArchivedFile>| {
        BinlogName::parse(&other.name).is_ok_and(|other| other.base() == parsed.base() && other > parsed)
    };
    Ok(archived.files.iter().position(is_behind).unwrap_or(archived.files.len()))
}

fn is_false(value: &bool) -> bool {
    !value
}

fn or_none(hash: &str) -> &str {
    if hash.is_empty() { "none" } else { hash }
}

#[cfg(test)]
mod tests;
