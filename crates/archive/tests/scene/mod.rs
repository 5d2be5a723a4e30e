//! What the tests of a round trip begin with.
#![allow(dead_code, reason = "each of them needs a part of it")]

use archive::chain::commit::Writer;
use archive::keys::Identities;
use archive::reader::Reader;
use archive::segment::Opener;
use archive::store::Store;
use archive::store::remote::Folder;
use archive::upkeep::scrub::{Depth, Report, scrub};
use archive::writer::upload::{Permits, Uploader};
use archive::writer::{Archiver, DurableEnd, Step};
use binlog::storage::posix::PosixStorage;
use binlog::testing::{FileBuilder, SERVER_UUID, first_timeline};
use jiff::Timestamp;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The source.
pub(crate) const SOURCE: &str = "shop";

/// A copy of one timeline, and a folder that is its archive.
pub(crate) struct Scene {
    pub(crate) dir: tempfile::TempDir,
    /// Folder of the timeline.
    pub(crate) timeline: PathBuf,
    pub(crate) store: Arc<Folder>,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("data").join(SOURCE);
        fs::create_dir_all(&folder).unwrap();
        let timeline = first_timeline(SERVER_UUID).create(&PosixStorage, &folder, 1).unwrap();
        let store = Arc::new(Folder::open(&dir.path().join("store")).unwrap());
        Scene { dir, timeline, store }
    }

    /// Three files of the copy, of which the last is written: `n` transactions in each.
    pub(crate) fn files(&self, transactions: u64) -> Vec<PathBuf> {
        let mut number = 0;
        let file = |place: u64| {
            let before = if number == 0 { String::new() } else { format!("{SERVER_UUID}:1-{number}") };
            let mut builder = FileBuilder::new().previous_gtids(&before);
            for _ in 0..transactions {
                number += 1;
                builder = builder.transaction(number, 3000);
            }
            let last = place == 3;
            let builder = if last { builder } else { builder.rotate(&format!("b.{:06}", place + 1)) };
            let path = self.timeline.join(format!("b.{place:06}"));
            fs::write(&path, builder.finish()).unwrap();
            path
        };
        (1..=3).map(file).collect()
    }

    pub(crate) fn archiver(&self) -> Archiver {
        self.archiver_of(self.timeline.parent().unwrap())
    }

    /// Of another copy.
    pub(crate) fn archiver_of(&self, folder: &Path) -> Archiver {
        let uploader = self.uploader();
        let writer = Writer { id: uuid(), epoch: 0, host: "test".into(), version: "0".into() };
        Archiver::new(SOURCE.into(), folder.to_owned(), Arc::new(PosixStorage), uploader, writer, false)
    }

    pub(crate) fn uploader(&self) -> Uploader {
        let store: Arc<dyn Store> = self.store.clone();
        let permits = Arc::new(Permits::new(2));
        Uploader { store, permits, level: 1, recipients: None, stop: Arc::default() }
    }

    pub(crate) fn durable(&self, offset: u64) -> DurableEnd {
        DurableEnd { timeline: self.timeline.clone(), file: "b.000003".into(), offset }
    }

    pub(crate) fn archive_all(&self, live: &Path) {
        let durable = self.durable(fs::metadata(live).unwrap().len());
        let mut archiver = self.archiver();
        while archiver.step(Some(&durable), true, Timestamp::now()).unwrap() != Step::Idle {}
        assert_eq!(archiver.end_of(&self.timeline).unwrap().offset, durable.offset);
    }

    pub(crate) fn reader(&self) -> Reader {
        let opener = Arc::new(Opener::new(Identities::new()));
        Reader { store: self.store.clone(), opener }
    }

    pub(crate) fn scrub(&self) -> Report {
        scrub(&self.reader(), SOURCE, Depth::All, true, &|_| {}).unwrap()
    }

    pub(crate) fn objects(&self) -> Vec<PathBuf> {
        let listed = self.store.list(&format!("{SOURCE}/"), None).unwrap();
        listed.into_iter().map(|meta| self.dir.path().join("store").join(meta.name)).collect()
    }

    pub(crate) fn object(&self, ending: &str) -> PathBuf {
        self.objects().into_iter().find(|path| path.to_str().unwrap().ends_with(ending)).unwrap()
    }
}

pub(crate) fn uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}
