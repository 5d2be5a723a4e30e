//! Whether the successor's transactions are those of the history, by what they do: a server that lost the end of its log gives the
//! same GTIDs to others, and its replicas have these.
//!
//! Before anything is fenced, the copy of the node at which this runs is compared, the newest transactions of each server. Behind the
//! fence only what has come since is, as the node serves it whose history was agreed on.

use super::group::Group;
use super::no_promotion::NoPromotion;
use super::successor::Successor;
use binlog::purge::lock::PurgeLock;
use binlog::storage::posix::PosixStorage;
use binlog::timeline::held::HeldGtids;
use codec::gtid::{GtidState, MariadbGtid, MariadbGtidState};
use config::HostPort;
use repair::rescue::{Compared, Comparison, Scope, Side, between};
use source::identify::SourceIdentity;
use std::time::Duration;
use wire::{ConnectOptions, Connection};

/// Longest time for a node to be reached.
const NODE_MAX: Duration = Duration::from_secs(3);

/// What has been compared so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Contents {
    /// Of these it is known that the successor has what the nodes hold.
    known: GtidState,
    /// How many were the same.
    pub(super) same: u64,
}

impl Contents {
    /// Compares what the copy of this node and the successor both have.
    pub(super) fn of_this_node(
        group: &Group,
        to: &ConnectOptions,
        successor: &Successor,
    ) -> Result<Contents, NoPromotion> {
        let folder = group.upstream.data_dir.join(&group.upstream.config.name);
        let unreadable = |error: &dyn std::fmt::Display| NoPromotion::NotCompared(error.to_string());
        let identity = &successor.identity;
        let held = HeldGtids::read(&PosixStorage, &folder, identity.kind);
        let Some(held) = held.map_err(|error| unreadable(&error))? else { return Ok(Contents::default()) };
        let _files_stay = PurgeLock::take(&PosixStorage, &folder).map_err(|error| unreadable(&error))?;
        let comparison = Comparison::new(to, identity);
        let compared =
            comparison.what_is_there((&PosixStorage, folder.as_path()), &held, Scope::Sample, |_| {});
        let (_, compared) = compared.map_err(|error| unreadable(&error))?;
        refuse_differences(successor, &compared)?;
        Ok(Contents { known: both(&held.all(), identity), same: compared.same })
    }

    /// Compares the rest of what was agreed on, as the node at `address` serves it. `keeps`: that node holds what a source lost, which
    /// it does not serve.
    pub(super) fn of_agreed(
        &self,
        group: &Group,
        to: &ConnectOptions,
        successor: &Successor,
        (address, keeps): (&HostPort, bool),
        agreed: &GtidState,
    ) -> Result<u64, NoPromotion> {
        if self.known.contains_state(agreed) {
            return Ok(self.same);
        }
        let unreadable =
            |error: &dyn std::fmt::Display| NoPromotion::NotCompared(format!("{address}: {error}"));
        if keeps {
            let why = "it alone holds what a source lost, in files that it does not serve: run the same promote at that node";
            return Err(unreadable(&why));
        }
        let options = group.upstream.options_of(address, NODE_MAX);
        let asked = Connection::connect(&options).and_then(|mut node| SourceIdentity::ask(&mut node));
        let node = asked.map_err(|error| unreadable(&error))?;
        let served = Side { options: &options, identity: &node };
        let server = Side { options: to, identity: &successor.identity };
        let compared = between(served, server, agreed, &self.known).map_err(|error| unreadable(&error))?;
        refuse_differences(successor, &compared)?;
        Ok(self.same + compared.same)
    }
}

fn refuse_differences(successor: &Successor, compared: &Compared) -> Result<(), NoPromotion> {
    let passed_over = compared.passed_over();
    if compared.differing() == 0 && passed_over.is_empty() {
        return Ok(());
    }
    let mut lines: Vec<String> =
        compared.different.iter().map(|different| format!("\n{different}")).collect();
    if compared.more_different > 0 {
        lines.push(format!("\n… and {} more", compared.more_different));
    }
    if !passed_over.is_empty() {
        lines.push(format!("\n{passed_over}"));
    }
    Err(NoPromotion::Different { host: successor.host.clone(), differences: lines.concat() })
}

/// What is held and executed by a server too.
fn both(held: &GtidState, server: &SourceIdentity) -> GtidState {
    match (held, &server.executed) {
        (GtidState::Mysql(held), GtidState::Mysql(executed)) => GtidState::Mysql(held.intersect(executed)),
        (GtidState::Mariadb(held), GtidState::Mariadb(executed)) => {
            let mut both = MariadbGtidState::new();
            for id in held.list() {
                let is_same =
                    |other: &MariadbGtid| (other.domain, other.server_id) == (id.domain, id.server_id);
                if let Some(theirs) = executed.list().find(is_same) {
                    both.insert(MariadbGtid { sequence: id.sequence.min(theirs.sequence), ..id });
                }
            }
            GtidState::Mariadb(both)
        }
        _ => GtidState::empty(server.kind),
    }
}
