//! Fields as they are written into a payload; [`super::cursor`] reads them.

/// Appends a length-encoded integer in its shortest form.
///
/// Source: MySQL Source Code Documentation, "Protocol::LengthEncodedInteger".
pub(super) fn length_encoded(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    match value {
        0..0xFB => out.push(bytes[0]),
        0xFB..0x1_0000 => {
            out.push(0xFC);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..0x100_0000 => {
            out.push(0xFD);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends a length-encoded string.
pub(super) fn length_encoded_string(out: &mut Vec<u8>, text: &[u8]) {
    length_encoded(out, text.len() as u64);
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::cursor::Cursor;
    use super::*;

    #[test]
    fn each_width_has_its_first_and_last_value() {
        for (value, width) in [
            (0, 1),
            (0xFA, 1),
            (0xFB, 3),
            (0xFFFF, 3),
            (0x1_0000, 4),
            (0xFF_FFFF, 4),
            (0x100_0000, 9),
            (u64::MAX, 9),
        ] {
            let mut out = Vec::new();
            length_encoded(&mut out, value);
            assert_eq!(out.len(), width, "{value}");
            assert_eq!(Cursor::new(&out).length_encoded_integer("n"), Ok(value));
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value: u64, text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut out = Vec::new();
            length_encoded(&mut out, value);
            length_encoded_string(&mut out, &text);
            let mut cursor = Cursor::new(&out);
            prop_assert_eq!(cursor.length_encoded_integer("n"), Ok(value));
            prop_assert_eq!(cursor.length_encoded_string("s"), Ok(Some(&text[..])));
            prop_assert!(cursor.is_empty());
        }
    }
}
