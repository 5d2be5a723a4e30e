//! What is worst is shown first, wherever sources are shown: by the verdict that is in the status.

use crate::cli::style::{GREEN, RED, YELLOW, clean};
use status::{Level, SourceStatus};
use std::cmp::Reverse;

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

/// The worst first; of equals those that are not received, those whose commits do not wait, then the one that is behind most. The
/// order of the configuration stays among the rest.
pub(in crate::cli) fn worst_first(sources: &[SourceStatus]) -> Vec<&SourceStatus> {
    let mut rows: Vec<&SourceStatus> = sources.iter().collect();
    rows.sort_by_key(|source| {
        let level = Reverse(source.verdict.level);
        (level, source.is_receiving(), source.semi_sync.active, Reverse(source.seconds_behind))
    });
    rows
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
