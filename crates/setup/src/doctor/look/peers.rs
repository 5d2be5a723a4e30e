//! Asks the other binlogds of a source.

use crate::doctor::Finding;
use crate::doctor::peers::{Peer, examine};
use binlog::folder::timelines;
use binlog::storage::posix::PosixStorage;
use binlog::timeline::extent::{Extent, extents_on_disk};
use config::{HostPort, SourceConfig};
use receive::peers::peer::{ask, in_words, more_than};
use std::path::Path;
use wire::{Connection, WireError};

/// Looks at one peer, from the copy in `folder`.
pub(super) fn look(
    source: &SourceConfig,
    peer: &HostPort,
    folder: &Path,
    connect: &dyn Fn(&SourceConfig, &HostPort) -> Result<Connection, WireError>,
) -> Vec<Finding> {
    let says = connect(source, peer).map_err(Into::into).and_then(|mut connection| ask(&mut connection));
    examine(&match says {
        Err(error) => Peer::Unusable(error.to_string()),
        Ok(says) => match known(folder, &says.extents) {
            Ok(known) => known,
            Err(why) => Peer::Unusable(why),
        },
    })
}

fn known(folder: &Path, theirs: &[Extent]) -> Result<Peer, String> {
    let end = theirs.last().map(|last| format!("{}:{}", last.last, last.end));
    if !folder.is_dir() {
        return Ok(Peer::Known { end, has_more: false, older: Vec::new(), unjoined: Vec::new() });
    }
    let unreadable = |error: std::io::Error| format!("the own copy cannot be read to compare it: {error}");
    let newest = timelines(&PosixStorage, folder).map_err(|error| error.to_string())?.pop();
    let newest = newest.as_deref().and_then(|newest| newest.file_name()?.to_str()).unwrap_or_default();
    let ours = extents_on_disk(&PosixStorage, folder).map_err(unreadable)?;
    if ours.is_empty() {
        return Ok(Peer::Known { end, has_more: false, older: Vec::new(), unjoined: Vec::new() });
    }
    let more = more_than(newest, &ours, theirs)?;
    let unjoined = more.beyond("").map(in_words).collect();
    let mut older: Vec<String> = more.of_older.into_iter().map(|(ours, _)| ours.timeline).collect();
    older.dedup();
    Ok(Peer::Known { end, has_more: !more.of_newest.is_empty(), older, unjoined })
}
