//! Colours, where somebody sees them.

use std::io::{self, IsTerminal};

/// Something is as it should be.
pub(super) const GREEN: u8 = 32;
/// Something needs a look.
pub(super) const YELLOW: u8 = 33;
/// Something is wrong.
pub(super) const RED: u8 = 31;

/// Whether standard output is a terminal and nobody set NO_COLOR (no-color.org).
pub(super) fn stdout_is_colored() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !no_color
}

/// `text` in a bold colour, or as it is.
pub(super) fn paint(text: &str, color: u8, colored: bool) -> String {
    if colored { format!("\x1b[1;{color}m{text}\x1b[0m") } else { text.to_owned() }
}

/// `text` without control characters, so that no name or text of a server can drive the terminal.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The same of a text of several lines.
pub(super) fn clean_lines(text: &str) -> String {
    text.lines().map(clean).collect::<Vec<_>>().join("\n")
}
