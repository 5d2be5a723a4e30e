//! The grammar of statements.

use super::error::SqlError;
use super::expression::Expression;
use super::lexer::Token;
use super::parser::Parser;
use super::refusal::Refusal;
use super::statement::{Purge, ReplicaCommand, Select, SelectItem, Statement};
use super::value::Value;

/// Most columns of a SELECT, as a server has it (MySQL Reference Manual, "Limits on Table Column Count").
const COLUMNS_MAX: usize = 4_096;

/// Words before a SELECT list that change nothing where there is one row.
const SELECT_OPTIONS: &[&str] =
    &["ALL", "DISTINCT", "DISTINCTROW", "SQL_NO_CACHE", "SQL_CACHE", "HIGH_PRIORITY", "STRAIGHT_JOIN"];

impl Parser<'_> {
    /// The statement at hand, to its end.
    pub(super) fn statement(&mut self) -> Result<Statement, SqlError> {
        let begin = self.clone();
        let Token::Word(verb) = self.current.token.clone() else { return self.unexpected() };
        self.advance()?;
        let statement = match verb.to_ascii_uppercase().as_str() {
            "SELECT" => return self.select_or_refusal(&begin),
            "SET" => self.set()?,
            "SHOW" => self.show()?,
            "DO" => Statement::Do(self.list()?),
            "USE" => Statement::Use(self.name()?),
            "KILL" => self.kill()?,
            "PURGE" => self.purge()?,
            "START" => self.start()?,
            "STOP" => self.stop()?,
            "BEGIN" => {
                self.eat("WORK")?;
                Statement::Begin
            }
            "COMMIT" => {
                self.end_of_transaction()?;
                Statement::Commit
            }
            "ROLLBACK" if self.is("TO") => {
                self.refused(Refusal::Other("ROLLBACK TO SAVEPOINT".to_owned()))?
            }
            "ROLLBACK" => {
                self.end_of_transaction()?;
                Statement::Rollback
            }
            // There is none to close; a transaction ends, as at a server.
            "FLUSH" if self.is_flush_tables()? => Statement::Commit,
            _ => match Refusal::of_verb(&verb) {
                Some(refusal) => self.refused(refusal)?,
                None => return begin.unexpected(),
            },
        };
        if self.is_end() { Ok(statement) } else { self.unexpected() }
    }

    /// FLUSH TABLES without names and a lock, which is passed over then.
    fn is_flush_tables(&mut self) -> Result<bool, SqlError> {
        let mut rest = self.clone();
        rest.eat_any(&["NO_WRITE_TO_BINLOG", "LOCAL"])?;
        let is_it = rest.eat_any(&["TABLES", "TABLE"])? && rest.is_end();
        if is_it {
            *self = rest;
        }
        Ok(is_it)
    }

    /// A statement of which the rest does not matter.
    fn refused(&mut self, refusal: Refusal) -> Result<Statement, SqlError> {
        self.skip_statement()?;
        Ok(Statement::Refused(refusal))
    }

    /// SELECT. One that reads a table is refused for that, even where it has expressions that are not understood.
    fn select_or_refusal(&mut self, begin: &Self) -> Result<Statement, SqlError> {
        let failed = match self.select() {
            Ok(statement) => return Ok(statement),
            Err(error @ (SqlError::Syntax { .. } | SqlError::TooDeep { .. })) => error,
            Err(error) => return Err(error),
        };
        let mut rest = begin.clone();
        while !rest.is_end() {
            if rest.eat("FROM")? && !rest.is("DUAL") && !rest.is_end() {
                *self = rest;
                return self.refused(Refusal::Tables);
            }
            if !rest.is_end() {
                rest.advance()?;
            }
        }
        Err(failed)
    }

    /// Behind SELECT.
    fn select(&mut self) -> Result<Statement, SqlError> {
        while self.eat_any(SELECT_OPTIONS)? {}
        let mut items = vec![self.select_item()?];
        while self.eat_sign(",")? {
            if items.len() == COLUMNS_MAX {
                return Err(SqlError::TooManyColumns);
            }
            items.push(self.select_item()?);
        }
        if self.eat("FROM")? {
            self.expect("DUAL")?;
        }
        let condition = if self.eat("WHERE")? { Some(self.expression()?) } else { None };
        let limit = self.limit()?;
        if self.is_end() {
            Ok(Statement::Select(Select { items, condition, limit }))
        } else {
            self.unexpected()
        }
    }

    fn select_item(&mut self) -> Result<SelectItem, SqlError> {
        let start = self.current.start;
        let expression = self.expression()?;
        let typed = &self.text()[start..self.last_end];
        let has_alias = self.eat("AS")?;
        let is_alias = match &self.current.token {
            Token::Word(word) => has_alias || !is_clause(word),
            Token::Quoted(_) | Token::Text(_) => true,
            _ => has_alias,
        };
        let title = match &expression {
            _ if is_alias => self.string_or_name()?,
            // The title of a string is its content, of anything else its text.
            Expression::Literal(Value::Text(text)) => text.clone(),
            _ => String::from_utf8_lossy(typed).into_owned(),
        };
        Ok(SelectItem { expression, title })
    }

    /// Behind KILL.
    fn kill(&mut self) -> Result<Statement, SqlError> {
        self.eat_any(&["HARD", "SOFT"])?;
        let query_only = self.eat("QUERY")?;
        if !query_only {
            self.eat("CONNECTION")?;
        }
        if self.is("USER") || self.is("ID") {
            return self.refused(Refusal::Other("KILL of a user's connections or by query id".to_owned()));
        }
        Ok(Statement::Kill { connection: self.expression()?, query_only })
    }

    /// Behind PURGE.
    fn purge(&mut self) -> Result<Statement, SqlError> {
        if !self.eat_any(&["BINARY", "MASTER"])? {
            return self.unexpected();
        }
        self.expect("LOGS")?;
        if self.eat("TO")? {
            return Ok(Statement::Purge(Purge::To(self.string()?)));
        }
        self.expect("BEFORE")?;
        Ok(Statement::Purge(Purge::Before(self.expression()?)))
    }

    /// Behind START.
    fn start(&mut self) -> Result<Statement, SqlError> {
        if self.eat("TRANSACTION")? {
            while !self.is_end() {
                if self.is("WITH") {
                    return self.refused(Refusal::Snapshot);
                }
                self.expect("READ")?;
                self.read_only()?;
                if !self.eat_sign(",")? {
                    break;
                }
            }
            return Ok(Statement::Begin);
        }
        self.replica(ReplicaCommand::Start)
    }

    /// Behind STOP.
    fn stop(&mut self) -> Result<Statement, SqlError> {
        self.replica(ReplicaCommand::Stop)
    }

    /// Behind START and STOP: REPLICA and its options.
    fn replica(&mut self, command: ReplicaCommand) -> Result<Statement, SqlError> {
        if self.is("GROUP_REPLICATION") {
            return self.refused(Refusal::Other("group replication".to_owned()));
        }
        if self.eat("ALL")? {
            if !self.eat_any(&["SLAVES", "REPLICAS"])? {
                return self.unexpected();
            }
        } else if !self.eat_any(&["REPLICA", "SLAVE"])? {
            return self.unexpected();
        }
        if matches!(self.current.token, Token::Text(_)) {
            self.string()?;
        }
        self.eat_any(&["IO_THREAD", "RECEIVER"])?;
        if self.is("SQL_THREAD") || self.is("UNTIL") || self.is_sign(",") {
            return self.refused(Refusal::PartOfReplica);
        }
        self.for_channel()?;
        Ok(Statement::Replica(command))
    }

    /// `[WORK] [AND [NO] CHAIN] [[NO] RELEASE]`.
    fn end_of_transaction(&mut self) -> Result<(), SqlError> {
        self.eat("WORK")?;
        if self.eat("AND")? {
            self.eat("NO")?;
            self.expect("CHAIN")?;
        }
        if self.eat("NO")? {
            self.expect("RELEASE")?;
        }
        Ok(())
    }
}

/// Whether a word behind an expression begins a clause, and so is no alias.
fn is_clause(word: &str) -> bool {
    const CLAUSES: &[&str] =
        &["FROM", "WHERE", "LIMIT", "INTO", "ORDER", "GROUP", "HAVING", "UNION", "FOR", "PROCEDURE"];
    CLAUSES.iter().any(|clause| word.eq_ignore_ascii_case(clause))
}
