//! What a source's binary logs were, also those that the source has deleted.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::common::Server;

/// How often the source's folder is looked at for new files.
const KEEP_INTERVAL: Duration = Duration::from_millis(5);

/// Keeps each binary log of a source, also when the source deletes it: by a hard link under its name and inode.
pub(crate) struct Keeper {
    folder: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(crate) fn start(server: &Server) -> Keeper {
        let (logs, folder) = (server.datadir().to_owned(), server.dir().join("kept"));
        std::fs::create_dir(&folder).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, kept) = (stop.clone(), folder.clone());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                keep(&logs, &kept);
                std::thread::sleep(KEEP_INTERVAL);
            }
        });
        Keeper { folder, stop, thread: Some(thread) }
    }

    /// All that were seen, by name.
    pub(crate) fn files(&mut self, server: &Server) -> BTreeMap<String, Vec<Vec<u8>>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        keep(server.datadir(), &self.folder);
        let mut files: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        for entry in std::fs::read_dir(&self.folder).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let (name, _inode) = name.rsplit_once('@').expect("named by the keeper");
            files.entry(name.to_owned()).or_default().push(std::fs::read(entry.path()).unwrap());
        }
        files
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn keep(logs: &Path, kept: &Path) {
    let Ok(entries) = std::fs::read_dir(logs) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_log = |number: &str| number.bytes().all(|byte| byte.is_ascii_digit());
        if name.strip_prefix("mysql-bin.").is_some_and(is_log)
            && let Ok(file) = entry.metadata()
        {
            // It is there already, or was deleted between two lines.
            let _ = std::fs::hard_link(entry.path(), kept.join(format!("{name}@{}", file.ino())));
        }
    }
}
