//! The end of the copy held against the server's binary logs: does it go on there?

use super::finding::Finding;
use codec::gtid::GtidState;

/// What the server's logs are to the copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Continuation {
    /// The copy goes on where it ends.
    GoesOn,
    /// The server purged what comes next.
    Gap {
        /// What the copy needs next: a place, or a GTID set.
        needed: String,
        /// The oldest file that the server has.
        oldest: String,
        /// What is between the two by GTID; empty when that is not known, or is what is needed.
        missing: GtidState,
    },
    /// The same server no longer has the place at which the copy ends.
    LostItsEnd {
        /// That place.
        end: String,
        /// What it lacks by GTID; empty when that is not known.
        lacked: GtidState,
    },
    /// The same server has another file of that name.
    Anew {
        /// The name.
        file: String,
    },
    /// What follows on the server has no GTID, and with `gtid_mode = ON` it sends that to nobody.
    Anonymous {
        /// Where the copy ends.
        end: String,
    },
    /// The server cannot read what follows in its own file.
    Unreadable {
        /// Where the copy ends.
        end: String,
        /// Its words.
        message: String,
    },
    /// It did not let itself be looked at.
    Unknown(
        /// Its words.
        String,
    ),
}

/// Judges it. `gap_is_recorded`: the configuration says that a gap is passed (`on_gap = "record"`).
pub fn examine(continuation: &Continuation, gap_is_recorded: bool) -> Finding {
    match continuation {
        Continuation::GoesOn => Finding::ok("logs: the copy can go on where it ends"),
        Continuation::Gap { needed, oldest, missing } => {
            let gtids = match missing.is_empty() {
                true => String::new(),
                false => format!(", and so not {}", missing.to_line()),
            };
            let what =
                format!("logs: a gap: the source no longer has {needed}{gtids}; its oldest file is {oldest}");
            if gap_is_recorded {
                return Finding::warning(what).because(
                    "as on_gap = \"record\" says, a new timeline begins at the oldest file, and what is missing is recorded",
                );
            }
            Finding::error(what).because(
                "binlogd stops here, so that somebody decides. Nothing of the copy is lost. To go on without what is missing \
                 set on_gap = \"record\"; and keep the source's logs longer than binlogd may be down",
            )
        }
        Continuation::LostItsEnd { end, lacked } => {
            let gtids = match lacked.is_empty() {
                true => String::new(),
                false => format!("; it lacks {}", lacked.to_line()),
            };
            Finding::error(format!("logs: the source no longer has {end}, where the copy ends{gtids}")).because(
                "it crashed and lost the end of its log, or was put back to an earlier state. The copy keeps its own, and the \
                 next start begins a new timeline: binlogd rescue DATA_DIR --to mysql://… --dry-run lists what the source \
                 lacks; hand it over before anything else is written to it",
            )
        }
        Continuation::Anew { file } => Finding::warning(format!("logs: the source's {file} is not the one that the copy holds"))
            .because(
                "it began its logs anew (RESET BINARY LOGS AND GTIDS, RESET MASTER), or was put back to an earlier state. The \
                 copy is kept, and the next start begins a new timeline",
            ),
        Continuation::Anonymous { end } => Finding::error(format!(
            "logs: the source does not send what follows {end}, where the copy ends: transactions without a GTID"
        ))
        .because("gtid_mode was set to ON before binlogd had them. Let binlogd catch up between these two statements")
        .fixed_by("SET GLOBAL gtid_mode = ON_PERMISSIVE;\nSET GLOBAL gtid_mode = ON;"),
        Continuation::Unreadable { end, message } => {
            Finding::error(format!("logs: the source cannot read its own file behind {end}, where the copy ends: {message}"))
                .because(match gap_is_recorded {
                    true => {
                        "if that lasts, binlogd goes on with the next file in a new timeline and records what is missing, as \
                         on_gap = \"record\" says"
                    }
                    false => {
                        "no replica can read on there. Repair the file; or keep a copy of it and set on_gap = \"record\": \
                         binlogd then goes on with the next file in a new timeline and records what is missing"
                    }
                })
        }
        Continuation::Unknown(why) => {
            Finding::warning("logs: whether the copy can go on is not known").because(why.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;
    use codec::ServerKind;

    #[test]
    fn a_gap_and_a_lost_end_are_errors() {
        let gap = Continuation::Gap {
            needed: "b.000001:157".to_owned(),
            oldest: "b.000005".to_owned(),
            missing: GtidState::parse(ServerKind::MySql, "3e11fa47-71ca-11e1-9e33-c80aa9429562:8").unwrap(),
        };
        let stopped = examine(&gap, false);
        assert!(stopped.level == Level::Error && stopped.why.contains("on_gap = \"record\""), "{stopped:?}");
        assert!(stopped.what.contains("no longer has b.000001:157, and so not 3e11fa47-"), "{stopped:?}");
        assert_eq!(examine(&gap, true).level, Level::Warning);
        let text = "3e11fa47-71ca-11e1-9e33-c80aa9429562:5-7";
        let lacked = GtidState::parse(ServerKind::MySql, text).unwrap();
        let lost = examine(&Continuation::LostItsEnd { end: "b.000001:900".to_owned(), lacked }, false);
        assert!(lost.level == Level::Error && lost.what.ends_with(text), "{lost:?}");
        assert_eq!(examine(&Continuation::GoesOn, false).level, Level::Ok);
    }
}
