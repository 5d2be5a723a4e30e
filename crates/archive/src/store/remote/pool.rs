//! The one thread on which all requests of a store run. Callers wait for their own; several run at the same time.

use std::future::Future;
use std::io;
use std::sync::mpsc;
use std::thread::JoinHandle;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A thread with a runtime. It ends when this is dropped; requests that still run are given up.
#[derive(Debug)]
pub(super) struct Pool {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Pool {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives none.
    pub(super) fn start() -> io::Result<Pool> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("archive-io".to_owned()).spawn(move || {
            let _ = runtime.block_on(stopped);
            // Names are looked up on threads of their own, for which nobody waits at the end.
            runtime.shutdown_background();
        })?;
        Ok(Pool { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Runs a future on the thread and waits for its outcome; `None` when the thread has ended or the future panicked.
    pub(super) fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            let _ = sender.send(future.await);
        });
        receiver.recv().ok()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Barrier};
    use std::time::Duration;

    #[test]
    fn several_callers_run_at_the_same_time() {
        let pool = Arc::new(Pool::start().unwrap());
        let (all_there, barrier) = (Arc::new(tokio::sync::Barrier::new(4)), Arc::new(Barrier::new(4)));
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let (pool, all_there, barrier) = (pool.clone(), all_there.clone(), barrier.clone());
                std::thread::spawn(move || {
                    barrier.wait();
                    // Ends only when all four are inside.
                    pool.run(async move {
                        tokio::time::timeout(Duration::from_secs(30), all_there.wait())
                            .await
                            .is_ok()
                            .then_some(number)
                    })
                })
            })
            .collect();
        let numbers: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(numbers, (0..4).map(|number| Some(Some(number))).collect::<Vec<_>>());
    }

    #[test]
    fn a_panic_inside_is_no_answer() {
        let pool = Pool::start().unwrap();
        assert_eq!(pool.run(async { if true { panic!("meant") } else { 1 } }), None);
        assert_eq!(pool.run(async { 2 }), Some(2));
    }
}
