//! What a copy remembers of its archive: the last commit that it knows to be there.
//!
//! A bucket can be put back to an older state: restored from a backup, replaced by a copy, emptied. What is left is sound and ends too
//! early, and whoever only reads it cannot tell. So the last commit that was made or read is remembered, over restarts too, and looked
//! for before the next one is made.

use crate::chain::history::{Archived, History};
use crate::names;
use crate::store::{Store, StoreError};
use binlog::format::read_toml;
use binlog::storage::Storage;
use binlog::timeline::index::replace_file;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Name of the file in a source's folder.
pub const MARK_FILE: &str = "archive_seen.toml";

const HEAD: &str = "# The last commit of the archive that this copy knows; see docs/formats.md.\n";

/// The last commit that was seen, and the end of what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Of which archive, in words without secrets.
    pub place: String,
    /// Number of the commit.
    pub seq: u64,
    /// Hexadecimal SHA-256 of the commit.
    pub hash: String,
    /// Whether that commit is signed. Then the archive must be from there on.
    #[serde(default)]
    pub signed: bool,
    /// The newest timeline that has a file; empty for none. It, the file and its end tell the archive when the commit was pruned.
    timeline: String,
    /// Its last file.
    file: String,
    /// See [`ArchivedFile::head`](crate::chain::history::ArchivedFile::head).
    head: String,
    /// Where that ended.
    end: u64,
    /// The newest file that is finished; `None` where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed: Option<Sealed>,
}

/// A finished file, by what one upload alone has made: an object of that name is never made a second time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Sealed {
    timeline: String,
    file: String,
    /// See [`Seal::list`](crate::chain::history::Seal::list).
    list: String,
}

/// An archive that does not have the last commit that was seen there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Older {
    /// Number of that commit.
    pub seen: u64,
    /// Number of the commit at which the archive ends now; 0 for an empty one.
    pub end: u64,
}

impl fmt::Display for Older {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Older { seen, end } = self;
        let what = match end {
            0 => "the archive is empty, or is not mounted".to_owned(),
            end if end < seen => format!("the archive ends at commit {end}"),
            end => format!("the archive has other commits, up to {end}"),
        };
        write!(
            f,
            "the archive was put back: {what}, and commit {seen}, which this copy has seen there, is gone. Nothing more is \
             committed, and no file of the copy is purged. Put the objects back; docs/runbook.md, \"The archive was put back\", says how, and \
             what to do where they are lost"
        )
    }
}

impl std::error::Error for Older {}

impl Mark {
    /// That of a history at `place`; `None` for one without commits.
    pub fn of(place: &str, history: &History) -> Option<Mark> {
        let newest = history.timelines.iter().rev().find_map(|(name, of)| Some((name, of.files.last()?)));
        let (timeline, file) =
            newest.map_or_else(Default::default, |(name, file)| (name.clone(), Some(file)));
        let of_timeline = |(name, of): (&String, &Arc<Archived>)| {
            of.files.iter().rev().find_map(|file| {
                let list = file.sealed.as_ref()?.list.clone();
                Some(Sealed { timeline: name.clone(), file: file.name.clone(), list })
            })
        };
        (history.seq > 0).then(|| Mark {
            place: place.to_owned(),
            seq: history.seq,
            hash: history.hash.clone(),
            signed: history.signed,
            timeline,
            file: file.map(|file| file.name.clone()).unwrap_or_default(),
            head: file.map(|file| file.head.clone()).unwrap_or_default(),
            end: file.map_or(0, |file| file.end()),
            sealed: history.timelines.iter().rev().find_map(of_timeline),
        })
    }

    /// What is wrong, when a history, as it was just read, is not the one of the mark, and does not go on from it.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) fn check(
        &self,
        store: &dyn Store,
        source: &str,
        now: &History,
    ) -> Result<Option<Older>, StoreError> {
        let is_so = now.seq >= self.seq
            && match commit_hash(store, source, self.seq)? {
                Some(hash) if hash == self.hash => true,
                // Commits were made anew from an older state on.
                Some(_) if now.seq == self.seq || commit_hash(store, source, self.seq + 1)?.is_some() => {
                    false
                }
                // Commits that a snapshot has are deleted in time, and one that stands alone there was made by who came too late.
                _ => goes_further(store, source, self.seq)? && self.is_in(now),
            };
        Ok((!is_so).then_some(Older { seen: self.seq, end: now.seq }))
    }

    /// Whether a history has what was there then: the bytes of the last file, and the same upload of the newest finished one. Who
    /// archives the same files a second time makes other objects.
    fn is_in(&self, now: &History) -> bool {
        let Some(archived) = now.timelines.get(&self.timeline) else { return self.timeline.is_empty() };
        let file = archived.file(&self.file);
        let has_end = archived.has_expired(&self.file)
            || file.is_some_and(|file| file.head == self.head && file.end() >= self.end);
        let has_upload = |Sealed { timeline, file, list }: &Sealed| {
            now.timelines.get(timeline).is_some_and(|archived| {
                let seal = archived.file(file).and_then(|file| file.sealed.as_ref());
                archived.has_expired(file) || seal.is_some_and(|seal| seal.list == *list)
            })
        };
        has_end && self.sealed.as_ref().is_none_or(has_upload)
    }

    /// Reads the mark of a source's folder; `None` where there is none, or only one of another archive.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(storage: &dyn Storage, folder: &Path, place: &str) -> io::Result<Option<Mark>> {
        match storage.read_to_string(&folder.join(MARK_FILE)) {
            Ok(text) => {
                let mark: Mark = read_toml(&text).map_err(io::Error::other)?;
                Ok(Some(mark).filter(|mark| mark.place == place))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts it into a source's folder.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn write(&self, storage: &dyn Storage, folder: &Path) -> io::Result<()> {
        let text = toml::to_string(self).map_err(io::Error::other)?;
        replace_file(storage, &folder.join(MARK_FILE), (HEAD.to_owned() + &text).as_bytes())
    }
}

/// The hash of the commit of that number; `None` where there is none.
pub(super) fn commit_hash(store: &dyn Store, source: &str, seq: u64) -> Result<Option<String>, StoreError> {
    match store.get(&names::commit(source, seq)) {
        Ok(bytes) => Ok(Some(names::sha256(&bytes))),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the store has just this commit.
pub(crate) fn has_commit(store: &dyn Store, source: &str, seq: u64, hash: &str) -> Result<bool, StoreError> {
    Ok(commit_hash(store, source, seq)?.is_some_and(|found| found == hash))
}

/// Whether there is a snapshot of more than the commits up to `seq`. Only names behind that are asked for: an archive of years has
/// many, and each commit asks.
pub(crate) fn goes_further(store: &dyn Store, source: &str, seq: u64) -> Result<bool, StoreError> {
    let after = names::after_snapshots_of(source, seq);
    let listed = store.list(&names::snapshots(source), Some(&after))?;
    Ok(listed.iter().any(|meta| names::snapshot_seq(&meta.name).is_some_and(|further| further > seq)))
}
