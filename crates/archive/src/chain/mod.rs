//! The commits of a source in its store: read from the newest snapshot on, and added to one by one.
//!
//! A commit is made by creating the object of the next number, which a store does once. What the answer was does not matter
//! much: an answer may be lost, a request may be doubled, and a refusal may mean one's own first try. So whoever is in doubt
//! reads what stands there, and believes that.

pub mod backup;
pub mod commit;
pub mod history;
pub mod mapping;
pub mod mark;
pub mod sources;

use crate::chain::commit::{COMMIT_BYTES_MAX, Change, Commit, FORMAT, Writer};
use crate::chain::history::{History, Unsound};
use crate::chain::mark::{Mark, Older, goes_further, has_commit};
use crate::names;
use crate::store::{Created, Fault, Meta, Store, StoreError};
use jiff::Timestamp;
use std::fmt;

/// A snapshot is due after so many commits: whoever reads the archive reads this many objects more at most.
pub(crate) const COMMITS_PER_SNAPSHOT: u64 = 128;

/// Snapshots that are kept whatever their age, the newest ones.
pub(crate) const SNAPSHOTS_KEPT: usize = 2;

/// The longest snapshot that is read, unpacked, in bytes.
const SNAPSHOT_BYTES_MAX: usize = 1 << 30;

/// So many times a chain is read anew whose snapshots come and go meanwhile.
const READS_MAX: u32 = 8;

/// Level at which snapshots are compressed.
const SNAPSHOT_LEVEL: i32 = 3;

/// Why the commits cannot be read or added to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainError {
    /// The store did not do what was asked.
    Store(StoreError),
    /// What stands in the store cannot be: damaged, replaced, or of a later version.
    Unsound(Unsound),
    /// What was in the store before is not there any more.
    Older(Older),
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChainError::Store(error) => error.fmt(f),
            ChainError::Unsound(error) => write!(f, "the archive is not as it was written: {error}"),
            ChainError::Older(error) => error.fmt(f),
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
        Ok(Chain { source: source.to_owned(), history: read_all(store, source)? })
    }

    /// Whose commits they are.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What the archive holds, as far as it was read.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Reads what others have added, and makes sure that what was read before is there. True when there was something.
    ///
    /// # Errors
    /// As [`Chain::open`], and when the archive was put back to an older state.
    pub fn refresh(&mut self, store: &dyn Store) -> Result<bool, ChainError> {
        let before = self.history.seq;
        match read_on(store, &self.source, self.history.clone()) {
            // Whatever follows names the hash of the one before it.
            Ok(history)
                if !goes_further(store, &self.source, history.seq)?
                    && (history.seq > before || self.has_last(store)?) =>
            {
                self.history = history;
            }
            Err(error @ ChainError::Store(_)) => return Err(error),
            Err(error) if !goes_further(store, &self.source, before)? && self.has_last(store)? => {
                return Err(error);
            }
            // Commits that a snapshot has are deleted in time, the oldest first; this reader slept for that long, and what stands
            // under their names since need not be them.
            _ => self.read_anew(store)?,
        }
        Ok(self.history.seq > before)
    }

    /// The same, if it is the chain of `seen` or goes on from there.
    pub(crate) fn checked(self, store: &dyn Store, seen: Option<&Mark>) -> Result<Chain, ChainError> {
        match seen.map(|mark| mark.check(store, &self.source, &self.history)).transpose()?.flatten() {
            None => Ok(self),
            Some(older) => Err(ChainError::Older(older)),
        }
    }

    /// Whether the last commit that was read is still there.
    fn has_last(&self, store: &dyn Store) -> Result<bool, ChainError> {
        let History { seq, hash, .. } = &self.history;
        Ok(*seq == 0 || has_commit(store, &self.source, *seq, hash)?)
    }

    fn read_anew(&mut self, store: &dyn Store) -> Result<(), ChainError> {
        let now = read_all(store, &self.source)?;
        self.history = Chain { source: self.source.clone(), history: now }
            .checked(store, Mark::of("", &self.history).as_ref())?
            .history;
        Ok(())
    }

    /// What stands in the store behind the end of what was read, in words: a commit, or a snapshot of one. Then a commit before it is
    /// gone or hidden, and what was read is older than what was archived: a sound history that ends too early. `None` where nothing
    /// does.
    ///
    /// # Errors
    /// As [`Chain::refresh`].
    pub fn beyond_a_hole(&mut self, store: &dyn Store) -> Result<Option<String>, ChainError> {
        let (source, seq) = (self.source.clone(), self.history.seq);
        let commits = store.list(&names::commits(&source), Some(&names::commit(&source, seq)))?;
        let snapshots =
            store.list(&names::snapshots(&source), Some(&names::after_snapshots_of(&source, seq)))?;
        let newest = match commits.iter().filter_map(|meta| names::commit_seq(&meta.name)).max() {
            Some(seq) => Some((seq, format!("commit {seq}"))),
            None => {
                newest_readable(store, &snapshots)?.map(|seq| (seq, format!("a snapshot of commit {seq}")))
            }
        };
        let Some((newest, what)) = newest else { return Ok(None) };
        // It may have come just now.
        self.refresh(store)?;
        Ok((self.history.seq < newest).then_some(what))
    }

    /// Makes sure that no commit is gone: whoever wrote one in its place would part the history for good, and whoever deletes what
    /// no commit names would delete what the later ones name.
    ///
    /// # Errors
    /// As [`Chain::refresh`], and when one is gone.
    pub fn check_whole(&mut self, store: &dyn Store) -> Result<(), ChainError> {
        let Some(newest) = self.beyond_a_hole(store)? else { return Ok(()) };
        let why = format!(
            "it is gone, and {newest} is there. Put it back, from a version of the object or another copy of the bucket; until then \
             nothing is written or deleted, and binlogd fetch brings what came before it"
        );
        Err(Unsound { seq: self.history.seq + 1, why }.into())
    }

    /// Adds a commit of `changes`, if the one before it is still there.
    ///
    /// # Errors
    /// When it is not known to be there; it may be, or come to be. To be tried again after [`Chain::refresh`]. When the changes
    /// cannot be, or the archive was put back to an older state, nothing was written.
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
        if !self.has_last(store)? {
            self.read_anew(store)?;
            return Ok(Appended::Behind);
        }
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
        // A number is free again when the commits up to it and beyond were deleted. That is never before a snapshot that goes
        // further was made, and from then on there is always one: where there is none, this number was never free.
        if is_ours && !goes_further(store, &self.source, seq)? {
            self.history = next;
            return Ok(Appended::Done);
        }
        if is_ours {
            self.read_anew(store)?;
            // Others may have gone on from it, and a snapshot that cannot be used says nothing.
            return Ok(if self.history.hash == encoded.hash { Appended::Done } else { Appended::Behind });
        }
        self.refresh(store)?;
        Ok(Appended::Behind)
    }

    /// Writes a snapshot if one is due, `after` so many commits; what is to be committed of it.
    ///
    /// # Errors
    /// When it could not be written. Nothing depends on it.
    pub(crate) fn snapshot_if_due(
        &self,
        store: &dyn Store,
        after: u64,
    ) -> Result<Option<Change>, ChainError> {
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
}

/// Reads everything, from the newest snapshot on.
///
/// Where nothing more is found, that is the end only if no snapshot goes further: what was listed before may be deleted by
/// now, with its commits. So snapshots are listed again behind it, until nothing has changed meanwhile.
fn read_all(store: &dyn Store, source: &str) -> Result<History, ChainError> {
    let mut listed = list_snapshots(store, source)?;
    for _ in 0..READS_MAX {
        let read = newest_snapshot(store, source, &listed).and_then(|from| read_on(store, source, from));
        let again = list_snapshots(store, source)?;
        match read {
            Ok(history) if history.seq >= newest_listed(&again) => return Ok(history),
            Err(ChainError::Store(error)) if !error.is_missing() => return Err(error.into()),
            Ok(history) if again == listed => return not_behind(store, source, history, &again),
            read if again == listed => return read,
            _ => listed = again,
        }
    }
    let text = format!("{source}: snapshots come and go faster than they can be read");
    Err(StoreError::new(Fault::Unavailable, text).into())
}

/// The history, though snapshots go further that cannot be used: somebody has put them there. But where the commit of one of them
/// stands in the store, the snapshot is damaged, and what leads to it is gone.
fn not_behind(
    store: &dyn Store,
    source: &str,
    history: History,
    snapshots: &[String],
) -> Result<History, ChainError> {
    for name in snapshots {
        let Some(seq) = names::snapshot_seq(name).filter(|seq| *seq > history.seq) else { continue };
        match store.head(&names::commit(source, seq)) {
            Ok(_) => {
                let why = format!("it is not there, and {name}, which goes further, cannot be used");
                return Err(Unsound { seq: history.seq + 1, why }.into());
            }
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(history)
}

fn read_on(store: &dyn Store, source: &str, mut history: History) -> Result<History, ChainError> {
    while let Some(next) = read_one(store, source, &history)? {
        history = next;
    }
    Ok(history)
}

fn read_one(store: &dyn Store, source: &str, history: &History) -> Result<Option<History>, ChainError> {
    let seq = history.seq + 1;
    let bytes = match store.get(&names::commit(source, seq)) {
        Ok(bytes) => bytes,
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if bytes.len() as u64 > COMMIT_BYTES_MAX {
        return Err(Unsound { seq, why: format!("it is {} bytes long", bytes.len()) }.into());
    }
    let commit = Commit::decode(&bytes).map_err(|why| Unsound { seq, why })?;
    Ok(Some(history.with(&commit, &names::sha256(&bytes))?))
}

/// The names of the snapshots, the newest last.
pub(crate) fn list_snapshots(store: &dyn Store, source: &str) -> Result<Vec<String>, StoreError> {
    let listed = store.list(&names::snapshots(source), None)?;
    let named = listed.into_iter().map(|meta| meta.name);
    Ok(named.filter(|name| names::snapshot_seq(name).is_some()).collect())
}

/// The last commit of the newest of these snapshots that is as its name says.
fn newest_readable(store: &dyn Store, listed: &[Meta]) -> Result<Option<u64>, StoreError> {
    for meta in listed.iter().rev().filter(|meta| names::snapshot_seq(&meta.name).is_some()) {
        match store.get(&meta.name) {
            // One that cannot be read whoever verifies names.
            Ok(bytes) => {
                if let Ok(history) = read_snapshot(&meta.name, &bytes) {
                    return Ok(Some(history.seq));
                }
            }
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The last commit of the newest of these snapshots; 0 for none.
fn newest_listed(snapshots: &[String]) -> u64 {
    snapshots.last().and_then(|name| names::snapshot_seq(name)).unwrap_or(0)
}

/// The newest of the snapshots that is sound; one that is not only makes more commits to be read.
fn newest_snapshot(store: &dyn Store, source: &str, listed: &[String]) -> Result<History, ChainError> {
    for name in listed.iter().rev() {
        match usable(store, source, name)? {
            Ok(history) => return Ok(history),
            Err(Some(why)) => {
                tracing::warn!("the snapshot {name} cannot be used, an older one is: {why}");
            }
            // Deleted since, or listed late.
            Err(None) => {}
        }
    }
    Ok(History::default())
}

/// What a snapshot says, if its last commit stands in the store: whoever could put a snapshot there could make up a history, and the
/// chain itself says what it is. Or why it cannot be used, in words; `None` when it is not there.
///
/// # Errors
/// When the store does not answer.
pub(crate) fn usable(
    store: &dyn Store,
    source: &str,
    name: &str,
) -> Result<Result<History, Option<String>>, StoreError> {
    let bytes = match store.get(name) {
        Ok(bytes) => bytes,
        Err(error) if error.is_missing() => return Ok(Err(None)),
        Err(error) => return Err(error),
    };
    let history = match read_snapshot(name, &bytes) {
        Ok(history) => history,
        Err(why) => return Ok(Err(Some(why))),
    };
    match store.get(&names::commit(source, history.seq)) {
        Ok(commit) if names::sha256(&commit) == history.hash => Ok(Ok(history)),
        Ok(_) => Ok(Err(Some("its last commit is another one in the store".to_owned()))),
        Err(error) if error.is_missing() => Ok(Err(Some("its last commit is not there".to_owned()))),
        Err(error) => Err(error),
    }
}

/// Reads a snapshot.
///
/// # Errors
/// In words, when the object is none.
pub(crate) fn read_snapshot(name: &str, bytes: &[u8]) -> Result<History, String> {
    if !names::is_of_content(name, &names::sha256(bytes)) {
        return Err("its bytes are not those that its name says".into());
    }
    let mut json = Vec::new();
    let decoder = zstd::Decoder::new(bytes).map_err(|error| error.to_string())?;
    let mut decoder = std::io::Read::take(decoder, SNAPSHOT_BYTES_MAX as u64);
    std::io::Read::read_to_end(&mut decoder, &mut json).map_err(|error| error.to_string())?;
    let mut history: History = serde_json::from_slice(&json).map_err(|error| error.to_string())?;
    if history.format > FORMAT {
        return Err(format!("it has format {}, and this version reads up to {FORMAT}", history.format));
    }
    history.check()?;
    if Some(history.seq) != names::snapshot_seq(name) {
        return Err(format!("it goes up to commit {}, and its name says another one", history.seq));
    }
    // What is read from an older one is what this version would make of the same commits.
    history.format = FORMAT;
    Ok(history)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Memory;

    const SOURCE: &str = "shop";

    fn writer(id: &str) -> Writer {
        Writer { id: id.into(), epoch: 0, host: "db1".into(), version: "0".into() }
    }

    /// Adds a commit that says something new.
    fn add(store: &Memory, chain: &mut Chain, id: &str) -> Appended {
        let record = format!("{} {id}", chain.history.seq);
        let change = Change::Timeline { timeline: "0001-a".into(), record };
        chain.append(store, &writer(id), Timestamp::UNIX_EPOCH, vec![change]).unwrap()
    }

    fn chain(store: &Memory) -> Chain {
        Chain::open(store, SOURCE).unwrap()
    }

    /// Whoever reads what ends before a hole must be told: it is sound, and not all.
    #[test]
    fn commits_behind_a_hole_are_told() {
        let store = Memory::default();
        let mut writer = chain(&store);
        for _ in 1..=3 {
            assert_eq!(add(&store, &mut writer, "one"), Appended::Done);
        }
        let mut reader = chain(&store);
        assert_eq!(reader.beyond_a_hole(&store).unwrap(), None);
        for _ in 4..=6 {
            assert_eq!(add(&store, &mut writer, "one"), Appended::Done);
        }
        assert_eq!(reader.beyond_a_hole(&store).unwrap(), None, "they came meanwhile");
        assert_eq!(reader.history().seq, 6);
        store.delete(&names::commit(SOURCE, 5)).unwrap();
        let mut reader = chain(&store);
        assert_eq!(reader.history().seq, 4);
        assert_eq!(reader.beyond_a_hole(&store).unwrap().as_deref(), Some("commit 6"));
    }

    #[test]
    fn of_two_writers_one_comes_too_late() {
        let store = Memory::default();
        let (mut one, mut other) = (chain(&store), chain(&store));
        assert_eq!(add(&store, &mut one, "one"), Appended::Done);
        assert_eq!(add(&store, &mut other, "other"), Appended::Behind);
        assert_eq!(other.history(), one.history());
        assert_eq!(add(&store, &mut other, "other"), Appended::Done);
        assert!(one.refresh(&store).unwrap() && !one.refresh(&store).unwrap());
        assert_eq!((one.history().seq, one.history().writer.as_ref().unwrap().epoch), (2, 2));
    }

    /// Commits, and snapshots after the fourth and the eighth; then everything before the second one goes.
    fn pruned() -> (Memory, Chain) {
        let store = Memory::default();
        let mut chain = chain(&store);
        for seq in 1..=9 {
            assert_eq!(add(&store, &mut chain, "one"), Appended::Done);
            if seq % 4 == 0 {
                assert!(chain.snapshot_if_due(&store, 1).unwrap().is_some());
            }
        }
        for seq in 1..8 {
            store.delete(&names::commit(SOURCE, seq)).unwrap();
        }
        (store, chain)
    }

    #[test]
    fn a_number_that_is_free_again_is_nobodys() {
        let (store, real) = pruned();
        for slept_at in 0..3 {
            let (fresh, mut sleeper) = (Memory::default(), chain(&Memory::default()));
            for _ in 0..slept_at {
                assert_eq!(add(&fresh, &mut sleeper, "one"), Appended::Done);
            }
            assert_eq!(add(&store, &mut sleeper, "sleeper"), Appended::Behind, "slept at {slept_at}");
            assert_eq!(sleeper.history(), real.history());
            // What the sleeper wrote stands there, and nobody who reads on from the one before believes it.
            let (again, mut reader) = (Memory::default(), chain(&Memory::default()));
            for _ in 0..slept_at {
                assert_eq!(add(&again, &mut reader, "one"), Appended::Done);
            }
            assert!(reader.refresh(&store).unwrap());
            assert_eq!(reader.history(), real.history());
            assert_eq!(chain(&store).history(), real.history());
        }
    }

    #[test]
    fn a_damaged_snapshot_is_no_empty_archive() {
        let (store, real) = pruned();
        let name = list_snapshots(&store, SOURCE).unwrap().pop().unwrap();
        store.delete(&name).unwrap();
        let _: Created = store.create(&name, bytes::Bytes::from_static(b"damaged")).unwrap();
        let error = Chain::open(&store, SOURCE).unwrap_err();
        assert!(matches!(error, ChainError::Unsound(_)), "{error}");
        // One that somebody has made up, of a commit that is not there, is passed over.
        let (store, _) = pruned();
        let made_up = names::snapshot(SOURCE, 99, &names::sha256(b"made up"));
        let _: Created = store.create(&made_up, bytes::Bytes::from_static(b"made up")).unwrap();
        let mut opened = chain(&store);
        assert_eq!(opened.history(), real.history());
        assert_eq!(add(&store, &mut opened, "two"), Appended::Done);
    }

    #[test]
    fn a_replaced_commit_is_refused() {
        let store = Memory::default();
        let mut real = chain(&store);
        for _ in 0..3 {
            assert_eq!(add(&store, &mut real, "one"), Appended::Done);
        }
        let (other, mut forged) = (Memory::default(), chain(&Memory::default()));
        for _ in 0..2 {
            assert_eq!(add(&other, &mut forged, "forger"), Appended::Done);
        }
        let second = names::commit(SOURCE, 2);
        store.delete(&second).unwrap();
        let _: Created = store.create(&second, other.get(&second).unwrap()).unwrap();
        let error = Chain::open(&store, SOURCE).unwrap_err().to_string();
        assert!(error.contains("commit 2") && error.contains("replaced"), "{error}");
        // Without it the chain ends before it; who has seen more says so.
        store.delete(&second).unwrap();
        assert_eq!(chain(&store).history().seq, 1);
    }
}
