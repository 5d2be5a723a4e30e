//! The copy held against the server: does it lack what is held?

use super::finding::Finding;
use codec::gtid::GtidState;

/// Judges what a server lacks of the copy. `waits_for_promotion`: it is read-only and not the source that the copy follows,
/// so it may be a replica that is only behind. The source itself is behind nobody, and is made read-only before a rescue.
pub fn examine(lacked: &GtidState, waits_for_promotion: bool) -> Finding {
    if lacked.is_empty() {
        return Finding::ok("history: it has every transaction that the copy holds from before");
    }
    let what = format!("history: it lacks transactions that the copy holds: {}", lacked.to_line());
    if waits_for_promotion {
        return Finding::warning(what).because(
            "it is read-only, so it may be a replica that is only behind; if it is promoted like this, binlogd rescue hands them over",
        );
    }
    Finding::error(what).because(
        "it crashed and lost the end of its log, or was promoted without it: binlogd rescue DATA_DIR --to mysql://… --dry-run \
         lists them, and without --dry-run hands them over; best before anything else is written to it",
    )
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;
    use codec::ServerKind;

    #[test]
    fn what_is_lacked_is_told_exactly() {
        let lacked = GtidState::parse(ServerKind::MySql, "3e11fa47-71ca-11e1-9e33-c80aa9429562:5-7").unwrap();
        let source = examine(&lacked, false);
        assert_eq!(source.level, Level::Error);
        assert!(source.what.ends_with("3e11fa47-71ca-11e1-9e33-c80aa9429562:5-7"));
        assert!(source.why.contains("binlogd rescue"));
        assert_eq!(examine(&lacked, true).level, Level::Warning);
        assert_eq!(examine(&GtidState::empty(ServerKind::MySql), false).level, Level::Ok);
    }
}
