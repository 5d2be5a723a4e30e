//! What the values of the status mean to an operator, in one sentence each: whether what was acknowledged is safe, and what to do.
//!
//! Every surface that judges (the web page, the JSON) takes the judgement from here, so that none says another thing.

use super::events::Level;
use super::past::count;
use super::serving::SlotStatus;
use super::snapshot::{DaemonStatus, NOT_RUNNING, SourceStatus};
use super::state::{ENDS, SourceState};
use super::units;
use super::verdict::{Verdict, Worry};
use codec::gtid::{GtidSet, GtidState};
use std::path::Path;

/// A copy that is further behind needs a look.
const BEHIND_SECONDS_MAX: u64 = 60;
/// A reader that is further behind needs a look.
const READER_BEHIND_SECONDS_MAX: u64 = 300;
/// A disk that lasts less long needs somebody soon, and one that lasts less than the second, now.
const DISK_HOURS_MIN: f64 = 24.0;
const DISK_HOURS_CRITICAL: f64 = 4.0;
/// An archive that is further behind is not kept up.
const ARCHIVE_BEHIND_SECONDS_MAX: u64 = 900;

/// What helps against a full disk.
const FULL_DISK: &str = "Make room on the file system of the data folder. Delete no file of a copy by hand: PURGE BINARY LOGS and \
                         [retention] know what may go. Receiving goes on by itself.";

fn problem(level: Level, text: impl Into<String>, advice: &str) -> Worry {
    Worry { level, text: text.into(), advice: advice.to_owned(), command: String::new() }
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%=,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

impl Verdict {
    /// Of a source, whose copy is below `data_dir`.
    pub fn of_source(source: &SourceStatus, data_dir: &Path) -> Verdict {
        let mut problems = Vec::new();
        of_state(source, &mut problems);
        of_forks(source, &data_dir.display().to_string(), &mut problems);
        if source.is_receiving() {
            of_session(source, &mut problems);
        }
        of_copy(source, &data_dir.display().to_string(), &mut problems);
        of_search(source, &mut problems);
        of_past(source, &mut problems);
        of_archive(source, &mut problems);
        Verdict::of(headline(source), problems)
    }

    /// Of all: the sources' own judgements must stand already.
    pub fn of_daemon(status: &DaemonStatus) -> Verdict {
        let mut problems = Vec::new();
        if status.sources.is_empty() {
            problems.push(problem(
                Level::Critical,
                "There is no source: nothing is copied.",
                "Add a [[source]].",
            ));
        }
        of_disk(status, &mut problems);
        of_readers(status, &mut problems);
        let own = problems.iter().map(|problem| problem.level).max().unwrap_or_default();
        let at = |level| status.sources.iter().filter(|source| source.verdict.level == level).count();
        let (all, critical, warning) = (status.sources.len(), at(Level::Critical), at(Level::Warning));
        let protected = status.sources.iter().filter(|source| is_protected(source)).count();
        let are = |count: usize| if count == 1 { "1 is".to_owned() } else { format!("{count} are") };
        let sources = |count: usize| units::counted(count as u64, "source");
        let headline = match (all, critical, warning) {
            (0, ..) => "Nothing is copied.".to_owned(),
            (1, ..) => status.sources[0].verdict.headline.clone(),
            (_, 0, 0) if protected == all => format!(
                "All {all} sources are protected: every acknowledged transaction is on stable storage here."
            ),
            (_, 0, 0) => format!("All {all} sources are received; {protected} of them wait for this copy."),
            (_, 0, _) => {
                format!(
                    "{} of {all} should be looked at soon; {} protected.",
                    sources(warning),
                    are(protected)
                )
            }
            _ => {
                let verb = if critical == 1 { "needs" } else { "need" };
                format!("{} of {all} {verb} you now; {} protected.", sources(critical), are(protected))
            }
        };
        let worst = status.sources.iter().map(|source| source.verdict.level).max().unwrap_or_default();
        Verdict { level: worst.max(own), ..Verdict::of(headline, problems) }
    }
}

/// Commits are waited for, and what is acknowledged survives a crash of this machine.
fn is_protected(source: &SourceStatus) -> bool {
    source.is_receiving()
        && source.semi_sync.active
        && source.fsync_mode == Some(1)
        && !commits_do_not_wait(source)
        && source.waits_for_others().is_none()
        && source.gtids_given_twice == 0
        && damage(source) == 0
}

/// How many problems `binlogd verify` found last in the copy.
fn damage(source: &SourceStatus) -> u64 {
    source.verified.as_ref().map_or(0, |verified| verified.findings)
}

/// Whether the source tells clients of commits before they were acknowledged, whatever was negotiated: its timeout is too short.
fn commits_do_not_wait(source: &SourceStatus) -> bool {
    let told = &source.unacknowledged_commits;
    told.since.is_some() && told.until.is_none() && told.commits > 0
}

/// Whether the operator wants no semi-sync: then its absence is no fault.
fn is_asynchronous(source: &SourceStatus) -> bool {
    source.semi_sync.reason.contains("semi_sync = false")
}

/// On a full disk one attempt follows the other; the state is that of a moment.
fn disk_was_full(source: &SourceStatus) -> bool {
    let bad = source.events.iter().find(|event| event.kind == "state" && event.level == Level::Critical);
    bad.is_some_and(|event| event.text.starts_with("the disk is full"))
}

fn lacks(source: &SourceStatus) -> Option<&str> {
    source.source_lacks.as_deref().filter(|lacks| !lacks.is_empty())
}

fn headline(source: &SourceStatus) -> String {
    let kept = "What was acknowledged is safe here.";
    if lacks(source).is_some() {
        return "The source lost transactions that were stored here. They are safe here until they are handed back.".into();
    }
    if damage(source) > 0 {
        return "The copy is damaged: not all that was acknowledged is sure to be here.".into();
    }
    if source.gtids_given_twice > 0 {
        return "The source gave GTIDs twice: both transactions of each are safe here until somebody has decided.".into();
    }
    match source.state.as_str() {
        "receiving" if source.semi_sync.active && commits_do_not_wait(source) => {
            "Clients are told of commits that nobody acknowledged: a crash of the source now may lose its last transactions."
        }
        "receiving" if source.waits_for_others().is_some() => {
            "Commits wait for other replicas of the source. What was acknowledged is safe here."
        }
        "receiving" if source.semi_sync.active && source.fsync_mode == Some(0) => {
            "Commits wait for this copy, which acknowledges before it syncs: a crash of this machine may lose the last of it."
        }
        "receiving" if source.semi_sync.active => {
            "Protected: every acknowledged transaction is on stable storage here, and commits wait for that."
        }
        "receiving" if is_asynchronous(source) => {
            "Copied without semi-sync, as configured: a crash of the source may lose its last transactions."
        }
        "receiving" => "Commits do not wait for this copy: a crash of the source now may lose its last transactions.",
        "withholding acknowledgements" | "waiting for replicas" => "Commits wait: nothing new is acknowledged.",
        "waiting for disk space" => "The disk is full: nothing new is acknowledged. What was acknowledged is safe here.",
        "beginning from the archive" => "Nothing is on this disk yet: the copy goes on where the archive ends.",
        "waiting for the archive" => {
            "Nothing is on this disk, and the archive cannot be read: nothing is received or acknowledged."
        }
        "disk does not answer" => "The disk does not answer: nothing new is acknowledged.",
        "stuck" => "The receiving thread is stuck: nothing new is acknowledged. What was acknowledged is safe here.",
        "backing off" | "connecting" | "recovering" if disk_was_full(source) => {
            "The disk is full: nothing new is acknowledged. What was acknowledged is safe here."
        }
        "backing off" | "connecting" if source.last_error.is_some() => {
            return format!("The source is not reached. {kept}");
        }
        "stopped" => return format!("Receiving has stopped. {kept}"),
        NOT_RUNNING => return format!("No daemon answers. {kept}"),
        _ => return format!("Being started. {kept}"),
    }
    .to_owned()
}

fn of_state(source: &SourceStatus, problems: &mut Vec<Worry>) {
    let detail = source.state_detail.clone().unwrap_or_default();
    let (level, text, advice) = match source.state.as_str() {
        "receiving" => return,
        "backing off" | "connecting" | "recovering" if disk_was_full(source) => {
            let why = source.last_error.as_ref().map_or("", |error| &error.message);
            (Level::Critical, format!("The disk is full, and commits at the source wait: {why}"), FULL_DISK)
        }
        NOT_RUNNING => {
            (Level::Critical, format!("No daemon answers: nothing is received. {detail}"), "Start binlogd.")
        }
        "starting" | "recovering" => (Level::Notice, format!("The copy is being checked. {detail}"), ""),
        "connecting" if source.last_error.is_none() => {
            (Level::Notice, "The source is being connected to.".to_owned(), "")
        }
        "withholding acknowledgements" => {
            (Level::Critical, format!("Acknowledgements are withheld: {detail}"), "")
        }
        "waiting for replicas" => (
            Level::Critical,
            format!("Commits wait for receivers further down: {detail}"),
            "Bring the receivers back, or choose another ack_after_replicas or ack_timeout_action and reload.",
        ),
        "waiting for disk space" => (
            Level::Critical,
            format!("The disk is full, and commits at the source wait: {detail}"),
            FULL_DISK,
        ),
        "beginning from the archive" => {
            (Level::Notice, format!("The copy begins from the archive: {detail}"), "")
        }
        "waiting for the archive" => (
            Level::Critical,
            format!("Nothing is received before the archive can be read: {detail}"),
            "Look at the store and at the way to it: binlogd doctor --archive. binlogd tries again by itself.",
        ),
        "disk does not answer" => (
            Level::Critical,
            format!("The disk does not answer: {detail}"),
            "Look at the machine's disk (dmesg). Receiving goes on by itself when the disk answers.",
        ),
        "stuck" => (
            Level::Critical,
            format!("Nothing is received: {detail}"),
            "Restart binlogd if it does not come round: it goes on where the copy ends.",
        ),
        "stopped" if detail == ENDS => (Level::Notice, format!("Nothing is received: {detail}."), ""),
        // What starts it again stands in the reason.
        "stopped" if detail.ends_with(" again") => {
            (Level::Critical, format!("Receiving was stopped {detail}"), "")
        }
        "stopped" => (
            Level::Critical,
            format!("Receiving has stopped: {detail}"),
            "Put the cause right, then reload (SIGHUP) or restart.",
        ),
        _ => {
            let why = source.last_error.as_ref().map_or(detail.as_str(), |error| &error.message);
            let text = format!("The source is not received: {why}");
            (
                Level::Critical,
                text,
                "Look at the source and at the network to it. binlogd tries again by itself.",
            )
        }
    };
    problems.push(problem(level, text.trim_end(), advice));
}

/// What forks took, and what others alone hold.
fn of_forks(source: &SourceStatus, data_dir: &str, problems: &mut Vec<Worry>) {
    let (dir, name) = (quoted(data_dir), quoted(&source.name));
    if let Some(lacks) = lacks(source) {
        let count = transactions(lacks);
        let host = source.host.as_deref().unwrap_or("HOST:3306");
        problems.push(Worry {
            level: Level::Critical,
            text: format!("The source lacks {count} that this copy holds: {}", cut(lacks)),
            advice: "Look first (--dry-run sends nothing), then hand them back without --dry-run.".to_owned(),
            command: format!("binlogd rescue {dir} --source {name} --to mysql://root@{host} --dry-run"),
        });
    }
    if source.gtids_given_twice > 0 {
        problems.push(Worry {
            level: Level::Critical,
            text: format!(
                "The source gave {} twice: the copy holds other transactions under them: {}",
                units::counted(source.gtids_given_twice, "GTID"),
                cut(&source.given_twice)
            ),
            advice: "Look at both transactions and decide which count.".to_owned(),
            command: format!("binlogd forks {dir} --source {name}"),
        });
    }
    for peer in source.peers.iter().filter(|peer| !peer.only_there.is_empty()) {
        let text = format!("The peer {} alone holds transactions: {}", peer.peer, cut(&peer.only_there));
        problems.push(problem(Level::Critical, text, "Run binlogd rescue on the peer's machine."));
    }
}

/// What can be said while a session lasts.
fn of_session(source: &SourceStatus, problems: &mut Vec<Worry>) {
    if !source.semi_sync.active {
        // As BinlogdSemiSyncOff, which pages.
        let level = if is_asynchronous(source) { Level::Notice } else { Level::Critical };
        problems.push(problem(level, format!("Semi-sync is not in force: {}", source.semi_sync.reason), ""));
    }
    if let Some(waits) = source.waits_for_others() {
        let advice = "Attach the others, or let the source want fewer: rpl_semi_sync_source_wait_for_replica_count (before MySQL 8.0.26 \
                      rpl_semi_sync_master_wait_for_slave_count).";
        problems.push(problem(Level::Critical, format!("At the source {waits}."), advice));
    }
    if source.ack_replicas.as_ref().is_some_and(|replicas| replicas.alone) {
        let text = "Acknowledged without the receivers further down, because they did not come in time.";
        problems.push(problem(Level::Warning, text, "Bring the receivers back."));
    }
    if source.fsync_mode == Some(0) {
        let text = "fsync_mode is 0: acknowledged before it is synced, as configured.";
        problems.push(problem(Level::Notice, text, ""));
    }
    if let Some(behind) = source.seconds_behind.filter(|behind| *behind > BEHIND_SECONDS_MAX) {
        problems.push(problem(
            Level::Warning,
            format!("The copy is {} behind.", units::duration(behind)),
            "",
        ));
    }
    if let Some(error) = &source.look_error {
        let text = format!("The source cannot be asked for its semi-sync: {}", error.message);
        problems.push(problem(Level::Notice, text, ""));
    }
}

/// What `binlogd verify` found.
fn of_copy(source: &SourceStatus, data_dir: &str, problems: &mut Vec<Worry>) {
    let findings = damage(source);
    if findings > 0 {
        let found = units::counted(findings, "problem");
        problems.push(Worry {
            level: Level::Critical,
            text: format!("binlogd verify found {found} in the copy when it last ran."),
            advice: "Run it again to see which files. Change nothing in them by hand; take a new backup of the source.".to_owned(),
            command: format!("binlogd verify {} --source {}", quoted(data_dir), quoted(&source.name)),
        });
    }
}

/// What stands in the way of a search.
fn of_search(source: &SourceStatus, problems: &mut Vec<Worry>) {
    if let Some(trouble) = source.search_trouble().filter(|_| source.search_index_failed > Some(0)) {
        problems.push(problem(Level::Warning, format!("Searches: {trouble}"), ""));
    }
}

/// What has happened and is not made good.
fn of_past(source: &SourceStatus, problems: &mut Vec<Worry>) {
    let told = &source.unacknowledged_commits;
    if commits_do_not_wait(source) {
        let text = format!(
            "The source tells clients of commits that nobody acknowledged: {}",
            units::count(told.commits)
        );
        let advice = "Look at rpl_semi_sync_source_timeout (MariaDB: rpl_semi_sync_master_timeout) at the source: commits wait \
                      no longer than that.";
        problems.push(problem(Level::Critical, text, advice));
    } else if told.while_away.is_some_and(|commits| commits > 0) {
        let text = "While binlogd was away the source told clients of commits that nobody acknowledged.";
        problems.push(problem(Level::Warning, text, ""));
    }
    if !source.gaps.is_empty() {
        let text = match source.missing_transactions {
            0 => "The copy has a gap.".to_owned(),
            _ => format!("The copy has a gap: these were never copied: {}", cut(&source.missing)),
        };
        problems.push(problem(
            Level::Warning,
            text,
            "Nothing can be replayed over a gap: take a new backup.",
        ));
    }
    if let Some(rival) = &source.server_id_rival {
        let text = format!("Another replica has this server_id: {rival}");
        problems.push(problem(Level::Warning, text, "Give each its own server_id."));
    }
    for peer in &source.peers {
        if let Some(error) = &peer.error {
            let text = format!("The peer {} cannot be used: {}", peer.peer, error.message);
            problems.push(problem(Level::Warning, text, ""));
        }
    }
}

/// What was damaged in the archive. The source is as safe as before, and the past is not: what was deleted from the disk here may be
/// nowhere else.
fn of_archive(source: &SourceStatus, problems: &mut Vec<Worry>) {
    let Some(archive) = &source.archive else { return };
    if let Some(error) = archive.put_back() {
        let advice = "Put the objects back, from versions or another copy of the bucket. Keep this machine: what is newer is here alone.";
        problems.push(problem(Level::Critical, format!("The archive: {}", error.message), advice));
    } else if let Some(error) = &archive.error {
        let advice = "What it says is to be done; nothing is lost while this machine lives.";
        problems.push(problem(
            Level::Warning,
            format!("The archive is not kept up: {}", error.message),
            advice,
        ));
    } else if let Some(behind) = archive.behind_seconds.filter(|behind| *behind > ARCHIVE_BEHIND_SECONDS_MAX)
    {
        let text = format!("The archive is {} behind.", units::duration(behind));
        problems.push(problem(Level::Warning, text, ""));
    }
    if archive.findings() > 0 {
        let count = units::counted(archive.findings(), "problem");
        let first = archive.first_finding().unwrap_or_default();
        problems.push(Worry {
            level: Level::Critical,
            text: format!("The archive is damaged, {count} found: {first}"),
            advice: "Put the objects back from another copy or an older version of the bucket. Files that are still here stay."
                .to_owned(),
            command: format!("binlogd verify {} --source {}", quoted(&archive.url), quoted(&source.name)),
        });
    }
    if let Some(error) = archive.verify.as_ref().and_then(|verify| verify.error.as_ref()) {
        let text = format!("The archive cannot be verified: {}", error.message);
        problems.push(problem(Level::Notice, text, ""));
    }
    if let Some(kept) = archive.kept.as_ref().filter(|_| archive.kept_findings == 0) {
        problems.push(problem(Level::Notice, format!("Old files stay here: {}", kept.message), ""));
    }
}

fn of_disk(status: &DaemonStatus, problems: &mut Vec<Worry>) {
    let Some(disk) = &status.disk else {
        problems.push(problem(Level::Warning, "The file system of the data folder cannot be measured.", ""));
        return;
    };
    let free = format!("{} of {} are free", units::bytes(disk.free_bytes), units::bytes(disk.size_bytes));
    let lasts = disk
        .hours_left
        .map(|hours| format!(", for {} at this rate", units::hours(hours)))
        .unwrap_or_default();
    let advice = "Make the file system larger, or let [retention] or PURGE BINARY LOGS delete old files.";
    if disk.hours_left.is_some_and(|hours| hours < DISK_HOURS_CRITICAL) {
        problems.push(problem(
            Level::Critical,
            format!("The disk is full within hours: {free}{lasts}."),
            advice,
        ));
    } else if disk.low {
        problems.push(problem(Level::Warning, format!("The disk is running full: {free}{lasts}."), advice));
    } else if disk.hours_left.is_some_and(|hours| hours < DISK_HOURS_MIN) {
        problems.push(problem(
            Level::Warning,
            format!("The disk lasts less than a day: {free}{lasts}."),
            advice,
        ));
    }
}

fn of_readers(status: &DaemonStatus, problems: &mut Vec<Worry>) {
    let Some(serve) = &status.serve else { return };
    let named = |slot: &SlotStatus| format!("{} of {}", slot.name, slot.source);
    for slot in &serve.slots {
        if let Some(why) = &slot.released {
            let text = format!("The slot {} keeps nothing any more: {why}", named(slot));
            problems.push(problem(Level::Warning, text, "Its reader may have to be set up anew."));
        } else if !slot.connected {
            let away = units::duration(slot.away_seconds);
            problems.push(problem(
                Level::Warning,
                format!("The reader of the slot {} is gone since {away}.", named(slot)),
                "",
            ));
        }
    }
    for reader in &serve.readers {
        if let Some(behind) = reader.behind_seconds.filter(|behind| *behind > READER_BEHIND_SECONDS_MAX) {
            let behind = units::duration(behind);
            let text = format!("The reader {} of {} is {behind} behind.", reader.user, reader.source);
            problems.push(problem(Level::Warning, text, ""));
        }
    }
}

/// How many a set names, in words. MariaDB's numbers have holes, so that there only servers can be counted.
fn transactions(set: &str) -> String {
    match set.parse::<GtidSet>() {
        Ok(set) => units::counted(count(&GtidState::Mysql(set)), "transaction"),
        Err(_) => "transactions".to_owned(),
    }
}

/// The beginning of a long set.
fn cut(set: &str) -> String {
    const CHARACTERS_MAX: usize = 300;
    match set.char_indices().nth(CHARACTERS_MAX) {
        Some((at, _)) => format!("{}… (all of it is in /status)", &set[..at]),
        None => set.to_owned(),
    }
}

impl SourceStatus {
    /// Whether the state is one in which something is wrong now.
    pub fn is_in_trouble(&self) -> bool {
        self.state != SourceState::Receiving.word() && self.verdict.level >= Level::Warning
    }
}

#[cfg(test)]
mod tests {
    use super::super::events::Events;
    use super::super::past::{LastError, Verified};
    use super::super::semi_sync::{SemiSyncStatus, UnacknowledgedCommits};
    use super::super::serving::ServeStatus;
    use super::*;
    use jiff::Timestamp;

    fn receiving() -> SourceStatus {
        SourceStatus {
            name: "orders".to_owned(),
            state: "receiving".to_owned(),
            semi_sync: SemiSyncStatus { active: true, reason: "negotiated".to_owned() },
            fsync_mode: Some(1),
            source_lacks: Some(String::new()),
            ..SourceStatus::default()
        }
    }

    fn judged(source: SourceStatus) -> SourceStatus {
        SourceStatus { verdict: Verdict::of_source(&source, Path::new("/srv/b")), ..source }
    }

    fn all(sources: Vec<SourceStatus>) -> Verdict {
        let disk = Some(Default::default());
        Verdict::of_daemon(&DaemonStatus { sources, disk, ..DaemonStatus::default() })
    }

    #[test]
    fn a_source_that_is_as_it_should_be_has_no_problem() {
        let verdict = judged(receiving()).verdict;
        assert_eq!((verdict.level, verdict.problems.len()), (Level::Ok, 0));
        assert!(verdict.headline.starts_with("Protected"));
        assert!(
            all(vec![judged(receiving()), judged(receiving())])
                .headline
                .starts_with("All 2 sources are protected")
        );
    }

    #[test]
    fn every_state_but_receiving_is_a_problem_and_is_told() {
        for word in SourceState::WORDS.into_iter().filter(|word| *word != "receiving") {
            let error = LastError { at: Timestamp::UNIX_EPOCH, message: "refused".to_owned() };
            let source = SourceStatus { state: word.to_owned(), last_error: Some(error), ..receiving() };
            let verdict = judged(source).verdict;
            let passes = ["starting", "recovering", "beginning from the archive"].contains(&word);
            let level = if passes { Level::Notice } else { Level::Critical };
            assert_eq!(verdict.level, level, "{word}");
            assert!(!verdict.headline.starts_with("Protected"), "{word}: {}", verdict.headline);
        }
    }

    #[test]
    fn an_attempt_on_a_full_disk_is_not_taken_for_a_source_that_is_away() {
        let mut events = Events::default();
        events.note(Level::Critical, "state", "the disk is full: No space left on device");
        let error = LastError { at: Timestamp::UNIX_EPOCH, message: "No space left on device".to_owned() };
        let source = SourceStatus {
            state: "connecting".to_owned(),
            last_error: Some(error),
            events: events.newest_first(),
            ..receiving()
        };
        let verdict = judged(source).verdict;
        assert!(verdict.headline.starts_with("The disk is full"), "{verdict:?}");
        assert!(verdict.problems[0].text.starts_with("The disk is full"), "{verdict:?}");
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
    fn a_lost_semi_sync_needs_somebody_and_one_that_nobody_wants_does_not() {
        let off = |reason: &str| {
            let semi_sync = SemiSyncStatus { active: false, reason: reason.to_owned() };
            judged(SourceStatus { semi_sync, ..receiving() }).verdict
        };
        assert_eq!(off("the source gave up waiting").level, Level::Critical);
        assert_eq!(off("switched off here: semi_sync = false").level, Level::Notice);
        assert!(off("the source gave up waiting").headline.contains("do not wait"));
    }

    #[test]
    fn nothing_that_needs_somebody_at_once_is_called_protected() {
        let told = UnacknowledgedCommits {
            since: Some(Timestamp::UNIX_EPOCH),
            commits: 36,
            ..UnacknowledgedCommits::default()
        };
        let twice = "3e11fa47-71ca-11e1-9e33-c80aa9429562:4".to_owned();
        for source in [
            SourceStatus { unacknowledged_commits: told, ..receiving() },
            SourceStatus { gtids_given_twice: 1, given_twice: twice, ..receiving() },
            SourceStatus {
                verified: Some(Verified { at: Timestamp::UNIX_EPOCH, findings: 2 }),
                ..receiving()
            },
        ] {
            let verdict = judged(source.clone()).verdict;
            assert_eq!(verdict.level, Level::Critical, "{verdict:?}");
            assert!(!verdict.headline.starts_with("Protected"), "{verdict:?}");
            let both = all(vec![judged(source), judged(receiving())]);
            assert_eq!(both.headline, "1 source of 2 needs you now; 1 is protected.");
        }
    }

    #[test]
    fn the_worst_comes_first_and_counts_for_all() {
        let gone = SourceStatus { state: "stopped".to_owned(), ..receiving() };
        let verdict = all(vec![judged(receiving()), judged(gone), judged(receiving())]);
        assert_eq!(verdict.level, Level::Critical);
        assert_eq!(verdict.headline, "1 source of 3 needs you now; 2 are protected.");
        let slot = SlotStatus { name: "w".to_owned(), away_seconds: 70, ..SlotStatus::default() };
        let serve = Some(ServeStatus { slots: vec![slot], ..ServeStatus::default() });
        let status = DaemonStatus { serve, sources: vec![judged(receiving())], ..DaemonStatus::default() };
        let verdict = Verdict::of_daemon(&status);
        assert!(
            verdict.problems.iter().any(|problem| problem.text.contains("gone since 1 min 10 s")),
            "{verdict:?}"
        );
    }
}
