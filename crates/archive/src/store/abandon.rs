//! A store whose requests can be given up: each runs on a thread of its own, and who made it goes on without it when that is wanted.
//! A store that hangs, a mounted folder above all, would else hold whoever asks for as long as it likes.

use crate::store::{Created, Fault, Meta, Store, StoreError};
use bytes::Bytes;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// How often it is looked whether requests are to be given up.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// See [the module](self).
#[derive(Clone)]
pub struct Abandoning {
    store: Arc<dyn Store>,
    is_over: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl fmt::Debug for Abandoning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Abandoning").field(&self.store).finish()
    }
}

impl Abandoning {
    /// As `store`, as long as `is_over` says no. After that every request fails, also one that is under way.
    pub fn new(store: Arc<dyn Store>, is_over: Arc<dyn Fn() -> bool + Send + Sync>) -> Abandoning {
        Abandoning { store, is_over }
    }

    fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let failed = |text: String| StoreError::new(Fault::Unavailable, text);
        let (sender, answer) = channel();
        let store = self.store.clone();
        let thread = thread::Builder::new().name("store".to_owned()).spawn(move || {
            // Nobody hears the answer of one that was given up.
            let _ = sender.send(request(&*store));
        });
        thread.map_err(|error| failed(format!("no thread for a request to the store: {error}")))?;
        loop {
            if (self.is_over)() {
                return Err(failed("the request to the store was given up".to_owned()));
            }
            match answer.recv_timeout(LOOK_INTERVAL) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(failed("an internal error ended a request to the store".to_owned()));
                }
            }
        }
    }
}

impl Store for Abandoning {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, StoreError> {
        let name = name.to_owned();
        self.ask(move |store| store.create(&name, bytes))
    }

    fn get(&self, name: &str) -> Result<Bytes, StoreError> {
        let name = name.to_owned();
        self.ask(move |store| store.get(&name))
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        let name = name.to_owned();
        self.ask(move |store| store.get_range(&name, range))
    }

    fn head(&self, name: &str) -> Result<Meta, StoreError> {
        let name = name.to_owned();
        self.ask(move |store| store.head(&name))
    }

    fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        self.ask(move |store| store.list(&prefix, after.as_deref()))
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.ask(move |store| store.delete(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Memory;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Condvar, Mutex};

    /// A store that answers nothing until it is let go.
    #[derive(Debug, Default)]
    struct Hung {
        store: Memory,
        is_free: Mutex<bool>,
        freed: Condvar,
    }

    impl Hung {
        fn wait(&self) {
            let held = self.is_free.lock().unwrap();
            drop(self.freed.wait_while(held, |is_free| !*is_free).unwrap());
        }
    }

    impl Store for Hung {
        fn create(&self, name: &str, bytes: Bytes) -> Result<Created, StoreError> {
            self.wait();
            self.store.create(name, bytes)
        }
        fn get(&self, name: &str) -> Result<Bytes, StoreError> {
            self.wait();
            self.store.get(name)
        }
        fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
            self.wait();
            self.store.get_range(name, range)
        }
        fn head(&self, name: &str) -> Result<Meta, StoreError> {
            self.wait();
            self.store.head(name)
        }
        fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
            self.wait();
            self.store.list(prefix, after)
        }
        fn delete(&self, name: &str) -> Result<(), StoreError> {
            self.wait();
            self.store.delete(name)
        }
    }

    #[test]
    fn a_request_that_hangs_is_given_up_when_that_is_wanted() {
        let hung = Arc::new(Hung::default());
        let is_over = Arc::new(AtomicBool::new(false));
        let asked = is_over.clone();
        let store = Abandoning::new(hung.clone(), Arc::new(move || asked.load(Ordering::Relaxed)));
        let waiting = store.clone();
        let thread = thread::spawn(move || waiting.list("", None));
        is_over.store(true, Ordering::Relaxed);
        assert!(thread.join().unwrap().unwrap_err().text.contains("given up"));
        assert_eq!(store.get("a").unwrap_err().fault, Fault::Unavailable);

        is_over.store(false, Ordering::Relaxed);
        *hung.is_free.lock().unwrap() = true;
        hung.freed.notify_all();
        assert_eq!(store.create("a", Bytes::from_static(b"x")), Ok(Created::New));
        assert_eq!(store.get("a").unwrap(), "x");
        assert_eq!(store.get_range("a", 0..1).unwrap(), "x");
        assert_eq!(store.head("a").unwrap().name, "a");
        assert_eq!(store.list("", None).unwrap().len(), 1);
        store.delete("a").unwrap();
        assert!(store.head("a").unwrap_err().is_missing());
    }
}
