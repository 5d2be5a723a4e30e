//! The grammar of SET.

use super::error::SqlError;
use super::expression::{Expression, Scope};
use super::lexer::Token;
use super::parser::Parser;
use super::refusal::Refusal;
use super::statement::{Assignment, Statement};
use super::value::Value;

impl Parser<'_> {
    /// SET, behind its first word.
    pub(super) fn set(&mut self) -> Result<Statement, SqlError> {
        let is_assigned = |token: Token| matches!(token, Token::Sign("=" | ":="));
        let refusal = match &self.current.token {
            Token::Word(word) if !is_assigned(self.peek()?) => match word.to_ascii_uppercase().as_str() {
                "PASSWORD" => Some(Refusal::Change("SET PASSWORD".to_owned())),
                word @ ("ROLE" | "DEFAULT" | "RESOURCE" | "STATEMENT") => {
                    Some(Refusal::Other(format!("SET {word}")))
                }
                _ => None,
            },
            Token::Word(word) if word.eq_ignore_ascii_case("PASSWORD") => {
                Some(Refusal::Change("SET PASSWORD".to_owned()))
            }
            _ => None,
        };
        if let Some(refusal) = refusal {
            self.skip_statement()?;
            return Ok(Statement::Refused(refusal));
        }
        let mut assignments = Vec::new();
        // A scope that is written holds for the names behind it too.
        let mut scope = None;
        loop {
            assignments.push(self.assignment(&mut scope)?);
            if !self.eat_sign(",")? {
                return Ok(Statement::Set(assignments));
            }
        }
    }

    fn assignment(&mut self, scope: &mut Option<Scope>) -> Result<Assignment, SqlError> {
        if let Token::UserVariable(name) = &self.current.token {
            let name = name.to_lowercase();
            self.advance()?;
            self.assign_sign()?;
            return Ok(Assignment::User { name, value: self.expression()? });
        }
        if self.current.token == Token::AtAt {
            let (scope, name) = self.system_variable()?;
            self.assign_sign()?;
            return Ok(Assignment::System { scope, name, value: self.setting()? });
        }
        if self.scope_keyword().is_some() {
            *scope = self.scope_keyword();
            self.advance()?;
        }
        let is_name = matches!(self.peek()?, Token::Sign("=" | ":=" | "."));
        if !is_name && self.eat("NAMES")? {
            return self.names();
        }
        if !is_name && (self.is("CHARACTER") || self.is("CHARSET")) {
            if self.eat("CHARACTER")? {
                self.expect("SET")?;
            } else {
                self.expect("CHARSET")?;
            }
            return Ok(Assignment::CharacterSet(self.name_or_default()?));
        }
        if !is_name && self.eat("TRANSACTION")? {
            return self.transaction(*scope);
        }
        let name = self.variable_name()?;
        self.assign_sign()?;
        Ok(Assignment::System { scope: *scope, name, value: self.setting()? })
    }

    fn assign_sign(&mut self) -> Result<(), SqlError> {
        if self.eat_sign("=")? || self.eat_sign(":=")? { Ok(()) } else { self.unexpected() }
    }

    /// The value of a system variable: DEFAULT, a word such as ON, or an expression.
    fn setting(&mut self) -> Result<Option<Expression>, SqlError> {
        if self.eat("DEFAULT")? {
            return Ok(None);
        }
        Ok(Some(match self.expression()? {
            Expression::Column(word) => Expression::Literal(Value::Text(word)),
            other => other,
        }))
    }

    fn name_or_default(&mut self) -> Result<Option<String>, SqlError> {
        if self.eat("DEFAULT")? { Ok(None) } else { self.string_or_name().map(Some) }
    }

    /// Behind NAMES.
    fn names(&mut self) -> Result<Assignment, SqlError> {
        let character_set = self.name_or_default()?;
        let collation = if self.eat("COLLATE")? { self.name_or_default()? } else { None };
        Ok(Assignment::Names { character_set, collation })
    }

    /// Behind TRANSACTION: `ISOLATION LEVEL …`, `READ …`, in any order.
    fn transaction(&mut self, scope: Option<Scope>) -> Result<Assignment, SqlError> {
        let (mut isolation, mut read_only) = (None, None);
        loop {
            if self.eat("ISOLATION")? {
                self.expect("LEVEL")?;
                isolation = Some(self.isolation()?);
            } else {
                self.expect("READ")?;
                read_only = Some(self.read_only()?);
            }
            // A comma before anything else is the next assignment's, of which a server allows none here.
            if !self.eat_sign(",")? {
                return Ok(Assignment::Transaction { scope, isolation, read_only });
            }
        }
    }

    fn isolation(&mut self) -> Result<&'static str, SqlError> {
        if self.eat("SERIALIZABLE")? {
            return Ok("SERIALIZABLE");
        }
        if self.eat("REPEATABLE")? {
            self.expect("READ")?;
            return Ok("REPEATABLE-READ");
        }
        self.expect("READ")?;
        if self.eat("COMMITTED")? {
            return Ok("READ-COMMITTED");
        }
        self.expect("UNCOMMITTED")?;
        Ok("READ-UNCOMMITTED")
    }

    /// Behind READ: whether ONLY.
    pub(super) fn read_only(&mut self) -> Result<bool, SqlError> {
        if self.eat("ONLY")? {
            return Ok(true);
        }
        self.expect("WRITE")?;
        Ok(false)
    }
}
