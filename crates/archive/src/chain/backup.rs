//! A backup of the source's data beside its log: what is known of it beside its bytes.
//!
//! Its stream stands in pieces, as a binary log does, in a folder of its own. A commit names it when all of it is in the store, so a
//! backup that broke is never there; what was uploaded of it is named by nothing, and goes as such objects do.

use binlog::timeline::kind_name;
use codec::ServerKind;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The program that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// MySQL's.
    Mysqldump,
    /// MariaDB's.
    MariadbDump,
    /// MariaDB's copy of the data folder.
    MariadbBackup,
    /// MySQL's CLONE plugin, into a folder on the server's machine.
    Clone,
    /// A command of the operator's.
    Command,
}

/// What the stream is, and so how it is put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stream {
    /// Statements, for the server's own client.
    Sql,
    /// A data folder, which `mbstream -x` unpacks and `mariadb-backup --prepare` makes ready.
    Mbstream,
    /// A data folder that a server of the same version starts on, as a tar.
    Tar,
    /// What a command of the operator's wrote.
    Other,
}

/// The moment of the source that a backup holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupPoint {
    /// GTIDs executed: MySQL's set, MariaDB's newest of each domain. Empty where the tool told none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gtids: String,
    /// The binary log of the server that was backed up; empty where the tool told none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// Offset in it, in bytes.
    #[serde(default)]
    pub position: u64,
}

/// What is known of a backup beside its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupRecord {
    /// `YYYYMMDDThhmmssZ-` and eight hexadecimal digits: a later one comes later in the order of bytes.
    pub id: String,
    /// Who made it.
    pub tool: Tool,
    /// First line of what the program says of its version; empty where it says nothing.
    pub tool_version: String,
    /// What it is.
    pub stream: Stream,
    /// The server that was backed up.
    #[serde(with = "kind_name")]
    pub server_kind: ServerKind,
    /// `@@version`.
    pub server_version: String,
    /// `@@server_uuid`; `mariadb-<server_id>` for MariaDB, which has none.
    pub server_uuid: String,
    /// When the tool was started, by the clock of the machine that ran it.
    pub started: Timestamp,
    /// When it had ended well.
    pub finished: Timestamp,
    /// The moment that it holds, by the tool's own word.
    pub point: BackupPoint,
    /// What an operator should know of it, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

impl Tool {
    /// The program's name.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Mysqldump => "mysqldump",
            Tool::MariadbDump => "mariadb-dump",
            Tool::MariadbBackup => "mariadb-backup",
            Tool::Clone => "clone",
            Tool::Command => "command",
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for BackupPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.gtids, &*self.file) {
            ("", "") => f.write_str("an unknown point"),
            ("", file) => write!(f, "{file}:{}", self.position),
            (gtids, _) => f.write_str(gtids),
        }
    }
}
