//! Which peers are to be looked at for what they hold of older timelines, and whether a thread does so: one a source.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Of a source: which peers are to be looked at. Its thread, of which there is one at most, takes them from here.
#[derive(Debug, Clone, Default)]
pub(crate) struct OlderLook(Arc<Mutex<Wanted>>);

#[derive(Debug, Default)]
struct Wanted {
    /// By their numbers.
    peers: BTreeSet<usize>,
    /// The thread is there.
    runs: bool,
}

impl OlderLook {
    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds peers; true when a thread is to be started for them.
    pub(crate) fn want(&self, which: &[usize]) -> bool {
        let mut wanted = self.lock();
        wanted.peers.extend(which);
        !std::mem::replace(&mut wanted.runs, true)
    }

    /// The thread could not be started.
    pub(crate) fn failed(&self) {
        self.lock().runs = false;
    }

    /// The peers that were added since; `None` when the thread has nothing to do any more, and ends.
    pub(crate) fn take(&self, has_others: bool) -> Option<BTreeSet<usize>> {
        let mut wanted = self.lock();
        wanted.runs = has_others || !wanted.peers.is_empty();
        wanted.runs.then(|| std::mem::take(&mut wanted.peers))
    }

    /// Whether peers were added since.
    pub(crate) fn has_news(&self) -> bool {
        !self.lock().peers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_thread_and_it_ends_when_nobody_is_left() {
        let look = OlderLook::default();
        assert!(look.want(&[0, 1]));
        assert!(!look.want(&[1, 2]) && look.has_news(), "the thread takes it");
        assert_eq!(look.take(false), Some(BTreeSet::from([0, 1, 2])));
        assert_eq!(look.take(true), Some(BTreeSet::new()), "it looks at some again");
        assert_eq!(look.take(false), None);
        assert!(look.want(&[0]), "another one begins");
        look.failed();
        assert!(look.want(&[0]));
    }
}
