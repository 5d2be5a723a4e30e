//! The text, `report.md`: charts and tables are found by their headings.

use super::{Findings, is_median, is_rounded};
use binlogd_lab::outline::{Chart, Entry, Part, Table};
use std::collections::BTreeSet;

/// The head of a chart that has too many points to be told one by one.
const RANGES: [&str; 4] = ["line", "points", "lowest", "highest"];

pub(super) fn look(title: &str, parts: &[Part], text: &str, findings: &mut Findings) {
    let heading = format!("## {}", escaped(title));
    let mut lines = text.lines().skip_while(|line| **line != heading);
    if lines.next().is_none() {
        findings.wrong(format!("report.md has no section {title:?}"));
        return;
    }
    let section: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
    for part in parts {
        let title = match part {
            Part::Chart(chart) => format!("#### Chart: {}", escaped(&chart.title)),
            Part::Table(table) => format!("#### {}", escaped(&table.title)),
            Part::Heading(_) | Part::Text(_) => continue,
        };
        let Some(start) = section.iter().position(|line| *line == title) else {
            findings.wrong(format!("report.md has no {title:?}"));
            continue;
        };
        let rows: Vec<Vec<String>> = section[start + 1..]
            .iter()
            .skip_while(|line| line.is_empty())
            .take_while(|line| line.starts_with('|'))
            .map(|line| cells(line))
            .collect();
        let head = rows.first().map(Vec::as_slice).unwrap_or_default();
        // Below the head is a rule.
        let rows = rows.get(2..).unwrap_or_default();
        let compared = match part {
            Part::Table(table) => look_at_table(table, head, rows),
            Part::Chart(chart) => look_at_chart(chart, head, rows),
            Part::Heading(_) | Part::Text(_) => continue,
        };
        match compared {
            Ok(numbers) => findings.numbers += numbers,
            Err(problem) => findings.wrong(format!("report.md, {title:?}: {problem}")),
        }
    }
}

fn look_at_table(table: &Table, head: &[String], rows: &[Vec<String>]) -> Result<usize, String> {
    let columns: Vec<String> = table.columns.iter().map(|column| cell(column)).collect();
    if head != columns {
        return Err(format!("it has the columns {head:?} and must have {columns:?}"));
    }
    if rows.len() != table.rows.len() {
        return Err(format!("it has {} rows and must have {}", rows.len(), table.rows.len()));
    }
    let mut numbers = 0;
    for (row, entries) in rows.iter().zip(&table.rows) {
        if row.len() != entries.len() {
            return Err(format!("{row:?} has not the columns of {entries:?}"));
        }
        for (shown, entry) in row.iter().zip(entries) {
            let (first, range) = match shown.split_once(" (") {
                Some((first, rest)) => (first, rest.strip_suffix(')')),
                None => (shown.as_str(), None),
            };
            let (is_right, count) = match entry {
                Entry::Text(text) => (*shown == cell(text), 0),
                Entry::Number(value, _) => (is_rounded(shown, *value), 1),
                Entry::Median { median, range: exact, .. } => (is_median(first, range, *median, *exact), 3),
                Entry::Missing(_) => (first == "—", 0),
            };
            if !is_right {
                return Err(format!("{entry:?} stands there as {shown:?}"));
            }
            numbers += count;
        }
    }
    Ok(numbers)
}

/// Each line with its points, or with their range where they are many.
fn look_at_chart(chart: &Chart, head: &[String], rows: &[Vec<String>]) -> Result<usize, String> {
    let names: Vec<String> = chart
        .lines
        .iter()
        .map(|line| {
            cell(&if line.published { format!("{}, published", line.name) } else { line.name.clone() })
        })
        .collect();
    if head == RANGES {
        return look_at_ranges(chart, &names, rows);
    }
    let columns: Vec<String> = [cell(&chart.x_label)].into_iter().chain(names).collect();
    if head != columns {
        return Err(format!("it has the columns {head:?} and must have {columns:?}"));
    }
    let places: BTreeSet<u64> =
        chart.lines.iter().flat_map(|line| &line.points).map(|dot| dot.x.to_bits()).collect();
    if rows.len() != places.len() {
        return Err(format!("it has {} rows and must have {}", rows.len(), places.len()));
    }
    let mut numbers = 0;
    for row in rows {
        let x: Option<f64> = row[0].parse().ok();
        let Some(x) = x.filter(|x| places.contains(&x.to_bits()) && row.len() == columns.len()) else {
            return Err(format!("{row:?} is no row of it"));
        };
        for (line, shown) in chart.lines.iter().zip(&row[1..]) {
            let dot = line.points.iter().find(|dot| dot.x == x);
            if !dot.map_or(shown.is_empty(), |dot| is_rounded(shown, dot.y)) {
                return Err(format!("{:?} at {x} is {dot:?} and stands there as {shown:?}", line.name));
            }
            numbers += usize::from(dot.is_some());
        }
    }
    Ok(numbers)
}

/// The lowest and the highest point of each line.
fn look_at_ranges(chart: &Chart, names: &[String], rows: &[Vec<String>]) -> Result<usize, String> {
    if rows.len() != names.len() {
        return Err(format!("it has {} lines and must have {}", rows.len(), names.len()));
    }
    let mut numbers = 0;
    for ((row, name), line) in rows.iter().zip(names).zip(&chart.lines) {
        let [shown_name, count, low, high] = row.as_slice() else {
            return Err(format!("{row:?} is no row of it"));
        };
        let is_shown = |shown: &str, exact: Option<f64>| match exact {
            Some(exact) => is_rounded(shown, exact),
            None => shown == "—",
        };
        let ys = || line.points.iter().map(|dot| dot.y);
        let is_right = shown_name == name
            && *count == line.points.len().to_string()
            && is_shown(low, ys().reduce(f64::min))
            && is_shown(high, ys().reduce(f64::max));
        if !is_right {
            return Err(format!("the line {name:?} stands there as {row:?}"));
        }
        numbers += 3;
    }
    Ok(numbers)
}

/// The text as a cell of a table has it.
fn cell(text: &str) -> String {
    escaped(text).replace('|', "\\|").trim().to_owned()
}

/// The cells of a row; a bar after a backslash belongs to the cell.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim().trim_start_matches('|');
    let (mut cells, mut cell, mut is_escaped) = (Vec::new(), String::new(), false);
    for character in line.chars() {
        match character {
            '|' if !is_escaped => cells.push(std::mem::take(&mut cell).trim().to_owned()),
            _ => cell.push(character),
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    cells
}

/// What Markdown would take for its own stands behind a backslash.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if "\\*`<[".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[test]
fn a_chart_of_many_points_is_told_by_its_ranges() {
    use binlogd_lab::outline::{Dot, Line, Scale};
    let points = (0..50).map(|x| Dot { x: f64::from(x), y: f64::from(x) + 0.5, spread: None }).collect();
    let line = |name: &str, points| Line { name: name.to_owned(), published: false, points };
    let chart = Chart {
        title: "Throughput over time".to_owned(),
        x_label: "s".to_owned(),
        y_label: "transactions/s".to_owned(),
        x_scale: Scale::Linear,
        lines: vec![line("a|b", points), line("c", Vec::new())],
    };
    let problems = |text: &str| {
        let mut findings = Findings::default();
        look("Title", &[Part::Chart(chart.clone())], text, &mut findings);
        findings.problems.len()
    };
    let text = "## Title\n\n#### Chart: Throughput over time\n\n| line | points | lowest | highest |\n\
                | --- | --: | --: | --: |\n| a\\|b | 50 | 0.50 | 49.50 |\n| c | 0 | — | — |\n";
    assert_eq!(problems(text), 0);
    for (right, wrong) in
        [("49.50", "49.60"), ("0.50", "0.40"), ("| 50", "| 49"), ("| c", "| d"), ("—", "0.1")]
    {
        assert_eq!(problems(&text.replacen(right, wrong, 1)), 1, "{right}");
    }
}
