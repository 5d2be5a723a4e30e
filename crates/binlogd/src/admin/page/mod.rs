//! The web page: made here whole, so that it works without script; kept current by parts of it over `/events`.
//!
//! | file | noun |
//! |---|---|
//! | `mod.rs` | [`View`]: a page in parts; the frame around it |
//! | `overview.rs` | `/`: all sources, the worst first |
//! | `source.rs` | `/source/NAME`: one source |
//! | `judgement.rs` | the headline and what is wrong, of either |
//! | `tables.rs` | readers, slots and events, of either |
//! | `chart.rs` | the last hour, as SVG |
//! | `live.rs` | `/events`: what has changed of a page, to whoever looks at it |
//! | `page.css`, `page.js` | the look; what puts changed parts in their place |
//!
//! Every text goes through `maud`, which escapes: names of readers' programs are the word of whoever connects.

mod chart;
mod judgement;
mod live;
mod overview;
mod source;
mod tables;

pub(super) use live::{LISTENERS_MAX, Live, changes};

use crate::status::{DaemonMonitor, Level};
use axum::http::{HeaderName, HeaderValue, header};
use jiff::Timestamp;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// The style sheet.
pub(super) const STYLE: &str = include_str!("page.css");
/// The script.
pub(super) const SCRIPT: &str = include_str!("page.js");
/// Without script the page is asked for again after so many seconds.
const REFRESH_SECONDS: u32 = 10;

/// Tells the assets of this binary from those of another one.
pub(super) static ASSETS: LazyLock<String> = LazyLock::new(|| {
    let digest = Sha256::new().chain_update(STYLE).chain_update(SCRIPT).finalize();
    digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
});

/// What a browser may do with an answer: nothing from elsewhere, nothing inline, no frame around it.
pub(super) const SECURITY: [(HeaderName, HeaderValue); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
             form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
    ),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
];

/// Which page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Page {
    /// All sources.
    Overview,
    /// The one of this name.
    Source(String),
}

/// A page in parts. Each part is the content of the element with its id; a list is an element whose children are parts.
#[derive(Debug, Default)]
pub(super) struct View {
    /// Of the window.
    title: String,
    /// When it was made.
    at: String,
    parts: Vec<(String, String)>,
    lists: Vec<(&'static str, Vec<String>)>,
}

impl View {
    /// The page as it is now; `None` for a source that there is not.
    pub(super) fn of(page: &Page, monitor: &DaemonMonitor, now: Timestamp) -> Option<View> {
        let mut view = View { at: clock(now), ..View::default() };
        match page {
            Page::Overview => overview::fill(&mut view, monitor, now),
            Page::Source(name) => source::fill(&mut view, monitor, name, now)?,
        }
        Some(view)
    }

    fn put(&mut self, id: impl Into<String>, content: Markup) {
        self.parts.push((id.into(), content.into_string()));
    }

    fn list(&mut self, id: &'static str, children: Vec<String>) {
        self.lists.push((id, children));
    }

    /// A part in its place.
    fn part(&self, id: &str) -> PreEscaped<&str> {
        let found = self.parts.iter().find(|(known, _)| known == id);
        PreEscaped(found.map_or("", |(_, content)| content))
    }

    fn children(&self, id: &str) -> &[String] {
        self.lists.iter().find(|(known, _)| *known == id).map_or(&[], |(_, children)| children)
    }

    /// The whole page.
    pub(super) fn whole(&self, page: &Page) -> String {
        let body = match page {
            Page::Overview => overview::body(self),
            Page::Source(name) => source::body(self, name),
        };
        let listens_to = match page {
            Page::Overview => "/events".to_owned(),
            Page::Source(name) => format!("/events?source={name}"),
        };
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) }
                    link rel="stylesheet" href=(format!("/page.css?{}", *ASSETS));
                    link rel="icon" href="/icon.svg" type="image/svg+xml";
                    noscript { meta http-equiv="refresh" content=(REFRESH_SECONDS); }
                    script src=(format!("/page.js?{}", *ASSETS)) defer {}
                }
                body data-events=(listens_to) data-assets=(*ASSETS) {
                    a class="skip" href="#main" { "To the content" }
                    header {
                        a class="brand" href="/" { "binlogd" }
                        span id="where" { (self.part("where")) }
                        span class="clock" {
                            span id="live" class="live" { noscript { "every " (REFRESH_SECONDS) " s" } }
                            time id="clock" { (self.at) }
                        }
                    }
                    p id="lost" role="alert" hidden {}
                    main id="main" tabindex="-1" { (body) }
                    footer {
                        span id="about" { (self.part("about")) }
                        nav aria-label="Machine-readable" {
                            a href="/status" { "status as JSON" } " · " a href="/metrics" { "metrics" } " · "
                            a href="/healthz" { "health" }
                        }
                    }
                }
            }
        }
        .into_string()
    }
}

/// A sign of its own shape for each level, with its word for who does not see it.
fn sign(level: Level) -> Markup {
    let (shape, word) = match level {
        Level::Ok => ("✓", "ok"),
        Level::Notice => ("i", "notice"),
        Level::Warning => ("!", "warning"),
        Level::Critical => ("✕", "critical"),
    };
    html! {
        span class=(format!("sign {}", level.word())) aria-hidden="true" { (shape) }
        span class="unseen" { (word) ": " }
    }
}

/// A time of the day as the head of the page has it.
fn clock(now: Timestamp) -> String {
    now.strftime("%H:%M:%S UTC").to_string()
}

/// A moment of the last hours by its time, an older one with its day.
fn moment(at: Timestamp, now: Timestamp) -> Markup {
    let is_recent = now.as_second() - at.as_second() < 20 * 3600;
    let shown = if is_recent { at.strftime("%H:%M:%S") } else { at.strftime("%Y-%m-%d %H:%M") };
    html! { time datetime=(at) title=(crate::status::human_time(at)) { (shown) } }
}

/// A position as people write it.
fn place(position: Option<&codec::Position>) -> Markup {
    match position {
        Some(at) => {
            html! { span class="place" { (at.file) " " span class="number" { (crate::status::units::count(at.offset)) } } }
        }
        None => html! { span class="dim" { "–" } },
    }
}

#[cfg(test)]
mod tests;
