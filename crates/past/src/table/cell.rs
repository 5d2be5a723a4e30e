//! A value as it is written.

use codec::rows::{Charset, Column, Value, hex};
use repair::undo::literal;
use std::rc::Rc;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// RFC 4180 in UTF-8: NULL is `\N` without quotes, texts are quoted where they must be and where they are empty, bytes are `0x…`.
    Csv,
    /// Literals of SQL that are read back as exactly the same.
    Sql,
}

/// A value. Two that are written alike are the same to whoever reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    /// As it is written.
    Is(Box<str>),
    /// Nobody knows, and why.
    NotKnown(Rc<str>),
}

impl Cell {
    pub(crate) fn of(to: To, column: &Column, value: &Value<'_>) -> Cell {
        let written = match to {
            To::Csv => field(column, value),
            To::Sql => literal(column, value),
        };
        written.map_or_else(|why| Cell::NotKnown(why.into()), |text| Cell::Is(text.into()))
    }

    /// Bytes that it takes beside itself.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Cell::Is(text) => text.len(),
            Cell::NotKnown(_) => 0,
        }
    }
}

/// A field of RFC 4180.
fn field(column: &Column, value: &Value<'_>) -> Result<String, String> {
    Ok(match value {
        Value::Null => r"\N".to_owned(),
        Value::Bit(number) => number.to_string(),
        Value::Temporal(text) | Value::Timestamp(text) => text.clone(),
        Value::Text(text, _) => escaped(text),
        Value::Address(text, _) => escaped(text),
        Value::Bytes(bytes) => format!("0x{}", hex(bytes)),
        Value::Geometry(_, bytes) => format!("0x{}", hex(bytes)),
        Value::Json(value) => escaped(&value.to_string()),
        Value::Vector(..) => escaped(&value.text(column)),
        Value::Enum(0) => escaped(""),
        Value::Enum(_) | Value::Set(_) => escaped(&members(column, value)?),
        Value::Encoded(_) => {
            return Err(
                "it is of a character set that binlogd does not decode: --to sql has its bytes".to_owned()
            );
        }
        Value::Either(..) | Value::JsonDiffs(_) | Value::Undecoded(..) => return literal(column, value),
        value => value.text(column),
    })
}

/// The names of an ENUM or a SET.
fn members(column: &Column, value: &Value<'_>) -> Result<String, String> {
    const UNTOLD: &str = "the log does not name the members of this ENUM or SET: ask a server with --schema";
    let all = column.members.as_ref().ok_or(UNTOLD)?;
    let chosen: Option<Vec<&str>> = match value {
        Value::Enum(number) => {
            usize::from(*number).checked_sub(1).and_then(|at| all.get(at)).map(|name| vec![name.as_str()])
        }
        Value::Set(bits) => {
            (0..64).filter(|bit| bits & 1 << bit != 0).map(|bit| all.get(bit).map(String::as_str)).collect()
        }
        _ => None,
    };
    Ok(chosen.ok_or("it has a member that the log does not name")?.join(","))
}

/// A text as a field: in quotes where it must be, or could be taken for NULL or for nothing.
pub(crate) fn escaped(text: &str) -> String {
    let is_plain =
        !text.is_empty() && text != r"\N" && text.trim() == text && !text.contains(['"', ',', '\n', '\r']);
    if is_plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

/// What a new column has in the rows that were there before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fill {
    Null,
    Number(i64),
    Text(String),
    NotKnown(Rc<str>),
}

impl Fill {
    /// In that column; where the log has not described it yet, as in one of UTF-8.
    pub(crate) fn cell(&self, to: To, column: &Column) -> Cell {
        let is_same = matches!(column.charset, None | Some(Charset::Utf8 | Charset::Ascii | Charset::Latin1));
        match self {
            Fill::Null => Cell::of(to, column, &Value::Null),
            Fill::Number(number) => Cell::of(to, column, &Value::Int(*number)),
            Fill::Text(text) if is_same && text.is_ascii() => {
                Cell::of(to, column, &Value::Text(text.as_str().into(), text.as_bytes().into()))
            }
            Fill::Text(_) => Cell::NotKnown("what its DEFAULT is in its character set is not certain".into()),
            Fill::NotKnown(why) => Cell::NotKnown(why.clone()),
        }
    }
}
