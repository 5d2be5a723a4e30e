//! What was purged or cannot be read above before it came here.

use super::above_error::AboveError;
use crate::attempt::ask::Attempt;
use crate::attempt::attempt_error::{AttemptError, told};
use crate::attempt::copy::HeldCopy;
use binlog::Position;
use binlog::timeline::{Reason, Timeline};
use codec::BinlogName;
use codec::gtid::GtidState;
use config::OnGap;
use source::identify::SourceIdentity;

/// What may be lacking here when a timeline begins as it began above.
#[derive(Default)]
pub(super) struct Before<'a> {
    /// The timeline that was received last, of which nothing is left there.
    pub(super) left: Option<&'a Timeline>,
    /// One before it cannot be read there.
    pub(super) is_unread: bool,
    /// Why what is lacking may come after all.
    pub(super) doubt: Option<AboveError>,
}

impl Attempt<'_> {
    /// What was purged above before it came here, or cannot be read there, for the record of the timeline that `begins`: of that one, and
    /// of what was `before`.
    ///
    /// # Errors
    /// The doubt, and without one [`AttemptError::Gap`], where that is to stop this copy; the peers are asked first.
    pub(super) fn missing_below(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
        before: &Before<'_>,
        begins: &Timeline,
    ) -> Result<String, AttemptError> {
        let holding = copy.holding();
        let held = holding.as_ref().map(|holding| holding.gtids.clone()).unwrap_or_default();
        let end = holding.and_then(|holding| holding.end);
        let mut missing = never_came(before.left, begins, &held, end.as_ref());
        if let Some(lacking) = before.is_unread.then(|| not_read(begins, &held)).flatten() {
            add(&mut missing, lacking);
        }
        let Some(missing) = missing else { return Ok(begins.missing.clone()) };
        self.complete_before_gap(copy, source)?;
        if self.upstream.config.on_gap != OnGap::Record {
            if let Some(doubt) = &before.doubt {
                return Err(doubt.clone().into());
            }
            let needed = end.map_or_else(|| begins.first_file.clone(), |end| end.to_string());
            let oldest = begins.purged.last().map_or(&begins.first_file, |line| &line.through);
            return Err(AttemptError::Gap {
                needed,
                oldest: format!("behind {oldest}"),
                missing: told(&missing),
            });
        }
        let mut all = GtidState::parse(begins.server_kind, &begins.missing).ok();
        add(&mut all, missing);
        Ok(all.unwrap_or_default().to_record())
    }
}

/// Sets of two kinds of server are of two histories: then the newer one counts.
fn add(all: &mut Option<GtidState>, more: GtidState) {
    if all.as_mut().is_none_or(|all| all.union_with(&more).is_err()) {
        *all = Some(more);
    }
}

/// GTIDs that were purged above and are not `held` here: of the timeline that `begins`, and of the one that is written here up to `end`,
/// of which nothing is `left` above. Empty where something is lacking and nobody knows which; `None` where nothing is.
fn never_came(
    left: Option<&Timeline>,
    begins: &Timeline,
    held: &GtidState,
    end: Option<&Position>,
) -> Option<GtidState> {
    let mut missing: Option<GtidState> = None;
    for (info, is_new) in left.map(|left| (left, false)).into_iter().chain([(begins, true)]) {
        let Some(line) = info.purged.last() else { continue };
        let purged = GtidState::parse(info.server_kind, &line.gtids).unwrap_or_default();
        let lacking = match info.reason {
            // The same numbers mean other transactions.
            Reason::First | Reason::SourceReset | Reason::Stranger if is_new => purged.clone(),
            _ if is_new => purged.subtract(&held.subtract(&info.lacked())),
            _ => purged.subtract(held),
        };
        let number = |name: &str| BinlogName::parse(name).map(|name| name.number()).ok();
        let is_behind = || end.is_some_and(|end| number(&end.file) < number(&line.through));
        if lacking.is_empty() && (!purged.is_empty() || !(is_new || is_behind())) {
            continue;
        }
        add(&mut missing, lacking);
    }
    missing
}

/// What was held above when a timeline began there and is not `held` here; `None` where nothing is lacking, as far as GTIDs tell.
fn not_read(begins: &Timeline, held: &GtidState) -> Option<GtidState> {
    let before = GtidState::parse(begins.server_kind, &begins.gtid_before).unwrap_or_default();
    let lacking = before.subtract(held);
    (before.is_empty() || !lacking.is_empty()).then_some(lacking)
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::purge::purged::Purged;
    use binlog::testing::first_timeline;
    use codec::ServerKind;

    const A: &str = "aaaaaaaa-0000-0000-0000-000000000001";

    #[test]
    fn what_was_purged_above_before_it_came_here_is_a_gap() {
        let set = |last: u32| GtidState::parse(ServerKind::MySql, &format!("{A}:1-{last}")).unwrap();
        let timeline = |reason, through: &str, gtids: &str| {
            let line = Purged {
                from: "b.000001".into(),
                through: through.into(),
                files: 1,
                bytes: 1,
                gtid_before: None,
                gtids: gtids.into(),
                at: String::new(),
                why: String::new(),
                removed: true,
            };
            let purged = if through.is_empty() { Vec::new() } else { vec![line] };
            Timeline { reason, purged, ..first_timeline(A) }
        };
        let gtids = |last: u32| set(last).to_record();
        let whole = timeline(Reason::SourceChanged, "", "");
        let end = Position::new("b.000003", 700);
        let never = |left: Option<&Timeline>, begins: &Timeline, held: u32| {
            never_came(left, begins, &set(held), Some(&end)).map(|missing| missing.to_record())
        };
        assert_eq!(never(None, &whole, 5), None);
        let left = timeline(Reason::First, "b.000004", &gtids(9));
        assert_eq!(never(Some(&left), &whole, 9), None, "it came before it was purged");
        assert_eq!(never(Some(&left), &whole, 5), Some(format!("{A}:6-9")));
        let begins = timeline(Reason::SourceChanged, "b.000002", &gtids(12));
        assert_eq!(never(Some(&left), &begins, 5), Some(format!("{A}:6-12")));
        let reset = timeline(Reason::SourceReset, "b.000001", &gtids(2));
        assert_eq!(never(None, &reset, 9), Some(format!("{A}:1-2")), "the same numbers, other transactions");
        let fork =
            Timeline { source_lacks: format!("{A}:4-9"), ..timeline(Reason::Fork, "b.000004", &gtids(5)) };
        assert_eq!(never(None, &fork, 9), Some(format!("{A}:4-5")), "the source has given them anew");
        // Without GTIDs the names tell.
        let (behind, level) =
            (timeline(Reason::First, "b.000004", ""), timeline(Reason::First, "b.000003", ""));
        assert_eq!(
            never_came(Some(&behind), &whole, &GtidState::default(), Some(&end)),
            Some(GtidState::default())
        );
        assert_eq!(never_came(Some(&level), &whole, &GtidState::default(), Some(&end)), None);
    }
}
