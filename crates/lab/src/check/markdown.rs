//! The text, `report.md`: charts and tables are found by their headings.

use super::{Findings, is_rounded};
use crate::report::outline::{Entry, Part, Table};

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
        // The head, and the rule below it.
        let rows = rows.get(2..).unwrap_or_default();
        let compared = match part {
            Part::Table(table) => look_at_table(table, rows),
            _ if rows.is_empty() => Err("it is empty".to_owned()),
            _ => Ok(0),
        };
        match compared {
            Ok(numbers) => findings.numbers += numbers,
            Err(problem) => findings.wrong(format!("report.md, {title:?}: {problem}")),
        }
    }
}

fn look_at_table(table: &Table, rows: &[Vec<String>]) -> Result<usize, String> {
    if rows.len() != table.rows.len() {
        return Err(format!("it has {} rows and must have {}", rows.len(), table.rows.len()));
    }
    let mut numbers = 0;
    for (row, entries) in rows.iter().zip(&table.rows) {
        if row.len() != entries.len() {
            return Err(format!("{row:?} has not the columns of {entries:?}"));
        }
        for (shown, entry) in row.iter().zip(entries) {
            let first = shown.split(" (").next().unwrap_or_default();
            let (is_right, count) = match entry {
                Entry::Text(text) => (*shown == escaped(text).replace('|', "\\|").trim(), 0),
                Entry::Number(value, _) => (is_rounded(shown, *value), 1),
                Entry::Median { median, .. } => (is_rounded(first, *median), 1),
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
