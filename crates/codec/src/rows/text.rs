//! Values as text for people.

use super::hex::hex;
use super::table::Column;
use super::value::Value;
use crate::rows::json::json_diff::JsonDiff;

impl Value<'_> {
    /// The value as a person reads it, on one line.
    pub fn text(&self, column: &Column) -> String {
        match self {
            Value::Null => "NULL".to_owned(),
            Value::Int(number) => number.to_string(),
            Value::UInt(number) => number.to_string(),
            Value::Either(signed, unsigned) => format!("{signed} ({unsigned} if unsigned)"),
            Value::Float(number) => number.to_string(),
            Value::Double(number) => number.to_string(),
            Value::Decimal(text) => text.clone(),
            Value::Bit(number) => format!("b'{number:b}'"),
            Value::Year(year) => format!("{year:04}"),
            Value::Temporal(text) => format!("'{text}'"),
            Value::Timestamp(text) => format!("'{text}' UTC"),
            Value::Text(text, _) => quoted(text),
            Value::Address(text, _) => quoted(text),
            Value::Bytes(bytes) => format!("0x{}", hex(bytes)),
            Value::Encoded(bytes) => {
                format!("<{} bytes of text that binlogd does not decode: 0x{}>", bytes.len(), hex(bytes))
            }
            Value::Enum(number) => member(column, *number),
            Value::Set(bits) => members(column, *bits),
            Value::Json(value) => on_one_line(&value.to_string()),
            Value::JsonDiffs(diffs) => {
                on_one_line(&diffs.iter().map(JsonDiff::text).collect::<Vec<_>>().join(", "))
            }
            Value::Geometry(geometry, _) => match geometry.srid {
                0 => geometry.text.clone(),
                srid => format!("{} SRID {srid}", geometry.text),
            },
            Value::Vector(numbers, _) => {
                format!("[{}]", numbers.iter().map(f32::to_string).collect::<Vec<_>>().join(","))
            }
            Value::Undecoded(why, bytes) => {
                format!("<{} bytes that binlogd does not decode ({why}): 0x{}>", bytes.len(), hex(bytes))
            }
        }
    }
}

/// JSON has its own escapes of most characters; those that it may hold as they are do not drive a terminal.
fn on_one_line(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { '\u{fffd}' } else { one }).collect()
}

/// The text in quotes, with what cannot be printed written as `\n`, `\t` or `\u{…}`.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for one in text.chars() {
        match one {
            '\'' => out.push_str("''"),
            '\\' => out.push_str("\\\\"),
            one if one.is_control() => out.extend(one.escape_default()),
            one => out.push(one),
        }
    }
    out.push('\'');
    out
}

fn member(column: &Column, number: u16) -> String {
    let name = column.members.as_ref().and_then(|members| members.get(usize::from(number).checked_sub(1)?));
    match (number, name) {
        (0, _) => "'' (0, the error value)".to_owned(),
        (_, Some(name)) => quoted(name),
        (number, None) => format!("member {number}"),
    }
}

fn members(column: &Column, bits: u64) -> String {
    let Some(names) = &column.members else { return format!("members {bits:#b}") };
    let set: Vec<usize> = (0..64).filter(|bit| bits & 1 << bit != 0).collect();
    let chosen: Option<Vec<&str>> = set.iter().map(|bit| names.get(*bit).map(String::as_str)).collect();
    match chosen {
        Some(chosen) => quoted(&chosen.join(",")),
        None => format!("members {bits:#b}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::table::ColumnType;

    #[test]
    fn texts_are_quoted_and_members_named() {
        assert_eq!(quoted("it's\n\u{1b}[1m\\"), "'it''s\\n\\u{1b}[1m\\\\'");
        let names = Some(vec!["x".to_owned(), "y".to_owned()]);
        let column = Column { members: names, ..Column::of(ColumnType::Set(1)) };
        assert_eq!(Value::Set(3).text(&column), "'x,y'");
        assert_eq!(Value::Set(4).text(&column), "members 0b100");
        assert_eq!(Value::Enum(2).text(&column), "'y'");
        assert_eq!(Value::Enum(0).text(&column), "'' (0, the error value)");
        assert_eq!(Value::Enum(3).text(&Column { members: None, ..column }), "member 3");
        assert_eq!(Value::Bytes(vec![0, 0xfe].into()).text(&Column::of(ColumnType::Blob(2))), "0x00fe");
    }
}
