//! Rendering: what is escaped, what comes first, what is told in words.

use super::frame::Page;
use super::parts::View;
use jiff::Timestamp;
use status::DaemonMonitor;
use status::{ReaderStatus, ServeStatus, Serving, SlotStatus, SourceMonitor, SourceState};
use std::path::Path;
use std::sync::Arc;

const HOSTILE: &str = "<script>alert(1)</script>\" onmouseover=\"x' &amp;\u{7}\n<img src=x>";

struct Hostile;

impl Serving for Hostile {
    fn status(&self, _: Timestamp) -> ServeStatus {
        let reader = ReaderStatus {
            source: "orders".to_owned(),
            user: HOSTILE.to_owned(),
            program: HOSTILE.to_owned(),
            address: HOSTILE.to_owned(),
            command: "Binlog Dump".to_owned(),
            stop: Some(HOSTILE.to_owned()),
            ..ReaderStatus::default()
        };
        let slot = SlotStatus {
            source: "orders".to_owned(),
            name: HOSTILE.to_owned(),
            released: Some(HOSTILE.to_owned()),
            ..SlotStatus::default()
        };
        ServeStatus { readers: vec![reader], slots: vec![slot], ..ServeStatus::default() }
    }
}

fn daemon(names: &[&str]) -> (DaemonMonitor, Vec<Arc<SourceMonitor>>) {
    let daemon = DaemonMonitor::new(Path::new("/srv/b"));
    names.iter().for_each(|name| daemon.add(Arc::new(SourceMonitor::new(name))));
    let sources = daemon.sources();
    (daemon, sources)
}

fn shown(page: &Page, daemon: &DaemonMonitor) -> String {
    View::of(page, true, daemon, Timestamp::now()).unwrap().whole(page, None)
}

#[test]
fn what_others_say_of_themselves_is_escaped() {
    let (daemon, sources) = daemon(&["orders"]);
    daemon.serves(Arc::new(Hostile));
    sources[0].update_facts(|facts| facts.server_version = Some(HOSTILE.to_owned()));
    sources[0].set_state(SourceState::BackingOff { until: Timestamp::now(), error: HOSTILE.to_owned() });
    for page in [Page::Overview, Page::Source("orders".to_owned())] {
        let html = shown(&page, &daemon);
        assert!(html.contains("&lt;script&gt;alert(1)"), "{page:?}");
        assert!(
            !html.contains("<script>alert") && !html.contains("<img") && !html.contains("\" onmouseover"),
            "{page:?}"
        );
    }
}

#[test]
fn a_source_that_is_not_there_has_no_page() {
    let (daemon, _) = daemon(&["orders"]);
    assert!(View::of(&Page::Source("order".to_owned()), true, &daemon, Timestamp::now()).is_none());
}

#[test]
fn every_part_has_its_place_on_the_page() {
    let (daemon, sources) = daemon(&["orders", "stock"]);
    sources[0].set_state(SourceState::Receiving);
    for page in [Page::Overview, Page::Source("orders".to_owned())] {
        let view = View::of(&page, true, &daemon, Timestamp::now()).unwrap();
        let html = view.whole(&page, None);
        for id in view.parts.iter().map(|(id, _)| id.as_str()).chain(view.lists.iter().map(|(id, _)| *id)) {
            assert_eq!(html.matches(&format!(" id=\"{id}\"")).count(), 1, "{page:?} {id}");
        }
        assert!(!html.contains("style=") && !html.contains("onclick"), "what the policy forbids");
    }
}

#[test]
fn the_worst_stands_first_and_is_said_in_the_title() {
    let (daemon, sources) = daemon(&["a", "b", "c"]);
    for source in &sources {
        source.set_state(SourceState::Receiving);
        source.semi_sync_acknowledges();
    }
    sources[2].set_state(SourceState::WaitingForSpace { error: "full".to_owned() });
    let html = shown(&Page::Overview, &daemon);
    assert!(html.contains("<title>! binlogd: 1 source of 3 needs you now"), "{html}");
    let at = |id: &str| html.find(&format!("id=\"{id}\"")).unwrap();
    assert!(at("s-c") < at("s-a") && at("s-a") < at("s-b"));
}

#[test]
fn two_hundred_sources_are_quick() {
    let names: Vec<String> = (0..200).map(|n| format!("db{n:03}")).collect();
    let (daemon, sources) = daemon(&names.iter().map(String::as_str).collect::<Vec<_>>());
    sources.iter().for_each(|source| source.set_state(SourceState::Receiving));
    let html = shown(&Page::Overview, &daemon);
    assert!(html.len() < 300_000, "{}", html.len());
    assert_eq!(html.matches("<tr id=\"s-db").count(), 200);
}
