//! Values of a text in TOML, and where they stand in it.

use super::super::error::Place;
use super::{Item, Value};
use std::path::Path;
use toml::Spanned;
use toml::de::DeValue;

/// The text of a file.
pub(super) struct Text<'a> {
    /// The text.
    pub(super) text: &'a str,
    /// The file, as messages name it.
    pub(super) path: &'a Path,
}

impl Text<'_> {
    /// A value with its place.
    pub(super) fn item(&self, value: &Spanned<DeValue<'_>>) -> Item {
        let place = self.place(value.span().start);
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.clone().into_owned()),
            DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
                Ok(value) => Value::Integer(value.to_string()),
                Err(_) => Value::Integer(number.to_string()),
            },
            DeValue::Boolean(boolean) => Value::Boolean(*boolean),
            DeValue::Array(array) => Value::List(array.iter().map(|element| self.item(element)).collect()),
            other => Value::Other(type_name(other)),
        };
        Item { value, place }
    }

    /// The line and column of a byte of the text.
    pub(super) fn place(&self, offset: usize) -> Place {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        Place::File {
            path: self.path.to_owned(),
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            column: String::from_utf8_lossy(&before[line_start..]).chars().count() + 1,
        }
    }
}

/// TOML's name for a value's type.
pub(super) fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "string",
        DeValue::Integer(_) => "whole number",
        DeValue::Float(_) => "float",
        DeValue::Boolean(_) => "boolean",
        DeValue::Datetime(_) => "datetime",
        DeValue::Array(_) => "list",
        DeValue::Table(_) => "table",
    }
}

/// The item of a default, which is TOML from a declaration, as if it stood at `place`.
pub(crate) fn default_item(toml: &'static str, place: &Place) -> Item {
    let value = match DeValue::parse(toml) {
        Ok(value) => Text { text: toml, path: Path::new("") }.item(&value).value,
        // No key accepts it; a test reads every default.
        Err(_) => Value::Other("mistake"),
    };
    Item { value, place: place.clone() }
}
