//! The files that `find`, `show` and `stats` look at, of a copy or of an archive.

use super::archived_indexes::ArchivedIndexes;
use super::store_args::{StoreArgs, is_url};
use super::style;
use archive::chain::Chain;
use archive::chain::history::ArchivedFile;
use archive::reader::Reader;
use binlog::folder::{by_number, source_folders, timeline_number};
use binlog::storage::posix::PosixStorage;
use binlog::storage::{ReadFile, Storage};
use binlog::timeline::files::timeline_files;
use codec::gtid::GtidSet;
use points::criteria::Criteria;
use points::index::SearchIndex;
use points::search::{
    Searched, Sink, index_of, index_up_to_boundary, search_by_index, search_file, search_whole,
};
use points::walk::WalkError;
use points::wanted_gtids::WantedGtids;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One source.
pub(super) struct SearchedSource {
    pub(super) name: String,
    /// Its timelines, the oldest first.
    pub(super) timelines: Vec<SearchedTimeline>,
}

/// One timeline.
pub(super) struct SearchedTimeline {
    /// Name of its folder, or in the archive.
    pub(super) name: String,
    /// Its files, in order.
    pub(super) files: Vec<SearchedFile>,
}

/// One file.
pub(super) struct SearchedFile {
    pub(super) name: String,
    place: FilePlace,
}

enum FilePlace {
    /// In a folder; sealed, or written still.
    Folder { folder: PathBuf, is_sealed: bool, is_ours: bool },
    /// In an archive; `place` is that among the `indexes`.
    Archive { reader: Reader, file: Arc<ArchivedFile>, indexes: Arc<ArchivedIndexes>, place: usize },
}

impl SearchedFile {
    /// Gives what is searched for to `sink`; `None` when it was purged while we looked.
    ///
    /// # Errors
    /// When it cannot be read or is damaged.
    pub(super) fn search(
        &self,
        criteria: &Criteria,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Searched>, WalkError> {
        let searched = match &self.place {
            FilePlace::Folder { folder, is_sealed, is_ours } => {
                search_file(&PosixStorage, folder, &self.name, *is_sealed, *is_ours, criteria, sink)
            }
            FilePlace::Archive { file, .. } if !may_hold(file, criteria) => Ok(Searched::default()),
            FilePlace::Archive { reader, file, indexes, place } => {
                let plain = reader.file(file.clone());
                match indexes.take(*place, &|file| may_hold(file, criteria)) {
                    Some(index) => search_by_index(&index, &plain, criteria, sink),
                    None => search_whole(&plain, criteria, sink),
                }
            }
        };
        self.unless_purged(searched)
    }

    /// Its search index, made where there is none; `None` when it was purged while we looked.
    ///
    /// # Errors
    /// When it cannot be read or is damaged.
    pub(super) fn index(&self) -> Result<Option<SearchIndex>, WalkError> {
        self.unless_purged(match &self.place {
            FilePlace::Folder { folder, is_sealed, is_ours } => {
                index_of(&PosixStorage, folder, &self.name, *is_sealed, *is_ours)
            }
            FilePlace::Archive { reader, file, indexes, place } => match indexes.take(*place, &|_| true) {
                Some(index) => Ok(index),
                None => index_up_to_boundary(&reader.file(file.clone())),
            },
        })
    }

    /// A file may be purged while it is looked at. An object that is gone from an archive is damage: what expires stays for the grace.
    fn unless_purged<T>(&self, found: Result<T, WalkError>) -> Result<Option<T>, WalkError> {
        match (found, &self.place) {
            (Err(WalkError::Read(error)), FilePlace::Folder { .. })
                if error.kind() == io::ErrorKind::NotFound =>
            {
                Ok(None)
            }
            (found, _) => found.map(Some),
        }
    }

    /// Opens it, for what a search does not tell.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn open(&self) -> io::Result<Box<dyn ReadFile>> {
        match &self.place {
            FilePlace::Folder { folder, .. } => PosixStorage.open_read(&folder.join(&self.name)),
            FilePlace::Archive { reader, file, .. } => Ok(Box::new(reader.file(file.clone()))),
        }
    }

    /// Says that it could not be looked at, and gives the same in words.
    pub(super) fn tell(&self, timeline: &SearchedTimeline, error: &dyn std::fmt::Display) -> String {
        let place = match &self.place {
            FilePlace::Folder { folder, .. } => folder.join(&self.name).display().to_string(),
            FilePlace::Archive { .. } => format!("{}/{} of the archive", timeline.name, self.name),
        };
        let text = format!("{place}: {error}");
        errln!("error: {}", style::clean(&text));
        text
    }
}

/// False when the archive says that none of the wanted GTIDs is in the file. MariaDB's positions do not tell that.
fn may_hold(file: &ArchivedFile, criteria: &Criteria) -> bool {
    let Some(WantedGtids::Mysql(wanted)) = &criteria.gtids else { return true };
    let (Ok(through), Some(Ok(before))) =
        (file.gtids.parse::<GtidSet>(), file.gtids_before.as_ref().map(|set| set.parse::<GtidSet>()))
    else {
        return true;
    };
    !through.subtract(&before).intersect(wanted).is_empty()
}

/// What is to be searched: a copy, whether a daemon writes it or not, or an archive. `timeline` is a number, or the name of a folder.
///
/// # Errors
/// In words: it cannot be read, or has no such source or timeline.
pub(super) fn choose(
    data_dir: &Path,
    store: &StoreArgs,
    timeline: Option<&str>,
) -> Result<Vec<SearchedSource>, String> {
    let found = match data_dir.to_str().filter(|text| is_url(text)) {
        Some(url) => archived(url, store, timeline)?,
        None => {
            if let Some(flag) = store.given() {
                return Err(format!("{flag} is for an archive, as s3://bucket/prefix, and not for a folder"));
            }
            copied(data_dir, store.source.as_deref(), timeline)?
        }
    };
    if let Some(wanted) = timeline.filter(|_| found.iter().all(|source| source.timelines.is_empty())) {
        return Err(format!(
            "there is no timeline {wanted:?}: give its number, or the name of its folder, as binlogd verify shows them"
        ));
    }
    Ok(found)
}

fn archived(url: &str, store: &StoreArgs, timeline: Option<&str>) -> Result<Vec<SearchedSource>, String> {
    let opened = store.open(url).map_err(|error| format!("{error:#}"))?;
    let mut found = Vec::new();
    for source in &opened.sources {
        let in_source = |error| format!("source {source}: {error}");
        let mut chain = Chain::open(&*opened.reader.store, source).map_err(in_source)?;
        // What is not found in one that ends too early may be there all the same.
        chain.check_whole(&*opened.reader.store).map_err(in_source)?;
        let wanted = || chain.history().timelines.iter().filter(|(name, _)| is_wanted(name, timeline));
        let all = wanted()
            .flat_map(|(name, archived)| archived.files.iter().map(|file| (name.clone(), file.clone())));
        let indexes = Arc::new(ArchivedIndexes::new(opened.reader.clone(), source.clone(), all.collect()));
        let mut places = 0..;
        let timelines = wanted().map(|(name, archived)| SearchedTimeline {
            name: name.clone(),
            files: archived
                .files
                .iter()
                .zip(&mut places)
                .map(|(file, place)| SearchedFile {
                    name: file.name.clone(),
                    place: FilePlace::Archive {
                        reader: opened.reader.clone(),
                        file: file.clone(),
                        indexes: indexes.clone(),
                        place,
                    },
                })
                .collect(),
        });
        found.push(SearchedSource { name: source.clone(), timelines: timelines.collect() });
    }
    Ok(found)
}

fn is_wanted(name: &str, timeline: Option<&str>) -> bool {
    timeline.is_none_or(|wanted| {
        wanted == name || wanted.parse().is_ok_and(|number: u32| timeline_number(name) == Some(number))
    })
}

fn copied(
    data_dir: &Path,
    source: Option<&str>,
    timeline: Option<&str>,
) -> Result<Vec<SearchedSource>, String> {
    let shown = data_dir.display();
    let mut sources =
        source_folders(&PosixStorage, data_dir).map_err(|error| format!("cannot read {shown}: {error}"))?;
    if sources.is_empty() {
        return Err(format!(
            "{shown} holds no source: name the data_dir of the configuration, which has one folder a source"
        ));
    }
    if let Some(wanted) = source {
        let names: Vec<String> = sources.iter().map(|(name, _)| name.clone()).collect();
        sources.retain(|(name, _)| name == wanted);
        if sources.is_empty() {
            return Err(format!("{shown} holds no source {wanted:?}; there are: {}", names.join(", ")));
        }
    }
    let mut found = Vec::new();
    for (name, folder) in sources {
        found.push(SearchedSource { timelines: timelines(&folder, timeline)?, name });
    }
    Ok(found)
}

fn timelines(folder: &Path, wanted: Option<&str>) -> Result<Vec<SearchedTimeline>, String> {
    let cannot = |error: io::Error| format!("cannot read {}: {error}", folder.display());
    let mut timelines = Vec::new();
    for timeline in by_number(&PosixStorage, folder).map_err(cannot)? {
        let name = timeline.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !is_wanted(&name, wanted) {
            continue;
        }
        let names = timeline_files(&PosixStorage, &timeline).map_err(cannot)?;
        // What somebody else leaves there the folder's owner, who is the daemon, cannot replace.
        let me = rustix::process::geteuid().as_raw();
        let is_ours = std::fs::metadata(&timeline).is_ok_and(|about| about.uid() == me);
        // The last one may be written.
        let sealed = names.len().saturating_sub(1);
        let files = names.into_iter().enumerate().map(|(number, name)| SearchedFile {
            name,
            place: FilePlace::Folder { folder: timeline.clone(), is_sealed: number < sealed, is_ours },
        });
        timelines.push(SearchedTimeline { name, files: files.collect() });
    }
    Ok(timelines)
}
