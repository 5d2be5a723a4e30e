//! Whether everything that the archive says it has is there, and is what was uploaded.
//!
//! The commits are replayed, the objects that they name are held against what the store lists, the files against each other,
//! and the objects' bytes, a sample or all, against their hashes. Without a private key that tells whether an object is what
//! was uploaded; with one, whether its plain bytes are those of the log as well.

use crate::chain::{Chain, ChainError};
use crate::commit::Segment;
use crate::history::{Archived, History};
use crate::names;
use crate::reader::{ReadError, Reader};
use crate::segment::{OpenError, check_stored};
use crate::store::{Meta, Store, StoreError};
use codec::BinlogName;
use codec::gtid::GtidState;
use log::timeline::Timeline;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

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
    /// Timelines looked at.
    pub timelines: usize,
    /// Files in them.
    pub files: usize,
    /// Plain bytes of these.
    pub plain_bytes: u64,
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
    /// Objects that no commit names: of uploads that were broken off, or of nobody here.
    pub unnamed: usize,
    /// Bytes of those.
    pub unnamed_bytes: u64,
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
    let mut chain = match Chain::open(store, source) {
        Ok(chain) => chain,
        Err(ChainError::Store(error)) => return Err(error),
        Err(ChainError::Unsound(error)) => {
            report.findings.push(Finding {
                what: names::commit(source, error.seq),
                range: None,
                text: error.why,
            });
            return Ok(report);
        }
    };
    let listed: BTreeMap<String, Meta> =
        store.list(&format!("{source}/"), None)?.into_iter().map(|meta| (meta.name.clone(), meta)).collect();
    let history = chain.history().clone();
    // What was committed while the store listed is no damage.
    let newest = match chain.refresh(store) {
        Err(ChainError::Store(error)) => return Err(error),
        // Found again below, where something stands behind the end.
        _ => chain.history().seq,
    };
    commits(store, source, &history, newest, &listed, &mut report)?;
    unnamed(source, &history, &listed, &mut report);
    for (timeline, archived) in &history.timelines {
        report.timelines += 1;
        chain_of_files(timeline, archived, &mut report);
        for file in &archived.files {
            report.files += 1;
            report.plain_bytes += file.end();
            let whole = format!("{timeline}/{}", file.name);
            for segment in &file.segments {
                report.objects += 1;
                report.stored_bytes += segment.stored;
                let range = format!("{whole} {}..{}", segment.from, segment.to);
                if let Some(text) = missing(&listed, &segment.object, Some(segment.stored)) {
                    report.findings.push(Finding { what: segment.object.clone(), range: Some(range), text });
                } else if depth.includes(segment) {
                    bytes(reader, segment, &range, open, &mut report)?;
                    progress(segment.stored);
                }
            }
            if let Some(seal) = &file.sealed {
                let text = match missing(&listed, &seal.list, None) {
                    None if depth == Depth::All => changed_list(store, &seal.list)?,
                    text => text,
                };
                let finding = |text| Finding { what: seal.list.clone(), range: Some(whole), text };
                report.findings.extend(text.map(finding));
            }
        }
    }
    Ok(report)
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

/// Replays the commits that a snapshot spares others from reading, as far as they are still there.
fn commits(
    store: &dyn Store,
    source: &str,
    history: &History,
    newest: u64,
    listed: &BTreeMap<String, Meta>,
    report: &mut Report,
) -> Result<(), StoreError> {
    let mut finding = |seq: u64, text: String| {
        report.findings.push(Finding { what: names::commit(source, seq), range: None, text });
    };
    let seqs: BTreeSet<u64> = listed.keys().filter_map(|name| names::commit_seq(name)).collect();
    for seq in seqs.iter().filter(|seq| **seq > newest) {
        finding(*seq, format!("the chain ends at commit {newest}, and this one does not follow"));
    }
    if !seqs.contains(&1) {
        return Ok(()); // Retention took the oldest; a snapshot stands for them.
    }
    let mut replayed = History::default();
    while replayed.seq < history.seq {
        let seq = replayed.seq + 1;
        let bytes = match store.get(&names::commit(source, seq)) {
            Ok(bytes) => bytes,
            Err(error) if error.is_missing() => {
                finding(seq, "it is missing, and commits before and after it are there".into());
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let next = crate::commit::Commit::decode(&bytes)
            .and_then(|commit| replayed.with(&commit, &names::sha256(&bytes)).map_err(|error| error.why));
        match next {
            Ok(next) => replayed = next,
            Err(why) => {
                finding(seq, why);
                return Ok(());
            }
        }
    }
    if replayed != *history {
        let text = "what the snapshots say is not what the commits add up to: a snapshot was replaced";
        report.findings.push(Finding { what: names::snapshots(source), range: None, text: text.into() });
    }
    Ok(())
}

fn unnamed(source: &str, history: &History, listed: &BTreeMap<String, Meta>, report: &mut Report) {
    let mut known: BTreeSet<&str> = history.objects().collect();
    known.extend(history.retired.iter().map(|retired| &*retired.object));
    let of_chain = [names::commits(source), names::snapshots(source)];
    for meta in listed.values() {
        if !known.contains(&*meta.name) && !of_chain.iter().any(|prefix| meta.name.starts_with(prefix)) {
            report.unnamed += 1;
            report.unnamed_bytes += meta.size;
        }
    }
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

fn follows(before: &str, after: &str) -> bool {
    match (BinlogName::parse(before), BinlogName::parse(after)) {
        // log_bin was renamed: the numbers say nothing.
        (Ok(before), Ok(after)) if before.base() != after.base() => true,
        (Ok(before), Ok(after)) => after.number() == before.number() + 1,
        _ => false,
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
pub(crate) fn missing(listed: &BTreeMap<String, Meta>, object: &str, size: Option<u64>) -> Option<String> {
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
