//! One value of a row.

use super::charset::Charset;
use super::geometry::Geometry;
use super::json::JsonValue;
use super::table::{Column, ColumnType};
use super::{address, decimal, packed, temporal};
use crate::event::{is_packed_datetime, little_endian};
use crate::rows::json::json_diff::JsonDiff;
use std::borrow::Cow;

/// A value, as exactly as the log tells it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// An integer that is negative if its column is signed, which the log does not say: both.
    Either(i64, u64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL, as text.
    Decimal(String),
    /// BIT, as a number.
    Bit(u64),
    /// YEAR; 0 is the year `0000`.
    Year(u16),
    /// DATE, TIME and DATETIME, as the server prints them.
    Temporal(String),
    /// TIMESTAMP in UTC.
    Timestamp(String),
    /// A text of a character set whose text can be told.
    Text(Cow<'a, str>, Cow<'a, [u8]>),
    /// Bytes. Of BINARY all of them, also the zeros at the end, which the log leaves out.
    Bytes(Cow<'a, [u8]>),
    /// A text that is not told: of another character set, with a character that may be another one to the server, or of a set that the
    /// log does not name and no UTF-8.
    Encoded(Cow<'a, [u8]>),
    /// UUID, INET4 or INET6 as text, with its bytes; only of a column whose type somebody told, as a log has them as BINARY.
    Address(String, Cow<'a, [u8]>),
    /// ENUM, by its number; 0 is the error value, an empty text.
    Enum(u16),
    /// SET, a bit for each member.
    Set(u64),
    /// JSON of MySQL.
    Json(JsonValue),
    /// What a partial update changes of a JSON document.
    JsonDiffs(Vec<JsonDiff>),
    /// A geometry, with its bytes.
    Geometry(Geometry, &'a [u8]),
    /// VECTOR of MySQL, with its bytes.
    Vector(Vec<f32>, &'a [u8]),
    /// What this version does not decode, why, and its bytes.
    Undecoded(String, &'a [u8]),
}

impl<'a> Value<'a> {
    /// Decodes the bytes of a value of a column, without the length before them.
    pub fn decode(column: &Column, bytes: &'a [u8]) -> Value<'a> {
        decode(column, bytes)
            .unwrap_or_else(|| Value::Undecoded(format!("it is no value of {}", column.type_text()), bytes))
    }

    /// Decodes the changes of a JSON document in a partial update.
    pub(super) fn decode_diffs(bytes: &'a [u8]) -> Value<'a> {
        match JsonDiff::parse_all(bytes) {
            Some(diffs) => Value::JsonDiffs(diffs),
            None => Value::Undecoded("it is no partial update of a JSON document".to_owned(), bytes),
        }
    }
}

fn decode<'a>(column: &Column, bytes: &'a [u8]) -> Option<Value<'a>> {
    Some(match column.kind {
        ColumnType::Integer(_) => integer(bytes, column.unsigned)?,
        ColumnType::Float => Value::Float(f32::from_le_bytes(bytes.try_into().ok()?)),
        ColumnType::Double => Value::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
        ColumnType::Decimal(all, behind) => {
            Value::Decimal(decimal::decimal(bytes, usize::from(all), usize::from(behind))?)
        }
        ColumnType::Bit(_) if bytes.len() <= 8 => {
            Value::Bit(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
        }
        ColumnType::Year => match bytes {
            [0] => Value::Year(0),
            [year] => Value::Year(1900 + u16::from(*year)),
            _ => return None,
        },
        ColumnType::Date => Value::Temporal(temporal::date(bytes)?),
        ColumnType::Time(None) => Value::Temporal(temporal::old_time(bytes)?),
        ColumnType::Time(Some(digits)) => Value::Temporal(temporal::time(bytes, digits)?),
        ColumnType::DateTime(None) => Value::Temporal(temporal::old_datetime(bytes)?),
        ColumnType::OldDateTime => match temporal::old_datetime(bytes) {
            Some(text) if !is_packed_datetime(bytes) || bytes == [0; 8] => Value::Temporal(text),
            _ => Value::Undecoded(
                "it is of MariaDB's old form, and the log does not tell whether it has a fraction: ask a server with --schema".to_owned(),
                bytes,
            ),
        },
        ColumnType::DateTime(Some(digits)) => Value::Temporal(temporal::datetime(bytes, digits)?),
        ColumnType::Timestamp(None) => Value::Timestamp(temporal::old_timestamp(bytes)?),
        ColumnType::Timestamp(Some(digits)) => Value::Timestamp(temporal::timestamp(bytes, digits)?),
        ColumnType::Char(len) if column.charset == Some(Charset::Binary) => {
            Value::Bytes(filled(bytes, usize::from(len)))
        }
        ColumnType::Char(_) | ColumnType::VarChar(_) | ColumnType::Blob(_) => {
            characters(column.charset, Cow::Borrowed(bytes))
        }
        ColumnType::Uuid => of_bytes(address::uuid, bytes, 16)?,
        ColumnType::Inet4 => of_bytes(address::inet4, bytes, 4)?,
        ColumnType::Inet6 => of_bytes(address::inet6, bytes, 16)?,
        ColumnType::Enum => Value::Enum(match bytes {
            [number] => u16::from(*number),
            _ => u16::from_le_bytes(bytes.try_into().ok()?),
        }),
        ColumnType::Set(_) if bytes.len() <= 8 => Value::Set(little_endian(bytes)),
        ColumnType::Json => match JsonValue::parse(bytes) {
            Ok(value) => Value::Json(value),
            Err(error) => Value::Undecoded(error.to_string(), bytes),
        },
        ColumnType::Geometry => match Geometry::parse(bytes) {
            Some(geometry) => Value::Geometry(geometry, bytes),
            None => Value::Undecoded("it is no geometry of a known kind".to_owned(), bytes),
        },
        ColumnType::Vector if bytes.len().is_multiple_of(4) => {
            let numbers = bytes.chunks(4).filter_map(|four| four.first_chunk::<4>());
            Value::Vector(numbers.map(|four| f32::from_le_bytes(*four)).collect(), bytes)
        }
        ColumnType::Compressed => match packed::unpacked(bytes) {
            Ok(own) => characters(column.charset, own),
            Err(why) => Value::Undecoded(why.to_owned(), bytes),
        },
        _ => return None,
    })
}

/// A type that is BINARY of so many bytes to a log.
fn of_bytes<'a>(text: fn(&[u8]) -> Option<String>, bytes: &'a [u8], len: usize) -> Option<Value<'a>> {
    let bytes = filled(bytes, len);
    Some(Value::Address(text(&bytes)?, bytes))
}

/// With the zeros at the end, which the log leaves out.
fn filled(bytes: &[u8], len: usize) -> Cow<'_, [u8]> {
    let mut own = Cow::Borrowed(bytes);
    if bytes.len() < len {
        own.to_mut().resize(len, 0);
    }
    own
}

/// Where no character set is named, text is taken for UTF-8 if it can be that.
fn characters(charset: Option<Charset>, bytes: Cow<'_, [u8]>) -> Value<'_> {
    if charset == Some(Charset::Binary) {
        return Value::Bytes(bytes);
    }
    let charset = charset.unwrap_or(Charset::Utf8);
    let text = match &bytes {
        Cow::Borrowed(bytes) => charset.decode(bytes),
        Cow::Owned(bytes) => charset.decode(bytes).map(|text| Cow::Owned(text.into_owned())),
    };
    match text {
        Some(text) => Value::Text(text, bytes),
        None => Value::Encoded(bytes),
    }
}

fn integer<'a>(bytes: &[u8], unsigned: Option<bool>) -> Option<Value<'a>> {
    if bytes.is_empty() || bytes.len() > 8 {
        return None;
    }
    let number = little_endian(bytes);
    let unused = 64 - 8 * bytes.len() as u32;
    let signed = ((number << unused) as i64) >> unused;
    Some(match unsigned {
        Some(true) => Value::UInt(number),
        None if signed < 0 => Value::Either(signed, number),
        _ => Value::Int(signed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_a_sign_where_the_log_says_so() {
        let of = |unsigned, bytes| {
            Value::decode(&Column { unsigned, ..Column::of(ColumnType::Integer(3)) }, bytes)
        };
        assert_eq!(of(Some(false), &[0xff, 0xff, 0xff]), Value::Int(-1));
        assert_eq!(of(Some(true), &[0xff, 0xff, 0xff]), Value::UInt(0xff_ffff));
        assert_eq!(of(None, &[0xff, 0xff, 0xff]), Value::Either(-1, 0xff_ffff));
        assert_eq!(of(None, &[1, 0, 0]), Value::Int(1));
    }

    #[test]
    fn bytes_and_texts_are_told_apart_where_the_log_says_so() {
        let of =
            |charset, bytes| Value::decode(&Column { charset, ..Column::of(ColumnType::Char(4)) }, bytes);
        assert_eq!(of(Some(Charset::Binary), b"a"), Value::Bytes(Cow::Borrowed(b"a\0\0\0")));
        assert_eq!(of(None, "ä".as_bytes()), Value::Text("ä".into(), "ä".as_bytes().into()));
        assert_eq!(of(None, &[0xff]), Value::Encoded(Cow::Borrowed(&[0xff])));
        assert_eq!(of(Some(Charset::Latin1), &[0xe4]), Value::Text("ä".into(), Cow::Borrowed(&[0xe4])));
    }

    #[test]
    fn addresses_have_their_zeros_at_the_end() {
        let value = Value::decode(&Column::of(ColumnType::Inet4), &[10]);
        assert_eq!(value, Value::Address("10.0.0.0".into(), vec![10, 0, 0, 0].into()));
        assert!(matches!(Value::decode(&Column::of(ColumnType::Inet4), &[1; 5]), Value::Undecoded(..)));
    }

    #[test]
    fn compressed_columns_are_unpacked() {
        let of =
            |charset, bytes| Value::decode(&Column { charset, ..Column::of(ColumnType::Compressed) }, bytes);
        let packed = &[0x89, 40, 0x4b, 0x4a, 0x22, 0x0e, 0, 0];
        let text = "b".repeat(40);
        assert_eq!(of(None, packed), Value::Text(text.clone().into(), text.clone().into_bytes().into()));
        assert_eq!(of(Some(Charset::Binary), packed), Value::Bytes(text.into_bytes().into()));
        assert!(matches!(of(None, &packed[..4]), Value::Undecoded(..)));
    }

    #[test]
    fn what_is_not_decoded_is_said_with_its_bytes() {
        let value = Value::decode(&Column::of(ColumnType::Json), &[13]);
        assert!(matches!(value, Value::Undecoded(_, [13])), "{value:?}");
        let value = Value::decode(&Column::of(ColumnType::Other(99)), &[1]);
        assert!(matches!(value, Value::Undecoded(_, [1])), "{value:?}");
    }
}
