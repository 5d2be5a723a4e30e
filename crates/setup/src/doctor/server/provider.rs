//! Who runs a server, where that is a provider, and what is set there otherwise than by a statement. No such server was at hand. What stands
//! here is from the providers' documentation and from what their servers print (docs/sources.md).

use std::collections::BTreeMap;

/// The variables that tell a provider, beside the version and its comment.
pub(super) const ASKED: [&str; 3] = [BASEDIR, AURORA_VERSION, AAD_AUTH_ONLY];

/// Below `/rdsdbbin/` on every engine of Amazon RDS.
pub(super) const BASEDIR: &str = "basedir";
/// Source: AWS, "Database engine updates for Amazon Aurora MySQL": `SELECT @@aurora_version`.
pub(super) const AURORA_VERSION: &str = "aurora_version";
/// Source: Microsoft, "Microsoft Entra authentication for Azure Database for MySQL": a server parameter.
pub(super) const AAD_AUTH_ONLY: &str = "aad_auth_only";

/// Who runs a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provider {
    /// Amazon RDS, of MySQL or MariaDB.
    Rds,
    /// Amazon Aurora MySQL.
    Aurora,
    /// Google Cloud SQL.
    CloudSql,
    /// Azure Database for MySQL.
    Azure,
}

impl Provider {
    /// Who runs it; `None` for a server like others. Whoever builds a server may call it what he likes, so Cloud SQL is told by its
    /// version and its comment, and Azure's by a whole suffix.
    pub(super) fn of(version: &str, variables: &BTreeMap<String, String>) -> Option<Provider> {
        let variable = |name| variables.get(name).map(String::as_str);
        if variable(AURORA_VERSION).is_some() {
            Some(Provider::Aurora)
        } else if variable(BASEDIR).is_some_and(|folder| folder.starts_with("/rdsdbbin/")) {
            Some(Provider::Rds)
        } else if version.contains("-google") && variable("version_comment") == Some("(Google)") {
            Some(Provider::CloudSql)
        } else if version.trim_end_matches("-log").ends_with("-azure") || variable(AAD_AUTH_ONLY).is_some() {
            Some(Provider::Azure)
        } else {
            None
        }
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Provider::Rds => "Amazon RDS",
            Provider::Aurora => "Amazon Aurora MySQL",
            Provider::CloudSql => "Google Cloud SQL",
            Provider::Azure => "Azure Database for MySQL",
        }
    }

    /// Where its settings are made.
    pub(super) fn settings(self) -> &'static str {
        match self {
            Provider::Rds => "the DB parameter group",
            Provider::Aurora => "the DB cluster parameter group",
            Provider::CloudSql => "the flags of the instance",
            Provider::Azure => "the server parameters",
        }
    }

    /// What takes the place of a statement that sets a variable: a comment, which harms nobody who pastes it.
    pub(super) fn set(self, name: &str, value: &str) -> String {
        format!("-- in {}: {name} = {}", self.settings(), value.trim_matches('\''))
    }

    /// How its binary log is switched on.
    pub(crate) fn log_on(self) -> &'static str {
        match self {
            Provider::Rds => {
                "automated backups switch it on: set the backup retention period to 1 day or more"
            }
            Provider::Aurora => {
                "set binlog_format to ROW in the DB cluster parameter group, and restart the cluster's writer"
            }
            Provider::CloudSql => "it comes with point-in-time recovery: switch that on for the instance",
            Provider::Azure => "by its documentation it is always on there: ask the provider",
        }
    }

    /// Why setup does not switch semi-sync on.
    pub(crate) fn refuses_semi_sync(self) -> String {
        format!(
            "this is {}: nobody has SUPER there, and semi-sync with a replica of one's own was not found in its documentation, so no commit would \
             wait for binlogd. Copy without: --semi-sync=false. binlogd was never tried with such a server (docs/sources.md)",
            self.name()
        )
    }
}
