//! What can be changed on a source's page: links to a question, the question with its form, and what happened then.
//!
//! The links hold no token, so that they may be among the parts that are sent to all who listen and may write.

use super::parts::{clock, sign};
use super::sheet::sheet;
use crate::deed::Deed;
use crate::fields::encoded;
use jiff::Timestamp;
use maud::{Markup, html};
use status::{DaemonMonitor, Level, SourceStatus, StateName};

/// What happened to a source by a form, for the page that follows.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    /// Name of the source.
    pub(crate) source: String,
    pub(crate) at: Timestamp,
    pub(crate) level: Level,
    pub(crate) text: String,
}

/// What happened, above all else, with its time: the page goes on, and this stays.
pub(super) fn told(notice: &Notice) -> Markup {
    html! {
        p id="did" class=(format!("did {}", notice.level.word())) role="status" { (sign(notice.level)) span { "At " (clock(notice.at)) ": " (notice.text) } }
    }
}

/// A link to the question before a deed. The points say that something is asked first.
pub(super) fn link(source: &str, deed: &Deed, words: &str, unseen: &str) -> Markup {
    let fields = deed.fields();
    let query: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    html! {
        a class="button" href=(format!("/source/{source}/ask?{}", query.join("&"))) {
            (words) @if !unseen.is_empty() { span class="unseen" { " " (unseen) } } "…"
        }
    }
}

/// What can be done with the source as it stands.
pub(super) fn of_source(source: &SourceStatus) -> Markup {
    match source.state {
        StateName::Stopped => link(&source.name, &Deed::Start, "Start receiving", ""),
        _ => link(&source.name, &Deed::Stop, "Stop receiving", ""),
    }
}

/// A question, and what a yes means.
struct Question {
    head: String,
    meaning: &'static str,
    yes: String,
    /// It cannot be undone, or is dangerous while it lasts.
    is_grave: bool,
}

fn question_of(deed: &Deed, name: &str, of_reader: &str) -> Question {
    match deed {
        Deed::Stop => Question {
            head: format!("Stop receiving {name}?"),
            meaning: "From then on nothing of it is acknowledged: a commit on a source that waits for nobody else takes as long as \
                      the source's semi-sync timeout, and is then safe on the source alone. Readers are served as before. It lasts until \
                      somebody starts it again, or binlogd is restarted.",
            yes: format!("Stop receiving {name}"),
            is_grave: true,
        },
        Deed::Start => Question {
            head: format!("Start receiving {name}?"),
            meaning: "The session goes on where it ended, and acknowledges as before.",
            yes: format!("Start receiving {name}"),
            is_grave: false,
        },
        Deed::EndReader(id) => Question {
            head: format!("End reader {id}{of_reader}?"),
            meaning: "Its connection is closed. A replica, and most programs, come again by themselves and go on where they were.",
            yes: format!("End reader {id}"),
            is_grave: false,
        },
        Deed::DropSlot(slot) => Question {
            head: format!("Drop the slot {slot}?"),
            meaning: "Its place is forgotten, and no files are kept for it any more: a reader that comes back and finds its files gone \
                      has to be set up anew. This cannot be undone. It deletes no file by itself.",
            yes: format!("Drop the slot {slot}"),
            is_grave: true,
        },
    }
}

/// The question before a deed, as a page of its own, which is not kept current; `None` when there is no such source.
pub(crate) fn question(
    monitor: &DaemonMonitor,
    name: &str,
    deed: &Deed,
    token: &str,
    now: Timestamp,
) -> Option<String> {
    monitor.sources().into_iter().find(|source| source.name() == name)?;
    let serve = monitor.serving(now);
    let reader = match deed {
        Deed::EndReader(id) => serve.iter().flat_map(|serve| &serve.readers).find(|reader| reader.id == *id),
        _ => None,
    };
    let of_reader =
        reader.map(|reader| format!(" ({} from {})", reader.user, reader.address)).unwrap_or_default();
    let Question { head, meaning, yes, is_grave } = question_of(deed, name, &of_reader);
    let body = html! {
        nav aria-label="Way back" { a href="/" { "All sources" } " › " a href=(format!("/source/{name}")) { (name) } }
        h1 { (head) }
        p class="meaning" { (meaning) }
        form method="post" action=(format!("/source/{name}/do")) class="question" {
            @for (field, value) in deed.fields() { input type="hidden" name=(field) value=(value); }
            input type="hidden" name="token" value=(token);
            button type="submit" class=(if is_grave { "yes grave" } else { "yes" }) { (yes) }
            a class="button" href=(format!("/source/{name}")) { "No, go back" }
        }
    };
    Some(sheet(&head, &body))
}
