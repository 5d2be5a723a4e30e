//! The copy of a source, as it is walked and served: the files of one history up to a timeline's end.

use binlog::Position;
use binlog::folder::{by_number, timeline_number, timelines};
use binlog::storage::{ReadFile, Storage};
use binlog::timeline::Timeline;
use binlog::timeline::offline::resume_point;
use binlog::writer::published::{Live, Published};
use codec::ServerKind;
use codec::gtid::GtidState;
use serve::history::{FileId, History};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is held of one source.
pub struct Copied {
    /// The source's name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The disk, with what else can be read as if it stood there.
    pub storage: Arc<dyn Storage>,
    /// The end of what is served: the last boundary of the timeline.
    pub published: Arc<Published>,
    /// Whose binary logs they are.
    pub kind: ServerKind,
    live: Arc<Live>,
    history: History,
}

/// Why a copy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NoCopy {
    /// It cannot be read.
    #[error("{path}: {error}")]
    Read {
        /// What.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is nothing in it.
    #[error("the copy of {0} holds nothing yet")]
    Empty(String),
    /// It has no such timeline.
    #[error("the copy of {name} has no timeline {wanted:?}; there are: {there}")]
    NoTimeline {
        /// The source's.
        name: String,
        /// What was asked for.
        wanted: String,
        /// What there is.
        there: String,
    },
}

/// A file of the history.
pub struct CopiedFile {
    /// Where it stands.
    pub path: PathBuf,
    /// Its name.
    pub name: Arc<str>,
    /// Name of the folder of its timeline.
    pub timeline: String,
    /// End of what may be read of it.
    pub end: u64,
    /// Transactions that it holds and that are history no more: a later fork took them from the source.
    pub lost: GtidState,
    /// Of the first file of a timeline: why it does not go on by position where the timeline before ends.
    pub parted: Option<&'static str>,
}

impl Copied {
    /// Reads what is there, up to the end of `timeline` (its number, or the name of its folder), or of the newest one.
    ///
    /// # Errors
    /// When it cannot be read, or there is no such timeline.
    pub fn open(
        name: &str,
        folder: &Path,
        storage: Arc<dyn Storage>,
        timeline: Option<&str>,
    ) -> Result<Copied, NoCopy> {
        let fail = |error| NoCopy::Read { path: folder.to_owned(), error };
        let newest = match timeline {
            None => timelines(&*storage, folder).map_err(fail)?.pop(),
            Some(wanted) => {
                let all = by_number(&*storage, folder).map_err(fail)?;
                let names: Vec<String> = all.iter().map(|path| last_part(path)).collect();
                let number = wanted.parse::<u32>().ok();
                let is_it = |name: &String| {
                    name == wanted || number.is_some_and(|number| timeline_number(name) == Some(number))
                };
                let found = names.iter().position(is_it).ok_or_else(|| NoCopy::NoTimeline {
                    name: name.to_owned(),
                    wanted: wanted.to_owned(),
                    there: names.join(", "),
                })?;
                Some(all[found].clone())
            }
        };
        let newest = newest.ok_or_else(|| NoCopy::Empty(name.to_owned()))?;
        let kind = Timeline::read(&*storage, &newest).map_err(fail)?.server_kind;
        let end: Option<Position> =
            resume_point(&*storage, &newest).map_err(fail)?.map(|point| point.position);
        let published = Arc::new(Published::default());
        published.is_at(&newest, end.as_ref());
        let live = published.live().ok_or_else(|| NoCopy::Empty(name.to_owned()))?;
        let history = History::read(&*storage, folder, &live).map_err(fail)?;
        Ok(Copied {
            name: name.to_owned(),
            folder: folder.to_owned(),
            storage,
            published,
            kind,
            live,
            history,
        })
    }

    /// Its files, the oldest first.
    ///
    /// # Errors
    /// When one of them cannot be looked at.
    pub fn files(&self) -> Result<Vec<CopiedFile>, NoCopy> {
        let mut before: Option<FileId> = None;
        let mut files = Vec::new();
        for id in self.history.files() {
            let crossed = before.filter(|before| self.history.folder(*before) != self.history.folder(id));
            let parted = crossed.and_then(|before| self.history.goes_on_by_position(before, id).err());
            files.push(CopiedFile { parted, ..self.file(id)? });
            before = Some(id);
        }
        Ok(files)
    }

    /// Opens one of its files.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn read(&self, file: &CopiedFile) -> Result<Box<dyn ReadFile>, NoCopy> {
        let opened = self.storage.open_read(&file.path);
        opened.map_err(|error| NoCopy::Read { path: file.path.clone(), error })
    }

    fn file(&self, id: FileId) -> Result<CopiedFile, NoCopy> {
        let (path, name) = (self.history.path(id), self.history.name(id).clone());
        let end = if self.history.is_of_newest(id) && *name == *self.live.file {
            self.live.end()
        } else {
            let found = self.storage.look(&path);
            found.map_err(|error| NoCopy::Read { path: path.clone(), error })?.len
        };
        let lost = self.history.lost_after(id, self.kind);
        Ok(CopiedFile { timeline: last_part(self.history.folder(id)), path, name, end, lost, parted: None })
    }
}

fn last_part(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
