//! Values as an operator gave them, each with its place, whether from a file or from the command line.

use std::collections::BTreeMap;

use super::error::{Place, redacted};

/// One value, not yet checked.
#[derive(Clone, Debug)]
pub enum Value {
    /// A string of a file, or anything given to a flag.
    Text(String),
    /// A whole number of a file, in decimal.
    Integer(String),
    /// `true` or `false` of a file.
    Boolean(bool),
    /// A list of a file.
    List(Vec<Item>),
    /// Something that no key accepts, by TOML's name for its type: float, datetime, table.
    Other(&'static str),
}

/// One value and its place.
#[derive(Clone, Debug)]
pub struct Item {
    /// The value.
    pub value: Value,
    /// Where it stands.
    pub place: Place,
}

impl Item {
    /// How messages quote the value: as it would stand in the file, passwords in URLs hidden, cut to 80 characters.
    pub fn shown(&self) -> String {
        match &self.value {
            Value::Text(text) => {
                let text = redacted(text);
                let cut: String = text.chars().take(80).collect();
                let mark = if cut.len() < text.len() { "…" } else { "" };
                if matches!(self.place, Place::Flag(_)) {
                    format!("{cut}{mark}")
                } else {
                    format!("\"{cut}{mark}\"")
                }
            }
            Value::Integer(number) => number.clone(),
            Value::Boolean(boolean) => boolean.to_string(),
            Value::List(items) => {
                let shown: Vec<String> = items.iter().take(8).map(Item::shown).collect();
                let mark = if items.len() > 8 { ", …" } else { "" };
                format!("[{}{mark}]", shown.join(", "))
            }
            Value::Other(kind) => format!("a {kind}"),
        }
    }

    /// The value's type, in TOML's words.
    pub fn type_name(&self) -> &'static str {
        match &self.value {
            Value::Text(_) => "string",
            Value::Integer(_) => "whole number",
            Value::Boolean(_) => "boolean",
            Value::List(_) => "list",
            Value::Other(kind) => kind,
        }
    }
}

/// The values of one section.
#[derive(Clone, Debug)]
pub struct Table {
    /// Where the section begins.
    pub place: Place,
    /// By key. Unknown keys have been reported and left out.
    pub items: BTreeMap<&'static str, Item>,
}

/// A whole configuration, sorted into sections.
#[derive(Clone, Debug)]
pub struct Document {
    /// The top level.
    pub root: Table,
    /// `[admin]`.
    pub admin: Table,
    /// Each `[[admin.user]]`.
    pub admin_users: Vec<Table>,
    /// `[log]`.
    pub log: Table,
    /// `[serve]`.
    pub serve: Table,
    /// Each `[[serve.user]]`.
    pub serve_users: Vec<Table>,
    /// `[retention]`.
    pub retention: Table,
    /// `[archive]`.
    pub archive: Table,
    /// Each `[[source]]`.
    pub sources: Vec<Table>,
}
