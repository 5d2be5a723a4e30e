//! The statements that clients send, read by a small grammar: text in, [`Statement`] out. No I/O, no clock.
//!
//! | file | noun |
//! |---|---|
//! | `dialect.rs` | whose words are spoken: the kind and version of server, the session's `sql_mode` |
//! | `lexer.rs` | words: names, strings, numbers, signs; comments, also executed ones |
//! | `parser.rs` | the word at hand, and the steps of the grammar |
//! | `parse_statement.rs` | the grammar of statements, SELECT among them |
//! | `parse_show.rs`, `parse_set.rs` | the grammar of SHOW and of SET |
//! | `parse_expression.rs` | the grammar of expressions |
//! | `statement.rs`, `expression.rs`, `value.rs` | what the grammar gives |
//! | `refusal.rs` | what is understood and not done, and why |
//! | `error.rs` | what is not understood |
//!
//! Everything is bounded: [`STATEMENT_BYTES_MAX`], [`NESTING_MAX`], [`OPERATORS_MAX`]; the time is linear in the
//! length.

mod dialect;
mod error;
mod expression;
mod lexer;
mod parse_expression;
mod parse_set;
mod parse_show;
mod parse_statement;
mod parser;
mod refusal;
mod statement;
mod value;

#[cfg(test)]
mod tests;

pub use dialect::Dialect;
pub use dialect::version_number;
pub use error::SqlError;
pub use expression::{Expression, IntervalUnit, Operator, Scope};
use parser::Parser;
pub use parser::{NESTING_MAX, OPERATORS_MAX};
pub use refusal::Refusal;
pub use statement::{
    Assignment, Filter, Limit, Purge, ReplicaCommand, Select, SelectItem, Show, Statement, Words,
};
pub use value::Value;

/// The longest text that is read, in bytes. The longest that clients send are GTID sets.
pub const STATEMENT_BYTES_MAX: usize = 1 << 20;

/// Reads the one statement of a packet. A `;` behind it is allowed, a second statement is not.
pub fn parse(text: &[u8], dialect: Dialect) -> Result<Statement, SqlError> {
    let mut statements = Statements::new(text, dialect);
    let first = statements.next().unwrap_or(Err(SqlError::Empty))?;
    match statements.begin_of_next()? {
        Some(at) => Err(SqlError::syntax(text, at)),
        None => Ok(first),
    }
}

/// The statements of a packet of a session with CLIENT_MULTI_STATEMENTS, one after the other. As with a server, the
/// first are carried out before it is seen that a later one is wrong; the first error is the last item. A packet
/// without any statement has no item: its answer is [`SqlError::Empty`].
#[derive(Debug)]
pub struct Statements<'a> {
    /// `None` behind an error, and at the end.
    parser: Option<Parser<'a>>,
    /// The error of the very first word.
    failed: Option<SqlError>,
}

impl<'a> Statements<'a> {
    /// The statements of this text. The dialect is that of the session before the first of them.
    pub fn new(text: &'a [u8], dialect: Dialect) -> Statements<'a> {
        if text.len() > STATEMENT_BYTES_MAX {
            let error = SqlError::TooLong { bytes: text.len(), max: STATEMENT_BYTES_MAX };
            return Statements { parser: None, failed: Some(error) };
        }
        match Parser::new(text, dialect) {
            Ok(parser) => Statements { parser: Some(parser), failed: None },
            Err(error) => Statements { parser: None, failed: Some(error) },
        }
    }

    /// Whether another statement follows, which may be one that is wrong: what SERVER_MORE_RESULTS_EXISTS is to say.
    pub fn has_more(&mut self) -> bool {
        match self.begin_of_next() {
            Ok(begin) => begin.is_some(),
            Err(error) => {
                self.fail(error);
                true
            }
        }
    }

    /// Where the next statement begins; goes past the `;` before it.
    fn begin_of_next(&mut self) -> Result<Option<usize>, SqlError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let Some(parser) = &mut self.parser else { return Ok(None) };
        while parser.eat_sign(";")? {}
        Ok(if parser.is_end() { None } else { Some(parser.current.start) })
    }

    fn fail(&mut self, error: SqlError) {
        self.parser = None;
        self.failed = Some(error);
    }
}

impl Iterator for Statements<'_> {
    type Item = Result<Statement, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.has_more() {
            return None;
        }
        if let Some(error) = self.failed.take() {
            return Some(Err(error));
        }
        let parser = self.parser.as_mut()?;
        parser.operators = 0;
        parser.depth = 0;
        let statement = parser.statement();
        if statement.is_err() {
            self.parser = None;
        }
        Some(statement)
    }
}
