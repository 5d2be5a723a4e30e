//! The commits of a source in its store: read from the newest snapshot on, and added to one by one.
//!
//! A commit is made by creating the object of the next number, which a store does once. What the answer was does not matter
//! much: an answer may be lost, a request may be doubled, and a refusal may mean one's own first try. So whoever is in doubt
//! reads what stands there, and believes that.

pub mod backup;
pub mod commit;
mod error;
pub mod history;
pub mod mapping;
pub mod mark;
mod read;
pub mod signed;
pub mod sources;
pub mod statement;
pub mod trust;

pub use error::ChainError;
pub(crate) use read::{list_snapshots, usable};

use crate::chain::commit::{Change, Commit, FORMAT, Writer};
use crate::chain::history::{History, Unsound};
use crate::chain::mark::{Mark, goes_further, has_commit};
use crate::chain::read::{Read, newest_readable, read_all, read_further};
use crate::chain::trust::Trust;
use crate::keys::signing::SigningKey;
use crate::names;
use crate::store::{Created, Fault, Store};
use jiff::Timestamp;
use std::sync::Arc;

/// A snapshot is due after so many commits: whoever reads the archive reads this many objects more at most.
pub(crate) const COMMITS_PER_SNAPSHOT: u64 = 128;

/// Snapshots that are kept whatever their age, the newest ones.
pub(crate) const SNAPSHOTS_KEPT: usize = 2;

/// Level at which snapshots are compressed.
const SNAPSHOT_LEVEL: i32 = 3;

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
    trust: Trust,
    key: Option<Arc<SigningKey>>,
    read: Read,
}

impl Chain {
    /// Reads what there is, whoever wrote it.
    ///
    /// # Errors
    /// When the store cannot be read, or what stands in it cannot be.
    pub fn open(store: &dyn Store, source: &str) -> Result<Chain, ChainError> {
        Chain::open_trusting(store, source, &Trust::default())
    }

    /// Reads what there is, if it is signed by those who are believed.
    ///
    /// # Errors
    /// As [`Chain::open`], and when it is not.
    pub fn open_trusting(store: &dyn Store, source: &str, trust: &Trust) -> Result<Chain, ChainError> {
        let read = read_all(store, source, trust)?;
        Ok(Chain { source: source.to_owned(), trust: trust.clone(), key: None, read })
    }

    /// What is added from now on is signed with this key.
    #[must_use]
    pub fn signing(self, key: Option<Arc<SigningKey>>) -> Chain {
        Chain { key, ..self }
    }

    /// The first commit, of those that were read, that somebody who is believed has signed: behind it all are. `None` when nobody is
    /// believed, or nobody has signed yet.
    pub fn signed_since(&self) -> Option<u64> {
        self.read.since
    }

    /// Whose commits they are.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What the archive holds, as far as it was read.
    pub fn history(&self) -> &History {
        &self.read.history
    }

    /// Reads what others have added, and makes sure that what was read before is there. True when there was something.
    ///
    /// # Errors
    /// As [`Chain::open`], and when the archive was put back to an older state.
    pub fn refresh(&mut self, store: &dyn Store) -> Result<bool, ChainError> {
        let before = self.read.history.seq;
        match read_further(store, &self.source, self.read.clone(), &self.trust) {
            // Whatever follows names the hash of the one before it.
            Ok(read)
                if !goes_further(store, &self.source, read.history.seq)?
                    && (read.history.seq > before || self.has_last(store)?) =>
            {
                self.read = read;
            }
            Err(error @ ChainError::Store(_)) => return Err(error),
            Err(error) if !goes_further(store, &self.source, before)? && self.has_last(store)? => {
                return Err(error);
            }
            // Commits that a snapshot has are deleted in time, the oldest first; this reader slept for that long, and what stands
            // under their names since need not be them.
            _ => self.read_anew(store)?,
        }
        Ok(self.read.history.seq > before)
    }

    /// The same, if it is the chain of `seen` or goes on from there.
    pub(crate) fn checked(self, store: &dyn Store, seen: Option<&Mark>) -> Result<Chain, ChainError> {
        let Some(mark) = seen else { return Ok(self) };
        let History { seq, signed, .. } = *self.history();
        match mark.check(store, &self.source, self.history())? {
            Some(older) => Err(ChainError::Older(older)),
            None if mark.signed && !signed => {
                let why =
                    format!("it is not signed, and commit {}, which this copy has seen there, was", mark.seq);
                Err(Unsound { seq, why }.into())
            }
            None => Ok(self),
        }
    }

    /// Whether the last commit that was read is still there.
    fn has_last(&self, store: &dyn Store) -> Result<bool, ChainError> {
        let History { seq, hash, .. } = self.history();
        Ok(*seq == 0 || has_commit(store, &self.source, *seq, hash)?)
    }

    fn read_anew(&mut self, store: &dyn Store) -> Result<(), ChainError> {
        let now = Chain::open_trusting(store, &self.source, &self.trust)?;
        self.read = now.checked(store, Mark::of("", self.history()).as_ref())?.read;
        Ok(())
    }

    /// What stands in the store behind the end of what was read, in words: a commit, or a snapshot of one. Then a commit before it is
    /// gone or hidden, and what was read is older than what was archived: a sound history that ends too early. `None` where nothing
    /// does.
    ///
    /// # Errors
    /// As [`Chain::refresh`].
    pub fn beyond_a_hole(&mut self, store: &dyn Store) -> Result<Option<String>, ChainError> {
        let (source, seq) = (self.source.clone(), self.history().seq);
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
        Ok((self.history().seq < newest).then_some(what))
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
        Err(Unsound { seq: self.history().seq + 1, why }.into())
    }

    /// Makes sure that somebody who is believed has signed it, where anybody is and there are commits: what was seen of it nowhere
    /// before may be made up from its first commit on.
    ///
    /// # Errors
    /// When nobody has.
    pub fn check_signed(&self) -> Result<(), ChainError> {
        let History { seq, .. } = *self.history();
        if seq == 0 || self.trust.is_nobody() || self.read.since.is_some() {
            return Ok(());
        }
        let why = "neither it nor one before it is signed by sign_key or one of signed_by in [archive]. Is it known to be sound, take both out \
                   of the configuration until the copy has begun";
        Err(Unsound { seq, why: why.to_owned() }.into())
    }

    /// Adds a commit of `changes`, if the one before it is still there.
    ///
    /// # Errors
    /// When it is not known to be there; it may be, or come to be. To be tried again after [`Chain::refresh`]. When the changes
    /// cannot be, the archive was put back to an older state, or is signed and here is no key, nothing was written.
    pub fn append(
        &mut self,
        store: &dyn Store,
        writer: &Writer,
        at: Timestamp,
        changes: Vec<Change>,
    ) -> Result<Appended, ChainError> {
        if self.history().signed && self.key.is_none() {
            return Err(ChainError::NoKey);
        }
        let seq = self.history().seq + 1;
        let writer = Writer { epoch: self.epoch_of(&writer.id), ..writer.clone() };
        let previous = self.history().hash.clone();
        let mut commit = Commit { format: FORMAT, seq, previous, writer, at, changes, signed: None };
        if let Some(key) = &self.key {
            commit = commit.sign(key, &self.source);
        }
        let encoded = commit.encode();
        let next = self.read.with(&commit, &encoded.hash, &self.trust)?;
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
            self.read = next;
            return Ok(Appended::Done);
        }
        if is_ours {
            self.read_anew(store)?;
            // Others may have gone on from it, and a snapshot that cannot be used says nothing.
            return Ok(if self.history().hash == encoded.hash { Appended::Done } else { Appended::Behind });
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
        let history = self.history();
        if history.seq < history.snapshot + after {
            return Ok(None);
        }
        let json = serde_json::to_vec(history).expect("a history can be written as JSON");
        let bytes = zstd::bulk::compress(&json, SNAPSHOT_LEVEL).expect("memory can be compressed");
        let object = names::snapshot(&self.source, history.seq, &names::sha256(&bytes));
        let _: Created = store.create(&object, bytes.into())?;
        Ok(Some(Change::Snapshot { through: history.seq, object }))
    }

    /// The epoch that a writer's next commit has.
    fn epoch_of(&self, writer: &str) -> u64 {
        match &self.history().writer {
            Some(last) if last.id == writer => last.epoch,
            Some(last) => last.epoch + 1,
            None => 1,
        }
    }
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
        let record = format!("{} {id}", chain.history().seq);
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
