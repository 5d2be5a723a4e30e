//! Whether binlogd receives from the source and has caught up: before that, semi-sync would make commits wait for nobody.

use super::super::status::of_folder;
use setup::Server;
use setup::doctor::Facts;
use status::SourceStatus;
use std::path::Path;
use std::time::{Duration, Instant};
use wire::{Connection, WireError};

/// How often the daemon is asked whether it has what the source had at the beginning.
const LOOKS: u32 = 10;
/// Pause between two of these.
const PAUSE: Duration = Duration::from_millis(100);

/// Longest time for the daemon to see that semi-sync was switched on.
const SEEN_MAX: Duration = Duration::from_secs(10);

/// Looks at the daemon of `data_dir` and at the source. The inner error says in words what is not so.
///
/// # Errors
/// When the connection to the source fails.
pub(super) fn attached(
    connection: &mut Connection,
    facts: &Facts,
    data_dir: &Path,
    name: &str,
) -> Result<Result<(), String>, WireError> {
    let source = match receiving(facts, data_dir, name) {
        Ok(source) => source,
        Err(why) => return Ok(Err(why)),
    };
    let Some((file, end)) = Server::end_of_log(connection)? else {
        return Ok(Err("the source does not say where its binary log ends".to_owned()));
    };
    let reached = |source: &SourceStatus| {
        let place = source.positions.durable.as_ref();
        place.is_some_and(|place| *place.file == *file && place.offset >= end)
    };
    let mut source = source;
    for _ in 0..LOOKS {
        if reached(&source) {
            return Ok(Ok(()));
        }
        std::thread::sleep(PAUSE);
        source = match receiving(facts, data_dir, name) {
            Ok(source) => source,
            Err(why) => return Ok(Err(why)),
        };
    }
    let place = source.positions.durable.map_or("nothing".to_owned(), |place| place.to_string());
    Ok(Err(format!("binlogd is catching up: it holds {place}, and the source is at {file}:{end}")))
}

/// Whether the daemon says that commits wait for it. Its own look at the source takes a moment.
///
/// # Errors
/// Why not, in its words.
pub(super) fn acknowledges(data_dir: &Path, name: &str) -> Result<(), String> {
    let deadline = Instant::now() + SEEN_MAX;
    loop {
        let status =
            of_folder(data_dir).ok_or_else(|| format!("no binlogd answers for {}", data_dir.display()))?;
        let source = status.sources.into_iter().find(|source| source.name == name);
        let semi_sync = source.map(|source| source.semi_sync).unwrap_or_default();
        if semi_sync.active {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(semi_sync.reason);
        }
        std::thread::sleep(PAUSE);
    }
}

/// What the daemon says of the source while it receives from this server.
fn receiving(facts: &Facts, data_dir: &Path, name: &str) -> Result<SourceStatus, String> {
    let Some(status) = of_folder(data_dir) else {
        return Err(format!("no binlogd answers for {}", data_dir.display()));
    };
    let Some(source) = status.sources.into_iter().find(|source| source.name == name) else {
        return Err(format!("the binlogd that runs has no source {name}: let it reread its configuration"));
    };
    if !source.is_receiving() {
        let why = source.state_detail.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        return Err(format!(
            "binlogd runs, and is not attached: {}{why}; binlogd status says more",
            source.state
        ));
    }
    if let Some(quorum) = source.quorum.as_ref().filter(|quorum| !quorum.counts) {
        return Err(format!("binlogd receives, and its quorum has not begun: {}", quorum.absent()));
    }
    if source.server_id.map(u64::from) != facts.number("server_id") {
        let host = source.host.as_deref().unwrap_or("another server");
        return Err(format!("binlogd receives from another server, {host}: its hosts lead elsewhere"));
    }
    Ok(source)
}
