//! Slots: a reader's place, remembered while the reader is away, so that what it has not read is kept for it.
//!
//! A slot is a small file, `<data_dir>/<source>/slots/<name>.toml`. Its place is that of the last event written to the reader.
//! What was written may not have arrived, and what has arrived may be lost again: a replica with `relay_log_recovery` asks, after
//! a crash, for everything that it had not applied. So a slot keeps a margin before its place: some time and some bytes.

use binlog::folder::make_folder;
use binlog::format::read_toml;
use binlog::purge::needs::{Need, NeedFrom};
use binlog::purge::order::{LogFile, sealed_at};
use binlog::storage::{Entry, Storage};
use binlog::timeline::index::replace_file;
use config::RetentionConfig;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of their folder in that of a source.
const SLOTS_FOLDER: &str = "slots";

const ENDING: &str = ".toml";

/// So much before the place is kept at least, in bytes, where there is a margin: more than the sockets of both sides hold.
const MARGIN_BYTES: u64 = 16 << 20;

const HEAD: &str = "# A reader's place. What it has not read is kept for it; see docs/serving.md, Retention. \
                    To remove it: binlogd slots --drop.\n";

/// A reader's place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// The user's `slot`, or the replica's UUID.
    pub name: String,
    /// Folder name of the timeline that was read.
    pub timeline: String,
    /// Name of the file.
    pub file: String,
    /// End of what was written to the reader, in bytes.
    pub offset: u64,
    /// Time of the newest event that has passed to the reader, in seconds since 1970; 0 when none has.
    #[serde(default)]
    pub event_time: u32,
    /// Whose it is: `server_id` and a number, or the replica's UUID. Nobody else moves it. Empty: whoever reads next.
    #[serde(default)]
    pub reader: String,
    /// When the reader was connected last: UTC, RFC 3339.
    pub seen_at: String,
    /// For how many seconds binlogd has served since then, as of the last time that this was written down.
    #[serde(default)]
    pub absent_seconds: u64,
    /// When the slot was made.
    pub made_at: String,
}

impl Slot {
    /// What the slot keeps, with so many files before its own.
    pub fn need(&self, before: usize) -> Need {
        let from = NeedFrom::Place { timeline: self.timeline.clone(), file: self.file.clone(), before };
        let who = format!(
            "slot {} is at {}:{} (its reader was here last at {}; binlogd slots)",
            self.name, self.file, self.offset, self.seen_at
        );
        Need { who, from }
    }
}

/// Where the file of a slot stands among the files of its source; `None` where it is not there any more.
pub fn file_of(files: &[LogFile], slot: &Slot) -> Option<usize> {
    files.iter().position(|file| file.name == slot.file && file.folder.ends_with(&slot.timeline))
}

/// How many files before its own a slot keeps, for a margin of time: one at least, and as many more as were not sealed so long
/// before the newest event that its reader has, and as `MARGIN_BYTES` take.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn files_before(
    storage: &dyn Storage,
    files: &[LogFile],
    slot: &Slot,
    margin: Duration,
) -> io::Result<usize> {
    let Some(at) = file_of(files, slot).filter(|_| !margin.is_zero()) else { return Ok(1) };
    let newest = Timestamp::from_second(slot.event_time.into()).unwrap_or(Timestamp::MIN);
    let since = newest.checked_sub(margin).unwrap_or(Timestamp::MIN);
    let (mut first, mut bytes) = (at, slot.offset);
    while first > 0 {
        // Without a time only the bytes count.
        let is_long_ago = slot.event_time == 0
            || sealed_at(storage, files, first - 1)?.is_some_and(|sealed| sealed < since);
        if first < at && bytes >= MARGIN_BYTES && is_long_ago {
            break;
        }
        first -= 1;
        bytes += files[first].bytes;
    }
    Ok((at - first).max(1))
}

/// How long ago, by the clock, the reader of a slot was here.
pub fn away(slot: &Slot, now: Timestamp) -> Duration {
    let seen = slot.seen_at.parse::<Timestamp>().unwrap_or(now);
    Duration::try_from(now.duration_since(seen)).unwrap_or_default()
}

/// How far the reader of a slot is behind, by the time of the newest event that it has.
pub fn behind_seconds(slot: &Slot, behind_bytes: Option<u64>, now: Timestamp) -> Option<u64> {
    match behind_bytes {
        Some(0) => Some(0),
        _ if slot.event_time == 0 => None,
        _ => Some(u64::try_from(now.as_second() - i64::from(slot.event_time)).unwrap_or(0)),
    }
}

/// Why a slot keeps nothing, if that is so. `absent`: for how long its reader was away while binlogd served.
pub(crate) fn why_released(
    slot: &Slot,
    behind_bytes: Option<u64>,
    is_connected: bool,
    absent: Duration,
    limits: &RetentionConfig,
) -> Option<String> {
    match behind_bytes {
        None => return Some("its file is not in the copy any more".to_owned()),
        Some(behind) if limits.slot_max_bytes.is_some_and(|max| behind > max) => {
            return Some(format!("it is behind by {behind} bytes, more than slot_max_bytes"));
        }
        Some(_) => {}
    }
    let is_forgotten = !is_connected && absent > limits.slot_max_age;
    is_forgotten.then(|| format!("its reader has been away since {}, longer than slot_max_age", slot.seen_at))
}

/// Whether a text can be the name of a slot, and so of its file.
pub fn is_name(text: &str) -> bool {
    config::value::is_name(text)
}

fn path_of(source_folder: &Path, name: &str) -> PathBuf {
    source_folder.join(SLOTS_FOLDER).join(format!("{name}{ENDING}"))
}

/// One slot; `None` when there is none of that name.
///
/// # Errors
/// When it cannot be read or understood; the message names its file.
pub fn read(storage: &dyn Storage, source_folder: &Path, name: &str) -> io::Result<Option<Slot>> {
    let path = path_of(source_folder, name);
    let named =
        |kind, error: &dyn std::fmt::Display| io::Error::new(kind, format!("{}: {error}", path.display()));
    match storage.read_to_string(&path) {
        Ok(text) => read_toml(&text).map(Some).map_err(|error| named(io::ErrorKind::InvalidData, &error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(named(error.kind(), &error)),
    }
}

/// All slots of a source by name, and in words what is wrong with those that cannot be understood.
///
/// # Errors
/// When their folder cannot be read.
pub fn read_all(storage: &dyn Storage, source_folder: &Path) -> io::Result<(Vec<Slot>, Vec<String>)> {
    let entries = match storage.list(&source_folder.join(SLOTS_FOLDER)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), Vec::new())),
        other => other?,
    };
    let (mut slots, mut wrong) = (Vec::new(), Vec::new());
    for Entry { name, .. } in entries {
        let Some(name) = name.to_str().and_then(|name| name.strip_suffix(ENDING)) else { continue };
        match read(storage, source_folder, name) {
            Ok(slot) => slots.extend(slot),
            Err(error) => wrong.push(format!("a slot cannot be read: {error}")),
        }
    }
    slots.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((slots, wrong))
}

/// Writes a slot down, durably.
///
/// # Errors
/// As the operating system says.
pub fn write(storage: &dyn Storage, source_folder: &Path, slot: &Slot) -> io::Result<()> {
    let folder = source_folder.join(SLOTS_FOLDER);
    if !storage.exists(&folder)? {
        make_folder(storage, &folder)?;
    }
    let text = HEAD.to_owned() + &toml::to_string(slot).map_err(io::Error::other)?;
    replace_file(storage, &path_of(source_folder, &slot.name), text.as_bytes())
}

/// Removes a slot. False when there is none.
///
/// # Errors
/// As the operating system says.
pub fn remove(storage: &dyn Storage, source_folder: &Path, name: &str) -> io::Result<bool> {
    match storage.remove_file(&path_of(source_folder, name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        other => {
            other?;
            storage.sync_dir(&source_folder.join(SLOTS_FOLDER))?;
            Ok(true)
        }
    }
}
