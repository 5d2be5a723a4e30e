//! The parser's view of a statement: the word at hand, and the steps that every part of the grammar is made of.

use super::dialect::Dialect;
use super::error::SqlError;
use super::lexer::{Lexer, Placed, Token};
use super::statement::Limit;

/// The deepest nesting of parentheses and calls. Each level costs stack of the connection's thread.
pub const NESTING_MAX: usize = 32;

/// Most operators in one statement; a chain of operators is as deep as long.
pub const OPERATORS_MAX: usize = 100;

/// A place in a statement. Cloned to look ahead.
#[derive(Clone, Debug)]
pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The word at hand.
    pub(super) current: Placed,
    /// Offset behind the word before it.
    pub(super) last_end: usize,
    /// Levels of nesting that are open.
    pub(super) depth: usize,
    /// Operators so far.
    pub(super) operators: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a [u8], dialect: Dialect) -> Result<Parser<'a>, SqlError> {
        let mut lexer = Lexer::new(text, dialect);
        let current = lexer.next()?;
        Ok(Parser { lexer, current, last_end: 0, depth: 0, operators: 0 })
    }

    pub(super) fn text(&self) -> &'a [u8] {
        self.lexer.text
    }

    /// Goes on to the next word, and gives the one that was at hand.
    pub(super) fn advance(&mut self) -> Result<Token, SqlError> {
        let next = self.lexer.next()?;
        let before = std::mem::replace(&mut self.current, next);
        self.last_end = before.end;
        Ok(before.token)
    }

    /// The word behind the one at hand.
    pub(super) fn peek(&self) -> Result<Token, SqlError> {
        let mut lexer = self.lexer;
        Ok(lexer.next()?.token)
    }

    /// The word at hand does not fit.
    pub(super) fn unexpected<T>(&self) -> Result<T, SqlError> {
        Err(SqlError::syntax(self.text(), self.current.start))
    }

    /// Whether the word at hand is this keyword. `keyword` is in upper case.
    pub(super) fn is(&self, keyword: &str) -> bool {
        matches!(&self.current.token, Token::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    /// Whether the word at hand is this sign.
    pub(super) fn is_sign(&self, sign: &str) -> bool {
        matches!(&self.current.token, Token::Sign(found) if *found == sign)
    }

    /// Whether the statement ends here.
    pub(super) fn is_end(&self) -> bool {
        self.current.token == Token::End || self.is_sign(";")
    }

    /// Goes past this keyword where it stands.
    pub(super) fn eat(&mut self, keyword: &str) -> Result<bool, SqlError> {
        let is = self.is(keyword);
        if is {
            self.advance()?;
        }
        Ok(is)
    }

    /// Goes past one of these keywords where one stands.
    pub(super) fn eat_any(&mut self, keywords: &[&str]) -> Result<bool, SqlError> {
        let found = keywords.iter().find(|keyword| self.is(keyword));
        found.map_or(Ok(false), |keyword| self.eat(keyword))
    }

    /// Goes past this sign where it stands.
    pub(super) fn eat_sign(&mut self, sign: &str) -> Result<bool, SqlError> {
        let is = self.is_sign(sign);
        if is {
            self.advance()?;
        }
        Ok(is)
    }

    /// Goes past this keyword, which must stand here.
    pub(super) fn expect(&mut self, keyword: &str) -> Result<(), SqlError> {
        if self.eat(keyword)? { Ok(()) } else { self.unexpected() }
    }

    /// Goes past this sign, which must stand here.
    pub(super) fn expect_sign(&mut self, sign: &str) -> Result<(), SqlError> {
        if self.eat_sign(sign)? { Ok(()) } else { self.unexpected() }
    }

    /// A name, with or without quotes.
    pub(super) fn name(&mut self) -> Result<String, SqlError> {
        match &self.current.token {
            Token::Word(_) | Token::Quoted(_) => {}
            _ => return self.unexpected(),
        }
        match self.advance()? {
            Token::Word(name) | Token::Quoted(name) => Ok(name),
            _ => self.unexpected(),
        }
    }

    /// A string.
    pub(super) fn string(&mut self) -> Result<String, SqlError> {
        let Token::Text(text) = &self.current.token else { return self.unexpected() };
        let text = text.clone();
        self.advance()?;
        Ok(text)
    }

    /// A string or a name.
    pub(super) fn string_or_name(&mut self) -> Result<String, SqlError> {
        if matches!(self.current.token, Token::Text(_)) { self.string() } else { self.name() }
    }

    /// A whole number that fits 64 bits.
    pub(super) fn number(&mut self) -> Result<u64, SqlError> {
        let Token::Integer(digits) = &self.current.token else { return self.unexpected() };
        let Ok(number) = digits.parse() else { return self.unexpected() };
        self.advance()?;
        Ok(number)
    }

    /// `LIMIT n`, `LIMIT offset, n`, `LIMIT n OFFSET offset`, or none.
    pub(super) fn limit(&mut self) -> Result<Limit, SqlError> {
        if !self.eat("LIMIT")? {
            return Ok(Limit::NONE);
        }
        let first = self.number()?;
        Ok(if self.eat_sign(",")? {
            Limit { offset: first, rows: self.number()? }
        } else if self.eat("OFFSET")? {
            Limit { offset: self.number()?, rows: first }
        } else {
            Limit { offset: 0, rows: first }
        })
    }

    /// Goes to the end of the statement, whatever stands before it.
    pub(super) fn skip_statement(&mut self) -> Result<(), SqlError> {
        while !self.is_end() {
            self.advance()?;
        }
        Ok(())
    }
}
