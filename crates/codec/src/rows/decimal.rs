//! DECIMAL as it stands in a row.
//!
//! Nine digits take four bytes, big-endian, fewer as many as they need; first those before the point, of which the first group is the
//! short one, then those behind it, of which the last is. The first bit is turned round, and in a negative number all others are
//! too (MySQL, `decimal2bin` in `strings/decimal.cc`, described there).

use std::fmt::Write;

/// Bytes of so many digits, up to nine.
const BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// The number as text, without a fraction that it does not have. `None` when the bytes are no such number.
pub(super) fn decimal(bytes: &[u8], precision: usize, scale: usize) -> Option<String> {
    let before = precision.checked_sub(scale)?;
    let len = |digits: usize| digits / 9 * 4 + BYTES[digits % 9];
    if bytes.len() != len(before) + len(scale) || bytes.is_empty() {
        return None;
    }
    let is_negative = bytes[0] & 0x80 == 0;
    let mut own = bytes.to_vec();
    own[0] ^= 0x80;
    if is_negative {
        own.iter_mut().for_each(|byte| *byte = !*byte);
    }
    let mut rest = &own[..];
    let mut digits = String::new();
    group(&mut rest, before % 9, &mut digits)?;
    for _ in 0..before / 9 {
        group(&mut rest, 9, &mut digits)?;
    }
    let whole = digits.trim_start_matches('0');
    let mut text = if is_negative { "-".to_owned() } else { String::new() };
    text.push_str(if whole.is_empty() { "0" } else { whole });
    if scale > 0 {
        text.push('.');
        for _ in 0..scale / 9 {
            group(&mut rest, 9, &mut text)?;
        }
        group(&mut rest, scale % 9, &mut text)?;
    }
    Some(text)
}

/// So many digits. More than fit are no number.
fn group(rest: &mut &[u8], digits: usize, text: &mut String) -> Option<()> {
    let (own, behind) = rest.split_at_checked(BYTES[digits])?;
    *rest = behind;
    let number = own.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    if number >= 10_u32.pow(digits as u32) {
        return None;
    }
    if digits > 0 {
        write!(text, "{number:0digits$}").ok()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_others_refused() {
        let of = |bytes: &[u8], precision, scale| decimal(bytes, precision, scale);
        assert_eq!(of(&[0x80, 0, 0, 1, 50], 10, 2).as_deref(), Some("1.50"));
        // The example of the servers' own sources: 1234567890.1234.
        assert_eq!(
            of(&[0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2], 14, 4).as_deref(),
            Some("1234567890.1234")
        );
        assert_eq!(
            of(&[0x7e, 0xf2, 0x04, 0xc7, 0x2d, 0xfb, 0x2d], 14, 4).as_deref(),
            Some("-1234567890.1234")
        );
        assert_eq!(of(&[0x80, 5], 4, 4).as_deref(), Some("0.0005"));
        assert_eq!(of(&[0x80, 5], 5, 4), None, "of another length");
        assert_eq!(of(&[0x80, 0x05], 3, 0).as_deref(), Some("5"));
        assert_eq!(of(&[0xff], 1, 0), None, "no digit");
        assert_eq!(of(&[], 0, 0), None);
        assert_eq!(of(&[0x80, 5], 1, 2), None);
    }
}
