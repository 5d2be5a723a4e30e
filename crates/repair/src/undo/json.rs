//! A JSON document as an expression that makes the same one, with the same types in it, and as a condition that holds for no other.

use super::quoting::{by_digest, bytes_literal, float, quoted};
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

/// So many types are compared one by one. In a larger document an INTEGER and a DECIMAL of the same digits are taken for one.
const TYPES_MAX: usize = 256;

/// Longer texts are compared by their length and SHA-512, in bytes, where the text of a server is known to be that of [`JsonValue`].
const COMPARED_BYTES_MAX: usize = 256 << 10;

/// A condition that holds for this document; `literal` makes it. As texts the two are compared by their bytes: a collation would take
/// "paid" for "PAID". The text does not say all: 1 is an INTEGER, an UNSIGNED INTEGER or a DECIMAL, "2024-02-29" a text or a DATE.
pub(super) fn condition(name: &str, literal: &str, value: &JsonValue) -> String {
    let bytes = |of: &str| format!("CAST(CAST({of} AS CHAR) AS BINARY)");
    let mut types = Vec::new();
    add_types("$", value, &mut types);
    let is_by_digest = literal.len() > COMPARED_BYTES_MAX && value.is_plain() && types.len() <= TYPES_MAX;
    let mut all = vec![match is_by_digest {
        true => by_digest(&bytes(name), value.to_string().as_bytes()),
        false => format!("{} = {}", bytes(name), bytes(literal)),
    }];
    if types.len() > TYPES_MAX {
        // Tells a text from a DATE, and a number from another one.
        all.push(format!("{name} = {literal}"));
        types.clear();
    }
    let one = |(path, is): (String, &str)| {
        format!("JSON_TYPE(JSON_EXTRACT({name}, {})) {is}", quoted_or_hex(&path))
    };
    all.extend(types.into_iter().map(one));
    all.join(" AND ")
}

/// The paths of all values whose text may stand for another type, and what `JSON_TYPE` says of them.
fn add_types(path: &str, value: &JsonValue, types: &mut Vec<(String, &'static str)>) {
    let is = match value {
        JsonValue::Array(list) => {
            let all = list.iter().enumerate();
            return all.for_each(|(at, value)| add_types(&format!("{path}[{at}]"), value, types));
        }
        JsonValue::Object(members) => {
            let path_of = |key: &String| format!("{path}.{}", JsonValue::String(key.clone()));
            return members.iter().for_each(|(key, value)| add_types(&path_of(key), value, types));
        }
        JsonValue::Null | JsonValue::Bool(_) => return,
        JsonValue::String(text) if !may_be_another(text) => return,
        JsonValue::Int(_) => "= 'INTEGER'",
        JsonValue::UInt(_) => "= 'UNSIGNED INTEGER'",
        JsonValue::Double(_) => "= 'DOUBLE'",
        JsonValue::Decimal(_) => "= 'DECIMAL'",
        JsonValue::String(_) => "= 'STRING'",
        JsonValue::Date(_) | JsonValue::Time(_) | JsonValue::DateTime(_) | JsonValue::Opaque { .. } => {
            "<> 'STRING'"
        }
    };
    types.push((path.to_owned(), is));
}

/// Whether a DATE, a TIME, a DATETIME or bytes may be printed so.
fn may_be_another(text: &str) -> bool {
    let is_of_time = |one: char| one.is_ascii_digit() || matches!(one, '-' | ':' | '.' | ' ');
    text.starts_with("base64:type") || !text.is_empty() && text.chars().all(is_of_time)
}

fn element(value: &JsonValue) -> Result<String, String> {
    Ok(match value {
        JsonValue::Null | JsonValue::Bool(_) => format!("CAST('{value}' AS JSON)"),
        JsonValue::Int(number) => number.to_string(),
        JsonValue::UInt(number) => format!("CAST({number} AS UNSIGNED)"),
        JsonValue::Double(number) => float(*number),
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
    fn a_condition_tells_types_that_the_text_does_not() {
        let document = JsonValue::Object(vec![
            ("a\"".into(), JsonValue::Array(vec![JsonValue::Int(1), JsonValue::Bool(true)])),
            ("s".into(), JsonValue::String("12:00:00.000000".into())),
            ("t".into(), JsonValue::String("text".into())),
        ]);
        assert_eq!(
            condition("c", "L", &document),
            "CAST(CAST(c AS CHAR) AS BINARY) = CAST(CAST(L AS CHAR) AS BINARY) \
             AND JSON_TYPE(JSON_EXTRACT(c, '$.\"a\\\\\"\"[0]')) = 'INTEGER' AND JSON_TYPE(JSON_EXTRACT(c, '$.\"s\"')) = 'STRING'"
        );
        let many = JsonValue::Array(vec![JsonValue::Int(1); TYPES_MAX + 1]);
        assert!(condition("c", "L", &many).ends_with(" AND c = L"));
    }

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
