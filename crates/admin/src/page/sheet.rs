//! Style and script, and the head of each page.

use maud::{DOCTYPE, Markup, html};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// The style sheet.
pub(crate) const STYLE: &str = include_str!("page.css");
/// The script.
pub(crate) const SCRIPT: &str = include_str!("page.js");

/// Tells the assets of this binary from those of another one.
pub(crate) static ASSETS: LazyLock<String> = LazyLock::new(|| {
    let digest = Sha256::new().chain_update(STYLE).chain_update(SCRIPT).finalize();
    digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
});

/// What stands in the head of each page.
pub(super) fn head(title: &str) -> Markup {
    html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        title { (title) }
        link rel="stylesheet" href=(format!("/page.css?{}", *ASSETS));
        link rel="icon" href="/icon.svg" type="image/svg+xml";
    }
}

/// A page that is not kept current.
pub(super) fn sheet(title: &str, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head { (head(title)) }
            body {
                header { a class="brand" href="/" { "binlogd" } }
                main id="main" { (body) }
            }
        }
    }
    .into_string()
}
