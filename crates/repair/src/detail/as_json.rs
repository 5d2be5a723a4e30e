//! Values as JSON.

use codec::rows::{Column, ColumnType, JsonOperation, Value, hex};
use serde_json::{Value as Json, json};

/// Exactly what the log says of a value.
pub fn as_json(column: &Column, value: &Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Int(number) => json!(number),
        Value::UInt(number) | Value::Bit(number) => json!(number),
        Value::Either(signed, unsigned) => json!({"signed": signed, "unsigned": unsigned}),
        // Its shortest text, not that of the DOUBLE of the same value.
        Value::Float(number) => json!(number.to_string().parse::<f64>().unwrap_or(f64::from(*number))),
        Value::Double(number) => json!(number),
        Value::Decimal(text) | Value::Temporal(text) | Value::Timestamp(text) => json!(text),
        Value::Year(year) => json!(format!("{year:04}")),
        Value::Text(text, _) => json!(text),
        Value::Address(text, _) => json!(text),
        Value::Bytes(bytes) => json!({"hex": hex(bytes)}),
        Value::Encoded(bytes) => json!({"encoded": hex(bytes)}),
        Value::Enum(number) => member(column, *number),
        Value::Set(bits) => members(column, *bits),
        Value::Json(value) => json!(value.to_string()),
        Value::JsonDiffs(diffs) => {
            let operation = |operation| match operation {
                JsonOperation::Replace => "replace",
                JsonOperation::Insert => "insert",
                JsonOperation::Remove => "remove",
            };
            let diffs: Vec<Json> = diffs
                .iter()
                .map(|diff| {
                    let value = diff.value.as_ref().map(ToString::to_string);
                    json!({"operation": operation(diff.operation), "path": diff.path, "value": value})
                })
                .collect();
            json!({"json_changes": diffs})
        }
        Value::Geometry(geometry, bytes) => {
            json!({"wkt": geometry.text, "srid": geometry.srid, "hex": hex(bytes)})
        }
        Value::Vector(numbers, bytes) => {
            let numbers: Vec<_> =
                numbers.iter().map(|number| number.to_string().parse::<f64>().ok()).collect();
            json!({"vector": numbers, "hex": hex(bytes)})
        }
        Value::Undecoded(why, bytes) => json!({"undecoded": why, "hex": hex(bytes)}),
    }
}

/// A name, or the number where the log has no names.
fn member(column: &Column, number: u16) -> Json {
    let name = column.members.as_ref().and_then(|names| names.get(usize::from(number).checked_sub(1)?));
    match (number, name) {
        (0, _) => json!(""),
        (_, Some(name)) => json!(name),
        _ => json!(number),
    }
}

/// Names with commas between, or the bits as a number.
fn members(column: &Column, bits: u64) -> Json {
    debug_assert!(matches!(column.kind, ColumnType::Set(_)));
    let Some(names) = &column.members else { return json!(bits) };
    let set = (0..64).filter(|bit| bits & 1 << bit != 0);
    let chosen: Option<Vec<&str>> = set.map(|bit| names.get(bit as usize).map(String::as_str)).collect();
    chosen.map_or_else(|| json!(bits), |chosen| json!(chosen.join(",")))
}
