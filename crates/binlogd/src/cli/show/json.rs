//! A transaction as JSON: exactly what the log says.

use crate::cli::find::answer::Found;
use codec::event::RowChange;
use codec::rows::{Column, ColumnType, Image, JsonOperation, Value, hex};
use repair::detail::Part;
use serde_json::{Value as Json, json};

/// Gathers the parts of one transaction.
pub(super) struct Changes {
    rows_max: u64,
    rows: u64,
    all: Vec<Json>,
}

impl Changes {
    pub(super) fn new(rows_max: u64) -> Changes {
        Changes { rows_max, rows: 0, all: Vec::new() }
    }

    pub(super) fn add(&mut self, part: &Part<'_>) {
        match part {
            Part::Statement { schema, text, is_for_people } => {
                self.all.push(json!({"statement": text, "schema": schema, "for_people": is_for_people}));
            }
            Part::Unknown(what) => self.all.push(json!({"not_shown": what})),
            Part::Row { table, change, row, .. } => {
                self.rows += 1;
                if self.rows_max != 0 && self.rows > self.rows_max {
                    return;
                }
                let columns = &table.table.columns;
                let row = json!({"before": image(columns, row.before.as_ref()), "after": image(columns, row.after.as_ref())});
                let (name, verb) = (table.name(), verb(*change));
                let described: Vec<Json> = columns.iter().map(described).collect();
                let same = self.all.last_mut().filter(|last| {
                    last["table"] == name.as_str()
                        && last["change"] == verb
                        && last["columns"] == Json::from(described.clone())
                });
                if let Some(Json::Array(rows)) = same.map(|last| &mut last["rows"]) {
                    rows.push(row);
                    return;
                }
                self.all.push(json!({
                    "table": name, "change": verb, "columns": described, "named": table.has_names, "note": table.note, "rows": [row],
                }));
            }
        }
    }

    /// The object, on one line.
    pub(super) fn line(self, source: &str, found: &Found) -> String {
        let mut object = serde_json::to_value(found).expect("what was found is plain data");
        // The changes say it in full.
        if let Some(object) = object.as_object_mut() {
            object.remove("statements");
            object.remove("more_statements");
        }
        let left = if self.rows_max == 0 { 0 } else { self.rows.saturating_sub(self.rows_max) };
        object["source"] = source.into();
        object["rows_left_out"] = left.into();
        object["changes"] = self.all.into();
        object.to_string()
    }
}

fn verb(change: RowChange) -> &'static str {
    match change {
        RowChange::Written => "insert",
        RowChange::Updated => "update",
        RowChange::Deleted => "delete",
    }
}

fn described(column: &Column) -> Json {
    json!({"name": column.name, "type": column.type_text(), "key": column.is_key})
}

fn image(columns: &[Column], image: Option<&Image<'_>>) -> Json {
    let Some(image) = image else { return Json::Null };
    columns
        .iter()
        .zip(image)
        .map(|(column, value)| {
            value.as_ref().map_or_else(|| json!({"absent": true}), |value| one(column, value))
        })
        .collect()
}

fn one(column: &Column, value: &Value<'_>) -> Json {
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
