//! What is known elsewhere of how far an archive went, against which one is held that may have been put back.
//!
//! A commit says that itself: its number, and whose signature it has. So its bytes are the statement, and may lie anywhere. What this
//! machine remembers ([`mark`](super::mark)), and a number with a hash that somebody has written down, are believed as they are.

use super::commit::Commit;
use super::history::History;
use super::mark::{MARK_FILE, Mark, commit_hash, goes_further};
use super::trust::Trust;
use crate::names;
use crate::store::{Store, StoreError};
use binlog::storage::Storage;
use binlog::storage::posix::PosixStorage;
use std::path::Path;

/// That an archive has had a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// Its number and its hexadecimal SHA-256.
    Commit(u64, String),
    /// As a copy remembers it.
    Mark(Mark),
}

/// What became of that commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// It is there.
    Yes,
    /// The archive goes further, and retention took the commit: by its number alone nobody can tell whether it was that one.
    Pruned,
    /// It is not there, or another one is.
    No,
}

impl Statement {
    /// Reads one: `SEQ:SHA256`; the file of a commit, signed by one who is believed; or the folder of copies, of which that of `source`
    /// remembers the archive at `place`.
    ///
    /// # Errors
    /// In words, when it is none of this source.
    pub fn read(argument: &str, source: &str, place: &str, trust: &Trust) -> Result<Statement, String> {
        if let Some((seq, hash)) = argument.split_once(':')
            && let Ok(seq) = seq.parse()
        {
            let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            let wrong = || format!("{hash:?} is no SHA-256 of 64 hexadecimal digits");
            return is_hash.then(|| Statement::Commit(seq, hash.to_ascii_lowercase())).ok_or_else(wrong);
        }
        let (path, in_file) =
            (Path::new(argument), |error: &dyn std::fmt::Display| format!("{argument}: {error}"));
        if PosixStorage.list(path).is_ok() {
            let mark =
                Mark::read(&PosixStorage, &path.join(source), place).map_err(|error| in_file(&error))?;
            return mark.map(Statement::Mark).ok_or_else(|| {
                format!("{argument} has no {source}/{MARK_FILE} in which a copy remembers {place}")
            });
        }
        let bytes = PosixStorage.read(path).map_err(|error| in_file(&error))?;
        let commit = Commit::decode(&bytes).map_err(|error| in_file(&error))?;
        match commit.signed.as_ref().filter(|_| trust.accepts(&commit)) {
            None => {
                Err(in_file(&"none of --signed-by has signed it, and anybody else could have written it"))
            }
            Some(signed) if signed.source != source => {
                Err(in_file(&format!("it is of source {:?}, and this is {source:?}", signed.source)))
            }
            Some(_) => Ok(Statement::Commit(commit.seq, names::sha256(&bytes))),
        }
    }

    /// The number of the commit.
    pub fn seq(&self) -> u64 {
        match self {
            Statement::Commit(seq, _) => *seq,
            Statement::Mark(mark) => mark.seq,
        }
    }

    /// Whether a history, as it was just read, has that commit.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn held(&self, store: &dyn Store, source: &str, now: &History) -> Result<Held, StoreError> {
        let (seq, wanted) = match self {
            Statement::Mark(mark) if mark.check(store, source, now)?.is_some() => return Ok(Held::No),
            Statement::Mark(mark) => (mark.seq, &mark.hash),
            Statement::Commit(seq, hash) => (*seq, hash),
        };
        if seq > now.seq {
            return Ok(Held::No);
        }
        Ok(match commit_hash(store, source, seq)? {
            Some(hash) if hash == *wanted => Held::Yes,
            None if goes_further(store, source, seq)? => Held::Pruned,
            _ => Held::No,
        })
    }
}

/// The bytes of the last commit of a history: a [`Statement`] to be kept elsewhere. `None` when it has none, or another one is there by now.
///
/// # Errors
/// When the store does not answer.
pub fn newest(
    store: &dyn Store,
    source: &str,
    (seq, hash): (u64, &str),
) -> Result<Option<Vec<u8>>, StoreError> {
    match store.get(&names::commit(source, seq)) {
        Ok(bytes) if names::sha256(&bytes) == hash => Ok(Some(bytes.to_vec())),
        Ok(_) => Ok(None),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}
