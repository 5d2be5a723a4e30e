//! Which files go, and why the others stay.

use super::needs::{Need, own_needs};
use super::order::{LogFile, list, sealed_at};
use crate::storage::Storage;
use jiff::Timestamp;
use std::io;
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

/// The rules of an operator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rules {
    /// Files that were sealed longer ago than this go.
    pub max_age: Option<Duration>,
    /// As long as the files of the source have more bytes than this, the oldest goes.
    pub max_bytes: Option<u64>,
    /// As long as there are more files than this, the oldest goes.
    pub max_files: Option<u64>,
}

impl Rules {
    /// Whether there is none: nothing is purged.
    pub fn are_none(&self) -> bool {
        *self == Rules::default()
    }
}

/// What is wanted gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Everything before the file of this name: the newest that has it.
    To(String),
    /// Everything that was sealed before this moment.
    Before(Timestamp),
    /// What the rules say, at this moment.
    Rules(Rules, Timestamp),
}

/// There is no file of the name in [`Wanted::To`]. Travels inside an [`io::Error`], so that it is not taken for a file that a
/// disk has lost.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no file {0} in the copy")]
pub struct NoSuchFile(pub String);

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The file.
    pub file: LogFile,
    /// `None`: it goes. Else why it stays, in words; each names who needs it.
    pub stays: Option<Vec<String>>,
    /// Whether it was wanted gone. Not so what stays as the end of an older history alone, which nobody is told of.
    pub is_wanted: bool,
}

/// All files of a source, the oldest first, and what becomes of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// In order.
    pub files: Vec<Judged>,
}

impl Plan {
    /// Judges the files of a source. `needs` are those of others than the copy itself: readers, slots, copies elsewhere.
    ///
    /// # Errors
    /// When a folder or a file cannot be read; [`NoSuchFile`] inside `NotFound`.
    pub fn make(
        storage: &dyn Storage,
        source_folder: &Path,
        wanted: &Wanted,
        needs: &[Need],
    ) -> io::Result<Plan> {
        let files = list(storage, source_folder)?;
        let wanted = wanted_files(storage, &files, wanted)?;
        if wanted == 0 {
            let stays = |file| Judged {
                file,
                stays: Some(vec!["nothing asks for it to go".to_owned()]),
                is_wanted: false,
            };
            return Ok(Plan { files: files.into_iter().map(stays).collect() });
        }
        let own = own_needs(storage, source_folder, &files)?;
        let with_files = |need| (Need::of(need, &files), need);
        let needed: Vec<(Vec<bool>, &Need)> = own.told.iter().chain(needs).map(with_files).collect();
        let ends: Vec<(Vec<bool>, &Need)> = own.ends.iter().map(with_files).collect();
        let mut judged = Vec::new();
        for (at, file) in files.iter().enumerate() {
            let of = |(is_needed, need): &(Vec<bool>, &Need)| is_needed[at].then(|| need.who.clone());
            let mut stays: Vec<String> = needed.iter().filter_map(of).collect();
            let is_told = !stays.is_empty();
            stays.extend(ends.iter().filter_map(of));
            let is_wanted = at < wanted && (is_told || stays.is_empty());
            if stays.is_empty() && at >= wanted {
                stays.push("nothing asks for it to go".to_owned());
            }
            let stays = (!stays.is_empty()).then_some(stays);
            judged.push(Judged { file: file.clone(), stays, is_wanted });
        }
        Ok(Plan { files: judged })
    }

    /// The files that go, the oldest first.
    pub fn goes(&self) -> Vec<&LogFile> {
        self.files.iter().filter(|judged| judged.stays.is_none()).map(|judged| &judged.file).collect()
    }

    /// The oldest file that was wanted gone and stays, if there is one, with why.
    pub fn kept(&self) -> Option<(&LogFile, &[String])> {
        let kept = self.files.iter().find(|judged| judged.is_wanted && judged.stays.is_some())?;
        Some((&kept.file, kept.stays.as_deref().unwrap_or_default()))
    }

    /// The files that were wanted gone and stay for one reason alone, the oldest first.
    pub fn kept_by_one(&self) -> impl Iterator<Item = &LogFile> {
        let by_one =
            |judged: &&Judged| judged.is_wanted && judged.stays.as_ref().is_some_and(|why| why.len() == 1);
        self.files.iter().filter(by_one).map(|judged| &judged.file)
    }

    /// How many bytes go.
    pub fn bytes(&self) -> u64 {
        self.goes().iter().map(|file| file.bytes).sum()
    }
}

/// How many of the files, from the oldest on, are wanted gone.
fn wanted_files(storage: &dyn Storage, files: &[LogFile], wanted: &Wanted) -> io::Result<usize> {
    match wanted {
        Wanted::To(name) => files
            .iter()
            .rposition(|file| file.name == *name)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, NoSuchFile(name.clone()))),
        Wanted::Before(moment) => sealed_before(storage, files, *moment),
        Wanted::Rules(rules, now) => {
            let mut count = 0;
            if let Some(age) = rules.max_age {
                // So long ago that no clock knows it: nothing is that old.
                let moment = now.checked_sub(age).unwrap_or(Timestamp::MIN);
                count = sealed_before(storage, files, moment)?;
            }
            if let Some(max) = rules.max_files {
                count = count.max(files.len().saturating_sub(usize::try_from(max).unwrap_or(usize::MAX)));
            }
            if let Some(max) = rules.max_bytes {
                let mut left: u64 = files.iter().map(|file| file.bytes).sum();
                let over = |file: &&LogFile| {
                    let is_over = left > max;
                    left = left.saturating_sub(file.bytes);
                    is_over
                };
                count = count.max(files.iter().take_while(over).count());
            }
            Ok(count)
        }
    }
}

fn sealed_before(storage: &dyn Storage, files: &[LogFile], moment: Timestamp) -> io::Result<usize> {
    let mut count = 0;
    for at in 0..files.len() {
        match sealed_at(storage, files, at)? {
            Some(sealed) if sealed < moment => count = at + 1,
            // The end of an older history stays whatever is wanted, and says nothing of what comes behind it.
            None if files.get(at + 1).is_some_and(|next| next.folder != files[at].folder) => {}
            _ => break,
        }
    }
    Ok(count)
}
