//! What a binlogd above cannot tell, and since when.

use super::above_error::AboveError;
use binlog::timeline::described::Descriptions;
use std::time::{Duration, Instant};

/// A timeline that cannot be read above is asked for again for so long before it is gone on without.
const UNREADABLE_MAX: Duration = Duration::from_secs(10);

/// So long is waited for an archive to say what it has of a timeline of which files were purged above.
const PAST_NOT_KNOWN_MAX: Duration = Duration::from_secs(300);

/// What it could not tell when it was asked last, each since when.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    /// The timelines that cannot be read, in words.
    unreadable: Option<(String, Instant)>,
    /// Its archive has not answered.
    past_not_known: Option<Instant>,
}

impl Doubts {
    /// It was asked, now. True when other timelines cannot be read than before.
    pub(super) fn seen(&mut self, above: &Descriptions, now: Instant) -> bool {
        self.past_not_known = (!above.is_past_known).then(|| self.past_not_known.unwrap_or(now));
        let unreadable = above.unreadable();
        if self.unreadable.as_ref().is_some_and(|(told, _)| *told == unreadable) {
            return false;
        }
        self.unreadable = (!unreadable.is_empty()).then_some((unreadable, now));
        self.unreadable.is_some()
    }

    /// Whether that is so for so long that it is no matter of a moment.
    pub(super) fn lasts(&self, doubt: &AboveError, now: Instant) -> bool {
        let (since, max) = match doubt {
            AboveError::PastNotKnown(_) => (self.past_not_known, PAST_NOT_KNOWN_MAX),
            _ => (self.unreadable.as_ref().map(|(_, since)| *since), UNREADABLE_MAX),
        };
        since.is_some_and(|since| now.saturating_duration_since(since) >= max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::timeline::described::Described;

    #[test]
    fn a_doubt_lasts_while_it_is_the_same_one() {
        let above = |why: Option<&str>, is_past_known| {
            let unreadable = why.map(str::to_owned);
            let name = "0001-x".to_owned();
            let of = Described { name, extent: None, is_pending: false, info: None, unreadable };
            Descriptions { timelines: vec![of], live: 0, is_past_known }
        };
        let (began, mut doubts) = (Instant::now(), Doubts::default());
        let at = |seconds| began + Duration::from_secs(seconds);
        let unreadable = |above: &Descriptions| AboveError::unreadable(&above.timelines[0]);
        let past = AboveError::PastNotKnown("0001-x".to_owned());
        assert!(
            doubts.seen(&above(Some("no"), false), at(0)) && !doubts.seen(&above(Some("no"), false), at(9))
        );
        assert!(!doubts.lasts(&unreadable(&above(Some("no"), false)), at(9)));
        assert!(doubts.lasts(&unreadable(&above(Some("no"), false)), at(10)));
        assert!(doubts.seen(&above(Some("another"), false), at(11)), "another reason is news");
        assert!(!doubts.lasts(&unreadable(&above(Some("another"), false)), at(20)));
        assert!(!doubts.lasts(&past, at(299)) && doubts.lasts(&past, at(300)));
        assert!(!doubts.seen(&above(None, true), at(301)), "nothing to tell");
        assert!(
            !doubts.lasts(&past, at(900)) && !doubts.lasts(&unreadable(&above(Some("no"), true)), at(900))
        );
    }
}
