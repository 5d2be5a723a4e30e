//! The page, `index.html`: charts and tables are found by their attributes.

use super::markup::{Tag, elements, tags};
use super::{Findings, is_median, is_rounded};
use crate::model::Run;
use crate::report::outline::{Chart, Entry, Part, Table};

pub(super) fn look(run: &Run, parts: &[Part], html: &str, findings: &mut Findings) {
    let tags = tags(html);
    let id = run.id.to_string();
    let named = |kind: &str, title: &str| {
        elements(&tags, |tag| {
            tag.name == kind
                && tag.get("data-study") == Some(&run.study)
                && tag.get("data-run") == Some(&id)
                && tag.get("data-title") == Some(title)
        })
    };
    for part in parts {
        let (kind, title) = match part {
            Part::Chart(chart) => ("figure", &chart.title),
            Part::Table(table) => ("table", &table.title),
            Part::Heading(_) | Part::Text(_) => continue,
        };
        let found = named(kind, title);
        let [element] = found.as_slice() else {
            findings.wrong(format!("index.html has {} times the {kind} {title:?}", found.len()));
            continue;
        };
        let compared = match part {
            Part::Chart(chart) => look_at_chart(chart, element),
            Part::Table(table) => look_at_table(table, element),
            Part::Heading(_) | Part::Text(_) => continue,
        };
        match compared {
            Err(problem) => findings.wrong(format!("index.html, {kind} {title:?}: {problem}")),
            Ok(numbers) => {
                findings.numbers += numbers;
                match part {
                    Part::Chart(_) => findings.charts += 1,
                    _ => findings.tables += 1,
                }
            }
        }
    }
}

/// Each line is drawn with its points; gives how many numbers that were.
fn look_at_chart(chart: &Chart, figure: &[Tag]) -> Result<usize, String> {
    let mut numbers = 0;
    let drawn = elements(figure, |tag| tag.get("data-line").is_some());
    for line in chart.lines.iter().filter(|line| !line.points.is_empty()) {
        let name = if line.published { format!("{}, published", line.name) } else { line.name.clone() };
        let curve = drawn.iter().find(|curve| curve[0].get("data-line") == Some(&name));
        let curve = curve.ok_or_else(|| format!("the line {name:?} is not drawn"))?;
        let points: Vec<(f64, f64)> =
            curve.iter().filter_map(|tag| Some((tag.number("data-x")?, tag.number("data-y")?))).collect();
        let expected: Vec<(f64, f64)> = line.points.iter().map(|dot| (dot.x, dot.y)).collect();
        if points != expected {
            return Err(format!("the line {name:?} has the points {points:?} and must have {expected:?}"));
        }
        numbers += 2 * points.len();
    }
    Ok(numbers)
}

/// Each column is named, and each cell says and shows, as the outline has it; gives how many numbers that were.
fn look_at_table(table: &Table, tags: &[Tag]) -> Result<usize, String> {
    let heads: Vec<&Tag> = tags.iter().filter(|tag| tag.name == "th").collect();
    if heads.len() != table.columns.len() {
        return Err(format!("it has {} columns and must have {}", heads.len(), table.columns.len()));
    }
    if let Some((head, column)) = heads.iter().zip(&table.columns).find(|(head, column)| !names(head, column))
    {
        return Err(format!("the column {column:?} stands there as {head:?}"));
    }
    let cells = elements(tags, |tag| tag.name == "td");
    let entries: Vec<&Entry> = table.rows.iter().flatten().collect();
    if cells.len() != entries.len() {
        return Err(format!("it has {} cells and must have {}", cells.len(), entries.len()));
    }
    let mut numbers = 0;
    for (cell, entry) in cells.iter().zip(entries) {
        numbers +=
            look_at_entry(entry, cell).map_err(|shown| format!("{entry:?} stands there as {shown}"))?;
    }
    Ok(numbers)
}

/// Whether `text` is what the tag names. Where it stands there short, as `published`, a label says it in full.
fn names(tag: &Tag, text: &str) -> bool {
    match tag.get("aria-label") {
        Some(label) => label == text && !tag.text.is_empty() && text.ends_with(&tag.text),
        None => tag.text == text,
    }
}

/// `tags` are the cell's, its own first.
fn look_at_entry(entry: &Entry, tags: &[Tag]) -> Result<usize, String> {
    let cell = &tags[0];
    let says = |name: &str, value: f64| cell.number(name) == Some(value);
    let (is_right, numbers) = match entry {
        Entry::Text(text) => (names(cell, text), 0),
        Entry::Number(value, _) => (says("data-value", *value) && is_rounded(&cell.text, *value), 1),
        Entry::Median { median, range: (low, high), .. } => {
            let says_all = says("data-value", *median) && says("data-low", *low) && says("data-high", *high);
            let range =
                tags.iter().find(|tag| tag.get("class") == Some("range")).map(|tag| tag.text.as_str());
            (says_all && is_median(&cell.text, range, *median, (*low, *high)), 3)
        }
        Entry::Missing(reason) => (cell.get("title") == Some(reason) && cell.get("data-value").is_none(), 0),
    };
    if is_right { Ok(numbers) } else { Err(format!("{tags:?}")) }
}
