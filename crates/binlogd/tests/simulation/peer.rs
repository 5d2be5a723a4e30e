//! Another binlogd of the source, as far as a receiver sees one: what it has of each timeline, and dumps of one of them.
//!
//! It has been sent what the source had at some moments, and each of its timelines only grows.

use crate::source::Source;
use codec::gtid::Uuid;
use std::fmt::Write;

/// In the place of a server's number.
pub const PEER: usize = usize::MAX;

/// Its name in the configuration.
pub const PEER_NAME: &str = "simulated-peer";

/// The other binlogd.
#[derive(Debug, Default)]
pub struct OtherBinlogd {
    /// What it holds, the oldest first.
    timelines: Vec<Source>,
    /// It can be reached.
    pub is_up: bool,
    /// It is sent what the source writes.
    pub is_attached: bool,
    /// Dumps of timelines that it was asked for.
    pub dumps: u64,
}

impl OtherBinlogd {
    /// It is sent what the source has. A log that does not go on with what it holds begins a timeline; one of the same
    /// server, as after a purge or a reset, only if `anew`.
    pub fn receive(&mut self, source: &Source, anew: bool) {
        let copy = || Source { timelines: None, ..source.clone() };
        match self.timelines.last_mut() {
            Some(newest) if goes_on(newest, source) => *newest = copy(),
            Some(newest) if newest.log().options().uuid == source.log().options().uuid && !anew => return,
            _ => self.timelines.push(copy()),
        }
        let mut text = String::new();
        for (number, timeline) in self.timelines.iter().enumerate() {
            let (log, uuid) = (timeline.log(), Uuid::from_bytes(timeline.log().options().uuid));
            let (first, end) = (&log.files()[0].name, log.end());
            let (first_made, last_made) =
                (made(&log.files()[0].bytes), made(&log.files()[log.files().len() - 1].bytes));
            let number = number + 1;
            let (last, end) = (end.file, end.position);
            writeln!(text, "{number:04}-{uuid}\t{first}\t{first_made}\t{last}\t{last_made}\t{end}")
                .expect("a text takes everything");
        }
        let newest = self.timelines.last_mut().expect("it has one");
        newest.timelines = Some(text);
    }

    /// One of its timelines, by what a client has said that it wants; the newest without that.
    pub fn timeline(&mut self, number: Option<usize>) -> &mut Source {
        let number = number.unwrap_or(self.timelines.len() - 1);
        &mut self.timelines[number]
    }

    /// The timeline that a statement chooses.
    pub fn chosen(statement: &str) -> Option<usize> {
        let name = statement.strip_prefix("SET @binlogd_timeline = '")?;
        let number: usize = name.split('-').next()?.parse().expect("a number");
        Some(number - 1)
    }
}

/// When a file was made, by its format description.
fn made(file: &[u8]) -> u32 {
    file.get(4..8).map_or(0, |seconds| u32::from_le_bytes(seconds.try_into().expect("four bytes")))
}

/// Whether the source has every byte that is held.
fn goes_on(held: &Source, source: &Source) -> bool {
    let (held, source) = (held.log(), source.log());
    let last = held.files().len() - 1;
    held.options().uuid == source.options().uuid
        && held.files().iter().enumerate().all(|(number, file)| {
            let now = source.file(&file.name);
            now.is_some_and(|now| {
                now.bytes.starts_with(&file.bytes) && (number == last || now.bytes.len() == file.bytes.len())
            })
        })
}
