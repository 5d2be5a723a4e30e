//! An answer of many megabytes, of which there are only so many at a time.

use axum::body::Bytes;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A shorter answer is made for each who asks.
const SHARED_BYTES_MIN: usize = 1 << 20;
/// A large answer that is still being sent is given to those who ask within this time after it was made. A connection lasts
/// [`super::CONNECTION_TIME_MAX`] at most, so there are at most three of them, however many ask.
const SHARED_TIME_MAX: Duration = Duration::from_secs(4);

/// The last large answer, as long as somebody is being sent it.
#[derive(Debug, Default)]
pub(crate) struct LargeAnswer(Mutex<Option<(Instant, Weak<Vec<u8>>)>>);

/// Holds the bytes in common.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl LargeAnswer {
    /// The answer that is being sent to somebody, if it is large and new enough; otherwise a new one.
    pub(crate) fn get<E>(&self, make: impl FnOnce() -> Result<Vec<u8>, E>) -> Result<Bytes, E> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((made, answer)) = &*last
            && made.elapsed() < SHARED_TIME_MAX
            && let Some(answer) = answer.upgrade()
        {
            return Ok(Bytes::from_owner(Shared(answer)));
        }
        let answer = make()?;
        if answer.len() < SHARED_BYTES_MIN {
            return Ok(answer.into());
        }
        let answer = Arc::new(answer);
        *last = Some((Instant::now(), Arc::downgrade(&answer)));
        Ok(Bytes::from_owner(Shared(answer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_answer_is_shared_by_those_who_ask_at_once_and_not_kept() {
        let large = LargeAnswer::default();
        let get = |byte: u8, len| large.get(|| Ok::<_, ()>(vec![byte; len])).unwrap();
        let first = get(1, SHARED_BYTES_MIN);
        let second = get(2, SHARED_BYTES_MIN);
        assert_eq!((second[0], second.as_ptr()), (1, first.as_ptr()));
        drop((first, second));
        assert_eq!(get(3, SHARED_BYTES_MIN)[0], 3, "nobody is being sent the old one any more");
        let small = get(4, 10);
        assert_eq!((get(5, 10)[0], small[0]), (5, 4));
    }
}
