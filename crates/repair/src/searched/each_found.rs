//! Every transaction that is asked for, one after another, with the file that it stands in.

use super::sources::{SearchedFile, SearchedSource, SearchedTimeline};
use binlog::storage::ReadFile;
use points::criteria::Criteria;
use points::transaction::Transaction;
use status::units;

/// Where a transaction was found.
#[derive(Clone, Copy)]
pub struct FoundAt<'a> {
    /// Its source.
    pub source: &'a SearchedSource,
    /// Its timeline.
    pub timeline: &'a SearchedTimeline,
    /// Its file.
    pub searched: &'a SearchedFile,
    /// The same, to be read.
    pub file: &'a dyn ReadFile,
}

/// How a search went.
#[derive(Debug, Default)]
pub struct Outcome {
    /// So many were found.
    pub count: u64,
    /// There may be more than `limit`.
    pub is_enough: bool,
    /// Why not everything could be searched; empty when all was.
    pub errors: Vec<String>,
    /// Of so many nobody can tell whether they are asked for.
    pub undecided: u64,
}

/// Gives them to `take`, `limit` of them at most where it is not 0.
pub fn each_found(
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
                        outcome.errors.push(searched.failed(timeline, &error));
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
                        outcome.errors.push(searched.failed(timeline, &error));
                    }
                }
            }
        }
    }
    outcome
}

impl Outcome {
    /// Whether something could not be searched.
    pub fn failed(&self) -> bool {
        !self.errors.is_empty()
    }

    /// That there are transactions of which nobody can tell; `None` where there are none.
    pub fn undecided_in_words(&self) -> Option<String> {
        let count = units::count(self.undecided);
        (self.undecided > 0).then(|| {
            format!(
                "of {count} more transactions nobody can tell whether they are meant: their rows cannot be counted, or a part \
                 is too large to be opened"
            )
        })
    }
}
