//! What is in a server, so that two of them can be compared: each table with its rows, and whatever else people have made.
//!
//! What differs between a restored dump and the same moment reached by the log, though nobody's data do, is left out:
//! the next AUTO_INCREMENT of a table (a dump has it as it is when the table's turn comes), when something was made or changed,
//! whether an event runs (what a server makes by replication does not run there).

use crate::new_server::Running;
use std::collections::BTreeMap;
use wire::{Connection, WireError};

/// Schemas of the servers themselves.
const OF_SERVERS: &str = "('mysql', 'sys', 'information_schema', 'performance_schema')";

/// So many differences are named.
const SHOWN_MAX: usize = 5;

/// What people make beside tables: a table of information_schema, the column of its schema, the columns of its name, and those that
/// are no part of it.
const OBJECTS: &[(&str, &str, &[&str], &[&str])] = &[
    ("SCHEMATA", "SCHEMA_NAME", &["SCHEMA_NAME"], &[]),
    ("VIEWS", "TABLE_SCHEMA", &["TABLE_SCHEMA", "TABLE_NAME"], &[]),
    (
        "ROUTINES",
        "ROUTINE_SCHEMA",
        &["ROUTINE_SCHEMA", "ROUTINE_NAME", "ROUTINE_TYPE"],
        &["CREATED", "LAST_ALTERED"],
    ),
    (
        "PARAMETERS",
        "SPECIFIC_SCHEMA",
        &["SPECIFIC_SCHEMA", "SPECIFIC_NAME", "ROUTINE_TYPE", "ORDINAL_POSITION"],
        &[],
    ),
    ("TRIGGERS", "TRIGGER_SCHEMA", &["TRIGGER_SCHEMA", "TRIGGER_NAME"], &["CREATED"]),
    (
        "EVENTS",
        "EVENT_SCHEMA",
        &["EVENT_SCHEMA", "EVENT_NAME"],
        &["STATUS", "CREATED", "LAST_ALTERED", "LAST_EXECUTED", "ORIGINATOR"],
    ),
];

/// See [the module](self): what of each thing is what, by the thing's name.
#[derive(Debug, Default)]
pub(super) struct Fingerprint {
    of: BTreeMap<String, BTreeMap<String, String>>,
    /// How many tables are in it.
    pub(super) tables: u64,
    /// Tables whose rows were counted alone: their engine has no checksum.
    pub(super) without_checksum: Vec<String>,
}

/// A table, as statements name it.
struct Table {
    quoted: String,
    name: String,
}

impl Fingerprint {
    /// Takes it.
    ///
    /// # Errors
    /// When the server does not answer, or not in the form of its kind.
    pub(super) fn take(running: &Running) -> Result<Fingerprint, WireError> {
        let mut connection = running.connect()?;
        connection.query("SET SESSION sql_mode = '', lock_wait_timeout = 60")?;
        let mut all = Fingerprint::default();
        for table in tables(&mut connection)? {
            all.table(&mut connection, table)?;
        }
        for object in OBJECTS {
            all.objects(&mut connection, object)?;
        }
        all.accounts(&mut connection)?;
        connection.close();
        Ok(all)
    }

    fn table(&mut self, connection: &mut Connection, table: Table) -> Result<(), WireError> {
        let Table { quoted, name } = table;
        let definition = cell(connection, &format!("SHOW CREATE TABLE {quoted}"), 1)?;
        let rows = cell(connection, &format!("SELECT COUNT(*) FROM {quoted}"), 0)?;
        let sum = cell(connection, &format!("CHECKSUM TABLE {quoted} EXTENDED"), 1)?;
        if sum == NULL {
            self.without_checksum.push(name.clone());
        }
        let of = [
            ("definition", without_counter(&definition)),
            ("number of rows", rows),
            ("checksum of its rows", sum),
        ];
        self.of.insert(format!("table {name}"), of.map(|(what, text)| (what.to_owned(), text)).into());
        self.tables += 1;
        Ok(())
    }

    fn objects(
        &mut self,
        connection: &mut Connection,
        &(of, schema, names, left_out): &(&str, &str, &[&str], &[&str]),
    ) -> Result<(), WireError> {
        let sql = format!("SELECT * FROM information_schema.{of} WHERE {schema} NOT IN {OF_SERVERS}");
        let answer = connection.query(&sql)?;
        for row in &answer.rows {
            let named = |name: &&str| {
                let at = answer.columns.iter().position(|column| column.eq_ignore_ascii_case(name));
                at.and_then(|at| row.get(at)).map_or_else(String::new, |value| text(value.as_deref()))
            };
            let name: Vec<String> = names.iter().map(named).collect();
            let columns = answer.columns.iter().zip(row);
            let kept =
                columns.filter(|(column, _)| !left_out.iter().any(|out| column.eq_ignore_ascii_case(out)));
            let kept = kept.map(|(column, value)| (column.to_ascii_uppercase(), text(value.as_deref())));
            self.of.insert(format!("{} {}", of.to_ascii_lowercase(), name.join(".")), kept.collect());
        }
        Ok(())
    }

    /// All accounts but our own: how they are known, and what they may.
    fn accounts(&mut self, connection: &mut Connection) -> Result<(), WireError> {
        let answer = connection.query("SELECT user, host FROM mysql.user WHERE user <> 'binlogd_restore'")?;
        for row in answer.rows {
            let [user, host] =
                [0, 1].map(|at| text(row.get(at).and_then(Option::as_deref)).replace('\'', "''"));
            let account = format!("'{user}'@'{host}'");
            let mut of = BTreeMap::new();
            for what in ["CREATE USER", "GRANTS FOR"] {
                // A role has none of the first, on both servers.
                let said = match connection.query(&format!("SHOW {what} {account}")) {
                    Ok(answer) => answer
                        .rows
                        .iter()
                        .flatten()
                        .map(|value| text(value.as_deref()))
                        .collect::<Vec<_>>()
                        .join("\n"),
                    Err(WireError::Server { code, .. }) => format!("error {code}"),
                    Err(error) => return Err(error),
                };
                of.insert(format!("SHOW {what}"), said);
            }
            self.of.insert(format!("account {account}"), of);
        }
        Ok(())
    }

    /// What differs, in words; `None` where nothing does. `here` and `there` name the two.
    pub(super) fn differs(&self, other: &Fingerprint, here: &str, there: &str) -> Option<String> {
        let mut found = Vec::new();
        for (name, of) in &self.of {
            match other.of.get(name) {
                None => found.push(format!("{name} is not in {there}")),
                Some(theirs) if theirs != of => {
                    found.push(format!("{name} differs: {}", in_what(of, theirs, here, there)))
                }
                Some(_) => {}
            }
        }
        let more = other.of.keys().filter(|name| !self.of.contains_key(*name));
        found.extend(more.map(|name| format!("{name} is in {there} only")));
        let more = found.len().saturating_sub(SHOWN_MAX);
        found.truncate(SHOWN_MAX);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        (!found.is_empty()).then(|| format!("{}{more}", found.join("; ")))
    }

    /// Things that are compared, but for tables.
    pub(super) fn others(&self) -> usize {
        self.of.len() - usize::try_from(self.tables).unwrap_or(0)
    }
}

/// Lets the server check each table: what it says of those that are damaged, in words; `None` where all are well.
///
/// # Errors
/// When it does not answer.
pub(super) fn damaged(running: &Running) -> Result<Option<String>, WireError> {
    let mut connection = running.connect()?;
    let mut found = Vec::new();
    for table in tables(&mut connection)? {
        let answer = connection.query(&format!("CHECK TABLE {} EXTENDED", table.quoted))?;
        for row in 0..answer.rows.len() {
            let (kind, said) =
                (answer.get(row, "Msg_type").unwrap_or("?"), answer.get(row, "Msg_text").unwrap_or("?"));
            // An engine that cannot be checked says so in a note.
            if !matches!(kind.to_ascii_lowercase().as_str(), "status" | "note" | "info") {
                found.push(format!("{}: {said}", table.name));
            }
        }
    }
    connection.close();
    found.truncate(SHOWN_MAX);
    Ok((!found.is_empty()).then(|| found.join("; ")))
}

fn tables(connection: &mut Connection) -> Result<Vec<Table>, WireError> {
    let sql = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT IN {OF_SERVERS} AND TABLE_TYPE NOT IN ('VIEW', \
         'SYSTEM VIEW', 'TEMPORARY') ORDER BY 1, 2"
    );
    let answer = connection.query(&sql)?;
    let of = |row: &Vec<Option<Vec<u8>>>| {
        let [schema, table] = [0, 1].map(|at| text(row.get(at).and_then(Option::as_deref)));
        let quoted = [&schema, &table].map(|name| format!("`{}`", name.replace('`', "``"))).join(".");
        Table { quoted, name: format!("{schema}.{table}") }
    };
    Ok(answer.rows.iter().map(of).collect())
}

const NULL: &str = "NULL";

fn cell(connection: &mut Connection, sql: &str, column: usize) -> Result<String, WireError> {
    let answer = connection.query(sql)?;
    Ok(text(answer.rows.first().and_then(|row| row.get(column)).and_then(Option::as_deref)))
}

fn text(value: Option<&[u8]>) -> String {
    value.map_or_else(|| NULL.to_owned(), |value| String::from_utf8_lossy(value).into_owned())
}

/// The definition of a table without the next number that it gives.
fn without_counter(definition: &str) -> String {
    let Some((before, rest)) = definition.split_once(" AUTO_INCREMENT=") else {
        return definition.to_owned();
    };
    format!("{before}{}", rest.trim_start_matches(|character: char| character.is_ascii_digit()))
}

/// The parts of a thing that are not the same, with their values where these are short.
fn in_what(
    of: &BTreeMap<String, String>,
    theirs: &BTreeMap<String, String>,
    here: &str,
    there: &str,
) -> String {
    const SHORT: usize = 40;
    let part = |(what, mine): (&String, &String)| {
        let other = theirs.get(what).map_or(NULL, String::as_str);
        let is_short = mine.len() <= SHORT && other.len() <= SHORT;
        (mine != other).then(|| {
            if is_short { format!("{what} {mine} in {here}, {other} in {there}") } else { what.clone() }
        })
    };
    of.iter().filter_map(part).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named() {
        let of = |rows: &str| BTreeMap::from([("number of rows".to_owned(), rows.to_owned())]);
        let print = |things: &[(&str, &str)]| Fingerprint {
            of: things.iter().map(|(name, rows)| ((*name).to_owned(), of(rows))).collect(),
            ..Fingerprint::default()
        };
        let (one, other) = (
            print(&[("table a.a", "1"), ("table a.b", "2")]),
            print(&[("table a.b", "3"), ("views a.v", "4")]),
        );
        let said = one.differs(&other, "A", "B").unwrap();
        assert_eq!(
            said,
            "table a.a is not in B; table a.b differs: number of rows 2 in A, 3 in B; views a.v is in B only"
        );
        assert!(one.differs(&one, "A", "B").is_none());
    }

    #[test]
    fn the_next_number_of_a_table_is_no_part_of_it() {
        let with = ") ENGINE=InnoDB AUTO_INCREMENT=51 DEFAULT CHARSET=utf8mb4";
        assert_eq!(without_counter(with), ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4");
        assert_eq!(without_counter(") ENGINE=InnoDB"), ") ENGINE=InnoDB");
    }
}
