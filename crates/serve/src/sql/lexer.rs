//! The words of a statement, one after the other: names, strings, numbers and signs. Comments are passed over, and the
//! inside of an executed comment (`/*!80000 … */`) is read as if no comment stood there.
//!
//! Source: MySQL Reference Manual, "Language Structure"; MariaDB Knowledge Base, "Comment Syntax".

use super::dialect::Dialect;
use super::error::SqlError;
use codec::ServerKind;

/// One word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A name or keyword without quotes, as it was written.
    Word(String),
    /// A name in quotes, without them.
    Quoted(String),
    /// A string, without its quotes and escapes.
    Text(String),
    /// A whole number; its digits.
    Integer(String),
    /// A number with a fraction or an exponent, as it was written.
    Decimal(String),
    /// `@name`; the name without quotes.
    UserVariable(String),
    /// `@@`.
    AtAt,
    /// A sign or operator.
    Sign(&'static str),
    /// The end of the text.
    End,
}

/// A word and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) token: Token,
    /// Offset of its first byte.
    pub(super) start: usize,
    /// Offset behind its last byte.
    pub(super) end: usize,
}

/// The signs, longer ones before those that they begin with.
const SIGNS: &[&str] = &[
    "<=>", ":=", "<=", ">=", "<>", "!=", "&&", "||", "(", ")", ",", ".", ";", "*", "+", "-", "/", "%", "=",
    "<", ">", "!",
];

/// A place in a text, and what stands there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexer<'a> {
    pub(super) text: &'a [u8],
    dialect: Dialect,
    at: usize,
    /// Where the executed comment begins in which the place is.
    executed: Option<usize>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a [u8], dialect: Dialect) -> Lexer<'a> {
        Lexer { text, dialect, at: 0, executed: None }
    }

    /// The next word.
    pub(super) fn next(&mut self) -> Result<Placed, SqlError> {
        self.skip()?;
        let start = self.at;
        let token = match self.peek(0) {
            None => Token::End,
            Some(b'\'') => Token::Text(self.quoted(b'\'')?),
            Some(b'"') if !self.dialect.ansi_quotes => Token::Text(self.quoted(b'"')?),
            Some(quote @ (b'"' | b'`')) => Token::Quoted(self.quoted(quote)?),
            Some(b'@') => self.variable()?,
            Some(b'0'..=b'9') => self.number()?,
            Some(b'.') if self.peek(1).is_some_and(|byte| byte.is_ascii_digit()) => self.number()?,
            Some(byte) if is_name_byte(byte) => self.word()?,
            Some(_) => self.sign()?,
        };
        Ok(Placed { token, start, end: self.at })
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    /// The bytes from the place on for which `is` holds; the place moves behind them.
    fn take_while(&mut self, is: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = self.rest();
        let taken = &rest[..rest.iter().take_while(|byte| is(**byte)).count()];
        self.at += taken.len();
        taken
    }

    fn utf8(&self, bytes: &[u8]) -> Result<String, SqlError> {
        let shown = || SqlError::NotUtf8(String::from_utf8_lossy(&bytes[..bytes.len().min(32)]).into_owned());
        String::from_utf8(bytes.to_vec()).map_err(|_| shown())
    }

    /// Goes past blanks and comments.
    fn skip(&mut self) -> Result<(), SqlError> {
        loop {
            self.take_while(|byte| byte.is_ascii_whitespace() || byte == 0x0B || byte == 0);
            let rest = self.rest();
            if rest.starts_with(b"#") || is_dashed_comment(rest) {
                self.take_while(|byte| byte != b'\n');
            } else if rest.starts_with(b"*/") && self.executed.is_some() {
                self.executed = None;
                self.at += 2;
            } else if rest.starts_with(b"/*") {
                self.comment()?;
            } else if let (true, Some(open)) = (rest.is_empty(), self.executed) {
                return Err(SqlError::syntax(self.text, open));
            } else {
                return Ok(());
            }
        }
    }

    /// Goes past a comment, or into one that is to be executed.
    fn comment(&mut self) -> Result<(), SqlError> {
        let rest = self.rest();
        let inside = match rest.get(2..) {
            Some([b'!', inside @ ..]) => Some(inside),
            Some([b'M', b'!', inside @ ..]) if self.dialect.kind == ServerKind::MariaDb => Some(inside),
            _ => None,
        };
        if let Some(inside) = inside.filter(|_| self.executed.is_none()) {
            let digits = inside.iter().take(6).take_while(|byte| byte.is_ascii_digit()).count();
            // A version has 5 digits, or 6; less is not one and belongs to what is executed.
            let digits = if digits < 5 { 0 } else { digits };
            let version =
                inside[..digits].iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
            if self.dialect.executes(version) {
                self.executed = Some(self.at);
                self.at += rest.len() - inside.len() + digits;
                return Ok(());
            }
        }
        let end = rest[2..].windows(2).position(|two| two == b"*/");
        let length = end.ok_or_else(|| SqlError::syntax(self.text, self.at))?;
        self.at += 2 + length + 2;
        Ok(())
    }

    /// A text between quotes. The quote itself is written twice in it, or behind a backslash in a string.
    fn quoted(&mut self, quote: u8) -> Result<String, SqlError> {
        let escapes = quote != b'`' && !self.dialect.no_backslash_escapes;
        let open = self.at;
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            bytes.extend_from_slice(self.take_while(|byte| byte != quote && !(escapes && byte == b'\\')));
            match (self.peek(0), self.peek(1)) {
                (Some(byte), Some(next)) if byte == quote && next == quote => bytes.push(quote),
                (Some(byte), _) if byte == quote => {
                    self.at += 1;
                    return self.utf8(&bytes);
                }
                (Some(b'\\'), Some(escaped)) => push_escaped(escaped, &mut bytes),
                _ => return Err(SqlError::syntax(self.text, open)),
            }
            self.at += 2;
        }
    }

    /// `@name` with or without quotes, or `@@`.
    fn variable(&mut self) -> Result<Token, SqlError> {
        let open = self.at;
        self.at += 1;
        match self.peek(0) {
            Some(b'@') => {
                self.at += 1;
                Ok(Token::AtAt)
            }
            Some(quote @ (b'\'' | b'"' | b'`')) => Ok(Token::UserVariable(self.quoted(quote)?)),
            _ => match self.take_while(|byte| is_name_byte(byte) || byte == b'.') {
                [] => Err(SqlError::syntax(self.text, open)),
                name => Ok(Token::UserVariable(self.utf8(name)?)),
            },
        }
    }

    /// A number, or a name that begins with digits.
    fn number(&mut self) -> Result<Token, SqlError> {
        let start = self.at;
        if let Some(text) = self.hexadecimal() {
            return Ok(Token::Text(self.utf8(&text)?));
        }
        self.take_while(|byte| byte.is_ascii_digit());
        let mut is_whole = true;
        if self.peek(0) == Some(b'.') {
            is_whole = false;
            self.at += 1;
            self.take_while(|byte| byte.is_ascii_digit());
        }
        let exponent = match (self.peek(0), self.peek(1), self.peek(2)) {
            (Some(b'e' | b'E'), Some(b'0'..=b'9'), _) => 2,
            (Some(b'e' | b'E'), Some(b'+' | b'-'), Some(b'0'..=b'9')) => 3,
            _ => 0,
        };
        if exponent > 0 {
            is_whole = false;
            self.at += exponent;
            self.take_while(|byte| byte.is_ascii_digit());
        } else if is_whole && self.peek(0).is_some_and(is_name_byte) {
            self.take_while(is_name_byte);
            return Ok(Token::Word(self.utf8(&self.text[start..self.at])?));
        }
        let digits = self.utf8(&self.text[start..self.at])?;
        Ok(if is_whole { Token::Integer(digits) } else { Token::Decimal(digits) })
    }

    /// `0x4142`: a string of these bytes.
    fn hexadecimal(&mut self) -> Option<Vec<u8>> {
        let digits = self.rest().strip_prefix(b"0x")?;
        let digits = &digits[..digits.iter().take_while(|byte| is_name_byte(**byte)).count()];
        let nibbles: Vec<u8> = digits
            .iter()
            .map(|digit| char::from(*digit).to_digit(16).map(|four| four as u8))
            .collect::<Option<_>>()?;
        if nibbles.is_empty() {
            return None;
        }
        self.at += 2 + digits.len();
        // An odd number of digits has a leading zero.
        let (first, pairs) = nibbles.split_at(nibbles.len() % 2);
        Some(first.iter().copied().chain(pairs.chunks(2).map(|pair| pair[0] << 4 | pair[1])).collect())
    }

    fn word(&mut self) -> Result<Token, SqlError> {
        let word = self.take_while(is_name_byte);
        Ok(Token::Word(self.utf8(word)?))
    }

    fn sign(&mut self) -> Result<Token, SqlError> {
        let sign = SIGNS.iter().find(|sign| self.rest().starts_with(sign.as_bytes()));
        let sign = sign.ok_or_else(|| SqlError::syntax(self.text, self.at))?;
        self.at += sign.len();
        Ok(Token::Sign(sign))
    }
}

/// Bytes of names without quotes. Those of characters outside ASCII are at least 0x80.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// `--` begins a comment only before a blank or the end: `5--3` is 8.
fn is_dashed_comment(rest: &[u8]) -> bool {
    rest.starts_with(b"--")
        && rest.get(2).is_none_or(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control())
}

/// What stands for a backslash and the byte behind it.
fn push_escaped(escaped: u8, bytes: &mut Vec<u8>) {
    match escaped {
        b'0' => bytes.push(0),
        b'b' => bytes.push(8),
        b'n' => bytes.push(b'\n'),
        b'r' => bytes.push(b'\r'),
        b't' => bytes.push(b'\t'),
        b'Z' => bytes.push(26),
        // In these two the backslash stays, because LIKE reads it (MySQL Reference Manual, "String Literals").
        b'%' | b'_' => bytes.extend([b'\\', escaped]),
        other => bytes.push(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens_in(text: &str, dialect: Dialect) -> Result<Vec<Token>, SqlError> {
        let mut lexer = Lexer::new(text.as_bytes(), dialect);
        let mut tokens = Vec::new();
        loop {
            match lexer.next()?.token {
                Token::End => return Ok(tokens),
                token => tokens.push(token),
            }
        }
    }

    fn tokens(text: &str) -> Vec<Token> {
        tokens_in(text, Dialect::new(ServerKind::MySql, "8.0.31")).unwrap()
    }

    fn word(text: &str) -> Token {
        Token::Word(text.to_owned())
    }

    fn text(text: &str) -> Token {
        Token::Text(text.to_owned())
    }

    #[test]
    fn names_strings_numbers_and_signs() {
        assert_eq!(
            tokens("a$1 `b``c` 'd''e' \"f\\\"g\""),
            [word("a$1"), Token::Quoted("b`c".to_owned()), text("d'e"), text("f\"g"),]
        );
        assert_eq!(tokens(r"'\n\%\_\x'"), [text("\n\\%\\_x")]);
        let integer = |digits: &str| Token::Integer(digits.to_owned());
        let decimal = |digits: &str| Token::Decimal(digits.to_owned());
        assert_eq!(
            tokens("12 1.5 .5 1e3 1a"),
            [integer("12"), decimal("1.5"), decimal(".5"), decimal("1e3"), word("1a")]
        );
        assert_eq!(tokens("0x4142 0x"), [text("AB"), word("0x")]);
        assert_eq!(tokens("<=>:=<"), [Token::Sign("<=>"), Token::Sign(":="), Token::Sign("<")]);
    }

    #[test]
    fn variables() {
        let user = |name: &str| Token::UserVariable(name.to_owned());
        assert_eq!(tokens("@a.b @`c d` @'e'"), [user("a.b"), user("c d"), user("e")]);
        assert_eq!(tokens("@@global . x"), [Token::AtAt, word("global"), Token::Sign("."), word("x")]);
    }

    #[test]
    fn comments_are_passed_over_and_executed_ones_read() {
        assert_eq!(tokens("a -- b\nc # d\n/* e */ f --"), [word("a"), word("c"), word("f")]);
        assert_eq!(
            tokens("a /*!40100 b*/ /*! c */ /*!90000 d */ /*!100000 e*/ f"),
            [word("a"), word("b"), word("c"), word("f"),]
        );
        let mariadb = Dialect::new(ServerKind::MariaDb, "11.8.6");
        assert_eq!(tokens_in("/*M!100100 a*/ /*!80000 b*/ c", mariadb).unwrap(), [word("a"), word("c")]);
        assert_eq!(tokens("/*M! a */ b"), [word("b")]);
    }

    #[test]
    fn what_is_left_open_is_refused_at_its_beginning() {
        let mysql = Dialect::new(ServerKind::MySql, "8.0.31");
        for open in ["'x", "\"x", "`x", "/* x", "/*! x", "'x\\", "@`x"] {
            let error = tokens_in(&format!("a\n {open}"), mysql).unwrap_err();
            let SqlError::Syntax { near, line } = error else { panic!("{open}: {error}") };
            assert_eq!(line, 2, "{open}");
            assert!(open.ends_with(&near), "{open}: {near}");
        }
        assert!(matches!(tokens_in("\u{1} x", mysql), Err(SqlError::Syntax { .. })));
    }

    #[test]
    fn the_session_decides_about_double_quotes_and_backslashes() {
        let dialect =
            Dialect { ansi_quotes: true, no_backslash_escapes: true, ..Dialect::new(ServerKind::MySql, "8") };
        assert_eq!(
            tokens_in(r#""a\" 'b\'"#, dialect).unwrap(),
            [Token::Quoted("a\\".to_owned()), text("b\\")]
        );
    }
}
