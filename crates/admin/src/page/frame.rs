//! Which pages there are, and what stands around each.

use super::deeds::{self, Notice};
use super::parts::{View, clock};
use super::sheet::{ASSETS, head};
use super::{overview, source};
use jiff::Timestamp;
use maud::{DOCTYPE, html};
use status::DaemonMonitor;

/// Without script the page is asked for again after so many seconds.
const REFRESH_SECONDS: u32 = 10;

/// Which page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Page {
    /// All sources.
    Overview,
    /// The one of this name.
    Source(String),
}

impl View {
    /// The page as it is now, for who may change something or not; `None` for a source that there is not.
    pub(crate) fn of(page: &Page, may_write: bool, monitor: &DaemonMonitor, now: Timestamp) -> Option<View> {
        let mut view = View { at: clock(now), ..View::default() };
        match page {
            Page::Overview => overview::fill(&mut view, monitor, now),
            Page::Source(name) => source::fill(&mut view, may_write, monitor, name, now)?,
        }
        Some(view)
    }

    /// The whole page, with what happened just now.
    pub(crate) fn whole(&self, page: &Page, notice: Option<&Notice>) -> String {
        let body = match page {
            Page::Overview => overview::body(self),
            Page::Source(name) => source::body(self, name),
        };
        let notice = notice.map(deeds::told);
        let listens_to = match page {
            Page::Overview => "/events".to_owned(),
            Page::Source(name) => format!("/events?source={name}"),
        };
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    (head(&self.title))
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
                    main id="main" tabindex="-1" { @if let Some(notice) = notice { (notice) } (body) }
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
