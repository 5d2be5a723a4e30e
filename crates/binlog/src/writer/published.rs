//! The end of what readers may have: one position a source, and a wake-up that costs nothing while nobody waits.
//!
//! The receiving thread publishes, readers look and sleep. A reader is never waited for: the position is an atomic number,
//! and a lock is taken only when another file begins. The receiving thread wakes one reader at most, however many there are,
//! and that one starts what wakes the others.
//!
//! Who passes a wake-up on to sleepers that have seen the news already wakes them for nothing, and they the others, without an
//! end. So sleepers who have not are set apart first, all of them by one call: they stay in `behind`, where each that is woken
//! wakes the next. Few are awake at a time that way, and what competes with the receiving thread for a processor is little.
//!
//! No wake-up is lost. Let a reader sleep that has seen the count `s`, and let the count be higher.
//!
//! 1. It counts itself in `waiting` before it asks the kernel to let it sleep, and the kernel compares the count again. The
//!    publisher counts up first and looks at `waiting` then. All of that is SeqCst, so one of the two sees the other: either the
//!    reader does not fall asleep, or the publisher wakes somebody who sleeps at `news`.
//! 2. Whoever is woken reads a count above `s`, and either sets the sleepers apart, or somebody has `spread` that count or a
//!    later one, whose call comes or came after the count was above `s`. The reader slept at `news` before that, so the call
//!    moves it.
//! 3. Whoever sets sleepers apart wakes some of `behind`, and whoever is woken wakes one more. So as long as somebody sleeps
//!    there, somebody is awake who is about to wake one. A sleeper whose time is up was not woken, and is counted on by nobody:
//!    the kernel tells the two apart.

use super::confirmations::Confirmations;
use crate::{Confirmed, Position};
use codec::BinlogName;
use codec::event::BINLOG_MAGIC;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Timespec};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Rows of readers, in each of which one wakes the next.
const ROWS: u32 = 4;

/// More readers than there are.
const ALL: u32 = u32::MAX >> 1;

/// The live file of a timeline, as readers may read it.
#[derive(Debug)]
pub struct Live {
    /// Folder of the timeline.
    pub timeline: PathBuf,
    /// Name of the file in it.
    pub file: Arc<str>,
    /// Counts up whenever the files below a reader may have become others: another timeline, or a copy that was opened again.
    pub generation: u64,
    end: AtomicU64,
}

impl Live {
    /// End of the bytes that readers may have: a boundary that is as safe as the operator asked for, and stands in the file.
    /// Once another file is the live one this is its end for good, and the file's size counts.
    pub fn end(&self) -> u64 {
        self.end.load(SeqCst)
    }
}

/// The end of what readers may have of one source.
#[derive(Debug, Default)]
pub struct Published {
    live: Mutex<State>,
    /// Counts up with everything that is published. Readers sleep here.
    news: AtomicU32,
    /// The last count of which all sleepers at `news` were set apart, or are about to be.
    spread: AtomicU32,
    /// Readers that have not seen the news sleep here until it is their turn. Its value says nothing.
    behind: AtomicU32,
    /// Readers that sleep, or are about to.
    waiting: AtomicU32,
    /// What readers say that they have made durable.
    confirmations: Confirmations,
    /// See [`Published::histories_stay`].
    histories: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    live: Option<Arc<Live>>,
    generation: u64,
}

impl Published {
    /// The live file now; `None` before there is one.
    pub fn live(&self) -> Option<Arc<Live>> {
        self.state().live.clone()
    }

    /// Held by who goes back to an older history, and by who purges, from the plan to the end: what is written is then what the
    /// plan says. Taken behind the purger's own gate, where both are.
    pub fn histories_stay(&self) -> MutexGuard<'_, ()> {
        self.histories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What readers say that they have made durable.
    pub fn confirmations(&self) -> &Confirmations {
        &self.confirmations
    }

    /// Up to where `wanted` different receivers have made `timeline` durable; `None` when there are fewer, and while another
    /// timeline is published, or nothing. `files` are those of the timeline, in order.
    pub fn confirmed(&self, timeline: &Path, wanted: u32, files: &[String]) -> Option<Confirmed> {
        self.confirmations.by(wanted, self.generation_of(timeline)?, files)
    }

    /// How many different receivers have made everything of `timeline` before `at` durable. `files` as before.
    pub fn confirmed_by(&self, timeline: &Path, at: &Position, files: &[String]) -> u32 {
        self.generation_of(timeline).map_or(0, |generation| self.confirmations.count(at, generation, files))
    }

    fn generation_of(&self, timeline: &Path) -> Option<u64> {
        let state = self.state();
        state.live.as_ref().filter(|live| live.timeline == timeline).map(|live| live.generation)
    }

    /// Counts up with everything that is published. Taken before a look at what there is, it tells [`Published::wait`] what was
    /// seen.
    pub fn news(&self) -> u32 {
        self.news.load(SeqCst)
    }

    /// Sleeps until something is published after `seen`, or for `timeout`, or until [`Published::wake_all`]. It may come back
    /// early.
    pub fn wait(&self, seen: u32, timeout: Duration) {
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        self.waiting.fetch_add(1, SeqCst);
        let woken = futex::wait(&self.news, Flags::PRIVATE, seen, Some(&timeout));
        self.waiting.fetch_sub(1, SeqCst);
        // Whoever was woken passes that on; who found that there is news, or slept long enough, was not counted on.
        if !matches!(woken, Err(Errno::AGAIN | Errno::TIMEDOUT)) {
            self.pass_on();
        }
    }

    /// Wakes others, of those that have not seen the news.
    fn pass_on(&self) {
        let now = self.news();
        let is_later = |spread: u32| (now.wrapping_sub(spread).cast_signed() > 0).then_some(now);
        let sets_apart = self.spread.fetch_update(SeqCst, SeqCst, is_later).is_ok();
        if sets_apart {
            // Fails for addresses that are none only.
            let _ = futex::requeue(&self.news, Flags::PRIVATE, 0, ALL, &self.behind);
        }
        Self::wake(&self.behind, if sets_apart { ROWS } else { 1 });
    }

    /// Wakes every reader that sleeps, for it to look whether it is to end.
    pub fn wake_all(&self) {
        self.news.fetch_add(1, SeqCst);
        Self::wake(&self.news, ALL);
        Self::wake(&self.behind, ALL);
    }

    /// The copy is opened, goes on in another file, or on another timeline. Everything before `end` may be read; it is the
    /// boundary at which the copy ends. A file of which nothing may be read yet, by an `end` behind its magic, is not
    /// published: what was published before stays so, be it of an older timeline, for a reader can be placed there alone.
    pub fn is_at(&self, timeline: &Path, end: Option<&Position>) {
        let mut state = self.state();
        let readable = end.filter(|end| end.offset > BINLOG_MAGIC.len() as u64);
        match (&state.live, end) {
            (None, _) if readable.is_none() => return,
            (Some(live), _) if live.timeline != timeline && readable.is_none() => return,
            (Some(live), Some(end)) if live.timeline == timeline && live.file == end.file => {
                let shown = live.end();
                if shown == end.offset {
                    return;
                }
                if shown < end.offset {
                    return self.advance(live, end.offset);
                }
                // Somebody has cut the file from outside: nobody may go on in it as if nothing were.
                state.generation += 1;
            }
            (Some(live), Some(end)) if live.timeline == timeline && comes_later(&end.file, &live.file) => {
                if readable.is_none() {
                    return;
                }
            }
            // Among others: the live file is gone, and an older one of its timeline is the last.
            _ => state.generation += 1,
        }
        let generation = state.generation;
        state.live = readable.map(|end| {
            Arc::new(Live {
                timeline: timeline.to_owned(),
                file: end.file.clone(),
                generation,
                end: end.offset.into(),
            })
        });
        drop(state);
        self.tell();
    }

    /// Nothing may be read until [`Published::is_at`]: the log has failed. After a sync that failed, the page cache may give
    /// bytes that the disk does not have, or the disk others than were published.
    pub fn withdraw(&self) {
        let mut state = self.state();
        if state.live.take().is_some() {
            drop(state);
            self.tell();
        }
    }

    /// Whether `live` is still what readers read from, be it that another file of its timeline is the live one by now.
    pub fn is_current(&self, live: &Live) -> bool {
        self.state().live.as_ref().is_some_and(|now| now.generation == live.generation)
    }

    /// More of the live file may be read: everything before `end`, a boundary. `live` is what [`Published::live`] gave: the
    /// receiving thread keeps it, so that it never waits for a reader that holds a lock.
    pub fn advance(&self, live: &Live, end: u64) {
        if live.end.fetch_max(end, SeqCst) < end {
            self.tell();
        }
    }

    fn tell(&self) {
        self.news.fetch_add(1, SeqCst);
        if self.waiting.load(SeqCst) > 0 {
            Self::wake(&self.news, 1);
        }
    }

    fn wake(sleepers: &AtomicU32, most: u32) {
        // Fails for an address that is none only.
        let _ = futex::wake(sleepers, Flags::PRIVATE, most);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a file stands behind another one of its timeline. Names that say nothing stand in the order in which they come.
fn comes_later(file: &str, live: &str) -> bool {
    match (BinlogName::parse(file), BinlogName::parse(live)) {
        (Ok(file), Ok(live)) => file.base() != live.base() || file > live,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    fn at(offset: u64) -> Position {
        Position::new("b.000001", offset)
    }

    #[test]
    fn what_is_published_is_seen_and_never_goes_back() {
        let published = Published::default();
        let folder = Path::new("0001-a");
        assert!(published.live().is_none());
        published.is_at(folder, None);
        published.is_at(folder, Some(&at(100)));
        let live = published.live().unwrap();
        published.advance(&live, 200);
        published.advance(&live, 150);
        assert_eq!(live.end(), 200);
        published.is_at(folder, Some(&at(200)));
        assert!(Arc::ptr_eq(&live, &published.live().unwrap()), "nothing has changed");
        published.is_at(folder, Some(&Position::new("b.000002", 4)));
        assert!(Arc::ptr_eq(&live, &published.live().unwrap()), "nothing of it may be read yet");
        published.is_at(folder, Some(&Position::new("b.000002", 120)));
        let next = published.live().unwrap();
        assert_eq!((&*next.file, next.end(), next.generation), ("b.000002", 120, live.generation));
    }

    #[test]
    fn whatever_may_have_changed_below_a_reader_is_another_generation() {
        let published = Published::default();
        let (one, two) = (Path::new("0001-a"), Path::new("0002-b"));
        let mut seen = Vec::new();
        for (folder, end) in [
            (one, Some(at(100))),
            (one, Some(at(90))),
            (one, Some(at(4))),
            (two, None),
            (two, Some(at(4))),
            (two, Some(at(120))),
            (one, Some(at(90))),
        ] {
            published.is_at(folder, end.as_ref());
            seen.push(published.live().map(|live| (live.generation, live.end())));
        }
        assert_eq!(seen, [Some((1, 100)), Some((2, 90)), None, None, None, Some((4, 120)), Some((5, 90))]);
    }

    fn shown(published: &Published) -> Option<(String, String, u64, u64)> {
        published.live().map(|live| {
            (live.timeline.display().to_string(), live.file.to_string(), live.end(), live.generation)
        })
    }

    /// After a failover nobody can be placed in the new timeline before something of it is there.
    #[test]
    fn the_older_timeline_is_served_until_the_new_one_has_something() {
        let published = Published::default();
        let (one, two) = (Path::new("0001-a"), Path::new("0002-b"));
        published.is_at(one, Some(&at(100)));
        let before = shown(&published);
        published.is_at(two, None);
        published.is_at(two, Some(&at(4)));
        assert_eq!(shown(&published), before);
        published.is_at(two, Some(&at(120)));
        assert_eq!(shown(&published), Some(("0002-b".into(), "b.000001".into(), 120, 2)));
    }

    #[test]
    fn a_live_file_that_goes_back_within_a_timeline_is_another_generation() {
        let published = Published::default();
        let folder = Path::new("0001-a");
        let second = |offset| Position::new("b.000002", offset);
        published.is_at(folder, Some(&at(100)));
        published.is_at(folder, Some(&second(120)));
        let second_of = published.live().unwrap();
        // The newer file is gone: what readers have of it is not in the copy.
        published.is_at(folder, Some(&at(100)));
        assert!(!published.is_current(&second_of));
        assert_eq!(shown(&published), Some(("0001-a".into(), "b.000001".into(), 100, 2)));
        published.is_at(folder, Some(&second(120)));
        assert_eq!(shown(&published).map(|shown| shown.3), Some(2));
        published.is_at(folder, Some(&at(4)));
        assert_eq!(shown(&published), None, "nothing is left that could be read");
    }

    #[test]
    fn what_is_withdrawn_comes_back_as_another_generation() {
        let published = Published::default();
        let folder = Path::new("0001-a");
        published.is_at(folder, Some(&at(100)));
        let (live, news) = (published.live().unwrap(), published.news());
        published.withdraw();
        assert!(published.live().is_none() && !published.is_current(&live));
        assert_ne!(published.news(), news, "whoever sleeps is woken");
        published.is_at(folder, Some(&at(100)));
        assert_eq!(shown(&published), Some(("0001-a".into(), "b.000001".into(), 100, 2)));
        published.withdraw();
        published.withdraw();
    }

    /// Files of a new timeline may have the names of the older one's.
    #[test]
    fn a_confirmation_of_another_timeline_or_generation_counts_for_nothing() {
        let published = Published::default();
        let (one, two) = (Path::new("0001-a"), Path::new("0002-b"));
        let files = ["b.000001".to_owned()];
        let confirmed = |timeline| published.confirmed(timeline, 1, &files).map(|it| it.position().offset);
        let confirm = |offset| {
            let generation = published.live().unwrap().generation;
            published.confirmations().confirm(generation, "x", &at(offset));
        };
        published.is_at(one, Some(&at(100)));
        let first = published.live().unwrap().generation;
        confirm(100);
        assert_eq!((confirmed(one), confirmed(two)), (Some(100), None));
        assert_eq!(published.confirmed_by(one, &at(100), &files), 1);
        published.is_at(two, Some(&at(4)));
        assert_eq!((confirmed(one), confirmed(two)), (Some(100), None), "nothing of it is published");
        published.is_at(two, Some(&at(90)));
        published.confirmations().confirm(first, "x", &at(100));
        assert_eq!((confirmed(one), confirmed(two)), (None, None));
        confirm(90);
        assert_eq!(confirmed(two), Some(90));
        published.withdraw();
        assert_eq!(confirmed(two), None, "what is below readers is not known");
        published.is_at(two, Some(&at(90)));
        assert_eq!((confirmed(two), published.confirmed_by(two, &at(4), &files)), (None, 0));
    }

    /// Far longer than a test may take: only a wake-up ends the wait.
    const LONG: Duration = Duration::from_secs(600);

    fn all_sleep(published: &Published, readers: u32) {
        while published.waiting.load(SeqCst) < readers {
            thread::yield_now();
        }
    }

    /// Each is woken once by each news, or, where it fell asleep while the others were being set apart, twice.
    #[test]
    fn all_who_sleep_are_woken_by_one_and_seldom_for_nothing() {
        const READERS: u32 = 20;
        const NEWS: u64 = 20;
        /// Turns for others, in which whoever is woken for nothing would show.
        const TURNS: u32 = 1000;
        let published = Published::default();
        published.is_at(Path::new("0001-a"), Some(&at(10)));
        let live = published.live().unwrap();
        let woken = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..READERS {
                scope.spawn(|| {
                    loop {
                        let seen = published.news();
                        if live.end() == 10 + NEWS {
                            break;
                        }
                        published.wait(seen, LONG);
                        woken.fetch_add(1, SeqCst);
                    }
                });
            }
            for end in 11..=10 + NEWS {
                all_sleep(&published, READERS);
                (0..TURNS).for_each(|_| thread::yield_now());
                published.advance(&live, end);
            }
        });
        let (woken, most) = (woken.load(SeqCst) as u64, 2 * u64::from(READERS) * NEWS);
        assert!(woken <= most, "{woken} times somebody was woken, and at most {most} times it is of use");
        assert_eq!(published.waiting.load(SeqCst), 0);
    }

    /// Readers of all speeds, and whose time is up; what is published comes at any moment. Whoever misses the last news would
    /// sleep on.
    #[test]
    fn no_wake_up_is_lost() {
        let seed = std::env::var("BINLOGD_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed: u64 = seed.unwrap_or_else(|| u64::from(std::process::id()));
        println!("BINLOGD_TEST_SEED={seed} does the same again, as far as the threads' turns allow");
        let mut random = Random::new(seed);
        for round in 0..60 {
            let readers = 1 + random.below(12);
            let news = 1 + random.below(200);
            let published = Published::default();
            published.is_at(Path::new("0001-a"), Some(&at(10)));
            let live = published.live().unwrap();
            let (done, is_done) = std::sync::mpsc::channel();
            thread::scope(|scope| {
                for _ in 0..readers {
                    let mut random = Random::new(random.next());
                    let (published, live, done) = (&published, &live, done.clone());
                    scope.spawn(move || {
                        loop {
                            let seen = published.news();
                            if live.end() == 10 + news {
                                break;
                            }
                            (0..random.below(4)).for_each(|_| thread::yield_now());
                            let short = Duration::from_micros(random.below(50));
                            published.wait(seen, if random.one_in(4) { short } else { LONG });
                        }
                        let _ = done.send(());
                    });
                }
                for end in 11..=10 + news {
                    if random.one_in(8) {
                        all_sleep(&published, 1);
                    }
                    (0..random.below(3)).for_each(|_| thread::yield_now());
                    published.advance(&live, end);
                }
                for left in (1..=readers).rev() {
                    // So that the test fails instead of going on for ever.
                    if is_done.recv_timeout(Duration::from_secs(60)).is_err() {
                        published.wake_all();
                        panic!("seed {seed}, round {round}: {left} of {readers} readers sleep on");
                    }
                }
            });
        }
    }

    #[test]
    fn a_wait_ends_by_itself() {
        let published = Published::default();
        published.wait(published.news(), Duration::from_millis(1));
        published.wait(published.news().wrapping_sub(1), Duration::from_secs(600));
    }
}
