//! Patterns of LIKE.

/// Longest pattern, in bytes.
pub(in crate::answer) const PATTERN_BYTES_MAX: usize = 1_024;

/// Whether a text is like a pattern, without regard to case: `%` is any text, `_` any character, a backslash takes the
/// meaning from what follows. Takes at most the product of the lengths.
pub(in crate::answer) fn is_like(text: &str, pattern: &str) -> bool {
    let text: Vec<char> = text.to_lowercase().chars().collect();
    let pattern = parts(&pattern.to_lowercase());
    let (mut at, mut part) = (0, 0);
    // Where to go on when what follows the last `%` does not fit: that `%` takes one character more.
    let mut back: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(part) {
            Some(Part::AnyText) => {
                back = Some((part, at));
                part += 1;
            }
            Some(fits) if fits.fits(text[at]) => {
                at += 1;
                part += 1;
            }
            _ => {
                let Some((any, taken)) = back else { return false };
                back = Some((any, taken + 1));
                part = any + 1;
                at = taken + 1;
            }
        }
    }
    pattern[part..].iter().all(|part| *part == Part::AnyText)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    AnyText,
    AnyCharacter,
    Character(char),
}

impl Part {
    fn fits(self, character: char) -> bool {
        match self {
            Part::AnyText => false,
            Part::AnyCharacter => true,
            Part::Character(own) => own == character,
        }
    }
}

fn parts(pattern: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        parts.push(match character {
            '%' => Part::AnyText,
            '_' => Part::AnyCharacter,
            // A backslash at the end is itself.
            '\\' => Part::Character(characters.next().unwrap_or('\\')),
            other => Part::Character(other),
        });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (text, pattern) in [
            ("server_id", "SERVER_ID"),
            ("server_id", "server\\_id"),
            ("server_id", "%id"),
            ("server_id", "s%r%d"),
            ("server_id", "server_i_"),
            ("", "%%"),
            ("a%b", "a\\%b"),
            ("a\\", "a\\"),
        ] {
            assert!(is_like(text, pattern), "{text} {pattern}");
        }
        for (text, pattern) in
            [("server_id", "server"), ("server_id", "server\\%"), ("ab", "a_b"), ("", "_"), ("a", "")]
        {
            assert!(!is_like(text, pattern), "{text} {pattern}");
        }
    }

    #[test]
    fn the_worst_pattern_takes_no_longer_than_the_product() {
        let text = "a".repeat(1 << 14);
        let pattern = "%a".repeat(PATTERN_BYTES_MAX / 2 - 1) + "%b";
        assert!(!is_like(&text, &pattern));
    }
}
