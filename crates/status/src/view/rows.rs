//! The words of each row.

use super::row::{Row, level, semi_sync};
use crate::units::{bytes, count, counted, duration, latency};
use crate::{
    AckReplicasStatus, ArchiveStatus, ArchiveVerify, Level, PeerStatus, QuorumStatus, SourceStatus,
    StateName, Topic, Worry,
};
use config::FsyncMode;
use jiff::Timestamp;

/// The connection, and whether commits wait for this copy.
pub(super) fn connection(source: &SourceStatus, now: Timestamp) -> Vec<Row> {
    let mut rows = Vec::new();
    let row = |name, topic| Row::new(name, level(source, topic));
    if let Some(error) = &source.last_error {
        rows.push(Row::new("last error", Level::Ok).at_ago(error.at).line(&error.message));
    }
    let plain = |name, text: Option<&str>| text.map(|text| Row::new(name, Level::Ok).text(text));
    rows.extend(plain("host", source.host.as_deref()));
    let id = source.server_id.map(|id| format!("server_id {id}"));
    let server: Vec<&str> = [&source.server_version, &id].into_iter().flatten().map(String::as_str).collect();
    rows.extend(plain("server", Some(server.join(", ").as_str()).filter(|text| !text.is_empty())));
    rows.extend(plain("uuid", source.server_uuid.as_deref()));
    rows.extend(plain("timeline", source.timeline.as_deref()));
    let is_running = source.state != StateName::NotRunning;
    if is_running {
        rows.push(semi_sync_row(source, row("semi-sync", Topic::SemiSync)));
        if let Some(replicas) = &source.ack_replicas {
            rows.push(
                row("receivers", Topic::Receivers).text(replicas_in_words(replicas, source.quorum.is_some())),
            );
        }
        if let Some(quorum) = &source.quorum {
            rows.push(quorum_row(quorum, row("quorum", Topic::Quorum)));
        }
        if let Some(error) = &source.look_error {
            let look = row("look", Topic::Look).text("at the source fails since ").at(error.at);
            rows.push(look.text(format!(": {}", error.message)));
        }
        rows.extend(without_acknowledgement(source));
        rows.push(Row::new("TLS", Level::Ok).text(source.tls.as_deref().unwrap_or("no")));
        rows.extend(certificate(source, now));
    }
    if let Some(mode) = source.fsync_mode {
        rows.push(row("fsync_mode", Topic::Sync).text(fsync_mode_in_words(mode)));
    }
    if let Some(doubt) = &source.hosts_in_doubt {
        rows.push(row("hosts", Topic::Hosts).text(doubt));
    }
    if let Some(rival) = &source.server_id_rival {
        rows.push(row("server_id", Topic::ServerId).text(rival));
    }
    if is_running {
        let behind = source.seconds_behind.map_or_else(|| "not known".to_owned(), duration);
        rows.push(row("behind source", Topic::Behind).text(behind));
    }
    rows
}

fn semi_sync_row(source: &SourceStatus, row: Row) -> Row {
    let row = row.text(format!("{}: {}", semi_sync(source), source.semi_sync.reason));
    match &source.semi_sync_source {
        Some(look) if source.semi_sync.active => {
            row.text(format!("; the source gives up after {}", latency(look.timeout_ms as f64 * 1000.0)))
        }
        _ => row,
    }
}

/// The receivers further down that acknowledgements wait for.
fn replicas_in_words(replicas: &AckReplicasStatus, is_quorum: bool) -> String {
    let AckReplicasStatus { wanted, confirmed, .. } = replicas;
    let what = if replicas.alone {
        "acknowledging alone until they have caught up"
    } else if replicas.waiting {
        "a commit of the source waits for them"
    } else {
        "nobody waits for them"
    };
    let key = if is_quorum { "quorum" } else { "ack_after_replicas" };
    format!("{confirmed} of {wanted} have confirmed ({key}); {what}")
}

/// The nodes, each with where it is.
fn quorum_row(quorum: &QuorumStatus, row: Row) -> Row {
    let QuorumStatus { nodes, majority, epoch, .. } = quorum;
    let counting = quorum.counting();
    let mut row = row.text(format!("epoch {epoch}: {counting} of {nodes} nodes count, {majority} must"));
    if let Some(trouble) = quorum.own_trouble() {
        row = row.line(format!("this node does not count: {trouble}"));
    }
    for node in &quorum.others {
        let mut words = node.address.clone();
        if let Some(at) = &node.durable {
            words += &format!(" has everything to {at}");
        }
        words += &match node.behind_bytes {
            Some(behind) if behind > 0 => format!(", {} behind this node", bytes(behind)),
            _ => String::new(),
        };
        if !node.counts {
            words += &format!(" does not count: {}", node.trouble(*epoch));
        }
        row = row.line(&words);
    }
    row
}

fn fsync_mode_in_words(mode: u8) -> &'static str {
    if mode == FsyncMode::WriteThenAcknowledge as u8 {
        "0: acknowledges what is written"
    } else {
        "1: acknowledges only what is durable"
    }
}

/// What clients were told without an acknowledgement, if there is any of it. Of a quorum that is said in any case: it ends there.
fn without_acknowledgement(source: &SourceStatus) -> Vec<Row> {
    let mut rows = Vec::new();
    if source.quorum.is_some() && source.unacknowledged_commits.since.is_none() {
        let known = match source.semi_sync_source.is_some() {
            true => "no commit since the first look at the source",
            false => "not known: the source was not asked",
        };
        rows.push(Row::new("without ack", Level::Ok).text(known));
    }
    let until = |row: Row, until: Option<Timestamp>| match until {
        Some(at) => row.at(at),
        None => row.text("now"),
    };
    let commits = &source.unacknowledged_commits;
    if let Some(since) = commits.since {
        let away = commits.while_away.filter(|away| *away > 0);
        let away =
            away.map_or(String::new(), |away| format!("; {} of them while binlogd was away", count(away)));
        let said = format!(
            "the source told clients of {} without one, the last time from ",
            counted(commits.commits, "commit")
        );
        let row = Row::new("without ack", level(source, Topic::SemiSync)).text(said).at(since).text(" to ");
        rows.push(until(row, commits.until).text(away));
    }
    let unasked = &source.unasked_transactions;
    if let Some(since) = unasked.since {
        let last = unasked.last_gtid.as_ref().map_or(String::new(), |gtid| format!(", the newest {gtid}"));
        let said = format!(
            "{} arrived for which the source asked for none, from ",
            counted(unasked.transactions, "transaction")
        );
        let row = Row::new("not asked for", Level::Ok).text(said).at(since).text(" to ");
        rows.push(until(row, unasked.until).text(last));
    }
    rows
}

/// A certificate of the source that nobody accepts any more soon, as the judgement has it.
fn certificate(source: &SourceStatus, now: Timestamp) -> Option<Row> {
    let expires = source.tls_certificate_expires?;
    let level = Some(level(source, Topic::Certificate)).filter(|level| *level > Level::Ok)?;
    let ends = if expires > now { "expires" } else { "has expired" };
    Some(Row::new("certificate", level).text(format!("of the source {ends} at ")).at(expires))
}

/// Up to where the object store has the history.
pub(super) fn archived_to(source: &SourceStatus) -> Option<Row> {
    let archive = source.archive.as_ref()?;
    let row = Row::new("archived", level(source, Topic::Archive));
    if archive.put_back().is_some() {
        return Some(row.text("PUT BACK to an older state: nothing is archived or purged"));
    }
    let at = archive.archived.as_ref().map_or_else(|| "nothing yet".to_owned(), ToString::to_string);
    let behind = match archive.behind_seconds {
        Some(behind) => format!("everything of {} ago", duration(behind)),
        None => "not everything yet".to_owned(),
    };
    Some(row.text(format!("{at}, {behind}")))
}

/// The same, with the place, and why the archive is not kept up.
pub(super) fn archived(source: &SourceStatus) -> Option<Row> {
    let ArchiveStatus { url, encrypted, error, kept, verify, .. } = source.archive.as_ref()?;
    let encrypted = if *encrypted { "encrypted" } else { "not encrypted" };
    let mut row = archived_to(source)?.line(format!("{url}, {encrypted}"));
    if let Some(error) = error {
        row = row.line("fails since ").at(error.at).text(format!(": {}", error.message));
    }
    if let Some(kept) = kept {
        row = row.line("old files stay here since ").at(kept.at).text(format!(": {}", kept.message));
    }
    Some(match verify {
        Some(verify) => archive_verified(row, verify),
        None => row,
    })
}

/// The last verification of the archive on a schedule.
fn archive_verified(mut row: Row, verify: &ArchiveVerify) -> Row {
    if let Some(at) = verify.at {
        let (read, all) = (count(verify.objects_read), count(verify.objects));
        row = row.line("verified ").at_ago(at);
        row = row.text(format!(": {}, {read} of {all} objects read", damage_in_words(verify.findings)));
    }
    for finding in &verify.first_findings {
        row = row.line(format!("damage: {finding}"));
    }
    match &verify.error {
        Some(error) => {
            row.line("cannot be verified since ").at(error.at).text(format!(": {}", error.message))
        }
        None => row,
    }
}

/// From when to when the archive alone leads, by its backups.
pub(super) fn recoverable(source: &SourceStatus) -> Option<Row> {
    let backups = source.archive.as_ref()?.backups.as_ref()?;
    let row = Row::new("recoverable", Level::Ok);
    Some(match (backups.recoverable_from, backups.recoverable_to, backups.newest) {
        (Some(from), Some(to), Some(newest)) => {
            let row = row.text("from ").at(from).text(" to ").at(to);
            let with_log = counted(backups.with_log, "backup");
            let row = row.line(format!("by {with_log} in the archive, the newest of ")).at_ago(newest);
            match backups.count.saturating_sub(backups.with_log) {
                0 => row,
                without => row.text(format!("; {without} more without log do not count")),
            }
        }
        _ if backups.count == 0 => {
            row.text("nothing by the archive alone: it has no backup. binlogd backup makes one")
        }
        _ => row.text(format!(
            "the moments of {} alone: none of them has its log",
            counted(backups.count, "backup")
        )),
    })
}

/// Whether the way back was tried, and what came of it.
pub(super) fn drilled(source: &SourceStatus) -> Option<Row> {
    let drill = source.archive.as_ref()?.drill.as_ref()?;
    let is_wrong = |problem: &&Worry| problem.kind.starts_with("drill_");
    let level = source.verdict.problems.iter().filter(is_wrong).map(|problem| problem.level).max();
    let row = Row::new("drill", level.unwrap_or_default());
    let mut row = match drill.list.first() {
        None => row.text("none yet"),
        Some(last) if last.passed => {
            let took = duration(last.seconds as u64);
            row.text("passed ").at_ago(last.started).text(format!(", in {took}: {}", last.proof_in_words))
        }
        Some(last) => row.text("FAILED ").at_ago(last.started).text(format!(": {}", last.fault)),
    };
    if let (Some(_), Some(passed)) = (drill.failed(), &drill.last_passed) {
        row = row.line("the last that passed was ").at_ago(passed.started);
    }
    Some(match (drill.running_since, drill.due) {
        (Some(since), _) => row.line("under way since ").at(since),
        (None, Some(due)) => row.line("the next at ").at(due),
        (None, None) => row,
    })
}

fn damage_in_words(findings: u64) -> String {
    match findings {
        0 => "no damage".to_owned(),
        findings => format!("DAMAGED, {} found", count(findings)),
    }
}

/// From when on a backup can be brought to any point, and what stands in the way of a search.
pub(super) fn points(source: &SourceStatus) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(oldest) = source.oldest_commit {
        rows.push(Row::new("restorable", Level::Ok).text("to any point since ").at_ago(oldest));
    }
    if let Some(trouble) = source.search_trouble() {
        rows.push(Row::new("search", level(source, Topic::Search)).text(trouble));
    }
    rows
}

/// What the source lacks, gave twice, or never gave.
pub(super) fn histories(source: &SourceStatus) -> Vec<Row> {
    let mut rows = Vec::new();
    let row = |name, topic| Row::new(name, level(source, topic));
    match source.source_lacks.as_deref() {
        Some("") => {
            if let Some(regained) = &source.source_regained {
                let back = "nothing any more: it has again what it lacked, since ";
                rows.push(row("source lacks", Topic::Fork).text(back).at(regained.at).gtids(&regained.gtids));
            }
        }
        Some(lacks) => {
            let what_to_do = "the copy holds these: binlogd rescue hands them over";
            rows.push(row("source lacks", Topic::Fork).gtids(lacks).line(what_to_do));
        }
        None => {}
    }
    if source.gtids_given_twice > 0 {
        let what_to_do = "the copy holds two transactions under each: binlogd forks lists them";
        rows.push(row("given twice", Topic::Fork).gtids(&source.given_twice).line(what_to_do));
    }
    if !source.missing.is_empty() || !source.gaps.is_empty() {
        let mut missing = row("never copied", Topic::Gap);
        if !source.missing.is_empty() {
            missing = missing.gtids(&source.missing);
        }
        for gap in &source.gaps {
            let after = match &gap.after {
                Some(after) => format!("after {} {} and ", after.file, after.offset),
                None => String::new(),
            };
            missing = missing.line(format!("a gap {after}before {} of {}", gap.first_file, gap.timeline));
        }
        rows.push(missing);
    }
    rows
}

/// The other binlogds of the source.
pub(super) fn peers(source: &SourceStatus) -> Vec<Row> {
    let mut rows = Vec::new();
    for (index, peer) in source.peers.iter().enumerate() {
        let name = if index == 0 { "peers" } else { "" };
        rows.push(peer_row(Row::new(name, level(source, Topic::Peers)), peer));
        if let Some(timeline) = &peer.only_there_timeline {
            let count = counted(peer.only_there_transactions, "transaction");
            rows.push(
                Row::new("only there", level(source, Topic::Peers))
                    .text(format!("{count} at the end of {timeline}"))
                    .gtids(&peer.only_there)
                    .line("this copy lacks these: binlogd rescue on the peer's machine hands them over"),
            );
        }
    }
    rows
}

fn peer_row(row: Row, peer: &PeerStatus) -> Row {
    let row = row.text(format!("{}: ", peer.peer));
    let row = match (peer.asked_at, &peer.error, peer.had_more) {
        (None, ..) => row.text("not asked yet"),
        (Some(at), Some(_), _) => row.text("cannot be used, asked at ").at(at),
        (Some(at), None, Some(true)) => row.text("had more, asked at ").at(at),
        (Some(at), None, _) => row.text("had nothing more, asked at ").at(at),
    };
    let row = match peer.fetched_transactions {
        0 => row,
        count => row.text(format!("; {} fetched", counted(count, "transaction"))),
    };
    match &peer.error {
        Some(error) => row.line(&error.message),
        None => row,
    }
}

/// The last `binlogd verify`, if there was one.
pub(super) fn verified(source: &SourceStatus) -> Option<Row> {
    let verified = source.verified?;
    let row = Row::new("verified", level(source, Topic::Copy)).at_ago(verified.at);
    let row = row.text(format!(": {}", damage_in_words(verified.findings)));
    Some(if verified.findings > 0 { row.line("binlogd verify shows where") } else { row })
}

/// What the source takes of the machine, as far as it is known.
pub(super) fn resources(source: &SourceStatus) -> Option<Row> {
    let found = &source.resources;
    let mut parts = Vec::new();
    parts.extend(found.disk_bytes.map(|on_disk| format!("{} on disk", bytes(on_disk))));
    parts.extend(found.growth_bytes_per_day.map(|growth| format!("grows by {} a day", bytes(growth))));
    parts.extend(found.receive_cpu_seconds.map(|seconds| format!("{seconds:.1} s CPU to receive")));
    (!parts.is_empty()).then(|| Row::new("takes", Level::Ok).text(parts.join(", ")))
}
