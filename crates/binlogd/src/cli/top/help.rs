//! What the keys do, and what the words mean.

use super::palette::Palette;
use ratatui::Frame;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

/// Columns of the keys.
const KEY_WIDTH: usize = 14;

const KEYS: [(&str, &str); 8] = [
    ("↑ ↓  or  k j", "choose a source; PgUp, PgDn, Home, End go further"),
    ("Enter", "the chosen source in full"),
    ("Esc", "back; without a page to leave: no filter any more"),
    ("s", "sort by: worst first, name, behind, transactions, bytes"),
    ("/", "show only sources whose name holds what you type"),
    ("?", "this page"),
    ("Ctrl-Z", "stop, as in a shell; fg goes on"),
    ("q  or  Ctrl-C", "end; the daemon does not notice"),
];

const WORDS: [(&str, &str); 8] = [
    ("SAFE", "each source is received, and its commits wait for binlogd"),
    ("LOOK", "received, but commits of some source do not wait, or more"),
    ("ACT", "a source is not received, or lost what this copy holds"),
    ("GONE", "the daemon does not answer; its files stay as they are"),
    ("SEMI", "on: a commit returns when binlogd has it as safe as asked"),
    ("BEHIND", "age of the newest event that is held; 0 s: nothing newer"),
    ("ARCHIVE", "how long ago the archive had everything"),
    ("P50, P99", "from arrival to acknowledgement, since the daemon's start"),
];

/// Draws the page.
pub(super) fn draw(frame: &mut Frame<'_>, palette: Palette) {
    let row = |(name, text): &(&'static str, &'static str)| {
        Line::from(vec![Span::styled(format!(" {name:KEY_WIDTH$} "), palette.strong()), Span::raw(*text)])
    };
    let mut lines = vec![Line::styled(" Keys", palette.quiet())];
    lines.extend(KEYS.iter().map(row));
    lines.push(Line::default());
    lines.push(Line::styled(" Words", palette.quiet()));
    lines.extend(WORDS.iter().map(row));
    lines.push(Line::default());
    lines.push(Line::styled(" Any key leads back.", palette.quiet()));
    frame.render_widget(Paragraph::new(lines), frame.area());
}
