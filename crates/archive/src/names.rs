//! The names of objects. docs/archive/archive.md has them as a table.
//!
//! ```text
//! <source>/commits/<seq>.json                                  one change, written once
//! <source>/snapshots/<seq>-<sha256>.json.zst                   everything up to a commit, so that not all need be read
//! <source>/<timeline>/<file>/<from>-<to>-<sha256>.zst[.age]    the bytes [from, to) of a file
//! <source>/<timeline>/<file>/<sha256>.segments.json.zst        a sealed file's segments, as commits named them
//! <source>/<timeline>/<file>/<sha256>.sha256                   a sealed file's objects in order, as `sha256sum -c` reads them
//! <source>/backups/<id>/…                                      a backup's stream, as a sealed file
//! <source>/search/<timeline>/<file>/<len>-<sha256>.v<n>.zst[.age]   a sealed file's search index; derived, named by no commit
//! ```
//!
//! Numbers have twenty digits, so that the order of names is that of numbers. `sha256` is of the object's own bytes, its first
//! 32 hexadecimal digits: one name never means two contents.

use codec::rows::hex;
use sha2::{Digest, Sha256};

/// Hexadecimal digits of a hash in a name.
const HASH_DIGITS: usize = 32;

/// Where backups stand, in the place of a timeline: whose names begin with digits.
pub const BACKUPS: &str = "backups";

/// The hexadecimal SHA-256 of some bytes.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn short(hash: &str) -> &str {
    hash.get(..HASH_DIGITS).unwrap_or(hash)
}

/// Where everything of a source stands.
pub fn source(source: &str) -> String {
    format!("{source}/")
}

/// Whether an object is a file's: a segment or a list, not a commit, not a snapshot.
pub fn is_data(name: &str) -> bool {
    // The names of timelines begin with digits; backups stand as they do.
    name.split('/').count() == 4
}

/// Where the commits of a source stand.
pub fn commits(source: &str) -> String {
    format!("{source}/commits/")
}

/// The commit of that number.
pub fn commit(source: &str, seq: u64) -> String {
    format!("{source}/commits/{seq:020}.json")
}

/// The number of a commit, by its name.
pub fn commit_seq(name: &str) -> Option<u64> {
    digits(name.rsplit('/').next()?.strip_suffix(".json")?)
}

/// Where the snapshots of a source stand.
pub fn snapshots(source: &str) -> String {
    format!("{source}/snapshots/")
}

/// The snapshot up to commit `seq`; `hash` is that of the snapshot.
pub fn snapshot(source: &str, seq: u64, hash: &str) -> String {
    format!("{source}/snapshots/{seq:020}-{}.json.zst", short(hash))
}

/// A name that no object has, behind all snapshots up to commit `seq` and before any other in the order of bytes.
pub(crate) fn after_snapshots_of(source: &str, seq: u64) -> String {
    // A tilde comes behind the hyphen that parts number and hash.
    format!("{source}/snapshots/{seq:020}~")
}

/// The number of the last commit in a snapshot, by its name.
pub fn snapshot_seq(name: &str) -> Option<u64> {
    digits(name.rsplit('/').next()?.strip_suffix(".json.zst")?.split_once('-')?.0)
}

/// The folder of a file's segments.
pub fn file(source: &str, timeline: &str, file: &str) -> String {
    format!("{source}/{timeline}/{file}/")
}

/// The object of the bytes `[from, to)` of a file; `hash` is that of the object.
pub fn segment(
    source: &str,
    timeline: &str,
    file: &str,
    from: u64,
    to: u64,
    hash: &str,
    encrypted: bool,
) -> String {
    let age = if encrypted { ".age" } else { "" };
    format!("{source}/{timeline}/{file}/{from:020}-{to:020}-{}.zst{age}", short(hash))
}

/// The list of a sealed file's objects; `hash` is that of the list.
pub fn list(source: &str, timeline: &str, file: &str, hash: &str) -> String {
    format!("{source}/{timeline}/{file}/{}.sha256", short(hash))
}

/// The object of a sealed file's segments; `hash` is that of the object.
pub fn index(source: &str, timeline: &str, file: &str, hash: &str) -> String {
    format!("{source}/{timeline}/{file}/{}.segments.json.zst", short(hash))
}

/// Where the search indexes of a source stand, timeline by timeline.
pub fn search(source: &str) -> String {
    format!("{source}/search/")
}

/// Where the search indexes of a timeline stand, file by file.
pub(crate) fn search_of(source: &str, timeline: &str) -> String {
    format!("{source}/search/{timeline}/")
}

/// The folder of the search index of a file.
pub fn search_folder(source: &str, timeline: &str, file: &str) -> String {
    format!("{source}/search/{timeline}/{file}/")
}

/// The search index of a file, in the form of version `version`; `len` are its plain bytes, `hash` is that of the object.
pub fn search_index(folder: &str, len: u64, hash: &str, version: u32, encrypted: bool) -> String {
    let age = if encrypted { ".age" } else { "" };
    format!("{folder}{len:020}-{}.v{version}.zst{age}", short(hash))
}

/// What the name of a search index says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchName<'a> {
    /// The timeline.
    pub timeline: &'a str,
    /// The file.
    pub file: &'a str,
    /// Plain bytes; `None`, as the version, of an object that has another name than a search index.
    pub len: Option<u64>,
    /// Version of the form.
    pub version: Option<u32>,
}

/// What the name of an object in the folder of a file's search index says; `None` of one that stands elsewhere.
pub fn search_name(object: &str) -> Option<SearchName<'_>> {
    let mut parts = object.split('/').skip(1);
    let ("search", timeline, file, last) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?)
    else {
        return None;
    };
    if parts.next().is_some() {
        return None;
    }
    let stem = last.strip_suffix(".age").unwrap_or(last).strip_suffix(".zst");
    let parted = stem.and_then(|stem| stem.split_once(".v"));
    Some(SearchName {
        timeline,
        file,
        len: parted.and_then(|(content, _)| digits(content.split_once('-')?.0)),
        version: parted.and_then(|(_, version)| version.parse().ok()),
    })
}

/// The folder in which an object stands, with the slash at its end; empty for one that stands in none.
pub fn folder_of(object: &str) -> &str {
    &object[..object.rfind('/').map_or(0, |slash| slash + 1)]
}

/// Timeline and file of an object, or of a file's folder; `None` for what is no file's.
pub fn owner(object: &str) -> Option<(&str, &str)> {
    let mut parts = object.split('/').skip(1);
    let owner = (parts.next()?, parts.next()?);
    (parts.next().is_some() && parts.next().is_none()).then_some(owner)
}

/// Whether an object's name ends as one of that content does.
pub(crate) fn is_of_content(name: &str, hash: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or_default();
    let stem = last.split('.').next().unwrap_or_default();
    stem.rsplit('-').next() == Some(short(hash))
}

fn digits(text: &str) -> Option<u64> {
    if text.len() == 20 && text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// Whether a name that came from a source, a server or an object can be a part of an object's name, and of a path.
pub fn is_part(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 255
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_back_from_names_and_from_nothing_else() {
        assert_eq!(commit_seq(&commit("shop", 17)), Some(17));
        assert_eq!(snapshot_seq(&snapshot("shop", u64::MAX, &sha256(b"x"))), Some(u64::MAX));
        for name in
            ["shop/commits/17.json", "shop/commits/00000000000000000017.json.tmp", "", "shop/commits/"]
        {
            assert_eq!(commit_seq(name), None, "{name}");
        }
    }

    #[test]
    fn names_stand_in_the_order_of_their_numbers() {
        assert!(commit("s", 9) < commit("s", 10));
        let at = |from, to| segment("s", "0001-a", "b.000001", from, to, &sha256(b""), true);
        assert!(at(0, 99) < at(99, 1000) && at(99, 1000) < at(1000, 20_000));
    }

    #[test]
    fn an_object_of_a_file_says_whose_it_is() {
        let list = list("shop", "0001-a", "b.000001", &sha256(b""));
        assert_eq!(folder_of(&list), file("shop", "0001-a", "b.000001"));
        for name in [&*list, folder_of(&list)] {
            assert_eq!(owner(name), Some(("0001-a", "b.000001")), "{name}");
        }
        for name in ["", "shop", "shop/commits/1.json", "shop/a/b/c/d"] {
            assert_eq!(owner(name), None, "{name}");
        }
        assert_eq!(folder_of("alone"), "");
    }

    #[test]
    fn a_search_index_says_of_what_it_is_and_is_no_data() {
        let folder = search_folder("shop", "0001-a", "b.000001");
        let hash = sha256(b"x");
        for encrypted in [false, true] {
            let name = search_index(&folder, 4711, &hash, 3, encrypted);
            let (len, version) = (Some(4711), Some(3));
            assert_eq!(
                search_name(&name),
                Some(SearchName { timeline: "0001-a", file: "b.000001", len, version })
            );
            assert!(is_of_content(&name, &hash) && !is_data(&name) && owner(&name).is_none(), "{name}");
            assert!(name.starts_with(&search("shop")) && name.starts_with(&search_of("shop", "0001-a")));
        }
        let other = search_name("shop/search/0001-a/b.000001/x").unwrap();
        assert_eq!((other.file, other.len, other.version), ("b.000001", None, None));
        for name in ["shop/search/0001-a/b.000001", "shop/0001-a/b.000001/x/y", "shop/search/a/b/c/d"] {
            assert_eq!(search_name(name), None, "{name}");
        }
    }

    #[test]
    fn parts_lead_nowhere_else() {
        for name in ["", ".", "..", "a/b", "a b", "ä", ".hidden", "a\0"] {
            assert!(!is_part(name), "{name:?}");
        }
        assert!(is_part("mysql-bin.000123") && is_part("0001-3E11FA47-71CA-11E1-9E33-C80AA9429562"));
    }
}
