//! UUID, INET4 and INET6 of MariaDB as text. To a log they are BINARY: only a server says what they are.
//!
//! Their bytes in a row event are those of BINARY, the first digit first; that a server stores a UUID in another order does not
//! show there (MariaDB, `UUID::pack` in `plugin/type_uuid/sql_type_uuid.h`).

use super::hex::hex;
use std::fmt::Write;
use std::net::Ipv4Addr;

/// A UUID with its hyphens.
pub(super) fn uuid(bytes: &[u8]) -> Option<String> {
    let bytes: &[u8; 16] = bytes.try_into().ok()?;
    Some([&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]].map(hex).join("-"))
}

/// An INET4.
pub(super) fn inet4(bytes: &[u8]) -> Option<String> {
    let bytes: [u8; 4] = bytes.try_into().ok()?;
    Some(Ipv4Addr::from(bytes).to_string())
}

/// An INET6, as the server prints it: the first of the longest runs of zeros is left out, also one of a single zero, and the end is
/// an IPv4 address where all before it is zeros, or zeros and `ffff` (MariaDB, `Inet6::to_string`).
pub(super) fn inet6(bytes: &[u8]) -> Option<String> {
    let bytes: &[u8; 16] = bytes.try_into().ok()?;
    let words: Vec<u16> = bytes.chunks(2).map(|two| u16::from_be_bytes([two[0], two[1]])).collect();
    let (gap, len) = longest_zeros(&words);
    let last = || Ipv4Addr::new(bytes[12], bytes[13], bytes[14], bytes[15]);
    if (gap, len) == (0, 6) {
        return Some(format!("::{}", last()));
    }
    if (gap, len) == (0, 5) && words[5] == 0xffff {
        return Some(format!("::ffff:{}", last()));
    }
    let joined = |words: &[u16]| {
        let mut text = String::new();
        for (at, word) in words.iter().enumerate() {
            write!(text, "{}{word:x}", if at > 0 { ":" } else { "" }).expect("a String takes all");
        }
        text
    };
    Some(match len {
        0 => joined(&words),
        _ => format!("{}::{}", joined(&words[..gap]), joined(&words[gap + len..])),
    })
}

/// Where the first of the longest runs of zeros begins, and how long it is.
fn longest_zeros(words: &[u16]) -> (usize, usize) {
    let (mut longest, mut own) = ((0, 0), (0, 0));
    for (at, word) in words.iter().enumerate() {
        own = match (*word, own.1) {
            (0, 0) => (at, 1),
            (0, len) => (own.0, len + 1),
            _ => (0, 0),
        };
        if own.1 > longest.1 {
            longest = own;
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_as_the_server_prints_them() {
        let row: Vec<u8> = (0..16).map(|digit| digit * 0x11).collect();
        assert_eq!(uuid(&row).unwrap(), "00112233-4455-6677-8899-aabbccddeeff");
        assert_eq!(uuid(&row[1..]), None);
        assert_eq!(inet4(&[10, 0, 0, 255]).unwrap(), "10.0.0.255");
        let six = |words: [u16; 8]| inet6(&words.map(u16::to_be_bytes).concat()).unwrap();
        assert_eq!(six([0; 8]), "::");
        assert_eq!(six([0, 0, 0, 0, 0, 0, 0, 1]), "::1");
        assert_eq!(six([0, 0, 0, 0, 0, 0, 0x102, 0x304]), "::1.2.3.4");
        assert_eq!(six([0, 0, 0, 0, 0, 0xffff, 0, 0x304]), "::ffff:0.0.3.4");
        assert_eq!(six([1, 0, 2, 3, 4, 5, 6, 7]), "1::2:3:4:5:6:7");
        assert_eq!(six([1, 0, 0, 2, 0, 0, 6, 7]), "1::2:0:0:6:7");
        assert_eq!(six([1, 2, 3, 4, 5, 6, 0, 0]), "1:2:3:4:5:6::");
    }
}
