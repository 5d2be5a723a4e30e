//! What the copy and others hold of it, and whether it is sound.

use super::told::{Whose, cut, problem};
use crate::events::Level::{Critical, Warning};
use crate::judge::verdict::{Topic, Worry};
use crate::past::count;
use crate::snapshot::SourceStatus;
use crate::units;
use codec::gtid::{GtidSet, GtidState};
use jiff::Timestamp;

/// A copy that nobody has verified for longer needs a look.
const NOT_VERIFIED_DAYS_MAX: i64 = 15;

/// What the copy and others hold, and whether it is sound. A `set` is a GTID set in the source's notation.
#[derive(Clone, Debug)]
pub(crate) enum OfCopy<'a> {
    /// A crash or a failover took transactions from the source.
    SourceLacks { set: &'a str, host: Option<&'a str> },
    /// The source gave so many GTIDs to other transactions.
    GivenTwice { gtids: u64, set: &'a str },
    /// Another binlogd holds what this copy lacks.
    OnlyAtPeer { peer: &'a str, set: &'a str },
    /// `binlogd verify` found so many problems.
    Damaged(u64),
    /// Nobody has run it for so many days.
    NotVerified(i64),
}

impl<'a> OfCopy<'a> {
    /// All of them.
    pub(crate) fn of(source: &'a SourceStatus, now: Timestamp) -> Vec<OfCopy<'a>> {
        let mut found = Vec::new();
        if let Some(set) = source.source_lacks.as_deref().filter(|set| !set.is_empty()) {
            found.push(OfCopy::SourceLacks { set, host: source.host.as_deref() });
        }
        if source.gtids_given_twice > 0 {
            found.push(OfCopy::GivenTwice { gtids: source.gtids_given_twice, set: &source.given_twice });
        }
        let alone = source.peers.iter().filter(|peer| !peer.only_there.is_empty());
        found.extend(alone.map(|peer| OfCopy::OnlyAtPeer { peer: &peer.peer, set: &peer.only_there }));
        match source.verified {
            Some(verified) if verified.findings > 0 => found.push(OfCopy::Damaged(verified.findings)),
            _ => found.extend(not_verified_days(source, now).map(OfCopy::NotVerified)),
        }
        found
    }

    /// What that means, whatever the receiver does; the first counts.
    pub(crate) fn headline(&self) -> Option<&'static str> {
        Some(match self {
            OfCopy::SourceLacks { .. } => {
                "The source lost transactions that were stored here. They are safe here until they are handed back."
            }
            OfCopy::Damaged(_) => "The copy is damaged: not all that was acknowledged is sure to be here.",
            OfCopy::GivenTwice { .. } => {
                "The source gave GTIDs twice: both transactions of each are safe here until somebody has decided."
            }
            _ => return None,
        })
    }

    pub(super) fn problem(&self, whose: &Whose) -> Worry {
        let Whose { dir, name } = whose;
        let with = |command: String, problem: Worry| Worry { command, ..problem };
        match self {
            OfCopy::SourceLacks { set, host } => with(
                format!(
                    "binlogd rescue {dir} --source {name} --to mysql://root@{} --dry-run",
                    host.unwrap_or("HOST:3306")
                ),
                problem(
                    ("source_lacks", Topic::Fork, Critical),
                    format!("The source lacks {} that this copy holds: {}", transactions(set), cut(set)),
                    "Look first (--dry-run sends nothing), then hand them back without --dry-run.",
                ),
            ),
            OfCopy::GivenTwice { gtids, set } => with(
                format!("binlogd forks {dir} --source {name}"),
                problem(
                    ("given_twice", Topic::Fork, Critical),
                    format!(
                        "The source gave {} twice: the copy holds other transactions under them: {}",
                        units::counted(*gtids, "GTID"),
                        cut(set)
                    ),
                    "Look at both transactions and decide which count.",
                ),
            ),
            OfCopy::OnlyAtPeer { peer, set } => problem(
                ("only_at_peer", Topic::Peers, Critical),
                format!("The peer {peer} alone holds transactions: {}", cut(set)),
                "Run binlogd rescue on the peer's machine.",
            ),
            OfCopy::Damaged(findings) => with(
                format!("binlogd verify {dir} --source {name}"),
                problem(
                    ("damaged", Topic::Copy, Critical),
                    format!(
                        "binlogd verify found {} in the copy when it last ran.",
                        units::counted(*findings, "problem")
                    ),
                    "Run it again to see which files. Change nothing in them by hand; take a new backup of the source.",
                ),
            ),
            OfCopy::NotVerified(days) => with(
                format!("binlogd verify {dir} --source {name}"),
                problem(
                    ("not_verified", Topic::Copy, Warning),
                    format!("Nobody has verified the copy for {days} days."),
                    "binlogd verify reads every file, beside the daemon that runs.",
                ),
            ),
        }
    }
}

/// For how many days nobody has verified the copy, where that is too long. A clock that was set back says nothing.
fn not_verified_days(source: &SourceStatus, now: Timestamp) -> Option<i64> {
    let began = || source.timelines.first()?.began_at.parse().ok();
    let since: Timestamp = source.verified.map(|verified| verified.at).or_else(began)?;
    let days = (now.as_second() - since.as_second()) / 86_400;
    (days > NOT_VERIFIED_DAYS_MAX).then_some(days)
}

/// How many a set names, in words. MariaDB's numbers have holes, so that there only servers can be counted.
fn transactions(set: &str) -> String {
    match set.parse::<GtidSet>() {
        Ok(set) => units::counted(count(&GtidState::Mysql(set)), "transaction"),
        Err(_) => "transactions".to_owned(),
    }
}
