//! The tag of a MySQL GTID (8.3 and later): a name that groups transactions of one server.

use super::error::GtidError;
use std::{fmt, str::FromStr};

/// Longest tag, in bytes (`tag_max_length` in `libs/mysql/gtid/gtid_constants.h`).
pub const TAG_LENGTH_MAX: usize = 32;

const EXPECTED: &str = "a GTID tag: at most 32 letters, digits and underscores, not beginning with a digit";

/// A GTID's tag, or the empty tag of an ordinary, untagged GTID.
///
/// A letter or an underscore, then letters, digits and underscores, at most [`TAG_LENGTH_MAX`] in all; upper case is
/// folded to lower case. Source: MySQL manual, "GTID Format and Storage"; `libs/mysql/gtid/tag.cpp`.
///
/// Held inline, so that a GTID is copied without allocation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tag {
    /// The tag, then zeroes. A zero sorts below every character of a tag, so the derived order is that of the text.
    bytes: [u8; TAG_LENGTH_MAX],
    /// Always <= [`TAG_LENGTH_MAX`].
    length: u8,
}

impl Tag {
    /// The empty tag: an untagged GTID.
    pub const EMPTY: Tag = Tag { bytes: [0; TAG_LENGTH_MAX], length: 0 };

    /// Reads a tag, folding it to lower case. Empty bytes are the empty tag; `None` if the rule is broken.
    pub fn from_bytes(text: &[u8]) -> Option<Tag> {
        let mut tag = Tag::EMPTY;
        let bytes = tag.bytes.get_mut(..text.len())?;
        for (index, (to, from)) in bytes.iter_mut().zip(text).enumerate() {
            let allowed = from.is_ascii_alphabetic() || *from == b'_' || (index > 0 && from.is_ascii_digit());
            if !allowed {
                return None;
            }
            *to = from.to_ascii_lowercase();
        }
        tag.length = text.len() as u8;
        Some(tag)
    }

    /// The tag's text, in lower case; empty if there is none.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).expect("a tag holds ASCII only")
    }

    /// Whether this is the empty tag.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl FromStr for Tag {
    type Err = GtidError;

    fn from_str(text: &str) -> Result<Tag, GtidError> {
        Tag::from_bytes(text.as_bytes()).ok_or_else(|| GtidError::text(EXPECTED, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn folds_case_and_keeps_the_rule() {
        assert_eq!("My_Tag1".parse::<Tag>().unwrap().as_str(), "my_tag1");
        assert_eq!("".parse::<Tag>().unwrap(), Tag::EMPTY);
        assert!(Tag::EMPTY.is_empty());
        assert!("_".repeat(32).parse::<Tag>().is_ok());
        for refused in ["1tag", "tag-1", "tag 1", " tag", "tág", &"a".repeat(33)] {
            assert!(refused.parse::<Tag>().is_err(), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn order_is_that_of_the_text(left in "[a-z_]?[a-z0-9_]{0,31}", right in "[a-z_]?[a-z0-9_]{0,31}") {
            if let (Ok(a), Ok(b)) = (left.parse::<Tag>(), right.parse::<Tag>()) {
                prop_assert_eq!(a.cmp(&b), left.cmp(&right));
                prop_assert_eq!(a == b, left == right);
            }
        }

        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Some(tag) = Tag::from_bytes(&bytes) {
                prop_assert_eq!(tag.as_str().as_bytes(), bytes.to_ascii_lowercase());
            }
        }
    }
}
