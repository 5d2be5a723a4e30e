//! What the other binlogds of the source (`peers`) hold and the copy lacks: a rescue that does not know calls "all" what is not.
//!
//! With the configuration at hand each peer is asked now, over the port for its readers. Without it the running daemon's word
//! counts, which asks while no host is the source; and without a daemon the peers are known by name alone.

use super::super::status::of_folder;
use super::super::units;
use super::args::RescueArgs;
use binlog::storage::Storage;
use binlog::storage::posix::PosixStorage;
use codec::gtid::GtidState;
use config::{Config, SourceConfig};
use jiff::Timestamp;
use receive::Upstream;
use receive::decide::older_at_peer::AtPeer;
use receive::peers::PEERS_FILE;
use setup::CONFIG;
use status::{PeerStatus, SourceStatus};
use std::io;
use std::path::Path;

/// A daemon that has no source to receive from asks its peers every 2 s, and one that does not answer within a minute.
const ASKED_WITHIN_SECONDS: i64 = 60;

/// One sentence for each peer that alone holds something, or that could not be asked. `executed`: what the target has.
///
/// # Errors
/// When the configuration that was named cannot be used.
pub(super) fn beyond(
    args: &RescueArgs,
    name: &str,
    folder: &Path,
    executed: &GtidState,
) -> Result<Vec<String>, String> {
    if let Some(source) = configured(args, name)? {
        let peers = source.peers.iter().map(ToString::to_string).collect::<Vec<_>>();
        let upstream = Upstream::asking(source, &args.data_dir);
        let ask = |(number, peer): (usize, &String)| asked(peer, upstream.lacked_of_peer(number), executed);
        return Ok(peers.iter().enumerate().flat_map(ask).collect());
    }
    if let Some(status) = of_folder(&args.data_dir) {
        let source = status.sources.iter().find(|source| source.name == name);
        let peers = |source: &SourceStatus| told(source, executed, Timestamp::now());
        return Ok(source.map(peers).unwrap_or_default());
    }
    let named = match PosixStorage.read_to_string(&folder.join(PEERS_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        named => named.map_err(|error| format!("{PEERS_FILE}: {error}"))?,
    };
    let why =
        "no daemon runs here, and the account for it stands in the configuration: name that with --config";
    Ok(named.lines().map(|peer| not_asked(peer, why)).collect())
}

/// The source in the configuration that was named, or else in the usual one where that is of this data folder.
fn configured(args: &RescueArgs, name: &str) -> Result<Option<SourceConfig>, String> {
    let find = |config: Config| config.sources.into_iter().find(|source| source.name == name);
    if let Some(path) = &args.config {
        let loaded = Config::load(path).map_err(|error| error.to_string())?;
        let found =
            find(loaded.config).ok_or_else(|| format!("{} has no source {name:?}", path.display()))?;
        return Ok(Some(found));
    }
    let is_ours = |config: &Config| {
        let (theirs, ours) = (config.data_dir.canonicalize(), args.data_dir.canonicalize());
        theirs.ok().zip(ours.ok()).is_some_and(|(theirs, ours)| theirs == ours)
    };
    // Whoever may not read it, or its password, goes by what the daemon says.
    let usual = Config::load(Path::new(CONFIG)).ok().map(|loaded| loaded.config);
    Ok(usual.filter(is_ours).and_then(find))
}

/// Of a peer that was asked now.
fn asked(peer: &str, found: Result<AtPeer, String>, executed: &GtidState) -> Vec<String> {
    let found = match found {
        Ok(found) => found,
        Err(why) => return vec![not_asked(peer, &why)],
    };
    let alone = found.behind.into_iter().filter_map(|(gtids, transactions)| {
        let lacked = gtids.subtract(executed);
        match (gtids.is_empty(), lacked.is_empty()) {
            (true, _) => Some(alone_there(
                peer,
                &format!("{} without GTIDs", units::counted(transactions, "transaction")),
            )),
            (_, false) => Some(alone_there(peer, &lacked.to_line())),
            (_, true) => None,
        }
    });
    let other = found.other.into_iter().map(|timeline| {
        format!(
            "the peer {peer} holds {timeline}, and in the place of its end this copy holds other transactions: the source lost what \
             that peer alone was sent. Its binlogd status and binlogd forks name them; binlogd rescue on its machine hands them over"
        )
    });
    alone.chain(other).collect()
}

/// By the running daemon's word.
fn told(source: &SourceStatus, executed: &GtidState, now: Timestamp) -> Vec<String> {
    let of = |peer: &PeerStatus| {
        let name = &peer.peer;
        if let Some(error) = &peer.error {
            return Some(not_asked(name, &error.message));
        }
        if peer.only_there_timeline.is_some() {
            let there = GtidState::parse(executed.kind(), &peer.only_there).unwrap_or_default();
            let behind = vec![(there, peer.only_there_transactions)];
            return asked(name, Ok(AtPeer { behind, other: Vec::new() }), executed).pop();
        }
        let is_recent = |at: Timestamp| now.as_second() - at.as_second() <= ASKED_WITHIN_SECONDS;
        match peer.asked_at {
            Some(at) if is_recent(at) => None,
            Some(at) => {
                Some(not_asked(name, &format!("the daemon asked it last at {at}; --config asks it now")))
            }
            None => Some(not_asked(name, "the daemon has not asked it since it began; --config asks it now")),
        }
    };
    source.peers.iter().filter_map(of).collect()
}

fn alone_there(peer: &str, what: &str) -> String {
    format!(
        "the peer {peer} alone holds {what}: they are neither in this copy nor on the target. Run binlogd rescue on its machine; \
         or start binlogd here, which fetches what follows the end of the copy, and do this again"
    )
}

fn not_asked(peer: &str, why: &str) -> String {
    format!(
        "the peer {peer} was not asked, and may hold acknowledged transactions that are neither in this copy nor on the target: {why}. \
         Start it and do this again; --without-peers goes on where it is gone for good"
    )
}
