//! The history that a verb works on: a copy on this machine, whether a daemon writes it or not, or an archive.

use super::held_copy::{choose, put_in_place};
use super::store_args::{StoreArgs, is_url};
use archive::begin::begin;
use archive::chain::Chain;
use archive::past::{Past, WithPast};
use binlog::folder::{by_number, make_folder};
use binlog::purge::lock::PurgeLock;
use binlog::storage::posix::PosixStorage;
use receive::attempt::copy::HeldCopy;
use repair::history::Copied;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An error in words.
pub(super) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Most bytes that are kept of what was fetched, in the working folder.
const CACHE_BYTES: u64 = 1 << 30;

/// Objects that are fetched at a time.
const AT_ONCE: usize = 4;

/// See [the module](self).
pub(super) struct OpenedHistory {
    pub(super) copied: Copied,
    /// Folder in which a verb notes what it changes elsewhere for the time being.
    pub(super) notes: PathBuf,
    /// Folder that holds the certificate of a port of ours.
    pub(super) data_dir: PathBuf,
    /// Held until the end, so that no daemon starts to write meanwhile; a running one has it and has put everything in place.
    _copy: Option<HeldCopy>,
    /// What is walked is sent afterwards.
    _files_stay: Option<PurgeLock>,
}

impl OpenedHistory {
    /// A folder of copies, or an archive, of which what is needed is fetched into `work`.
    ///
    /// # Errors
    /// In words.
    pub(super) fn open(
        from: &Path,
        store: &StoreArgs,
        work: Option<&Path>,
        timeline: Option<&str>,
    ) -> Result<OpenedHistory, String> {
        match (from.to_str().filter(|from| is_url(from)), work) {
            (Some(url), Some(work)) => OpenedHistory::archive(url, store, work, timeline),
            (Some(_), None) => Err(
                "an archive is read: name an empty folder with --work too, for what is fetched; 2 GiB and \
                                    the newest binary log must fit"
                    .to_owned(),
            ),
            (None, Some(_)) => Err("--work is for an archive, as s3://bucket/prefix".to_owned()),
            (None, None) => {
                if let Some(flag) = store.given() {
                    return Err(format!("{flag} is for an archive, as s3://bucket/prefix"));
                }
                OpenedHistory::copy(from, store.source.as_deref(), timeline)
            }
        }
    }

    fn copy(data_dir: &Path, source: Option<&str>, timeline: Option<&str>) -> Result<OpenedHistory, String> {
        let (name, folder) = choose(data_dir, source)?;
        let copy = put_in_place(data_dir, &name)?;
        let files_stay = PurgeLock::take(&PosixStorage, &folder).map_err(text)?;
        let copied = Copied::open(&name, &folder, Arc::new(PosixStorage), timeline).map_err(text)?;
        Ok(OpenedHistory {
            copied,
            notes: folder,
            data_dir: data_dir.to_owned(),

            _copy: copy,
            _files_stay: Some(files_stay),
        })
    }

    /// The newest file is fetched, as a copy that begins from the archive does; everything before is read there.
    fn archive(
        url: &str,
        store: &StoreArgs,
        work: &Path,
        timeline: Option<&str>,
    ) -> Result<OpenedHistory, String> {
        let opened = store.open(url).map_err(|error| format!("{error:#}"))?;
        let [source] = &opened.sources[..] else {
            return Err(format!(
                "{url} has several sources: choose one with --source; there are: {}",
                opened.sources.join(", ")
            ));
        };
        let mut chain = Chain::open(&*opened.reader.store, source).map_err(text)?;
        // One with a hole ends too early: what is brought forward by it would lack the rest in silence.
        chain.check_whole(&*opened.reader.store).map_err(text)?;
        let history = chain.history();
        // What an earlier restore has fetched serves again as long as the archive is the same.
        let data_dir = work.join(format!("commit-{}-{:.16}", history.seq, history.hash));
        let folder = data_dir.join(source);
        let in_work = |error: std::io::Error| format!("--work {}: {error}", work.display());
        make_folder(&PosixStorage, &folder).map_err(in_work)?;
        if by_number(&PosixStorage, &folder).map_err(in_work)?.is_empty() {
            let begun = begin(&opened.reader, &PosixStorage, &folder, source, AT_ONCE, &|_| ());
            if begun.map_err(text)?.is_none() {
                return Err(format!("{url} has nothing of {source} yet"));
            }
        }
        let names = by_number(&PosixStorage, &folder).map_err(in_work)?;
        let names: Vec<(PathBuf, String)> = names
            .into_iter()
            .map(|path| (path.clone(), path.file_name().unwrap_or_default().to_string_lossy().into_owned()))
            .collect();
        let disk: Arc<PosixStorage> = Arc::new(PosixStorage);
        let past = Past::new(
            folder.clone(),
            disk.clone(),
            opened.reader.clone(),
            CACHE_BYTES,
            Arc::new(|_| true),
            AT_ONCE,
        );
        past.publish(history, &names).map_err(in_work)?;
        let storage = Arc::new(WithPast::new(disk, Arc::new(past)));
        let copied = Copied::open(source, &folder, storage, timeline).map_err(text)?;
        Ok(OpenedHistory { copied, notes: work.to_owned(), data_dir, _copy: None, _files_stay: None })
    }
}
