//! Search indexes of finished files, so that a search needs not fetch the files: small objects beside the chain of commits.
//!
//! They are derived. No commit names one, nothing of safety rests on one, and whoever misses one walks the file. What is in them is
//! no business of this crate but for the number of its form, which their names have, so that a later form stands beside an older
//! one. They are compressed and encrypted as segments are.
//!
//! An index says of which file it is by the SHA-256 of the whole file, which the commit that sealed the file has: one that was put
//! into the place of another is none. Its object's name has the hash of its content, so one that was damaged is none either. As no
//! two uploads have one name, what is deleted late is nobody else's.

use crate::chain::history::{ArchivedFile, History};
use crate::names;
use crate::reader::{ReadError, Reader};
use crate::segment::{OpenError, SEGMENT_BYTES_MAX, Sealer};
use crate::store::{Fault, Meta, Store, StoreError};
use crate::upkeep::unneeded::{Past, kept};
use crate::writer::upload::{Owner, UploadError, Uploader, create_data};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// In front of an index: what this is, the SHA-256 of its file, and its own, each in hexadecimal digits.
const HEADER_WORD: &str = "blsidx";
const HEADER_BYTES: usize = HEADER_WORD.len() + 1 + 64 + 1 + 64 + 1;

/// The longest index that is archived, in bytes. A longer one is that of a file above 1.6 GiB, full of small transactions.
pub const INDEX_BYTES_MAX: usize = SEGMENT_BYTES_MAX - HEADER_BYTES;

/// Level at which an index is compressed: zstd takes little memory there.
const INDEX_LEVEL: i32 = 3;

/// An index as the store lists it. Nothing of it is known but its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    object: String,
    /// Plain bytes, at most a segment's.
    len: usize,
}

/// The indexes of one form that the store has of a timeline.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed(BTreeMap<String, Vec<Found>>);

impl Listed {
    /// Those of a file: one, or several where two archived the file at the same time. Any that [`get`] gives will do.
    pub fn of(&self, file: &str) -> &[Found] {
        self.0.get(file).map_or(&[], Vec::as_slice)
    }
}

/// Why an object is no index to believe.
#[derive(Debug)]
pub enum NoIndex {
    /// The store did not give it, or it cannot be opened.
    Read(ReadError),
    /// It is opened, and is not the index of that file; in words.
    Other(&'static str),
}

impl fmt::Display for NoIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoIndex::Read(error) => error.fmt(f),
            NoIndex::Other(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for NoIndex {}

/// Puts the index of a finished file whose SHA-256 is `sha256` into the store, in the form `version`. The length of its object, in
/// bytes.
///
/// # Errors
/// When the store does not take it, the machine has no memory, or the index is longer than [`INDEX_BYTES_MAX`]. Nothing depends on
/// it.
pub fn put(
    uploader: &Uploader,
    owner: Owner<'_>,
    sha256: &str,
    version: u32,
    index: &[u8],
) -> Result<u64, UploadError> {
    let folder = names::search_folder(owner.source, owner.timeline, owner.file);
    if index.len() > INDEX_BYTES_MAX {
        let text = format!("{folder}: an index of {} bytes is not archived", index.len());
        return Err(UploadError::Store(StoreError::new(Fault::Refused, text)));
    }
    let mut plain = header(sha256, index).into_bytes();
    plain.extend_from_slice(index);
    // Made here and not at a place of the uploads: those must not wait for this.
    let sealer = Sealer::new(INDEX_LEVEL, uploader.recipients.clone());
    let sealed = sealer.and_then(|mut sealer| sealer.seal(&plain, &[])).map_err(UploadError::Seal)?;
    let is_encrypted = uploader.recipients.is_some();
    let object =
        names::search_index(&folder, plain.len() as u64, &sealed.stored_sha256, version, is_encrypted);
    let stored = sealed.bytes.len() as u64;
    create_data(&*uploader.store, &object, sealed.bytes).map_err(UploadError::Store)?;
    Ok(stored)
}

fn header(sha256: &str, index: &[u8]) -> String {
    format!("{HEADER_WORD} {sha256:64} {}\n", names::sha256(index))
}

/// What the store has of a timeline in the form `version`: one request for each thousand objects.
///
/// # Errors
/// When the store cannot list.
pub fn list(store: &dyn Store, source: &str, timeline: &str, version: u32) -> Result<Listed, StoreError> {
    listed(store, &names::search_of(source, timeline), version)
}

/// Whether the store has an index of a file in the form `version`.
///
/// # Errors
/// When the store cannot list.
pub fn is_there(store: &dyn Store, owner: Owner<'_>, version: u32) -> Result<bool, StoreError> {
    let folder = names::search_folder(owner.source, owner.timeline, owner.file);
    Ok(!listed(store, &folder, version)?.of(owner.file).is_empty())
}

fn listed(store: &dyn Store, prefix: &str, version: u32) -> Result<Listed, StoreError> {
    let mut found = Listed::default();
    for meta in store.list(prefix, None)? {
        let Some(name) = names::search_name(&meta.name).filter(|name| name.version == Some(version)) else {
            continue;
        };
        let file = name.file.to_owned();
        found.0.entry(file).or_default().extend(named(meta.name));
    }
    Ok(found)
}

/// An object by its name; `None` where that is no name of an index.
fn named(object: String) -> Option<Found> {
    let len = names::search_name(&object).filter(|name| name.version.is_some())?.len?;
    let len = usize::try_from(len).ok().filter(|len| (HEADER_BYTES..=SEGMENT_BYTES_MAX).contains(len))?;
    Some(Found { object, len })
}

/// The index of the finished file whose SHA-256 is `sha256`, as it was put there.
///
/// # Errors
/// When the store does not give it, no key opens it, or it is not what was put there for that file.
pub fn get(reader: &Reader, found: &Found, sha256: &str) -> Result<Vec<u8>, NoIndex> {
    let stored = reader.store.get(&found.object).map_err(|error| NoIndex::Read(ReadError::Store(error)))?;
    opened(reader, found, &stored, sha256)
}

fn opened(reader: &Reader, found: &Found, stored: &[u8], sha256: &str) -> Result<Vec<u8>, NoIndex> {
    let opened = reader.opener.open_by_name(&found.object, found.len, stored);
    let mut plain = opened.map_err(|error| NoIndex::Read(ReadError::Open(error)))?;
    if plain.len() < HEADER_BYTES || !plain.starts_with(HEADER_WORD.as_bytes()) {
        return Err(NoIndex::Other("it is no search index"));
    }
    let index = plain.split_off(HEADER_BYTES);
    let expected = header(sha256, &index);
    if plain != expected.as_bytes() {
        return Err(NoIndex::Other("it is the search index of another file, or is damaged"));
    }
    Ok(index)
}

/// All search indexes of a source, whatever their form, timeline by timeline.
///
/// # Errors
/// Those of `each`, and when the store cannot list.
pub(crate) fn each_listed<E: From<StoreError>>(
    store: &dyn Store,
    source: &str,
    each: &mut dyn FnMut(Vec<Meta>) -> Result<(), E>,
) -> Result<(), E> {
    let below = store.look_into(&names::search(source))?;
    if !below.objects.is_empty() {
        each(below.objects)?;
    }
    below.folders.iter().try_for_each(|timeline| each(store.list(timeline, None)?))
}

/// The file of the archive whose index an object is; `None` for one of a file that the archive does not have.
pub(crate) fn file_of<'a>(history: &'a History, object: &str) -> Option<&'a ArchivedFile> {
    let name = names::search_name(object)?;
    history.file(name.timeline, name.file).map(|file| &**file)
}

/// Whether an object is an index of a file as it was put there, as far as can be seen: with `open`, also by what is in it, where a
/// key opens it. One that is gone meanwhile is no damaged one, nor is one of another form.
///
/// # Errors
/// When the store does not answer.
pub(crate) fn is_sound(
    reader: &Reader,
    meta: &Meta,
    file: &ArchivedFile,
    open: bool,
) -> Result<bool, StoreError> {
    let Some(found) = named(meta.name.clone()) else { return Ok(false) };
    let stored = match reader.store.get(&found.object) {
        Ok(stored) => stored,
        Err(error) if error.is_missing() => return Ok(true),
        Err(error) => return Err(error),
    };
    // One that was not finished when the history was read is so by now.
    let Some(seal) = file.sealed.as_ref().filter(|_| open) else {
        return Ok(names::is_of_content(&found.object, &names::sha256(&stored)));
    };
    Ok(match opened(reader, &found, &stored, &seal.sha256) {
        Ok(_) | Err(NoIndex::Read(ReadError::Open(OpenError::NoIdentity { .. }))) => true,
        Err(_) => false,
    })
}

/// The indexes of files that the archive does not have any more, or never had. Those of files whose objects stay for readers stay
/// too, as those of files that are not known and are younger than the grace: who put one there may know more.
///
/// # Errors
/// When the store cannot list.
pub(crate) fn not_needed(
    store: &dyn Store,
    source: &str,
    history: &History,
    past: Past,
) -> Result<Vec<String>, StoreError> {
    let kept = kept(history, past);
    let mut found = Vec::new();
    each_listed(store, source, &mut |listed| {
        let goes = listed.into_iter().filter(|meta| is_not_needed(source, history, &kept, past, meta));
        found.extend(goes.map(|meta| meta.name));
        Ok::<(), StoreError>(())
    })?;
    Ok(found)
}

fn is_not_needed(source: &str, history: &History, kept: &BTreeSet<&str>, past: Past, meta: &Meta) -> bool {
    // What stands there under another name is not ours to delete.
    let Some(name) = names::search_name(&meta.name).filter(|name| name.version.is_some()) else {
        return false;
    };
    if history.file(name.timeline, name.file).is_some() {
        return false;
    }
    let folder = names::file(source, name.timeline, name.file);
    let is_kept = kept.range(&*folder..).next().is_some_and(|kept| kept.starts_with(&folder));
    let has_expired =
        history.timelines.get(name.timeline).is_some_and(|timeline| timeline.has_expired(name.file));
    !is_kept && (has_expired || past.is(meta.modified))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Identities, Recipients};
    use crate::segment::Opener;
    use crate::testing::Memory;
    use crate::writer::upload::Permits;
    use bytes::Bytes;
    use jiff::{SignedDuration, Timestamp};
    use std::sync::Arc;

    const OWNER: Owner<'static> = Owner { source: "shop", timeline: "0001-a", file: "b.000001" };

    fn uploader(store: &Arc<Memory>, recipients: Option<Recipients>) -> Uploader {
        let permits = Arc::new(Permits::new(1));
        let recipients = recipients.map(Arc::new);
        Uploader { store: store.clone(), permits, level: 1, recipients, stop: Arc::default() }
    }

    fn reader(store: &Arc<Memory>, identities: Identities) -> Reader {
        Reader { store: store.clone(), opener: Arc::new(Opener::new(identities)) }
    }

    /// Puts an index there, and gives its object.
    fn put_one(store: &Arc<Memory>, sha256: &str, version: u32, index: &[u8]) -> String {
        let before: Vec<Meta> = store.list("", None).unwrap();
        put(&uploader(store, None), OWNER, sha256, version, index).unwrap();
        let now = store.list("", None).unwrap();
        now.into_iter().find(|meta| !before.contains(meta)).unwrap().name
    }

    #[test]
    fn an_index_comes_back_for_its_file_and_in_its_form() {
        let store = Arc::new(Memory::default());
        let sha256 = names::sha256(b"the file");
        assert!(!is_there(&*store, OWNER, 1).unwrap());
        put_one(&store, &sha256, 1, b"one");
        put_one(&store, &sha256, 2, b"two");
        assert!(is_there(&*store, OWNER, 1).unwrap() && !is_there(&*store, OWNER, 3).unwrap());
        let reader = reader(&store, Identities::new());
        for (version, expected) in [(1, &b"one"[..]), (2, b"two")] {
            let listed = list(&*store, "shop", "0001-a", version).unwrap();
            let [found] = listed.of("b.000001") else { panic!("{listed:?}") };
            assert_eq!(get(&reader, found, &sha256).unwrap(), expected);
            let other = get(&reader, found, &names::sha256(b"another file")).unwrap_err();
            assert!(matches!(other, NoIndex::Other(_)), "{other}");
            assert!(listed.of("b.000002").is_empty());
        }
        assert_eq!(list(&*store, "shop", "0001-b", 1).unwrap(), Listed::default());
    }

    #[test]
    fn an_index_is_encrypted_where_segments_are() {
        let store = Arc::new(Memory::default());
        let key = age::x25519::Identity::generate();
        let mut recipients = Recipients::new();
        recipients.add(&key.to_public().to_string(), "test").unwrap();
        let sha256 = names::sha256(b"the file");
        let index = b"SECRET TABLE ".repeat(100);
        put(&uploader(&store, Some(recipients)), OWNER, &sha256, 1, &index).unwrap();
        let listed = list(&*store, "shop", "0001-a", 1).unwrap();
        let found = &listed.of("b.000001")[0];
        assert!(found.object.ends_with(".v1.zst.age"), "{found:?}");
        let stored = store.get(&found.object).unwrap();
        assert!(stored.starts_with(b"age-encryption.org"));
        let without = get(&reader(&store, Identities::new()), found, &sha256).unwrap_err();
        assert!(matches!(without, NoIndex::Read(ReadError::Open(_))), "{without}");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let secret = age::secrecy::ExposeSecret::expose_secret(&key.to_string()).to_owned();
        std::fs::write(&path, secret).unwrap();
        let mut identities = Identities::new();
        identities.add_file(&path, &mut |_| None).unwrap();
        assert_eq!(get(&reader(&store, identities), found, &sha256).unwrap(), index);
    }

    /// Whatever byte of an object is another one, whatever is cut off, and under whatever name it stands: nothing is believed.
    #[test]
    fn wrong_bytes_are_never_believed() {
        let store = Arc::new(Memory::default());
        let sha256 = names::sha256(b"the file");
        let object = put_one(&store, &sha256, 1, b"an index");
        let stored = store.get(&object).unwrap();
        let reader = reader(&store, Identities::new());
        let found = |object: &str| Found { object: object.to_owned(), len: HEADER_BYTES + 8 };
        assert_eq!(get(&reader, &found(&object), &sha256).unwrap(), b"an index");
        let put_in_place = |object: &str, bytes: Vec<u8>| {
            store.delete(object).unwrap();
            let _ = store.create(object, Bytes::from(bytes)).unwrap();
        };
        for at in 0..stored.len() {
            let mut damaged = stored.to_vec();
            damaged[at] ^= 1;
            put_in_place(&object, damaged.clone());
            assert!(get(&reader, &found(&object), &sha256).is_err(), "byte {at}");
            put_in_place(&object, stored[..at].to_vec());
            assert!(get(&reader, &found(&object), &sha256).is_err(), "cut at {at}");
            // Somebody gives it the name of its content.
            let folder = names::search_folder("shop", "0001-a", "b.000001");
            let renamed =
                names::search_index(&folder, HEADER_BYTES as u64 + 8, &names::sha256(&damaged), 1, false);
            put_in_place(&renamed, damaged);
            // The random bytes at the end mean nothing.
            let got = get(&reader, &found(&renamed), &sha256);
            assert!(got.as_ref().map_or(true, |index| index == b"an index"), "byte {at}: {got:?}");
        }
        store.delete(&object).unwrap();
        assert!(get(&reader, &found(&object), &sha256).is_err());
    }

    #[test]
    fn what_is_too_long_is_not_archived() {
        let store = Arc::new(Memory::default());
        let error = put(&uploader(&store, None), OWNER, "", 1, &vec![0; INDEX_BYTES_MAX + 1]).unwrap_err();
        assert!(error.to_string().contains("not archived"), "{error}");
        put_one(&store, "", 1, &vec![0; INDEX_BYTES_MAX]);
        // A name that says more than there may be is that of no index.
        let folder = names::search_folder("shop", "0001-a", "b.000002");
        let claims = names::search_index(&folder, u64::MAX, &names::sha256(b""), 1, false);
        let _ = store.create(&claims, Bytes::new()).unwrap();
        let listed = list(&*store, "shop", "0001-a", 1).unwrap();
        assert_eq!((listed.of("b.000001").len(), listed.of("b.000002").len()), (1, 0));
    }

    #[test]
    fn indexes_of_files_that_nobody_knows_go_when_the_grace_is_over() {
        let store = Arc::new(Memory::default());
        let object = put_one(&store, "", 1, b"x");
        let foreign = "shop/search/0001-a/b.000001/of-somebody-else";
        let _ = store.create(foreign, Bytes::new()).unwrap();
        let grace = SignedDuration::from_hours(1);
        let at = |hours| Past { now: Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours), grace };
        let go = |past| not_needed(&*store, "shop", &History::default(), past).unwrap();
        assert_eq!(go(at(0)), Vec::<String>::new());
        assert_eq!(go(at(1)), [object]);
    }
}
