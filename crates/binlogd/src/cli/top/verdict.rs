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
    use crate::cli::status;
    use crate::cli::status::rank::color;
    use crate::cli::style::paint;
    use ::status::{
        AckReplicasStatus, ArchiveStatus, LastError, PeerStatus, RecordedGap, SemiSyncLook, ServeStatus,
        SlotStatus, SourceStatus, Verified,
    };
    use jiff::Timestamp;
    use std::time::Duration;

    /// A state by its name, and how bad the status says that it is.
    type State = (&'static str, Level, fn(&mut DaemonStatus));

    const LATER: LastError = LastError { at: Timestamp::UNIX_EPOCH, message: String::new() };

    fn quorum(look: &mut SourceStatus) {
        look.semi_sync_source = Some(SemiSyncLook {
            enabled: true,
            on: true,
            clients: 1,
            wait_for_replica_count: Some(2),
            ..SemiSyncLook::default()
        });
    }

    fn gaps() -> Vec<RecordedGap> {
        let [timeline, began_at, first_file, missing] = [""; 4].map(str::to_owned);
        vec![RecordedGap { timeline, began_at, after: None, first_file, missing }]
    }

    fn archived(change: fn(&mut ArchiveStatus)) -> Option<ArchiveStatus> {
        let mut archive = ArchiveStatus::default();
        change(&mut archive);
        Some(archive)
    }

    fn slot(released: Option<&str>) -> Option<ServeStatus> {
        let slot = SlotStatus { released: released.map(str::to_owned), ..SlotStatus::default() };
        Some(ServeStatus { slots: vec![slot], ..ServeStatus::default() })
    }

    const STATES: [State; 34] = [
        ("as it should be", Level::Ok, |_| {}),
        ("behind", Level::Warning, |all| all.sources[0].seconds_behind = Some(7_200)),
        ("a gap", Level::Warning, |all| all.sources[0].gaps = gaps()),
        ("the source lacks something", Level::Critical, |all| {
            all.sources[0].source_lacks = Some("u:1".into())
        }),
        ("GTIDs given twice", Level::Critical, |all| all.sources[0].gtids_given_twice = 1),
        ("a peer alone holds something", Level::Critical, |all| {
            all.sources[0].peers = vec![PeerStatus { only_there: "u:1".into(), ..PeerStatus::default() }];
        }),
        ("a peer cannot be used", Level::Warning, |all| {
            all.sources[0].peers = vec![PeerStatus { error: Some(LATER), ..PeerStatus::default() }];
        }),
        ("no semi-sync", Level::Critical, |all| all.sources[0].semi_sync.active = false),
        ("no semi-sync, as configured", Level::Notice, |all| {
            all.sources[0].semi_sync.active = false;
            all.sources[0].semi_sync.reason = "switched off here: semi_sync = false".into();
        }),
        ("too few replicas at the source", Level::Critical, |all| quorum(&mut all.sources[0])),
        ("commits untold", Level::Critical, |all| {
            all.sources[0].unacknowledged_commits.commits = 3;
            all.sources[0].unacknowledged_commits.since = Some(Timestamp::UNIX_EPOCH);
        }),
        ("commits untold while away", Level::Warning, |all| {
            all.sources[0].unacknowledged_commits.while_away = Some(3);
        }),
        ("alone", Level::Warning, |all| {
            all.sources[0].ack_replicas = Some(AckReplicasStatus { alone: true, ..Default::default() });
        }),
        ("not synced, as configured", Level::Notice, |all| all.sources[0].fsync_mode = Some(0)),
        ("the source cannot be asked", Level::Notice, |all| all.sources[0].look_error = Some(LATER)),
        ("damage", Level::Critical, |all| {
            all.sources[0].verified = Some(Verified { at: Timestamp::UNIX_EPOCH, findings: 1 });
        }),
        ("a rival", Level::Warning, |all| all.sources[0].server_id_rival = Some("another".into())),
        ("no search index", Level::Warning, |all| all.sources[0].search_index_failed = Some(1)),
        ("the archive is late", Level::Warning, |all| {
            all.sources[0].archive = archived(|archive| archive.behind_seconds = Some(3_700));
        }),
        ("the archive fails", Level::Warning, |all| {
            all.sources[0].archive = archived(|archive| archive.error = Some(LATER));
        }),
        ("the archive is damaged", Level::Critical, |all| {
            all.sources[0].archive = archived(|archive| archive.kept_findings = 1);
        }),
        ("the disk is low", Level::Warning, |all| all.disk.as_mut().unwrap().low = true),
        ("the disk lasts a day", Level::Warning, |all| all.disk.as_mut().unwrap().hours_left = Some(20.0)),
        ("the disk lasts for hours", Level::Critical, |all| {
            all.disk.as_mut().unwrap().hours_left = Some(2.0)
        }),
        ("no disk", Level::Warning, |all| all.disk = None),
        ("the disk is full", Level::Critical, |all| all.sources[0].state = "waiting for disk space".into()),
        ("the disk hangs", Level::Critical, |all| all.sources[0].state = "disk does not answer".into()),
        ("stuck", Level::Critical, |all| all.sources[0].state = "stuck".into()),
        ("recovering", Level::Notice, |all| all.sources[0].state = "recovering".into()),
        ("not reached", Level::Critical, |all| {
            all.sources[0].state = "backing off".into();
            all.sources[0].last_error = Some(LATER);
        }),
        ("withheld", Level::Critical, |all| all.sources[0].state = "withholding acknowledgements".into()),
        ("waiting for replicas", Level::Critical, |all| all.sources[0].state = "waiting for replicas".into()),
        ("a reader is gone", Level::Warning, |all| all.serve = slot(None)),
        ("a slot was released", Level::Warning, |all| all.serve = slot(Some("slot_max_bytes"))),
    ];

    /// Wherever a state is shown it is as bad as the status says: here, in `binlogd status` in full and summed up, in each colour.
    #[test]
    fn every_surface_takes_the_verdict_of_the_status() {
        for (name, level, change) in STATES {
            let mut all = daemon((0..6).map(|number| well(&format!("s{number}"))).collect());
            change(&mut all);
            let all = all.judged();
            let source = all.sources[0].verdict.level;
            assert_eq!(
                (all.verdict.level, source.max(all.verdict.level)),
                (level, level),
                "{name}: {:#?}",
                all.verdict
            );
            let (word, text) = verdict(Some(&all), None, Instant::now());
            let expected = match level {
                Level::Ok => Verdict::Safe,
                Level::Notice | Level::Warning => Verdict::Look,
                Level::Critical => Verdict::Act,
            };
            assert_eq!(word, expected, "{name}: {text}");
            let (full, summary) = (status::shown(all.clone(), true), status::shown(all.clone(), false));
            let state = |text: &str| paint(text, color(source), true);
            assert!(full.contains(&state(&all.sources[0].state)), "{name}: {full}");
            assert!(summary.contains(&state(&format!("{:22}", all.sources[0].state))), "{name}: {summary}");
            assert!(summary.contains(&paint(&all.verdict.headline, color(level), true)), "{name}: {summary}");
            let only = DaemonStatus { sources: all.sources[..1].to_vec(), ..all.clone() }.judged();
            for problem in only.sources[0].verdict.problems.iter().chain(&only.verdict.problems) {
                let said = verdict(Some(&only), None, Instant::now()).1;
                assert!(said.contains(&clean(&problem.text)), "{name}: {} is not in {said}", problem.text);
            }
        }
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
