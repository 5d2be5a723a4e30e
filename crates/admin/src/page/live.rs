//! `/events`: what changes on a page, as server-sent events, to a bounded number of listeners.
//!
//! A look at the page is made twice a second as long as somebody listens to it, once for all who listen; each listener is sent
//! the parts that are not what it has. Nobody's slowness makes anything wait: what is not read is not made.

use super::frame::Page;
use super::parts::View;
use super::sheet::ASSETS;
use futures_core::Stream;
use jiff::Timestamp;
use serde::Serialize;
use status::DaemonMonitor;
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// Most who listen at once. They have room of their own, so that they never keep a scrape or a probe out.
pub(crate) const LISTENERS_MAX: usize = 16;
/// Pause between two looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// A listener hears something at least so often, and so knows that what it shows is not old.
const QUIET_MAX: Duration = Duration::from_secs(4);
/// Pages that are kept for all who listen to them.
const PAGES_MAX: usize = 2 * LISTENERS_MAX;

/// The pages that are listened to, each as it was at the last look.
#[derive(Default)]
pub(crate) struct Live(Mutex<Vec<Look>>);

/// A page, and whether it is for somebody who may change something.
type Shown = (Page, bool);
/// A page, when it was looked at, and what was seen; nothing of a source that there is not.
type Look = (Shown, Instant, Option<Arc<View>>);

impl Live {
    /// The page, not older than the pause between two looks.
    fn look(&self, page: &Shown, monitor: &DaemonMonitor) -> Option<Arc<View>> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = LOOK_INTERVAL.mul_f32(0.8);
        if let Some((_, _, view)) = pages.iter().find(|(known, at, _)| known == page && at.elapsed() < fresh)
        {
            return view.clone();
        }
        pages.retain(|(known, at, _)| known != page && at.elapsed() < QUIET_MAX);
        pages.truncate(PAGES_MAX);
        let view = View::of(&page.0, page.1, monitor, Timestamp::now()).map(Arc::new);
        pages.push((page.clone(), Instant::now(), view.clone()));
        view
    }
}

/// What a listener is sent.
#[derive(Serialize)]
struct Message<'a> {
    assets: &'a str,
    at: &'a str,
    title: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parts: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    lists: BTreeMap<&'a str, &'a [String]>,
}

/// What one listener has.
#[derive(Default)]
struct Known(HashMap<String, u64>);

impl Known {
    /// Whether the listener has another value, which it will have after this.
    fn changes(&mut self, id: &str, value: &impl Hash) -> bool {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        let hash = hasher.finish();
        match self.0.get_mut(id) {
            Some(known) => std::mem::replace(known, hash) != hash,
            None => {
                self.0.insert(id.to_owned(), hash);
                true
            }
        }
    }

    /// The changes in a view, if there are any.
    fn message<'a>(&mut self, view: &'a View) -> (Message<'a>, bool) {
        let parts = view.parts.iter().filter(|(id, content)| self.changes(id, content));
        let parts: BTreeMap<_, _> = parts.map(|(id, content)| (id.as_str(), content.as_str())).collect();
        let lists = view.lists.iter().filter(|(id, children)| self.changes(&format!("list {id}"), children));
        let lists: BTreeMap<_, _> = lists.map(|(id, children)| (*id, &children[..])).collect();
        if !lists.is_empty() {
            // Who is gone is forgotten, so that a name that comes again is sent again.
            self.0.retain(|id, _| id.starts_with("list ") || view.parts.iter().any(|(known, _)| known == id));
        }
        let has_changed = !parts.is_empty() || !lists.is_empty();
        (Message { assets: &ASSETS, at: &view.at, title: &view.title, parts, lists }, has_changed)
    }
}

/// What changes of a page from now on; first, all of it. With the page goes whether it is for somebody who may change something.
pub(crate) fn changes(
    live: Arc<Live>,
    monitor: Arc<DaemonMonitor>,
    page: (Page, bool),
    place: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<String, Infallible>> + Send + use<> {
    let mut looks = interval(LOOK_INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    Changes { live, monitor, page, known: Known::default(), looks, last: None, _place: place }
}

struct Changes {
    live: Arc<Live>,
    monitor: Arc<DaemonMonitor>,
    page: Shown,
    known: Known,
    looks: Interval,
    /// When something was sent last.
    last: Option<Instant>,
    _place: OwnedSemaphorePermit,
}

impl Stream for Changes {
    type Item = Result<String, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            ready!(self.looks.poll_tick(context));
            // A source that is not configured any more has no page: the listener asks for it again, and is told so.
            let Some(view) = self.live.look(&self.page, &self.monitor) else { return Poll::Ready(None) };
            let is_quiet = self.last.is_some_and(|last| last.elapsed() < QUIET_MAX);
            let (message, has_changed) = self.known.message(&view);
            if !has_changed && is_quiet {
                continue;
            }
            let Ok(json) = serde_json::to_string(&message) else { return Poll::Ready(None) };
            self.last = Some(Instant::now());
            return Poll::Ready(Some(Ok(format!("data: {json}\n\n"))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(parts: &[(&str, &str)], rows: &[&str]) -> View {
        View {
            parts: parts.iter().map(|(id, content)| ((*id).to_owned(), (*content).to_owned())).collect(),
            lists: vec![("rows", rows.iter().map(|row| (*row).to_owned()).collect())],
            ..View::default()
        }
    }

    #[test]
    fn what_a_listener_has_is_not_sent_again() {
        let mut known = Known::default();
        let mut sent = |view: &View| {
            let (message, has_changed) = known.message(view);
            let parts: Vec<String> = message.parts.keys().map(|id| (*id).to_owned()).collect();
            (parts.join(" "), message.lists.len(), has_changed)
        };
        assert_eq!(sent(&view(&[("a", "1"), ("b", "1")], &["a", "b"])), ("a b".to_owned(), 1, true));
        assert_eq!(sent(&view(&[("a", "1"), ("b", "1")], &["a", "b"])), (String::new(), 0, false));
        assert_eq!(sent(&view(&[("a", "1"), ("b", "2")], &["b", "a"])), ("b".to_owned(), 1, true));
        assert_eq!(sent(&view(&[("a", "1")], &["a"])), (String::new(), 1, true));
        assert_eq!(
            sent(&view(&[("a", "1"), ("b", "2")], &["a", "b"])),
            ("b".to_owned(), 1, true),
            "come again"
        );
    }
}
