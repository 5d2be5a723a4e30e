//! Which sources an archive has.

use crate::names::{commit, commits, is_part, snapshots};
use crate::store::{Store, StoreError};
use std::collections::BTreeSet;

/// The sources of an archive: those that have a first commit, or a snapshot in its place.
///
/// # Errors
/// Of the store.
pub fn sources(store: &dyn Store) -> Result<BTreeSet<String>, StoreError> {
    // Folder by folder: an archive of years has millions of objects.
    let mut found = BTreeSet::new();
    for folder in store.look_into("")?.folders {
        let source = folder.trim_end_matches('/');
        if is_part(source) && is_source(store, source)? {
            found.insert(source.to_owned());
        }
    }
    Ok(found)
}

/// A store may show folders of which every object is gone. Where the first commit is gone too, and no snapshot stands in its place,
/// there is something to say of what is left.
fn is_source(store: &dyn Store, source: &str) -> Result<bool, StoreError> {
    match store.head(&commit(source, 1)) {
        Ok(_) => return Ok(true),
        Err(error) if error.is_missing() => {}
        Err(error) => return Err(error),
    }
    let is_any = |folder: &str| store.list(folder, None).map(|listed| !listed.is_empty());
    Ok(is_any(&snapshots(source))? || is_any(&commits(source))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::remote::Folder;

    #[test]
    fn a_source_has_a_commit_or_a_snapshot() {
        let dir = tempfile::tempdir().unwrap();
        let store = Folder::open(dir.path()).unwrap();
        for name in [
            "first/commits/00000000000000000001.json",
            "snapshot/snapshots/00000000000000000009-a.json.zst",
            "damaged/commits/00000000000000000007.json",
            "probe/conditions",
            "other/0001-a/b.000001/x",
        ] {
            let _ = store.create(name, vec![1].into()).unwrap();
        }
        std::fs::create_dir_all(dir.path().join("empty/commits")).unwrap();
        let found: Vec<String> = sources(&store).unwrap().into_iter().collect();
        assert_eq!(found, ["damaged", "first", "snapshot"]);
    }
}
