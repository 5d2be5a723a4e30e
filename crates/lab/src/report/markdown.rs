//! The report as Markdown, with charts as tables.

use super::delays::Delays;
use super::section::{INTRODUCTION, Section, describe};
use crate::outline::{Chart, Entry, Part, Table};
use crate::results::number;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A chart with more places on its axis than this is told by the range of each line.
const MAX_ROWS: usize = 40;

/// The whole report.
pub(super) fn text(sections: &[Section]) -> String {
    let mut text = format!("# What a durable binary log costs\n\n{INTRODUCTION}\n");
    for delays in Delays::of(sections.iter().map(|section| section.run)) {
        let _ = write!(text, "\n## {}\n\n{}\n", escaped(delays.title()), escaped(&delays.lead()));
        delays.parts().iter().for_each(|part| text += &of_part(part));
    }
    for section in sections {
        text += &of(section);
    }
    text
}

/// One study.
fn of(section: &Section) -> String {
    let mut text = format!("\n## {}\n\n{}\n\n", escaped(&section.title), escaped(&section.summary));
    let _ = writeln!(text, "{}.\n", escaped(&section.extent().join(" · ")));
    let _ = writeln!(text, "Measured on: {}.", escaped(&section.machine()));
    for sentence in section.apart() {
        let _ = writeln!(text, "\n{}", escaped(&sentence));
    }
    for warning in section.warnings() {
        let _ = writeln!(text, "\n**Warning:** {}", escaped(warning));
    }
    section.parts.iter().for_each(|part| text += &of_part(part));
    if section.invalid().next().is_some() {
        text += "\n### Cells that do not count\n\n";
        for (cell, reason) in section.invalid() {
            let _ = writeln!(text, "- {}: {}", escaped(&describe(cell)), escaped(reason));
        }
    }
    if !section.run.skipped.is_empty() {
        text += "\n### Not measured here\n\n";
        for skipped in &section.run.skipped {
            let _ = writeln!(text, "- {}", escaped(&skipped.to_string()));
        }
    }
    if let Some(publication) = &section.publication {
        let _ = writeln!(text, "\n### The published study: {}\n", escaped(publication.title));
        for (name, value) in [
            ("Origin", publication.origin),
            ("Software", publication.software),
            ("Hardware", publication.hardware),
        ] {
            let _ = writeln!(text, "- {name}: {}", escaped(value));
        }
        for (name, list) in [("It concludes", publication.conclusions), ("Remarks", publication.remarks)] {
            let _ = writeln!(text, "\n{name}:\n");
            list.iter().for_each(|line| text += &format!("- {}\n", escaped(line)));
        }
        publication.figures.iter().for_each(|part| text += &of_part(part));
    }
    let _ = write!(text, "\n### To run it again\n\n```\n{}\n```\n", section.run.command.replace("```", ""));
    text += "\n### Environment\n\n| about | fact | value |\n|---|---|---|\n";
    for fact in &section.run.facts {
        let _ = writeln!(text, "| {} | {} | {} |", cell(&fact.about), cell(&fact.name), cell(&fact.value));
    }
    text
}

pub(super) fn of_part(part: &Part) -> String {
    match part {
        Part::Heading(heading) => format!("\n### {}\n", escaped(heading)),
        Part::Text(text) => format!("\n{}\n", escaped(text)),
        Part::Chart(chart) => of_chart(chart),
        Part::Table(table) => of_table(table),
    }
}

fn of_table(table: &Table) -> String {
    let mut text = format!("\n#### {}\n\n", escaped(&table.title));
    let is_number = |column: usize| {
        table.rows.iter().any(|row| matches!(row.get(column), Some(Entry::Number(..) | Entry::Median { .. })))
    };
    text += &row(table.columns.iter().map(|column| cell(column)));
    let rules =
        (0..table.columns.len()).map(|column| if is_number(column) { "--:" } else { "---" }.to_owned());
    text += &row(rules);
    for entries in &table.rows {
        text += &row(entries.iter().map(of_entry));
    }
    for note in &table.notes {
        let _ = write!(text, "\n{}\n", escaped(note));
    }
    text
}

fn of_entry(entry: &Entry) -> String {
    match entry {
        Entry::Text(text) => cell(text),
        Entry::Number(value, digits) => format!("{value:.digits$}"),
        Entry::Median { median, range: (low, high), digits } if low == high => format!("{median:.digits$}"),
        Entry::Median { median, range: (low, high), digits } => {
            format!("{median:.digits$} ({low:.digits$}–{high:.digits$})")
        }
        Entry::Missing(reason) => format!("— ({})", cell(reason)),
    }
}

fn of_chart(chart: &Chart) -> String {
    let mut text = format!("\n#### Chart: {}\n\n", escaped(&chart.title));
    let name = |line: &crate::outline::Line| {
        cell(&if line.published { format!("{}, published", line.name) } else { line.name.clone() })
    };
    let digits = digits(chart);
    // Numbers of one sign that are not NaN are ordered as their bits.
    let mut places: BTreeMap<u64, f64> = BTreeMap::new();
    for dot in chart.lines.iter().flat_map(|line| &line.points) {
        places.insert(dot.x.to_bits(), dot.x);
    }
    if places.len() > MAX_ROWS {
        text += &row(["line", "points", "lowest", "highest"].map(str::to_owned).into_iter());
        text += "| --- | --: | --: | --: |\n";
        for line in &chart.lines {
            let low = line.points.iter().map(|dot| dot.y).reduce(f64::min);
            let high = line.points.iter().map(|dot| dot.y).reduce(f64::max);
            let shown =
                |value: Option<f64>| value.map_or("—".to_owned(), |value| format!("{value:.digits$}"));
            text += &row([name(line), line.points.len().to_string(), shown(low), shown(high)].into_iter());
        }
        let _ = write!(
            text,
            "\nVertical axis: {}; horizontal axis: {}.\n",
            escaped(&chart.y_label),
            escaped(&chart.x_label)
        );
        return text;
    }
    text += &row([cell(&chart.x_label)].into_iter().chain(chart.lines.iter().map(name)));
    text += &row((0..=chart.lines.len()).map(|_| "--:".to_owned()));
    for x in places.values() {
        let y = |line: &crate::outline::Line| {
            let dot = line.points.iter().find(|dot| dot.x == *x);
            dot.map_or(String::new(), |dot| format!("{:.digits$}", dot.y))
        };
        text += &row([x.to_string()].into_iter().chain(chart.lines.iter().map(y)));
    }
    let _ = write!(text, "\nVertical axis: {}.\n", escaped(&chart.y_label));
    text
}

/// Digits after the point that tell the chart's numbers apart.
fn digits(chart: &Chart) -> usize {
    let highest = chart.lines.iter().flat_map(|line| &line.points).map(|dot| dot.y).fold(0.0, f64::max);
    number::digits(highest)
}

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<String>>().join(" | "))
}

/// The text as a cell of a table.
pub(super) fn cell(text: &str) -> String {
    escaped(text).replace('|', "\\|")
}

/// The text without what Markdown would take for its own, on one line.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '*' | '`' | '<' | '[' => escaped.extend(['\\', character]),
            '\n' | '\r' => escaped.push(' '),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::virtual_replica::FSYNC_MODE_1;
    use crate::report::example;

    #[test]
    fn tables_charts_and_what_is_missing_are_told() {
        let mut run = example::virtual_replica();
        for cell in &mut run.cells {
            if example::is(cell, FSYNC_MODE_1, 32) {
                cell.measured.refuse("semi-sync fell back | twice");
            }
        }
        let text = text(&[example::section(&run)]);
        assert!(text.contains("— (invalid: semi-sync fell back \\| twice)"), "{text}");
        assert!(text.contains("mysql-9.7, binlogd, fsync_mode 1, 32 threads, round 2: semi-sync fell back"));
        assert!(text.contains("mkfs.xfs is not installed \\<here>"));
        assert!(
            text.contains("#### Chart: Queries a second\n")
                && text.contains("#### Queries a second, figures\n")
        );
        // Published rows are shown as they were printed.
        assert!(text.contains("| 100 | mhd | 386 | oltp.lua | 152543 | 7626 |"));
        let median =
            crate::results::statistics::Figures::of(&run).median(&run.cells[0].key.point, "qps").unwrap();
        let shown = format!("| 2 | {:.0} ({:.0}–{:.0}) |", median.median, median.range.0, median.range.1);
        assert!(text.contains(&shown), "{shown} {text}");
    }

    #[test]
    fn every_row_of_a_table_is_as_long_as_its_head() {
        let run = example::virtual_replica();
        let mut columns = 0;
        for line in text(&[example::section(&run)]).lines() {
            let count = line.replace("\\|", "").matches('|').count();
            assert!(columns == 0 || count == 0 || count == columns, "{line}");
            columns = count;
        }
    }
}
