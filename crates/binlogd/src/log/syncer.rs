//! Writing the live file out and syncing it in the background.
//!
//! A sync of much new data takes as long as the disk needs to write it. The thread that receives hands such a sync to
//! this one and goes on; it looks now and then whether the sync has ended. One sync runs at a time, and who syncs the
//! same file for himself first waits for it here: the operating system reports a failed write to one sync only, and two
//! of them side by side could take each other's error for success.

use super::storage::StorageFile;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Enough for a loop that calls fdatasync.
const STACK_BYTES: usize = 128 << 10;

/// What can be done in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// A sync of the file, which has been written to the end of `through`.
    Sync {
        /// Offset in the file.
        through: u64,
    },
    /// Let the system begin to write a part of the file to the device.
    WriteOut {
        /// Where it begins in the file.
        offset: u64,
        /// How long it is.
        len: u64,
    },
}

/// A job that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Which.
    pub job: Job,
    /// How long it took.
    pub took: Duration,
    /// Whether the bytes of a sync are durable.
    pub result: io::Result<()>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    Asked(Arc<dyn StorageFile>, Job),
    Working,
    Ended(Ended),
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
pub struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// The job that was begun and whose end was not taken.
    job: Option<Job>,
}

impl Syncer {
    /// The job that runs, or has ended and was not taken.
    pub fn job(&self) -> Option<Job> {
        self.job
    }

    /// Begins a job.
    ///
    /// # Errors
    /// When there can be no thread; nothing was begun then.
    ///
    /// # Panics
    /// When one is running: that is an error of ours.
    pub fn begin(&mut self, file: Arc<dyn StorageFile>, job: Job) -> io::Result<()> {
        assert!(self.job.is_none(), "one background job at a time");
        if self.thread.is_none() {
            let shared = self.shared.clone();
            let builder = std::thread::Builder::new().name("sync".to_owned()).stack_size(STACK_BYTES);
            self.thread = Some(builder.spawn(move || run(&shared))?);
        }
        *lock(&self.shared.state) = State::Asked(file, job);
        self.shared.changed.notify_all();
        self.job = Some(job);
        Ok(())
    }

    /// The job that has ended since the last look, if one has.
    pub fn take_ended(&mut self) -> Option<Ended> {
        let ended = self.job.is_some() && self.shared.has_ended.load(Ordering::Acquire);
        if ended { self.wait() } else { None }
    }

    /// Waits for the end of the job that runs; `None` when none does.
    pub fn wait(&mut self) -> Option<Ended> {
        self.job.take()?;
        let mut state = lock(&self.shared.state);
        loop {
            match std::mem::take(&mut *state) {
                State::Ended(ended) => {
                    self.shared.has_ended.store(false, Ordering::Release);
                    return Some(ended);
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

fn run(shared: &Shared) {
    let mut state = lock(&shared.state);
    loop {
        match std::mem::take(&mut *state) {
            State::Asked(file, job) => {
                *state = State::Working;
                drop(state);
                let began = Instant::now();
                let result = match job {
                    Job::Sync { .. } => file.sync_data(),
                    Job::WriteOut { offset, len } => {
                        file.begin_writing_out(offset, len);
                        Ok(())
                    }
                };
                drop(file);
                state = lock(&shared.state);
                *state = State::Ended(Ended { job, took: began.elapsed(), result });
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
    use super::super::storage::Storage;
    use super::super::storage::double::FaultyStorage;
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn each_job_ends_once_and_says_how() {
        let dir = tempfile::tempdir().unwrap();
        let storage = FaultyStorage::sound();
        let file: Arc<dyn StorageFile> = Arc::from(storage.create(&dir.path().join("f")).unwrap());
        let mut syncer = Syncer::default();
        assert!(syncer.wait().is_none());
        let job = Job::Sync { through: 7 };
        syncer.begin(file.clone(), job).unwrap();
        assert_eq!(syncer.job(), Some(job));
        let ended = syncer.wait().unwrap();
        assert_eq!((ended.job, ended.result.is_ok()), (job, true));
        assert!(syncer.job().is_none() && syncer.take_ended().is_none());
        storage.syncs_until_failure.store(0, Relaxed);
        syncer.begin(file.clone(), job).unwrap();
        let ended = loop {
            if let Some(ended) = syncer.take_ended() {
                break ended;
            }
            std::thread::yield_now();
        };
        assert!(ended.result.is_err());
        syncer.begin(file.clone(), Job::WriteOut { offset: 0, len: 1 }).unwrap();
        assert!(syncer.wait().unwrap().result.is_ok());
        syncer.begin(file.clone(), job).unwrap();
        drop(syncer);
        assert_eq!(storage.syncs.load(Relaxed), 3, "the end waits for what was begun");
    }
}
