//! The object store. The source is as safe as before, and the past is not: what the disk here has let go of may be nowhere else.

use super::told::{Whose, problem, quoted};
use crate::archive::ArchiveStatus;
use crate::archive::drill::DrillResult;
use crate::events::Level::{Critical, Notice, Warning};
use crate::judge::verdict::{Topic, Worry};
use crate::past::LastError;
use crate::units;
use crate::units::time::human_time;
use jiff::Timestamp;

/// An archive that is further behind is not kept up.
const BEHIND_SECONDS_MAX: u64 = 900;
/// A verification that is late for longer, in seconds, does not come to its end.
const VERIFY_LATE_SECONDS_MAX: i64 = 3 * 86_400;

/// The object store.
#[derive(Clone, Debug)]
pub(crate) enum OfArchive<'a> {
    /// The store does not have the last commit that was seen there.
    PutBack(&'a LastError),
    /// Nothing comes into it.
    Fails(&'a LastError),
    /// It is so many seconds behind.
    Behind(u64),
    /// Objects are damaged: how many problems, and the first.
    Damaged { findings: u64, first: String, url: &'a str },
    /// No verification comes to its end.
    Unverified(&'a LastError),
    /// A verification was due then.
    VerifyLate(Timestamp),
    /// What the rule of `[backup]` wants gone stays there.
    NotPruned(&'a LastError),
    /// The last drill did not bring back what it must.
    DrillFailed(&'a DrillResult),
    /// No drill has passed since then.
    DrillOverdue(Timestamp),
    /// Files that are wanted gone stay here.
    FilesStay(&'a LastError),
}

impl<'a> OfArchive<'a> {
    /// All of them.
    pub(crate) fn of(archive: &'a ArchiveStatus, now: Timestamp) -> Vec<OfArchive<'a>> {
        let mut found = Vec::new();
        match (archive.put_back(), &archive.error, archive.behind_seconds) {
            (Some(error), ..) => found.push(OfArchive::PutBack(error)),
            (None, Some(error), _) => found.push(OfArchive::Fails(error)),
            (None, None, Some(behind)) if behind > BEHIND_SECONDS_MAX => {
                found.push(OfArchive::Behind(behind))
            }
            _ => {}
        }
        if archive.findings() > 0 {
            let first = archive.first_finding().unwrap_or_default();
            found.push(OfArchive::Damaged { findings: archive.findings(), first, url: &archive.url });
        }
        if let Some(verify) = &archive.verify {
            found.extend(verify.error.as_ref().map(OfArchive::Unverified));
            let is_late = |due: &Timestamp| now.as_second() - due.as_second() > VERIFY_LATE_SECONDS_MAX;
            found.extend(verify.due.filter(is_late).map(OfArchive::VerifyLate));
        }
        found.extend(archive.prune.iter().filter_map(|prune| prune.error.as_ref()).map(OfArchive::NotPruned));
        found.extend(archive.drill.iter().filter_map(|drill| drill.failed()).map(OfArchive::DrillFailed));
        found
            .extend(archive.drill.iter().filter_map(|drill| drill.overdue(now)).map(OfArchive::DrillOverdue));
        found.extend(archive.kept.as_ref().filter(|_| archive.kept_findings == 0).map(OfArchive::FilesStay));
        found
    }

    pub(super) fn problem(&self, whose: &Whose) -> Worry {
        let made = |kind, level, text: String, advice| problem((kind, Topic::Archive, level), text, advice);
        match self {
            OfArchive::PutBack(error) => made(
                "archive_put_back",
                Critical,
                format!("The archive: {}", error.message),
                "Put the objects back, from versions or another copy of the bucket. Keep this machine: what is newer is here alone.",
            ),
            OfArchive::Fails(error) => made(
                "archive_fails",
                Warning,
                format!("The archive is not kept up: {}", error.message),
                "What it says is to be done; nothing is lost while this machine lives.",
            ),
            OfArchive::Behind(seconds) => made(
                "archive_behind",
                Warning,
                format!("The archive is {} behind.", units::duration(*seconds)),
                "",
            ),
            OfArchive::Damaged { findings, first, url } => Worry {
                command: format!("binlogd verify {} --source {}", quoted(url), whose.name),
                ..made(
                    "archive_damaged",
                    Critical,
                    format!(
                        "The archive is damaged, {} found: {first}",
                        units::counted(*findings, "problem")
                    ),
                    "Put the objects back from another copy or an older version of the bucket. Files that are still here stay.",
                )
            },
            OfArchive::Unverified(error) => made(
                "archive_unverified",
                Notice,
                format!("The archive cannot be verified: {}", error.message),
                "",
            ),
            OfArchive::VerifyLate(due) => made(
                "archive_verify_late",
                Warning,
                format!(
                    "The archive was to be verified at {}, and no run has come to its end.",
                    human_time(*due)
                ),
                "",
            ),
            OfArchive::NotPruned(error) => made(
                "archive_not_pruned",
                Notice,
                format!("Old backups stay in the archive against keep in [backup]: {}", error.message),
                "",
            ),
            OfArchive::DrillFailed(result) => made(
                "drill_failed",
                Warning,
                format!("The drill of {} failed: {}", human_time(result.started), result.fault),
                "Until one passes nobody knows whether these backups lead back.",
            ),
            OfArchive::DrillOverdue(since) => made(
                "drill_overdue",
                Warning,
                format!("No drill has passed since {}, and one is wanted each day.", human_time(*since)),
                "",
            ),
            OfArchive::FilesStay(kept) => {
                made("files_stay", Notice, format!("Old files stay here: {}", kept.message), "")
            }
        }
    }
}
