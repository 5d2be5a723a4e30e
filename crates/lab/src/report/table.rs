//! A table as HTML.

use super::marks::Marks;
use crate::outline::{Entry, Table};
use crate::results::number;
use maud::{Markup, html};

/// A longer table is folded.
const MAX_ROWS: usize = 24;

/// The table with its title, its notes and why entries are missing; a long one folded.
pub(super) fn folded(table: &Table, marks: &Marks) -> Markup {
    let mut reasons: Vec<&str> = Vec::new();
    let is_number = |column: usize| {
        table.rows.iter().any(|row| matches!(row.get(column), Some(Entry::Number(..) | Entry::Median { .. })))
    };
    let whole = html! {
        div.scroll tabindex="0" role="region" aria-label=(table.title) {
            table data-study=(marks.study) data-run=(marks.run) data-title=(table.title) {
                thead {
                    tr {
                        @for (index, column) in table.columns.iter().enumerate() {
                            (of_head(column, is_number(index)))
                        }
                    }
                }
                tbody { @for row in &table.rows { (of_row(row, &table.columns, &mut reasons)) } }
            }
        }
        @if !reasons.is_empty() { ol.reasons { @for reason in &reasons { li { (reason) } } } }
        @for note in &table.notes { p.note { (note) } }
    };
    html! {
        @if table.rows.len() > MAX_ROWS {
            details { summary { (table.title) " " small { (table.rows.len()) " rows" } } (whole) }
        } @else {
            h4 { (table.title) }
            (whole)
        }
    }
}

/// The head of a column. A published one stands beside the column that it is compared with and need not say its name
/// again.
fn of_head(column: &str, is_number: bool) -> Markup {
    html! {
        @if is_published(column) {
            th scope="col" class="number published" aria-label=(column) { "published" }
        } @else {
            th scope="col" class=[is_number.then_some("number")] { (column) }
        }
    }
}

/// Whether a column or row has published figures, by its name.
fn is_published(name: &str) -> bool {
    name.ends_with(", published")
}

/// A published row stands below the row that it is compared with, and need not say its name again.
fn of_row<'a>(row: &'a [Entry], columns: &[String], reasons: &mut Vec<&'a str>) -> Markup {
    let published = row.first().and_then(|entry| match entry {
        Entry::Text(name) if is_published(name) => Some(name),
        _ => None,
    });
    html! {
        tr {
            @if let Some(name) = published { td.published aria-label=(name) { "published" } }
            @for (entry, column) in row.iter().zip(columns).skip(usize::from(published.is_some())) {
                (of_entry(entry, published.is_some() || is_published(column), reasons))
            }
        }
    }
}

/// A cell of a table. Why one is missing is said below the table, each reason once.
fn of_entry<'a>(entry: &'a Entry, is_published: bool, reasons: &mut Vec<&'a str>) -> Markup {
    let class = if is_published { "number published" } else { "number" };
    match entry {
        Entry::Text(text) => html! { td { (text) } },
        Entry::Number(value, digits) => {
            html! { td class=(class) data-value=(value) { (number::grouped(*value, *digits)) } }
        }
        Entry::Median { median, range: (low, high), digits } => {
            let shown = |value: f64| number::grouped(value, *digits);
            let (shown_low, shown_high) = (shown(*low), shown(*high));
            html! {
                td class=(class) data-value=(median) data-low=(low) data-high=(high) {
                    (shown(*median))
                    @if shown_low != shown_high { span.range { (shown_low) "–" (shown_high) } }
                }
            }
        }
        Entry::Missing(reason) => {
            let index = reasons.iter().position(|known| *known == reason).unwrap_or_else(|| {
                reasons.push(reason);
                reasons.len() - 1
            });
            html! { td class={ (class) " missing" } title=(reason) { "—" sup { (index + 1) } } }
        }
    }
}
