//! Character sets, by the numbers of collations that stand in a log.

pub(in crate::rows) mod legacy;

use crate::rows::charset::legacy::Legacy;
use std::borrow::Cow;

/// A character set, as far as its text can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    /// No characters: bytes.
    Binary,
    /// `utf8mb4`, `utf8mb3`: bytes that are the same as those of a literal in `utf8mb4`.
    Utf8,
    /// `ascii`.
    Ascii,
    /// `latin1`, which is Windows-1252 with its five holes filled.
    Latin1,
    /// `utf16`, and `ucs2`, which is a part of it.
    Utf16,
    /// `utf16le`.
    Utf16Le,
    /// `utf32`.
    Utf32,
    /// One from before Unicode.
    Legacy(&'static Legacy),
    /// Another one, of which the text is not told.
    Other,
}

impl Charset {
    /// Of a collation's number (`information_schema.collations.id`). MariaDB's that end in `nopad` have 1024 more than the ones
    /// without, and its `uca1400` begin at 2048, 256 for each character set.
    pub fn of_collation(id: u64) -> Charset {
        let id = if (1024..2048).contains(&id) { id - 1024 } else { id };
        match id {
            63 => Charset::Binary,
            45 | 46 | 224..=247 | 255..=323 | 576..=607 | 608..=639 | 2304..=2559 => Charset::Utf8,
            33 | 76 | 83 | 192..=215 | 223 | 2048..=2303 => Charset::Utf8,
            11 | 65 => Charset::Ascii,
            5 | 8 | 15 | 31 | 47..=49 | 94 => Charset::Latin1,
            35 | 54 | 55 | 90 | 101..=124 | 128..=151 | 159 | 640..=703 | 2560..=3071 => Charset::Utf16,
            56 | 62 => Charset::Utf16Le,
            60 | 61 | 160..=183 | 736..=767 | 3072..=3327 => Charset::Utf32,
            _ => Legacy::of_collation(id).map_or(Charset::Other, Charset::Legacy),
        }
    }

    /// Of a name in `information_schema`; `None` there means bytes.
    pub fn of_name(name: Option<&str>) -> Charset {
        match name {
            None | Some("binary") => Charset::Binary,
            Some("utf8mb4" | "utf8mb3" | "utf8") => Charset::Utf8,
            Some("ascii") => Charset::Ascii,
            Some("latin1") => Charset::Latin1,
            Some("utf16" | "ucs2") => Charset::Utf16,
            Some("utf16le") => Charset::Utf16Le,
            Some("utf32") => Charset::Utf32,
            Some(name) => Legacy::of_name(name).map_or(Charset::Other, Charset::Legacy),
        }
    }

    /// The text of `bytes`; `None` where they are none in this character set, or it is not known.
    pub fn decode(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        match self {
            Charset::Binary | Charset::Other => None,
            Charset::Utf8 => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Charset::Ascii if !bytes.is_ascii() => None,
            Charset::Ascii => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Charset::Latin1 => Some(bytes.iter().map(|byte| latin1(*byte)).collect::<String>().into()),
            Charset::Legacy(legacy) => legacy.decode(bytes),
            Charset::Utf16 => utf16(bytes, u16::from_be_bytes),
            Charset::Utf16Le => utf16(bytes, u16::from_le_bytes),
            Charset::Utf32 => {
                let chars =
                    bytes.chunks(4).map(|four| char::from_u32(u32::from_be_bytes(*four.first_chunk::<4>()?)));
                chars.collect::<Option<String>>().map(Cow::Owned)
            }
        }
    }

    /// A statement of a client that has it, in UTF-8: as it is where that is no other, else with U+FFFD in the place of what is not
    /// known. Servers take none for clients in which a character has no byte of its own where ASCII has one (`ucs2`, `utf16`, `utf32`).
    pub fn to_utf8(self, bytes: &[u8]) -> Cow<'_, [u8]> {
        if bytes.is_ascii() && !matches!(self, Charset::Utf16 | Charset::Utf16Le | Charset::Utf32) {
            return Cow::Borrowed(bytes);
        }
        match (self, self.decode(bytes)) {
            (Charset::Utf8 | Charset::Binary, _) => Cow::Borrowed(bytes),
            (_, Some(Cow::Borrowed(text))) => Cow::Borrowed(text.as_bytes()),
            (_, Some(Cow::Owned(text))) => Cow::Owned(text.into_bytes()),
            (Charset::Legacy(legacy), None) => Cow::Owned(legacy.decode_lossy(bytes).into_bytes()),
            (_, None) => Cow::Owned(String::from_utf8_lossy(bytes).into_owned().into_bytes()),
        }
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<Cow<'static, str>> {
    let units = bytes.chunks(2).map(|two| two.first_chunk::<2>().map(|two| unit(*two)));
    String::from_utf16(&units.collect::<Option<Vec<u16>>>()?).ok().map(Cow::Owned)
}

/// Bytes 0x80 to 0x9f are those of Windows-1252; where that has none, the servers have the control character of the same number.
fn latin1(byte: u8) -> char {
    const FROM_80: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
        '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => FROM_80[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_in_its_character_set_or_not_at_all() {
        let decode = |id: u64, bytes| Charset::of_collation(id).decode(bytes).map(Cow::into_owned);
        assert_eq!(decode(255, "ä😀".as_bytes()).as_deref(), Some("ä😀"));
        assert_eq!(decode(1024 + 46, "ä".as_bytes()).as_deref(), Some("ä"));
        assert_eq!(decode(2304, "ä".as_bytes()).as_deref(), Some("ä"));
        assert_eq!(decode(255, &[0xff]), None);
        assert_eq!(decode(8, &[0x80, 0xe4]).as_deref(), Some("€ä"));
        assert_eq!(decode(11, &[0xe4]), None);
        assert_eq!(decode(54, &[0, 0xe4, 0xd8, 0x3d, 0xde, 0]).as_deref(), Some("ä😀"));
        assert_eq!(decode(54, &[0]), None);
        assert_eq!(decode(60, &[0, 1, 0xf6, 0]).as_deref(), Some("😀"));
        assert_eq!(decode(63, b"x"), None);
        assert_eq!(decode(28, &[0xd6, 0xd0]).as_deref(), Some("中"));
        assert_eq!(decode(1024 + 87, &[0xd6, 0xd0]).as_deref(), Some("中"));
        assert_eq!(decode(248, "中".as_bytes()), None, "gb18030, not utf8mb4");
        assert_eq!(decode(4, b"x"), None, "cp850");
        let utf8 = |id: u64, bytes| {
            String::from_utf8(Charset::of_collation(id).to_utf8(bytes).into_owned()).unwrap()
        };
        assert_eq!(
            utf8(13, b"DROP TABLE \x95\x5c\x83\x5c"),
            "DROP TABLE 表ソ",
            "a backslash is half of a character"
        );
        assert_eq!(
            utf8(13, b"\x95\x5c \x87\x40 \x95"),
            "表 \u{fffd} \u{fffd}",
            "what is not known, and what is cut"
        );
        assert_eq!(utf8(28, b"\xd3\xc3\xbb\xa7"), "用户");
        assert_eq!(utf8(8, b"gr\xf6\xdfe"), "größe");
        assert_eq!(utf8(4, b"a\x84"), "a\u{fffd}", "cp850");
        assert_eq!(Charset::of_name(Some("latin1")), Charset::Latin1);
        assert_eq!(Charset::of_name(None), Charset::Binary);
    }
}
