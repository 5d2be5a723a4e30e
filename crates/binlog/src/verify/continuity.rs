//! One file against the next.

use super::super::scan::FileScan;
use super::report::{FileEnd, FileReport};
use codec::ServerKind;
use codec::event::{EventType, FormatDescription};
use codec::gtid::{GtidState, MariadbGtid, MariadbGtidState};

/// The longest text of a GTID set in a message, in characters.
const GTID_CHARACTERS_MAX: usize = 300;

/// The file walked before, as far as the next one must continue it.
pub(super) struct Previous {
    pub(super) name: String,
    pub(super) scan: FileScan,
}

/// What is known of the next file before it is walked.
pub(super) struct Next<'a> {
    pub(super) name: &'a str,
    /// `None` when it has none yet, or it cannot be read.
    pub(super) format: Option<FormatDescription>,
}

/// Judges how a sealed file ends whose events are all sound.
pub(super) fn sealed_end(scan: &FileScan, next: Option<&Next<'_>>, report: &mut FileReport) {
    let next_name = next.map_or("", |next| next.name);
    match (&scan.rotates_to, scan.last_event) {
        (Some(named), Some(EventType::ROTATE)) => {
            if named != next_name {
                let what = format!("its ROTATE event names {named:?}, but the next file is {next_name}");
                report.problem(None, what);
            }
            report.end = FileEnd::Rotate { next: named.clone() };
            return;
        }
        (Some(named), _) => {
            report.problem(None, format!("its ROTATE event to {named:?} is not its last event"));
        }
        (None, Some(EventType::STOP)) => {
            report.end = FileEnd::Stop;
            return;
        }
        (None, _) => {}
    }
    report.end = FileEnd::None;
    let after = report.bytes.saturating_sub(scan.boundary);
    let inside = if after > 0 { format!(", {after} bytes into a transaction") } else { String::new() };
    match next.and_then(|next| next.format.as_ref()) {
        // A server sets the time of creation only in the first file after its start (`created` in
        // `Format_description_event`): a file that a rotation began follows a ROTATE event.
        Some(format) if format.created == 0 => report.problem(
            Some(report.bytes),
            format!(
                "it ends without ROTATE{inside}, and the source did not restart before {next_name}: its end is missing"
            ),
        ),
        _ => report.notes.push(format!("it ends without ROTATE or STOP{inside}: the source crashed")),
    }
}

/// Holds the GTIDs that a file says were executed before it against those at the end of the file before it.
///
/// MySQL may begin a file while a transaction of the one before, such as an XA COMMIT, does not count as executed yet (MySQL's bug
/// 118797). `uncounted` holds these: later files may count them or not, as MySQL forgets them where it crashes just then.
pub(super) fn gtids(
    previous: &Previous,
    scan: &FileScan,
    uncounted: &mut GtidState,
    report: &mut FileReport,
) {
    let Some(stated) = &scan.gtids_before else { return };
    if previous.scan.damage.is_some() {
        report
            .notes
            .push(format!("its GTIDs were not compared with those of {}, which is damaged", previous.name));
        return;
    }
    if previous.scan.gtids_before.is_none() {
        return; // A server without GTIDs until now.
    }
    let reached = &previous.scan.gtids;
    if stated != reached {
        compare(previous, scan, stated, uncounted, report);
    }
    // Under a GTID that the source had forgotten it may have written another transaction.
    let written = scan.gtids.subtract(stated);
    let again = uncounted.subtract(&uncounted.subtract(&written));
    if !again.is_empty() {
        report.problem(None, format!("a repeat: it holds {} once more, as earlier files do", text(&again)));
    }
}

fn compare(
    previous: &Previous,
    scan: &FileScan,
    stated: &GtidState,
    uncounted: &mut GtidState,
    report: &mut FileReport,
) {
    let reached = &previous.scan.gtids;
    let event = match stated.kind() {
        ServerKind::MySql => EventType::PREVIOUS_GTIDS,
        ServerKind::MariaDb => EventType::MARIADB_GTID_LIST,
    };
    let ahead = stated.subtract(reached).subtract(uncounted);
    if !ahead.is_empty() {
        report.problem(
            None,
            format!(
                "a gap: its {event} holds {}, which {} does not end with: transactions between the two are missing",
                text(&ahead),
                previous.name
            ),
        );
    }
    let mut behind = reached.subtract(stated).subtract(uncounted);
    if let (GtidState::Mariadb(lost), GtidState::Mariadb(kept)) = (&behind, stated) {
        let (deleted, lost) = deleted_domains(lost, kept);
        if !deleted.is_empty() {
            report.notes.push(format!(
                "its {event} no longer has {}: the source ran FLUSH BINARY LOGS DELETE_DOMAIN_ID",
                text(&GtidState::Mariadb(deleted))
            ));
        }
        behind = GtidState::Mariadb(lost);
    }
    if behind.is_empty() {
        return;
    }
    if behind.kind() == ServerKind::MySql && is_begun_by_rotation(previous, scan, &report.name) {
        report.notes.push(format!(
            "its {event} lacks {}, which {} ends with: MySQL began the file before it counted them, as it does with an XA COMMIT \
             now and then (MySQL's bug 118797); nothing is missing",
            text(&behind),
            previous.name
        ));
        // Of one kind, so they can be joined.
        let _ = uncounted.union_with(&behind);
    } else {
        report.problem(
            None,
            format!(
                "a repeat: its {event} lacks {}, which {} ends with: the source may have written other transactions under \
                 these GTIDs",
                text(&behind),
                previous.name
            ),
        );
    }
}

/// Whether the server that ended the file before began this one without a restart between: nobody else can have written meanwhile.
fn is_begun_by_rotation(previous: &Previous, scan: &FileScan, name: &str) -> bool {
    previous.scan.last_event == Some(EventType::ROTATE)
        && previous.scan.rotates_to.as_deref() == Some(name)
        && scan.format.as_ref().is_some_and(|format| format.created == 0)
}

/// Parts what is lost into whole domains, which an operator can delete from MariaDB's state, and the rest.
fn deleted_domains(lost: &MariadbGtidState, kept: &MariadbGtidState) -> (MariadbGtidState, MariadbGtidState) {
    let is_kept = |gtid: &MariadbGtid| kept.positions().any(|position| position.domain == gtid.domain);
    let (mut deleted, mut rest) = (MariadbGtidState::new(), MariadbGtidState::new());
    for gtid in lost.list() {
        if is_kept(&gtid) { rest.insert(gtid) } else { deleted.insert(gtid) }
    }
    (deleted, rest)
}

fn text(set: &GtidState) -> String {
    let line = match set {
        GtidState::Mysql(set) => set.to_line(),
        GtidState::Mariadb(state) => state.binlog_state(),
    };
    match line.char_indices().nth(GTID_CHARACTERS_MAX) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}
