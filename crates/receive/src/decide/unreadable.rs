//! A file that the source itself cannot read to its end.
//!
//! Servers write such files. A MariaDB that is killed while it writes leaves half an event, and so does a MySQL with
//! `binlog_error_action = IGNORE_ERROR` that cannot write on. No replica gets past it (error 1236), but the server has begun
//! another file since, which says what came before it: so it names what only the unreadable part has.
//!
//! | the next file says that before it there was | what happens |
//! |---|---|
//! | what the copy has (MariaDB) | binlogd goes on with that file at once: nothing is missing |
//! | more, and `on_gap = "record"` | the same when the source has refused in the same words for half a minute; what is missing is recorded |
//! | anything else, or there is no such file | it is tried again, and the message says what an operator can do |
//!
//! The file begins a timeline of its own, for what stands between is in no file of the copy.

use super::found::Refusals;
use super::plan::From;
use crate::attempt::ask::Attempt;
use crate::attempt::attempt_error::{AttemptError, in_short};
use crate::attempt::copy::HeldCopy;
use crate::attempt::open_timeline::OpenTimeline;
use crate::session::unproven::lacks_nothing_of;
use binlog::Position;
use codec::BinlogName;
use codec::ServerKind;
use codec::gtid::GtidState;
use codec::packet::ErrPacket;
use config::OnGap;
use source::complaint::{Complaint, ER_FATAL_READING_BINLOG};
use source::identify::SourceIdentity;
use source::link::Link;
use std::time::{Duration, Instant};
use wire::WireError;

/// Where nothing is missing, the source must have refused as often as this.
const TIMES_MIN: u32 = 3;

/// Where something is missing, it must have refused as often as this, and for as long as below: what passes by itself must
/// not become a gap.
const TIMES_BEFORE_GAP_MIN: u32 = 5;

/// See [`TIMES_BEFORE_GAP_MIN`].
const LASTED_BEFORE_GAP_MIN: Duration = Duration::from_secs(30);

/// The file after one that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Following {
    pub(crate) name: String,
    /// What it says that came before it; `None` when that does not tell what is missing.
    pub(crate) before: Option<GtidState>,
}

/// What is known of a place that cannot be passed.
#[derive(Debug)]
struct Case<'a> {
    file: &'a str,
    complaint: Complaint,
    kind: ServerKind,
    on_gap: OnGap,
    following: Option<&'a Following>,
    /// What only the unreadable part has.
    missing: Option<GtidState>,
}

impl Case<'_> {
    /// Nothing stands in the unreadable part that the source counts. MySQL's transactions need not have GTIDs.
    fn nothing_is_missing(&self) -> bool {
        self.kind == ServerKind::MariaDb && self.missing.as_ref().is_some_and(GtidState::is_empty)
    }

    /// Whether the operator wants the next file, and the source says what that leaves out.
    fn is_a_gap_to_record(&self) -> bool {
        // An error of the source's disk may pass.
        self.on_gap == OnGap::Record && self.complaint == Complaint::Unreadable && self.missing.is_some()
    }

    /// Whether to go on with the next file now.
    fn is_over(&self, refusals: &Refusals, now: Instant) -> bool {
        self.nothing_is_missing() && refusals.times >= TIMES_MIN
            || self.is_a_gap_to_record()
                && refusals.times >= TIMES_BEFORE_GAP_MIN
                && refusals.lasted(now) >= LASTED_BEFORE_GAP_MIN
    }

    /// What happens next, and what an operator can do.
    fn advice(&self) -> String {
        let file = self.file;
        let Some(Following { name: next, .. }) = self.following else {
            return format!(
                "It is tried again and again; {file} is the source's newest file. If it cannot be repaired, run FLUSH BINARY \
                 LOGS on the source: the next file says what is missing, and binlogd can continue with it"
            );
        };
        if self.nothing_is_missing() {
            return format!(
                "The source has gone on with {next}, and nothing is missing between the end of the copy and that file: \
                 binlogd goes on with it in a new timeline"
            );
        }
        let missing = self.missing.as_ref().map(|missing| match missing.is_empty() {
            true => "nothing that has a GTID".to_owned(),
            false => in_short(missing),
        });
        match missing {
            Some(missing) if self.is_a_gap_to_record() => format!(
                "The source has gone on with {next}. Only the part that it cannot read has {missing}. If that stays so for \
                 half a minute, binlogd goes on with {next} in a new timeline and records what is missing (on_gap = \"record\")"
            ),
            Some(missing) if self.complaint == Complaint::Unreadable => format!(
                "It is tried again and again. The source has gone on with {next}. Only the part that it cannot read has \
                 {missing}. If the file cannot be repaired, keep a copy of it, and set on_gap = \"record\": binlogd then goes \
                 on with {next} in a new timeline and records what is missing"
            ),
            missing => format!(
                "It is tried again and again. The source has gone on with {next}. {} If the file cannot be repaired, keep a \
                 copy of it, PURGE BINARY LOGS TO '{next}' on the source, and set on_gap = \"record\": binlogd then goes on \
                 with {next} in a new timeline",
                missing.map_or_else(
                    || "What only the part has that it cannot read, no GTID says.".to_owned(),
                    |missing| format!(
                        "Only the part that it cannot read has {missing}. An error of reading may pass."
                    ),
                )
            ),
        }
    }
}

impl Attempt<'_> {
    /// The source has everything before `at` as we do, and cannot read what follows. Gives the file to go on with if that is
    /// the answer.
    ///
    /// # Errors
    /// What to say and to try again, otherwise.
    pub(crate) fn examine_unreadable(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
        at: &Position,
        complaint: &ErrPacket,
    ) -> Result<From, AttemptError> {
        let now = self.upstream.clock.now();
        let refusals = copy.found.refused(at, &complaint.message, now);
        let following = self.file_after(copy, source, &at.file)?;
        let held = copy.timeline().map(|timeline| &timeline.gtids);
        let before = following.as_ref().and_then(|following| following.before.as_ref());
        let case = Case {
            file: &at.file,
            complaint: Complaint::of(&complaint.message),
            kind: source.kind,
            on_gap: self.upstream.config.on_gap,
            following: following.as_ref(),
            missing: before.zip(held).map(|(before, held)| before.subtract(held)),
        };
        if !case.is_over(&refusals, now) {
            let (at, message, advice) = (at.clone(), complaint.message.clone(), case.advice());
            return Err(AttemptError::Unreadable { at, message, advice });
        }
        let missing = case.missing.unwrap_or_default();
        let Some(Following { name: next, before: Some(before) }) = following else {
            unreachable!("what is missing is known by the next file's word");
        };
        let (source, words) = (&self.upstream.config.name, &complaint.message);
        if missing.is_empty() {
            tracing::warn!(
                source,
                "the source cannot read its own binary log behind {at}: {words}; going on with {next}: nothing that has a GTID is missing"
            );
        } else {
            tracing::error!(
                source,
                "the source cannot read its own binary log behind {at}: {words}; going on with {next}, without {}",
                missing.to_line()
            );
        }
        Ok(From::Behind { at: at.clone(), next, before })
    }

    /// The file after `file` on the source, if there is one.
    fn file_after(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
        file: &str,
    ) -> Result<Option<Following>, AttemptError> {
        let name = BinlogName::parse(file)?.successor();
        let (Some(name), Some(timeline)) = (name, copy.timeline()) else { return Ok(None) };
        let before = match self.beginning(copy, source, &name) {
            Ok(Link::Followed(next)) => next.gtids_before.filter(|before| goes_on_from(before, timeline)),
            Ok(_) => None,
            Err(WireError::Server { code: ER_FATAL_READING_BINLOG, message, .. }) => {
                if Complaint::of(&message) == Complaint::FileNotFound {
                    return Ok(None);
                }
                None
            }
            Err(error) => return Err(self.with_privilege(error)),
        };
        Ok(Some(Following { name, before }))
    }
}

/// Whether a file that began after `before` tells by that what it follows: it has GTIDs, and all that are held.
fn goes_on_from(before: &GtidState, timeline: &OpenTimeline) -> bool {
    !before.is_empty() && lacks_nothing_of(before, &timeline.gtids, &timeline.unspoken)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "aaaaaaaa-0000-0000-0000-000000000001";

    fn following(before: &str) -> Following {
        let before = GtidState::parse(ServerKind::MySql, before).unwrap();
        Following { name: "b.000008".to_owned(), before: Some(before) }
    }

    fn case<'a>(following: Option<&'a Following>, missing: Option<&str>) -> Case<'a> {
        Case {
            file: "b.000007",
            complaint: Complaint::Unreadable,
            kind: ServerKind::MySql,
            on_gap: OnGap::Record,
            following,
            missing: missing.map(|missing| GtidState::parse(ServerKind::MySql, missing).unwrap()),
        }
    }

    /// So many refusals, and the moment of the last one.
    fn refused(times: u32, seconds: u64) -> (Refusals, Instant) {
        let now = Instant::now();
        let mut refusals = Refusals::first(&Position::new("b.000007", 99), "truncated", now);
        refusals.times = times;
        (refusals, now + Duration::from_secs(seconds))
    }

    fn is_over(case: &Case<'_>, times: u32, seconds: u64) -> bool {
        let (refusals, now) = refused(times, seconds);
        case.is_over(&refusals, now)
    }

    #[test]
    fn a_gap_is_recorded_only_when_it_lasts_and_is_named_and_wanted() {
        let next = following(&format!("{UUID}:1-9"));
        let missing = format!("{UUID}:8-9");
        let gap = case(Some(&next), Some(&missing));
        assert!(is_over(&gap, 5, 30));
        assert!(!is_over(&gap, 4, 3_000) && !is_over(&gap, 500, 29), "often, and for long");
        let never = |case: Case<'_>| !is_over(&case, 500, 3_000);
        assert!(never(Case { on_gap: OnGap::Stop, ..case(Some(&next), Some(&missing)) }));
        assert!(never(Case { complaint: Complaint::ReadFailed, ..case(Some(&next), Some(&missing)) }));
        assert!(never(case(Some(&next), None)), "what is missing must be known");
        assert!(never(case(None, None)));
    }

    #[test]
    fn where_nothing_is_missing_on_mariadb_nobody_needs_to_decide() {
        let next =
            Following { name: "b.000008".to_owned(), before: Some(GtidState::empty(ServerKind::MariaDb)) };
        let nothing = |kind| Case {
            kind,
            on_gap: OnGap::Stop,
            missing: Some(GtidState::empty(ServerKind::MariaDb)),
            ..case(Some(&next), None)
        };
        assert!(is_over(&nothing(ServerKind::MariaDb), 3, 0));
        assert!(!is_over(&nothing(ServerKind::MariaDb), 2, 900));
        assert!(!is_over(&nothing(ServerKind::MySql), 500, 900), "its transactions need not have GTIDs");
    }

    #[test]
    fn the_advice_fits_the_case() {
        let next = following(&format!("{UUID}:1-9"));
        let missing = format!("{UUID}:8-9");
        let says = |case: Case<'_>, words: &[&str]| {
            let advice = case.advice();
            assert!(words.iter().all(|word| advice.contains(word)), "{words:?} in {advice:?}");
        };
        says(case(None, None), &["FLUSH BINARY LOGS"]);
        says(case(Some(&next), Some(&missing)), &["b.000008", &missing, "half a minute"]);
        let stop = Case { on_gap: OnGap::Stop, ..case(Some(&next), Some(&missing)) };
        says(stop, &["set on_gap = \"record\"", "b.000008", &missing]);
        says(case(Some(&next), None), &["PURGE BINARY LOGS TO 'b.000008'", "no GTID says"]);
        let passing = Case { complaint: Complaint::ReadFailed, ..case(Some(&next), Some(&missing)) };
        says(passing, &["PURGE BINARY LOGS TO 'b.000008'", "may pass", &missing]);
    }
}
