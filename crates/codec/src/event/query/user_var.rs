//! USER_VAR: a user variable that the statement after it reads, in logs that hold statements instead of rows.

use crate::event::error::EventError;
use crate::event::fields::{need, u32_at, u64_at};
use crate::event::header::HEADER_LEN;

/// Digits in each group of a packed decimal, and the bytes that fewer digits take (`dig2bytes`, `strings/decimal.cc`).
const DIGITS: usize = 9;
const BYTES_OF_DIGITS: [usize; DIGITS + 1] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// A user variable.
#[derive(Debug, Clone, PartialEq)]
pub struct UserVar<'a> {
    /// Without its `@`.
    pub name: &'a [u8],
    /// What it held.
    pub value: UserVarValue<'a>,
}

/// The value of a user variable.
#[derive(Debug, Clone, PartialEq)]
pub enum UserVarValue<'a> {
    /// NULL.
    Null,
    /// A string.
    Text {
        /// Id of its collation.
        collation: u32,
        /// Its bytes, in the character set of that collation. Fewer than there are, where the event is cut.
        bytes: &'a [u8],
    },
    /// A floating-point number.
    Real(f64),
    /// A whole number.
    Integer(i128),
    /// A decimal, as the servers write it.
    Decimal(String),
}

impl<'a> UserVar<'a> {
    /// Reads an event without its checksum; of a long string it may be the beginning.
    ///
    /// Layout (`User_var_event`, `libs/mysql/binlog/event/statement_events.h`): length of the name 4, the name, whether it is
    /// NULL 1; if not, type 1, collation 4, length of the value 4, the value, and flags 1 (bit 0: unsigned), which old servers
    /// leave out.
    ///
    /// # Errors
    /// When it is cut short, or has a type that no server writes.
    pub fn parse(event: &'a [u8]) -> Result<UserVar<'a>, EventError> {
        const CUT: EventError = EventError::Malformed("a USER_VAR event is cut short");
        need("a USER_VAR event", event, HEADER_LEN + 5)?;
        let body = &event[HEADER_LEN..];
        let len = usize::try_from(u32_at(body, 0)).map_err(|_| CUT)?;
        let (name, rest) = body[4..].split_at_checked(len).ok_or(CUT)?;
        let (is_null, rest) = rest.split_first().ok_or(CUT)?;
        if *is_null != 0 {
            return Ok(UserVar { name, value: UserVarValue::Null });
        }
        let head = rest.get(..9).ok_or(CUT)?;
        let (kind, collation) = (head[0], u32_at(head, 1));
        let len = usize::try_from(u32_at(head, 5)).map_err(|_| CUT)?;
        let rest = &rest[9..];
        let bytes = &rest[..len.min(rest.len())];
        let number = || if bytes.len() == 8 { Ok(u64_at(bytes, 0)) } else { Err(CUT) };
        let value = match kind {
            0 => UserVarValue::Text { collation, bytes },
            1 => UserVarValue::Real(f64::from_bits(number()?)),
            2 if rest.get(len).is_some_and(|flags| flags & 1 != 0) => UserVarValue::Integer(number()?.into()),
            2 => UserVarValue::Integer(number()?.cast_signed().into()),
            4 => UserVarValue::Decimal(decimal(bytes).ok_or(CUT)?),
            _ => return Err(EventError::Malformed("a USER_VAR event of unknown type")),
        };
        Ok(UserVar { name, value })
    }
}

/// A decimal as the servers pack it (`decimal2bin`, `strings/decimal.cc`): precision 1, scale 1, then the digits in groups of
/// nine, of four bytes each, those that are left over before the point in front and behind it at the end; the first bit is set,
/// and of a negative number all others are turned over.
fn decimal(packed: &[u8]) -> Option<String> {
    let (&[precision, scale], bytes) = packed.split_first_chunk()?;
    let (precision, scale) = (usize::from(precision), usize::from(scale));
    let whole = precision.checked_sub(scale)?;
    let is_negative = bytes.first()? & 0x80 == 0;
    let mut bytes: Vec<u8> = bytes.iter().map(|byte| if is_negative { !byte } else { *byte }).collect();
    bytes[0] ^= 0x80;
    let mut rest = &bytes[..];
    let mut group = |digits: usize| -> Option<String> {
        let (taken, left) = rest.split_at_checked(BYTES_OF_DIGITS[digits])?;
        rest = left;
        let number = taken.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        Some(if digits == 0 { String::new() } else { format!("{number:0digits$}") })
    };
    let mut before = group(whole % DIGITS)?;
    for _ in 0..whole / DIGITS {
        before += &group(DIGITS)?;
    }
    let mut behind = String::new();
    for _ in 0..scale / DIGITS {
        behind += &group(DIGITS)?;
    }
    behind += &group(scale % DIGITS)?;
    let before = before.trim_start_matches('0');
    let sign = if is_negative { "-" } else { "" };
    let before = if before.is_empty() { "0" } else { before };
    Some(if behind.is_empty() { format!("{sign}{before}") } else { format!("{sign}{before}.{behind}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(kind: u8, value: &[u8], flags: &[u8]) -> Vec<u8> {
        let mut event = vec![0; HEADER_LEN];
        event.extend_from_slice(&[1, 0, 0, 0, b'a', 0, kind, 45, 0, 0, 0]);
        event.extend_from_slice(&(value.len() as u32).to_le_bytes());
        event.extend_from_slice(value);
        event.extend_from_slice(flags);
        event
    }

    #[test]
    fn values_of_each_type_are_read() {
        let value = |bytes: &[u8]| {
            let parsed = UserVar::parse(bytes).unwrap();
            assert_eq!(parsed.name, b"a");
            format!("{:?}", parsed.value)
        };
        assert_eq!(value(&event(0, b"xy", &[0])), "Text { collation: 45, bytes: [120, 121] }");
        assert_eq!(value(&event(1, &1.5_f64.to_bits().to_le_bytes(), &[0])), "Real(1.5)");
        assert_eq!(value(&event(2, &(-7_i64).to_le_bytes(), &[0])), "Integer(-7)");
        assert_eq!(value(&event(2, &u64::MAX.to_le_bytes(), &[1])), "Integer(18446744073709551615)");
        assert_eq!(value(&event(4, &[2, 1, 0x81, 5], &[0])), "Decimal(\"1.5\")");
        // -123456.789000 as MySQL 9.7 writes it.
        let packed = [12, 6, !0x81, !0xe2, !0x40, !0x0c, !0x0a, !0x08];
        assert_eq!(value(&event(4, &packed, &[0])), "Decimal(\"-123456.789000\")");
        let mut null = event(0, b"", &[]);
        null[HEADER_LEN + 5] = 1;
        assert_eq!(value(&null[..HEADER_LEN + 6]), "Null");
        assert!(UserVar::parse(&event(3, b"", &[])).is_err());
        assert!(UserVar::parse(&event(4, &[2, 9, 1], &[])).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = UserVar::parse(&bytes);
            let _ = decimal(&bytes);
        }
    }
}
