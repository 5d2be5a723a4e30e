//! The format of what stands in a data folder, by which an older binlogd knows what it must not touch: docs/formats.md.
//!
//! Each file of ours in TOML may say `format = N`; without that it is of format 1. A later version that writes what an older
//! one must not pass over raises the number, in `replica.toml` too, which is read before anything is changed. What is of a
//! later format than this one knows is refused, and left as it is.

use serde::de::DeserializeOwned;
use thiserror::Error;

/// The format that is written where nothing needs a later one.
pub const FORMAT: u32 = 1;

/// The format of the folder of a node of a quorum: a binlogd that passes over `quorum.toml` would acknowledge alone.
pub const QUORUM: u32 = 2;

/// The newest format that this version reads.
const NEWEST: u32 = QUORUM;

/// Name of the key.
const KEY: &str = "format";

/// Why a file of ours cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum FormatError {
    /// A later version wrote it.
    #[error("{}", later(.0))]
    Later(i64),
    /// It makes no sense.
    #[error("{0}")]
    Wrong(String),
}

/// Reads a file of ours.
///
/// # Errors
/// When a later version wrote it, or it makes no sense.
pub fn read_toml<T: DeserializeOwned>(text: &str) -> Result<T, FormatError> {
    let wrong = |error: toml::de::Error| FormatError::Wrong(error.to_string());
    match text.parse::<toml::Table>().map_err(wrong)?.get(KEY) {
        None => {}
        Some(toml::Value::Integer(format)) if (1..=i64::from(NEWEST)).contains(format) => {}
        Some(toml::Value::Integer(format)) if *format > i64::from(NEWEST) => {
            return Err(FormatError::Later(*format));
        }
        Some(other) => return Err(FormatError::Wrong(format!("{KEY} = {other} is no number of a format"))),
    }
    toml::from_str(text).map_err(wrong)
}

/// That something is of a later format.
pub fn later(format: impl std::fmt::Display) -> String {
    format!(
        "format {format}, and binlogd {} knows none later than {NEWEST}: a later version of binlogd wrote it. Nothing was changed. \
         Start that version again, or one that is later still (docs/formats.md)",
        env!("CARGO_PKG_VERSION")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Content {
        name: String,
    }

    #[test]
    fn an_older_format_and_keys_to_come_are_read_and_a_later_format_is_not() {
        let read = |text: &str| read_toml::<Content>(text);
        let expected = Ok(Content { name: "a".to_owned() });
        assert_eq!(read("name = 'a'"), expected, "before there were formats");
        assert_eq!(read("format = 1\nname = 'a'"), expected);
        assert_eq!(read("format = 2\nname = 'a'"), expected, "of a node of a quorum");
        assert_eq!(read("name = 'a'\nsomething = 'that a later version adds'"), expected);
        let refused = read("format = 3\nnaming = 'another way'").unwrap_err().to_string();
        assert!(refused.starts_with("format 3, and binlogd 0."), "{refused}");
        assert!(refused.contains("a later version of binlogd wrote it. Nothing was changed."), "{refused}");
        for wrong in ["format = 0", "format = -1", "format = '1'", "format = [2]"] {
            let error = read(&format!("{wrong}\nname = 'a'")).unwrap_err().to_string();
            assert!(error.contains("is no number of a format"), "{error}");
        }
        assert!(read("name = 7").unwrap_err().to_string().contains("invalid type"));
    }
}
