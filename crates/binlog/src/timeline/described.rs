//! What a copy says of its timelines to a copy below it: each with its description and with where it begins and ends. By this, and
//! by the bytes, the copy below holds the same timelines.

use super::beginning;
use super::extent::{Extent, extent};
use super::files::timeline_files;
use crate::folder::{timeline_number, timelines};
use crate::format::read_toml;
use crate::storage::Storage;
use crate::timeline::Timeline;
use crate::writer::published::Live;
use codec::gtid::Uuid;
use codec::{BinlogName, ServerKind};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// Above the number of any timeline: each failover takes one.
const NUMBER_MAX: u32 = 1_000_000;

/// One timeline of another copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// Name of its folder there, `NNNN-<server_uuid>`.
    pub name: String,
    /// From where to where readers may have it; `None` where no file of it says what came before it.
    pub extent: Option<Extent>,
    /// It was begun, and readers may not have anything of it yet.
    pub is_pending: bool,
    /// Its `timeline.toml` there; `None` from a binlogd that tells only where it begins and ends.
    pub info: Option<Timeline>,
}

impl Described {
    /// `server_uuid` of the timeline; `mariadb-<server_id>` for MariaDB.
    pub fn server_uuid(&self) -> &str {
        self.name.split_once('-').map_or("", |(_, uuid)| uuid)
    }

    /// The number at the front of its folder's name there.
    pub fn number(&self) -> u32 {
        timeline_number(&self.name).unwrap_or(0)
    }
}

/// All timelines of another copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptions {
    /// By their numbers.
    pub timelines: Vec<Described>,
    /// The live one among them.
    pub live: usize,
}

/// A timeline as it is sent.
#[derive(Serialize, Deserialize)]
struct Line {
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    extent: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pending: bool,
    description: Timeline,
}

#[derive(Serialize, Deserialize)]
struct Lines {
    live: String,
    timeline: Vec<Line>,
}

/// All timelines of a copy, as text.
///
/// # Errors
/// When a folder or a description cannot be read.
pub fn describe(storage: &dyn Storage, source_folder: &Path, live: &Live) -> io::Result<String> {
    let name = |folder: &Path| folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut lines = Lines { live: name(&live.timeline), timeline: Vec::new() };
    let mut pending = false;
    for folder in timelines(storage, source_folder)? {
        let is_live = folder == live.timeline;
        let mut files = timeline_files(storage, &folder)?;
        if is_live {
            let at = files.iter().position(|file| **file == *live.file);
            files.truncate(at.map_or(0, |at| at + 1));
        } else if pending {
            files.clear();
        } else {
            drop_unbegun(storage, &folder, &mut files)?;
        }
        let found = extent(storage, &folder, &files, is_live.then(|| live.end()))?;
        lines.timeline.push(Line {
            name: name(&folder),
            extent: found.map(|extent| extent.to_string()).unwrap_or_default(),
            pending,
            description: Timeline::read(storage, &folder)?,
        });
        // Of one that is begun behind it nothing was published yet.
        pending |= is_live;
    }
    lines.timeline.sort_by_key(|line| timeline_number(&line.name));
    toml::to_string(&lines).map_err(io::Error::other)
}

/// Takes off those files at the end of a timeline that is written no more which do not say what came before them: they say nothing.
///
/// # Errors
/// When a file cannot be read.
pub fn drop_unbegun<N: AsRef<str>>(
    storage: &dyn Storage,
    folder: &Path,
    files: &mut Vec<N>,
) -> io::Result<()> {
    while let Some(last) = files.last() {
        let path = folder.join(last.as_ref());
        // What is archived begins with all of that.
        if storage.recorded(&path).is_some() {
            break;
        }
        let file = storage.open_read(&path)?;
        if beginning::is_whole(&*file, file.size()?)? {
            break;
        }
        files.pop();
    }
    Ok(())
}

/// Reads what [`describe`] has made.
///
/// # Errors
/// In words, when it makes no sense.
pub fn parse(text: &str) -> Result<Descriptions, String> {
    let Lines { live, timeline } = read_toml(text).map_err(|error| error.to_string())?;
    let timelines: Vec<Described> = timeline.into_iter().map(described).collect::<Result<_, _>>()?;
    let found = timelines.iter().position(|described| described.name == live);
    let live = found.ok_or_else(|| format!("{live:?}, which is written, is none of the timelines"))?;
    Ok(Descriptions { timelines, live })
}

/// Names become those of folders and parts of statements, so they must be what they claim to be.
fn described(line: Line) -> Result<Described, String> {
    let Line { name, extent, pending, description } = line;
    let info = Timeline::parse(&description.to_text()?)?;
    let is_server = match info.server_kind {
        ServerKind::MySql => info.server_uuid.parse::<Uuid>().is_ok(),
        ServerKind::MariaDb => {
            info.server_uuid.strip_prefix("mariadb-").is_some_and(|id| id.parse::<u32>().is_ok())
        }
    };
    let extent = match extent.is_empty() {
        true => None,
        false => Some(extent.parse::<Extent>().map_err(|error| format!("{name}: {error}"))?),
    };
    let found = Described { name, extent, is_pending: pending, info: Some(info) };
    let is_of_server =
        found.info.as_ref().is_some_and(|info| info.server_uuid == found.server_uuid()) && is_server;
    let is_itself = found.extent.as_ref().is_none_or(|extent| extent.timeline == found.name);
    let is_plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_number = |number: u32| number < NUMBER_MAX;
    let is_folder = |name: &str| timeline_number(name).is_some_and(is_number) && is_plain(name);
    let names = found.info.as_ref().is_some_and(|info| {
        BinlogName::parse(&info.first_file).is_ok() && (info.previous.is_empty() || is_folder(&info.previous))
    });
    match is_of_server && is_itself && names && is_folder(&found.name) {
        true => Ok(found),
        false => Err(format!(
            "what it says of {:?} names no folder, no file, or another server than its own",
            found.name
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Position;
    use crate::folder::make_present;
    use crate::storage::posix::PosixStorage;
    use crate::testing::{FileBuilder, SERVER_UUID, first_timeline};
    use crate::writer::published::Published;

    #[test]
    fn what_is_described_is_read_up_to_the_live_one() {
        let dir = tempfile::tempdir().unwrap();
        let make = |number| first_timeline(SERVER_UUID).create(&PosixStorage, dir.path(), number).unwrap();
        let (first, empty, third, not_yet) = (make(1), make(2), make(3), make(4));
        let file = FileBuilder::new().previous_gtids("").transaction(1, 9).finish();
        for folder in [&first, &third, &not_yet] {
            std::fs::write(folder.join("b.000001"), &file).unwrap();
        }
        std::fs::write(first.join("b.000002"), codec::event::BINLOG_MAGIC).unwrap();
        let published = Published::default();
        published.is_at(&third, Some(&Position::new("b.000001", 77)));
        let read = |published: &Published| {
            parse(&describe(&PosixStorage, dir.path(), &published.live().unwrap()).unwrap()).unwrap()
        };
        let Descriptions { timelines: found, live } = read(&published);
        let end = |found: &Described| found.extent.as_ref().map(|extent| (extent.last.clone(), extent.end));
        let told: Vec<_> = found.iter().map(|found| (found.number(), end(found), found.is_pending)).collect();
        let whole = file.len() as u64;
        let at = |end| Some(("b.000001".to_owned(), end));
        assert_eq!(told, [(1, at(whole), false), (2, None, false), (3, at(77), false), (4, None, true)]);
        assert_eq!((live, found[1].info.as_ref()), (2, Some(&first_timeline(SERVER_UUID))));
        assert_eq!(found[1].server_uuid(), SERVER_UUID);
        // The server of an older one is back.
        make_present(&PosixStorage, dir.path(), empty.file_name().unwrap().to_str().unwrap()).unwrap();
        std::fs::write(empty.join("b.000007"), &file).unwrap();
        published.is_at(&empty, Some(&Position::new("b.000007", whole)));
        let back = read(&published);
        assert!(back.live == 1 && back.timelines.iter().all(|found| !found.is_pending), "{back:?}");
    }

    #[test]
    fn a_name_that_is_not_what_it_claims_is_refused() {
        let text = |name: &str, uuid: &str, extent: &str| {
            let line = Line {
                name: name.to_owned(),
                extent: extent.to_owned(),
                pending: false,
                description: first_timeline(uuid),
            };
            toml::to_string(&Lines { live: name.to_owned(), timeline: vec![line] }).unwrap()
        };
        let name = format!("0001-{SERVER_UUID}");
        assert!(parse(&text(&name, SERVER_UUID, "")).is_ok());
        assert!(
            parse(&text(&name, "..", ""))
                .unwrap_err()
                .contains("names no folder, no file, or another server")
        );
        assert!(parse(&text("0001-../x", "../x", "")).is_err());
        assert!(parse(&text(&format!("4294967295-{SERVER_UUID}"), SERVER_UUID, "")).is_err());
        assert!(parse(&text(&name, SERVER_UUID, "0002-x\tb.000001\t1\tb.000001\t1\t4")).is_err());
        assert!(parse(&text(&name, SERVER_UUID, "rubbish")).is_err());
        for (key, value) in [("previous", "../../x"), ("first_file", "../b.000001")] {
            let (line, whole) = (format!("{key} = \"{value}\""), text(&name, SERVER_UUID, ""));
            let other: Vec<&str> =
                whole.lines().filter(|line| !line.starts_with(key)).chain([&*line]).collect();
            assert!(parse(&other.join("\n")).is_err(), "{key}");
        }
        assert!(parse("format = 2").unwrap_err().contains("a later version of binlogd wrote it"));
        let live = format!("live = 'x'\n{}", text(&name, SERVER_UUID, "").split_once('\n').unwrap().1);
        assert!(parse(&live).unwrap_err().contains("is none of the timelines"));
    }
}
