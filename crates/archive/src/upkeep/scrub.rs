//! Whether everything that the archive says it has is there, and is what was uploaded.
//!
//! The commits are replayed, the objects that they name are held against what the store lists, the files against each other,
//! and the objects' bytes, a sample or all, against their hashes. Without a private key that tells whether an object is what
//! was uploaded; with one, whether its plain bytes are those of the log as well.

use crate::chain::commit::Segment;
use crate::chain::history::{Archived, ArchivedFile, History};
use crate::chain::{Chain, ChainError, SNAPSHOTS_KEPT, list_snapshots, usable};
use crate::names;
use crate::reader::{ReadError, Reader};
use crate::segment::search_index;
use crate::segment::{OpenError, check_stored};
use crate::store::{Meta, Store, StoreError};
use binlog::timeline::Timeline;
use codec::BinlogName;
use codec::gtid::GtidState;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The object, or what else it is about.
    pub what: String,
    /// The bytes of which file are concerned, where some are.
    pub range: Option<String>,
    /// In words.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.range {
            Some(range) => write!(f, "{range} ({}): {}", self.what, self.text),
            None => write!(f, "{}: {}", self.what, self.text),
        }
    }
}

/// What a scrub found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Damage.
    pub findings: Vec<Finding>,
    /// Number and hexadecimal SHA-256 of the last commit that was read; 0 for none.
    pub newest: (u64, String),
    /// The first of the commits behind the snapshot that somebody who is believed has signed; all behind it are. `None` where nobody is
    /// believed.
    pub signed_since: Option<u64>,
    /// Timelines looked at.
    pub timelines: usize,
    /// Files in them.
    pub files: usize,
    /// Plain bytes of these.
    pub plain_bytes: u64,
    /// Backups looked at.
    pub backups: usize,
    /// Plain bytes of these.
    pub backup_bytes: u64,
    /// Objects that hold them.
    pub objects: usize,
    /// Bytes of these objects.
    pub stored_bytes: u64,
    /// Objects whose bytes were read and compared.
    pub read: usize,
    /// Of those, how many were decrypted and unpacked too.
    pub opened: usize,
    /// Of those that were read, how many are not what was uploaded.
    pub damaged: usize,
    /// Objects that no commit names: of uploads that were broken off, or of nobody here. Not those in the folder of a finished file
    /// that are older than its end: a merge has replaced most of these.
    pub unnamed: usize,
    /// Bytes of those.
    pub unnamed_bytes: u64,
    /// Search indexes of files that the archive has. They are in no other of these numbers.
    pub search_indexes: usize,
    /// Of those that were read, the ones that are not what was put there. Who searches walks their files in their place.
    pub search_indexes_damaged: Vec<String>,
    /// So many new snapshots take the place of those that cannot be used.
    pub snapshots_wanted: usize,
    /// Objects that can be opened with none of the private keys given, by the keys that could.
    pub locked: BTreeMap<Vec<String>, usize>,
}

impl Report {
    /// What is wrong: the findings, and what none of the private keys opens. Without a private key it cannot be told which is
    /// lost; with one, an object that it does not open is lost to its owner.
    pub fn damage(&self) -> Vec<Finding> {
        let locked = self.locked.iter().map(|(keys, count)| Finding {
            what: format!("{count} objects"),
            range: None,
            text: format!(
                "none of the private keys given opens them: they are encrypted for {}",
                keys.join(", ")
            ),
        });
        self.findings.iter().cloned().chain(locked).collect()
    }
}

/// How much is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Only what the store lists.
    Names,
    /// About one of so many objects. Runs with one `from` after another come to all of them, whatever is uploaded, merged or
    /// let go in between: which objects a run reads follows from their hashes.
    Sample {
        /// One of so many; at least 1.
        every: usize,
        /// Which; counts up from run to run.
        from: usize,
    },
    /// Everything.
    All,
}

/// Looks at the archive of `source`. With `open`, objects are decrypted and unpacked where a key of the reader's opens them.
/// `progress` is told bytes of objects as they are read.
///
/// # Errors
/// When the store does not answer. What is damaged is a finding, the commits too.
pub fn scrub(
    reader: &Reader,
    source: &str,
    depth: Depth,
    open: bool,
    progress: &dyn Fn(u64),
) -> Result<Report, StoreError> {
    let mut report = Report::default();
    let store = &*reader.store;
    let snapshots = snapshots(store, source, &mut report)?;
    let mut chain = match reader.chain(source) {
        Ok(chain) => chain,
        Err(ChainError::Store(error)) => return Err(error),
        Err(error) => {
            let (what, text) = match error {
                ChainError::Unsound(error) => (names::commit(source, error.seq), error.why),
                error => (names::commits(source), error.to_string()),
            };
            report.findings.push(Finding { what, range: None, text });
            return Ok(report);
        }
    };
    let stored: BTreeSet<u64> = store
        .list(&names::commits(source), None)?
        .iter()
        .filter_map(|meta| names::commit_seq(&meta.name))
        .collect();
    let history = chain.history().clone();
    (report.newest, report.signed_since) = ((history.seq, history.hash.clone()), chain.signed_since());
    // What was committed while the store listed is no damage.
    let newest = match chain.refresh(store) {
        Err(ChainError::Store(error)) => return Err(error),
        // Found again below, where something stands behind the end.
        _ => chain.history().seq,
    };
    commits(store, source, &history, newest, &stored, &snapshots, &mut report)?;
    let mut look = Look { reader, depth, open, progress, chain, report };
    for (timeline, archived) in &history.timelines {
        look.report.timelines += 1;
        chain_of_files(timeline, archived, &mut look.report);
        for file in &archived.files {
            look.file(timeline, file)?;
        }
    }
    for backup in history.backups.values() {
        look.file(names::BACKUPS, &backup.file)?;
    }
    look.strays(&history)?;
    Ok(look.report)
}

/// One look at an archive, file by file: what is in memory does not grow with what is archived.
struct Look<'a> {
    reader: &'a Reader,
    depth: Depth,
    open: bool,
    progress: &'a dyn Fn(u64),
    chain: Chain,
    report: Report,
}

impl Look<'_> {
    /// What is missing of a file that has changed or expired since its history was read is no damage.
    fn file(&mut self, timeline: &str, file: &Arc<ArchivedFile>) -> Result<(), StoreError> {
        let mut file = file.clone();
        loop {
            let found = self.look_at(timeline, &file)?;
            if !found.findings.is_empty() {
                // Whoever looks at the commits says what else is wrong with them.
                if let Err(ChainError::Store(error)) = self.chain.refresh(&*self.reader.store) {
                    return Err(error);
                }
                match self.chain.history().file(timeline, &file.name) {
                    None => return Ok(()),
                    Some(now) if *now != file => {
                        file = now.clone();
                        continue;
                    }
                    Some(_) => {}
                }
            }
            self.report.add(found);
            return Ok(());
        }
    }

    fn look_at(&self, timeline: &str, file: &ArchivedFile) -> Result<Report, StoreError> {
        let mut report = match timeline {
            names::BACKUPS => Report { backups: 1, backup_bytes: file.end(), ..Report::default() },
            _ => Report { files: 1, plain_bytes: file.end(), ..Report::default() },
        };
        let folder = names::file(self.chain.source(), timeline, &file.name);
        let listed = self.reader.store.list(&folder, None)?;
        let listed: BTreeMap<&str, &Meta> = listed.iter().map(|meta| (&*meta.name, meta)).collect();
        let whole = format!("{timeline}/{}", file.name);
        if let Some(seal) = &file.sealed {
            let text = match missing(&listed, &seal.list, None) {
                None if self.depth == Depth::All => changed_list(&*self.reader.store, &seal.list)?,
                text => text,
            };
            let finding = |text| Finding { what: seal.list.clone(), range: Some(whole.clone()), text };
            report.findings.extend(text.map(finding));
        }
        let segments = match self.reader.segments(file) {
            Ok(segments) => segments,
            Err(ReadError::Store(error)) if !error.is_missing() => return Err(error),
            Err(error) => {
                let what = file.index().map_or(folder.clone(), |index| index.object.clone());
                report.findings.push(Finding { what, range: Some(whole), text: index_text(&error) });
                // What the others are, nobody can tell.
                report.objects = usize::try_from(file.count()).unwrap_or(usize::MAX);
                report.stored_bytes = file.stored();
                return Ok(report);
            }
        };
        for segment in &*segments {
            report.objects += 1;
            report.stored_bytes += segment.stored;
            let range = format!("{whole} {}..{}", segment.from, segment.to);
            if let Some(text) = missing(&listed, &segment.object, Some(segment.stored)) {
                report.findings.push(Finding { what: segment.object.clone(), range: Some(range), text });
            } else if self.depth.includes(segment) {
                bytes(self.reader, segment, &range, self.open, &mut report)?;
                (self.progress)(segment.stored);
            }
        }
        let of_segments = segments.iter().map(|segment| &*segment.object);
        let named: BTreeSet<&str> = of_segments.chain(file.objects()).collect();
        let retired = self.retired();
        // In the folder of a finished file nothing says any more which objects a merge has replaced, but that they are older.
        let sealed_at = file.sealed.as_ref().and_then(|seal| seal.at);
        let is_replaced = |meta: &Meta| sealed_at.is_some_and(|at| meta.modified <= at);
        let is_nobodys = |meta: &&Meta| {
            !named.contains(&*meta.name) && !retired.contains(&*meta.name) && !is_replaced(meta)
        };
        report.count_unnamed(listed.into_values().filter(is_nobodys));
        Ok(report)
    }

    fn retired(&self) -> BTreeSet<&str> {
        self.chain.history().retired.iter().map(|retired| &*retired.object).collect()
    }

    /// What stands elsewhere than in the folders of the files that were looked at.
    fn strays(&mut self, history: &History) -> Result<(), StoreError> {
        let (store, source) = (&*self.reader.store, self.chain.source());
        let of_chain = [names::commits(source), names::snapshots(source), names::search(source)];
        let retired = self.retired();
        let mut unnamed = Report::default();
        let top = store.look_into(&names::source(source))?;
        unnamed.count_unnamed(top.objects.iter());
        for timeline in top.folders.iter().filter(|folder| !of_chain.contains(folder)) {
            let below = store.look_into(timeline)?;
            unnamed.count_unnamed(below.objects.iter());
            for folder in &below.folders {
                let is_file = names::owner(folder).is_some_and(|(of, file)| history.file(of, file).is_some());
                if is_file || retired.contains(&**folder) {
                    continue;
                }
                let listed = store.list(folder, None)?;
                unnamed.count_unnamed(listed.iter().filter(|meta| !retired.contains(&*meta.name)));
            }
        }
        self.search_indexes(history, &mut unnamed)?;
        self.report.add(unnamed);
        Ok(())
    }

    /// The search indexes, which no commit names. Where everything is read they are read too.
    fn search_indexes(&self, history: &History, report: &mut Report) -> Result<(), StoreError> {
        let (store, source) = (&*self.reader.store, self.chain.source());
        let retired = self.retired();
        search_index::each_listed(store, source, &mut |listed| {
            for meta in listed {
                let name = names::search_name(&meta.name);
                let is_retired = name
                    .is_some_and(|name| retired.contains(&*names::file(source, name.timeline, name.file)));
                let Some(file) = search_index::file_of(history, &meta.name) else {
                    // One that is new is of a file that was finished since.
                    let is_known = name.is_some_and(|name| self.has_now(name.timeline, name.file));
                    report.count_unnamed(Some(&meta).filter(|_| !is_retired && !is_known).into_iter());
                    continue;
                };
                report.search_indexes += 1;
                if self.depth == Depth::All {
                    let is_sound = search_index::is_sound(self.reader, &meta, file, self.open)?;
                    report.search_indexes_damaged.extend((!is_sound).then_some(meta.name));
                }
            }
            Ok(())
        })
    }

    fn has_now(&self, timeline: &str, file: &str) -> bool {
        self.chain.history().file(timeline, file).is_some()
    }
}

impl Report {
    fn add(&mut self, other: Report) {
        self.findings.extend(other.findings);
        self.timelines += other.timelines;
        self.files += other.files;
        self.plain_bytes += other.plain_bytes;
        self.backups += other.backups;
        self.backup_bytes += other.backup_bytes;
        self.objects += other.objects;
        self.stored_bytes += other.stored_bytes;
        self.read += other.read;
        self.opened += other.opened;
        self.damaged += other.damaged;
        self.unnamed += other.unnamed;
        self.unnamed_bytes += other.unnamed_bytes;
        self.search_indexes += other.search_indexes;
        self.search_indexes_damaged.extend(other.search_indexes_damaged);
        for (keys, count) in other.locked {
            *self.locked.entry(keys).or_default() += count;
        }
    }

    fn count_unnamed<'a>(&mut self, objects: impl Iterator<Item = &'a Meta>) {
        for meta in objects {
            self.unnamed += 1;
            self.unnamed_bytes += meta.size;
        }
    }
}

impl Depth {
    fn includes(self, segment: &Segment) -> bool {
        match self {
            Depth::Names => false,
            Depth::Sample { every, from } => {
                let every = every.max(1) as u64;
                // A hash that is none is one for which something is found in each run.
                let number =
                    segment.stored_sha256.get(..15).and_then(|hex| u64::from_str_radix(hex, 16).ok());
                number.is_none_or(|number| number % every == from as u64 % every)
            }
            Depth::All => true,
        }
    }
}

/// The newest snapshots, which stand for commits that may be gone: the two that are sound, and whatever comes before these. Gives the
/// sound ones.
fn snapshots(
    store: &dyn Store,
    source: &str,
    report: &mut Report,
) -> Result<Vec<(String, History)>, StoreError> {
    let mut sound = Vec::new();
    for name in list_snapshots(store, source)?.into_iter().rev() {
        match usable(store, source, &name)? {
            Ok(history) => sound.push((name, history)),
            Err(Some(why)) => match store.head(&name) {
                Err(error) if error.is_missing() => {} // It was pruned, and its commit with it.
                _ => {
                    let text = format!("this snapshot of the commits cannot be used: {why}");
                    report.findings.push(Finding { what: name, range: None, text });
                    report.snapshots_wanted = report.snapshots_wanted.max(SNAPSHOTS_KEPT - sound.len());
                }
            },
            Err(None) => {}
        }
        if sound.len() == SNAPSHOTS_KEPT {
            break;
        }
    }
    Ok(sound)
}

/// From where on the commits can be replayed, and the object without which they cannot be: the first commit, or where retention took the
/// oldest the oldest snapshot. `None` where there is neither.
fn beginning(
    store: &dyn Store,
    source: &str,
    seqs: &BTreeSet<u64>,
) -> Result<Option<(History, String)>, StoreError> {
    if seqs.contains(&1) {
        return Ok(Some((History::default(), names::commit(source, 1))));
    }
    for name in list_snapshots(store, source)? {
        if let Ok(history) = usable(store, source, &name)? {
            return Ok(Some((history, name)));
        }
    }
    Ok(None)
}

/// Replays the commits that a snapshot spares others from reading, as far as they are still there.
fn commits(
    store: &dyn Store,
    source: &str,
    history: &History,
    newest: u64,
    seqs: &BTreeSet<u64>,
    snapshots: &[(String, History)],
    report: &mut Report,
) -> Result<(), StoreError> {
    let mut made_up = Vec::new();
    let mut finding = |seq: u64, text: String| {
        report.findings.push(Finding { what: names::commit(source, seq), range: None, text });
    };
    for seq in seqs.iter().filter(|seq| **seq > newest) {
        finding(*seq, format!("the chain ends at commit {newest}, and this one does not follow"));
    }
    let Some((mut replayed, from)) = beginning(store, source, seqs)? else { return Ok(()) };
    while replayed.seq < history.seq {
        let seq = replayed.seq + 1;
        let bytes = match store.get(&names::commit(source, seq)) {
            Ok(bytes) => bytes,
            Err(error) if error.is_missing() => {
                match store.head(&from) {
                    Err(error) if error.is_missing() => {} // Both were pruned meanwhile.
                    _ => finding(seq, "it is missing, and commits before and after it are there".into()),
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let next = crate::chain::commit::Commit::decode(&bytes)
            .and_then(|commit| replayed.with(&commit, &names::sha256(&bytes)).map_err(|error| error.why));
        match next {
            Ok(next) => replayed = next,
            Err(why) => {
                finding(seq, why);
                return Ok(());
            }
        }
        made_up.extend(snapshots.iter().filter(|(_, of)| of.seq == seq && *of != replayed));
    }
    for (name, _) in made_up {
        let text = "this snapshot is not what the commits add up to: it was replaced, or made up";
        report.findings.push(Finding { what: name.clone(), range: None, text: text.into() });
    }
    if replayed != *history {
        let text = "what the snapshots say is not what the commits add up to: a snapshot was replaced";
        report.findings.push(Finding { what: names::snapshots(source), range: None, text: text.into() });
    }
    Ok(())
}

/// The files of a timeline must follow one another: by their numbers, and each must say that before it was executed what had
/// been at the end of the one before.
fn chain_of_files(timeline: &str, archived: &Archived, report: &mut Report) {
    let mut finding = |file: &str, text: String| {
        report.findings.push(Finding { what: format!("{timeline}/{file}"), range: None, text });
    };
    let record = match Timeline::parse(&archived.record) {
        Ok(record) => record,
        Err(why) => return finding("timeline.toml", format!("its record cannot be read: {why}")),
    };
    for pair in archived.files.windows(2) {
        let [before, after] = pair else { continue };
        if before.sealed.is_none() {
            finding(
                &before.name,
                format!("it ends at {}, before its end, and {} comes next", before.end(), after.name),
            );
        }
        if !follows(&before.name, &after.name) {
            finding(
                &after.name,
                format!("{} is the file before it: those between them are missing", before.name),
            );
        }
        let Some(stated) = &after.gtids_before else { continue };
        let read = |text: &str| GtidState::parse(record.server_kind, text).ok();
        // MariaDB's list names the newest of each server, as the state at the end of a file does.
        if let (Some(stated), Some(executed)) = (read(stated), read(&before.gtids))
            && stated != executed
        {
            finding(
                &after.name,
                format!(
                    "it says that {} was executed before it, and {} ends with {}",
                    stated.to_line(),
                    before.name,
                    executed.to_line()
                ),
            );
        }
    }
}

/// Whether one file's name comes next behind another's.
pub(crate) fn follows(before: &str, after: &str) -> bool {
    match (BinlogName::parse(before), BinlogName::parse(after)) {
        // log_bin was renamed: the numbers say nothing.
        (Ok(before), Ok(after)) if before.base() != after.base() => true,
        (Ok(before), Ok(after)) => after.number() == before.number() + 1,
        _ => false,
    }
}

pub(crate) fn index_text(error: &ReadError) -> String {
    match error {
        ReadError::Store(_) => "the object is missing, and with it where the pieces of the file are".into(),
        ReadError::Index { why, .. } => {
            format!("it says where the pieces of the file are, and cannot be used: {why}")
        }
        error => error.to_string(),
    }
}

/// A list is for people without binlogd, who have nothing else to hold their objects against.
fn changed_list(store: &dyn Store, list: &str) -> Result<Option<String>, StoreError> {
    let bytes = match store.get(list) {
        Ok(bytes) => bytes,
        Err(error) if error.is_missing() => return Ok(Some("the object is missing".into())),
        Err(error) => return Err(error),
    };
    let is_same = names::is_of_content(list, &names::sha256(&bytes));
    Ok((!is_same).then(|| "the list of the file's objects is not what was uploaded".into()))
}

/// What is wrong with an object by what the store lists; `size` is what it must have.
pub(crate) fn missing(listed: &BTreeMap<&str, &Meta>, object: &str, size: Option<u64>) -> Option<String> {
    match listed.get(object) {
        None => Some("the object is missing".into()),
        Some(meta) if size.is_some_and(|size| size != meta.size) => Some(format!(
            "the object has {} bytes and was uploaded with {}",
            meta.size,
            size.unwrap_or_default()
        )),
        Some(_) => None,
    }
}

fn bytes(
    reader: &Reader,
    segment: &Segment,
    range: &str,
    open: bool,
    report: &mut Report,
) -> Result<(), StoreError> {
    let found = if open {
        match reader.segment(segment) {
            Ok(_) => {
                report.opened += 1;
                Ok(())
            }
            Err(ReadError::Open(OpenError::NoIdentity { keys, .. })) => {
                *report.locked.entry(keys).or_default() += 1;
                Ok(())
            }
            Err(error) => Err(error),
        }
    } else {
        let stored = reader.store.get(&segment.object).map_err(ReadError::Store);
        stored.and_then(|stored| check_stored(segment, &stored).map_err(ReadError::Open))
    };
    report.read += 1;
    let text = match found {
        Ok(()) => return Ok(()),
        Err(ReadError::Store(error)) if !error.is_missing() => return Err(error),
        Err(error) => error.to_string(),
    };
    report.damaged += 1;
    report.findings.push(Finding { what: segment.object.clone(), range: Some(range.to_owned()), text });
    Ok(())
}
