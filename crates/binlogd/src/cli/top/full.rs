//! One source in full: what it does now, what to do about it, and everything that `binlogd status` says of it.

use super::board::Board;
use super::overview::{head, keys, number};
use super::palette::Palette;
use crate::cli::status::page::wrapped;
use crate::cli::status::{readers, table};
use crate::cli::style::clean;
use jiff::Timestamp;
use ratatui::Frame;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use status::{DaemonStatus, SourceStatus};
use std::time::Instant;

/// Names at the left, with their margin.
const MARGIN: usize = 16;
/// A wider page is hard to read.
const WIDTH_MAX: usize = 120;
/// Bars of a line of the past, the lowest first.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws it.
pub(super) fn draw(frame: &mut Frame<'_>, board: &mut Board, palette: Palette, at: Instant, now: Timestamp) {
    let area = frame.area();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut lines = head(board, palette, at, now, (width, (height / 5).max(2)));
    lines.push(Line::default());
    let body = match (board.full(), &board.status) {
        (Some(source), Some(status)) => body(source, status, board, palette, width.min(WIDTH_MAX), now),
        _ => vec![Line::raw(format!(" There is no source {}.", clean(board.full_name())))],
    };
    let room = height.saturating_sub(lines.len() + 1);
    let last = body.len().saturating_sub(room);
    board.scroll = board.scroll.min(last);
    lines.extend(body.into_iter().skip(board.scroll).take(room));
    lines.truncate(height.saturating_sub(1));
    lines.resize_with(height.saturating_sub(1), Line::default);
    let more = match last - board.scroll {
        0 => "the end".to_owned(),
        more => format!("↑↓ {more} more lines"),
    };
    lines.push(keys(&["q quit", "Esc back", &more, "? help"], palette, width));
    frame.render_widget(Paragraph::new(lines), area);
}

fn body(
    source: &SourceStatus,
    status: &DaemonStatus,
    board: &Board,
    palette: Palette,
    width: usize,
    now: Timestamp,
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let text = table::of_source(source, width, now);
    let mut has_more = false;
    for (index, line) in text.lines().skip_while(|line| line.is_empty()).enumerate() {
        if index == 0 {
            lines.push(Line::from(vec![
                Span::styled(format!(" {}: ", clean(&source.name)), palette.strong()),
                Span::styled(clean(source.state.word()), palette.of(source.verdict.level)),
            ]));
            continue;
        }
        // Behind what the state is about.
        if !has_more && !line.starts_with(&" ".repeat(MARGIN)) {
            has_more = true;
            lines.extend(commands(source, status, palette, width));
            lines.extend(past(board, source, palette, width));
        }
        // Names are quiet, so that the eye finds what they name.
        match line.char_indices().nth(MARGIN) {
            Some((end, _)) if line[..end].ends_with("  ") => {
                let (name, text) = line.split_at(end);
                lines.push(Line::from(vec![
                    Span::styled(name.to_owned(), palette.quiet()),
                    Span::raw(text.to_owned()),
                ]));
            }
            _ => lines.push(Line::raw(line.to_owned())),
        }
    }
    if let Some(serve) = &status.serve {
        let readers = readers::of_source(serve, &source.name, width, now);
        if !readers.is_empty() {
            lines.push(Line::default());
            lines.push(Line::styled("  readers and slots", palette.quiet()));
            lines.extend(readers.lines().map(|line| Line::raw(line.to_owned())));
        }
    }
    lines
}

/// What hands back what the source lost, to copy.
fn commands(
    source: &SourceStatus,
    status: &DaemonStatus,
    palette: Palette,
    width: usize,
) -> Vec<Line<'static>> {
    let folder = quoted(&status.data_dir);
    let which = if status.sources.len() > 1 { format!(" --source {}", source.name) } else { String::new() };
    let mut commands = Vec::new();
    if source.source_lacks.as_ref().is_some_and(|lacks| !lacks.is_empty()) {
        let host = source.host.as_deref().unwrap_or("host:3306");
        commands
            .push(("rescue", format!("binlogd rescue {folder}{which} --to mysql://root@{host} --dry-run")));
    }
    if source.gtids_given_twice > 0 {
        commands.push(("given twice", format!("binlogd forks {folder}{which}")));
    }
    let mut lines = Vec::new();
    for (name, command) in commands {
        let mut name = name;
        for line in wrapped(&clean(&command), width.saturating_sub(MARGIN).max(20)) {
            lines.push(Line::from(vec![
                Span::styled(format!("  {name:<0$}", MARGIN - 2), palette.bad()),
                Span::styled(line, palette.strong()),
            ]));
            name = "";
        }
    }
    lines
}

/// The rates of the last minutes, the newest at the right.
fn past(board: &Board, source: &SourceStatus, palette: Palette, width: usize) -> Vec<Line<'static>> {
    let Some(rate) = board.rates.of(&source.name) else { return Vec::new() };
    let rates: Vec<_> = board.rates.past(&source.name).collect();
    let row = |name: &str, now: String, values: Vec<f64>| {
        Line::from(vec![
            Span::styled(format!("  {name:<0$}", MARGIN - 2), palette.quiet()),
            Span::styled(format!("{now:>8}  "), palette.strong()),
            Span::styled(bars(&values, width.saturating_sub(MARGIN + 11)), palette.quiet()),
        ])
    };
    vec![
        row(
            "transactions/s",
            number(rate.transactions),
            rates.iter().map(|rate| rate.transactions).collect(),
        ),
        row("MB/s", number(rate.bytes / 1e6), rates.iter().map(|rate| rate.bytes).collect()),
    ]
}

/// The newest values as bars; the highest of all of them is the full height.
fn bars(values: &[f64], width: usize) -> String {
    let values = &values[values.len().saturating_sub(width)..];
    let highest = values.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| match highest > 0.0 {
        true => BARS[((value / highest * 7.0).round() as usize).min(BARS.len() - 1)],
        false => BARS[0],
    };
    values.iter().map(bar).collect()
}

/// As a shell takes it for one word.
fn quoted(path: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "/._-+:@%".contains(character);
    match !path.is_empty() && path.chars().all(is_plain) {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_the_newest_and_a_path_is_one_word() {
        assert_eq!(bars(&[0.0, 0.0], 5), "▁▁");
        assert_eq!(bars(&[9.0, 0.0, 50.0, 100.0], 3), "▁▅█");
        assert_eq!(bars(&[], 3), "");
        assert_eq!(quoted("/var/lib/binlogd"), "/var/lib/binlogd");
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }
}
