//! A server's UUID: the first part of a MySQL GTID.

use super::error::GtidError;
use std::{fmt, str::FromStr};

const EXPECTED: &str = "a UUID such as 3e11fa47-71ca-11e1-9e33-c80aa9429562";

/// Lengths in bytes of the five groups of the text form.
const GROUP_BYTES: [usize; 5] = [4, 2, 2, 2, 6];

/// The 128-bit identifier of a server, as in `@@server_uuid`.
///
/// Ordered by its bytes, which is the order in which MySQL writes GTID sets. Any 16 bytes are a UUID: MySQL checks
/// neither version nor variant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// The UUID with these bytes, in the order of the text form.
    pub const fn from_bytes(bytes: [u8; 16]) -> Uuid {
        Uuid(bytes)
    }

    /// The 16 bytes, in the order of the text form.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for Uuid {
    /// Lower case with dashes, as every server prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'-'; 36];
        let mut from = self.0.iter();
        let mut at = 0;
        for group in GROUP_BYTES {
            for byte in from.by_ref().take(group) {
                text[at] = DIGITS[usize::from(byte >> 4)];
                text[at + 1] = DIGITS[usize::from(byte & 15)];
                at += 2;
            }
            at += 1;
        }
        f.pad(std::str::from_utf8(&text).expect("hexadecimal digits are ASCII"))
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = GtidError;

    /// Reads the three forms that MySQL reads (`Uuid::parse` in `libs/mysql/gtid/uuid.cpp`), in either case: with
    /// dashes, with dashes inside braces, and without dashes.
    fn from_str(text: &str) -> Result<Uuid, GtidError> {
        parse(text.as_bytes()).map(Uuid).ok_or_else(|| GtidError::text(EXPECTED, text))
    }
}

fn parse(text: &[u8]) -> Option<[u8; 16]> {
    let (mut rest, dashes) = match text.len() {
        32 => (text, false),
        36 => (text, true),
        38 => (text.strip_prefix(b"{")?.strip_suffix(b"}")?, true),
        _ => return None,
    };
    let mut bytes = [0; 16];
    let mut to = bytes.iter_mut();
    for (index, group) in GROUP_BYTES.into_iter().enumerate() {
        if dashes && index > 0 {
            rest = rest.strip_prefix(b"-")?;
        }
        let (digits, after) = rest.split_at_checked(2 * group)?;
        for (pair, byte) in digits.chunks_exact(2).zip(to.by_ref()) {
            *byte = hex_digit(pair[0])? << 4 | hex_digit(pair[1])?;
        }
        rest = after;
    }
    Some(bytes)
}

fn hex_digit(character: u8) -> Option<u8> {
    char::from(character).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_three_forms_and_prints_one() {
        let canonical = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        for text in [
            canonical,
            "3E11FA47-71CA-11E1-9E33-C80AA9429562",
            "{3e11fa47-71ca-11e1-9e33-c80aa9429562}",
            "3e11fa4771ca11e19e33c80aa9429562",
        ] {
            assert_eq!(text.parse::<Uuid>().unwrap().to_string(), canonical);
        }
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            "3e11fa47",
            "3e11fa47-71ca-11e1-9e33-c80aa942956",
            "3e11fa47-71ca-11e1-9e33-c80aa94295622",
            "3e11fa47-71ca-11e1-9e33-c80aa942956g",
            "3e11fa4-771ca-11e1-9e33-c80aa9429562",
            "{3e11fa47-71ca-11e1-9e33-c80aa9429562",
            "(3e11fa47-71ca-11e1-9e33-c80aa9429562)",
            "3e11fa47-71ca-11e1-9e33-c80aa942956é",
        ] {
            assert!(text.parse::<Uuid>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_round_trip(bytes: [u8; 16]) {
            let uuid = Uuid::from_bytes(bytes);
            prop_assert_eq!(uuid.to_string().parse::<Uuid>().unwrap(), uuid);
        }

        #[test]
        fn any_text_is_answered(text in ".{0,40}") {
            let _ = text.parse::<Uuid>();
        }
    }
}
