//! The history that a verb works on: a copy on this machine, whether a daemon writes it or not, or an archive.

use super::held_copy::{choose, put_in_place};
use crate::cli::args::store::{StoreArgs, is_url};
use binlog::purge::lock::PurgeLock;
use binlog::storage::posix::PosixStorage;
use receive::attempt::copy::HeldCopy;
use repair::history::Copied;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An error in words.
fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// See [the module](self).
pub(in crate::cli) struct OpenedHistory {
    pub(in crate::cli) copied: Copied,
    /// Folder in which a verb notes what it changes elsewhere for the time being.
    pub(in crate::cli) notes: PathBuf,
    /// Folder that holds the certificate of a port of ours.
    pub(in crate::cli) data_dir: PathBuf,
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
    pub(in crate::cli) fn open(
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
        let (copied, data_dir) =
            Copied::from_archive(&opened.reader, source, work, timeline).map_err(text)?;
        Ok(OpenedHistory { copied, notes: work.to_owned(), data_dir, _copy: None, _files_stay: None })
    }
}
