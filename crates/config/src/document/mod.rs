//! Values as an operator gave them, each with its place, whether from a file or from the command line.

pub(crate) mod file;
pub(crate) mod include;
pub(crate) mod text;

use std::collections::BTreeMap;

use super::error::{Place, redacted};
use super::key::Section;

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

    /// The text, where it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The text or the digits of the whole number, where it is one of the two.
    pub(crate) fn word(&self) -> Option<&str> {
        match &self.value {
            Value::Text(word) | Value::Integer(word) => Some(word),
            _ => None,
        }
    }

    /// The elements of the list; none where it is no list.
    pub(crate) fn list(&self) -> impl Iterator<Item = &Item> {
        let items: &[Item] = if let Value::List(items) = &self.value { items } else { &[] };
        items.iter()
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

/// The values of one table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Which section it is.
    pub section: Section,
    /// Where the table begins.
    pub place: Place,
    /// By key. Unknown keys have been reported and left out.
    pub items: BTreeMap<&'static str, Item>,
}

/// A whole configuration, sorted into tables.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file as a whole, or the flag that stands for one: where a table is that is not given.
    pub place: Place,
    /// The tables that were given, those of one section in the order of the file.
    pub tables: Vec<Table>,
}

impl Document {
    /// One without tables.
    pub fn new(place: Place) -> Document {
        Document { place, tables: Vec::new() }
    }

    /// The tables of a section that may be repeated.
    pub fn all(&self, section: Section) -> impl Iterator<Item = &Table> {
        self.tables.iter().filter(move |table| table.section == section)
    }

    /// The table of a section of which there is one, empty where it is not given.
    pub fn one(&self, section: Section) -> Table {
        let empty = || Table { section, place: self.place.clone(), items: BTreeMap::new() };
        self.all(section).next().cloned().unwrap_or_else(empty)
    }

    /// Sets a value of a section's first table.
    pub fn set(&mut self, section: Section, key: &'static str, item: Item) {
        match self.tables.iter_mut().find(|table| table.section == section) {
            Some(table) => {
                table.items.insert(key, item);
            }
            None => {
                let items = BTreeMap::from([(key, item)]);
                self.tables.push(Table { section, place: self.place.clone(), items });
            }
        }
    }
}
