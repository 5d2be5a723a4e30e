//! Syncing the live file in the background.
//!
//! A sync of much new data takes as long as the disk needs to write it. The thread that receives hands such a sync to
//! this one and goes on; it looks now and then whether the sync has ended. One sync runs at a time, and who syncs the
//! same file for himself first waits for it here: the operating system reports a failed write to one sync only, and two
//! of them side by side could take each other's error for success.

use crate::storage::{BackgroundSync, StorageFile, Synced};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// Enough for a loop that calls fdatasync.
const STACK_BYTES: usize = 128 << 10;

#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    Asked(Arc<dyn StorageFile>, u64),
    Syncing,
    Ended(Synced),
    /// The thread is to end.
    Closing,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// The state is `Ended`: a look that costs nothing.
    has_ended: AtomicBool,
}

/// The background thread of one log. It is made at the first use.
#[derive(Debug, Default)]
pub(crate) struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// A sync was begun and its end not taken.
    busy: bool,
}

impl BackgroundSync for Syncer {
    fn is_busy(&self) -> bool {
        self.busy
    }

    fn begin(&mut self, file: Arc<dyn StorageFile>, through: u64) -> io::Result<()> {
        assert!(!self.busy, "one background sync at a time");
        if self.thread.is_none() {
            let shared = self.shared.clone();
            let builder = std::thread::Builder::new().name("sync".to_owned()).stack_size(STACK_BYTES);
            self.thread = Some(builder.spawn(move || run(&shared))?);
        }
        *lock(&self.shared.state) = State::Asked(file, through);
        self.shared.changed.notify_all();
        self.busy = true;
        Ok(())
    }

    fn take_ended(&mut self) -> Option<Synced> {
        let ended = self.busy && self.shared.has_ended.load(Ordering::Acquire);
        if ended { self.wait() } else { None }
    }

    fn wait(&mut self) -> Option<Synced> {
        if !std::mem::take(&mut self.busy) {
            return None;
        }
        let mut state = lock(&self.shared.state);
        loop {
            match std::mem::take(&mut *state) {
                State::Ended(synced) => {
                    self.shared.has_ended.store(false, Ordering::Release);
                    return Some(synced);
                }
                other => *state = other,
            }
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        // The file must not be in use any more when the owner of the log goes on.
        let _ = self.wait();
        *lock(&self.shared.state) = State::Closing;
        self.shared.changed.notify_all();
        let _ = thread.join();
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "how long the disk took, in real time: a double has a syncer of its own"
)]
fn run(shared: &Shared) {
    let mut state = lock(&shared.state);
    loop {
        match std::mem::take(&mut *state) {
            State::Asked(file, through) => {
                *state = State::Syncing;
                drop(state);
                let began = Instant::now();
                let result = file.sync_data();
                drop(file);
                state = lock(&shared.state);
                *state = State::Ended(Synced { through, took: began.elapsed(), result });
                shared.has_ended.store(true, Ordering::Release);
                shared.changed.notify_all();
            }
            State::Closing => return,
            other => {
                *state = other;
                state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Storage;
    use crate::testing::FaultyStorage;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn each_sync_ends_once_and_says_how() {
        let dir = tempfile::tempdir().unwrap();
        let storage = FaultyStorage::sound();
        let file: Arc<dyn StorageFile> = Arc::from(storage.create(&dir.path().join("f")).unwrap());
        let mut syncer = Syncer::default();
        assert!(syncer.wait().is_none());
        syncer.begin(file.clone(), 7).unwrap();
        assert!(syncer.is_busy());
        let synced = syncer.wait().unwrap();
        assert_eq!((synced.through, synced.result.is_ok()), (7, true));
        assert!(!syncer.is_busy() && syncer.take_ended().is_none());
        storage.syncs_until_failure.store(0, Relaxed);
        syncer.begin(file.clone(), 9).unwrap();
        let synced = loop {
            if let Some(synced) = syncer.take_ended() {
                break synced;
            }
            std::thread::yield_now();
        };
        assert_eq!((synced.through, synced.result.is_err()), (9, true));
        syncer.begin(file.clone(), 11).unwrap();
        drop(syncer);
        assert_eq!(storage.syncs.load(Relaxed), 3, "the end waits for what was begun");
    }
}
