//! The GTID sets of one source, published by its receiver and read by anybody.
//!
//! A set can have millions of intervals, which take milliseconds to copy and more to turn into text. The receiver, whose
//! acknowledgements somebody waits for, must not wait for that. So it adds to a small set of what is *recent*, under a lock
//! that a reader takes only to put an empty one in its place; what is recent goes into the large set among the readers, under
//! a lock of theirs.

use super::lock::lock;
use codec::gtid::GtidState;
use std::sync::{Arc, Mutex};

/// The transactions at two of the rungs, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GtidRungs {
    /// Transactions whose end is at or below the durable position.
    pub durable: Arc<GtidState>,
    /// Transactions whose end is at or below the acknowledged position.
    pub acknowledged: Arc<GtidState>,
}

/// What a receiver changes at two of the rungs.
#[derive(Debug, Default)]
pub struct GtidChanges {
    /// As [`GtidRungs::durable`].
    pub durable: GtidChange,
    /// As [`GtidRungs::acknowledged`].
    pub acknowledged: GtidChange,
}

/// What has become of one set since a reader last looked.
#[derive(Debug, Default)]
pub struct GtidChange {
    /// Another set is in its place.
    replaced: Option<Arc<GtidState>>,
    /// Added since then.
    recent: GtidState,
}

impl GtidChange {
    /// Adds the transactions of a later part of the stream. Allocates only where a small set does.
    pub fn append(&mut self, later: &GtidState) {
        // A stream of one source cannot mix the two kinds of GTID, and if it did the bytes would still be right.
        let _ = self.recent.append(later);
    }

    /// Puts another set in the place of all that was before.
    pub fn replace(&mut self, set: Arc<GtidState>) {
        self.recent.clear();
        self.replaced = Some(set);
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.replace(Arc::default());
    }
}

/// The large sets, among the readers.
#[derive(Default)]
struct Known {
    sets: GtidRungs,
    /// Empty sets that change places with what is recent, and keep their memory.
    spare: [GtidState; 2],
}

/// The sets of one source.
#[derive(Default)]
pub(crate) struct PublishedGtids {
    /// The receiver waits for this lock: it is never held for more than an exchange.
    changes: Mutex<GtidChanges>,
    /// Taken before the other one.
    known: Mutex<Known>,
}

impl PublishedGtids {
    /// For the receiver.
    pub(crate) fn change(&self, change: impl FnOnce(&mut GtidChanges)) {
        change(&mut lock(&self.changes));
    }

    /// Both sets at one moment. As long as nobody keeps an answer, the next one costs what was added since.
    pub(crate) fn read(&self) -> GtidRungs {
        let mut known = lock(&self.known);
        let Known { sets, spare: [durable, acknowledged] } = &mut *known;
        let replaced = {
            let mut changes = lock(&self.changes);
            std::mem::swap(&mut changes.durable.recent, durable);
            std::mem::swap(&mut changes.acknowledged.recent, acknowledged);
            (changes.durable.replaced.take(), changes.acknowledged.replaced.take())
        };
        fold(&mut sets.durable, replaced.0, durable);
        fold(&mut sets.acknowledged, replaced.1, acknowledged);
        sets.clone()
    }
}

fn fold(set: &mut Arc<GtidState>, replaced: Option<Arc<GtidState>>, recent: &mut GtidState) {
    if let Some(replaced) = replaced {
        *set = replaced;
    }
    if !recent.is_empty() {
        let _ = Arc::make_mut(set).append(recent);
        recent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::gtid::GtidSet;

    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn set(numbers: &str) -> GtidState {
        GtidState::from(format!("{UUID}:{numbers}").parse::<GtidSet>().unwrap())
    }

    fn large() -> Arc<GtidState> {
        let mut set = GtidSet::new();
        for n in 0..1_500_000 {
            set.insert_interval(UUID.parse().unwrap(), Default::default(), 10 + 2 * n, 10 + 2 * n);
        }
        Arc::new(set.into())
    }

    #[test]
    fn both_sets_are_seen_together_and_what_was_before_is_replaced() {
        let gtids = PublishedGtids::default();
        assert_eq!(gtids.read(), GtidRungs::default());
        gtids.change(|gtids| {
            gtids.durable.append(&set("1-5"));
            gtids.acknowledged.append(&set("1-3"));
        });
        let found = gtids.read();
        assert_eq!((&*found.durable, &*found.acknowledged), (&set("1-5"), &set("1-3")));
        gtids.change(|gtids| gtids.durable.append(&set("6")));
        gtids.change(|gtids| {
            gtids.durable.replace(Arc::new(set("10")));
            gtids.durable.append(&set("11"));
            gtids.acknowledged.clear();
        });
        let found = gtids.read();
        assert_eq!((&*found.durable, &*found.acknowledged), (&set("10-11"), &GtidState::default()));
    }

    /// A reader that is busy with its sets keeps nobody from publishing, and the next reader sees what was published.
    #[test]
    fn a_receiver_never_waits_for_a_reader() {
        let gtids = PublishedGtids::default();
        gtids.change(|gtids| gtids.durable.replace(Arc::new(set("1"))));
        let busy = lock(&gtids.known);
        gtids.change(|gtids| gtids.durable.append(&set("2")));
        drop(busy);
        assert_eq!(*gtids.read().durable, set("1-2"));
    }

    /// The longest time that publishing takes while others read all of a large set and make text of it.
    #[test]
    #[ignore = "a measurement"]
    fn publishing_while_others_read() {
        use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
        use std::time::{Duration, Instant};
        let gtids = PublishedGtids::default();
        gtids.change(|gtids| gtids.durable.replace(large()));
        let done = AtomicBool::new(false);
        for readers in [0, 1, 4] {
            let mut times: Vec<Duration> = Vec::new();
            std::thread::scope(|scope| {
                for _ in 0..readers {
                    scope.spawn(|| {
                        while !done.load(Relaxed) {
                            std::hint::black_box(gtids.read().durable.to_line());
                        }
                    });
                }
                let end = Instant::now() + Duration::from_secs(5);
                let next = set("5000000");
                while Instant::now() < end {
                    let began = Instant::now();
                    gtids.change(|gtids| gtids.durable.append(&next));
                    times.push(began.elapsed());
                    std::thread::sleep(Duration::from_micros(500));
                }
                done.store(true, Relaxed);
            });
            done.store(false, Relaxed);
            times.sort();
            let at = |part: usize| times[times.len() * part / 1000];
            let longest = times[times.len() - 1];
            println!("{readers} readers: median {:?}, p99.9 {:?}, longest {longest:?}", at(500), at(999));
        }
    }

    /// Neither a question nor what is added since the last one costs a copy of a large set.
    #[test]
    fn a_large_set_is_not_copied() {
        let gtids = PublishedGtids::default();
        gtids.change(|gtids| gtids.durable.replace(large()));
        let at = Arc::as_ptr(&gtids.read().durable);
        for n in 1..5u64 {
            gtids.change(|gtids| gtids.durable.append(&set(&n.to_string())));
            let found = gtids.read().durable;
            assert!(found.contains_state(&set(&format!("1-{n}"))));
            assert_eq!(Arc::as_ptr(&found), at);
        }
        let kept = gtids.read().durable;
        gtids.change(|gtids| gtids.durable.append(&set("6")));
        assert!(!kept.contains_state(&set("6")) && gtids.read().durable.contains_state(&set("6")));
    }
}
