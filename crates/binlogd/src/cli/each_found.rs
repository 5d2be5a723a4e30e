//! Every transaction that is asked for, one after another, for verbs that need the file that it stands in.

use super::searched::{SearchedFile, SearchedSource, SearchedTimeline};
use super::units;
use binlog::storage::ReadFile;
use points::criteria::Criteria;
use points::transaction::Transaction;

/// Where a transaction was found.
#[derive(Clone, Copy)]
pub(super) struct FoundAt<'a> {
    pub(super) source: &'a SearchedSource,
    pub(super) timeline: &'a SearchedTimeline,
    pub(super) searched: &'a SearchedFile,
    /// The same, to be read.
    pub(super) file: &'a dyn ReadFile,
}

/// How a search went.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// So many were found.
    pub(super) count: u64,
    /// There may be more than `limit`.
    pub(super) is_enough: bool,
    /// Not everything could be searched; it was told why.
    pub(super) failed: bool,
    /// Of so many nobody can tell whether they are asked for.
    pub(super) undecided: u64,
}

/// Gives them to `take`, `limit` of them at most where it is not 0.
pub(super) fn each_found(
    sources: &[SearchedSource],
    criteria: &Criteria,
    limit: u64,
    take: &mut dyn FnMut(FoundAt<'_>, &Transaction),
) -> Outcome {
    let mut outcome = Outcome::default();
    for source in sources {
        for timeline in &source.timelines {
            for searched in &timeline.files {
                if outcome.is_enough {
                    return outcome;
                }
                let file = match searched.open() {
                    Ok(file) => file,
                    // It was purged while we looked.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                    Err(error) => {
                        searched.tell(timeline, &error);
                        outcome.failed = true;
                        continue;
                    }
                };
                let at = FoundAt { source, timeline, searched, file: &*file };
                let count = &mut outcome.count;
                let mut sink = |transaction: &Transaction| {
                    if limit != 0 && *count >= limit {
                        return false;
                    }
                    *count += 1;
                    take(at, transaction);
                    true
                };
                match searched.search(criteria, &mut sink) {
                    Ok(result) => {
                        let result = result.unwrap_or_default();
                        outcome.is_enough |= result.is_enough;
                        outcome.undecided += result.unknown;
                    }
                    Err(error) => {
                        searched.tell(timeline, &error);
                        outcome.failed = true;
                    }
                }
            }
        }
    }
    outcome
}

impl Outcome {
    /// Says on standard error what is to be known of the search.
    pub(super) fn tell(&self, limit: u64) {
        if self.undecided > 0 {
            errln!(
                "note: of {} more transactions nobody can tell whether they are meant: their rows cannot be counted, or a part \
                 is too large to be opened",
                units::count(self.undecided)
            );
        }
        if self.is_enough {
            errln!("note: stopped after {}; there may be more: --limit 0 takes all", units::count(limit));
        }
    }
}
