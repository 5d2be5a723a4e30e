//! Where forms are taken: what they are checked by, who carries them out, and what happened last.

use crate::access::token::TokenSecret;
use crate::deed::Controls;
use crate::fields::Fields;
use crate::page::Notice;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Semaphore, oneshot};

/// Deeds under way at a time: each has a thread.
const DEEDS_MAX: usize = 4;
/// What happened is kept for so many pages, so that each can tell it.
const NOTICES_MAX: usize = 32;

/// Where forms are taken.
pub(crate) struct Desk {
    pub(crate) controls: Arc<dyn Controls>,
    pub(crate) secret: TokenSecret,
    /// What happened last, by a word that nobody guesses; the oldest first.
    notices: Mutex<VecDeque<(String, Notice)>>,
    /// For deeds that are under way.
    pub(crate) room: Arc<Semaphore>,
}

impl Desk {
    /// # Errors
    /// When the system has no random numbers.
    pub(crate) fn new(controls: Arc<dyn Controls>) -> Result<Desk, getrandom::Error> {
        let (notices, room) = (Mutex::default(), Arc::new(Semaphore::new(DEEDS_MAX)));
        Ok(Desk { controls, secret: TokenSecret::new()?, notices, room })
    }

    /// What happened on the way to a page, as its address says.
    pub(crate) fn notice(&self, source: &str, query: Option<&str>) -> Option<Notice> {
        let fields = Fields::parse(query?);
        let word = fields.get("did")?;
        let notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        let found = notices.iter().find(|(known, notice)| known == word && notice.source == source);
        found.map(|(_, notice)| notice.clone())
    }

    /// Something happened.
    pub(crate) fn keep(&self, word: String, notice: Notice) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if notices.len() >= NOTICES_MAX {
            notices.pop_front();
        }
        notices.push_back((word, notice));
    }
}

/// Begins `work` on a thread of its own, where what waits for a disk or a network keeps nobody else waiting; `None` when there is no
/// room. Nobody need listen to its end.
pub(crate) fn on_a_thread<T: Send + 'static>(
    room: &Arc<Semaphore>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<oneshot::Receiver<T>> {
    let place = room.clone().try_acquire_owned().ok()?;
    let (tell, told) = oneshot::channel();
    let run = move || {
        let _ = tell.send(work());
        drop(place);
    };
    std::thread::Builder::new().name(name.to_owned()).spawn(run).ok().map(|_| told)
}
