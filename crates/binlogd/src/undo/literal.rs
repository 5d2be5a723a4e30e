//! Values as literals of SQL, and conditions that hold for exactly this value.
//!
//! A condition compares bytes or numbers, never by a collation: what a collation calls equal may be another value.

use super::json;
use super::quoting::{bytes_literal, name, quoted};
use codec::rows::{Charset, Column, Value, hex};

/// A value as a literal.
///
/// # Errors
/// Why it cannot be written exactly.
pub(super) fn literal(column: &Column, value: &Value<'_>) -> Result<String, String> {
    Ok(match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) | Value::Bit(number) | Value::Set(number) => number.to_string(),
        Value::Enum(number) => number.to_string(),
        // The exact value in digits that are read back as the same.
        Value::Float(number) => format!("{:e}", f64::from(*number)),
        Value::Double(number) => format!("{number:e}"),
        Value::Decimal(text) => text.clone(),
        Value::Year(year) => format!("'{year:04}'"),
        Value::Temporal(text) | Value::Timestamp(text) => format!("'{text}'"),
        Value::Text(text, bytes) => characters(column, text, bytes),
        Value::Encoded(bytes) => bytes_literal(bytes),
        Value::Bytes(bytes) => bytes_literal(bytes),
        Value::Address(text, _) => quoted(text),
        Value::Json(value) => json::expression(value)?,
        Value::Geometry(_, bytes) | Value::Vector(_, bytes) => bytes_literal(bytes),
        Value::Either(..) => {
            return Err("the log does not say whether it is unsigned: ask a server with --schema".to_owned());
        }
        Value::JsonDiffs(_) => {
            return Err("the log has a partial update of it (binlog_row_value_options), and not what it was"
                .to_owned());
        }
        Value::Undecoded(why, _) => return Err(format!("it cannot be decoded: {why}")),
    })
}

/// A condition that holds for rows that have this value.
///
/// # Errors
/// As [`literal`].
pub(super) fn condition(column: &Column, value: &Value<'_>) -> Result<String, String> {
    let name = name(column.name.as_deref().unwrap_or_default());
    let literal = literal(column, value)?;
    Ok(match value {
        Value::Null => format!("{name} IS NULL"),
        Value::Bit(_) | Value::Set(_) | Value::Enum(_) => format!("CAST({name} AS UNSIGNED) = {literal}"),
        Value::Year(year) => format!("CAST({name} AS UNSIGNED) = {year}"),
        Value::Temporal(_) | Value::Timestamp(_) => format!("CAST({name} AS CHAR) = {literal}"),
        Value::Text(..) | Value::Encoded(_) => {
            let exact = format!("CAST({name} AS BINARY) = {literal}");
            // The server finds the row by its key then.
            if column.is_key == Some(true) { format!("{name} = {literal} AND {exact}") } else { exact }
        }
        Value::Bytes(bytes) => {
            let exact = format!("HEX({name}) = '{}'", hex(bytes).to_uppercase());
            if column.is_key == Some(true) { format!("{name} = {literal} AND {exact}") } else { exact }
        }
        Value::Geometry(_, bytes) | Value::Vector(_, bytes) => {
            format!("HEX({name}) = '{}'", hex(bytes).to_uppercase())
        }
        Value::Json(_) => format!("CAST({name} AS CHAR) = CAST({literal} AS CHAR)"),
        _ => format!("{name} = {literal}"),
    })
}

/// Readable where its bytes in the column are those of a literal in `utf8mb4`.
fn characters(column: &Column, text: &str, bytes: &[u8]) -> String {
    let is_same = matches!(column.charset, Some(Charset::Utf8 | Charset::Ascii));
    if is_same && !text.chars().any(char::is_control) { quoted(text) } else { bytes_literal(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::rows::ColumnType;

    fn column(kind: ColumnType, charset: Option<Charset>) -> Column {
        Column {
            name: Some("a`b".to_owned()),
            unsigned: Some(false),
            charset,
            is_key: Some(false),
            ..Column::of(kind)
        }
    }

    #[test]
    fn texts_are_readable_where_they_can_be() {
        let utf8 = column(ColumnType::VarChar(40), Some(Charset::Utf8));
        let of =
            |text: &'static str| condition(&utf8, &Value::Text(text.into(), text.as_bytes().into())).unwrap();
        assert_eq!(of(r"it's \ ä"), r"CAST(`a``b` AS BINARY) = 'it''s \\ ä'");
        assert_eq!(of("a\nb"), "CAST(`a``b` AS BINARY) = X'610a62'");
        let latin1 = column(ColumnType::VarChar(40), Some(Charset::Latin1));
        let text = Value::Text("ä".into(), vec![0xe4].into());
        assert_eq!(literal(&latin1, &text).unwrap(), "X'e4'");
    }

    #[test]
    fn numbers_are_exact() {
        let float = column(ColumnType::Float, None);
        assert_eq!(literal(&float, &Value::Float(1.1)).unwrap(), "1.100000023841858e0");
        assert_eq!(literal(&float, &Value::Double(-0.1)).unwrap(), "-1e-1");
        assert!(literal(&float, &Value::Either(-1, 255)).is_err());
        assert!(literal(&float, &Value::Undecoded("x".into(), &[1])).unwrap_err().contains('x'));
    }
}
