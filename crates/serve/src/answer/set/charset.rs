//! Character sets and their collations: what SET NAMES accepts and SHOW CHARACTER SET shows. Results are UTF-8
//! whatever is chosen, and hardly ever anything but ASCII.
//!
//! Names and numbers as MySQL 9.7 and MariaDB 11.8 show them.

/// A character set.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::answer) struct CharacterSet {
    pub(in crate::answer) name: &'static str,
    /// Most bytes of a character.
    pub(in crate::answer) bytes_max: u8,
    /// Collations, the default first, each with its number in the protocol.
    pub(in crate::answer) collations: &'static [(&'static str, u16)],
}

const fn set(name: &'static str, bytes_max: u8, collations: &'static [(&'static str, u16)]) -> CharacterSet {
    CharacterSet { name, bytes_max, collations }
}

/// All of them, in the order of their names.
pub(in crate::answer) const CHARACTER_SETS: &[CharacterSet] = &[
    set("armscii8", 1, &[("armscii8_general_ci", 32), ("armscii8_bin", 64)]),
    set("ascii", 1, &[("ascii_general_ci", 11), ("ascii_bin", 65)]),
    set("big5", 2, &[("big5_chinese_ci", 1), ("big5_bin", 84)]),
    set("binary", 1, &[("binary", 63)]),
    set("cp1250", 1, &[("cp1250_general_ci", 26), ("cp1250_bin", 66)]),
    set("cp1251", 1, &[("cp1251_general_ci", 51), ("cp1251_bin", 50)]),
    set("cp1256", 1, &[("cp1256_general_ci", 57), ("cp1256_bin", 67)]),
    set("cp1257", 1, &[("cp1257_general_ci", 59), ("cp1257_bin", 58)]),
    set("cp850", 1, &[("cp850_general_ci", 4), ("cp850_bin", 80)]),
    set("cp852", 1, &[("cp852_general_ci", 40), ("cp852_bin", 81)]),
    set("cp866", 1, &[("cp866_general_ci", 36), ("cp866_bin", 68)]),
    set("cp932", 2, &[("cp932_japanese_ci", 95), ("cp932_bin", 96)]),
    set("dec8", 1, &[("dec8_swedish_ci", 3), ("dec8_bin", 69)]),
    set("eucjpms", 3, &[("eucjpms_japanese_ci", 97), ("eucjpms_bin", 98)]),
    set("euckr", 2, &[("euckr_korean_ci", 19), ("euckr_bin", 85)]),
    set("gb18030", 4, &[("gb18030_chinese_ci", 248), ("gb18030_bin", 249)]),
    set("gb2312", 2, &[("gb2312_chinese_ci", 24), ("gb2312_bin", 86)]),
    set("gbk", 2, &[("gbk_chinese_ci", 28), ("gbk_bin", 87)]),
    set("geostd8", 1, &[("geostd8_general_ci", 92), ("geostd8_bin", 93)]),
    set("greek", 1, &[("greek_general_ci", 25), ("greek_bin", 70)]),
    set("hebrew", 1, &[("hebrew_general_ci", 16), ("hebrew_bin", 71)]),
    set("hp8", 1, &[("hp8_english_ci", 6), ("hp8_bin", 72)]),
    set("keybcs2", 1, &[("keybcs2_general_ci", 37), ("keybcs2_bin", 73)]),
    set("koi8r", 1, &[("koi8r_general_ci", 7), ("koi8r_bin", 74)]),
    set("koi8u", 1, &[("koi8u_general_ci", 22), ("koi8u_bin", 75)]),
    set("latin1", 1, &[("latin1_swedish_ci", 8), ("latin1_bin", 47), ("latin1_general_ci", 48)]),
    set("latin2", 1, &[("latin2_general_ci", 9), ("latin2_bin", 77)]),
    set("latin5", 1, &[("latin5_turkish_ci", 30), ("latin5_bin", 78)]),
    set("latin7", 1, &[("latin7_general_ci", 41), ("latin7_bin", 79)]),
    set("macce", 1, &[("macce_general_ci", 38), ("macce_bin", 43)]),
    set("macroman", 1, &[("macroman_general_ci", 39), ("macroman_bin", 53)]),
    set("swe7", 1, &[("swe7_swedish_ci", 10), ("swe7_bin", 82)]),
    set("sjis", 2, &[("sjis_japanese_ci", 13), ("sjis_bin", 88)]),
    set("tis620", 1, &[("tis620_thai_ci", 18), ("tis620_bin", 89)]),
    set("ujis", 3, &[("ujis_japanese_ci", 12), ("ujis_bin", 91)]),
    set(
        "utf8mb3",
        3,
        &[
            ("utf8mb3_general_ci", 33),
            ("utf8mb3_bin", 83),
            ("utf8mb3_unicode_ci", 192),
            ("utf8mb3_uca1400_ai_ci", 2_048),
        ],
    ),
    set(
        "utf8mb4",
        4,
        &[
            ("utf8mb4_general_ci", 45),
            ("utf8mb4_bin", 46),
            ("utf8mb4_unicode_ci", 224),
            ("utf8mb4_unicode_520_ci", 246),
            ("utf8mb4_0900_ai_ci", 255),
            ("utf8mb4_0900_bin", 309),
            ("utf8mb4_uca1400_ai_ci", 2_304),
        ],
    ),
];

/// The character set of this name; `utf8` is `utf8mb3`.
pub(in crate::answer) fn find(name: &str) -> Option<&'static CharacterSet> {
    let name = if name.eq_ignore_ascii_case("utf8") { "utf8mb3" } else { name };
    CHARACTER_SETS.iter().find(|set| set.name.eq_ignore_ascii_case(name))
}

/// The character set that has a collation of this name, and the collation. Of utf8mb3 and utf8mb4 every name is taken,
/// because they have hundreds.
pub(in crate::answer) fn find_collation(name: &str) -> Option<(&'static CharacterSet, String)> {
    let name = name.to_ascii_lowercase();
    let name = name.strip_prefix("utf8_").map_or(name.clone(), |rest| format!("utf8mb3_{rest}"));
    let is_known = |set: &&CharacterSet| set.collations.iter().any(|(collation, _)| *collation == name);
    if let Some(set) = CHARACTER_SETS.iter().find(is_known) {
        return Some((set, name));
    }
    let is_of = |set: &&CharacterSet| {
        set.name.starts_with("utf8")
            && name.strip_prefix(set.name).is_some_and(|rest| rest.starts_with('_') && rest.len() > 1)
    };
    CHARACTER_SETS.iter().find(is_of).map(|set| (set, name))
}

/// The names of the character set and of the collation with this number, as MySQL 9.7 and MariaDB 11.8 write them; `None` of a
/// collation that is not listed here.
pub fn collation_of(number: u16) -> Option<(&'static str, &'static str)> {
    CHARACTER_SETS.iter().find_map(|set| {
        let (name, _) = set.collations.iter().find(|(_, of)| *of == number)?;
        Some((set.name, *name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_and_collations_by_any_of_their_names() {
        assert_eq!(find("UTF8").unwrap().name, "utf8mb3");
        assert_eq!(find_collation("utf8_bin").unwrap().1, "utf8mb3_bin");
        assert_eq!(find_collation("utf8mb4_tr_0900_ai_ci").unwrap().0.name, "utf8mb4");
        assert_eq!(find_collation("latin1_swedish_ci").unwrap().0.name, "latin1");
        assert!(
            find("foo").is_none()
                && find_collation("latin1_foo").is_none()
                && find_collation("utf8mb4_").is_none()
        );
    }

    #[test]
    fn each_number_is_one_collation() {
        let mut numbers: Vec<u16> =
            CHARACTER_SETS.iter().flat_map(|set| set.collations).map(|(_, number)| *number).collect();
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count);
    }
}
