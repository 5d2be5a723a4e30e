//! A history that is read in an archive: its newest file is fetched, everything before is read there.

use super::copied::{Copied, NoCopy};
use archive::begin::{BeginError, begin};
use archive::chain::ChainError;
use archive::fetch::FetchError;
use archive::past::{Past, WithPast};
use archive::reader::{ReadError, Reader};
use binlog::folder::{by_number, make_folder};
use binlog::storage::posix::PosixStorage;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most bytes that are kept of what was fetched, in the working folder.
const CACHE_BYTES: u64 = 1 << 30;

/// Objects that are fetched at a time.
const AT_ONCE: usize = 4;

/// Why a history cannot be read in an archive.
#[derive(Debug, thiserror::Error)]
pub enum NoArchive {
    /// Its chain cannot be read, or ends too early.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The newest file cannot be fetched.
    #[error(transparent)]
    Begin(#[from] BeginError),
    /// It has nothing of that source.
    #[error("the archive has nothing of {0} yet")]
    Nothing(String),
    /// The working folder cannot be written.
    #[error("--work {path}: {error}")]
    Work {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// What was fetched is no history.
    #[error(transparent)]
    Copy(#[from] NoCopy),
}

impl NoArchive {
    /// Whether a part of the log is not in the store, though commits name it.
    pub fn is_gap(&self) -> bool {
        match self {
            NoArchive::Begin(BeginError::Fetch(FetchError::Read(ReadError::Store(error)))) => {
                error.is_missing()
            }
            _ => false,
        }
    }
}

impl Copied {
    /// The history of a source in the archive that `reader` reads, up to the end of `timeline`, as with [`Copied::open`]. What is
    /// fetched stands in `work`, in a folder that the second value names; what an earlier run has fetched serves again as long as the
    /// archive is the same.
    ///
    /// # Errors
    /// [`NoArchive`].
    pub fn from_archive(
        reader: &Reader,
        source: &str,
        work: &Path,
        timeline: Option<&str>,
    ) -> Result<(Copied, PathBuf), NoArchive> {
        let mut chain = reader.chain(source)?;
        // One with a hole ends too early: what is brought forward by it would lack the rest in silence.
        chain.check_whole(&*reader.store)?;
        let history = chain.history();
        let data_dir = work.join(format!("commit-{}-{:.16}", history.seq, history.hash));
        let folder = data_dir.join(source);
        let in_work = |error| NoArchive::Work { path: work.to_owned(), error };
        make_folder(&PosixStorage, &folder).map_err(in_work)?;
        if by_number(&PosixStorage, &folder).map_err(in_work)?.is_empty()
            && begin(reader, &PosixStorage, &folder, source, AT_ONCE, &|_| ())?.is_none()
        {
            return Err(NoArchive::Nothing(source.to_owned()));
        }
        let names = by_number(&PosixStorage, &folder).map_err(in_work)?;
        let named = |path: PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (path, name)
        };
        let names: Vec<(PathBuf, String)> = names.into_iter().map(named).collect();
        let disk: Arc<PosixStorage> = Arc::new(PosixStorage);
        let has_room = Arc::new(|_| true);
        let past = Past::new(folder.clone(), disk.clone(), reader.clone(), CACHE_BYTES, has_room, AT_ONCE);
        past.publish(history, &names).map_err(in_work)?;
        let storage = Arc::new(WithPast::new(disk, Arc::new(past)));
        Ok((Copied::open(source, &folder, storage, timeline)?, data_dir))
    }
}
