//! The tables that are followed through the log, and the schemas of the target in which they are made again.

use points::table::TableName;
use std::collections::BTreeMap;

/// Scratch schemas begin so; eight hexadecimal digits of the run and a number follow.
pub(super) const SCRATCH: &str = "binlogd_restore_";

/// See [the module](self). A table keeps its name in its scratch schema, and each schema has one of its own: statements that name no
/// schema run there as they are.
#[derive(Debug, Clone, Default)]
pub(super) struct Followed {
    names: Vec<TableName>,
    /// Schemas of the source, each with its scratch schema.
    schemas: BTreeMap<String, String>,
    run: String,
}

impl Followed {
    /// Of one run, which eight hexadecimal digits name.
    pub(super) fn new(run: &str, names: impl IntoIterator<Item = TableName>) -> Followed {
        let mut followed = Followed { run: run.to_owned(), ..Followed::default() };
        for name in names {
            followed.add(name);
        }
        followed
    }

    /// Follows one more; false when it is followed already.
    pub(super) fn add(&mut self, name: TableName) -> bool {
        if self.has(&name) {
            return false;
        }
        let next = format!("{SCRATCH}{}_{}", self.run, self.schemas.len());
        self.schemas.entry(name.schema.clone()).or_insert(next);
        self.names.push(name);
        true
    }

    pub(super) fn names(&self) -> &[TableName] {
        &self.names
    }

    /// Each schema of the source, with its scratch schema.
    pub(super) fn schemas(&self) -> impl Iterator<Item = (&str, &str)> {
        self.schemas.iter().map(|(schema, scratch)| (schema.as_str(), scratch.as_str()))
    }

    pub(super) fn has(&self, name: &TableName) -> bool {
        self.names.contains(name)
    }

    /// Whether a change of that table, or of that schema (a name without a table), is one of a followed table.
    pub(super) fn concerns(&self, name: &TableName) -> bool {
        if name.table.is_empty() { self.schemas.contains_key(&name.schema) } else { self.has(name) }
    }

    /// Whether only the case of letters parts it from a followed one. With lower_case_table_names they are one table, and the log does
    /// not tell.
    pub(super) fn is_doubtful(&self, name: &TableName) -> bool {
        let is_near = |one: &TableName| {
            one.schema.eq_ignore_ascii_case(&name.schema)
                && (name.table.is_empty() || one.table.eq_ignore_ascii_case(&name.table))
        };
        !self.concerns(name) && self.names.iter().any(is_near)
    }

    /// The scratch schema of a schema of the source.
    pub(super) fn scratch(&self, schema: &str) -> Option<&str> {
        self.schemas.get(schema).map(String::as_str)
    }

    /// The name of a followed table on the target, in backticks.
    pub(super) fn on_target(&self, name: &TableName) -> Option<String> {
        Some(format!("{}.{}", quoted(self.scratch(&name.schema)?), quoted(&name.table)))
    }

    /// Whether the bare name of one stands somewhere in a text.
    pub(super) fn is_named_in(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.names.iter().any(|name| text.contains(&name.table.to_lowercase()))
    }
}

/// A name in backticks.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
