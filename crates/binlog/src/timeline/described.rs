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
use codec::packet::printable;
use codec::{BinlogName, ServerKind};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// Above the number of any timeline: each failover takes one.
const NUMBER_MAX: u32 = 1_000_000;

/// So much of the reason why a timeline cannot be read is shown, in bytes.
const WHY_BYTES_MAX: usize = 500;

/// One timeline of another copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// Name of its folder there, `NNNN-<server_uuid>`.
    pub name: String,
    /// From where to where readers may have it; `None` where no file of it says what came before it.
    pub extent: Option<Extent>,
    /// It was begun, and readers may not have anything of it yet.
    pub is_pending: bool,
    /// Its `timeline.toml` there; `None` where that cannot be read, and from a binlogd that tells only where it begins and ends.
    pub info: Option<Timeline>,
    /// Why it cannot be read there, in that one's words.
    pub unreadable: Option<String>,
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

    /// Why it cannot be read there, behind its name.
    pub fn why_unreadable(&self) -> Option<String> {
        Some(format!("{}: {}", self.name, self.unreadable.as_ref()?))
    }
}

/// All timelines of another copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptions {
    /// By their numbers.
    pub timelines: Vec<Described>,
    /// The live one among them.
    pub live: usize,
    /// False while its archive has not answered: files that it has purged may be there all the same.
    pub is_past_known: bool,
}

impl Descriptions {
    /// The live one.
    pub fn live(&self) -> &Described {
        &self.timelines[self.live]
    }

    /// Whether older files of one of them may be there than it says.
    pub fn may_have_more(&self, at: usize) -> bool {
        !self.is_past_known && self.timelines[at].info.as_ref().is_some_and(|info| !info.purged.is_empty())
    }

    /// Those that cannot be read, each with the reason, in words; empty for none.
    pub fn unreadable(&self) -> String {
        self.timelines.iter().filter_map(Described::why_unreadable).collect::<Vec<_>>().join("; ")
    }

    /// From where to where each may be read, one a line.
    pub fn extents(&self) -> String {
        let lines = self.timelines.iter().filter_map(|of| Some(of.extent.as_ref()?.to_string()));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// As text, which [`parse`] reads.
    ///
    /// # Errors
    /// When a description is none that can be written.
    pub fn to_text(&self) -> io::Result<String> {
        let line = |of: &Described| Line {
            name: of.name.clone(),
            extent: of.extent.as_ref().map(ToString::to_string).unwrap_or_default(),
            pending: of.is_pending,
            unreadable: of.unreadable.clone().unwrap_or_default(),
            description: of.info.clone(),
        };
        let lines = Lines {
            live: self.live().name.clone(),
            past_not_known: !self.is_past_known,
            timeline: self.timelines.iter().map(line).collect(),
        };
        toml::to_string(&lines).map_err(io::Error::other)
    }
}

/// A timeline as it is sent.
#[derive(Serialize, Deserialize)]
struct Line {
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    extent: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pending: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    unreadable: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Timeline>,
}

#[derive(Serialize, Deserialize)]
struct Lines {
    live: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    past_not_known: bool,
    timeline: Vec<Line>,
}

/// All timelines of a copy. One that cannot be read keeps none of the others from being told.
///
/// # Errors
/// When the source's folder cannot be read, or has no live timeline.
pub fn describe(storage: &dyn Storage, source_folder: &Path, live: &Live) -> io::Result<Descriptions> {
    let mut found = Vec::new();
    let mut is_pending = false;
    for folder in timelines(storage, source_folder)? {
        let is_live = folder == live.timeline;
        let info = Timeline::read(storage, &folder);
        let readable = match (&info, is_pending) {
            (Ok(_), false) => readable(storage, &folder, is_live.then_some(live)),
            _ => Ok(None),
        };
        let failed = info.as_ref().err().or(readable.as_ref().err());
        let shown = |error: &io::Error| printable(error.to_string().as_bytes(), WHY_BYTES_MAX);
        let unreadable = failed.map(shown);
        found.push(Described {
            name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            extent: readable.unwrap_or_default(),
            is_pending,
            info: info.ok(),
            unreadable,
        });
        // Of one that is begun behind it nothing was published yet.
        is_pending |= is_live;
    }
    found.sort_by_key(Described::number);
    let at = found.iter().position(|described| live.timeline.ends_with(&described.name));
    let live = at.ok_or_else(|| io::Error::other("the live timeline is not there"))?;
    Ok(Descriptions { timelines: found, live, is_past_known: !storage.may_have_more() })
}

/// From where to where readers may have a timeline; `live` is what is published of it, where it is the live one.
fn readable(storage: &dyn Storage, folder: &Path, live: Option<&Live>) -> io::Result<Option<Extent>> {
    let mut files = timeline_files(storage, folder)?;
    match live {
        Some(live) => {
            let at = files.iter().position(|file| **file == *live.file);
            files.truncate(at.map_or(0, |at| at + 1));
        }
        None => drop(drop_unbegun(storage, folder, &mut files)?),
    }
    extent(storage, folder, &files, live.map(|live| live.end()))
}

/// Takes off those files at the end of a timeline that is written no more which do not say what came before them: they say nothing.
/// The value is the first of them: that it was begun says that the one before it is whole, be its end inside a transaction.
///
/// # Errors
/// When a file cannot be read.
pub fn drop_unbegun<N: AsRef<str>>(
    storage: &dyn Storage,
    folder: &Path,
    files: &mut Vec<N>,
) -> io::Result<Option<N>> {
    let mut unbegun = None;
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
        unbegun = files.pop();
    }
    Ok(unbegun)
}

/// Reads what [`describe`] has made.
///
/// # Errors
/// In words, when it makes no sense.
pub fn parse(text: &str) -> Result<Descriptions, String> {
    let Lines { live, past_not_known, timeline } = read_toml(text).map_err(|error| error.to_string())?;
    let timelines: Vec<Described> = timeline.into_iter().map(described).collect::<Result<_, _>>()?;
    let found = timelines.iter().position(|described| described.name == live);
    let live = found.ok_or_else(|| format!("{live:?}, which is written, is none of the timelines"))?;
    Ok(Descriptions { timelines, live, is_past_known: !past_not_known })
}

/// Names become those of folders and parts of statements, so they must be what they claim to be.
fn described(line: Line) -> Result<Described, String> {
    let Line { name, extent, pending, unreadable, description } = line;
    let unreadable = (!unreadable.is_empty()).then(|| printable(unreadable.as_bytes(), WHY_BYTES_MAX));
    if description.is_none() && unreadable.is_none() {
        return Err(format!("of {name:?} there is no description"));
    }
    let info = description.map(|description| Timeline::parse(&description.to_text()?)).transpose()?;
    let extent = match extent.is_empty() {
        true => None,
        false => Some(extent.parse::<Extent>().map_err(|error| format!("{name}: {error}"))?),
    };
    let found = Described { name, extent, is_pending: pending, info, unreadable };
    let is_server = match found.server_uuid().strip_prefix("mariadb-") {
        Some(id) => id.parse::<u32>().is_ok(),
        None => found.server_uuid().parse::<Uuid>().is_ok(),
    };
    let is_of_kind = |info: &Timeline| {
        let kind =
            if info.server_uuid.starts_with("mariadb-") { ServerKind::MariaDb } else { ServerKind::MySql };
        info.server_kind == kind && info.server_uuid == found.server_uuid()
    };
    let is_of_server = is_server && found.info.as_ref().is_none_or(is_of_kind);
    let is_itself = found.extent.as_ref().is_none_or(|extent| extent.timeline == found.name);
    let is_plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_number = |number: u32| number < NUMBER_MAX;
    let is_folder = |name: &str| timeline_number(name).is_some_and(is_number) && is_plain(name);
    let names = found.info.as_ref().is_none_or(|info| {
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
    use crate::timeline::TIMELINE_FILE;
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
            let found = describe(&PosixStorage, dir.path(), &published.live().unwrap()).unwrap();
            assert_eq!(parse(&found.to_text().unwrap()).unwrap(), found);
            found
        };
        let Descriptions { timelines: found, live, is_past_known } = read(&published);
        let end = |found: &Described| found.extent.as_ref().map(|extent| (extent.last.clone(), extent.end));
        let told: Vec<_> = found.iter().map(|found| (found.number(), end(found), found.is_pending)).collect();
        let whole = file.len() as u64;
        let at = |end| Some(("b.000001".to_owned(), end));
        assert_eq!(told, [(1, at(whole), false), (2, None, false), (3, at(77), false), (4, None, true)]);
        assert_eq!((live, found[1].info.as_ref()), (2, Some(&first_timeline(SERVER_UUID))));
        let mut files = timeline_files(&PosixStorage, &first).unwrap();
        let unbegun = drop_unbegun(&PosixStorage, &first, &mut files).unwrap();
        assert_eq!((files, unbegun), (vec!["b.000001".to_owned()], Some("b.000002".to_owned())));
        assert!(is_past_known && read(&published).unreadable().is_empty());
        assert_eq!(found[1].server_uuid(), SERVER_UUID);
        // The server of an older one is back.
        make_present(&PosixStorage, dir.path(), empty.file_name().unwrap().to_str().unwrap()).unwrap();
        std::fs::write(empty.join("b.000007"), &file).unwrap();
        published.is_at(&empty, Some(&Position::new("b.000007", whole)));
        let back = read(&published);
        assert!(back.live == 1 && back.timelines.iter().all(|found| !found.is_pending), "{back:?}");
        assert_eq!(back.extents().lines().count(), 4);
        // An index cannot be read; and a description is none.
        let _ = std::fs::remove_file(third.join("binlog.index"));
        std::fs::create_dir(third.join("binlog.index")).unwrap();
        std::fs::write(first.join(TIMELINE_FILE), "rubbish").unwrap();
        let found = read(&published);
        let told: Vec<_> = found
            .timelines
            .iter()
            .map(|of| (of.extent.is_some(), of.info.is_some(), of.unreadable.is_some()))
            .collect();
        let (readable, not) = ((true, true, false), (false, false, true));
        assert_eq!((told, found.live), (vec![not, readable, (false, true, true), readable], 1));
        let why = found.unreadable();
        assert!(why.contains(&found.timelines[0].name) && why.contains(TIMELINE_FILE), "{why}");
        assert!(why.contains(&found.timelines[2].name) && !why.contains(&found.timelines[1].name), "{why}");
    }

    #[test]
    fn a_name_that_is_not_what_it_claims_is_refused() {
        let text = |name: &str, uuid: &str, extent: &str| {
            let line = Line {
                name: name.to_owned(),
                extent: extent.to_owned(),
                pending: false,
                unreadable: String::new(),
                description: Some(first_timeline(uuid)),
            };
            let (live, timeline) = (name.to_owned(), vec![line]);
            toml::to_string(&Lines { live, past_not_known: false, timeline }).unwrap()
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
        assert!(parse("format = 3").unwrap_err().contains("a later version of binlogd wrote it"));
        let live = format!("live = 'x'\n{}", text(&name, SERVER_UUID, "").split_once('\n').unwrap().1);
        assert!(parse(&live).unwrap_err().contains("is none of the timelines"));
    }
}
