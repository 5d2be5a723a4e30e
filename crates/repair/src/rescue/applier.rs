//! Settings of a server that change what is made of a log by whoever applies it there.
//!
//! Each of them may let a restore or a rescue end with rows that the source does not have, and without a word. So each is looked for:
//! where it is not harmless it is set aside for the time and put back, or refused by name. From the servers' manuals and sources
//! (MySQL 5.7 to 9.7, MariaDB 10.11 and 11.8); docs/recovery/restore.md has the same table, and says what the log itself carries.

use codec::ServerKind;
use source::own_session::{is_same, literal};
use std::fmt;
use wire::{Connection, WireError};

/// Who applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applier {
    /// The server's own replication.
    Channel,
    /// A session of ours, whose own settings [`source::own_session`] makes.
    Statements,
}

/// What is done about a setting that is not harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// It is set to the first of the harmless values for the time, and put back.
    SetAside,
    /// Nothing is applied: it is no variable that can be changed, or what is right the log does not say.
    Refuse,
}

/// One setting. A server has it by one of the names, or by two that mean the same.
#[derive(Debug)]
pub struct ApplierSetting {
    pub names: &'static [&'static str],
    /// Of servers of which kind.
    kinds: &'static [ServerKind],
    /// Whom it concerns.
    appliers: &'static [Applier],
    /// Values that do no harm, as SHOW VARIABLES shows them.
    harmless: &'static [&'static str],
    pub remedy: Remedy,
    /// What it does otherwise, of the log.
    pub does: &'static str,
}

const MYSQL: &[ServerKind] = &[ServerKind::MySql];
const MARIADB: &[ServerKind] = &[ServerKind::MariaDb];
const ANY: &[ServerKind] = &[ServerKind::MySql, ServerKind::MariaDb];
const BOTH: &[Applier] = &[Applier::Channel, Applier::Statements];
const CHANNEL: &[Applier] = &[Applier::Channel];
const STATEMENTS: &[Applier] = &[Applier::Statements];

macro_rules! settings {
    ($($names:expr, $kinds:ident, $appliers:ident, $harmless:expr, $remedy:ident, $does:expr;)*) => {
        &[$(ApplierSetting {
            names: &$names, kinds: $kinds, appliers: $appliers, harmless: &$harmless, remedy: Remedy::$remedy, does: $does,
        }),*]
    };
}

/// All of them.
pub(crate) const APPLIER_SETTINGS: &[ApplierSetting] = settings! {
    ["replica_skip_errors", "slave_skip_errors"], ANY, CHANNEL, ["OFF"], Refuse,
        "a statement or row that fails with such an error is passed over; it stands in the option file";
    ["replica_exec_mode", "slave_exec_mode"], ANY, BOTH, ["STRICT"], SetAside,
        "a row that is there already is overwritten, one that is not there is passed over";
    ["slave_ddl_exec_mode"], MARIADB, CHANNEL, ["STRICT"], SetAside,
        "CREATE TABLE replaces a table that is there, DROP TABLE passes over one that is not";
    ["slave_run_triggers_for_rbr"], MARIADB, BOTH, ["NO"], SetAside,
        "triggers fire for rows, and what they change stands in the log too";
    ["replica_type_conversions", "slave_type_conversions"], ANY, BOTH, [""], SetAside,
        "values are cut to fit columns of other types";
    ["sql_replica_skip_counter", "sql_slave_skip_counter"], MYSQL, CHANNEL, ["0"], SetAside,
        "so many events are passed over";
    ["init_replica", "init_slave"], ANY, CHANNEL, [""], SetAside,
        "statements that each applying thread runs before the log's";
    ["replicate_events_marked_for_skip"], MARIADB, CHANNEL, ["REPLICATE"], SetAside,
        "what was written with skip_replication = 1 is passed over";
    ["gtid_ignore_duplicates"], MARIADB, CHANNEL, ["OFF"], SetAside,
        "a number at or below one that was seen in its domain is passed over";
    ["enforce_storage_engine"], MARIADB, CHANNEL, ["NULL"], SetAside,
        "tables are made in this engine, whatever the statement says";
    ["system_versioning_asof"], MARIADB, CHANNEL, ["DEFAULT"], SetAside,
        "statements read versioned tables as they were then";
    ["autocommit"], ANY, CHANNEL, ["ON"], SetAside, "applying threads leave transactions open";
    ["completion_type"], ANY, CHANNEL, ["NO_CHAIN"], SetAside,
        "a COMMIT begins another transaction, or ends the session";
    ["transaction_read_only", "tx_read_only"], ANY, CHANNEL, ["OFF"], SetAside, "nothing is written";
    ["event_scheduler"], ANY, STATEMENTS, ["OFF", "DISABLED"], SetAside,
        "an event runs as soon as its CREATE EVENT is handed over";
    ["default_storage_engine"], ANY, BOTH, ["InnoDB"], Refuse,
        "CREATE TABLE without ENGINE makes a table of this engine, and the log does not say which one the source has";
    ["old_mode"], MARIADB, BOTH, ["UTF8_IS_UTF8MB3"], Refuse,
        "it says what utf8 is, how old types are read, and the log does not say how it is on the source";
    ["secure_timestamp"], MARIADB, BOTH, ["NO", "SUPER", "REPLICATION"], Refuse,
        "statements run at the time of this server, not at that of the log; it stands in the option file";
};

/// A setting that is not harmless on a server.
#[derive(Debug)]
pub struct Deviation {
    /// What it does to an applier, and what becomes of it.
    pub setting: &'static ApplierSetting,
    /// The name by which the server has it.
    pub name: &'static str,
    /// As SHOW VARIABLES shows it.
    is: String,
}

impl Deviation {
    /// As SET takes it.
    pub fn was(&self) -> String {
        // Of these SHOW shows nothing where nothing is set.
        let is_null = self.is.is_empty() && self.setting.harmless == ["NULL"];
        if is_null { "NULL".to_owned() } else { literal(&self.is) }
    }

    /// What does no harm, as SET takes it.
    pub fn harmless(&self) -> String {
        literal(self.setting.harmless[0])
    }
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {:?}: {}", self.name, self.is, self.setting.does)
    }
}

/// What on a server is not harmless for that applier, but for what is accepted by name.
///
/// # Errors
/// When it cannot be asked.
pub fn deviations(
    connection: &mut Connection,
    kind: ServerKind,
    applier: Applier,
    accepted: &[String],
) -> Result<Vec<Deviation>, WireError> {
    let all = connection.query("SHOW GLOBAL VARIABLES")?;
    let value = |name: &str| {
        let row = (0..all.rows.len()).find(|row| all.get(*row, "Variable_name") == Some(name))?;
        Some(all.get(row, "Value").unwrap_or_default().to_owned())
    };
    let concerns = |setting: &&ApplierSetting| {
        setting.kinds.contains(&kind)
            && setting.appliers.contains(&applier)
            && !setting.names.iter().any(|name| accepted.iter().any(|accepted| accepted == name))
    };
    let found = APPLIER_SETTINGS.iter().filter(concerns).filter_map(|setting| {
        let (name, is) = setting.names.iter().find_map(|name| Some((*name, value(name)?)))?;
        let is_harmless = setting.harmless.iter().any(|harmless| is_same(harmless, &is));
        (!is_harmless).then_some(Deviation { setting, name, is })
    });
    Ok(found.collect())
}

/// What is refused by name among them, in words; `None` where nothing is.
pub fn refusal(deviations: &[Deviation]) -> Option<String> {
    let refused: Vec<String> = deviations
        .iter()
        .filter(|deviation| deviation.setting.remedy == Remedy::Refuse)
        .map(|deviation| format!("\n  {deviation}. Set it to {} there", deviation.harmless()))
        .collect();
    (!refused.is_empty()).then(|| {
        format!(
            "settings of the target change what is made of the log:{}; or go on with it as it is: --accept NAME",
            refused.concat()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_same_table() {
        let page = include_str!("../../../../docs/recovery/restore.md");
        for setting in APPLIER_SETTINGS {
            let of_kinds = match setting.kinds {
                [ServerKind::MySql] => " (MySQL)",
                [ServerKind::MariaDb] => " (MariaDB)",
                _ => "",
            };
            let names = setting.names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let remedy = match (setting.remedy, setting.appliers) {
                (Remedy::Refuse, _) => "refused",
                (Remedy::SetAside, [Applier::Statements]) => "set aside with `--statements`",
                (Remedy::SetAside, _) => "set aside",
            };
            let row = format!("| {names}{of_kinds} | {} | {remedy} |", setting.does);
            assert!(page.contains(&row), "docs/recovery/restore.md lacks: {row}");
        }
    }
}
