//! What has happened and is not made good.

use super::told::{cut, problem};
use crate::events::Level::{Critical, Notice, Warning};
use crate::judge::verdict::{Topic, Worry};
use crate::past::LastError;
use crate::snapshot::SourceStatus;
use crate::units;

/// What has happened and is not made good.
#[derive(Clone, Debug)]
pub(crate) enum OfPast<'a> {
    /// A search index cannot be made of some files.
    SearchIndexFails(String),
    /// The source tells clients of so many commits that nobody acknowledged.
    CommitsUntold(u64),
    /// It did while no daemon ran.
    CommitsUntoldWhileAway,
    /// So many transactions came for which the source asks for no acknowledgement.
    Unasked(u64),
    /// So many transactions were never copied, by GTID where there are GTIDs.
    Gap { transactions: u64, set: &'a str },
    /// Another replica has our `server_id`.
    ServerIdRival(&'a str),
    /// Nobody can tell which host of the list is the source.
    HostsInDoubt(&'a str),
    /// Another binlogd of the source cannot be used.
    PeerUnusable { peer: &'a str, error: &'a LastError },
}

impl<'a> OfPast<'a> {
    /// All of them.
    pub(crate) fn of(source: &'a SourceStatus) -> Vec<OfPast<'a>> {
        let trouble = source.search_trouble().filter(|_| source.search_index_failed > Some(0));
        let mut found = Vec::from_iter(trouble.map(OfPast::SearchIndexFails));
        let told = &source.unacknowledged_commits;
        if told.since.is_some() && told.until.is_none() && told.commits > 0 {
            found.push(OfPast::CommitsUntold(told.commits));
        } else if told.while_away.is_some_and(|commits| commits > 0) {
            found.push(OfPast::CommitsUntoldWhileAway);
        }
        let unasked = &source.unasked_transactions;
        if unasked.since.is_some() && unasked.until.is_none() && !source.semi_sync.active {
            found.push(OfPast::Unasked(unasked.transactions));
        }
        if !source.gaps.is_empty() {
            found.push(OfPast::Gap { transactions: source.missing_transactions, set: &source.missing });
        }
        found.extend(source.server_id_rival.as_deref().map(OfPast::ServerIdRival));
        found.extend(source.hosts_in_doubt.as_deref().map(OfPast::HostsInDoubt));
        for peer in &source.peers {
            found.extend(peer.error.as_ref().map(|error| OfPast::PeerUnusable { peer: &peer.peer, error }));
        }
        found
    }

    pub(super) fn problem(&self) -> Worry {
        match self {
            OfPast::SearchIndexFails(trouble) => {
                problem(("search_index_fails", Topic::Search, Warning), format!("Searches: {trouble}"), "")
            }
            OfPast::CommitsUntold(commits) => problem(
                ("commits_untold", Topic::SemiSync, Critical),
                format!(
                    "The source tells clients of commits that nobody acknowledged: {}",
                    units::count(*commits)
                ),
                "Look at rpl_semi_sync_source_timeout (MariaDB: rpl_semi_sync_master_timeout) at the source: commits wait \
                 no longer than that.",
            ),
            OfPast::CommitsUntoldWhileAway => problem(
                ("commits_untold_while_away", Topic::SemiSync, Warning),
                "While binlogd was away the source told clients of commits that nobody acknowledged.",
                "",
            ),
            OfPast::Unasked(transactions) => problem(
                ("unasked", Topic::SemiSync, Notice),
                format!(
                    "The source asks for no acknowledgement of what it sends: {} so far.",
                    units::counted(*transactions, "transaction")
                ),
                "",
            ),
            OfPast::Gap { transactions, set } => {
                let text = match transactions {
                    0 => "The copy has a gap.".to_owned(),
                    _ => format!("The copy has a gap: these were never copied: {}", cut(set)),
                };
                let advice = "Nothing can be replayed over a gap: take a new backup.";
                problem(("gap", Topic::Gap, Warning), text, advice)
            }
            OfPast::ServerIdRival(rival) => problem(
                ("server_id_rival", Topic::ServerId, Warning),
                format!("Another replica has this server_id: {rival}"),
                "Give each its own server_id.",
            ),
            OfPast::HostsInDoubt(doubt) => problem(
                ("hosts_in_doubt", Topic::Hosts, Warning),
                format!("Which host is the source? {doubt}"),
                "",
            ),
            OfPast::PeerUnusable { peer, error } => problem(
                ("peer_unusable", Topic::Peers, Warning),
                format!("The peer {peer} cannot be used: {}", error.message),
                "",
            ),
        }
    }
}
