//! The web page: made here whole, so that it works without script; kept current by parts of it over `/events`.
//!
//! | file | noun |
//! |---|---|
//! | `parts.rs` | [`View`](parts::View): a page in parts; signs, moments, places |
//! | `frame.rs` | which page, and what stands around each |
//! | `sheet.rs` | style and script, and the head of each page |
//! | `overview.rs` | `/`: all sources, the worst first |
//! | `source.rs` | `/source/NAME`: one source |
//! | `judgement.rs` | the headline and what is wrong, of either |
//! | `tables.rs` | readers, slots and events, of either |
//! | `deeds.rs` | what can be changed: links, questions, forms, and what happened |
//! | `chart.rs` | the last hour, as SVG |
//! | `live.rs` | `/events`: what has changed of a page, to whoever looks at it |
//! | `page.css`, `page.js` | the look; what puts changed parts in their place |
//!
//! Every text goes through `maud`, which escapes: names of readers' programs are the word of whoever connects.

mod chart;
mod deeds;
mod frame;
mod judgement;
mod live;
mod overview;
mod parts;
mod sheet;
mod source;
mod tables;

pub(crate) use deeds::{Notice, question};
pub(crate) use frame::Page;
pub(crate) use live::{LISTENERS_MAX, Live, changes};
pub(crate) use parts::View;
pub(crate) use sheet::{SCRIPT, STYLE};

use axum::http::{HeaderName, HeaderValue, header};

/// What a browser may do with an answer: nothing from elsewhere, nothing inline, no frame around it.
pub(crate) const SECURITY: [(HeaderName, HeaderValue); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
             form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
    ),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    // With no-referrer a browser would not say either that a form comes from this page (Origin: null).
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
];

#[cfg(test)]
mod tests;
