//! The cells as CSV (RFC 4180): each is there with every number of the database, exactly.

use super::Findings;
use binlogd_lab::progress::label;
use binlogd_lab::results::run::{Cell, Run};
use std::collections::BTreeMap;

/// A line of the file, by the names of the columns.
type Record = BTreeMap<String, String>;

pub(super) fn look(run: &Run, text: &str, findings: &mut Findings) {
    let records = records(text);
    if records.len() != run.cells.len() {
        findings.wrong(format!("the CSV file has {} cells, the database {}", records.len(), run.cells.len()));
        return;
    }
    for (record, cell) in records.iter().zip(&run.cells) {
        match look_at_cell(record, cell) {
            Ok(numbers) => findings.numbers += numbers,
            Err(problem) => findings.wrong(format!("the CSV file, {}: {problem}", label(&cell.key))),
        }
    }
}

/// The file of the series: one line a sample.
pub(super) fn look_at_series(run: &Run, text: &str, findings: &mut Findings) {
    let mut records = records(text).into_iter();
    let mut numbers = 0;
    for cell in &run.cells {
        for (name, series) in &cell.measured.series {
            for (index, sample) in series.iter().enumerate() {
                let record = records.next().unwrap_or_default();
                let field = |column: &str| record.get(column).map(String::as_str).unwrap_or_default();
                let is_right = is_of(&record, cell)
                    && field("series") == name
                    && field("sample") == index.to_string()
                    && field("value").parse() == Ok(*sample);
                if !is_right {
                    let key = label(&cell.key);
                    findings.wrong(format!(
                        "the CSV file of series, {key}: {name}, {index}: {sample} is {record:?}"
                    ));
                    return;
                }
                numbers += 1;
            }
        }
    }
    findings.numbers += numbers;
    if records.next().is_some() {
        findings.wrong("the CSV file of series has more than the database");
    }
}

fn look_at_cell(record: &Record, cell: &Cell) -> Result<usize, String> {
    if !is_of(record, cell) {
        return Err(format!("its line is of another cell: {record:?}"));
    }
    let field = |column: &str| record.get(column).map(String::as_str).unwrap_or_default();
    if field("invalid") != cell.measured.invalid.as_deref().unwrap_or_default() {
        return Err(format!("it says of it: {:?}", field("invalid")));
    }
    for (name, value) in &cell.measured.values {
        if field(name).parse() != Ok(*value) {
            return Err(format!("{name} is {value} and stands there as {:?}", field(name)));
        }
    }
    Ok(cell.measured.values.len())
}

fn is_of(record: &Record, cell: &Cell) -> bool {
    let point = &cell.key.point;
    let expected = [
        ("server", point.panel.server.clone()),
        ("condition", point.panel.condition.to_string()),
        ("configuration", point.configuration.to_string()),
        ("threads", point.threads.to_string()),
        ("round", cell.key.round.to_string()),
    ];
    expected.iter().all(|(name, value)| record.get(*name) == Some(value))
}

/// The lines below the head, each by the names of the columns.
fn records(text: &str) -> Vec<Record> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().collect::<Result<_, _>>().expect("a CSV file")
}
