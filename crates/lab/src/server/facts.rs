//! What is known of a server: its version, and each variable that differs from its default.

use super::target::Target;
use crate::machine::cpus;
use crate::model::Fact;
use codec::ServerKind;
use wire::ResultSet;

/// Where the variables of MySQL say who set them; from 8.0 on.
const MYSQL: &str = "SELECT i.VARIABLE_NAME AS name, v.VARIABLE_VALUE AS value \
                     FROM performance_schema.variables_info i \
                     JOIN performance_schema.global_variables v ON v.VARIABLE_NAME = i.VARIABLE_NAME \
                     WHERE i.VARIABLE_SOURCE <> 'COMPILED' ORDER BY i.VARIABLE_NAME";
/// MariaDB keeps the defaults themselves. Values that it found out by itself (AUTO) are not anybody's choice.
const MARIADB: &str = "SELECT VARIABLE_NAME AS name, GLOBAL_VALUE AS value FROM information_schema.SYSTEM_VARIABLES \
                       WHERE NOT (GLOBAL_VALUE <=> DEFAULT_VALUE) AND GLOBAL_VALUE IS NOT NULL \
                       AND GLOBAL_VALUE_ORIGIN NOT IN ('COMPILE-TIME', 'AUTO') ORDER BY VARIABLE_NAME";
/// Of MySQL before 8.0, which knows neither: what decides the numbers of the studies, whether it differs or not.
const CHOSEN: [&str; 14] = [
    "binlog_format",
    "binlog_row_image",
    "gtid_mode",
    "innodb_buffer_pool_size",
    "innodb_doublewrite",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
    "max_connections",
    "performance_schema",
    "query_cache_type",
    "sync_binlog",
    "transaction_isolation",
];

impl Target {
    /// Its version, and each variable that differs from the compiled default. A MySQL before 8.0 does not tell which
    /// do: there a fact says so, and the variables that matter most are named with their values. Folders of the lab's own
    /// servers are shown without where they are on this machine, and nothing that has to do with passwords is.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn facts(&mut self) -> anyhow::Result<Vec<Fact>> {
        let about = format!("server {}", self.name());
        let fact = |name: &str, value: &str| Fact::new(&about, name, value);
        let version = self.query("SELECT @@version")?;
        let mut facts = vec![fact("version", version.first().unwrap_or_default())];
        facts.extend(
            self.pid().and_then(cpus::of_process).map(|list| fact("processors that it may use", &list)),
        );
        let rows = if self.dialect().kind() == ServerKind::MariaDb {
            self.query(MARIADB)?
        } else if self.dialect().is_mysql_from(8, 0, 0) {
            self.query(MYSQL)?
        } else {
            facts.push(fact(
                "variables",
                "this version does not tell which differ from their defaults; these are those that matter most",
            ));
            let names = CHOSEN.map(|name| format!("'{name}'")).join(", ");
            self.query(&format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})"))?
        };
        let folders = self.folders()?;
        // Some hold a password, such as report_password.
        for (name, value) in pairs(&rows).filter(|(name, _)| !name.contains("password")) {
            let shown =
                folders.iter().fold(value.to_owned(), |value, (path, word)| value.replace(path, word));
            facts.push(fact(&name, &shown));
        }
        Ok(facts)
    }

    /// The folders of one of the lab's own servers, and what is shown in their place.
    fn folders(&mut self) -> anyhow::Result<Vec<(String, &'static str)>> {
        let Some(data) = self.data_dir() else { return Ok(Vec::new()) };
        let own = data.parent().map(|dir| dir.display().to_string()).unwrap_or_default();
        let base = self.variable("basedir")?.unwrap_or_default();
        let folders = [(own, "DIR"), (base.trim_end_matches('/').to_owned(), "BASEDIR")];
        Ok(folders.into_iter().filter(|(path, _)| path.len() > 1).collect())
    }
}

/// The first two columns of each row; NULL is empty.
fn pairs(rows: &ResultSet) -> impl Iterator<Item = (String, &str)> {
    fn text(cell: &Option<Vec<u8>>) -> &str {
        cell.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }
    rows.rows.iter().filter_map(|row| {
        let [name, value, ..] = row.as_slice() else { return None };
        Some((text(name).to_ascii_lowercase(), text(value)))
    })
}
