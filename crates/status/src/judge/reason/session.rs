//! What can be said while a session lasts.

use super::told::{certificate_level, problem};
use crate::events::Level::{Critical, Notice, Warning};
use crate::judge::verdict::{Topic, Worry};
use crate::past::LastError;
use crate::quorum::QuorumStatus;
use crate::snapshot::SourceStatus;
use crate::units;
use crate::units::time::human_time;
use jiff::Timestamp;

/// A copy that is further behind needs a look.
const BEHIND_SECONDS_MAX: u64 = 60;
/// A source that cannot be asked for longer, in seconds, needs a look.
const NOT_WATCHED_SECONDS_MAX: i64 = 300;

/// What can be said while a session lasts.
#[derive(Clone, Debug)]
pub(crate) enum OfSession<'a> {
    /// Semi-sync is wanted and not in force, and why.
    SemiSyncOff(&'a str),
    /// Semi-sync is not wanted.
    SemiSyncUnwanted(&'a str),
    /// The source wants more replicas than acknowledge, in words.
    CommitsWait(String),
    /// `ack_timeout_action = "go_on"` went on.
    Alone,
    /// Nodes of the quorum do not count.
    Nodes(&'a QuorumStatus),
    /// `fsync_mode = 0`.
    NotSynced,
    /// How far the copy is behind, in seconds.
    Behind(u64),
    /// The source does not let itself be asked, for long or not.
    NotWatched { error: &'a LastError, is_long: bool },
    /// The certificate of the source ends then, in so many seconds.
    Certificate { at: Timestamp, left: i64 },
}

impl<'a> OfSession<'a> {
    /// All of them.
    pub(crate) fn of(source: &'a SourceStatus, now: Timestamp) -> Vec<OfSession<'a>> {
        let mut found = Vec::new();
        let why = source.semi_sync.reason.as_str();
        match (source.semi_sync.active, source.semi_sync_wanted) {
            (true, _) => {}
            (false, Some(false)) => found.push(OfSession::SemiSyncUnwanted(why)),
            (false, _) => found.push(OfSession::SemiSyncOff(why)),
        }
        found.extend(source.waits_for_others().map(OfSession::CommitsWait));
        if source.ack_replicas.as_ref().is_some_and(|replicas| replicas.alone) {
            found.push(OfSession::Alone);
        }
        let nodes = source.quorum.as_ref();
        found.extend(nodes.filter(|quorum| quorum.counting() < quorum.nodes).map(OfSession::Nodes));
        if source.fsync_mode == Some(0) {
            found.push(OfSession::NotSynced);
        }
        found.extend(
            source.seconds_behind.filter(|behind| *behind > BEHIND_SECONDS_MAX).map(OfSession::Behind),
        );
        found.extend(source.look_error.as_ref().map(|error| {
            let is_long = now.as_second() - error.at.as_second() > NOT_WATCHED_SECONDS_MAX;
            OfSession::NotWatched { error, is_long }
        }));
        found.extend(source.tls_certificate_expires.and_then(|at| {
            let left = at.as_second() - now.as_second();
            certificate_level(left).map(|_| OfSession::Certificate { at, left })
        }));
        found
    }

    /// What that means for what is committed now.
    pub(crate) fn headline(&self) -> Option<&'static str> {
        Some(match self {
            OfSession::CommitsWait(_) => {
                "Commits wait for other replicas of the source. What was acknowledged is safe here."
            }
            OfSession::Nodes(quorum) if quorum.is_lost() => {
                "Commits wait: too few nodes of the quorum are there. What was acknowledged is safe."
            }
            OfSession::NotSynced => {
                "Commits wait for this copy, which acknowledges before it syncs: a crash of this machine may lose the last of it."
            }
            OfSession::SemiSyncUnwanted(_) => {
                "Copied without semi-sync, as configured: a crash of the source may lose its last transactions."
            }
            OfSession::SemiSyncOff(_) => {
                "Commits do not wait for this copy: a crash of the source now may lose its last transactions."
            }
            _ => return None,
        })
    }

    pub(super) fn problem(&self) -> Worry {
        match self {
            OfSession::SemiSyncOff(why) => problem(
                ("semi_sync_off", Topic::SemiSync, Critical),
                format!("Semi-sync is not in force: {why}"),
                "",
            ),
            OfSession::SemiSyncUnwanted(why) => problem(
                ("semi_sync_unwanted", Topic::SemiSync, Notice),
                format!("Semi-sync is not in force: {why}"),
                "",
            ),
            OfSession::CommitsWait(why) => problem(
                ("commits_wait", Topic::SemiSync, Critical),
                format!("At the source {why}."),
                "Attach the others, or let the source want fewer: rpl_semi_sync_source_wait_for_replica_count (before MySQL 8.0.26 \
                 rpl_semi_sync_master_wait_for_slave_count).",
            ),
            OfSession::Alone => problem(
                ("alone", Topic::Receivers, Warning),
                "Acknowledged without the receivers further down, because they did not come in time.",
                "Bring the receivers back.",
            ),
            OfSession::Nodes(quorum) if quorum.is_lost() => problem(
                ("quorum_lost", Topic::Quorum, Critical),
                format!(
                    "Commits wait: {} of {} nodes of the quorum count, and {} must. Absent: {}.",
                    quorum.counting(),
                    quorum.nodes,
                    quorum.majority,
                    quorum.absent()
                ),
                "Bring the nodes back.",
            ),
            OfSession::Nodes(quorum) => problem(
                ("node_absent", Topic::Quorum, Warning),
                format!(
                    "{} of {} nodes of the quorum count. Absent: {}.",
                    quorum.counting(),
                    quorum.nodes,
                    quorum.absent()
                ),
                "Bring the node back: until then the quorum bears fewer losses.",
            ),
            OfSession::NotSynced => problem(
                ("not_synced", Topic::Sync, Notice),
                "fsync_mode is 0: acknowledged before it is synced, as configured.",
                "",
            ),
            OfSession::Behind(seconds) => problem(
                ("behind", Topic::Behind, Warning),
                format!("The copy is {} behind.", units::duration(*seconds)),
                "",
            ),
            OfSession::NotWatched { error, is_long } => problem(
                ("not_watched", Topic::Look, if *is_long { Warning } else { Notice }),
                format!("The source cannot be asked for its semi-sync: {}", error.message),
                "",
            ),
            OfSession::Certificate { at, left } => {
                let has = if *left > 0 { "ends" } else { "has ended" };
                problem(
                    ("certificate", Topic::Certificate, certificate_level(*left).unwrap_or_default()),
                    format!("The certificate of the source {has} at {}.", human_time(*at)),
                    "Renew it at the source.",
                )
            }
        }
    }
}
