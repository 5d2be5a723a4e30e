//! What an account needs for a statement, and what it has, in the words of the server that is presented.

use super::error;
use crate::answer::session_state::context::Context;
use crate::sql::version_number;
use codec::ServerKind;
use codec::packet::ErrPacket;
use config::Privileges;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Privilege {
    /// To read binary logs, or to see who does.
    Read,
    /// To see how far the binary logs and replication are.
    ReadStatus,
    /// To purge.
    Purge,
    /// To start and stop receiving.
    Control,
}

impl Privilege {
    fn is_in(self, privileges: Privileges) -> bool {
        match self {
            // Who controls replication sees how it stands.
            Privilege::ReadStatus => privileges.read || privileges.control,
            Privilege::Read => privileges.read,
            Privilege::Purge => privileges.purge,
            Privilege::Control => privileges.control,
        }
    }

    /// As the server of this kind names what lacks (`ER_SPECIFIC_ACCESS_DENIED_ERROR`).
    fn in_words(self, kind: ServerKind) -> &'static str {
        match (self, kind) {
            (Privilege::Read, _) => "REPLICATION SLAVE",
            (Privilege::ReadStatus, ServerKind::MySql) => "SUPER, REPLICATION CLIENT",
            (Privilege::ReadStatus, ServerKind::MariaDb) => "SUPER, BINLOG MONITOR",
            (Privilege::Purge, ServerKind::MySql) => "SUPER or BINLOG_ADMIN",
            (Privilege::Purge, ServerKind::MariaDb) => "SUPER, BINLOG ADMIN",
            (Privilege::Control, ServerKind::MySql) => "SUPER or REPLICATION_SLAVE_ADMIN",
            (Privilege::Control, ServerKind::MariaDb) => "SUPER, REPLICATION SLAVE ADMIN",
        }
    }

    /// The key that gives it.
    fn word(self) -> &'static str {
        match self {
            Privilege::Read | Privilege::ReadStatus => "read",
            Privilege::Purge => "purge",
            Privilege::Control => "control",
        }
    }
}

/// # Errors
/// 1227 for an account that may not.
pub(super) fn need(context: &Context, privilege: Privilege) -> Result<(), ErrPacket> {
    allow(context.client.privileges, privilege, context.facts.kind())
}

/// Whether an account may have a dump.
///
/// # Errors
/// 1227 if not.
pub fn may_dump(privileges: Privileges, kind: ServerKind) -> Result<(), ErrPacket> {
    allow(privileges, Privilege::Read, kind)
}

fn allow(privileges: Privileges, needed: Privilege, kind: ServerKind) -> Result<(), ErrPacket> {
    if needed.is_in(privileges) {
        return Ok(());
    }
    let why = format!("In binlogd's configuration: privileges = [\"{}\"] of a [[serve.user]]", needed.word());
    Err(error::access_denied(needed.in_words(kind), &why))
}

/// What SHOW GRANTS lists, one GRANT an element: MySQL shows privileges that were added at run time apart.
pub(super) fn grants(kind: ServerKind, version: &str, privileges: Privileges) -> Vec<String> {
    let has_roles = match kind {
        ServerKind::MySql => version_number(version) >= 80_000,
        ServerKind::MariaDb => version_number(version) >= 100_502,
    };
    let (mut fixed, mut dynamic) = (Vec::new(), Vec::new());
    if privileges.control {
        fixed.push("PROCESS");
    }
    if privileges.read {
        fixed.push("REPLICATION SLAVE");
    }
    if privileges.read || privileges.control {
        fixed.push(if kind == ServerKind::MariaDb && has_roles {
            "BINLOG MONITOR"
        } else {
            "REPLICATION CLIENT"
        });
    }
    match (kind, has_roles) {
        (_, false) if privileges.purge || privileges.control => fixed.push("SUPER"),
        (_, false) => {}
        (ServerKind::MySql, true) => {
            if privileges.purge {
                dynamic.push("BINLOG_ADMIN");
            }
            if privileges.control {
                dynamic.extend(["CONNECTION_ADMIN", "REPLICATION_SLAVE_ADMIN"]);
            }
        }
        (ServerKind::MariaDb, true) => {
            if privileges.purge {
                fixed.push("BINLOG ADMIN");
            }
            if privileges.control {
                fixed.extend(["CONNECTION ADMIN", "REPLICATION SLAVE ADMIN"]);
            }
            if privileges.read || privileges.control {
                fixed.push("SLAVE MONITOR");
            }
        }
    }
    let mut grants = vec![if fixed.is_empty() { "USAGE".to_owned() } else { fixed.join(", ") }];
    if !dynamic.is_empty() {
        grants.push(dynamic.join(","));
    }
    grants
}
