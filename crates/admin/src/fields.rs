//! The fields of a form or of a query.

use std::fmt::Write;

/// Fields of a form or of a query, decoded.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// `a=1&b=x+y%21`. What is no UTF-8 is replaced.
    pub(crate) fn parse(text: &str) -> Fields {
        let fields = text.split('&').filter_map(|field| field.split_once('='));
        Fields(fields.map(|(name, value)| (decoded(name), decoded(value))).collect())
    }

    /// The first field of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        match (first, behind) {
            (b'%', [high, low, behind @ ..]) if digit(high).is_some() && digit(low).is_some() => {
                let (high, low) = (digit(high).unwrap_or(0), digit(low).unwrap_or(0));
                bytes.push((high * 16 + low) as u8);
                rest = behind;
            }
            (b'+', _) => bytes.push(b' '),
            (other, _) => bytes.push(*other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A text as a value of a query.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => out.push(byte.into()),
            // Writing to a String does not fail.
            other => drop(write!(out, "%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded() {
        let fields = Fields::parse("do=drop&slot=a%2Fb+c%c3%a4&empty=&%zz=%4&alone&do=again");
        let found = ["do", "slot", "empty", "%zz", "alone"].map(|name| fields.get(name));
        assert_eq!(found, [Some("drop"), Some("a/b cä"), Some(""), Some("%4"), None]);
        let hostile = "a&b=<c>\"%'ä\u{7}";
        assert_eq!(Fields::parse(&format!("x={}", encoded(hostile))).get("x"), Some(hostile));
    }
}
