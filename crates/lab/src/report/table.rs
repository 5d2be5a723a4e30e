//! A table as HTML.

use super::html::{Marks, escaped};
use super::number;
use super::outline::{Entry, Table};
use std::fmt::Write;

/// A longer table is folded.
const MAX_ROWS: usize = 24;

/// The table with its title, its notes and why entries are missing; a long one folded.
pub(super) fn folded(table: &Table, marks: &Marks) -> String {
    let title = escaped(&table.title);
    let mut reasons: Vec<&str> = Vec::new();
    let mut html = format!("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">\n");
    let _ = writeln!(html, "<table {}>\n<thead><tr>", marks.of(&table.title));
    let is_number = |column: usize| {
        table.rows.iter().any(|row| matches!(row.get(column), Some(Entry::Number(..) | Entry::Median { .. })))
    };
    for (index, column) in table.columns.iter().enumerate() {
        html += &of_head(column, is_number(index));
    }
    html += "</tr></thead>\n<tbody>\n";
    for row in &table.rows {
        // A published row stands below the row that it is compared with, and need not say its name again.
        let published_row = matches!(row.first(), Some(Entry::Text(name)) if is_published(name));
        html += "<tr>";
        for (index, (entry, column)) in row.iter().zip(&table.columns).enumerate() {
            html += &match entry {
                Entry::Text(name) if published_row && index == 0 => {
                    format!("<td class=\"published\" aria-label=\"{}\">published</td>", escaped(name))
                }
                entry => of_entry(entry, published_row || is_published(column), &mut reasons),
            };
        }
        html += "</tr>\n";
    }
    html += "</tbody>\n</table>\n</div>\n";
    if !reasons.is_empty() {
        html += "<ol class=\"reasons\">\n";
        reasons.iter().for_each(|reason| html += &format!("<li>{}</li>\n", escaped(reason)));
        html += "</ol>\n";
    }
    for note in &table.notes {
        let _ = writeln!(html, "<p class=\"note\">{}</p>", escaped(note));
    }
    if table.rows.len() > MAX_ROWS {
        let rows = table.rows.len();
        return format!(
            "<details>\n<summary>{title} <small>{rows} rows</small></summary>\n{html}</details>\n"
        );
    }
    format!("<h4>{title}</h4>\n{html}")
}

/// The head of a column. A published one stands beside the column that it is compared with and need not say its name
/// again.
fn of_head(column: &str, is_number: bool) -> String {
    let full = escaped(column);
    if is_published(column) {
        return format!("<th scope=\"col\" class=\"number published\" aria-label=\"{full}\">published</th>");
    }
    let class = if is_number { " class=\"number\"" } else { "" };
    format!("<th scope=\"col\"{class}>{full}</th>")
}

/// Whether a column or row has published figures, by its name.
fn is_published(name: &str) -> bool {
    name.ends_with(", published")
}

/// A cell of a table. Why one is missing is said below the table, each reason once.
fn of_entry<'a>(entry: &'a Entry, is_published: bool, reasons: &mut Vec<&'a str>) -> String {
    let class = if is_published { "number published" } else { "number" };
    match entry {
        Entry::Text(text) => format!("<td>{}</td>", escaped(text)),
        Entry::Number(value, digits) => {
            format!("<td class=\"{class}\" data-value=\"{value}\">{}</td>", number::grouped(*value, *digits))
        }
        Entry::Median { median, range: (low, high), digits } => {
            let shown = |value: f64| number::grouped(value, *digits);
            let mut html = format!(
                "<td class=\"{class}\" data-value=\"{median}\" data-low=\"{low}\" data-high=\"{high}\">{}",
                shown(*median)
            );
            let (low, high) = (shown(*low), shown(*high));
            if low != high {
                let _ = write!(html, "<span class=\"range\">{low}–{high}</span>");
            }
            html + "</td>"
        }
        Entry::Missing(reason) => {
            let index = reasons.iter().position(|known| *known == reason).unwrap_or_else(|| {
                reasons.push(reason);
                reasons.len() - 1
            });
            let reason = escaped(reason);
            format!("<td class=\"{class} missing\" title=\"{reason}\">—<sup>{}</sup></td>", index + 1)
        }
    }
}
