//! What all reasons are told with.

use crate::events::Level;
use crate::judge::verdict::{Topic, Worry};
use std::path::Path;

/// A certificate that is valid for less long needs somebody soon, and one that is for less than the second, now. In seconds.
const CERTIFICATE_SECONDS_MIN: i64 = 14 * 86_400;
const CERTIFICATE_SECONDS_CRITICAL: i64 = 86_400;

/// Which source a reason is of, in words for the shell.
pub(crate) struct Whose {
    pub(super) dir: String,
    pub(super) name: String,
}

impl Whose {
    /// Of this name, with its copy below `data_dir`.
    pub(crate) fn new(data_dir: &Path, name: &str) -> Whose {
        Whose { dir: quoted(&data_dir.display().to_string()), name: quoted(name) }
    }
}

/// A problem without a command.
pub(super) fn problem(
    (kind, about, level): (&str, Topic, Level),
    text: impl AsRef<str>,
    advice: &str,
) -> Worry {
    let text = text.as_ref().trim_end().to_owned();
    Worry { level, kind: kind.to_owned(), about, text, advice: advice.to_owned(), command: String::new() }
}

/// How bad it is that a certificate is valid for so many seconds only; `None` while it is not.
pub(super) fn certificate_level(left: i64) -> Option<Level> {
    match left {
        left if left < CERTIFICATE_SECONDS_CRITICAL => Some(Level::Critical),
        left if left < CERTIFICATE_SECONDS_MIN => Some(Level::Warning),
        _ => None,
    }
}

/// A word for the shell.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%=,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The beginning of a long set.
pub(super) fn cut(set: &str) -> String {
    const CHARACTERS_MAX: usize = 300;
    match set.char_indices().nth(CHARACTERS_MAX) {
        Some((at, _)) => format!("{}… (all of it is in /status)", &set[..at]),
        None => set.to_owned(),
    }
}
