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
use std::io;
use std::path::Path;
use std::time::Duration;
use wire::{ConnectOptions, Connection};

/// So many bytes of the newest files of the successor's log are compared with the copy, which takes a second or two. Commits wait
/// meanwhile where the source is dead. Where servers have parted, that stands at the end of what one of them wrote; what one wrote long
/// ago was compared when it ceased to be the source.
const COMPARED_BYTES: u64 = 256 << 20;

/// Longest wait for others who read the copy, or delete files of it.
const OTHERS_MAX: Duration = Duration::from_secs(30);

/// Pause between two looks whether they have ended.
const OTHERS_LOOK: Duration = Duration::from_millis(50);

/// Longest time for a node to be reached.
const NODE_MAX: Duration = Duration::from_secs(3);

/// What has been compared so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Contents {
    /// Of these it is known that the successor has what the nodes hold.
    known: GtidState,
    /// How many were the same.
    pub(super) same: u64,
    /// What could not be compared, in words that go behind that.
    pub(super) remarks: String,
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
        let _files_stay = files_stay(group, &folder).map_err(|error| unreadable(&error))?;
        let comparison = Comparison::new(to, identity);
        let newest = Scope::Newest(COMPARED_BYTES);
        let compared = comparison.what_is_there((&PosixStorage, folder.as_path()), &held, newest, |_| {});
        let (_, compared) = compared.map_err(|error| unreadable(&error))?;
        refuse_differences(successor, &compared)?;
        let remarks = compared.remarks();
        Ok(Contents { known: both(&held.all(), identity), same: compared.same, remarks })
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

/// Files of the copy stay meanwhile. Other promotes look at it at the same time, as a watcher's for each server, one after the other.
fn files_stay(group: &Group, folder: &Path) -> io::Result<PurgeLock> {
    let clock = &group.upstream.clock;
    let since = clock.now();
    loop {
        match PurgeLock::take(&PosixStorage, folder) {
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock
                    && clock.now().saturating_duration_since(since) < OTHERS_MAX =>
            {
                clock.sleep(OTHERS_LOOK);
            }
            taken => return taken,
        }
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
