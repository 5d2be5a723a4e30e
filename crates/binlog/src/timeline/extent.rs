//! From where to where a copy holds each timeline, by place: what two copies of one source compare before anything else.
//!
//! Copies of one timeline are beginnings of the same bytes, file for file, so that of two the one that ends later has more. The
//! numbers of the folders say nothing to another copy: it counts its own. After a reset or a fork a server has files of the same
//! names again, so the first and the last file of each timeline are told with the second in which the server made them.

use super::files::timeline_files;
use crate::folder::{by_number, timeline_number};
use crate::storage::Storage;
use codec::BinlogName;
use std::cmp::Ordering;
use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;

/// Parts the words of an [`Extent`]; no name of a file has it.
const TAB: char = '\t';

/// What a copy has of one timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent {
    /// Name of the timeline's folder, `NNNN-<server_uuid>`.
    pub timeline: String,
    /// Its first file.
    pub first: String,
    /// When the server made that, in seconds since 1970, as its format description says; 0 when nothing of it has arrived yet.
    pub first_made: u32,
    /// Its last file.
    pub last: String,
    /// When the server made that one, as `first_made`.
    pub last_made: u32,
    /// Up to where that one may be read, in bytes from its beginning; for a file that is written no more, its length.
    pub end: u64,
}

impl Extent {
    /// `server_uuid` of the timeline; `mariadb-<server_id>` for MariaDB.
    pub fn server_uuid(&self) -> &str {
        self.timeline.split_once('-').map_or("", |(_, uuid)| uuid)
    }

    /// How the end compares with `file` up to `offset`, by the names of the files; `None` where they do not tell, as when
    /// `log_bin` was renamed.
    pub fn cmp_end(&self, file: &str, offset: u64) -> Option<Ordering> {
        if self.last == file {
            return Some(self.end.cmp(&offset));
        }
        let (last, file) = (BinlogName::parse(&self.last).ok()?, BinlogName::parse(file).ok()?);
        (last.base() == file.base()).then(|| last.number().cmp(&file.number()))
    }

    /// Whether `file` is one from the first to the last, by their names; `true` where these do not tell.
    pub fn may_have(&self, file: &str) -> bool {
        if self.cmp_end(file, 0) == Some(Ordering::Less) {
            return false;
        }
        match (BinlogName::parse(&self.first), BinlogName::parse(file)) {
            (Ok(first), Ok(file)) if first.base() == file.base() => first.number() <= file.number(),
            _ => true,
        }
    }
}

impl Extent {
    /// Whether it may be the timeline of `other`: of one server, with files in common, and none of one name that the server made
    /// at another time.
    pub fn may_be(&self, other: &Extent) -> bool {
        self.server_uuid() == other.server_uuid()
            && (self.may_have(&other.last) || other.may_have(&self.last))
            && self.same_names(other).all(|(ours, theirs)| ours == theirs || ours == 0 || theirs == 0)
    }

    /// Whether a file of one name was made by the server at one time, so that it is the timeline of `other` or one with which
    /// that shares files.
    pub fn shares_a_file(&self, other: &Extent) -> bool {
        self.may_be(other) && self.same_names(other).any(|(ours, theirs)| ours == theirs && ours != 0)
    }

    /// How near it is to `other`, with which it shares a file: whether both end at one place, and how many files both have, by name.
    pub fn nearness(&self, other: &Extent) -> (bool, u64) {
        let number = |name: &str| BinlogName::parse(name).map_or(0, |name| name.number());
        let first = number(&self.first).max(number(&other.first));
        let last = number(&self.last).min(number(&other.last));
        let ends_alike = self.last == other.last && self.end == other.end;
        (ends_alike, (last + 1).saturating_sub(first))
    }

    /// When each file was made that both name.
    fn same_names(&self, other: &Extent) -> impl Iterator<Item = (u32, u32)> {
        let of = |extent: &Extent| {
            [(extent.first.clone(), extent.first_made), (extent.last.clone(), extent.last_made)]
        };
        let theirs = of(other);
        of(self).into_iter().flat_map(move |(name, made)| {
            let same = theirs.clone().into_iter().filter(move |(their, _)| *their == name);
            same.map(move |(_, their_made)| (made, their_made))
        })
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Extent { timeline, first, first_made, last, last_made, end } = self;
        write!(f, "{timeline}{TAB}{first}{TAB}{first_made}{TAB}{last}{TAB}{last_made}{TAB}{end}")
    }
}

/// A text is no [`Extent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadExtent;

impl fmt::Display for BadExtent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it must be a timeline, its first file and when that was made, its last file and when that was made, and the end of that, \
             with a tab between each")
    }
}

impl std::error::Error for BadExtent {}

impl FromStr for Extent {
    type Err = BadExtent;

    fn from_str(line: &str) -> Result<Extent, BadExtent> {
        let words: Vec<&str> = line.split(TAB).collect();
        let [timeline, first, first_made, last, last_made, end] = words[..] else { return Err(BadExtent) };
        let is_name = |name: &str| BinlogName::parse(name).is_ok();
        // The name of a timeline goes into statements.
        let is_plain = timeline.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !is_plain || timeline_number(timeline).is_none() || !is_name(first) || !is_name(last) {
            return Err(BadExtent);
        }
        let seconds = |word: &str| word.parse().map_err(|_| BadExtent);
        Ok(Extent {
            timeline: timeline.to_owned(),
            first: first.to_owned(),
            first_made: seconds(first_made)?,
            last: last.to_owned(),
            last_made: seconds(last_made)?,
            end: end.parse().map_err(|_| BadExtent)?,
        })
    }
}

/// What stands on the disk of each timeline, the oldest first. One that has no file yet is left out.
///
/// # Errors
/// When a folder cannot be read.
pub fn extents_on_disk(storage: &dyn Storage, source_folder: &Path) -> io::Result<Vec<Extent>> {
    let mut found = Vec::new();
    for folder in by_number(storage, source_folder)? {
        let files = timeline_files(storage, &folder)?;
        found.extend(extent(storage, &folder, &files, None)?);
    }
    Ok(found)
}

/// What a timeline has with these files; `None` where there are none. `end` is where the last one may be read up to.
pub(crate) fn extent(
    storage: &dyn Storage,
    folder: &Path,
    files: &[String],
    end: Option<u64>,
) -> io::Result<Option<Extent>> {
    let (Some(first), Some(last)) = (files.first(), files.last()) else { return Ok(None) };
    let end = match end {
        Some(end) => end,
        None => storage.look(&folder.join(last))?.len,
    };
    let timeline = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let first_made = if first == last { 0 } else { made(storage, &folder.join(first))? };
    let last_made = if end < MADE_AT + 4 { 0 } else { made(storage, &folder.join(last))? };
    let first_made = if first == last { last_made } else { first_made };
    Ok(Some(Extent { timeline, first: first.clone(), first_made, last: last.clone(), last_made, end }))
}

/// Where the time stands of the first event of a file, its format description.
const MADE_AT: u64 = 4;

/// When the server made a file; 0 when nothing of it has arrived yet, and of an archived one that is out of reach for now.
fn made(storage: &dyn Storage, path: &Path) -> io::Result<u32> {
    let mut seconds = [0; 4];
    match storage.open_read(path).and_then(|file| file.read_full_at(&mut seconds, MADE_AT)) {
        Ok(read) => Ok(if read == seconds.len() { u32::from_le_bytes(seconds) } else { 0 }),
        Err(_) if storage.recorded(path).is_some() => Ok(0),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(line: &str) -> Extent {
        line.replace(' ', "\t").parse().unwrap()
    }

    #[test]
    fn the_ends_of_two_copies_compare_by_file_and_offset() {
        let extent = extent("0001-a b.000002 7 b.000010 9 500");
        assert_eq!(extent.server_uuid(), "a");
        let compare = |file, offset| extent.cmp_end(file, offset);
        assert_eq!(compare("b.000010", 500), Some(Ordering::Equal));
        assert_eq!(compare("b.000010", 4), Some(Ordering::Greater));
        assert_eq!(compare("b.000010", 501), Some(Ordering::Less));
        assert_eq!(compare("b.000009", 9_999), Some(Ordering::Greater));
        assert_eq!(compare("b.000011", 4), Some(Ordering::Less));
        assert_eq!(compare("c.000001", 4), None, "log_bin was renamed");
        let has = |file| extent.may_have(file);
        assert!(has("b.000002") && has("b.000010") && has("c.000077"));
        assert!(!has("b.000001") && !has("b.000011"));
    }

    #[test]
    fn what_is_no_extent_is_refused() {
        for line in [
            "",
            "0001-a b.000001 b.000001 4",
            "0001-a b.000001 1 b.000001 1 x",
            "0001-a b.000001 x b.000001 1 4",
            "0001-a b.000001 1 b.000001 -1 4",
            "1-a b.000001 1 b.000001 1 4",
        ] {
            assert_eq!(line.replace(' ', "\t").parse::<Extent>(), Err(BadExtent), "{line}");
        }
        assert!("0001-a'\tb.000001\t1\tb.000001\t1\t4".parse::<Extent>().is_err());
        assert!("0001-a\t../b.000001\t1\tb.000001\t1\t4".parse::<Extent>().is_err());
        let line = extent("0001-a b.000002 7 b.000010 9 500").to_string();
        assert_eq!(line.parse(), Ok(extent("0001-a b.000002 7 b.000010 9 500")));
    }

    #[test]
    fn timelines_of_one_server_are_told_apart_by_when_it_made_their_files() {
        let ours = extent("0002-a b.000001 50 b.000003 70 500");
        let shares = |line| (ours.may_be(&extent(line)), ours.shares_a_file(&extent(line)));
        assert_eq!(shares("0007-a b.000001 50 b.000009 99 4"), (true, true), "its own number");
        assert_eq!(shares("0001-a b.000001 10 b.000003 30 900"), (false, false), "before a reset");
        assert_eq!(shares("0001-a b.000003 30 b.000003 30 900"), (false, false));
        assert_eq!(shares("0001-a b.000002 60 b.000004 80 9"), (true, false), "no file that both name");
        assert_eq!(shares("0001-a b.000003 0 b.000003 0 4"), (true, false), "nothing of it has arrived");
        assert_eq!(shares("0001-a b.000004 80 b.000009 99 9"), (false, false), "it begins behind");
        assert_eq!(shares("0001-b b.000001 50 b.000003 70 500"), (false, false), "another server");
    }
}
