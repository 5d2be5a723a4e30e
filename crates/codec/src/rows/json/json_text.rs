//! JSON as text, with spaces as MySQL prints it.

use crate::rows::json::JsonValue;
use std::fmt::{self, Write};

impl fmt::Display for JsonValue {
    /// As the server prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self, f)
    }
}

fn write(value: &JsonValue, out: &mut dyn Write) -> fmt::Result {
    match value {
        JsonValue::Null => out.write_str("null"),
        JsonValue::Bool(is) => write!(out, "{is}"),
        JsonValue::Int(number) => write!(out, "{number}"),
        JsonValue::UInt(number) => write!(out, "{number}"),
        // With a point or an exponent always, so that it stays a floating-point number.
        JsonValue::Double(number) => write!(out, "{number:?}"),
        JsonValue::Decimal(text) => out.write_str(text),
        JsonValue::String(text)
        | JsonValue::Date(text)
        | JsonValue::Time(text)
        | JsonValue::DateTime(text) => string(text, out),
        JsonValue::Opaque { code, bytes } => string(&opaque_text(*code, bytes), out),
        JsonValue::Array(list) => {
            out.write_char('[')?;
            for (at, value) in list.iter().enumerate() {
                out.write_str(if at > 0 { ", " } else { "" })?;
                write(value, out)?;
            }
            out.write_char(']')
        }
        JsonValue::Object(members) => {
            out.write_char('{')?;
            for (at, (key, value)) in members.iter().enumerate() {
                out.write_str(if at > 0 { ", " } else { "" })?;
                string(key, out)?;
                out.write_str(": ")?;
                write(value, out)?;
            }
            out.write_char('}')
        }
    }
}

fn string(text: &str, out: &mut dyn Write) -> fmt::Result {
    out.write_char('"')?;
    for one in text.chars() {
        match one {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            '\u{8}' => out.write_str("\\b")?,
            '\u{c}' => out.write_str("\\f")?,
            one if one < ' ' => write!(out, "\\u{:04x}", one as u32)?,
            one => out.write_char(one)?,
        }
    }
    out.write_char('"')
}

/// What the server prints of a value that is none of JSON's: its type and its bytes in base64.
fn opaque_text(code: u8, bytes: &[u8]) -> String {
    format!("base64:type{code}:{}", base64(bytes))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits =
            three.iter().enumerate().fold(0_u32, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit) & 63) as usize;
            text.push(if digit <= three.len() { char::from(DIGITS[value]) } else { '=' });
        }
    }
    text
}
