//! What is configured, checked: the configuration as the rest of binlogd sees it.

use super::password;
use super::point::Point;
use super::privileges::Privileges;
use super::space::DiskWarn;
use super::value::{HostPort, Start};
use archive::keys::{Identities, KeyError};
use archive::remote::{Location, Options};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use wire::{Secret, TlsOptions};

/// Everything that `binlogd run` is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Folder that holds one folder a source. A relative path in a file counts from the file's own folder.
    pub data_dir: PathBuf,
    /// Free space of its file system below which to warn.
    pub disk_warn: DiskWarn,
    /// Whether sealed files get search indexes.
    pub search_index: bool,
    /// Status, metrics and health over HTTP.
    pub admin: AdminConfig,
    /// What binlogd writes to standard error about itself.
    pub log: LogConfig,
    /// Replicas and log readers.
    pub serve: ServeConfig,
    /// When old files are deleted.
    pub retention: RetentionConfig,
    /// Where history is kept for good; `None` when nowhere.
    pub archive: Option<ArchiveConfig>,
    /// The servers to copy. Never empty; names are unique.
    pub sources: Vec<SourceConfig>,
}

/// The `[admin]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminConfig {
    /// Address of the HTTP listener; `None` when the operator wrote `off`.
    pub listen: Option<SocketAddr>,
    /// Files of the certificate and of its private key, for HTTPS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Whether the page can change something: stop and start receiving, end readers, drop slots.
    pub write: bool,
    /// Who may see it; nobody named: whoever reaches it.
    pub users: Vec<AdminUser>,
}

/// One `[[admin.user]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminUser {
    /// With which one logs in.
    pub name: String,
    /// What tells that it is the user.
    pub proof: Proof,
    /// Whether the user may change something, where the page can.
    pub write: bool,
}

/// The `[serve]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeConfig {
    /// Address of the listener for readers; `None` when nobody is served.
    pub listen: Option<SocketAddr>,
    /// Files of the certificate and of its private key, for TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Whether to make a certificate where none is configured.
    pub auto_generate_certs: bool,
    /// Whether to refuse readers that do not encrypt. Only with `tls` or a certificate that is made.
    pub require_tls: bool,
    /// Most connections at a time that have logged in.
    pub max_connections: u32,
    /// Failed logins from one address within a minute after which it is refused.
    pub max_failed_logins: u32,
    /// Longest statement, in bytes.
    pub max_statement_bytes: u32,
    /// Whether a replica with a UUID has a slot of that name.
    pub slots: bool,
    /// Who may read. Where nobody is named, the accounts of the sources count.
    pub users: Vec<ServeUser>,
}

/// The `[retention]` section. Without a rule nothing is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionConfig {
    /// Files that were sealed longer ago than this go.
    pub max_age: Option<Duration>,
    /// As long as the files of a source have more bytes than this, the oldest goes.
    pub max_bytes: Option<u64>,
    /// As long as there are more files of a source than this, the oldest goes.
    pub max_files: Option<u32>,
    /// A slot of which nobody has read for so long keeps nothing.
    pub slot_max_age: Duration,
    /// A slot keeps at most so many bytes up to the end of the log.
    pub slot_max_bytes: Option<u64>,
    /// So much before its place a slot keeps too; with zero, the file before and no more.
    pub slot_margin: Duration,
}

/// The `[archive]` section, where it has a `url`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveConfig {
    /// Bucket, container or folder.
    pub location: Location,
    /// How it is reached. They mean something there.
    pub options: Options,
    /// Of zstd, 1..=19.
    pub level: u32,
    /// Public keys of age or SSH for which objects are encrypted; each is sound.
    pub recipients: Vec<String>,
    /// A file with further ones; it could be read and each of its keys is sound.
    pub recipients_file: Option<PathBuf>,
    /// Files with private keys, which open what is encrypted when it is read back here; each could be read without a passphrase.
    pub identity: Vec<PathBuf>,
    /// Longest time that durable bytes of a live file are not in the archive, while it works.
    pub interval: Duration,
    /// Most bytes a second that are uploaded.
    pub bandwidth: Option<u64>,
    /// Most uploads at a time, 1..=32.
    pub concurrency: u32,
    /// Most bytes of fetched files that are kept on this disk for readers, of each source.
    pub cache_size: u64,
    /// Whether the operator vouches that no other binlogd writes to it: then its store may ignore conditions.
    pub single_writer: bool,
    /// How often the archive is verified; zero for never.
    pub verify_interval: Duration,
    /// One of so many objects is read back each time; at least 1.
    pub verify_sample: u32,
}

impl ArchiveConfig {
    /// What opens what is encrypted: the keys of `identity`.
    ///
    /// # Errors
    /// When one of its files, which could be read when the configuration was, cannot be read any more.
    pub fn identities(&self) -> Result<Identities, KeyError> {
        let mut identities = Identities::new();
        for file in &self.identity {
            identities.add_unattended(file)?;
        }
        Ok(identities)
    }
}

impl ServeConfig {
    /// Room for connections that have not logged in, where so many that have may be there.
    pub fn strangers_beside(readers: u32) -> u32 {
        (readers / 4).clamp(4, 250)
    }
}

/// One `[[serve.user]]`: an account of readers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeUser {
    /// With which a reader logs in.
    pub name: String,
    /// What tells that it is the reader.
    pub proof: Proof,
    /// The sources that it may read. Never empty; each is configured.
    pub sources: Vec<String>,
    /// What it may do.
    pub privileges: Privileges,
    /// The slot that the user's readers have, if it names one.
    pub slot: Option<String>,
    /// How far its dumps go.
    pub bounds: Bounds,
}

/// What holds the dumps of an account back although the log goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The first transaction that is not sent, or comes behind it.
    pub stop_before: Option<Point>,
    /// The last that is sent. Never beside `stop_before`.
    pub stop_after: Option<Point>,
    /// A transaction is sent when so much time has passed since its commit. Zero: at once.
    pub delay: Duration,
}

/// What binlogd knows of a reader's password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The password.
    Password(Secret),
    /// What one method of authentication needs instead; checked.
    Hash(Secret),
}

/// The `[log]` section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// Least severe message that is written.
    pub level: LogLevel,
    /// Shape of a message.
    pub format: LogFormat,
}

/// Severity from which messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Only what needs an operator.
    Error,
    /// Also what may need one soon.
    Warn,
    /// Also each change of state.
    Info,
    /// Also each step of the protocol.
    Debug,
    /// Also each packet.
    Trace,
}

/// Shape of a log message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One readable line a message.
    Text,
    /// One JSON object a line.
    Json,
}

/// One `[[source]]`: a server whose binlog is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceConfig {
    /// Name in status and metrics, and of the folder below `data_dir`: `[A-Za-z0-9_.-]{1,64}`, no dot in front.
    pub name: String,
    /// Addresses of the same logical source, tried in order. Never empty, no address twice.
    pub hosts: Vec<HostPort>,
    /// Ports for readers of other binlogds of this source. May be empty; no address twice.
    pub peers: Vec<HostPort>,
    /// Account with the REPLICATION SLAVE privilege.
    pub user: String,
    /// Its password, from whichever key or variable gave it; empty for an account without one.
    pub password: Secret,
    /// The file that it was read from. It is read again at each connection, so that a new password in it counts from then on.
    pub password_file: Option<PathBuf>,
    /// Replication server id, 1..=4294967295. `None`: binlogd generates one and remembers it in the data folder.
    pub server_id: Option<u32>,
    /// Where to begin while nothing has been copied from this source yet.
    pub start: Start,
    /// How safe a transaction must be before it is acknowledged.
    pub fsync_mode: FsyncMode,
    /// Longest time that written bytes stay unsynced when no acknowledgement asks for a sync.
    pub fsync_interval: Duration,
    /// How many different receivers further down must have made a transaction durable before it is acknowledged; 0 for none.
    pub ack_after_replicas: u32,
    /// How long they are waited for.
    pub ack_timeout: Duration,
    /// What happens then.
    pub ack_timeout_action: AckTimeoutAction,
    /// Whether to register as a semi-synchronous replica.
    pub semi_sync: bool,
    /// How often a quiet source sends a heartbeat.
    pub heartbeat_period: Duration,
    /// Silence after which the connection counts as lost. Always > `heartbeat_period`.
    pub net_read_timeout: Duration,
    /// How often to look at the source over a connection of its own. Zero: never.
    pub watch_interval: Duration,
    /// Longest time for one attempt to connect and authenticate.
    pub connect_timeout: Duration,
    /// Pause after the first failed attempt to connect.
    pub backoff_min: Duration,
    /// Longest pause between attempts. Always >= `backoff_min`.
    pub backoff_max: Duration,
    /// Protection of the connection.
    pub tls: TlsOptions,
    /// What to do when the source has purged what is still missing here.
    pub on_gap: OnGap,
    /// What to do when the source lacks what the copy holds.
    pub on_fork: OnFork,
    /// What to do when a server answers that has nothing in common with the copy.
    pub on_stranger: OnStranger,
    /// Whether its history is archived, where there is an archive.
    pub archive: bool,
}

impl SourceConfig {
    /// The password now, and what is wrong with its file, if something is: then it is the one of the start, as far as is
    /// known. A file that is gone for a moment, or for good, must not be what keeps binlogd from its source.
    pub fn password_now(&self) -> (Secret, Option<String>) {
        let Some(path) = &self.password_file else { return (self.password.clone(), None) };
        match password::read_file(path) {
            Ok(secret) => (secret, None),
            Err(problem) => {
                (self.password.clone(), Some(format!("password_file \"{}\" {problem}", path.display())))
            }
        }
    }
}

/// How safe a transaction must be before it is acknowledged. The numbers are the configuration's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsyncMode {
    /// Acknowledge what is in the page cache: it survives a crash of binlogd, not of its machine.
    WriteThenAcknowledge = 0,
    /// Acknowledge only what fdatasync has covered.
    SyncThenAcknowledge = 1,
}

/// What to do when receivers further down have not confirmed within `ack_timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckTimeoutAction {
    /// Hold the acknowledgement, and say so: the source's own timeout decides.
    Wait,
    /// Acknowledge alone, and say so, until they have caught up.
    GoOn,
}

impl AckTimeoutAction {
    /// As the configuration has it.
    pub fn word(self) -> &'static str {
        match self {
            AckTimeoutAction::Wait => "wait",
            AckTimeoutAction::GoOn => "go_on",
        }
    }
}

/// What to do when the source has purged transactions that were not copied, or cannot read them any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnGap {
    /// Stop this source in a clear state and wait for an operator.
    Stop,
    /// Record the missing set and begin a new timeline at the oldest file that the source still has, or behind the one that it
    /// cannot read.
    Record,
}

/// What to do when the source lacks transactions that the copy holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFork {
    /// Copy and acknowledge it, and say what it lacks.
    Follow,
    /// Copy it, and acknowledge nothing but what is handed back until nothing is lacking or the loss is accepted.
    Withhold,
    /// Stop this source in a clear state and wait for an operator.
    Stop,
}

/// What to do when a server answers that has nothing in common with the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStranger {
    /// Not to take it for the source.
    Refuse,
    /// Begin a history of its own for it.
    Follow,
}

#[cfg(test)]
mod tests {
    use crate::tests::{SOURCE, parse};

    #[test]
    fn a_password_does_not_show_in_debug_output() {
        let config = parse(&format!("{SOURCE}password = \"hunter2\"\n")).unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
