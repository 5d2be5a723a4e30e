//! Whether every acknowledged transaction is safe, and where: the sentence at the top.

use super::board::Silence;
use super::palette::Palette;
use crate::cli::status::rank::{Rank, rank};
use crate::cli::style::clean;
use crate::cli::units;
use crate::config::FsyncMode;
use crate::status::{DaemonStatus, SourceStatus};
use ratatui::style::{Modifier, Style};
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

fn of(status: &DaemonStatus) -> (Verdict, String) {
    let sources = &status.sources;
    let all = sources.len();
    let count = |is: &dyn Fn(&SourceStatus) -> bool| sources.iter().filter(|source| is(source)).count();
    let lost = count(&has_lost);
    let away = count(&|source| matches!(rank(source), Rank::Stopped | Rank::Away));
    let beginning = count(&|source| rank(source) == Rank::Beginning);
    let noted = count(&|source| rank(source) == Rank::Noted && !has_lost(source));
    let alone = count(&|source| source.is_receiving() && !source.semi_sync.active);
    if all == 0 {
        return (Verdict::Act, "no source is configured: nothing is copied".to_owned());
    }
    let mut said = Vec::new();
    if lost > 0 {
        said.push(format!("{} transactions that only this copy holds", which(lost, all, ["lacks", "lack"])));
    }
    if away > 0 {
        let them = if away == 1 { "it" } else { "them" };
        let who = which(away, all, ["is", "are"]);
        said.push(format!("{who} not received: nothing of {them} is acknowledged"));
    }
    let verdict = match said.is_empty() {
        false => Verdict::Act,
        true if beginning + alone + noted > 0 => Verdict::Look,
        true => Verdict::Safe,
    };
    if beginning > 0 {
        said.push(format!("{} about to be received", which(beginning, all, ["is", "are"])));
    }
    if alone > 0 {
        said.push(format!("commits of {} do not wait for this copy (semi-sync is off)", of_all(alone, all)));
    }
    if noted > 0 {
        said.push(format!("{} a look", which(noted, all, ["needs", "need"])));
    }
    if said.is_empty() {
        let their = if all == 1 { "its" } else { "their" };
        let who = which(all, all, ["is", "are"]);
        said.push(format!("{who} received, and {their} commits wait for this copy"));
    }
    (verdict, said.join("; "))
}

/// Whether the copy holds what the source gave away.
fn has_lost(source: &SourceStatus) -> bool {
    source.source_lacks.as_ref().is_some_and(|lacks| !lacks.is_empty()) || source.gtids_given_twice > 0
}

fn of_all(count: usize, all: usize) -> String {
    match (count, all) {
        (_, 1) => "the source".to_owned(),
        (2, 2) => "both sources".to_owned(),
        _ if count == all => format!("all {all} sources"),
        _ => format!("{count} of {all} sources"),
    }
}

/// So many of them, and the verb for one or for several.
fn which(count: usize, all: usize, verb: [&str; 2]) -> String {
    format!("{} {}", of_all(count, all), verb[usize::from(count != 1)])
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

    fn told(change: impl FnOnce(&mut Vec<SourceStatus>)) -> (Verdict, String) {
        let mut sources = vec![well("a"), well("b"), well("c")];
        change(&mut sources);
        verdict(Some(&daemon(sources)), None, Instant::now())
    }

    #[test]
    fn the_worst_decides_and_everything_is_said() {
        let text = |said: (Verdict, String), word, what: &str| {
            assert_eq!(said.0, word, "{}", said.1);
            assert_eq!(said.1, what);
        };
        text(told(|_| {}), Verdict::Safe, "all 3 sources are received, and their commits wait for this copy");
        text(
            told(|sources| sources[1].semi_sync.active = false),
            Verdict::Look,
            "commits of 1 of 3 sources do not wait for this copy (semi-sync is off)",
        );
        text(
            told(|sources| sources[0].state = "recovering".to_owned()),
            Verdict::Look,
            "1 of 3 sources is about to be received",
        );
        text(
            told(|sources| {
                sources[0].state = "backing off".to_owned();
                sources[1].source_lacks = Some("u:1".to_owned());
                sources[2].semi_sync.active = false;
            }),
            Verdict::Act,
            "1 of 3 sources lacks transactions that only this copy holds; 1 of 3 sources is not received: nothing of it is \
             acknowledged; commits of 1 of 3 sources do not wait for this copy (semi-sync is off)",
        );
        text(
            told(|sources| sources[2].gtids_given_twice = 1),
            Verdict::Act,
            "1 of 3 sources lacks transactions that only this copy holds",
        );
        text(
            told(|sources| {
                sources.truncate(1);
                sources[0].state = "stopped".to_owned();
            }),
            Verdict::Act,
            "the source is not received: nothing of it is acknowledged",
        );
        text(told(Vec::clear), Verdict::Act, "no source is configured: nothing is copied");
    }

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
