//! The status of many sources for a person: what is wrong first, then one line a source.

use super::groups;
use super::head::head;
use super::rank::{color, note};
use crate::cli::style::{clean, paint};
use crate::cli::units;
use jiff::Timestamp;
use status::DaemonStatus;
use status::view::worst_first;
use std::fmt::{Result, Write};

/// More sources than this are summed up; fewer are shown in full.
pub(super) const SHOWN_IN_FULL_MAX: usize = 4;
/// A longer name moves the columns of its own line only.
const NAME_WIDTH_MAX: usize = 24;

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
    let rows = worst_first(&status.sources);
    let verdict = paint(&clean(&status.verdict.headline), color(status.verdict.level), colored);
    writeln!(text, "\n{verdict}\n")?;
    groups::write(text, &rows, colored)?;
    let width = rows.iter().map(|source| source.name.chars().count()).max().unwrap_or(0);
    let width = width.clamp("source".len(), NAME_WIDTH_MAX);
    writeln!(text, "{:width$}  {:22}  {:>14}  {:9}  note", "source", "state", "behind", "semi-sync")?;
    for source in rows {
        let state =
            paint(&format!("{:22}", clean(source.state.word())), color(source.verdict.level), colored);
        let behind = source.seconds_behind.map_or_else(|| "-".to_owned(), units::duration);
        let semi_sync = if source.semi_sync.active { "on" } else { "off" };
        let name = clean(&source.name);
        let line = format!("{name:width$}  {state}  {behind:>14}  {semi_sync:9}  {}", note(source));
        writeln!(text, "{}", line.trim_end())?;
    }
    writeln!(text, "\n--source NAME shows everything about one, --all about each")
}

#[cfg(test)]
mod tests {
    use super::*;
    use status::{SourceStatus, StateName};

    fn source(name: &str, state: &str, behind: Option<u64>) -> SourceStatus {
        let (name, state) = (name.to_owned(), StateName::from(state.to_owned()));
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
        .judged(Timestamp::UNIX_EPOCH)
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
        assert!(lines.len() < 320, "{} lines", lines.len());
        insta::assert_snapshot!(lines[..20].join("\n"));
        assert!(lines[lines.len() - 1].contains("--source NAME"));
        assert!(lines.iter().all(|line| line.chars().count() < 250 && !line.contains('\u{1b}')));
    }

    #[test]
    fn all_is_well_in_one_line() {
        let mut sources: Vec<SourceStatus> =
            (0..5).map(|n| source(&format!("s{n}"), "receiving", None)).collect();
        for source in &mut sources {
            (source.semi_sync.active, source.fsync_mode) = (true, Some(1));
        }
        let text = render(&status(sources.clone()), None, true, Timestamp::UNIX_EPOCH);
        assert!(text.contains("\u{1b}[1;33mAll 5 sources are protected"), "the disk is not known: {text}");
        let mut noted = sources;
        noted[4].source_lacks = Some("u:1".to_owned());
        let text = render(&status(noted), None, true, Timestamp::UNIX_EPOCH);
        assert!(text.contains("\u{1b}[1;31m1 source of 5 needs you now; 5 are protected."), "{text}");
    }
}
