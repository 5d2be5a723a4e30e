//! All sources at a glance: the verdict, one line a source, and the ladder of the one that is chosen.

use super::board::{Board, Mode, Row};
use super::palette::Palette;
use super::verdict::{Verdict, place, verdict};
use crate::cli::status::head::space;
use crate::cli::status::page::wrapped;
use crate::cli::status::rank::note;
use crate::cli::status::table;
use crate::cli::style::{RED, clean};
use crate::cli::units;
use crate::status::{DaemonStatus, SourceStatus, human_time};
use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use std::time::Instant;

/// Rows of sources below which nothing is shown of the chosen one.
const ROWS_MIN: usize = 4;
/// A longer name is cut.
const NAME_WIDTH_MAX: usize = 32;
/// A state that is cut no further.
const STATE_WIDTH_MIN: usize = 12;
/// From here on the reason has a column of its own.
const NOTE_WIDTH_MIN: usize = 16;

/// A column of numbers: title, width, text, and from which width of the terminal on it is shown.
struct Column {
    title: &'static str,
    width: usize,
    from: usize,
    text: fn(&Row<'_>) -> String,
}

const COLUMNS: [Column; 6] = [
    Column { title: "SEMI", width: 4, from: 38, text: semi_sync },
    Column { title: "BEHIND", width: 8, from: 48, text: behind },
    Column {
        title: "TX/S",
        width: 7,
        from: 58,
        text: |row| row.rate.map_or_else(dash, |rate| number(rate.transactions)),
    },
    Column {
        title: "MB/S",
        width: 6,
        from: 70,
        text: |row| row.rate.map_or_else(dash, |rate| number(rate.bytes / 1e6)),
    },
    Column { title: "P50", width: 7, from: 88, text: |row| latency(row.source, |latency| latency.p50_us) },
    Column { title: "P99", width: 7, from: 80, text: |row| latency(row.source, |latency| latency.p99_us) },
];

/// Draws it.
pub(super) fn draw(frame: &mut Frame<'_>, board: &Board, palette: Palette, at: Instant, now: Timestamp) {
    let area = frame.area();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let rows = board.rows();
    let mut lines = head(board, palette, at, now, width);
    let chosen = board.chosen(&rows);
    let left = height.saturating_sub(lines.len() + 2);
    let about = rows.get(chosen).map(|row| about(row, palette, width, now)).unwrap_or_default();
    // The ladder when there is room for it, else the reason alone.
    let about = [about.len(), about.len().min(3)]
        .into_iter()
        .find(|lines| left >= lines + ROWS_MIN.min(rows.len()))
        .map_or_else(Vec::new, |count| about.into_iter().take(count).collect());
    let visible = left.saturating_sub(about.len());
    lines.extend(table(board, &rows, chosen, visible, palette, width));
    let below = height.saturating_sub(about.len() + 1);
    lines.truncate(below);
    lines.resize_with(below, Line::default);
    lines.extend(about);
    lines.push(foot(board, rows.len(), palette, width));
    frame.render_widget(Paragraph::new(lines), Rect { ..area });
}

/// The verdict, where it holds, and what the sources share.
pub(super) fn head(
    board: &Board,
    palette: Palette,
    at: Instant,
    now: Timestamp,
    width: usize,
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let status = board.status.as_ref();
    let title = match status {
        Some(status) => {
            let up =
                status.uptime_seconds.map_or_else(String::new, |up| format!(", up {}", units::duration(up)));
            format!(" binlogd {}{up}", clean(&status.binlogd_version))
        }
        None => " binlogd".to_owned(),
    };
    lines.push(ends(
        Span::styled(title, palette.strong()),
        Span::styled(human_time(now), palette.quiet()),
        width,
    ));
    let (word, text) = verdict(status, board.silence.as_ref(), at);
    let badge = format!(" {} ", word.word());
    let margin = badge.chars().count() + 2;
    for (index, line) in wrapped(&text, width.saturating_sub(margin + 1).max(20)).into_iter().enumerate() {
        lines.push(match index {
            0 => Line::from(vec![
                Span::raw(" "),
                Span::styled(badge.clone(), word.style(palette)),
                Span::styled(format!(" {line}"), palette.strong()),
            ]),
            _ => Line::styled(format!("{:margin$}{line}", ""), palette.strong()),
        });
    }
    let Some(status) = status else { return lines };
    if word != Verdict::Gone {
        lines.push(Line::styled(format!(" {}", place(status)), palette.quiet()));
    }
    lines.push(shared(status, palette));
    lines.push(Line::default());
    lines
}

/// Disk and readers.
fn shared(status: &DaemonStatus, palette: Palette) -> Line<'static> {
    let mut spans = vec![Span::raw(" ")];
    match &status.disk {
        Some(disk) if disk.low => {
            spans.push(Span::styled(format!("disk is low: {}", space(disk)), palette.bad()))
        }
        Some(disk) => spans.push(Span::styled(format!("disk {}", space(disk)), palette.quiet())),
        None => spans.push(Span::styled("disk cannot be measured", palette.warn())),
    }
    if let Some(serve) = &status.serve {
        let reads = serve.readers.iter().filter(|reader| reader.dumps()).count();
        let released = serve.slots.iter().filter(|slot| slot.released.is_some()).count();
        let text = format!("; {reads} readers, {} slots", serve.slots.len());
        spans.push(Span::styled(text, palette.quiet()));
        if released > 0 {
            spans.push(Span::styled(format!(", {released} keep nothing"), palette.bad()));
        }
    }
    Line::from(spans)
}

/// The titles, and as many rows as are visible, with the chosen one among them.
fn table(
    board: &Board,
    rows: &[Row<'_>],
    chosen: usize,
    visible: usize,
    palette: Palette,
    width: usize,
) -> Vec<Line<'static>> {
    let columns: Vec<&Column> = COLUMNS.iter().filter(|column| width >= column.from).collect();
    let numbers: usize = columns.iter().map(|column| column.width + 1).sum();
    let longest = |text: &dyn Fn(&Row<'_>) -> usize| rows.iter().map(text).max().unwrap_or(0);
    let text_width = width.saturating_sub(numbers + 4);
    let state = longest(&|row| row.source.state.chars().count()).max("STATE".len());
    let name = longest(&|row| row.source.name.chars().count()).clamp("SOURCE".len(), NAME_WIDTH_MAX);
    // Both as they are, else the state is cut, then the name.
    let state = state.min(text_width.saturating_sub(name).max(STATE_WIDTH_MIN));
    let name = name.min(text_width.saturating_sub(state)).max(6);
    let room = text_width.saturating_sub(name + state + 1);
    let has_notes = room >= NOTE_WIDTH_MIN;
    let mut title = format!("   {:name$} {:state$}", "SOURCE", "STATE");
    for column in &columns {
        title += &format!(" {:>1$}", column.title, column.width);
    }
    if has_notes {
        title += "  NOTE";
    }
    let start = (chosen + 1).saturating_sub(visible);
    let mut lines = Vec::with_capacity(visible + 1);
    let shown = match rows.len() {
        count if count > visible => format!("{}-{} of {count} ", start + 1, start + visible),
        _ => String::new(),
    };
    lines.push(ends(Span::styled(title, palette.quiet()), Span::styled(shown, palette.quiet()), width));
    let is_old = board.silence.is_some();
    for (index, row) in rows.iter().enumerate().skip(start).take(visible) {
        let is_chosen = index == chosen;
        let plain = match (is_old, is_chosen) {
            (true, _) => palette.quiet(),
            (false, true) => palette.strong(),
            (false, false) => ratatui::style::Style::new(),
        };
        let mark = if is_chosen { " ▸ " } else { "   " };
        let state_style = if is_old { palette.quiet() } else { palette.of(row.rank) };
        let mut spans = vec![
            Span::styled(mark, palette.strong()),
            Span::styled(format!("{:name$} ", cut(&clean(&row.source.name), name)), plain),
            Span::styled(format!("{:state$}", cut(&clean(&row.source.state), state)), state_style),
        ];
        for column in &columns {
            let text = format!(" {:>1$}", cut(&(column.text)(row), column.width), column.width);
            let is_off = column.title == "SEMI" && row.source.is_receiving() && !row.source.semi_sync.active;
            spans.push(Span::styled(text, if is_off && !is_old { palette.warn() } else { plain }));
        }
        if has_notes {
            spans.push(Span::styled(format!("  {}", cut(&note(row.source), room - 1)), palette.quiet()));
        }
        lines.push(Line::from(spans));
    }
    if rows.is_empty() && board.status.is_some() {
        let text = if board.filter.is_empty() { "   no sources" } else { "   no source has such a name" };
        lines.push(Line::styled(text, palette.quiet()));
    }
    lines
}

/// The chosen source: its line, why, and its ladder.
fn about(row: &Row<'_>, palette: Palette, width: usize, now: Timestamp) -> Vec<Line<'static>> {
    let source = row.source;
    let rule = width.saturating_sub(source.name.chars().count() + 5);
    let mut lines = vec![Line::from(vec![
        Span::styled(" ── ", palette.quiet()),
        Span::styled(clean(&source.name), palette.strong()),
        Span::styled(format!(" {}", "─".repeat(rule.saturating_sub(1))), palette.quiet()),
    ])];
    let mut why = note(source);
    if why.is_empty() {
        let semi_sync = if source.semi_sync.active { "on" } else { "off" };
        why = format!("semi-sync {semi_sync}: {}", clean(&source.semi_sync.reason));
    }
    let style = if row.rank.color() == RED { palette.bad() } else { ratatui::style::Style::new() };
    let mut why: Vec<String> = wrapped(&why, width.saturating_sub(2).max(20));
    why.truncate(2);
    lines.extend(why.into_iter().map(|line| Line::styled(format!(" {line}"), style)));
    let ladder = table::ladder_of(source, width.saturating_sub(1), now);
    lines.extend(ladder.lines().filter(|line| !line.is_empty()).enumerate().map(|(index, line)| {
        let line = line.strip_prefix(' ').unwrap_or(line).to_owned();
        if index == 0 { Line::styled(line, palette.quiet()) } else { Line::raw(line) }
    }));
    lines
}

/// The keys, or the filter that is typed.
fn foot(board: &Board, rows: usize, palette: Palette, width: usize) -> Line<'static> {
    if board.mode == Mode::Filter {
        return Line::from(vec![
            Span::styled(format!(" /{}", clean(&board.filter)), palette.strong()),
            Span::raw("▏"),
            Span::styled(format!("  {rows} shown; Enter keeps it, Esc clears it"), palette.quiet()),
        ]);
    }
    let sort = format!("s sort: {}", board.sort.word());
    let filter = match board.filter.is_empty() {
        true => "/ filter".to_owned(),
        false => format!("/ filter: {} (Esc clears)", clean(&board.filter)),
    };
    keys(&["q quit", "↑↓ choose", "Enter in full", &sort, &filter, "? help"], palette, width)
}

/// As many keys as fit, with the last one always.
pub(super) fn keys(texts: &[&str], palette: Palette, width: usize) -> Line<'static> {
    let (last, others) = texts.split_last().expect("there are keys");
    let mut line = String::new();
    for text in others {
        if line.chars().count() + text.chars().count() + last.chars().count() + 5 <= width {
            line += &format!(" {text} ");
        }
    }
    Line::styled(format!("{line} {last}"), palette.quiet())
}

/// One text at the left and one at the right; of a narrow line the left one.
fn ends(left: Span<'static>, right: Span<'static>, width: usize) -> Line<'static> {
    let used = left.width() + right.width() + 1;
    match width.checked_sub(used) {
        Some(space) if space > 0 => Line::from(vec![left, Span::raw(" ".repeat(space)), right]),
        _ => Line::from(left),
    }
}

fn semi_sync(row: &Row<'_>) -> String {
    if row.source.semi_sync.active { "on" } else { "off" }.to_owned()
}

fn behind(row: &Row<'_>) -> String {
    match row.source.seconds_behind {
        None => dash(),
        // The larger unit alone says enough here.
        Some(seconds) => match units::duration(seconds).split_whitespace().collect::<Vec<_>>()[..] {
            [number, unit, ..] => format!("{number} {unit}"),
            _ => dash(),
        },
    }
}

fn latency(source: &SourceStatus, of: fn(&crate::status::LatencySummary) -> f64) -> String {
    let acknowledge = &source.latency.acknowledge;
    if acknowledge.count == 0 { dash() } else { units::latency(of(acknowledge)) }
}

fn dash() -> String {
    "-".to_owned()
}

/// A number with as many digits as it deserves.
pub(super) fn number(value: f64) -> String {
    if value > 0.0 && value < 9.95 { format!("{value:.1}") } else { units::count(value.round() as u64) }
}

/// At most `width` characters, with a sign where something was cut.
fn cut(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_owned(),
    }
}
