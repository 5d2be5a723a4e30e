//! The page, `index.html`: charts and tables are found by their attributes.

use super::html::{self, Element};
use super::{Findings, is_median, is_rounded};
use binlogd_lab::outline::{Chart, Entry, Part, Table};
use binlogd_lab::results::run::Run;

pub(super) fn look(run: &Run, parts: &[Part], html: &str, findings: &mut Findings) {
    let page = match html::parse(html) {
        Ok(page) => page,
        Err(problem) => return findings.wrong(format!("index.html: {problem}")),
    };
    let id = run.id.to_string();
    let named = |kind: &str, title: &str| {
        let is_it = |element: &&Element| {
            element.attr("data-study") == Some(&run.study)
                && element.attr("data-run") == Some(&id)
                && element.attr("data-title") == Some(title)
        };
        page.named(kind).into_iter().filter(is_it).collect::<Vec<_>>()
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

/// The value of an attribute as a number.
fn number(element: &Element, name: &str) -> Option<f64> {
    element.attr(name)?.parse().ok()
}

/// Each line is drawn with its points; gives how many numbers that were.
fn look_at_chart(chart: &Chart, figure: &Element) -> Result<usize, String> {
    let mut numbers = 0;
    let drawn = figure.within(&|element| element.attr("data-line").is_some());
    for line in chart.lines.iter().filter(|line| !line.points.is_empty()) {
        let name = if line.published { format!("{}, published", line.name) } else { line.name.clone() };
        let curve = drawn.iter().find(|curve| curve.attr("data-line") == Some(&name));
        let curve = curve.ok_or_else(|| format!("the line {name:?} is not drawn"))?;
        let points: Vec<(f64, f64)> = curve
            .within(&|_| true)
            .into_iter()
            .filter_map(|mark| Some((number(mark, "data-x")?, number(mark, "data-y")?)))
            .collect();
        let expected: Vec<(f64, f64)> = line.points.iter().map(|dot| (dot.x, dot.y)).collect();
        if points != expected {
            return Err(format!("the line {name:?} has the points {points:?} and must have {expected:?}"));
        }
        numbers += 2 * points.len();
    }
    Ok(numbers)
}

/// Each column is named, and each cell says and shows, as the outline has it; gives how many numbers that were.
fn look_at_table(table: &Table, element: &Element) -> Result<usize, String> {
    let heads = element.named("th");
    if heads.len() != table.columns.len() {
        return Err(format!("it has {} columns and must have {}", heads.len(), table.columns.len()));
    }
    for (head, column) in heads.into_iter().zip(&table.columns) {
        if !names(head, column) {
            return Err(format!("the column {column:?} stands there as {head:?}"));
        }
    }
    let rows: Vec<&Element> = element.named("tbody").into_iter().flat_map(|body| body.named("tr")).collect();
    if rows.len() != table.rows.len() {
        return Err(format!("it has {} rows and must have {}", rows.len(), table.rows.len()));
    }
    let mut numbers = 0;
    for (row, entries) in rows.into_iter().zip(&table.rows) {
        let cells = row.named("td");
        if cells.len() != entries.len() {
            return Err(format!("it has {} cells in {row:?} and must have {}", cells.len(), entries.len()));
        }
        for (cell, entry) in cells.into_iter().zip(entries) {
            numbers +=
                look_at_entry(entry, cell).ok_or_else(|| format!("{entry:?} stands there as {cell:?}"))?;
        }
    }
    Ok(numbers)
}

/// Whether `name` is what the cell names. Where it stands there short, as `published`, a label says it in full.
fn names(cell: &Element, name: &str) -> bool {
    match cell.attr("aria-label") {
        Some(label) => label == name && !cell.text().is_empty() && name.ends_with(cell.text()),
        None => cell.text() == name,
    }
}

/// How many numbers of the entry the cell shows; `None` where one is wrong.
fn look_at_entry(entry: &Entry, cell: &Element) -> Option<usize> {
    let says = |name: &str, value: f64| number(cell, name) == Some(value);
    let (is_right, numbers) = match entry {
        Entry::Text(text) => (names(cell, text), 0),
        Entry::Number(value, _) => (says("data-value", *value) && is_rounded(cell.text(), *value), 1),
        Entry::Median { median, range: (low, high), .. } => {
            let says_all = says("data-value", *median) && says("data-low", *low) && says("data-high", *high);
            let ranges = cell.within(&|element| element.attr("class") == Some("range"));
            let range = ranges.first().map(|range| range.text());
            (says_all && is_median(cell.text(), range, *median, (*low, *high)), 3)
        }
        Entry::Missing(reason) => {
            (cell.attr("title") == Some(reason) && cell.attr("data-value").is_none(), 0)
        }
    };
    is_right.then_some(numbers)
}
