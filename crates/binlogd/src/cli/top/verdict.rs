//! Whether every acknowledged transaction is safe, by the verdict of the status, and where: the sentence at the top.

use super::board::Silence;
use super::palette::Palette;
use crate::cli::style::clean;
use crate::cli::units;
use config::FsyncMode;
use ratatui::style::{Modifier, Style};
use status::{DaemonStatus, Level};
use std::time::Instant;

/// How it stands, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Safe,
    Look,
    Act,
    Gone,
    /// Nothing has been heard yet.
    Asking,
}

impl Verdict {
    /// One word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Verdict::Safe => "SAFE",
            Verdict::Look => "LOOK",
            Verdict::Act => "ACT",
            Verdict::Gone => "GONE",
            Verdict::Asking => "…",
        }
    }

    /// A field of the verdict's colour.
    pub(super) fn style(self, palette: Palette) -> Style {
        let style = match self {
            Verdict::Safe => palette.good(),
            Verdict::Look => palette.warn(),
            Verdict::Act | Verdict::Gone => palette.bad(),
            Verdict::Asking => palette.quiet(),
        };
        style.add_modifier(Modifier::BOLD | Modifier::REVERSED)
    }
}

/// The verdict and its sentence.
pub(super) fn verdict(
    status: Option<&DaemonStatus>,
    silence: Option<&Silence>,
    at: Instant,
) -> (Verdict, String) {
    match (status, silence) {
        (None, None) => (Verdict::Asking, "asking the daemon".to_owned()),
        (status, Some(silence)) => (Verdict::Gone, gone(status, silence, at)),
        (Some(status), None) => of(status),
    }
}

fn gone(status: Option<&DaemonStatus>, silence: &Silence, at: Instant) -> String {
    let seconds = units::duration(at.saturating_duration_since(silence.since).as_secs());
    let why = clean(&silence.why);
    match status {
        None => format!("for {seconds}: {why}; asked again every second"),
        Some(status) => format!(
            "for {seconds}: {why}. What it acknowledged stays in {}; below is what it said last",
            clean(&status.data_dir)
        ),
    }
}

/// As the status judges, with what is wrong with all, and with the only source.
fn of(status: &DaemonStatus) -> (Verdict, String) {
    let judged = &status.verdict;
    let verdict = match judged.level {
        Level::Ok => Verdict::Safe,
        Level::Notice | Level::Warning => Verdict::Look,
        Level::Critical => Verdict::Act,
    };
    let only = status.sources.first().filter(|_| status.sources.len() == 1);
    let problems = only.into_iter().flat_map(|only| &only.verdict.problems).chain(&judged.problems);
    let said = std::iter::once(judged.headline.as_str()).chain(problems.map(|problem| problem.text.as_str()));
    (verdict, clean(&said.collect::<Vec<_>>().join(" ")))
}

fn of_all(count: usize, all: usize) -> String {
    match (count, all) {
        (_, 1) => "the source".to_owned(),
        (2, 2) => "both sources".to_owned(),
        _ if count == all => format!("all {all} sources"),
        _ => format!("{count} of {all} sources"),
    }
}

/// Where what was acknowledged is.
pub(super) fn place(status: &DaemonStatus) -> String {
    let written = FsyncMode::WriteThenAcknowledge as u8;
    let unsynced = status.sources.iter().filter(|source| source.fsync_mode == Some(written)).count();
    let all = status.sources.len();
    let folder = clean(&status.data_dir);
    match unsynced {
        0 => format!("every acknowledged transaction is on stable storage in {folder}"),
        _ if unsynced == all => {
            format!("acknowledged transactions are written in {folder}, and synced later (fsync_mode 0)")
        }
        _ => format!(
            "every acknowledged transaction is in {folder}, on stable storage; of {} only written (fsync_mode 0)",
            of_all(unsynced, all)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{daemon, well};
    use super::*;
    use std::time::Duration;

    #[test]
    fn where_it_is_says_no_more_than_is_true() {
        let mut status = daemon(vec![well("a"), well("b")]);
        assert_eq!(place(&status), "every acknowledged transaction is on stable storage in /var/lib/binlogd");
        status.sources[0].fsync_mode = Some(0);
        assert!(
            place(&status).ends_with("of 1 of 2 sources only written (fsync_mode 0)"),
            "{}",
            place(&status)
        );
        status.sources[1].fsync_mode = Some(0);
        assert!(!place(&status).contains("stable storage"), "{}", place(&status));
    }

    #[test]
    fn a_daemon_that_is_gone_is_told_with_the_time_since() {
        let since = Instant::now();
        let silence = Silence { since, why: "no daemon answers at 127.0.0.1:9306\u{1b}[2J".to_owned() };
        let at = since + Duration::from_secs(75);
        let (word, text) = verdict(Some(&daemon(vec![well("a")])), Some(&silence), at);
        assert_eq!(word, Verdict::Gone);
        assert!(text.starts_with("for 1 min 15 s: no daemon answers at 127.0.0.1:9306 [2J. What"), "{text}");
        assert_eq!(verdict(None, None, at).0, Verdict::Asking);
    }
}
