//! Many sources, counted by state, with the reasons that several of them share.

use super::rank::color;
use crate::cli::style::{clean, paint};
use crate::cli::units;
use status::{Level, SourceStatus};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::{Result, Write};

/// Reasons named of one state; the rest is counted.
const REASONS_MAX: usize = 3;
/// Longest text of one reason, in characters.
const REASON_LEN_MAX: usize = 60;

/// One line a state, the worst first: how many are in it, and why.
pub(super) fn write(text: &mut String, rows: &[&SourceStatus], colored: bool) -> Result {
    let mut groups: BTreeMap<(Reverse<Level>, &str), Vec<&SourceStatus>> = BTreeMap::new();
    for source in rows {
        groups.entry((Reverse(source.verdict.level), source.state.word())).or_default().push(source);
    }
    for ((Reverse(level), state), sources) in groups {
        let count = units::count(sources.len() as u64);
        let state = paint(&format!("{state:28}"), color(level), colored);
        let line = format!("{count:>6}  {state}  {}", reasons(level, &sources));
        writeln!(text, "{}", line.trim_end())?;
    }
    writeln!(text)
}

/// What these sources have in common.
fn reasons(level: Level, sources: &[&SourceStatus]) -> String {
    if level == Level::Ok {
        let without = sources.iter().filter(|source| !source.semi_sync.active).count();
        return match without {
            0 => "semi-sync on".to_owned(),
            without if without == sources.len() => "semi-sync off".to_owned(),
            without => format!("semi-sync off at {}", units::count(without as u64)),
        };
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for source in sources {
        *counts.entry(shared_part(source)).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().filter(|(text, _)| !text.is_empty()).collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    let more = counts.len().saturating_sub(REASONS_MAX);
    let named = counts.iter().take(REASONS_MAX).map(|(text, count)| match count {
        1 => text.clone(),
        count => format!("{text} ({})", units::count(*count as u64)),
    });
    let mut text = named.collect::<Vec<_>>().join("; ");
    if more > 0 {
        let _ = write!(text, "; {more} other reasons");
    }
    text
}

/// The worst problem of a source without what is its own: its address, and when it is tried again.
fn shared_part(source: &SourceStatus) -> String {
    let note = clean(source.verdict.problems.first().map_or("", |problem| &problem.text));
    let note = note.split("; next attempt at ").next().unwrap_or_default();
    let mut note = note.to_owned();
    if let Some(host) = source.host.as_deref().filter(|host| !host.is_empty()) {
        note = note.replace(host, "…");
    }
    match note.char_indices().nth(REASON_LEN_MAX) {
        Some((end, _)) => format!("{}…", note[..end].trim_end()),
        None => note,
    }
}
