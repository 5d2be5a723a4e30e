//! All sources at a glance: the verdict, one line a source, and the ladder of the one that is chosen.

use super::board::{Board, Mode, Row};
use super::palette::Palette;
use super::verdict::{place, verdict};
use crate::cli::status::head::{free, time_left};
use crate::cli::status::page::wrapped;
use crate::cli::status::rank::note;
use crate::cli::status::table;
use crate::cli::style::clean;
use crate::cli::units;
use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use status::{DaemonStatus, Level, SourceStatus, Topic, human_time, view};
use std::time::Instant;

/// Rows of sources below which nothing is shown of the chosen one.
const ROWS_MIN: usize = 4;
/// A longer name is cut.
const NAME_WIDTH_MAX: usize = 32;
/// A state that is cut no further.
const STATE_WIDTH_MIN: usize = 12;
/// From here on the reason has a column of its own.
const NOTE_WIDTH_MIN: usize = 30;
/// A name is cut to this before a column of numbers is left out.
const NAME_WIDTH_MIN: usize = 12;
/// What stands at the left of a name, and at the right of a row.
const MARGINS: usize = 4;

/// A column of numbers.
struct Column {
    title: &'static str,
    width: usize,
    rank: usize,
    /// Of which part of the verdict it has the colour.
    about: Option<Topic>,
    text: fn(&Row<'_>) -> String,
}

/// In the order in which they stand; the lower `rank` is wanted more where there is no room for all.
const COLUMNS: [Column; 7] = [
    Column { title: "SEMI", width: 4, rank: 0, about: Some(Topic::SemiSync), text: semi_sync },
    Column { title: "BEHIND", width: 8, rank: 1, about: Some(Topic::Behind), text: behind },
    Column { title: ARCHIVE, width: 8, rank: 4, about: Some(Topic::Archive), text: archive_behind },
    Column { title: "TX/S", width: 7, rank: 2, about: None, text: transactions },
    Column { title: "MB/S", width: 6, rank: 5, about: None, text: megabytes },
    Column {
        title: "P50",
        width: 7,
        rank: 6,
        about: None,
        text: |row| latency(row.source, |latency| latency.p50_us),
    },
    Column {
        title: "P99",
        width: 7,
        rank: 3,
        about: None,
        text: |row| latency(row.source, |latency| latency.p99_us),
    },
];
/// The column that is there only where something is archived.
const ARCHIVE: &str = "ARCHIVE";

/// Draws it.
pub(super) fn draw(frame: &mut Frame<'_>, board: &Board, palette: Palette, at: Instant, now: Timestamp) {
    let area = frame.area();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let rows = board.rows();
    let mut lines = head(board, palette, at, now, (width, (height / 5).max(2)));
    if let Some(status) = &board.status {
        lines.extend(shared(status, board.silence.is_some(), palette, width));
    }
    let chosen = board.chosen(&rows);
    let left = height.saturating_sub(lines.len() + 2);
    let needed = ROWS_MIN.min(rows.len());
    let about = rows.get(chosen).map_or_else(Vec::new, |row| {
        let (mut about, ladder) = (why(row, palette, width), ladder(row, palette, width, now));
        // The ladder when there is room for it, else the reason alone.
        if left >= about.len() + ladder.len() + needed {
            about.extend(ladder);
        }
        if left >= about.len() + needed { about } else { Vec::new() }
    });
    let visible = left.saturating_sub(about.len());
    lines.extend(table(board, &rows, chosen, visible, palette, width));
    let below = height.saturating_sub(about.len() + 1);
    lines.truncate(below);
    lines.resize_with(below, Line::default);
    lines.extend(about);
    lines.push(foot(board, rows.len(), palette, width));
    frame.render_widget(Paragraph::new(lines), Rect { ..area });
}

/// What stands at the top of each page: the program and the verdict, in `lines_max` lines at most.
pub(super) fn head(
    board: &Board,
    palette: Palette,
    at: Instant,
    now: Timestamp,
    size: (usize, usize),
) -> Vec<Line<'static>> {
    let (width, lines_max) = size;
    let title = match &board.status {
        Some(status) => {
            let up =
                status.uptime_seconds.map_or_else(String::new, |up| format!(", up {}", units::duration(up)));
            format!(" binlogd {}{up}", clean(&status.binlogd_version))
        }
        None => " binlogd".to_owned(),
    };
    let time = Span::styled(human_time(now), palette.quiet());
    let mut lines = vec![ends(Span::styled(title, palette.strong()), time, width)];
    let (word, text) = verdict(board.status.as_ref(), board.silence.as_ref(), at);
    let badge = format!(" {} ", word.word());
    let margin = badge.chars().count() + 2;
    let mut said = wrapped(&text, width.saturating_sub(margin + 1).max(20));
    let room = lines_max.saturating_sub(1).max(1);
    if said.len() > room {
        said.truncate(room);
        said[room - 1].push('…');
    }
    for (index, line) in said.into_iter().enumerate() {
        lines.push(match index {
            0 => Line::from(vec![
                Span::raw(" "),
                Span::styled(badge.clone(), word.style(palette)),
                Span::styled(format!(" {line}"), palette.strong()),
            ]),
            _ => Line::styled(format!("{:margin$}{line}", ""), palette.strong()),
        });
    }
    lines
}

/// Where what was acknowledged is, the disk and the readers.
fn shared(status: &DaemonStatus, is_old: bool, palette: Palette, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if !is_old {
        lines.push(Line::styled(cut(&format!(" {}", place(status)), width), palette.quiet()));
    }
    let styled = |about| match status.verdict.about(about) {
        Level::Ok => palette.quiet(),
        level => palette.of(level),
    };
    let mut spans = vec![Span::raw(" ")];
    match &status.disk {
        Some(disk) => {
            let left = time_left(disk).map_or_else(String::new, |left| format!(", {left} left at this rate"));
            let title = if disk.low { "disk is low:" } else { "disk" };
            spans.push(Span::styled(format!("{title} {}{left}", free(disk)), styled(Topic::Disk)));
        }
        None => spans.push(Span::styled("disk cannot be measured", styled(Topic::Disk))),
    }
    if let Some(serve) = &status.serve {
        let reads = serve.readers.iter().filter(|reader| reader.dumps()).count();
        let released = serve.slots.iter().filter(|slot| slot.released.is_some()).count();
        let slots = serve.slots.len() as u64;
        let text = format!("; {}, {}", units::counted(reads as u64, "reader"), units::counted(slots, "slot"));
        spans.push(Span::styled(text, palette.quiet()));
        if released > 0 {
            let keep = if released == 1 { "keeps" } else { "keep" };
            spans.push(Span::styled(format!(", {released} {keep} nothing"), styled(Topic::Readers)));
        }
    }
    lines.push(Line::from(spans));
    lines.push(Line::default());
    lines
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
    let longest = |text: &dyn Fn(&Row<'_>) -> usize| rows.iter().map(text).max().unwrap_or(0);
    let state = longest(&|row| row.source.state.word().chars().count()).max("STATE".len());
    let name = longest(&|row| row.source.name.chars().count()).clamp("SOURCE".len(), NAME_WIDTH_MAX);
    let is_archived = rows.iter().any(|row| row.source.archive.is_some());
    let columns = columns_for(width.saturating_sub(MARGINS + state + name.min(NAME_WIDTH_MIN)), is_archived);
    let numbers: usize = columns.iter().map(|column| column.width + 1).sum();
    let text_width = width.saturating_sub(numbers + MARGINS);
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
        let state_style = if is_old { palette.quiet() } else { palette.of(row.source.verdict.level) };
        let mut spans = vec![
            Span::styled(mark, palette.strong()),
            Span::styled(format!("{:name$} ", cut(&clean(&row.source.name), name)), plain),
            Span::styled(format!("{:state$}", cut(&clean(row.source.state.word()), state)), state_style),
        ];
        for column in &columns {
            let text = format!(" {:>1$}", cut(&(column.text)(row), column.width), column.width);
            let level = column.about.map_or(Level::Ok, |about| row.source.verdict.about(about));
            let style = if level == Level::Ok || is_old { plain } else { palette.of(level) };
            spans.push(Span::styled(text, style));
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

/// Those for which there is room.
fn columns_for(room: usize, is_archived: bool) -> Vec<&'static Column> {
    let wanted: Vec<&Column> =
        COLUMNS.iter().filter(|column| is_archived || column.title != ARCHIVE).collect();
    let fits = |column: &&&Column| {
        let before: usize =
            wanted.iter().filter(|other| other.rank <= column.rank).map(|other| other.width + 1).sum();
        before <= room
    };
    wanted.iter().filter(fits).copied().collect()
}

/// The chosen source: its line, and why it is as it is.
fn why(row: &Row<'_>, palette: Palette, width: usize) -> Vec<Line<'static>> {
    let source = row.source;
    let rule = width.saturating_sub(source.name.chars().count() + 5);
    let mut lines = vec![Line::from(vec![
        Span::styled(" ── ", palette.quiet()),
        Span::styled(clean(&source.name), palette.strong()),
        Span::styled(format!(" {}", "─".repeat(rule.saturating_sub(1))), palette.quiet()),
    ])];
    let mut why = note(source);
    if why.is_empty() {
        let semi_sync = view::semi_sync(source);
        why = format!("semi-sync {semi_sync}: {}", clean(&source.semi_sync.reason));
    }
    let is_critical = source.verdict.level == Level::Critical;
    let style = if is_critical { palette.bad() } else { ratatui::style::Style::new() };
    let mut why: Vec<String> = wrapped(&why, width.saturating_sub(2).max(20));
    why.truncate(2);
    lines.extend(why.into_iter().map(|line| Line::styled(format!(" {line}"), style)));
    lines
}

/// The four positions of the chosen source, and the end of its archive.
fn ladder(row: &Row<'_>, palette: Palette, width: usize, now: Timestamp) -> Vec<Line<'static>> {
    let text = table::ladder_of(row.source, width.saturating_sub(1), now);
    let line = |(index, line): (usize, &str)| {
        let line = line.strip_prefix(' ').unwrap_or(line).to_owned();
        if index == 0 { Line::styled(line, palette.quiet()) } else { Line::raw(line) }
    };
    text.lines().filter(|line| !line.is_empty()).enumerate().map(line).collect()
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
    view::semi_sync(row.source).to_owned()
}

fn transactions(row: &Row<'_>) -> String {
    row.rate.map_or_else(dash, |rate| number(rate.transactions))
}

fn megabytes(row: &Row<'_>) -> String {
    row.rate.map_or_else(dash, |rate| number(rate.bytes / 1e6))
}

fn behind(row: &Row<'_>) -> String {
    row.source.seconds_behind.map_or_else(dash, rough)
}

fn archive_behind(row: &Row<'_>) -> String {
    let archive = row.source.archive.as_ref();
    archive.and_then(|archive| archive.behind_seconds).map_or_else(dash, rough)
}

/// A time with its larger unit alone, which says enough here.
fn rough(seconds: u64) -> String {
    match units::duration(seconds).split_whitespace().collect::<Vec<_>>()[..] {
        [number, unit, ..] => format!("{number} {unit}"),
        _ => dash(),
    }
}

fn latency(source: &SourceStatus, of: fn(&status::LatencySummary) -> f64) -> String {
    let acknowledge = &source.latency.acknowledge;
    if acknowledge.count == 0 { dash() } else { units::latency(of(acknowledge)) }
}

fn dash() -> String {
    "-".to_owned()
}

/// A number with as many digits as it deserves.
pub(super) fn number(value: f64) -> String {
    match value {
        value if value > 0.0 && value < 0.995 => format!("{value:.2}"),
        value if value > 0.0 && value < 9.95 => format!("{value:.1}"),
        value => units::count(value.round() as u64),
    }
}

/// At most `width` characters, with a sign where something was cut.
fn cut(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_owned(),
    }
}
