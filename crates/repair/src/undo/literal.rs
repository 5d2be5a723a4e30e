//! Values as literals of SQL, and conditions that hold for exactly this value.
//!
//! A condition compares bytes or numbers, never by a collation: what a collation calls equal may be another value. Such a comparison
//! wraps the column in a function, which no index serves: the server would read and lock the whole table for each row. So for columns
//! of an index the plain comparison stands before the exact one. It holds wherever the exact one does. Long values are compared by their
//! length and SHA-512: a statement must not be longer than the server's `max_allowed_packet`, and a row may be almost as long.

use super::json;
use super::quoting::{by_digest, bytes_literal, float, name, quoted};
use codec::rows::{Charset, Column, Value, hex};

/// A value as a literal.
///
/// # Errors
/// Why it cannot be written exactly.
pub fn literal(column: &Column, value: &Value<'_>) -> Result<String, String> {
    Ok(match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) | Value::Bit(number) => number.to_string(),
        Value::Enum(_) | Value::Set(_) => match members(column, value) {
            Ok(names) => text_literal(&names),
            Err(number) => number.to_string(),
        },
        // The exact value in digits that are read back as the same.
        Value::Float(number) => float(f64::from(*number)),
        Value::Double(number) => float(*number),
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

/// A condition that holds for rows that have this value. `finds`: an index may serve the column; `charset`: the name of its character
/// set, where a server told it.
///
/// # Errors
/// As [`literal`].
pub(super) fn condition(
    column: &Column,
    value: &Value<'_>,
    finds: bool,
    charset: Option<&str>,
) -> Result<String, String> {
    let (name, plain, exact) = comparisons(column, value, charset)?;
    let plain = plain.filter(|plain| finds && plain.len() <= PLAIN_BYTES_MAX);
    Ok(plain.map_or_else(|| exact.clone(), |plain| format!("{name} = {plain} AND {exact}")))
}

/// A condition that holds for all rows that a key takes for the same.
///
/// # Errors
/// As [`literal`].
pub(super) fn key_condition(
    column: &Column,
    value: &Value<'_>,
    charset: Option<&str>,
) -> Result<String, String> {
    let (name, plain, exact) = comparisons(column, value, charset)?;
    Ok(plain.map_or(exact, |plain| format!("{name} = {plain}")))
}

/// The name of a column; what it is plainly compared with, where that is not all; a condition that is exact with that or alone.
fn comparisons(
    column: &Column,
    value: &Value<'_>,
    charset: Option<&str>,
) -> Result<(String, Option<String>, String), String> {
    let name = name(column.name.as_deref().unwrap_or_default());
    let literal = literal(column, value)?;
    let (plain, exact) = match value {
        Value::Null => (None, format!("{name} IS NULL")),
        Value::Enum(_) | Value::Set(_) if members(column, value).is_ok() => {
            let exact = format!("CAST(CONVERT({name} USING utf8mb4) AS BINARY) = {literal}");
            (Some(literal), exact)
        }
        Value::Bit(_) | Value::Set(_) | Value::Enum(_) => {
            let exact = format!("CAST({name} AS UNSIGNED) = {literal}");
            (Some(literal), exact)
        }
        Value::Year(year) => (Some(literal), format!("CAST({name} AS UNSIGNED) = {year}")),
        Value::Temporal(_) | Value::Timestamp(_) => {
            let exact = format!("CAST({name} AS CHAR) = {literal}");
            (Some(literal), exact)
        }
        Value::Text(text, bytes) => {
            let exact = exact_bytes(&format!("CAST({name} AS BINARY)"), bytes, &literal);
            (Some(text_literal(text)), exact)
        }
        Value::Encoded(bytes) => {
            let plain = charset.map(|charset| format!("_{charset} X'{}'", hex(bytes)));
            (plain, exact_bytes(&format!("CAST({name} AS BINARY)"), bytes, &literal))
        }
        Value::Bytes(bytes) => (Some(literal), exact_hex(&name, bytes)),
        Value::Geometry(_, bytes) | Value::Vector(_, bytes) => (None, exact_hex(&name, bytes)),
        Value::Json(value) => (None, json::condition(&name, &literal, value)),
        // 0 and -0 are equal to a server, and not the same. MySQL would put the 0 in the place of a bare column that it is compared with.
        Value::Float(0.0) | Value::Double(0.0) => {
            let is = if literal.contains('-') { "LIKE" } else { "NOT LIKE" };
            (None, format!("{name} + 0e0 = 0e0 AND CAST({name} AS CHAR) {is} '-%'"))
        }
        _ => (None, format!("{name} = {literal}")),
    };
    Ok((name, plain, exact))
}

/// Longer values are compared by their length and SHA-512, in bytes.
const COMPARED_BYTES_MAX: usize = 4096;

/// A condition that an expression has these bytes, of which `literal` makes a value to compare with.
fn exact_bytes(expression: &str, bytes: &[u8], literal: &str) -> String {
    if bytes.len() > COMPARED_BYTES_MAX {
        return by_digest(expression, bytes);
    }
    format!("{expression} = {literal}")
}

fn exact_hex(name: &str, bytes: &[u8]) -> String {
    if bytes.len() > COMPARED_BYTES_MAX {
        return by_digest(name, bytes);
    }
    format!("HEX({name}) = '{}'", hex(bytes).to_uppercase())
}

/// The names of an ENUM or a SET, which hold also where the numbers have become others; the number where the names are not known, or
/// do not tell the value: an empty name may be that of a member, and that of none.
fn members(column: &Column, value: &Value<'_>) -> Result<String, u64> {
    let number = match value {
        Value::Enum(number) => u64::from(*number),
        Value::Set(bits) => *bits,
        _ => return Err(0),
    };
    let all = column.members.as_ref().filter(|all| !all.iter().any(String::is_empty)).ok_or(number)?;
    let chosen: Option<Vec<&str>> = match value {
        Value::Enum(number) => {
            usize::from(*number).checked_sub(1).and_then(|at| all.get(at)).map(|name| vec![name.as_str()])
        }
        _ => {
            let set = (0..64).filter(|bit| number & 1 << bit != 0);
            set.map(|bit| all.get(bit as usize).map(String::as_str)).collect()
        }
    };
    chosen.map(|names| names.join(",")).ok_or(number)
}

/// No index holds more of a value (InnoDB: 3072 bytes a column), with what a literal adds.
const PLAIN_BYTES_MAX: usize = 2 * 3072 + 16;

/// A text as the server compares it with any column of characters.
fn text_literal(text: &str) -> String {
    match text.chars().any(char::is_control) {
        true => format!("_utf8mb4 X'{}'", hex(text.as_bytes())),
        false => quoted(text),
    }
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
        let finds = |text: &'static str, finds| {
            condition(&utf8, &Value::Text(text.into(), text.as_bytes().into()), finds, None).unwrap()
        };
        let of = |text| finds(text, false);
        assert_eq!(of(r"it's \ ä"), r"CAST(`a``b` AS BINARY) = 'it''s \\ ä'");
        assert_eq!(of("a\nb"), "CAST(`a``b` AS BINARY) = X'610a62'");
        assert_eq!(finds("a\nb", true), "`a``b` = _utf8mb4 X'610a62' AND CAST(`a``b` AS BINARY) = X'610a62'");
        let latin1 = column(ColumnType::VarChar(40), Some(Charset::Latin1));
        let text = Value::Text("ä".into(), vec![0xe4].into());
        assert_eq!(literal(&latin1, &text).unwrap(), "X'e4'");
    }

    #[test]
    fn members_stand_by_their_names_where_these_tell_the_value() {
        let of = |members: Option<&[&str]>, value: &Value<'_>| {
            let mut column = column(ColumnType::Enum, None);
            column.members = members.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
            condition(&column, value, true, None).unwrap()
        };
        let by_number = "`a``b` = 2 AND CAST(`a``b` AS UNSIGNED) = 2";
        assert_eq!(
            of(Some(&["x", "y"]), &Value::Enum(2)),
            "`a``b` = 'y' AND CAST(CONVERT(`a``b` USING utf8mb4) AS BINARY) = 'y'"
        );
        assert_eq!(of(None, &Value::Enum(2)), by_number);
        assert_eq!(of(Some(&["", "y"]), &Value::Enum(2)), by_number);
        assert_eq!(of(Some(&["x"]), &Value::Enum(2)), by_number);
        assert!(of(Some(&["x"]), &Value::Enum(0)).starts_with("`a``b` = 0 AND"));
        assert!(of(Some(&["x", "y", "z"]), &Value::Set(5)).starts_with("`a``b` = 'x,z' AND"));
        assert!(of(Some(&["x"]), &Value::Set(0)).starts_with("`a``b` = '' AND"));
        assert_eq!(of(Some(&["x"]), &Value::Set(2)), by_number);
    }

    #[test]
    fn numbers_are_exact() {
        let float = column(ColumnType::Float, None);
        assert_eq!(literal(&float, &Value::Float(1.1)).unwrap(), "1.100000023841858e0");
        assert_eq!(literal(&float, &Value::Double(-0.1)).unwrap(), "-1e-1");
        let zero = |number| condition(&float, &Value::Double(number), false, None).unwrap();
        assert_eq!(zero(0.0), "`a``b` + 0e0 = 0e0 AND CAST(`a``b` AS CHAR) NOT LIKE '-%'");
        assert_eq!(zero(-0.0), "`a``b` + 0e0 = 0e0 AND CAST(`a``b` AS CHAR) LIKE '-%'");
        assert!(literal(&float, &Value::Either(-1, 255)).is_err());
        assert!(literal(&float, &Value::Undecoded("x".into(), &[1])).unwrap_err().contains('x'));
    }
}
