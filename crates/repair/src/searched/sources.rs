//! The files that are looked at when transactions are searched for, of copies or of an archive.

use super::archived_indexes::ArchivedIndexes;
use archive::chain::ChainError;
use archive::chain::history::ArchivedFile;
use archive::reader::Reader;
use binlog::folder::{by_number, source_folders, timeline_number, timelines as timelines_of};
use binlog::storage::posix::PosixStorage;
use binlog::storage::{ReadFile, Storage};
use binlog::timeline::Timeline;
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
pub struct SearchedSource {
    /// Its name.
    pub name: String,
    /// Its timelines, the oldest first.
    pub timelines: Vec<SearchedTimeline>,
    /// Its folder; `None` in an archive.
    folder: Option<PathBuf>,
}

/// One timeline.
pub struct SearchedTimeline {
    /// Name of its folder, or in the archive.
    pub name: String,
    /// Its files, in order.
    pub files: Vec<SearchedFile>,
    record: Record,
}

/// Where the description of a timeline stands.
enum Record {
    /// In its folder.
    Folder(PathBuf),
    /// Its text.
    Text(String),
}

impl SearchedSource {
    /// The timeline that is written, or was last.
    ///
    /// # Errors
    /// In words, when the folder cannot be read.
    pub fn present(&self) -> Result<Option<&SearchedTimeline>, String> {
        let Some(folder) = &self.folder else { return Ok(self.timelines.last()) };
        let all = timelines_of(&PosixStorage, folder);
        let all = all.map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(all.last().and_then(|last| self.timelines.iter().find(|one| last.ends_with(&one.name))))
    }
}

impl SearchedTimeline {
    /// Its description.
    ///
    /// # Errors
    /// In words, when it cannot be read.
    pub fn record(&self) -> Result<Timeline, String> {
        match &self.record {
            Record::Folder(folder) => Timeline::read(&PosixStorage, folder)
                .map_err(|error| format!("{}: {error}", folder.display())),
            Record::Text(text) => {
                Timeline::parse(text).map_err(|error| format!("{} of the archive: {error}", self.name))
            }
        }
    }
}

/// One file.
pub struct SearchedFile {
    /// Its name.
    pub name: String,
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
    pub fn search(&self, criteria: &Criteria, sink: &mut Sink<'_>) -> Result<Option<Searched>, WalkError> {
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
    pub fn index(&self) -> Result<Option<SearchIndex>, WalkError> {
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
    pub fn open(&self) -> io::Result<Box<dyn ReadFile>> {
        match &self.place {
            FilePlace::Folder { folder, .. } => PosixStorage.open_read(&folder.join(&self.name)),
            FilePlace::Archive { reader, file, .. } => Ok(Box::new(reader.file(file.clone()))),
        }
    }

    /// Why it could not be looked at, with its place.
    pub fn failed(&self, timeline: &SearchedTimeline, error: &dyn std::fmt::Display) -> String {
        match &self.place {
            FilePlace::Folder { folder, .. } => format!("{}: {error}", folder.join(&self.name).display()),
            FilePlace::Archive { .. } => format!("{}/{} of the archive: {error}", timeline.name, self.name),
        }
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

/// What is to be searched, whether a daemon writes it or not.
#[derive(Clone, Copy)]
pub enum Searchable<'a> {
    /// Copies in a folder: of one source, or of all.
    Copies {
        /// The folder.
        data_dir: &'a Path,
        /// One source of several.
        source: Option<&'a str>,
    },
    /// An archive.
    Archive {
        /// What reads its objects.
        reader: &'a Reader,
        /// Those of its sources that are meant.
        sources: &'a [String],
    },
}

/// Why there is nothing to be searched.
#[derive(Debug, thiserror::Error)]
pub enum NotSearched {
    /// A folder cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is no data folder, or an empty one.
    #[error("{0} holds no source: name the data_dir of the configuration, which has one folder a source")]
    Empty(PathBuf),
    /// It has other sources.
    #[error("{data_dir} holds no source {wanted:?}; there are: {there}")]
    NoSource {
        /// The folder.
        data_dir: PathBuf,
        /// What was asked for.
        wanted: String,
        /// What there is.
        there: String,
    },
    /// The chain of a source cannot be read, or ends too early.
    #[error("source {source_name}: {error}")]
    Archive {
        /// The source.
        source_name: String,
        /// Why.
        error: ChainError,
    },
    /// No source has such a timeline.
    #[error(
        "there is no timeline {0:?}: give its number, or the name of its folder, as binlogd verify shows them"
    )]
    NoTimeline(String),
}

impl Searchable<'_> {
    /// Its sources with their files. `timeline`: of that alone, by its number or the name of its folder.
    ///
    /// # Errors
    /// [`NotSearched`].
    pub fn sources(&self, timeline: Option<&str>) -> Result<Vec<SearchedSource>, NotSearched> {
        let found = match *self {
            Searchable::Archive { reader, sources } => archived(reader, sources, timeline)?,
            Searchable::Copies { data_dir, source } => copied(data_dir, source, timeline)?,
        };
        match timeline.filter(|_| found.iter().all(|source| source.timelines.is_empty())) {
            Some(wanted) => Err(NotSearched::NoTimeline(wanted.to_owned())),
            None => Ok(found),
        }
    }
}

fn archived(
    reader: &Reader,
    sources: &[String],
    timeline: Option<&str>,
) -> Result<Vec<SearchedSource>, NotSearched> {
    let mut found = Vec::new();
    for source in sources {
        let in_source = |error| NotSearched::Archive { source_name: source.clone(), error };
        let mut chain = reader.chain(source).map_err(in_source)?;
        // What is not found in one that ends too early may be there all the same.
        chain.check_whole(&*reader.store).map_err(in_source)?;
        let wanted = || chain.history().timelines.iter().filter(|(name, _)| is_wanted(name, timeline));
        let all = wanted()
            .flat_map(|(name, archived)| archived.files.iter().map(|file| (name.clone(), file.clone())));
        let indexes = Arc::new(ArchivedIndexes::new(reader.clone(), source.clone(), all.collect()));
        let mut places = 0..;
        let timelines = wanted().map(|(name, archived)| SearchedTimeline {
            name: name.clone(),
            record: Record::Text(archived.record.clone()),
            files: archived
                .files
                .iter()
                .zip(&mut places)
                .map(|(file, place)| SearchedFile {
                    name: file.name.clone(),
                    place: FilePlace::Archive {
                        reader: reader.clone(),
                        file: file.clone(),
                        indexes: indexes.clone(),
                        place,
                    },
                })
                .collect(),
        });
        found.push(SearchedSource { name: source.clone(), timelines: timelines.collect(), folder: None });
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
) -> Result<Vec<SearchedSource>, NotSearched> {
    let cannot = |error| NotSearched::Read { path: data_dir.to_owned(), error };
    let mut sources = source_folders(&PosixStorage, data_dir).map_err(cannot)?;
    if sources.is_empty() {
        return Err(NotSearched::Empty(data_dir.to_owned()));
    }
    if let Some(wanted) = source {
        let names: Vec<String> = sources.iter().map(|(name, _)| name.clone()).collect();
        sources.retain(|(name, _)| name == wanted);
        if sources.is_empty() {
            return Err(NotSearched::NoSource {
                data_dir: data_dir.to_owned(),
                wanted: wanted.to_owned(),
                there: names.join(", "),
            });
        }
    }
    let read = |(name, folder): (String, PathBuf)| {
        let timelines = timelines(&folder, timeline)
            .map_err(|error| NotSearched::Read { path: folder.clone(), error })?;
        Ok(SearchedSource { name, timelines, folder: Some(folder) })
    };
    sources.into_iter().map(read).collect()
}

#[expect(clippy::disallowed_methods, reason = "whose a folder is the storage does not tell")]
fn timelines(folder: &Path, wanted: Option<&str>) -> io::Result<Vec<SearchedTimeline>> {
    let mut timelines = Vec::new();
    for timeline in by_number(&PosixStorage, folder)? {
        let name = timeline.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !is_wanted(&name, wanted) {
            continue;
        }
        let names = timeline_files(&PosixStorage, &timeline)?;
        // What somebody else leaves there the folder's owner, who is the daemon, cannot replace.
        let me = rustix::process::geteuid().as_raw();
        let is_ours = std::fs::metadata(&timeline).is_ok_and(|about| about.uid() == me);
        // The last one may be written.
        let sealed = names.len().saturating_sub(1);
        let files = names.into_iter().enumerate().map(|(number, name)| SearchedFile {
            name,
            place: FilePlace::Folder { folder: timeline.clone(), is_sealed: number < sealed, is_ours },
        });
        let files = files.collect();
        timelines.push(SearchedTimeline { name, files, record: Record::Folder(timeline) });
    }
    Ok(timelines)
}
