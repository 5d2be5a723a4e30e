//! A count that may not be known yet.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Nothing is known yet.
const UNKNOWN: u64 = u64::MAX;

/// Set by one thread now and then, read by anybody.
#[derive(Debug)]
pub struct KnownCount(AtomicU64);

impl Default for KnownCount {
    fn default() -> KnownCount {
        KnownCount(AtomicU64::new(UNKNOWN))
    }
}

impl KnownCount {
    /// From now on it is known.
    pub fn set(&self, count: u64) {
        self.0.store(count, Relaxed);
    }

    /// `None` before it is known.
    pub fn get(&self) -> Option<u64> {
        Some(self.0.load(Relaxed)).filter(|count| *count != UNKNOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_known_before_it_is_set() {
        let count = KnownCount::default();
        assert_eq!(count.get(), None);
        count.set(0);
        assert_eq!(count.get(), Some(0));
    }
}
