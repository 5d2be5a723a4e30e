//! JSON as MySQL stores it in a row.
//!
//! Layout (MySQL, the comment at the head of `sql-common/json_binary.h`): a byte for the type, then the value. An object or an array
//! begins with its number of elements and its bytes, then of an object an offset and a length for each key, then for each element a
//! type and an offset, or the value itself where it fits; all numbers little-endian, of two bytes in the small and of four in the
//! large form. Offsets count from the object's own beginning.

pub(in crate::rows) mod json_diff;
pub(in crate::rows) mod json_text;

use super::decimal::decimal;
use super::temporal::{json_date, json_datetime, json_time};
use thiserror::Error;

/// A document, or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonValue {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A signed number.
    Int(i64),
    /// An unsigned number, also a small one that was made of an unsigned value.
    UInt(u64),
    /// A floating-point number.
    Double(f64),
    /// A text.
    String(String),
    /// A DECIMAL, as text.
    Decimal(String),
    /// A DATE, as text.
    Date(String),
    /// A TIME, as text with six digits.
    Time(String),
    /// A DATETIME or TIMESTAMP, as text with six digits.
    DateTime(String),
    /// A value of another SQL type.
    Opaque {
        /// The type (`enum_field_types`).
        code: u8,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A list.
    Array(Vec<JsonValue>),
    /// Keys and values, in the order of the document.
    Object(Vec<(String, JsonValue)>),
}

/// Bytes are no document.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct JsonError(&'static str);

const CUT: JsonError = JsonError("a JSON document is shorter than it says");
const UNKNOWN: JsonError = JsonError("a JSON document holds a type that is not known");
const TOO_DEEP: JsonError = JsonError("a JSON document is nested too deeply");
const TOO_MUCH: JsonError = JsonError("a JSON document holds more than its bytes can");
const NO_UTF8: JsonError = JsonError("a text in a JSON document is no UTF-8");

/// The servers nest no deeper (`JSON_DOCUMENT_MAX_DEPTH`).
const DEPTH_MAX: usize = 100;

impl JsonValue {
    /// Reads a whole document. No bytes at all are `null`, as the server has it.
    ///
    /// # Errors
    /// When the bytes are no document.
    pub fn parse(bytes: &[u8]) -> Result<JsonValue, JsonError> {
        let Some((code, value)) = bytes.split_first() else { return Ok(JsonValue::Null) };
        Reading { left: bytes.len() + 1 }.value(*code, value, 0)
    }

    /// Whether it reads the same from its text: it holds only what a text of JSON can say.
    pub fn is_plain(&self) -> bool {
        match self {
            JsonValue::Null | JsonValue::Bool(_) | JsonValue::Int(_) | JsonValue::String(_) => true,
            JsonValue::UInt(number) => i64::try_from(*number).is_err(),
            JsonValue::Array(list) => list.iter().all(JsonValue::is_plain),
            JsonValue::Object(members) => members.iter().all(|(_, value)| value.is_plain()),
            _ => false,
        }
    }
}

/// Reads a document, and never more of it than it has bytes: offsets may point to one place again and again.
struct Reading {
    left: usize,
}

impl Reading {
    fn spend(&mut self, bytes: usize) -> Result<(), JsonError> {
        self.left = self.left.checked_sub(bytes).ok_or(TOO_MUCH)?;
        Ok(())
    }

    fn value(&mut self, code: u8, bytes: &[u8], depth: usize) -> Result<JsonValue, JsonError> {
        self.spend(1)?;
        match code {
            0..=3 if depth >= DEPTH_MAX => Err(TOO_DEEP),
            0..=3 => self.container(code < 2, code % 2 == 1, bytes, depth + 1),
            4 => literal(*bytes.first().ok_or(CUT)?),
            5 => Ok(JsonValue::Int(i16::from_le_bytes(*bytes.first_chunk().ok_or(CUT)?).into())),
            6 => Ok(JsonValue::UInt(u16::from_le_bytes(*bytes.first_chunk().ok_or(CUT)?).into())),
            7 => Ok(JsonValue::Int(i32::from_le_bytes(*bytes.first_chunk().ok_or(CUT)?).into())),
            8 => Ok(JsonValue::UInt(u32::from_le_bytes(*bytes.first_chunk().ok_or(CUT)?).into())),
            9 => Ok(JsonValue::Int(i64::from_le_bytes(*bytes.first_chunk().ok_or(CUT)?))),
            10 => Ok(JsonValue::UInt(u64::from_le_bytes(*bytes.first_chunk().ok_or(CUT)?))),
            11 => Ok(JsonValue::Double(f64::from_le_bytes(*bytes.first_chunk().ok_or(CUT)?))),
            12 => self.text(counted(bytes)?).map(JsonValue::String),
            15 => self.opaque(bytes),
            _ => Err(UNKNOWN),
        }
    }

    fn text(&mut self, bytes: &[u8]) -> Result<String, JsonError> {
        self.spend(bytes.len())?;
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| NO_UTF8)
    }

    fn opaque(&mut self, bytes: &[u8]) -> Result<JsonValue, JsonError> {
        let (code, rest) = bytes.split_first().ok_or(CUT)?;
        let own = counted(rest)?;
        self.spend(own.len())?;
        let packed = own.first_chunk().filter(|_| own.len() == 8).map(|own| i64::from_le_bytes(*own));
        let known = match code {
            246 => match own {
                [precision, scale, number @ ..] => {
                    decimal(number, usize::from(*precision), usize::from(*scale)).map(JsonValue::Decimal)
                }
                _ => None,
            },
            10 => packed.and_then(json_date).map(JsonValue::Date),
            11 => packed.and_then(json_time).map(JsonValue::Time),
            7 | 12 => packed.and_then(json_datetime).map(JsonValue::DateTime),
            _ => None,
        };
        Ok(known.unwrap_or_else(|| JsonValue::Opaque { code: *code, bytes: own.to_vec() }))
    }

    fn container(
        &mut self,
        is_object: bool,
        is_large: bool,
        bytes: &[u8],
        depth: usize,
    ) -> Result<JsonValue, JsonError> {
        let width = if is_large { 4 } else { 2 };
        let number = |at: usize| -> Result<usize, JsonError> {
            let own = bytes.get(at..at + width).ok_or(CUT)?;
            Ok(own.iter().rev().fold(0_usize, |number, byte| number << 8 | usize::from(*byte)))
        };
        let (count, size) = (number(0)?, number(width)?);
        let bytes = bytes.get(..size).ok_or(CUT)?;
        let keys_at = 2 * width;
        let key_len = if is_object { width + 2 } else { 0 };
        let values_at = count.checked_mul(key_len).map(|len| keys_at + len).ok_or(CUT)?;
        let head = count.checked_mul(1 + width).and_then(|len| len.checked_add(values_at)).ok_or(CUT)?;
        if head > bytes.len() {
            return Err(CUT);
        }
        let mut keys = Vec::new();
        let mut values = Vec::new();
        for element in 0..count {
            if is_object {
                let at = keys_at + element * key_len;
                let len = bytes.get(at + width..at + width + 2).ok_or(CUT)?;
                let len = usize::from(u16::from_le_bytes([len[0], len[1]]));
                let from = number(at)?;
                let key = from.checked_add(len).and_then(|to| bytes.get(from..to)).ok_or(CUT)?;
                keys.push(self.text(key)?);
            }
            let at = values_at + element * (1 + width);
            let code = *bytes.get(at).ok_or(CUT)?;
            let is_inlined = matches!(code, 4..=6) || (is_large && matches!(code, 7 | 8));
            let from = if is_inlined { at + 1 } else { number(at + 1)? };
            values.push(self.value(code, bytes.get(from..).ok_or(CUT)?, depth)?);
        }
        Ok(match is_object {
            true => JsonValue::Object(keys.into_iter().zip(values).collect()),
            false => JsonValue::Array(values),
        })
    }
}

fn literal(byte: u8) -> Result<JsonValue, JsonError> {
    match byte {
        0 => Ok(JsonValue::Null),
        1 => Ok(JsonValue::Bool(true)),
        2 => Ok(JsonValue::Bool(false)),
        _ => Err(UNKNOWN),
    }
}

/// Bytes with their number before: seven bits a byte, the low ones first, and the high bit where more follow.
fn counted(bytes: &[u8]) -> Result<&[u8], JsonError> {
    let mut len = 0_usize;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        len |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let from = at + 1;
            return from.checked_add(len).and_then(|to| bytes.get(from..to)).ok_or(CUT);
        }
    }
    Err(CUT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_documents_are_read() {
        let text = |bytes: &[u8]| JsonValue::parse(bytes).map(|value| value.to_string());
        assert_eq!(text(&[]).unwrap(), "null");
        assert_eq!(text(&[4, 1]).unwrap(), "true");
        assert_eq!(text(&[5, 0xff, 0xff]).unwrap(), "-1");
        assert_eq!(text(&[12, 1, b'"']).unwrap(), r#""\"""#);
        // {"a": 1}
        let object = [0, 1, 0, 12, 0, 11, 0, 1, 0, 5, 1, 0, b'a'];
        assert_eq!(text(&object).unwrap(), r#"{"a": 1}"#);
        for len in 1..object.len() {
            assert!(text(&object[..len]).is_err(), "{len}");
        }
        // [true, [2]]
        assert_eq!(text(&[2, 2, 0, 17, 0, 4, 1, 0, 2, 10, 0, 1, 0, 7, 0, 5, 2, 0]).unwrap(), "[true, [2]]");
        assert_eq!(text(&[15, 252, 2, b'h', b'i']).unwrap(), r#""base64:type252:aGk=""#);
        assert_eq!(text(&[15, 246, 7, 10, 2, 0x80, 0, 0, 1, 50]).unwrap(), "1.50");
        assert!(text(&[13, 1]).is_err());
    }

    #[test]
    fn a_document_that_points_to_itself_ends() {
        // An array of two elements that are the array again.
        assert!(JsonValue::parse(&[2, 2, 0, 10, 0, 2, 0, 0, 2, 0, 0]).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(code in 0_u8..16, bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(value) = JsonValue::parse(&[&[code][..], &bytes].concat()) {
                let _ = value.to_string();
            }
        }
    }
}
