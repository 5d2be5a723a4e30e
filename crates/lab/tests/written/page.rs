//! The page, `index.html`: charts and tables are found by their attributes.

use super::{Findings, is_median, is_rounded};
use binlogd_lab::outline::{Chart, Entry, Part, Table};
use binlogd_lab::run::Run;
use scraper::{ElementRef, Html, Selector};

pub(super) fn look(run: &Run, parts: &[Part], html: &str, findings: &mut Findings) {
    let page = Html::parse_document(html);
    let id = run.id.to_string();
    let named = |kind: &str, title: &str| {
        let is_it = |element: &ElementRef| {
            element.attr("data-study") == Some(&run.study)
                && element.attr("data-run") == Some(&id)
                && element.attr("data-title") == Some(title)
        };
        page.select(&selector(kind)).filter(is_it).collect::<Vec<_>>()
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
            Part::Chart(chart) => look_at_chart(chart, *element),
            Part::Table(table) => look_at_table(table, *element),
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

fn selector(css: &str) -> Selector {
    Selector::parse(css).expect("a selector")
}

/// The value of an attribute as a number.
fn number(element: ElementRef, name: &str) -> Option<f64> {
    element.attr(name)?.parse().ok()
}

/// The text of an element up to the first one within it.
fn text<'a>(element: ElementRef<'a>) -> &'a str {
    element.children().next().and_then(|child| child.value().as_text()).map_or("", |text| &**text)
}

/// Each line is drawn with its points; gives how many numbers that were.
fn look_at_chart(chart: &Chart, figure: ElementRef) -> Result<usize, String> {
    let mut numbers = 0;
    let lines = selector("[data-line]");
    for line in chart.lines.iter().filter(|line| !line.points.is_empty()) {
        let name = if line.published { format!("{}, published", line.name) } else { line.name.clone() };
        let curve = figure.select(&lines).find(|curve| curve.attr("data-line") == Some(&name));
        let curve = curve.ok_or_else(|| format!("the line {name:?} is not drawn"))?;
        let points: Vec<(f64, f64)> = curve
            .select(&selector("*"))
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
fn look_at_table(table: &Table, element: ElementRef) -> Result<usize, String> {
    let heads: Vec<ElementRef> = element.select(&selector("th")).collect();
    if heads.len() != table.columns.len() {
        return Err(format!("it has {} columns and must have {}", heads.len(), table.columns.len()));
    }
    for (head, column) in heads.into_iter().zip(&table.columns) {
        if !names(head, column) {
            return Err(format!("the column {column:?} stands there as {}", head.html()));
        }
    }
    let rows: Vec<ElementRef> = element.select(&selector("tbody tr")).collect();
    if rows.len() != table.rows.len() {
        return Err(format!("it has {} rows and must have {}", rows.len(), table.rows.len()));
    }
    let mut numbers = 0;
    for (row, entries) in rows.into_iter().zip(&table.rows) {
        let cells: Vec<ElementRef> = row.select(&selector("td")).collect();
        if cells.len() != entries.len() {
            return Err(format!(
                "it has {} cells in {} and must have {}",
                cells.len(),
                row.html(),
                entries.len()
            ));
        }
        for (cell, entry) in cells.into_iter().zip(entries) {
            numbers += look_at_entry(entry, cell)
                .ok_or_else(|| format!("{entry:?} stands there as {}", cell.html()))?;
        }
    }
    Ok(numbers)
}

/// Whether `name` is what the cell names. Where it stands there short, as `published`, a label says it in full.
fn names(cell: ElementRef, name: &str) -> bool {
    match cell.attr("aria-label") {
        Some(label) => label == name && !text(cell).is_empty() && name.ends_with(text(cell)),
        None => text(cell) == name,
    }
}

/// How many numbers of the entry the cell shows; `None` where one is wrong.
fn look_at_entry(entry: &Entry, cell: ElementRef) -> Option<usize> {
    let says = |name: &str, value: f64| number(cell, name) == Some(value);
    let (is_right, numbers) = match entry {
        Entry::Text(text) => (names(cell, text), 0),
        Entry::Number(value, _) => (says("data-value", *value) && is_rounded(text(cell), *value), 1),
        Entry::Median { median, range: (low, high), .. } => {
            let says_all = says("data-value", *median) && says("data-low", *low) && says("data-high", *high);
            let range = cell.select(&selector(".range")).next().map(text);
            (says_all && is_median(text(cell), range, *median, (*low, *high)), 3)
        }
        Entry::Missing(reason) => {
            (cell.attr("title") == Some(reason) && cell.attr("data-value").is_none(), 0)
        }
    };
    is_right.then_some(numbers)
}
