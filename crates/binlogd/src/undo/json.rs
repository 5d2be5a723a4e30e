//! A JSON document as an expression that makes the same one, with the same types in it.

use super::quoting::{bytes_literal, quoted};
use codec::rows::JsonValue;

/// The expression: the text where that says all of it, else functions that make it.
///
/// # Errors
/// When it holds a value of SQL that no function makes of a literal.
pub(super) fn expression(value: &JsonValue) -> Result<String, String> {
    if value.is_plain() {
        return Ok(format!("CAST({} AS JSON)", quoted(&value.to_string())));
    }
    match value {
        JsonValue::Array(_) | JsonValue::Object(_) => element(value),
        _ => Ok(format!("CAST({} AS JSON)", element(value)?)),
    }
}

fn element(value: &JsonValue) -> Result<String, String> {
    Ok(match value {
        JsonValue::Null | JsonValue::Bool(_) => format!("CAST('{value}' AS JSON)"),
        JsonValue::Int(number) => number.to_string(),
        JsonValue::UInt(number) => format!("CAST({number} AS UNSIGNED)"),
        JsonValue::Double(number) => format!("{number:e}"),
        JsonValue::String(text) => quoted_or_hex(text),
        JsonValue::Decimal(text) => decimal(text),
        JsonValue::Date(text) => format!("CAST('{text}' AS DATE)"),
        JsonValue::Time(text) => format!("CAST('{text}' AS TIME(6))"),
        JsonValue::DateTime(text) => format!("CAST('{text}' AS DATETIME(6))"),
        // What a literal of bytes is in a document.
        JsonValue::Opaque { code: 15, bytes } if !bytes.is_empty() => bytes_literal(bytes),
        JsonValue::Opaque { code, .. } => {
            return Err(format!("its JSON holds a value of the SQL type {code}, which cannot be written"));
        }
        JsonValue::Array(list) => {
            let list: Result<Vec<String>, String> = list.iter().map(element).collect();
            format!("JSON_ARRAY({})", list?.join(", "))
        }
        JsonValue::Object(members) => {
            let members: Result<Vec<String>, String> = members
                .iter()
                .map(|(key, value)| Ok(format!("{}, {}", quoted_or_hex(key), element(value)?)))
                .collect();
            format!("JSON_OBJECT({})", members?.join(", "))
        }
    })
}

fn quoted_or_hex(text: &str) -> String {
    match text.chars().any(char::is_control) {
        true => format!("CONVERT(X'{}' USING utf8mb4)", codec::rows::hex(text.as_bytes())),
        false => quoted(text),
    }
}

fn decimal(text: &str) -> String {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let behind = text.split_once('.').map_or(0, |(_, behind)| behind.len());
    format!("CAST('{text}' AS DECIMAL({},{behind}))", digits.max(behind).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_a_text_does_not_say_are_kept() {
        let plain = JsonValue::Object(vec![("a".into(), JsonValue::Int(1))]);
        assert_eq!(expression(&plain).unwrap(), r#"CAST('{"a": 1}' AS JSON)"#);
        let typed =
            JsonValue::Array(vec![JsonValue::Decimal("1.50".into()), JsonValue::Null, JsonValue::UInt(1)]);
        assert_eq!(
            expression(&typed).unwrap(),
            "JSON_ARRAY(CAST('1.50' AS DECIMAL(3,2)), CAST('null' AS JSON), CAST(1 AS UNSIGNED))"
        );
        assert_eq!(expression(&JsonValue::Double(1.0)).unwrap(), "CAST(1e0 AS JSON)");
        assert!(expression(&JsonValue::Opaque { code: 252, bytes: vec![] }).is_err());
    }
}
