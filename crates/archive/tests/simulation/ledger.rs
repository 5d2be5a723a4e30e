//! What is true: each commit as it came to stand in the store, held against what the source wrote.

use crate::source::Source;
use archive::chain::commit::{Change, Commit, Index, Segment};
use archive::chain::history::History;
use archive::keys::Identities;
use archive::names::{self, SearchName};
use archive::segment::Opener;
use archive::segment::segments::unpack;
use archive::testing::Witness;
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// Name of the source in the archive.
pub const SOURCE: &str = "shop";

#[derive(Debug)]
pub struct Ledger {
    source: Arc<Source>,
    grace: SignedDuration,
    opener: Opener,
    /// All commits of the chain applied, whatever was deleted since.
    pub history: History,
    /// Hashes of the commits; number 0 has none.
    hashes: Vec<String>,
    objects: BTreeMap<String, Bytes>,
    made: BTreeMap<String, Timestamp>,
    /// Objects that were deleted once.
    deleted: BTreeSet<String>,
    pub named: BTreeSet<String>,
    /// The segments of finished files, as the history had them.
    segments: BTreeMap<(String, String), Vec<Segment>>,
    retired: BTreeMap<String, Timestamp>,
    doomed: BTreeSet<String>,
    /// What each file of the archive has, by its timeline and name.
    pub plain: BTreeMap<(String, String), Vec<u8>>,
    /// Bytes and segments of files that expired.
    gone: BTreeMap<(String, String), (Vec<u8>, Vec<Segment>)>,
    pub counts: Counts,
    /// The first thing that should not be.
    pub wrong: Option<String>,
}

/// What happened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    pub commits: u64,
    /// Commits under numbers that were pruned.
    pub belated: u64,
    pub merged: u64,
    pub sealed: u64,
    pub expired: u64,
    pub restored: u64,
    pub put_back: u64,
    pub snapshots: u64,
    pub deleted_objects: u64,
    pub deleted_commits: u64,
    pub differs: u64,
    pub killed: u64,
    pub indexes: u64,
    pub indexes_read: u64,
    pub deleted_indexes: u64,
}

impl Ledger {
    pub fn new(source: Arc<Source>, grace: SignedDuration) -> Ledger {
        Ledger {
            source,
            grace,
            opener: Opener::new(Identities::default()),
            history: History::default(),
            hashes: vec![String::new()],
            objects: BTreeMap::new(),
            made: BTreeMap::new(),
            deleted: BTreeSet::new(),
            named: BTreeSet::new(),
            segments: BTreeMap::new(),
            retired: BTreeMap::new(),
            doomed: BTreeSet::new(),
            plain: BTreeMap::new(),
            gone: BTreeMap::new(),
            counts: Counts::default(),
            wrong: None,
        }
    }

    pub fn complain(&mut self, what: impl Into<String>) {
        self.wrong.get_or_insert(what.into());
    }

    /// Holds what somebody believes against what is so: it must be the beginning of it.
    pub fn check_belief(&mut self, who: &str, history: &History) {
        let real = self.hashes.get(history.seq as usize);
        if real != Some(&history.hash) {
            let (seq, hash, end) = (history.seq, &history.hash, self.history.seq);
            let what = format!(
                "{who} believes in commit {seq} with hash {hash}; there is {real:?}, and the chain ends at {end}"
            );
            self.complain(what);
        }
    }

    fn commit(&mut self, seq: u64, bytes: &[u8]) -> Result<(), String> {
        if seq <= self.history.seq {
            // The name is free again; nobody may believe what stands there.
            self.counts.belated += 1;
            return Ok(());
        }
        let commit = Commit::decode(bytes)?;
        let hash = names::sha256(bytes);
        let before = self.history.clone();
        self.history = self
            .history
            .with(&commit, &hash)
            .map_err(|error| format!("a commit was made that cannot be: {error}"))?;
        self.hashes.push(hash);
        self.counts.commits += 1;
        for change in &commit.changes {
            self.change(&before, change, commit.at)?;
        }
        self.named = self.history.objects().map(ToOwned::to_owned).collect();
        let of_finished = self.segments.values().flatten().map(|segment| segment.object.clone());
        self.named.extend(of_finished);
        match self.named.iter().find(|name| !self.objects.contains_key(*name)) {
            Some(missing) => Err(format!("commit {seq} names {missing}, which is not there")),
            None => Ok(()),
        }
    }

    fn change(&mut self, before: &History, change: &Change, at: Timestamp) -> Result<(), String> {
        match change {
            Change::Timeline { .. } => {}
            Change::Grown(grown) => {
                for segment in &grown.segments {
                    let more = self.open(segment)?;
                    let plain = self.plain.entry((grown.timeline.clone(), grown.file.clone())).or_default();
                    if plain.len() as u64 != segment.from {
                        return Err(format!(
                            "{}/{} has {} bytes, and grows from {}",
                            grown.timeline,
                            grown.file,
                            plain.len(),
                            segment.from
                        ));
                    }
                    plain.extend_from_slice(&more);
                }
                self.check_file(&grown.timeline, &grown.file, false)?;
            }
            Change::Merged { timeline, file, segment } => {
                self.counts.merged += 1;
                let merged = self.open(segment)?;
                let plain =
                    self.plain.get(&(timeline.clone(), file.clone())).ok_or("merged, and not there")?;
                if plain.get(segment.from as usize..segment.to as usize) != Some(&*merged) {
                    return Err(format!("{} has other bytes than what it replaces", segment.object));
                }
                self.retire(at);
            }
            Change::Sealed { timeline, file, size, sha256, list, index } => {
                self.counts.sealed += 1;
                self.check_file(timeline, file, true)?;
                let plain = &self.plain[&(timeline.clone(), file.clone())];
                if plain.len() as u64 != *size || names::sha256(plain) != *sha256 {
                    return Err(format!("{timeline}/{file} is sealed as other than it is"));
                }
                let segments = before.file(timeline, file).and_then(|file| file.inline()).unwrap_or_default();
                self.check_list(segments, list)?;
                let index =
                    index.as_ref().ok_or_else(|| format!("{timeline}/{file} is sealed without an index"))?;
                self.check_index(segments, index)?;
                self.segments.insert((timeline.clone(), file.clone()), segments.to_vec());
            }
            Change::Expired { timeline, files, .. } => {
                self.counts.expired += files.len() as u64;
                for file in files {
                    let key = (timeline.clone(), file.clone());
                    let plain = self.plain.remove(&key).unwrap_or_default();
                    let segments = self.segments.remove(&key).unwrap_or_default();
                    self.gone.insert(key, (plain, segments));
                    let folder = names::file(SOURCE, timeline, file);
                    // What was doomed before may be deleted at any time: its grace is over.
                    let stays =
                        |object: &&String| object.starts_with(&folder) && !self.doomed.contains(*object);
                    for object in self.objects.keys().filter(stays) {
                        self.retired.entry(object.clone()).or_insert(at);
                    }
                }
                self.retire(at);
            }
            Change::Restored { timeline, files } => {
                self.counts.restored += files.len() as u64;
                for file in files {
                    let key = (timeline.clone(), file.clone());
                    let (plain, segments) =
                        self.gone.remove(&key).ok_or_else(|| format!("{timeline}/{file} never expired"))?;
                    self.plain.insert(key.clone(), plain);
                    self.segments.insert(key, segments);
                    let folder = names::file(SOURCE, timeline, file);
                    self.retired.retain(|object, _| !object.starts_with(&folder));
                }
            }
            Change::Backup(_) | Change::BackupsExpired { .. } => {
                return Err("nobody here takes backups".to_owned());
            }
            Change::Snapshot { .. } => self.counts.snapshots += 1,
            Change::Doomed { objects } => self.doomed.extend(objects.iter().cloned()),
        }
        Ok(())
    }

    fn retire(&mut self, at: Timestamp) {
        for retired in &self.history.retired {
            self.retired.entry(retired.object.clone()).or_insert(at);
        }
    }

    fn open(&self, segment: &Segment) -> Result<Vec<u8>, String> {
        let stored = self
            .objects
            .get(&segment.object)
            .ok_or_else(|| format!("{} is named, and not there", segment.object))?;
        self.opener.open(segment, stored).map_err(|error| error.to_string())
    }

    /// What the archive has of a file is the beginning of one that the source had; `is_whole`: is one.
    fn check_file(&self, timeline: &str, file: &str, is_whole: bool) -> Result<(), String> {
        let plain = &self.plain[&(timeline.to_owned(), file.to_owned())];
        let uuid = timeline.split_once('-').map_or("", |(_, uuid)| uuid);
        let real = self.source.files(uuid, file);
        if real.iter().any(|real| real.starts_with(plain) && (!is_whole || real.len() == plain.len())) {
            return Ok(());
        }
        let real: Vec<_> = real.iter().map(|real| real.len()).collect();
        Err(format!("{timeline}/{file} has {} bytes that no source wrote (those have {real:?})", plain.len()))
    }

    fn check_list(&self, segments: &[Segment], list: &str) -> Result<(), String> {
        let text = self.objects.get(list).ok_or_else(|| format!("{list} is named, and not there"))?;
        let text = String::from_utf8_lossy(text);
        let listed: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split("  ").nth(1))
            .collect();
        let real: Vec<&str> =
            segments.iter().filter_map(|segment| segment.object.rsplit('/').next()).collect();
        if listed == real {
            Ok(())
        } else {
            Err(format!("{list} lists {listed:?}, and the file is {real:?}"))
        }
    }

    /// Who reads the index finds the segments that the history had.
    fn check_index(&self, segments: &[Segment], index: &Index) -> Result<(), String> {
        let object = &index.object;
        let stored = self.objects.get(object).ok_or_else(|| format!("{object} is named, and not there"))?;
        match unpack(index, stored) {
            Ok(found) if found == segments => Ok(()),
            Ok(found) => Err(format!("{object} has {found:?}, and the file is {segments:?}")),
            Err(why) => Err(format!("{object}: {why}")),
        }
    }

    /// Deleting a commit is right when a kept snapshot stands behind the commit.
    fn delete_commit(&mut self, name: &str, seq: u64) -> Result<(), String> {
        self.counts.deleted_commits += 1;
        let is_real = |bytes: &Bytes| self.hashes.get(seq as usize) == Some(&names::sha256(bytes));
        if !self.objects.get(name).is_some_and(is_real) {
            return Ok(());
        }
        if self.snapshots().all(|through| through <= seq) {
            return Err(format!("commit {seq} is deleted, and no snapshot has what it says"));
        }
        let mut before = self
            .objects
            .keys()
            .filter(|other| other.starts_with(&names::commits(SOURCE)) && other.as_str() < name);
        match before.find(|other| !self.deleted.contains(*other)) {
            Some(older) => Err(format!("commit {seq} is deleted before {older}")),
            None => Ok(()),
        }
    }

    /// The last commits of the snapshots that can be used.
    fn snapshots(&self) -> impl Iterator<Item = u64> {
        let all = self.objects.keys().filter_map(|name| names::snapshot_seq(name));
        all.filter(|seq| {
            let commit = self.objects.get(&names::commit(SOURCE, *seq));
            commit.is_some_and(|commit| self.hashes.get(*seq as usize) == Some(&names::sha256(commit)))
        })
    }

    /// An index goes when the archive does not have its file any more.
    fn delete_index(&mut self, name: &SearchName<'_>) -> Result<(), String> {
        self.counts.deleted_indexes += 1;
        match self.history.file(name.timeline, name.file) {
            None => Ok(()),
            Some(_) => {
                Err(format!("the index of {}/{} is deleted, and its file is there", name.timeline, name.file))
            }
        }
    }

    fn delete_data(&mut self, name: &str, now: Timestamp) -> Result<(), String> {
        self.counts.deleted_objects += 1;
        if self.named.contains(name) {
            return Err(format!("{name} is deleted, and named"));
        }
        if !self.doomed.contains(name) {
            return Err(format!("{name} is deleted, and no commit in the chain says so"));
        }
        let since = self.retired.get(name).or_else(|| self.made.get(name));
        match since {
            Some(since) if now.duration_since(*since) < self.grace && !self.deleted.contains(name) => {
                Err(format!("{name} is deleted before its grace is over"))
            }
            _ => Ok(()),
        }
    }
}

/// The ledger as the store's witness.
#[derive(Debug, Clone)]
pub struct Watching(pub Arc<Mutex<Ledger>>);

impl Witness for Watching {
    fn created(&mut self, name: &str, bytes: &Bytes, at: Timestamp) {
        let mut ledger = self.0.lock().expect("the ledger does not panic");
        ledger.objects.insert(name.to_owned(), bytes.clone());
        ledger.made.insert(name.to_owned(), at);
        ledger.counts.indexes += u64::from(names::search_name(name).is_some());
        let is_commit = name.starts_with(&names::commits(SOURCE));
        if let Some(seq) = names::commit_seq(name).filter(|_| is_commit)
            && let Err(what) = ledger.commit(seq, bytes)
        {
            ledger.complain(what);
        }
    }

    fn deleted(&mut self, name: &str, at: Timestamp) {
        let mut ledger = self.0.lock().expect("the ledger does not panic");
        let is_right = match names::commit_seq(name) {
            Some(seq) => ledger.delete_commit(name, seq),
            None if names::is_data(name) => ledger.delete_data(name, at),
            None => names::search_name(name).map_or(Ok(()), |name| ledger.delete_index(&name)),
        };
        if let Err(what) = is_right {
            ledger.complain(what);
        }
        ledger.objects.remove(name);
        ledger.deleted.insert(name.to_owned());
    }
}
