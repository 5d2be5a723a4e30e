//! What is wrong, in one line and one colour: by the verdict that is in the status.

use crate::cli::style::{GREEN, RED, YELLOW, clean};
use status::{Level, SourceStatus};

/// Longest text about one source, in characters: one line stays one on a wide terminal.
const NOTE_LEN_MAX: usize = 160;

/// The colour of a level.
pub(in crate::cli) fn color(level: Level) -> u8 {
    match level {
        Level::Ok => GREEN,
        Level::Notice | Level::Warning => YELLOW,
        Level::Critical => RED,
    }
}

/// What is wrong, the worst first. On one line.
pub(in crate::cli) fn note(source: &SourceStatus) -> String {
    let problems = source.verdict.problems.iter();
    let problems = problems.map(|problem| problem.text.trim_end_matches('.'));
    let note = clean(&problems.collect::<Vec<_>>().join("; "));
    match note.char_indices().nth(NOTE_LEN_MAX) {
        Some((end, _)) => format!("{}…", &note[..end]),
        None => note,
    }
}
