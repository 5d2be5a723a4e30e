//! Objects of files that may go: what is retired, and what nothing names.
//!
//! An archive of years has millions of objects, so nobody holds their names: folder by folder, what the store lists is held against
//! what the history names there, of a finished file with its index. Only where a folder has more than that is the index read.

use crate::chain::history::{ArchivedFile, History};
use crate::names;
use crate::reader::{ReadError, read_segments};
use crate::store::{Meta, Store, StoreError};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// When the grace is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Past {
    /// The time.
    pub(crate) now: Timestamp,
    /// How long what nothing names is kept.
    pub(crate) grace: SignedDuration,
}

impl Past {
    /// Whether what is of that time may go.
    pub(crate) fn is(self, at: Timestamp) -> bool {
        self.now.duration_since(at) >= self.grace
    }
}

/// Names in one folder that may go, and by what that was judged.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// The file whose folder it is.
    timeline: String,
    file: String,
    /// The file's index at that time.
    index: Option<String>,
    /// Objects, and last the folder where an expired file goes with them.
    pub(crate) names: Vec<String>,
}

impl Group {
    /// The objects in it.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &String> {
        self.names.iter().filter(|name| !name.ends_with('/'))
    }

    /// The same in parts of so many names, in order.
    pub(crate) fn parts(self, most: usize) -> impl Iterator<Item = Group> {
        let Group { timeline, file, index, names } = self;
        let parts: Vec<Vec<String>> = names.chunks(most).map(<[String]>::to_vec).collect();
        parts.into_iter().map(move |names| Group {
            timeline: timeline.clone(),
            file: file.clone(),
            index: index.clone(),
            names,
        })
    }

    /// Those of the names that may still go by a later history, of which `kept` are those that are retired and must stay.
    pub(crate) fn still(&self, history: &History, kept: &BTreeSet<&str>) -> Vec<String> {
        let file = history.file(&self.timeline, &self.file);
        // Which names a new index has, nobody has looked at.
        if file.and_then(|file| file.index()).is_some_and(|index| Some(&index.object) != self.index.as_ref())
        {
            return Vec::new();
        }
        let named: BTreeSet<&str> = file.iter().flat_map(|file| file.objects()).collect();
        let may_go = |name: &&String| {
            !named.contains(&***name)
                && !kept.contains(&***name)
                && (file.is_some() || !kept.contains(names::folder_of(name)))
        };
        self.names.iter().filter(may_go).cloned().collect()
    }
}

/// What is retired, and must stay for readers.
pub(crate) fn kept(history: &History, past: Past) -> BTreeSet<&str> {
    let kept = history.retired.iter().filter(|retired| !past.is(retired.at));
    kept.map(|retired| &*retired.object).collect()
}

/// Finds them. `each` is given one group after another.
///
/// # Errors
/// Those of `each`, and when the store cannot be read.
pub(crate) fn groups<E: From<StoreError>>(
    store: &dyn Store,
    source: &str,
    history: &History,
    past: Past,
    each: &mut dyn FnMut(Group) -> Result<(), E>,
) -> Result<(), E> {
    for ((timeline, file), mut names) in retired(history, past) {
        let folder = names.iter().find(|name| name.ends_with('/')).cloned();
        if let Some(folder) = folder.filter(|_| history.file(timeline, file).is_none()) {
            let listed = store.list(&folder, None)?;
            let old = listed.into_iter().filter(|meta| past.is(meta.modified)).map(|meta| meta.name);
            names = old.chain([folder]).collect();
        }
        each(Group { timeline: timeline.to_owned(), file: file.to_owned(), index: None, names })?;
    }
    let retired: BTreeSet<&str> = history.retired.iter().map(|retired| &*retired.object).collect();
    for folder in folders(store, source)? {
        let Some((timeline, file)) = names::owner(&folder) else { continue };
        let archived = history.file(timeline, file);
        if archived.is_none() && retired.contains(&*folder) {
            continue;
        }
        let names = nobodys(store, archived.map(|file| &**file), store.list(&folder, None)?, &retired, past)?;
        if !names.is_empty() {
            let index = archived.and_then(|file| file.index()).map(|index| index.object.clone());
            each(Group { timeline: timeline.to_owned(), file: file.to_owned(), index, names })?;
        }
    }
    Ok(())
}

/// What was retired long enough ago, by its file.
fn retired(history: &History, past: Past) -> BTreeMap<(&str, &str), Vec<String>> {
    let mut found: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for retired in history.retired.iter().filter(|retired| past.is(retired.at)) {
        let Some(owner) = names::owner(&retired.object) else { continue };
        found.entry(owner).or_default().push(retired.object.clone());
    }
    found
}

/// The folders of all files of which the store has objects.
fn folders(store: &dyn Store, source: &str) -> Result<Vec<String>, StoreError> {
    let of_chain = [names::commits(source), names::snapshots(source), names::search(source)];
    let mut found = Vec::new();
    for timeline in store.look_into(&names::source(source))?.folders {
        if !of_chain.contains(&timeline) {
            found.extend(store.look_into(&timeline)?.folders);
        }
    }
    Ok(found)
}

/// Those of the listed objects of one folder that neither the file names nor a retirement, and that are old enough.
fn nobodys(
    store: &dyn Store,
    file: Option<&ArchivedFile>,
    listed: Vec<Meta>,
    retired: &BTreeSet<&str>,
    past: Past,
) -> Result<Vec<String>, StoreError> {
    let sealed_at = file.and_then(|file| file.sealed.as_ref()?.at);
    // With its segments an indexed file has a list and the index.
    let is_all =
        |file: &ArchivedFile| file.index().is_some_and(|index| listed.len() as u64 <= index.segments + 2);
    if file.is_some_and(is_all) || sealed_at.is_some_and(|at| !past.is(at)) {
        return Ok(Vec::new());
    }
    let segments = match file.map(|file| read_segments(store, file)) {
        None => None,
        Some(Ok(segments)) => Some(segments),
        Some(Err(ReadError::Store(error))) if !error.is_missing() => return Err(error),
        Some(Err(error)) => {
            tracing::warn!("nothing beside it is removed: {error}");
            return Ok(Vec::new());
        }
    };
    let of_segments = segments.iter().flat_map(|segments| segments.iter()).map(|segment| &*segment.object);
    let named: BTreeSet<&str> = file.iter().flat_map(|file| file.objects()).chain(of_segments).collect();
    let is_nobodys = |meta: &Meta| {
        names::is_data(&meta.name)
            && past.is(meta.modified)
            && !named.contains(&*meta.name)
            && !retired.contains(&*meta.name)
    };
    Ok(listed.into_iter().filter(is_nobodys).map(|meta| meta.name).collect())
}
