//! What a server says against taking rows back: things that the log does not tell.

use super::inverse::Touched;
use super::rights::Rights;
use crate::detail::is_table;
use codec::packet::ResultSet;
use std::collections::BTreeMap;
use wire::{Connection, WireError};

/// Why rows of these tables cannot be taken back there; empty when nothing stands against it.
///
/// # Errors
/// When the server cannot be asked.
pub(super) fn objections(
    connection: &mut Connection,
    tables: &BTreeMap<(String, String), Touched>,
) -> Result<Vec<String>, WireError> {
    let mut found = Vec::new();
    let rights = Rights::ask(connection)?;
    for ((schema, table), touched) in tables {
        let unseen = rights.lacking(schema, table).into_iter();
        found.extend(unseen.map(|right| {
            format!("{schema}.{table}: the account may not see all there is against it, so this is not proven. {right}")
        }));
        let is = |of_schema: &str, of_table: &str| is_table(of_schema, of_table, schema, table);
        let triggers = connection.query(&format!(
            "SELECT trigger_name AS n FROM information_schema.triggers WHERE {}",
            is("event_object_schema", "event_object_table")
        ))?;
        for row in 0..triggers.rows.len() {
            let name = triggers.get(row, "n").unwrap_or_default();
            found.push(format!(
                "{schema}.{table} has the trigger {name}: it would fire again, and what it did stands in the log too"
            ));
        }
        let keys = connection.query(&format!(
            "SELECT constraint_name AS n, table_name AS t, update_rule AS u, delete_rule AS d FROM \
             information_schema.referential_constraints WHERE {}",
            is("unique_constraint_schema", "referenced_table_name")
        ))?;
        let columns = connection.query(&format!(
            "SELECT constraint_name AS n, table_name AS t, referenced_column_name AS c FROM information_schema.key_column_usage WHERE {}",
            is("referenced_table_schema", "referenced_table_name")
        ))?;
        for row in 0..keys.rows.len() {
            if let Some(why) = follows(&keys, row, &columns, touched) {
                let (name, of) =
                    (keys.get(row, "n").unwrap_or_default(), keys.get(row, "t").unwrap_or_default());
                found.push(format!(
                    "the foreign key {name} of {of} follows what is done to {schema}.{table} {why}"
                ));
            }
        }
        let engines = connection.query(&format!(
            "SELECT t.engine AS e, e.transactions AS y FROM information_schema.tables t LEFT JOIN information_schema.engines e \
             ON e.engine = t.engine WHERE {}",
            is("t.table_schema", "t.table_name")
        ))?;
        match (engines.get(0, "e"), engines.get(0, "y")) {
            (Some(_), Some("YES")) => {}
            (None, _) => found.push(format!("{schema}.{table} is not there, or the account may not see it")),
            (Some(engine), _) => found.push(format!(
                "{schema}.{table} is of {engine}, without transactions: half of it could not be rolled back"
            )),
        }
    }
    Ok(found)
}

/// Why a foreign key stands against it: what it did to other rows is not in the log, or taking back would make it do something.
fn follows(keys: &ResultSet, row: usize, columns: &ResultSet, touched: &Touched) -> Option<&'static str> {
    let does = |rule: &str| matches!(keys.get(row, rule), Some("CASCADE" | "SET NULL" | "SET DEFAULT"));
    let is_own = |at: &usize| ["n", "t"].iter().all(|of| columns.get(*at, of) == keys.get(row, of));
    let is_updated = |at: usize| {
        let name = columns.get(at, "c").unwrap_or_default();
        touched.updated.iter().any(|updated| updated.eq_ignore_ascii_case(name))
    };
    if does("d") && touched.deleted_without_cascades {
        return Some("(CASCADE, SET NULL): rows that it changed may not stand in the log");
    }
    let would_change =
        does("d") && touched.inserted || does("u") && (0..columns.rows.len()).filter(is_own).any(is_updated);
    would_change.then_some("(CASCADE, SET NULL): taking back would change more")
}
