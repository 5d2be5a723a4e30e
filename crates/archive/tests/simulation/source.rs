//! What the source has written, and copies of it that lag.

use archive::writer::DurableEnd;
use binlog::testing::{FileBuilder, MemoryStorage, Random, first_timeline};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of a copy.
pub const FOLDER: &str = "/copy/shop";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    pub name: String,
    pub bytes: Vec<u8>,
}

#[derive(Debug, Clone)]
pub struct SourceTimeline {
    pub uuid: String,
    pub files: Vec<SourceFile>,
}

/// Everything that a source writes in a simulation; what is shown of it grows.
#[derive(Debug, Clone)]
pub struct Source {
    pub timelines: Vec<SourceTimeline>,
    /// A second end of the story, which a copy may have in place of the first: another one from this timeline on, and there from
    /// this file on.
    pub parted: Option<Box<Source>>,
}

impl Source {
    pub fn new(random: &mut Random, is_parted: bool) -> Source {
        let mut number = 0;
        let mut timelines = Vec::new();
        for place in 0..1 + random.below(3) {
            let uuid = format!("{place:08x}-abab-abab-abab-abababababab");
            let mut files = Vec::new();
            for file in 0..1 + random.below(4) {
                number += 100;
                let transactions = 1 + random.below(6);
                files.push(SourceFile { name: name(file), bytes: file_bytes(random, number, transactions) });
            }
            timelines.push(SourceTimeline { uuid, files });
        }
        let mut source = Source { timelines, parted: None };
        if is_parted {
            let parted = source.part(random);
            source.parted = Some(Box::new(parted));
        }
        source
    }

    /// The same up to a boundary in the middle of a file; from there on other bytes under the same names.
    fn part(&self, random: &mut Random) -> Source {
        let mut other = self.clone();
        let timeline = random.below(self.timelines.len() as u64) as usize;
        let files = &mut other.timelines[timeline].files;
        let first = random.below(files.len() as u64) as usize;
        for (place, file) in files.iter_mut().enumerate().skip(first) {
            let number = 10_000 + 100 * place as u64;
            if place > first {
                let transactions = 1 + random.below(6);
                file.bytes = file_bytes(random, number, transactions);
                continue;
            }
            let whole = FileBuilder::from_bytes(file.bytes.clone());
            let kept = whole.first_transactions(random.below(3) as usize);
            let other = (0..1 + random.below(5)).fold(kept, |builder, more| {
                builder.transaction(number + more, 20 + random.below(300) as usize)
            });
            file.bytes = other.finish();
        }
        other.timelines.truncate(timeline + 1);
        other
    }

    /// What a file of that name on a timeline of that server can be.
    pub fn files<'a>(&'a self, uuid: &str, name: &str) -> Vec<&'a [u8]> {
        let all = [Some(self), self.parted.as_deref()].into_iter().flatten();
        let mut found: Vec<&[u8]> = all
            .flat_map(|source| &source.timelines)
            .filter(|timeline| timeline.uuid == uuid)
            .flat_map(|timeline| &timeline.files)
            .filter(|file| file.name == name)
            .map(|file| &*file.bytes)
            .collect();
        found.dedup();
        found
    }
}

fn name(file: u64) -> String {
    format!("b.{:06}", file + 1)
}

fn file_bytes(random: &mut Random, number: u64, transactions: u64) -> Vec<u8> {
    // Made at another second each: so no two files begin alike.
    let builder = FileBuilder::created(number as u32).previous_gtids("");
    let builder = (0..transactions)
        .fold(builder, |builder, more| builder.transaction(number + more, 20 + random.below(300) as usize));
    builder.finish()
}

/// A copy on one machine, as far as it has come.
#[derive(Debug)]
pub struct Copy {
    pub storage: MemoryStorage,
    story: Arc<Source>,
    is_parted: bool,
    first: (usize, usize),
    /// Timeline and file that are written.
    at: (usize, usize),
    written: usize,
    durable: usize,
    machine: usize,
}

impl Copy {
    /// A copy that began at timeline and file `first`, and has nothing of it yet.
    pub fn new(story: Arc<Source>, is_parted: bool, first: (usize, usize), machine: usize) -> Copy {
        let storage = MemoryStorage::default();
        let copy = Copy { storage, story, is_parted, first, at: first, written: 0, durable: 0, machine };
        copy.begin_timeline();
        copy.storage.append(&copy.path(), &[]);
        copy
    }

    pub fn source(&self) -> &Source {
        match &self.story.parted {
            Some(parted) if self.is_parted => parted,
            _ => &self.story,
        }
    }

    fn timeline(&self) -> &SourceTimeline {
        &self.source().timelines[self.at.0]
    }

    fn file(&self) -> &SourceFile {
        &self.timeline().files[self.at.1]
    }

    fn folder(&self) -> PathBuf {
        let number = self.at.0 - self.first.0 + 1;
        Path::new(FOLDER).join(format!("{number:04}-{}", self.timeline().uuid))
    }

    fn path(&self) -> PathBuf {
        self.folder().join(&self.file().name)
    }

    fn begin_timeline(&self) {
        let mut record = first_timeline(&self.timeline().uuid);
        record.began_at = format!("2026-01-02T03:{:02}:{:02}Z", self.machine, self.at.0);
        let text = record.to_text().expect("a timeline's description can be written");
        self.storage.append(&self.folder().join(binlog::timeline::TIMELINE_FILE), text.as_bytes());
    }

    /// Up to where the file that is written is durable.
    pub fn durable(&self) -> DurableEnd {
        DurableEnd { timeline: self.folder(), file: self.file().name.clone(), offset: self.durable as u64 }
    }

    /// Receives a little more, up to any byte. False when it has everything.
    pub fn receive(&mut self, random: &mut Random) -> bool {
        let len = self.file().bytes.len();
        if self.written == len {
            return self.next_file();
        }
        let more = if random.one_in(3) { len } else { 1 + random.below(500) as usize };
        let end = len.min(self.written + more);
        self.storage.append(&self.path(), &self.file().bytes[self.written..end]);
        self.durable = if random.one_in(3) { self.written.max(self.durable) } else { end };
        self.written = end;
        true
    }

    /// Receives everything.
    pub fn receive_all(&mut self, mut random: Random) {
        while self.receive(&mut random) {}
        self.durable = self.written;
    }

    fn next_file(&mut self) -> bool {
        let (timeline, file) = self.at;
        if file + 1 < self.timeline().files.len() {
            self.at = (timeline, file + 1);
        } else if timeline + 1 < self.source().timelines.len() {
            self.at = (timeline + 1, 0);
            self.begin_timeline();
        } else {
            return false;
        }
        (self.written, self.durable) = (0, 0);
        self.storage.append(&self.path(), &[]);
        true
    }

    /// Everything that a whole copy has: server, file, and whether more comes behind the file on its timeline.
    pub fn wanted(&self) -> Vec<(String, &SourceFile, bool)> {
        let mut wanted = Vec::new();
        for (place, timeline) in self.source().timelines.iter().enumerate().skip(self.first.0) {
            let skipped = if place == self.first.0 { self.first.1 } else { 0 };
            for (index, file) in timeline.files.iter().enumerate().skip(skipped) {
                wanted.push((timeline.uuid.clone(), file, index + 1 < timeline.files.len()));
            }
        }
        wanted
    }
}
