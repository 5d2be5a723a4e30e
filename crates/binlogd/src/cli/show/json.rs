//! A transaction as JSON: exactly what the log says.

use crate::cli::find::answer::Found;
use codec::event::RowChange;
use codec::rows::{Column, Image};
use repair::detail::{Part, as_json};
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
            Part::Statement { schema, text, is_for_people, .. } => {
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
            value.as_ref().map_or_else(|| json!({"absent": true}), |value| as_json(column, value))
        })
        .collect()
}
