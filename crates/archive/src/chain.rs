//! The commits of a source in its store: read from the newest snapshot on, and added to one by one.
//!
//! A commit is made by creating the object of the next number, which a store does once. What the answer was does not matter
//! much: an answer may be lost, a request may be doubled, and a refusal may mean one's own first try. So whoever is in doubt
//! reads what stands there, and believes that.

use crate::commit::{COMMIT_BYTES_MAX, Change, Commit, FORMAT, Writer};
use crate::history::{History, Unsound};
use crate::names;
use crate::store::{Created, Fault, Store, StoreError};
use jiff::Timestamp;
use std::fmt;

/// A snapshot is due after so many commits: whoever reads the archive reads this many objects more at most.
pub const COMMITS_PER_SNAPSHOT: u64 = 128;

/// The longest snapshot that is read, unpacked, in bytes.
const SNAPSHOT_BYTES_MAX: usize = 1 << 30;

/// Level at which snapshots are compressed.
const SNAPSHOT_LEVEL: i32 = 3;

/// Why the commits cannot be read or added to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainError {
    /// The store did not do what was asked.
    Store(StoreError),
    /// What stands in the store cannot be: damaged, replaced, or of a later version.
    Unsound(Unsound),
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChainError::Store(error) => error.fmt(f),
            ChainError::Unsound(error) => write!(f, "the archive is not as it was written: {error}"),
        }
    }
}

impl std::error::Error for ChainError {}

impl From<StoreError> for ChainError {
    fn from(error: StoreError) -> ChainError {
        ChainError::Store(error)
    }
}

impl From<Unsound> for ChainError {
    fn from(error: Unsound) -> ChainError {
        ChainError::Unsound(error)
    }
}

/// What became of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Appended {
    /// It is in the chain.
    Done,
    /// Others have committed meanwhile, and what they did is known now. Whatever was planned must be planned anew.
    Behind,
}

/// The chain of one source, as far as it was read.
#[derive(Debug)]
pub struct Chain {
    source: String,
    history: History,
}

impl Chain {
    /// Reads what there is.
    ///
    /// # Errors
    /// When the store cannot be read, or what stands in it cannot be.
    pub fn open(store: &dyn Store, source: &str) -> Result<Chain, ChainError> {
        let mut chain = Chain { source: source.to_owned(), history: newest_snapshot(store, source)? };
        chain.read_on(store)?;
        Ok(chain)
    }

    /// Whose commits they are.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What the archive holds, as far as it was read.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Reads what others have added. True when there was something.
    ///
    /// # Errors
    /// As [`Chain::open`].
    pub fn refresh(&mut self, store: &dyn Store) -> Result<bool, ChainError> {
        let before = self.history.seq;
        if self.read_on(store)? {
            return Ok(true);
        }
        if before == 0 || self.is_there(store, before)? {
            return Ok(false);
        }
        // Commits that a snapshot has are deleted in time, the oldest first; this reader slept for that long.
        *self = Chain::open(store, &self.source)?;
        if self.history.seq < before {
            let why = format!("commits up to {before} were there, and are there no more");
            return Err(Unsound { seq: self.history.seq + 1, why }.into());
        }
        Ok(self.history.seq > before)
    }

    /// Adds a commit of `changes`.
    ///
    /// # Errors
    /// When it is not known to be there; it may be, or come to be. To be tried again after [`Chain::refresh`]. When the changes
    /// cannot be, nothing was written.
    pub fn append(
        &mut self,
        store: &dyn Store,
        writer: &Writer,
        at: Timestamp,
        changes: Vec<Change>,
    ) -> Result<Appended, ChainError> {
        let seq = self.history.seq + 1;
        let writer = Writer { epoch: self.epoch_of(&writer.id), ..writer.clone() };
        let previous = self.history.hash.clone();
        let commit = Commit { format: FORMAT, seq, previous, writer, at, changes };
        let encoded = commit.encode();
        let next = self.history.with(&commit, &encoded.hash)?;
        let name = names::commit(&self.source, seq);
        let is_ours = match store.create(&name, encoded.bytes.clone().into()) {
            Ok(Created::New) => true,
            Ok(Created::Exists) => store.get(&name)? == encoded.bytes,
            Err(error) if error.fault == Fault::Unavailable => match store.get(&name) {
                Ok(found) => found == encoded.bytes,
                Err(_) => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        };
        // A number is free again when the commits up to it and beyond were deleted, which is long after they were made, and never
        // before the one in front of it. Nobody will read what was written there.
        if is_ours && (seq == 1 || self.is_there(store, seq - 1)?) {
            self.history = next;
            return Ok(Appended::Done);
        }
        if is_ours {
            *self = Chain::open(store, &self.source)?;
        } else {
            self.refresh(store)?;
        }
        Ok(Appended::Behind)
    }

    /// Writes a snapshot if one is due, `after` so many commits; what is to be committed of it.
    ///
    /// # Errors
    /// When it could not be written. Nothing depends on it.
    pub fn snapshot_if_due(&self, store: &dyn Store, after: u64) -> Result<Option<Change>, ChainError> {
        if self.history.seq < self.history.snapshot + after {
            return Ok(None);
        }
        let json = serde_json::to_vec(&self.history).expect("a history can be written as JSON");
        let bytes = zstd::bulk::compress(&json, SNAPSHOT_LEVEL).expect("memory can be compressed");
        let object = names::snapshot(&self.source, self.history.seq, &names::sha256(&bytes));
        let _: Created = store.create(&object, bytes.into())?;
        Ok(Some(Change::Snapshot { through: self.history.seq, object }))
    }

    /// The epoch that a writer's next commit has.
    fn epoch_of(&self, writer: &str) -> u64 {
        match &self.history.writer {
            Some(last) if last.id == writer => last.epoch,
            Some(last) => last.epoch + 1,
            None => 1,
        }
    }

    fn is_there(&self, store: &dyn Store, seq: u64) -> Result<bool, StoreError> {
        match store.head(&names::commit(&self.source, seq)) {
            Ok(_) => Ok(true),
            Err(error) if error.is_missing() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn read_on(&mut self, store: &dyn Store) -> Result<bool, ChainError> {
        let mut found = false;
        while let Some(next) = self.read_one(store, self.history.seq + 1)? {
            self.history = next;
            found = true;
        }
        Ok(found)
    }

    fn read_one(&self, store: &dyn Store, seq: u64) -> Result<Option<History>, ChainError> {
        let bytes = match store.get(&names::commit(&self.source, seq)) {
            Ok(bytes) => bytes,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if bytes.len() as u64 > COMMIT_BYTES_MAX {
            return Err(Unsound { seq, why: format!("it is {} bytes long", bytes.len()) }.into());
        }
        let commit = Commit::decode(&bytes).map_err(|why| Unsound { seq, why })?;
        Ok(Some(self.history.with(&commit, &names::sha256(&bytes))?))
    }
}

/// The newest snapshot that is sound; one that is not only makes more commits to be read.
fn newest_snapshot(store: &dyn Store, source: &str) -> Result<History, ChainError> {
    let mut listed = store.list(&names::snapshots(source), None)?;
    listed.retain(|meta| names::snapshot_seq(&meta.name).is_some());
    while let Some(meta) = listed.pop() {
        let bytes = store.get(&meta.name)?;
        let history = read_snapshot(&meta.name, &bytes).and_then(|history| {
            // Whoever could put a snapshot there could make up a history; the chain itself says what it is.
            match store.get(&names::commit(source, history.seq)) {
                Ok(commit) if names::sha256(&commit) == history.hash => Ok(history),
                Ok(_) => Err("its last commit is another one in the store".to_owned()),
                Err(error) => Err(format!("its last commit cannot be read: {error}")),
            }
        });
        match history {
            Ok(history) => return Ok(history),
            Err(why) => tracing::warn!("the snapshot {} cannot be used, an older one is: {why}", meta.name),
        }
    }
    Ok(History::default())
}

/// Reads a snapshot.
///
/// # Errors
/// In words, when the object is none.
pub fn read_snapshot(name: &str, bytes: &[u8]) -> Result<History, String> {
    if !names::is_of_content(name, &names::sha256(bytes)) {
        return Err("its bytes are not those that its name says".into());
    }
    let mut json = Vec::new();
    let decoder = zstd::Decoder::new(bytes).map_err(|error| error.to_string())?;
    let mut decoder = std::io::Read::take(decoder, SNAPSHOT_BYTES_MAX as u64);
    std::io::Read::read_to_end(&mut decoder, &mut json).map_err(|error| error.to_string())?;
    let history: History = serde_json::from_slice(&json).map_err(|error| error.to_string())?;
    if history.format > FORMAT {
        return Err(format!("it has format {}, and this version reads up to {FORMAT}", history.format));
    }
    if Some(history.seq) != names::snapshot_seq(name) {
        return Err(format!("it goes up to commit {}, and its name says another one", history.seq));
    }
    Ok(history)
}
