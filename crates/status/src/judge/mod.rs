//! The one judgement: what the values of the status mean to an operator. Made once, in the daemon, and shown by every surface: the JSON,
//! the page, `status`, `top`, `health`, the metrics.

pub(crate) mod reason;
pub(crate) mod verdict;

use super::events::Level;
use super::snapshot::{DaemonStatus, SourceStatus};
use super::units;
use crate::judge::reason::{OfArchive, OfCopy, OfDaemon, OfPast, OfSession, OfState, Reason, Whose};
use crate::judge::verdict::Verdict;
use jiff::Timestamp;
use std::path::Path;

impl Verdict {
    /// Of a source, whose copy is below `data_dir`.
    pub fn of_source(source: &SourceStatus, data_dir: &Path, now: Timestamp) -> Verdict {
        let mut reasons = Vec::from_iter(OfState::of(source).map(Reason::State));
        reasons.extend(OfCopy::of(source, now).into_iter().map(Reason::Copy));
        if source.is_receiving() {
            reasons.extend(OfSession::of(source, now).into_iter().map(Reason::Session));
        }
        reasons.extend(OfPast::of(source).into_iter().map(Reason::Past));
        let archived = source.archive.iter().flat_map(|archive| OfArchive::of(archive, now));
        reasons.extend(archived.map(Reason::Archive));
        let verdict = Verdict::because(headline(&reasons), &reasons, &Whose::new(data_dir, &source.name));
        Verdict { protected: verdict.protected && source.fsync_mode == Some(1), ..verdict }
    }

    fn because(headline: String, reasons: &[Reason<'_>], whose: &Whose) -> Verdict {
        let problems = reasons.iter().map(|reason| reason.problem(whose)).collect();
        Verdict {
            healthy: Some(!reasons.iter().any(Reason::is_unhealthy)),
            protected: !reasons.iter().any(Reason::is_unprotected),
            ..Verdict::of(headline, problems)
        }
    }

    /// Of all: the sources' own judgements must stand already.
    pub fn of_daemon(status: &DaemonStatus, now: Timestamp) -> Verdict {
        let reasons: Vec<_> = OfDaemon::of(status, now).into_iter().map(Reason::Daemon).collect();
        let own =
            Verdict::because(of_all(&status.sources), &reasons, &Whose::new(Path::new(&status.data_dir), ""));
        let sources = || status.sources.iter().map(|source| &source.verdict);
        let is_healthy = status.running && sources().all(|verdict| verdict.healthy == Some(true));
        Verdict {
            level: sources().map(|verdict| verdict.level).fold(own.level, Level::max),
            healthy: own.healthy.map(|healthy| healthy && is_healthy),
            protected: !status.sources.is_empty() && sources().all(|verdict| verdict.protected),
            ..own
        }
    }
}

/// What it means for what was acknowledged, and for what is committed now.
fn headline(reasons: &[Reason<'_>]) -> String {
    let of_copy = reasons.iter().find_map(|reason| match reason {
        Reason::Copy(reason) => reason.headline(),
        _ => None,
    });
    let of_state = || {
        reasons.iter().find_map(|reason| match reason {
            Reason::State(reason) => Some(reason.headline()),
            _ => None,
        })
    };
    let is_told = |reason: &Reason<'_>| matches!(reason, Reason::Past(OfPast::CommitsUntold(_)));
    let waits = |reason: &Reason<'_>| {
        !matches!(reason, Reason::Session(OfSession::SemiSyncOff(_) | OfSession::SemiSyncUnwanted(_)))
    };
    let untold = || {
        let text = "Clients are told of commits that nobody acknowledged: a crash of the source now may lose its last transactions.";
        (reasons.iter().any(is_told) && reasons.iter().all(waits)).then_some(text)
    };
    let of_session = || {
        reasons.iter().find_map(|reason| match reason {
            Reason::Session(reason) => reason.headline(),
            _ => None,
        })
    };
    let protected =
        "Protected: every acknowledged transaction is on stable storage here, and commits wait for that.";
    of_copy.or_else(of_state).or_else(untold).or_else(of_session).unwrap_or(protected).to_owned()
}

/// The headline of many.
fn of_all(sources: &[SourceStatus]) -> String {
    let at = |level| sources.iter().filter(|source| source.verdict.level == level).count();
    let (all, critical, warning) = (sources.len(), at(Level::Critical), at(Level::Warning));
    let protected = sources.iter().filter(|source| source.verdict.protected).count();
    let are = if protected == 1 { "1 is".to_owned() } else { format!("{protected} are") };
    let counted = |count: usize| units::counted(count as u64, "source");
    match (all, critical, warning) {
        (0, ..) => "Nothing is copied.".to_owned(),
        (1, ..) => sources[0].verdict.headline.clone(),
        (_, 0, 0) if protected == all => {
            format!(
                "All {all} sources are protected: every acknowledged transaction is on stable storage here."
            )
        }
        (_, 0, 0) => {
            let received = sources.iter().filter(|source| source.is_receiving()).count();
            let received = if received == all { "All".to_owned() } else { format!("{received} of") };
            format!("{received} {all} sources are received; the commits of {protected} wait for this copy.")
        }
        (_, 0, _) => {
            format!("{} of {all} should be looked at soon; {are} protected.", counted(warning))
        }
        _ => {
            let verb = if critical == 1 { "needs" } else { "need" };
            format!("{} of {all} {verb} you now; {are} protected.", counted(critical))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::past::Verified;
    use crate::semi_sync::{SemiSyncStatus, UnacknowledgedCommits};
    use crate::serving::{ServeStatus, SlotStatus};
    use crate::state::StopCause;
    use crate::state::name::StateName;

    fn receiving() -> SourceStatus {
        SourceStatus {
            name: "orders".to_owned(),
            state: StateName::Receiving,
            semi_sync: SemiSyncStatus { active: true, reason: "negotiated".to_owned() },
            fsync_mode: Some(1),
            source_lacks: Some(String::new()),
            ..SourceStatus::default()
        }
    }

    fn judged(source: SourceStatus) -> SourceStatus {
        SourceStatus {
            verdict: Verdict::of_source(&source, Path::new("/srv/b"), Timestamp::UNIX_EPOCH),
            ..source
        }
    }

    fn all(sources: Vec<SourceStatus>) -> Verdict {
        let disk = Some(Default::default());
        let status = DaemonStatus { sources, disk, running: true, ..DaemonStatus::default() };
        Verdict::of_daemon(&status, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_source_that_is_as_it_should_be_has_no_problem() {
        let verdict = judged(receiving()).verdict;
        assert_eq!((verdict.level, verdict.problems.len()), (Level::Ok, 0));
        assert!(verdict.headline.starts_with("Protected") && verdict.protected);
        let both = all(vec![judged(receiving()), judged(receiving())]);
        assert!(both.headline.starts_with("All 2 sources are protected"));
        assert!(both.protected && both.healthy == Some(true));
    }

    #[test]
    fn every_state_but_receiving_is_a_problem_and_is_told() {
        for state in StateName::ALL.into_iter().filter(|state| *state != StateName::Receiving) {
            let verdict = judged(SourceStatus { state: state.clone(), ..receiving() }).verdict;
            assert!(verdict.level > Level::Ok && verdict.healthy == Some(false), "{state}: {verdict:?}");
            assert!(!verdict.headline.starts_with("Protected") && !verdict.protected, "{state}: {verdict:?}");
        }
    }

    #[test]
    fn what_the_source_lacks_comes_with_the_command_that_hands_it_back() {
        let lacks = Some("3e11fa47-71ca-11e1-9e33-c80aa9429562:4-9".to_owned());
        let host = Some("db1:3306".to_owned());
        let source = SourceStatus { name: "it's".to_owned(), source_lacks: lacks, host, ..receiving() };
        let problem = judged(source).verdict.problems.remove(0);
        assert!(problem.text.starts_with("The source lacks 6 transactions"), "{}", problem.text);
        assert_eq!(
            problem.command,
            r"binlogd rescue /srv/b --source 'it'\''s' --to mysql://root@db1:3306 --dry-run"
        );
    }

    #[test]
    fn nothing_that_needs_somebody_at_once_is_called_protected() {
        let told = UnacknowledgedCommits {
            since: Some(Timestamp::UNIX_EPOCH),
            commits: 36,
            ..UnacknowledgedCommits::default()
        };
        let twice = "3e11fa47-71ca-11e1-9e33-c80aa9429562:4".to_owned();
        let damaged = Some(Verified { at: Timestamp::UNIX_EPOCH, findings: 2 });
        for source in [
            SourceStatus { unacknowledged_commits: told, ..receiving() },
            SourceStatus { gtids_given_twice: 1, given_twice: twice, ..receiving() },
            SourceStatus { verified: damaged, ..receiving() },
        ] {
            let verdict = judged(source.clone()).verdict;
            assert_eq!((verdict.level, verdict.protected), (Level::Critical, false), "{verdict:?}");
            assert!(!verdict.headline.starts_with("Protected"), "{verdict:?}");
            let both = all(vec![judged(source), judged(receiving())]);
            assert_eq!(both.headline, "1 source of 2 needs you now; 1 is protected.");
        }
    }

    /// A receiver ends for a moment when it takes up another configuration.
    #[test]
    fn who_ends_with_the_daemon_or_is_reloaded_alarms_nobody() {
        let stopped =
            |by| judged(SourceStatus { state: StateName::Stopped, stopped_by: Some(by), ..receiving() });
        assert_eq!(stopped(StopCause::End).verdict.level, Level::Notice);
        assert_eq!(stopped(StopCause::Fault).verdict.level, Level::Critical);
    }

    #[test]
    fn the_worst_comes_first_and_counts_for_all() {
        let gone = || SourceStatus { state: StateName::Stopped, ..receiving() };
        let twice = SourceStatus { gtids_given_twice: 1, ..receiving() };
        let verdict = all(vec![judged(receiving()), judged(gone()), judged(receiving())]);
        assert_eq!((verdict.level, verdict.healthy), (Level::Critical, Some(false)));
        assert_eq!(verdict.headline, "1 source of 3 needs you now; 2 are protected.");
        let verdict = all(vec![judged(twice), judged(receiving())]);
        assert_eq!(verdict.headline, "1 source of 2 needs you now; 1 is protected.");
        let slot = SlotStatus { name: "w".to_owned(), away_seconds: 70, ..SlotStatus::default() };
        let serve = Some(ServeStatus { slots: vec![slot], ..ServeStatus::default() });
        let status = DaemonStatus { serve, sources: vec![judged(receiving())], ..DaemonStatus::default() };
        let verdict = Verdict::of_daemon(&status, Timestamp::UNIX_EPOCH);
        let is_gone = |problem: &super::super::Worry| problem.text.contains("gone since 1 min 10 s");
        assert!(verdict.problems.iter().any(is_gone), "{verdict:?}");
    }

    #[test]
    fn an_older_daemon_is_judged_here_and_that_is_told() {
        let json = r#"{"binlogd_version":"0.0.9","pid":1,"uptime_seconds":1,"data_dir":"/d","running":true,
            "disk":{"free_bytes":9,"size_bytes":10},
            "sources":[{"name":"a","state":"dreaming"},{"name":"b","state":"receiving","semi_sync":{"active":true,"reason":"x"}}]}"#;
        let status: DaemonStatus = serde_json::from_str(json).unwrap();
        let status = status.understood(Timestamp::UNIX_EPOCH);
        let levels: Vec<Level> = status.sources.iter().map(|source| source.verdict.level).collect();
        assert_eq!(levels, [Level::Critical, Level::Ok]);
        assert!(!status.is_healthy() && status.sources[0].state.word() == "dreaming");
        assert!(status.verdict.problems.iter().any(|problem| problem.kind == "older_daemon"));
        assert_eq!(status.clone().understood(Timestamp::UNIX_EPOCH), status, "what is judged stays");
    }
}
