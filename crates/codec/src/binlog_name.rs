//! The name of a binary log, and the number in it.

use std::fmt;
use thiserror::Error;

/// Longest name in bytes. The servers limit it to `FN_REFLEN` (512).
const NAME_LEN_MAX: usize = 512;

/// So many characters of a bad name are told: a peer may send as many as it likes.
const TOLD_CHARS_MAX: usize = 80;

/// The bare name of a binary log: the base name that `log_bin` gives, a dot, a number.
///
/// The servers write the number with at least six digits and with more when it needs them (`generate_new_name` of
/// `sql/binlog.cc` and `sql/log.cc`: `"%s.%06lu"`), so the text `b.1000000` sorts before `b.999999`. Names are ordered by
/// their numbers, and by their text only where those are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BinlogName<'a> {
    number: u64,
    text: &'a str,
    /// How many digits `text` ends in.
    digits: usize,
}

/// What is no name of a binary log.
#[derive(Clone, PartialEq, Eq, Error)]
#[error(
    "{0:?} is no name of a binary log: a bare file name of at most {NAME_LEN_MAX} bytes that ends in a dot and a number"
)]
pub struct BadBinlogName(Box<str>);

impl<'a> BinlogName<'a> {
    /// Reads a name that came from elsewhere. The copy's files get the source's names, so a name that could lead out of a
    /// folder is none.
    ///
    /// # Errors
    /// When it is empty, too long, hidden, or not a bare file name; or when it does not end in a dot and a number of at
    /// most 64 bits.
    pub fn parse(text: &'a str) -> Result<BinlogName<'a>, BadBinlogName> {
        let is_bare = text.len() <= NAME_LEN_MAX
            && !text.starts_with('.')
            && !text.contains(|character: char| matches!(character, '/' | '\\') || character.is_control());
        let parts = text.rsplit_once('.').filter(|(base, number)| {
            is_bare && !base.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        let number = parts.and_then(|(_, number)| Some((number.parse().ok()?, number.len())));
        match number {
            Some((number, digits)) => Ok(BinlogName { number, text, digits }),
            None => Err(BadBinlogName::of(text)),
        }
    }

    /// The whole name.
    pub fn as_str(&self) -> &'a str {
        self.text
    }

    /// What `log_bin` was: the name without its number.
    pub fn base(&self) -> &'a str {
        &self.text[..self.text.len() - self.digits - 1]
    }

    /// `mysql-bin.000003` is 3.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The name that the server gives to its next file: the number counted up, with at least as many digits. `None` behind
    /// the last number.
    pub fn successor(&self) -> Option<String> {
        let next = self.number.checked_add(1)?;
        Some(format!("{}.{next:0width$}", self.base(), width = self.digits))
    }

    /// Whether both are of one series and this is the later one.
    pub fn is_after(&self, other: &BinlogName<'_>) -> bool {
        self.base() == other.base() && self.number > other.number
    }
}

impl fmt::Display for BinlogName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

impl BadBinlogName {
    pub(crate) fn of(text: &str) -> BadBinlogName {
        match text.char_indices().nth(TOLD_CHARS_MAX) {
            Some((end, _)) => BadBinlogName(format!("{}…", &text[..end]).into()),
            None => BadBinlogName(text.into()),
        }
    }
}

impl fmt::Debug for BadBinlogName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(text: &str) -> BinlogName<'_> {
        BinlogName::parse(text).unwrap()
    }

    #[test]
    fn base_and_number_are_read() {
        for (text, base, number) in
            [("mysql-bin.000003", "mysql-bin", 3), ("a.b.1000000", "a.b", 1_000_000), ("x.0", "x", 0)]
        {
            let read = name(text);
            assert_eq!((read.base(), read.number(), read.as_str()), (base, number, text));
        }
    }

    #[test]
    fn a_bad_name_is_refused_and_told() {
        let too_long = format!("{}.1", "x".repeat(511));
        for bad in [
            "",
            "../x.000001",
            "a/b.000001",
            "a\\b.1",
            "..",
            ".000001",
            ".a.000001",
            "mysql-bin",
            "a\0.1",
            "a\n.1",
            "x.",
            "x.+1",
            "x.1x",
            "x.-1",
            "binlog.index",
            "b.000001.torn-20260101T000000Z",
            "b.18446744073709551616",
            &too_long,
        ] {
            let said = BinlogName::parse(bad).expect_err(bad).to_string();
            let told = format!("{:?}", bad.chars().take(TOLD_CHARS_MAX).collect::<String>());
            assert!(said.starts_with(told.trim_end_matches('"')), "{said}");
            assert!(said.len() < 300, "{said}");
        }
        assert!(BinlogName::parse(&too_long[1..]).is_ok());
        assert_eq!(
            BinlogName::parse("binlog.index").unwrap_err().to_string(),
            "\"binlog.index\" is no name of a binary log: a bare file name of at most 512 bytes that ends in a dot and a number"
        );
    }

    #[test]
    fn the_number_orders_and_not_the_text() {
        assert!(name("b.999999") < name("b.1000000"));
        assert!(name("b.000002") > name("b.1"));
        assert!(name("a.000001") < name("b.000001"));
        assert!(name("b.1000000").is_after(&name("b.999999")));
        assert!(!name("b.000001").is_after(&name("b.000001")));
        assert!(!name("c.000002").is_after(&name("b.000001")), "another series");
    }

    #[test]
    fn successors() {
        for (text, next) in [
            ("b.000001", Some("b.000002")),
            ("b.999999", Some("b.1000000")),
            ("x.y.09", Some("x.y.10")),
            ("b.18446744073709551615", None),
        ] {
            assert_eq!(name(text).successor().as_deref(), next);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            if let Ok(read) = BinlogName::parse(&text) {
                prop_assert_eq!(read.as_str(), &text);
            }
        }

        #[test]
        fn a_successor_is_a_name_and_comes_next(base in "[a-z.-]{0,5}[a-z]", number in 0..u64::MAX, width in 1usize..9) {
            prop_assume!(!base.starts_with('.'));
            let text = format!("{base}.{number:0width$}");
            let next = name(&text).successor().unwrap();
            prop_assert!(name(&next).is_after(&name(&text)));
            prop_assert_eq!(name(&next).number(), number + 1);
        }
    }
}
