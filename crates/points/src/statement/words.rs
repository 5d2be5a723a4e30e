//! The words at the beginning of a statement.

use std::borrow::Cow;

/// One word of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word<'a> {
    /// Without quotes: a keyword, a name, a number.
    Plain(&'a [u8]),
    /// In backticks or double quotes: a name, its quotes taken off.
    Quoted(Cow<'a, [u8]>),
    /// Anything else, one character.
    Mark(u8),
}

impl<'a> Word<'a> {
    /// The name that it is.
    pub(super) fn name(self) -> Option<Cow<'a, [u8]>> {
        match self {
            Word::Plain(name) => Some(Cow::Borrowed(name)),
            Word::Quoted(name) => Some(name),
            Word::Mark(_) => None,
        }
    }
}

/// Reads words one after another, without comments. What servers run of comments (`/*!50003 … */`) is no comment.
#[derive(Debug, Clone)]
pub(super) struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a [u8]) -> Words<'a> {
        Words { rest: text }
    }

    /// Behind the settings that MariaDB has for one statement only: SET STATEMENT name = value, … FOR statement. Where the end of these
    /// is not found it begins with SET.
    pub(super) fn of_statement(text: &'a [u8]) -> Words<'a> {
        let all = Words::new(text);
        let mut words = all.clone();
        if !words.accept(&["SET"]) || !words.accept(&["STATEMENT"]) {
            return all;
        }
        let mut depth = 0;
        loop {
            if depth == 0 && words.accept(&["FOR"]) {
                // A backslash may hide the end of a string, or not (NO_BACKSLASH_ESCAPES).
                let passed = &text[..text.len() - words.rest.len()];
                return if passed.contains(&b'\\') { all } else { words };
            }
            match words.next() {
                Some(Word::Mark(b'(')) => depth += 1,
                Some(Word::Mark(b')')) => depth -= 1,
                Some(Word::Mark(b'\'')) if !words.skip_string() => return all,
                Some(_) => {}
                None => return all,
            }
        }
    }

    /// Goes behind the end of a string whose first quote was taken; false where that is not certain: it has none, or a backslash may
    /// hide it.
    pub(super) fn skip_string(&mut self) -> bool {
        // A doubled one ends a string and begins the next.
        let end = self.rest.iter().position(|byte| *byte == b'\'');
        let (string, rest) = self.rest.split_at(end.map_or(self.rest.len(), |end| end + 1));
        self.rest = rest;
        end.is_some() && !string.contains(&b'\\')
    }

    /// Takes the next word if it is one of these; says whether it was.
    pub(super) fn accept(&mut self, words: &[&str]) -> bool {
        let mut ahead = self.clone();
        match ahead.next() {
            Some(Word::Plain(word)) if words.iter().any(|one| word.eq_ignore_ascii_case(one.as_bytes())) => {
                *self = ahead;
                true
            }
            _ => false,
        }
    }

    /// As [`accept`](Self::accept), for a mark.
    pub(super) fn accept_mark(&mut self, mark: u8) -> bool {
        let mut ahead = self.clone();
        if ahead.next() == Some(Word::Mark(mark)) {
            *self = ahead;
            return true;
        }
        false
    }

    /// Goes behind the first of these words; false where none comes.
    pub(super) fn pass_over(&mut self, words: &[&str]) -> bool {
        for word in self.by_ref() {
            if let Word::Plain(word) = word
                && words.iter().any(|one| word.eq_ignore_ascii_case(one.as_bytes()))
            {
                return true;
            }
        }
        false
    }

    fn skip_blanks(&mut self) {
        loop {
            self.rest = self.rest.trim_ascii_start();
            if self.rest.starts_with(b"/*!") || self.rest.starts_with(b"/*M!") {
                let digits = self.rest.iter().position(|byte| *byte == b'!').map_or(0, |at| at + 1);
                let behind = &self.rest[digits..];
                let len = behind.iter().take_while(|byte| byte.is_ascii_digit()).count();
                self.rest = &behind[len..];
            } else if self.rest.starts_with(b"/*") {
                let end = self.rest[2..].windows(2).position(|two| two == b"*/").map(|at| at + 4);
                self.rest = end.map_or(&[], |end| &self.rest[end..]);
            } else if let Some(rest) = self.rest.strip_prefix(b"*/") {
                self.rest = rest;
            } else if self.rest.starts_with(b"#") || begins_comment(self.rest) {
                let end = self.rest.iter().position(|byte| *byte == b'\n');
                self.rest = end.map_or(&[], |end| &self.rest[end..]);
            } else {
                return;
            }
        }
    }

    fn quoted(&mut self, quote: u8) -> Option<Word<'a>> {
        let text = &self.rest[1..];
        let mut at = 0;
        let mut is_doubled = false;
        loop {
            at += text[at..].iter().position(|byte| *byte == quote)?;
            if text.get(at + 1) != Some(&quote) {
                break;
            }
            is_doubled = true;
            at += 2;
        }
        self.rest = &text[at + 1..];
        let name = &text[..at];
        if !is_doubled {
            return Some(Word::Quoted(Cow::Borrowed(name)));
        }
        let mut single = Vec::with_capacity(name.len());
        let mut bytes = name.iter();
        while let Some(byte) = bytes.next() {
            single.push(*byte);
            if *byte == quote {
                bytes.next();
            }
        }
        Some(Word::Quoted(Cow::Owned(single)))
    }
}

/// Whether it is `--` with a blank, a control character or the end behind it (`MY_LEX_MINUS_OR_COMMENT`, `sql_lex.cc`).
fn begins_comment(text: &[u8]) -> bool {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || byte.is_ascii_control();
    text.strip_prefix(b"--").is_some_and(|behind| behind.first().is_none_or(is_blank))
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        self.skip_blanks();
        let first = *self.rest.first()?;
        if first == b'`' || first == b'"' {
            let word = self.quoted(first);
            if word.is_none() {
                self.rest = &[];
            }
            return word;
        }
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'@' | 0x80..);
        let len = self.rest.iter().take_while(|byte| is_word(byte)).count();
        if len == 0 {
            self.rest = &self.rest[1..];
            return Some(Word::Mark(first));
        }
        let (word, rest) = self.rest.split_at(len);
        self.rest = rest;
        Some(Word::Plain(word))
    }
}
