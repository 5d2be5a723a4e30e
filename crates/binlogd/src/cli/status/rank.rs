//! How bad it is with a source, and why: what is worst is shown first, wherever sources are shown.

use crate::cli::style::{GREEN, RED, YELLOW, clean};
use crate::status::{NOT_RUNNING, SourceState, SourceStatus};
use std::cmp::Reverse;

/// Longest text about one source, in characters: one line stays one on a wide terminal.
const NOTE_LEN_MAX: usize = 160;

/// How bad it is. The worst comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) enum Rank {
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

impl Rank {
    /// The colour of the state.
    pub(in crate::cli) fn color(self) -> u8 {
        match self {
            Rank::Stopped => RED,
            Rank::Away | Rank::Beginning | Rank::Noted => YELLOW,
            Rank::Well => GREEN,
        }
    }
}

/// The worst first; of equals those whose commits do not wait, then the one that is behind most. The order of the configuration stays among the rest.
pub(in crate::cli) fn worst_first(sources: &[SourceStatus]) -> Vec<(Rank, &SourceStatus)> {
    let mut rows: Vec<(Rank, &SourceStatus)> = sources.iter().map(|source| (rank(source), source)).collect();
    rows.sort_by_key(|(rank, source)| (*rank, source.semi_sync.active, Reverse(source.seconds_behind)));
    rows
}

pub(in crate::cli) fn rank(source: &SourceStatus) -> Rank {
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
pub(in crate::cli) fn worries(source: &SourceStatus) -> Vec<String> {
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
    if let Some(verified) = source.verified.filter(|verified| verified.findings > 0) {
        worries.push(format!("binlogd verify found {} problems in the copy", verified.findings));
    }
    if let Some(archive) = source.archive.as_ref().filter(|archive| archive.findings() > 0) {
        worries.push(format!("the archive is damaged: {} problems", archive.findings()));
    }
    if let Some(error) = source.archive.as_ref().and_then(|archive| archive.error.as_ref()) {
        worries.push(format!("the archive is not kept up: {}", error.message));
    }
    if source.search_index_failed.is_some_and(|failed| failed > 0) {
        worries.extend(source.search_trouble());
    }
    worries.extend(source.server_id_rival.clone());
    worries
}

/// Why it is not received, or what is wrong though it is. On one line.
pub(in crate::cli) fn note(source: &SourceStatus) -> String {
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
