//! All words of a statement, with their places in it: a name in it can be replaced, and nothing else is touched.
//!
//! The rest of `statement` reads the beginnings of statements of which nobody knows the `sql_mode`. Here it is known, so that all of a statement
//! is read, and in doubt refused: no table may be touched by a name that was read as something else.

use std::ops::Range;

/// `ANSI_QUOTES` and `NO_BACKSLASH_ESCAPES` among the bits of `sql_mode`.
const ANSI_QUOTES: u64 = 1 << 2;
const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;

/// A word, a name in quotes, or a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// What it is.
    pub kind: Kind,
    /// Without quotes.
    pub text: String,
    /// Where it stands, quotes and all.
    pub at: Range<usize>,
}

/// Kinds of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A keyword, a name without quotes, or a number.
    Plain,
    /// A name in quotes.
    Quoted,
    /// A text.
    Text,
    /// Any other character.
    Mark,
}

impl Word {
    /// Whether it is that keyword, in whatever case.
    pub fn is(&self, keyword: &str) -> bool {
        self.kind == Kind::Plain && self.text.eq_ignore_ascii_case(keyword)
    }

    /// Whether it is that character.
    pub fn is_mark(&self, mark: char) -> bool {
        self.kind == Kind::Mark && self.text.starts_with(mark)
    }

    /// Whether it can be a name.
    pub fn is_name(&self) -> bool {
        let is_number = || self.text.bytes().all(|byte| byte.is_ascii_digit());
        self.kind == Kind::Quoted || self.kind == Kind::Plain && !is_number()
    }
}

/// Reads all words. What servers run of comments (`/*!50003 … */`, `/*M! … */`) is read as they do, all other comments are passed over.
///
/// # Errors
/// In words, when a quote or a comment has no end.
pub fn words(text: &str, sql_mode: u64) -> Result<Vec<Word>, String> {
    let (bytes, mut at, mut found) = (text.as_bytes(), 0, Vec::new());
    while let Some(byte) = bytes.get(at).copied() {
        let rest = &bytes[at..];
        let from = at;
        let is_dashes = rest.starts_with(b"--") && rest.get(2).is_none_or(|byte| *byte <= b' ');
        if byte.is_ascii_whitespace() {
            at += 1;
        } else if rest.starts_with(b"/*!") || rest.starts_with(b"/*M!") {
            at += if rest[2] == b'M' { 4 } else { 3 };
            at += bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        } else if rest.starts_with(b"/*") {
            let end = text[at + 2..].find("*/").ok_or("a comment has no end")?;
            at += end + 4;
        } else if rest.starts_with(b"*/") {
            at += 2;
        } else if byte == b'#' || is_dashes {
            at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        } else if matches!(byte, b'\'' | b'"' | b'`') {
            let is_name = byte == b'`' || byte == b'"' && sql_mode & ANSI_QUOTES != 0;
            let has_escapes = !is_name && sql_mode & NO_BACKSLASH_ESCAPES == 0;
            at = end_of_quotes(bytes, at, has_escapes).ok_or("a quote has no end")?;
            let quote = char::from(byte).to_string();
            let inner = text[from + 1..at - 1].replace(&quote.repeat(2), &quote);
            let kind = if is_name { Kind::Quoted } else { Kind::Text };
            found.push(Word { kind, text: inner, at: from..at });
        } else {
            let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
            let len = rest.iter().take_while(|byte| is_plain(byte)).count();
            at += len.max(1);
            let kind = if len == 0 { Kind::Mark } else { Kind::Plain };
            found.push(Word { kind, text: text[from..at].to_owned(), at: from..at });
        }
    }
    Ok(found)
}

/// Where what is quoted from `at` on ends. A doubled quote stands for itself.
fn end_of_quotes(bytes: &[u8], at: usize, has_escapes: bool) -> Option<usize> {
    let quote = bytes[at];
    let mut at = at + 1;
    loop {
        let byte = *bytes.get(at)?;
        if byte == b'\\' && has_escapes {
            at += 2;
        } else if byte != quote {
            at += 1;
        } else if bytes.get(at + 1) == Some(&quote) {
            at += 2;
        } else {
            return Some(at + 1);
        }
    }
}

/// A name at that place, with its schema where it has one, and the place behind it.
pub fn name_at(words: &[Word], at: usize) -> Option<(Option<&str>, &str, usize)> {
    let first = words.get(at).filter(|word| word.is_name())?;
    match (words.get(at + 1), words.get(at + 2)) {
        (Some(point), Some(second)) if point.is_mark('.') && second.kind != Kind::Mark => {
            Some((Some(&first.text), &second.text, at + 3))
        }
        _ => Some((None, &first.text, at + 1)),
    }
}
