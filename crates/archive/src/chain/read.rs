//! Reading a chain: the newest snapshot that can be used, and the commits behind it.

use super::commit::{COMMIT_BYTES_MAX, Change, Commit, FORMAT};
use super::error::ChainError;
use super::history::{History, Unsound};
use super::signed::Signed;
use super::trust::Trust;
use crate::names;
use crate::store::{Fault, Meta, Store, StoreError};

/// The longest snapshot that is read, unpacked, in bytes.
const SNAPSHOT_BYTES_MAX: usize = 1 << 30;

/// So many times a chain is read anew whose snapshots come and go meanwhile.
const READS_MAX: u32 = 8;

/// What was read of a chain.
#[derive(Debug, Clone, Default)]
pub(super) struct Read {
    /// What the commits add up to.
    pub(super) history: History,
    /// The first commit behind the snapshot that a believed key has signed; all behind it are.
    pub(super) since: Option<u64>,
    /// Who signed the last commit.
    last: Option<Signed>,
    /// The snapshot from which it was read.
    base: Option<String>,
    /// Whether a commit behind that names it.
    is_base_named: bool,
}

impl Read {
    fn from_snapshot(name: &str, history: History) -> Read {
        Read { history, base: Some(name.to_owned()), ..Read::default() }
    }

    /// With one commit more; `hash` is that of its bytes.
    pub(super) fn with(&self, commit: &Commit, hash: &str, trust: &Trust) -> Result<Read, Unsound> {
        let history = self.history.with(commit, hash)?;
        if let Some(why) = trust.objection(commit, self.since) {
            return Err(Unsound { seq: commit.seq, why });
        }
        let is_base = |change: &Change| match change {
            Change::Snapshot { object, .. } => self.base.as_ref() == Some(object),
            _ => false,
        };
        Ok(Read {
            history,
            since: self.since.or_else(|| trust.accepts(commit).then_some(commit.seq)),
            last: commit.signed.clone(),
            base: self.base.clone(),
            is_base_named: self.is_base_named || commit.changes.iter().any(is_base),
        })
    }

    /// Whether the end of it may be believed.
    fn check(&self, trust: &Trust) -> Result<(), Unsound> {
        let why = self.since.is_none().then(|| trust.objection_to_all(self.last.as_ref())).flatten();
        why.map_or(Ok(()), |why| Err(Unsound { seq: self.history.seq, why }))
    }
}

/// Reads everything, from the newest snapshot on.
///
/// Where nothing more is found, that is the end only if no snapshot goes further: what was listed before may be deleted by
/// now, with its commits. So snapshots are listed again behind it, until nothing has changed meanwhile.
pub(super) fn read_all(store: &dyn Store, source: &str, trust: &Trust) -> Result<Read, ChainError> {
    let read = read_whole(store, source, trust)?;
    read.check(trust)?;
    Ok(read)
}

fn read_whole(store: &dyn Store, source: &str, trust: &Trust) -> Result<Read, ChainError> {
    let mut listed = list_snapshots(store, source)?;
    for _ in 0..READS_MAX {
        let read = read_from_newest(store, source, &listed, trust);
        let again = list_snapshots(store, source)?;
        match read {
            Ok(read) if read.history.seq >= newest_listed(&again) => return Ok(read),
            Err(ChainError::Store(error)) if !error.is_missing() => return Err(error.into()),
            Ok(read) if again == listed => return not_behind(store, source, read, &again),
            read if again == listed => return read,
            _ => listed = again,
        }
    }
    let text = format!("{source}: snapshots come and go faster than they can be read");
    Err(StoreError::new(Fault::Unavailable, text).into())
}

/// The history, though snapshots go further that cannot be used: somebody has put them there. But where the commit of one of them
/// stands in the store, the snapshot is damaged, and what leads to it is gone.
fn not_behind(store: &dyn Store, source: &str, read: Read, snapshots: &[String]) -> Result<Read, ChainError> {
    let end = read.history.seq;
    for name in snapshots {
        let Some(seq) = names::snapshot_seq(name).filter(|seq| *seq > end) else { continue };
        match store.head(&names::commit(source, seq)) {
            Ok(_) => {
                let why = format!("it is not there, and {name}, which goes further, cannot be used");
                return Err(Unsound { seq: end + 1, why }.into());
            }
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(read)
}

/// With all commits behind it.
pub(super) fn read_further(
    store: &dyn Store,
    source: &str,
    read: Read,
    trust: &Trust,
) -> Result<Read, ChainError> {
    let read = read_on(store, source, read, trust)?;
    read.check(trust)?;
    Ok(read)
}

fn read_on(store: &dyn Store, source: &str, mut read: Read, trust: &Trust) -> Result<Read, ChainError> {
    while let Some(next) = read_one(store, source, &read, trust)? {
        read = next;
    }
    Ok(read)
}

fn read_one(store: &dyn Store, source: &str, read: &Read, trust: &Trust) -> Result<Option<Read>, ChainError> {
    let seq = read.history.seq + 1;
    let bytes = match store.get(&names::commit(source, seq)) {
        Ok(bytes) => bytes,
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if bytes.len() as u64 > COMMIT_BYTES_MAX {
        return Err(Unsound { seq, why: format!("it is {} bytes long", bytes.len()) }.into());
    }
    let commit = Commit::decode(&bytes).map_err(|why| Unsound { seq, why })?;
    if let Some(signed) = commit.signed.as_ref().filter(|signed| signed.source != source) {
        let why = format!("it is signed as one of source {:?}: somebody has put it here", signed.source);
        return Err(Unsound { seq, why }.into());
    }
    Ok(Some(read.with(&commit, &names::sha256(&bytes), trust)?))
}

/// The names of the snapshots, the newest last.
pub(crate) fn list_snapshots(store: &dyn Store, source: &str) -> Result<Vec<String>, StoreError> {
    let listed = store.list(&names::snapshots(source), None)?;
    let named = listed.into_iter().map(|meta| meta.name);
    Ok(named.filter(|name| names::snapshot_seq(name).is_some()).collect())
}

/// The last commit of the newest of these snapshots that is as its name says.
pub(super) fn newest_readable(store: &dyn Store, listed: &[Meta]) -> Result<Option<u64>, StoreError> {
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

/// From the newest of the snapshots that is sound on; one that is not only makes more commits to be read.
fn read_from_newest(
    store: &dyn Store,
    source: &str,
    listed: &[String],
    trust: &Trust,
) -> Result<Read, ChainError> {
    for name in listed.iter().rev() {
        match usable(store, source, name)? {
            Ok(history) => {
                let read = read_on(store, source, Read::from_snapshot(name, history), trust)?;
                if trust.is_nobody() || read.is_base_named {
                    return Ok(read);
                }
                tracing::warn!(
                    "the snapshot {name} is passed over, an older one is used: no commit names it"
                );
            }
            Err(Some(why)) => {
                tracing::warn!("the snapshot {name} cannot be used, an older one is: {why}");
            }
            // Deleted since, or listed late.
            Err(None) => {}
        }
    }
    read_on(store, source, Read::default(), trust)
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
