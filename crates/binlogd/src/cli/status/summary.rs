//! The status of many sources for a person: what is wrong first, then one line a source.

use super::head::head;
use crate::cli::style::{GREEN, RED, YELLOW, clean, paint};
use crate::cli::units;
use crate::status::{DaemonStatus, NOT_RUNNING, SourceState, SourceStatus};
use jiff::Timestamp;
use std::fmt::{Result, Write};

/// More sources than this are summed up; fewer are shown in full.
pub(super) const SHOWN_IN_FULL_MAX: usize = 4;
/// A longer name moves the columns of its own line only.
const NAME_WIDTH_MAX: usize = 24;
/// Longest text about one source, in characters: one line stays one on a wide terminal.
const NOTE_LEN_MAX: usize = 160;

/// How bad it is. The worst comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// An operator must act: nothing is received.
    Stopped,
    /// Nothing is received until something changes.
    Away,
    /// Nothing is received yet.
    Beginning,
    /// Received, and something needs a look.
    Noted,
    /// All is well.
    Well,
}

/// The whole text.
pub(super) fn render(
    status: &DaemonStatus,
    unanswered: Option<&str>,
    colored: bool,
    now: Timestamp,
) -> String {
    let mut text = head(status, unanswered, colored, now);
    // Writing to a String does not fail.
    let _ = table(&mut text, status, colored);
    text
}

fn table(text: &mut String, status: &DaemonStatus, colored: bool) -> Result {
    let mut rows: Vec<(Rank, &SourceStatus)> =
        status.sources.iter().map(|source| (rank(source), source)).collect();
    // The order of the configuration stays among equals.
    rows.sort_by_key(|(rank, source)| (*rank, std::cmp::Reverse(source.seconds_behind)));
    let receiving = status.sources.iter().filter(|source| source.is_receiving()).count();
    let (count, away) = (status.sources.len(), status.sources.len() - receiving);
    let verdict = match (away, rows.iter().filter(|(rank, _)| *rank == Rank::Noted).count()) {
        (0, 0) => paint(&format!("all {count} sources are received"), GREEN, colored),
        (0, noted) => {
            paint(&format!("all {count} sources are received, {noted} need a look"), YELLOW, colored)
        }
        (away, _) => {
            let verdict = format!("{receiving} of {count} sources are received, {away} are not");
            paint(&verdict, RED, colored)
        }
    };
    writeln!(text, "\n{verdict}\n")?;
    let width = rows.iter().map(|(_, source)| source.name.chars().count()).max().unwrap_or(0);
    let width = width.clamp("source".len(), NAME_WIDTH_MAX);
    writeln!(text, "{:width$}  {:22}  {:>14}  {:9}  note", "source", "state", "behind", "semi-sync")?;
    for (rank, source) in rows {
        let color = match rank {
            Rank::Stopped => RED,
            Rank::Away | Rank::Beginning | Rank::Noted => YELLOW,
            Rank::Well => GREEN,
        };
        let state = paint(&format!("{:22}", clean(&source.state)), color, colored);
        let behind = source.seconds_behind.map_or_else(|| "-".to_owned(), units::duration);
        let semi_sync = if source.semi_sync.active { "on" } else { "off" };
        let name = clean(&source.name);
        let line = format!("{name:width$}  {state}  {behind:>14}  {semi_sync:9}  {}", note(source));
        writeln!(text, "{}", line.trim_end())?;
    }
    writeln!(text, "\n--source NAME shows everything about one, --all about each")
}

fn rank(source: &SourceStatus) -> Rank {
    let [starting, recovering, connecting, receiving, ..] = SourceState::WORDS;
    match source.state.as_str() {
        state if state == SourceState::WORDS[SourceState::WORDS.len() - 1] || state == NOT_RUNNING => {
            Rank::Stopped
        }
        state if state == receiving && worries(source).is_empty() => Rank::Well,
        state if state == receiving => Rank::Noted,
        state if [starting, recovering, connecting].contains(&state) => Rank::Beginning,
        _ => Rank::Away,
    }
}

/// What is wrong with a source that is received.
fn worries(source: &SourceStatus) -> Vec<String> {
    let mut worries = Vec::new();
    if source.source_lacks.as_ref().is_some_and(|lacks| !lacks.is_empty()) {
        worries.push("lacks transactions that the copy holds".to_owned());
    }
    let commits = &source.unacknowledged_commits;
    if commits.since.is_some() && commits.until.is_none() {
        worries.push(format!("tells clients of commits without an acknowledgement: {}", commits.commits));
    }
    for peer in source.peers.iter().filter(|peer| peer.only_there_timeline.is_some()) {
        worries.push(format!("{} alone holds {} transactions", peer.peer, peer.only_there_transactions));
    }
    worries.extend(source.server_id_rival.clone());
    worries
}

/// Why it is not received, or what is wrong though it is. On one line.
fn note(source: &SourceStatus) -> String {
    let note = match source.is_receiving() {
        true => worries(source).join("; "),
        false => source.state_detail.clone().unwrap_or_default(),
    };
    let note = clean(&note);
    match note.char_indices().nth(NOTE_LEN_MAX) {
        Some((end, _)) => format!("{}…", &note[..end]),
        None => note,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str, state: &str, behind: Option<u64>) -> SourceStatus {
        let (name, state) = (name.to_owned(), state.to_owned());
        SourceStatus { name, state, seconds_behind: behind, ..SourceStatus::default() }
    }

    fn status(sources: Vec<SourceStatus>) -> DaemonStatus {
        DaemonStatus {
            binlogd_version: "1.2.3".to_owned(),
            pid: Some(7),
            uptime_seconds: Some(65),
            data_dir: "/var/lib/binlogd".to_owned(),
            disk: None,
            running: true,
            sources,
            ..DaemonStatus::default()
        }
    }

    #[test]
    fn what_is_wrong_comes_first_and_each_source_has_a_line() {
        let mut sources: Vec<SourceStatus> =
            (0..300).map(|n| source(&format!("db{n:03}"), "receiving", Some(0))).collect();
        sources[7].seconds_behind = Some(70);
        sources[8].source_lacks = Some("u:1".to_owned());
        sources[9] = source("db009", "recovering", None);
        sources[9].state_detail = Some("checked 1 of 9 MiB of the newest file".to_owned());
        sources[10] = source("db010", "backing off", None);
        sources[10].state_detail = Some(format!("refused\u{1b}[31m\n{}", "x".repeat(300)));
        sources[200] = source("db200", "stopped", None);
        sources[200].state_detail = Some("garbage in timeline.toml".to_owned());
        sources[1].semi_sync.active = true;
        let text = render(&status(sources), None, false, Timestamp::UNIX_EPOCH);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() < 310, "{} lines", lines.len());
        insta::assert_snapshot!(lines[..14].join("\n"));
        assert!(lines[lines.len() - 1].contains("--source NAME"));
        assert!(lines.iter().all(|line| line.chars().count() < 250 && !line.contains('\u{1b}')));
    }

    #[test]
    fn all_is_well_in_one_line() {
        let sources: Vec<SourceStatus> =
            (0..5).map(|n| source(&format!("s{n}"), "receiving", None)).collect();
        let text = render(&status(sources.clone()), None, true, Timestamp::UNIX_EPOCH);
        assert!(text.contains("\u{1b}[1;32mall 5 sources are received\u{1b}[0m"), "{text}");
        let mut noted = sources;
        noted[4].source_lacks = Some("u:1".to_owned());
        let text = render(&status(noted), None, false, Timestamp::UNIX_EPOCH);
        assert!(text.contains("all 5 sources are received, 1 need a look"), "{text}");
    }
}
