//! What answers are made of: the copy, its source, the readers, and the session's client, as whoever serves knows them.

use codec::ServerKind;
use config::Privileges;
use std::time::Duration;

/// What is true at the moment. Every call may give another answer; an implementation reads memory, or the heads of
/// files for [`Facts::gtid_position`].
pub trait Facts {
    /// The kind of the source, and so of the server that binlogd presents.
    fn kind(&self) -> ServerKind;
    /// The source's own version text, as in our greeting: `8.0.31`, `11.8.6-MariaDB-log`.
    fn version(&self) -> String;
    /// The `server_id` that binlogd presents. A MySQL replica refuses a source that has its own.
    fn server_id(&self) -> u32;
    /// The `server_uuid` that binlogd presents; MariaDB has none.
    fn server_uuid(&self) -> Option<String>;
    /// What the source itself answered for a system variable when it was asked last; `None` when it was not asked for
    /// this one. Names are in lower case, values as SHOW VARIABLES has them. Only for variables whose value is the
    /// source's matter, as `binlog_row_image`.
    fn source_variable(&self, name: &str) -> Option<String>;
    /// Name of this machine.
    fn hostname(&self) -> String;
    /// The port at which readers are served.
    fn port(&self) -> u16;
    /// The longest packet that is read from a client, in bytes.
    fn max_allowed_packet(&self) -> u64;
    /// How long a session may be silent (`wait_timeout`).
    fn wait_timeout(&self) -> Duration;
    /// How long a write to a client may take (`net_write_timeout`).
    fn net_write_timeout(&self) -> Duration;
    /// Most connections at a time (`max_connections`).
    fn connections_max(&self) -> u32;
    /// Whether who does not encrypt is refused (`require_secure_transport`).
    fn requires_tls(&self) -> bool;
    /// The moment, in microseconds since 1970 UTC.
    fn now(&self) -> i64;
    /// 16 random bytes, for UUID().
    fn random(&self) -> [u8; 16];
    /// Whole seconds since the daemon started.
    fn uptime_seconds(&self) -> u64;
    /// The binary logs that readers may have, the oldest first. The size of the last is the end that is published.
    fn binary_logs(&self) -> Vec<LogFile>;
    /// MySQL: the GTIDs that readers may have. MariaDB: the position, as `gtid_binlog_pos` has it. In one line.
    fn gtid_executed(&self) -> String;
    /// MySQL: the GTIDs before the oldest binary log. Empty for MariaDB.
    fn gtid_purged(&self) -> String;
    /// MariaDB's `gtid_binlog_state`. Empty for MySQL.
    fn gtid_binlog_state(&self) -> String;
    /// What readers may have of each timeline, the oldest first: one [`Extent`](binlog::timeline::extent::Extent) a line.
    fn timelines(&self) -> String;
    /// The same with their descriptions, as [`binlog::timeline::described`] has it.
    fn history(&self) -> String;
    /// MariaDB's `binlog_gtid_pos(file, offset)`: the GTID position before this byte of this file, inside a transaction with
    /// that one; `None` where there is no such file, or no event begins there.
    fn gtid_position(&self, file: &str, offset: u64) -> Option<String>;
    /// Who has registered as a replica.
    fn replicas(&self) -> Vec<Replica>;
    /// Who is connected, the asking session included.
    fn sessions(&self) -> Vec<SessionLine>;
    /// Our own receiving.
    fn upstream(&self) -> Upstream;
    /// Acknowledgements that readers owe us.
    fn semi_sync(&self) -> SemiSync;
}

/// A binary log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// Its name, without a folder.
    pub name: String,
    /// Its size, in bytes.
    pub size: u64,
}

/// A registered replica, as it said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Its `server_id`.
    pub server_id: u32,
    /// Its `report_host`; empty when it gave none.
    pub host: String,
    /// Its `report_port`.
    pub port: u16,
    /// Its UUID; empty when it gave none.
    pub uuid: String,
}

/// A connection of the process list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLine {
    /// As CONNECTION_ID() of that session.
    pub connection_id: u32,
    /// Its user.
    pub user: String,
    /// Address and port of its client.
    pub host: String,
    /// `Query`, `Sleep`, `Binlog Dump`, `Binlog Dump GTID`.
    pub command: String,
    /// Whole seconds since the command began.
    pub seconds: u64,
    /// What it is doing; for a dump where it is.
    pub state: String,
    /// The statement; `None` when there is none.
    pub statement: Option<String>,
}

/// How receiving stands, as in the columns of SHOW REPLICA STATUS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upstream {
    /// What is being done or waited for, in words.
    pub state: String,
    /// Host of the source; empty before the first attempt.
    pub host: String,
    /// Port of the source.
    pub port: u16,
    /// The user that we log in as.
    pub user: String,
    /// Whether events are being received, whether a connection is being tried, or whether neither.
    pub receiving: Receiving,
    /// The file that is received.
    pub file: String,
    /// Offset in it up to which events have arrived, in bytes.
    pub received: u64,
    /// Offset in it up to which events are durable, in bytes.
    pub durable: u64,
    /// GTIDs that are durable, in one line.
    pub durable_gtids: String,
    /// The source's `server_id`; 0 before the first connection.
    pub server_id: u32,
    /// The source's `server_uuid`; empty for MariaDB.
    pub server_uuid: String,
    /// Whole seconds that the copy is behind the source; `None` when not known.
    pub seconds_behind: Option<u64>,
    /// Number of the error; 0 for none.
    pub error_number: u32,
    /// What keeps events from being received; empty while they are, and when an operator has stopped receiving.
    pub error: String,
    /// When something failed last, in microseconds since 1970 UTC; `None` without an error.
    pub error_time: Option<i64>,
    /// TLS version of the connection; `None` when it is not encrypted, or there is none.
    pub tls: Option<String>,
}

/// Whether events arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Receiving {
    /// Stopped.
    #[default]
    No,
    /// A connection is being tried.
    Connecting,
    /// The source sends.
    Yes,
}

/// Semi-sync between binlogd and its own replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SemiSync {
    /// Whether readers may take part at all (`rpl_semi_sync_source_enabled`).
    pub enabled: bool,
    /// How many of them are waited for (`rpl_semi_sync_source_wait_for_replica_count`).
    pub wait_for: u32,
    /// How long they are waited for (`rpl_semi_sync_source_timeout`).
    pub timeout: Duration,
    /// Readers that take part now.
    pub clients: u64,
    /// Acknowledgements that are waited for now.
    pub waiting: u64,
    /// Transactions that were acknowledged by enough of them in time.
    pub acknowledged: u64,
    /// Transactions that were not.
    pub not_acknowledged: u64,
}

/// The session's client, which does not change while the session lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// CONNECTION_ID().
    pub connection_id: u32,
    /// The user as logged in.
    pub user: String,
    /// Where from: an address, without a port.
    pub host: String,
    /// The host pattern of the account, as CURRENT_USER() and SHOW GRANTS have it: `%`.
    pub account_host: String,
    /// What the account may do.
    pub privileges: Privileges,
    /// TLS version and cipher of the connection; `None` without TLS.
    pub tls: Option<(String, String)>,
}
