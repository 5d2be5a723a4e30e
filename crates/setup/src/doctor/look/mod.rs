//! What the doctor looks at: a server with the copy beside it, another binlogd, the port for readers, the archive. Nothing is changed but
//! for the small objects by which an archive is tried out.

#![allow(clippy::disallowed_methods, reason = "it looks at this machine as it is, and stores nothing")]

mod archive;
mod archive_held;
mod logs;
mod nodes;
mod peers;
mod serve;

use super::nodes::Node;
use super::server::facts::Facts;
use super::{Finding, Level, Nodes, Running, Wanted, disk, examine, forks, gaps, held};
use binlog::folder::{read_identity, timelines};
use binlog::forks::{Fate, Forks};
use binlog::storage::posix::PosixStorage;
use binlog::timeline::gaps::{Gap, Gaps};
use binlog::timeline::held::HeldGtids;
use config::{Config, HostPort, OnGap, SourceConfig, Start};
use source::identify::SourceIdentity;
use status::{DaemonStatus, DiskSpace};
use std::net::IpAddr;
use std::path::Path;
use wire::{ConnectOptions, Connection, WireError};

pub use archive::look as at_archive;
pub use serve::look as at_port;

/// Looks at another binlogd of the source.
pub fn at_peer(source: &SourceConfig, peer: &HostPort, config: &Config) -> Vec<Finding> {
    peers::look(source, peer, &config.data_dir.join(&source.name), &connect)
}

/// Hears the other nodes of the source's quorum, each once, in the order of the configuration.
pub fn hear_nodes(source: &SourceConfig) -> Vec<(String, Node)> {
    nodes::hear(source, connect)
}

/// Judges the other nodes of the source's quorum by what was heard of them.
pub fn at_nodes(source: &SourceConfig, heard: &[(String, Node)], config: &Config) -> Vec<Finding> {
    // That it cannot be read is told of the source.
    let identity = read_identity(&PosixStorage, &config.data_dir.join(&source.name)).ok().flatten();
    super::nodes::examine(identity.as_ref().map(|identity| identity.replica_uuid.as_str()), heard)
}

/// Looks at one server of a source, and at the copy beside it. `running`: what a daemon of the data folder says, if one runs; `nodes`: what
/// was heard of the other nodes of its quorum.
pub fn at_source(
    source: &SourceConfig,
    host: &HostPort,
    config: &Config,
    running: Option<&DaemonStatus>,
    nodes: &[(String, Node)],
) -> Vec<Finding> {
    let data_dir = &*config.data_dir;
    let disk = disk(config);
    // Where nothing else can be told, only what is wrong is.
    let mut findings = Vec::from_iter(disk.clone().filter(|disk| disk.level != Level::Ok));
    let identity = read_identity(&PosixStorage, &data_dir.join(&source.name)).unwrap_or_else(|error| {
        findings.push(Finding::error(format!("data folder: {error}")));
        None
    });
    let wanted = Wanted {
        server_id: source.server_id.or(identity.as_ref().map(|identity| identity.server_id)),
        quorum: (!source.quorum.is_empty()).then(|| Nodes {
            count: source.quorum.len() as u64 + 1,
            uuids: nodes
                .iter()
                .filter_map(|(_, node)| node.uuid().map(str::to_owned))
                .chain(identity.as_ref().map(|identity| identity.replica_uuid.clone()))
                .collect(),
        }),
        replica_uuid: identity.map(|identity| identity.replica_uuid),
        starts_at_latest: source.start == Start::Latest && has_no_timeline(&data_dir.join(&source.name)),
        hosts: source.hosts.len(),
        semi_sync: source.semi_sync,
        tls: source.tls.mode,
        backoff_max: source.backoff_max,
        running: running.and_then(|status| of_source(status, &source.name)),
    };
    match ask(source, host) {
        Ok((facts, server)) => {
            findings.push(Finding::ok(format!("connected to {host} as {}", facts.quoted_account())));
            findings.extend(disk.filter(|disk| disk.level == Level::Ok));
            findings.extend(examine(&facts, &wanted));
            if facts.refusal(wanted.hosts).is_none() {
                findings.extend(compare(source, host, &data_dir.join(&source.name), &facts, &server));
            }
            findings.extend(given_twice(&data_dir.join(&source.name)));
            findings.extend(recorded_gaps(&data_dir.join(&source.name)));
        }
        Err(error) => findings.push(Finding::error(format!("cannot look at {host}: {error}"))),
    }
    findings
}

/// The file system of the data folder, or of what is there of its path before the first start.
fn disk(config: &Config) -> Option<Finding> {
    let there = config.data_dir.ancestors().find(|folder| folder.is_dir())?;
    let space = DiskSpace::of(there).ok()?;
    let folder = there.display().to_string();
    Some(disk::examine(&folder, space.free, space.size, config.disk_warn.threshold(space.size)))
}

/// What the daemon says of the source.
fn of_source(status: &DaemonStatus, name: &str) -> Option<Running> {
    let source = status.sources.iter().find(|source| source.name == name)?;
    Some(Running { is_receiving: source.is_receiving(), state: source.state.to_string() })
}

/// A folder that cannot be read is told elsewhere.
fn has_no_timeline(folder: &Path) -> bool {
    !folder.is_dir() || timelines(&PosixStorage, folder).is_ok_and(|timelines| timelines.is_empty())
}

/// Holds the copy against the server. Nothing to say where there is no copy yet.
fn compare(
    source: &SourceConfig,
    host: &HostPort,
    folder: &Path,
    facts: &Facts,
    server: &SourceIdentity,
) -> Vec<Finding> {
    if has_no_timeline(folder) {
        return Vec::new();
    }
    let unreadable = |error| vec![Finding::error(format!("the copy cannot be read: {error}"))];
    let held = match HeldGtids::read(&PosixStorage, folder, server.executed.kind()) {
        Ok(held) => held.filter(|_| server.has_gtids),
        Err(error) => return unreadable(error),
    };
    let mut findings = Vec::new();
    if let Some(held) = &held {
        // What was never copied is told by itself.
        let gaps = match Gaps::read(&PosixStorage, folder) {
            Ok(gaps) => gaps,
            Err(error) => return unreadable(error),
        };
        let lacked = server.lacks(&held.expected_of(&server.uuid)).subtract(gaps.never_held());
        let is_read_only = facts.is_on("read_only") || facts.is_on("super_read_only");
        findings.push(held::examine(&lacked, is_read_only && server.uuid != held.newest_uuid));
    }
    let server = logs::Server {
        host,
        identity: server,
        timeout: source.connect_timeout,
        connect: &|| connect(source, host),
    };
    match logs::continuation(folder, held.as_ref(), &server) {
        Ok(found) => {
            findings.extend(found.map(|found| super::logs::examine(&found, source.on_gap == OnGap::Record)));
        }
        Err(error) => findings.extend(unreadable(error)),
    }
    findings
}

/// What the copy itself tells: GTIDs under which it holds two transactions. Nothing to say where there are none.
fn given_twice(folder: &Path) -> Option<Finding> {
    if !folder.is_dir() {
        return None;
    }
    let found = match Forks::read(&PosixStorage, folder, || true) {
        Ok(found) => found?,
        Err(error) => return Some(Finding::error(format!("the copy cannot be read: {error}"))),
    };
    forks::examine(found.count(Fate::GivenTwice), &found.gtids(Fate::GivenTwice).to_line())
}

/// What the copy never had.
fn recorded_gaps(folder: &Path) -> Vec<Finding> {
    if has_no_timeline(folder) {
        return Vec::new();
    }
    let gaps = match Gaps::read(&PosixStorage, folder) {
        Ok(gaps) => gaps,
        Err(error) => return vec![Finding::error(format!("the copy cannot be read: {error}"))],
    };
    let judge = |gap: &Gap| {
        let after = gap.after.as_ref().map(ToString::to_string);
        let before = format!("{} of {}", gap.first_file, gap.timeline);
        gaps::examine(after.as_deref(), &before, &gap.missing.to_line())
    };
    gaps.open.iter().map(judge).collect()
}

fn connect(source: &SourceConfig, host: &HostPort) -> Result<Connection, WireError> {
    Connection::connect(&ConnectOptions {
        host: host.host.clone(),
        port: host.port,
        user: source.user.clone(),
        password: source.password_now().0,
        connect_timeout: source.connect_timeout,
        tls: source.tls.clone(),
    })
}

fn ask(source: &SourceConfig, host: &HostPort) -> Result<(Facts, SourceIdentity), WireError> {
    let mut connection = connect(source, host)?;
    let address = host.host.parse::<IpAddr>();
    let loopback = host.host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    let facts = Facts::collect(&mut connection, loopback)?;
    Ok((facts, SourceIdentity::ask(&mut connection)?))
}
