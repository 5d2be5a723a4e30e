//! The server in use on which the tables are made again: what is looked at before anything is changed, the scratch schemas, and the end.

use super::choice::{is_older, shown};
use super::followed::{Followed, SCRATCH, quoted};
use archive::chain::backup::BackupRecord;
use codec::ServerKind;
use points::table::TableName;
use repair::detail::is_table;
use repair::rescue::{Applier, deviations};
use source::identify::SourceIdentity;
use source::own_session::{Purpose, literal, prepare};
use std::time::Duration;
use wire::{ConnectOptions, Connection, WireError};

/// Of each scratch schema, so that a later run knows that it is one.
const MARKER: &str = "binlogd_restore_marker";

/// How long one statement may take: an ALTER of a large table takes hours.
const STATEMENT_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Settings that say nothing for tables of a scratch schema: they have no triggers and no events.
const HARMLESS: [&str; 2] = ["event_scheduler", "slave_run_triggers_for_rbr"];

/// See [the module](self).
pub(super) struct Target {
    pub(super) connection: Connection,
    pub(super) identity: SourceIdentity,
    /// Longest statement that it takes, in bytes.
    pub(super) statement_bytes_max: usize,
}

/// A table that is there.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) rows: String,
    pub(super) checksum: String,
    pub(super) foreign_keys: Vec<String>,
}

fn in_words(error: WireError) -> String {
    format!("the target: {error}")
}

impl Target {
    /// A session in which rows can be put into tables.
    ///
    /// # Errors
    /// In words.
    pub(super) fn session(into: &ConnectOptions) -> Result<Connection, String> {
        let mut connection = Connection::connect(into).map_err(in_words)?;
        connection.set_timeout(STATEMENT_MAX);
        prepare(&mut connection, Purpose::Applier).map_err(|error| format!("the target: {error}"))?;
        connection.query("SET @@session.foreign_key_checks = 0").map_err(in_words)?;
        Ok(connection)
    }

    /// Connects, and looks at what would make something else of it.
    ///
    /// # Errors
    /// In words, what is in the way.
    pub(super) fn look(into: &ConnectOptions, accept: &[String]) -> Result<Target, String> {
        let mut connection = Target::session(into)?;
        let identity = SourceIdentity::ask(&mut connection).map_err(in_words)?;
        if identity.is_read_only {
            return Err("the target is read only (read_only, super_read_only): a replica gets the table from its source, so restore it there".to_owned());
        }
        let found =
            deviations(&mut connection, identity.kind, Applier::Statements, accept).map_err(in_words)?;
        let mut found = found.iter().filter(|one| !HARMLESS.contains(&one.name));
        if let Some(one) = found.next() {
            return Err(format!(
                "a setting of the target changes what is made of the log: {one}. Set it to {} for the time, or go on with it as it is: --accept {}",
                one.harmless(),
                one.name
            ));
        }
        connection.allow_several_statements().map_err(in_words)?;
        let packet = connection.query("SELECT @@max_allowed_packet").map_err(in_words)?;
        let statement_bytes_max =
            packet.first().and_then(|text| text.parse::<usize>().ok()).unwrap_or(1 << 20) - 1;
        Ok(Target { connection, identity, statement_bytes_max })
    }

    /// Whether it is a server for what that backup holds, and the names to be made are free.
    ///
    /// # Errors
    /// In words.
    pub(super) fn check(
        &mut self,
        record: &BackupRecord,
        names: &[&TableName],
        accept: &[String],
    ) -> Result<(), String> {
        let own = shown(self.identity.kind, &self.identity.version);
        let theirs = shown(record.server_kind, &record.server_version);
        if self.identity.kind != record.server_kind {
            return Err(format!(
                "the target is {own}, and the backup is of {theirs}: one does not take the log of the other"
            ));
        }
        if is_older(&self.identity.version, &record.server_version)
            && !accept.iter().any(|one| one == "version")
        {
            return Err(format!(
                "the target is {own}, older than the server of the backup, {theirs}: it may not know what the table has. Go on all the same with \
                 --accept version"
            ));
        }
        for name in names {
            let is_schema = format!(
                "SELECT 1 FROM information_schema.schemata WHERE schema_name = {}",
                literal(&name.schema)
            );
            if self.first(&is_schema)?.is_none() {
                return Err(format!(
                    "--as {name}: the target has no schema {}; create it first",
                    name.schema
                ));
            }
            if self.has(name)? {
                return Err(format!(
                    "--as {name}: the target has a table of that name already; choose another name"
                ));
            }
        }
        Ok(())
    }

    /// Removes what runs that were killed have left; their schemas.
    ///
    /// # Errors
    /// When the target refuses it.
    pub(super) fn tidy(&mut self) -> Result<Vec<String>, String> {
        let all = format!(
            "SELECT schema_name AS n FROM information_schema.schemata WHERE schema_name LIKE '{}%'",
            SCRATCH.replace('_', "\\_")
        );
        let all = self.ask(&all)?;
        let mut gone = Vec::new();
        for row in 0..all.rows.len() {
            let Some(name) = all.get(row, "n").map(str::to_owned) else { continue };
            let digits = name.strip_prefix(SCRATCH).unwrap_or_default();
            let Some((run, number)) = digits.split_once('_') else { continue };
            let is_run = run.len() == 8 && run.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !is_run || number.parse::<u32>().is_err() {
                continue;
            }
            // Held by a run that goes on.
            if self.first(&format!("SELECT IS_FREE_LOCK('{SCRATCH}{run}')"))?.as_deref() != Some("1") {
                continue;
            }
            let tables = self.first(&format!(
                "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '{name}'"
            ))?;
            let marker = TableName { schema: name.clone(), table: MARKER.to_owned() };
            if tables.as_deref() == Some("0") || self.has(&marker)? {
                self.run(&format!("DROP DATABASE {}", quoted(&name)))?;
                gone.push(name);
            }
        }
        Ok(gone)
    }

    /// Says that a run goes on, for as long as the session lasts.
    ///
    /// # Errors
    /// When the target refuses it.
    pub(super) fn hold(&mut self, run: &str) -> Result<(), String> {
        match self.first(&format!("SELECT GET_LOCK('{SCRATCH}{run}', 0)"))?.as_deref() {
            Some("1") => Ok(()),
            _ => Err(format!("another restore has the name of this one, {run}: do it again")),
        }
    }

    /// Marks a scratch schema that was just created as one.
    ///
    /// # Errors
    /// When the target refuses it.
    pub(super) fn mark(&mut self, scratch: &str) -> Result<(), String> {
        self.run(&format!(
            "CREATE TABLE {}.{MARKER} (i INT PRIMARY KEY) ENGINE = InnoDB COMMENT = 'made by binlogd restore --table; when none runs this schema may be \
             dropped'",
            quoted(scratch)
        ))
    }

    /// Drops the scratch schemas.
    ///
    /// # Errors
    /// When the target refuses it.
    pub(super) fn clear(&mut self, followed: &Followed) -> Result<(), String> {
        followed
            .schemas()
            .try_for_each(|(_, scratch)| self.run(&format!("DROP DATABASE IF EXISTS {}", quoted(scratch))))
    }

    /// Makes sure that a table is there and whole, and leaves out its foreign keys; `None` where it is not there.
    ///
    /// # Errors
    /// When the target refuses it, or the table is of a kind whose history no dump holds.
    pub(super) fn finish(
        &mut self,
        followed: &Followed,
        name: &TableName,
    ) -> Result<Option<Finished>, String> {
        let scratch = followed.scratch(&name.schema).unwrap_or_default().to_owned();
        let here = TableName { schema: scratch.clone(), table: name.table.clone() };
        if !self.has(&here)? {
            return Ok(None);
        }
        let of = |schema, table| is_table(schema, table, &here.schema, &here.table);
        let kind = self.first(&format!(
            "SELECT table_type FROM information_schema.tables WHERE {}",
            of("table_schema", "table_name")
        ))?;
        if kind.as_deref() == Some("SYSTEM VERSIONED") {
            return Err(format!(
                "{name} is system versioned, and a dump has no history of its rows: bring it back on a server of its own, binlogd restore --new"
            ));
        }
        let keys = self.ask(&format!(
            "SELECT constraint_name AS n, CONCAT(GROUP_CONCAT(column_name ORDER BY ordinal_position), ' to ', MIN(referenced_table_name)) AS w FROM \
             information_schema.key_column_usage WHERE {} AND referenced_table_name IS NOT NULL GROUP BY constraint_name",
            of("table_schema", "table_name")
        ))?;
        let table = format!("{}.{}", quoted(&scratch), quoted(&name.table));
        let mut foreign_keys = Vec::new();
        for row in 0..keys.rows.len() {
            let key = keys.get(row, "n").unwrap_or_default();
            self.run(&format!("ALTER TABLE {table} DROP FOREIGN KEY {}", quoted(key)))?;
            foreign_keys.push(format!("{key} ({})", keys.get(row, "w").unwrap_or_default()));
        }
        let rows = self.first(&format!("SELECT COUNT(*) FROM {table}"))?.unwrap_or_default();
        let sums = self.ask(&format!("CHECKSUM TABLE {table}"))?;
        let checksum = sums.get(0, "Checksum").unwrap_or("NULL").to_owned();
        Ok(Some(Finished { rows, checksum, foreign_keys }))
    }

    /// Gives all tables their names, in one step.
    ///
    /// # Errors
    /// When the target refuses it; none has its name then.
    pub(super) fn give_names(
        &mut self,
        followed: &Followed,
        pairs: &[(TableName, TableName)],
    ) -> Result<(), String> {
        let one = |(from, to): &(TableName, TableName)| {
            let from = followed.on_target(from).unwrap_or_default();
            format!("{from} TO {}.{}", quoted(&to.schema), quoted(&to.table))
        };
        let all: Vec<String> = pairs.iter().map(one).collect();
        self.run(&format!("RENAME TABLE {}", all.join(", ")))
    }

    /// Whether it has a table, or a view, of that name.
    fn has(&mut self, name: &TableName) -> Result<bool, String> {
        let is_it = is_table("table_schema", "table_name", &name.schema, &name.table);
        Ok(self.first(&format!("SELECT 1 FROM information_schema.tables WHERE {is_it}"))?.is_some())
    }

    /// Runs a statement of ours.
    ///
    /// # Errors
    /// In words, with the statement.
    pub(super) fn run(&mut self, sql: &str) -> Result<(), String> {
        let refused = |error: WireError| {
            format!("the target refused {:?}: {}", shortened(sql), error.in_its_own_words())
        };
        self.connection.query(sql).map(drop).map_err(refused)
    }

    fn ask(&mut self, sql: &str) -> Result<codec::packet::ResultSet, String> {
        self.connection.query(sql).map_err(in_words)
    }

    fn first(&mut self, sql: &str) -> Result<Option<String>, String> {
        Ok(self.ask(sql)?.first().map(str::to_owned))
    }

    /// MySQL: the next transaction gets a GTID of the target's own. Behind a format description it expects that of the log.
    pub(super) fn own_gtids(&mut self) -> Result<(), String> {
        match self.identity.kind {
            ServerKind::MySql => self.run("SET @@session.gtid_next = 'AUTOMATIC'"),
            ServerKind::MariaDb => Ok(()),
        }
    }
}

/// The beginning of a statement, for people.
pub(super) fn shortened(sql: &str) -> String {
    const CHARACTERS: usize = 200;
    match sql.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}…", &sql[..end]),
        None => sql.to_owned(),
    }
}
