//! Which pages there are, and what stands around each.

use super::parts::{View, clock};
use super::{overview, source};
use crate::status::DaemonMonitor;
use jiff::Timestamp;
use maud::{DOCTYPE, html};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// The style sheet.
pub(in crate::admin) const STYLE: &str = include_str!("page.css");
/// The script.
pub(in crate::admin) const SCRIPT: &str = include_str!("page.js");
/// Without script the page is asked for again after so many seconds.
const REFRESH_SECONDS: u32 = 10;

/// Tells the assets of this binary from those of another one.
pub(in crate::admin) static ASSETS: LazyLock<String> = LazyLock::new(|| {
    let digest = Sha256::new().chain_update(STYLE).chain_update(SCRIPT).finalize();
    digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
});

/// Which page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::admin) enum Page {
    /// All sources.
    Overview,
    /// The one of this name.
    Source(String),
}

impl View {
    /// The page as it is now; `None` for a source that there is not.
    pub(in crate::admin) fn of(page: &Page, monitor: &DaemonMonitor, now: Timestamp) -> Option<View> {
        let mut view = View { at: clock(now), ..View::default() };
        match page {
            Page::Overview => overview::fill(&mut view, monitor, now),
            Page::Source(name) => source::fill(&mut view, monitor, name, now)?,
        }
        Some(view)
    }

    /// The whole page.
    pub(in crate::admin) fn whole(&self, page: &Page) -> String {
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
