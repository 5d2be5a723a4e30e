//! A page in parts, and the small things that all of them show.

use jiff::Timestamp;
use maud::{Markup, PreEscaped, html};
use status::{Level, human_time, units};

/// A page in parts. Each part is the content of the element with its id; a list is an element whose children are parts.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// Of the window.
    pub(super) title: String,
    /// When it was made.
    pub(super) at: String,
    pub(super) parts: Vec<(String, String)>,
    pub(super) lists: Vec<(&'static str, Vec<String>)>,
}

impl View {
    pub(super) fn put(&mut self, id: impl Into<String>, content: Markup) {
        self.parts.push((id.into(), content.into_string()));
    }

    pub(super) fn list(&mut self, id: &'static str, children: Vec<String>) {
        self.lists.push((id, children));
    }

    /// A part in its place.
    pub(super) fn part(&self, id: &str) -> PreEscaped<&str> {
        let found = self.parts.iter().find(|(known, _)| known == id);
        PreEscaped(found.map_or("", |(_, content)| content))
    }

    pub(super) fn children(&self, id: &str) -> &[String] {
        self.lists.iter().find(|(known, _)| *known == id).map_or(&[], |(_, children)| children)
    }
}

/// A sign of its own shape for each level, with its word for who does not see it.
pub(super) fn sign(level: Level) -> Markup {
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
pub(super) fn clock(now: Timestamp) -> String {
    now.strftime("%H:%M:%S UTC").to_string()
}

/// A moment of the last hours by its time, an older one with its day.
pub(super) fn moment(at: Timestamp, now: Timestamp) -> Markup {
    let is_recent = now.as_second() - at.as_second() < 20 * 3600;
    let shown = if is_recent { at.strftime("%H:%M:%S") } else { at.strftime("%Y-%m-%d %H:%M") };
    html! { time datetime=(at) title=(human_time(at)) { (shown) } }
}

/// A position as people write it.
pub(super) fn place(position: Option<&codec::Position>) -> Markup {
    match position {
        Some(at) => {
            html! { span class="place" { (at.file) " " span class="number" { (units::count(at.offset)) } } }
        }
        None => html! { span class="dim" { "–" } },
    }
}
