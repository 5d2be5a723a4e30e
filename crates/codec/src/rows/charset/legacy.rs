//! Character sets from before Unicode, by the tables of the WHATWG, which `encoding_rs` has.
//!
//! These are the servers' own but for some characters. Those that a server turns into another character, or into none, are listed here: a text
//! that has one is not told, or the character is put in its place. `show::charsets` compares every character of every set here with
//! `CONVERT(… USING utf8mb4)` of real servers. Sets that differ more, or that the WHATWG does not have, are none of these.

use encoding_rs::Encoding;
use std::borrow::Cow;

/// One character set.
#[derive(Debug, PartialEq, Eq)]
pub struct Legacy {
    /// As servers call it.
    pub name: &'static str,
    /// The numbers of its collations.
    collations: &'static [u64],
    encoding: &'static Encoding,
    /// Codes, first and last of each range, that the servers do not read as the encoding does.
    absent: &'static [(u32, u32)],
    /// Characters of the encoding and those that the servers have in their place.
    instead: &'static [(char, char)],
}

/// All of them.
pub static ALL: &[Legacy] = &[
    Legacy {
        name: "big5",
        collations: &[1, 84],
        encoding: &encoding_rs::BIG5_INIT,
        absent: &[
            (0xa145, 0xa145),
            (0xa14e, 0xa14e),
            (0xa15a, 0xa15a),
            (0xa1c2, 0xa1c3),
            (0xa1c5, 0xa1c5),
            (0xa1e3, 0xa1e3),
            (0xa1f2, 0xa1f3),
            (0xa1fe, 0xa242),
            (0xa244, 0xa244),
            (0xa246, 0xa247),
            (0xa3c0, 0xa3e1),
            (0xc6a1, 0xc8fe),
            (0xf9dd, 0xf9fe),
        ],
        instead: &[],
    },
    Legacy {
        name: "cp1250",
        collations: &[26, 34, 44, 66, 99],
        encoding: &encoding_rs::WINDOWS_1250_INIT,
        absent: &[(0x81, 0x81), (0x83, 0x83), (0x88, 0x88), (0x90, 0x90), (0x98, 0x98)],
        instead: &[],
    },
    Legacy {
        name: "cp1251",
        collations: &[14, 23, 50, 51, 52],
        encoding: &encoding_rs::WINDOWS_1251_INIT,
        absent: &[(0x98, 0x98)],
        instead: &[],
    },
    Legacy {
        name: "cp1256",
        collations: &[57, 67],
        encoding: &encoding_rs::WINDOWS_1256_INIT,
        absent: &[
            (0x8a, 0x8a),
            (0x8f, 0x8f),
            (0x98, 0x98),
            (0x9a, 0x9a),
            (0x9f, 0x9f),
            (0xaa, 0xaa),
            (0xc0, 0xc0),
            (0xff, 0xff),
        ],
        instead: &[],
    },
    Legacy {
        name: "cp1257",
        collations: &[29, 58, 59],
        encoding: &encoding_rs::WINDOWS_1257_INIT,
        absent: &[
            (0x81, 0x81),
            (0x83, 0x83),
            (0x88, 0x88),
            (0x8a, 0x8a),
            (0x8c, 0x8c),
            (0x90, 0x90),
            (0x98, 0x98),
            (0x9a, 0x9a),
            (0x9c, 0x9c),
            (0x9f, 0x9f),
        ],
        instead: &[],
    },
    Legacy {
        name: "cp866",
        collations: &[36, 68],
        encoding: &encoding_rs::IBM866_INIT,
        absent: &[],
        instead: &[('№', 'ⁿ'), ('¤', '²')],
    },
    Legacy {
        name: "cp932",
        collations: &[95, 96],
        encoding: &encoding_rs::SHIFT_JIS_INIT,
        absent: &[],
        instead: &[],
    },
    Legacy {
        name: "eucjpms",
        collations: &[97, 98],
        encoding: &encoding_rs::EUC_JP_INIT,
        absent: &[(0xf9a1, 0xfcfe)],
        instead: &[],
    },
    Legacy {
        name: "euckr",
        collations: &[19, 85],
        encoding: &encoding_rs::EUC_KR_INIT,
        absent: &[],
        instead: &[],
    },
    Legacy {
        name: "gb18030",
        collations: &[248, 249, 250],
        encoding: &encoding_rs::GB18030_INIT,
        absent: &[
            (0xa6d9, 0xa6df),
            (0xa6ec, 0xa6ed),
            (0xa6f3, 0xa6f3),
            (0xfe59, 0xfe59),
            (0xfe61, 0xfe61),
            (0xfe66, 0xfe67),
            (0xfe6d, 0xfe6d),
            (0xfe7e, 0xfe7e),
            (0xfe90, 0xfe90),
            (0xfea0, 0xfea0),
        ],
        instead: &[],
    },
    Legacy {
        name: "gb2312",
        collations: &[24, 86],
        encoding: &encoding_rs::GBK_INIT,
        absent: &[
            (0x8140, 0xa0fe),
            (0xa240, 0xa2b0),
            (0xa2e4, 0xa2e4),
            (0xa2ef, 0xa2f0),
            (0xa2fd, 0xa2fe),
            (0xa4f4, 0xa4fe),
            (0xa5f7, 0xa5fe),
            (0xa6b9, 0xa6c0),
            (0xa6d9, 0xa6fe),
            (0xa7c2, 0xa7d0),
            (0xa7f2, 0xa7fe),
            (0xa8bb, 0xa8c4),
            (0xa8ea, 0xa9a3),
            (0xa9f0, 0xaffe),
            (0xd7fa, 0xd7fe),
            (0xf840, 0xffff),
        ],
        instead: &[('·', '・'), ('—', '―')],
    },
    Legacy {
        name: "gbk",
        collations: &[28, 87],
        encoding: &encoding_rs::GBK_INIT,
        absent: &[
            (0xa140, 0xa1a0),
            (0xa240, 0xa2a0),
            (0xa2ab, 0xa2b0),
            (0xa2e4, 0xa2e4),
            (0xa2ef, 0xa2f0),
            (0xa2fd, 0xa39f),
            (0xa440, 0xa4a0),
            (0xa4f4, 0xa5a0),
            (0xa5f7, 0xa6a0),
            (0xa6b9, 0xa6c0),
            (0xa6d9, 0xa6df),
            (0xa6ec, 0xa6ed),
            (0xa6f3, 0xa6f3),
            (0xa6f6, 0xa7a0),
            (0xa7c2, 0xa7d0),
            (0xa7f2, 0xa7fe),
            (0xa896, 0xa8a0),
            (0xa8bc, 0xa8bc),
            (0xa8bf, 0xa8bf),
            (0xa8c1, 0xa8c4),
            (0xa8ea, 0xa8fe),
            (0xa958, 0xa958),
            (0xa95b, 0xa95b),
            (0xa95d, 0xa95f),
            (0xa989, 0xa995),
            (0xa997, 0xa9a3),
            (0xa9f0, 0xa9fe),
            (0xaaa1, 0xaafe),
            (0xaba1, 0xabfe),
            (0xaca1, 0xacfe),
            (0xada1, 0xadfe),
            (0xaea1, 0xaefe),
            (0xafa1, 0xaffe),
            (0xd7fa, 0xd7fe),
            (0xf8a1, 0xf8fe),
            (0xf9a1, 0xf9fe),
            (0xfaa1, 0xfafe),
            (0xfba1, 0xfbfe),
            (0xfca1, 0xfcfe),
            (0xfda1, 0xfdfe),
            (0xfe50, 0xfefe),
        ],
        instead: &[],
    },
    Legacy {
        name: "greek",
        collations: &[25, 70],
        encoding: &encoding_rs::ISO_8859_7_INIT,
        absent: &[(0xa4, 0xa5), (0xaa, 0xaa)],
        instead: &[('‘', 'ʽ'), ('’', 'ʼ')],
    },
    Legacy {
        name: "hebrew",
        collations: &[16, 71],
        encoding: &encoding_rs::ISO_8859_8_INIT,
        absent: &[],
        instead: &[('¯', '‾')],
    },
    Legacy {
        name: "koi8r",
        collations: &[7, 74],
        encoding: &encoding_rs::KOI8_R_INIT,
        absent: &[],
        instead: &[],
    },
    Legacy {
        name: "koi8u",
        collations: &[22, 75],
        encoding: &encoding_rs::KOI8_U_INIT,
        absent: &[],
        instead: &[('∙', '•'), ('ў', '╝'), ('Ў', '╬')],
    },
    Legacy {
        name: "latin2",
        collations: &[2, 9, 21, 27, 77],
        encoding: &encoding_rs::ISO_8859_2_INIT,
        absent: &[],
        instead: &[],
    },
    Legacy {
        name: "latin5",
        collations: &[30, 78],
        encoding: &encoding_rs::WINDOWS_1254_INIT,
        absent: &[(0x80, 0x9f)],
        instead: &[],
    },
    Legacy {
        name: "latin7",
        collations: &[20, 41, 42, 79],
        encoding: &encoding_rs::ISO_8859_13_INIT,
        absent: &[],
        instead: &[],
    },
    Legacy {
        name: "macroman",
        collations: &[39, 53],
        encoding: &encoding_rs::MACINTOSH_INIT,
        absent: &[],
        instead: &[],
    },
    Legacy {
        name: "sjis",
        collations: &[13, 88],
        encoding: &encoding_rs::SHIFT_JIS_INIT,
        absent: &[(0x8740, 0x8799), (0xfa40, 0xfc4b)],
        instead: JIS,
    },
    Legacy {
        name: "tis620",
        collations: &[18, 89],
        encoding: &encoding_rs::WINDOWS_874_INIT,
        absent: &[(0x80, 0xa0)],
        instead: &[],
    },
    Legacy {
        name: "ujis",
        collations: &[12, 91],
        encoding: &encoding_rs::EUC_JP_INIT,
        absent: &[(0xada1, 0xadf9), (0xf9a1, 0xfcfe)],
        instead: JIS,
    },
];

/// JIS X 0208 read by the letter, where Microsoft and the WHATWG have wide forms.
const JIS: &[(char, char)] =
    &[('＼', '\\'), ('～', '〜'), ('∥', '‖'), ('－', '−'), ('￠', '¢'), ('￡', '£'), ('￢', '¬')];

impl Legacy {
    /// By the number of a collation.
    pub(in crate::rows) fn of_collation(id: u64) -> Option<&'static Legacy> {
        ALL.iter().find(|legacy| legacy.collations.contains(&id))
    }

    /// By its name.
    pub(in crate::rows) fn of_name(name: &str) -> Option<&'static Legacy> {
        ALL.iter().find(|legacy| legacy.name == name)
    }

    /// The text; `None` where a character of it is not read as the servers read it, or the bytes would be others when it is written again.
    pub(in crate::rows) fn decode(&self, bytes: &[u8]) -> Option<Cow<'static, str>> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (code, behind) = rest.split_at(self.code_len(rest).min(rest.len()));
            let number = code.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
            if self.absent.iter().any(|(first, last)| (*first..=*last).contains(&number)) {
                return None;
            }
            rest = behind;
        }
        let text = self.encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
        let (again, _, has_replaced) = self.encoding.encode(&text);
        if has_replaced || *again != *bytes {
            return None;
        }
        let own = |one: char| self.instead.iter().find(|(from, _)| *from == one).map_or(one, |(_, to)| *to);
        Some(Cow::Owned(text.chars().map(own).collect()))
    }

    /// The text, with U+FFFD in the place of each character that [`decode`](Self::decode) does not tell.
    pub(in crate::rows) fn decode_lossy(&self, bytes: &[u8]) -> String {
        let (mut text, mut rest) = (String::new(), bytes);
        while !rest.is_empty() {
            let (code, behind) = rest.split_at(self.code_len(rest).min(rest.len()));
            match self.decode(code) {
                Some(one) => text.push_str(&one),
                None => text.push(char::REPLACEMENT_CHARACTER),
            }
            rest = behind;
        }
        text
    }

    /// Bytes of the character that begins there, as the encodings here have them.
    fn code_len(&self, bytes: &[u8]) -> usize {
        let is = |encoding| self.encoding == encoding;
        match bytes {
            [0..=0x7f, ..] => 1,
            _ if self.encoding.is_single_byte() => 1,
            [0x80 | 0xa0..=0xdf, ..] if is(encoding_rs::SHIFT_JIS) => 1,
            [0x8f, ..] if is(encoding_rs::EUC_JP) => 3,
            [_, b'0'..=b'9', ..] if is(encoding_rs::GB18030) => 4,
            _ => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(name: &str, bytes: &[u8]) -> Option<String> {
        Legacy::of_name(name).unwrap().decode(bytes).map(Cow::into_owned)
    }

    #[test]
    fn texts_are_told_as_the_servers_read_them() {
        assert_eq!(decode("gbk", &[0xd6, 0xd0, b'a']).as_deref(), Some("中a"));
        assert_eq!(decode("gbk", &[0xaa, 0xa1]), None, "for private use");
        assert_eq!(decode("gb2312", &[0xa1, 0xaa]).as_deref(), Some("―"));
        assert_eq!(decode("gb18030", &[0x81, 0x30, 0x81, 0x30, 0xd6, 0xd0]).as_deref(), Some("\u{80}中"));
        assert_eq!(decode("sjis", &[0x81, 0x5f, 0xb1]).as_deref(), Some("\\ｱ"));
        assert_eq!(decode("cp932", &[0x81, 0x5f]).as_deref(), Some("＼"));
        assert_eq!(decode("ujis", &[0xb0, 0xa1]).as_deref(), Some("亜"));
        assert_eq!(decode("ujis", &[0x8f, 0xb0, 0xa1]), None, "the encoding writes none of JIS X 0212");
        assert_eq!(decode("euckr", &[0xb0, 0xa1]).as_deref(), Some("가"));
        assert_eq!(decode("big5", &[0xa4, 0xa4]).as_deref(), Some("中"));
        assert_eq!(decode("big5", &[0xa4]), None, "cut");
        assert_eq!(decode("koi8u", &[0xc1, 0xae]).as_deref(), Some("а╝"));
        assert_eq!(decode("cp932", &[0x87, 0x90]), None, "written again it is another code");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(at in 0..ALL.len(), bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            let _ = ALL[at].decode(&bytes);
        }
    }
}
