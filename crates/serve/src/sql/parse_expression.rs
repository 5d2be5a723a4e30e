//! The grammar of expressions, by precedence climbing.

use super::error::SqlError;
use super::expression::{Expression, IntervalUnit, Operator, Scope};
use super::lexer::Token;
use super::parser::{NESTING_MAX, OPERATORS_MAX, Parser};
use super::value::Value;

/// How strongly operators bind, the weakest first (MySQL Reference Manual, "Operator Precedence").
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const COMPARISON: u8 = 4;
const SUM: u8 = 5;
const PRODUCT: u8 = 6;

/// Functions that are called without parentheses too.
const BARE_FUNCTIONS: &[&str] = &[
    "current_user",
    "current_timestamp",
    "current_date",
    "current_time",
    "localtime",
    "localtimestamp",
    "utc_timestamp",
    "utc_date",
    "utc_time",
];

/// Words that end an expression, so that none is taken for the name of a column.
const NO_NAMES: &[&str] = &[
    "FROM", "WHERE", "LIMIT", "AND", "OR", "NOT", "IN", "LIKE", "IS", "AS", "ORDER", "GROUP", "HAVING",
    "UNION", "SELECT", "SET", "SHOW", "INTO", "FOR", "INTERVAL", "CASE", "EXISTS",
];

impl Parser<'_> {
    /// An expression.
    pub(super) fn expression(&mut self) -> Result<Expression, SqlError> {
        self.deeper(|parser| parser.climb(OR))
    }

    /// One level further in, as long as that is allowed.
    fn deeper<T>(&mut self, inside: impl FnOnce(&mut Self) -> Result<T, SqlError>) -> Result<T, SqlError> {
        if self.depth == NESTING_MAX {
            return Err(SqlError::TooDeep { max: NESTING_MAX });
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    fn count_operator(&mut self) -> Result<(), SqlError> {
        self.operators += 1;
        if self.operators > OPERATORS_MAX { Err(SqlError::TooDeep { max: OPERATORS_MAX }) } else { Ok(()) }
    }

    /// An expression of operators that bind at least as strongly as `weakest`.
    fn climb(&mut self, weakest: u8) -> Result<Expression, SqlError> {
        let mut left = self.prefixed()?;
        loop {
            if let Some((operator, strength)) = self.operator().filter(|(_, strength)| *strength >= weakest) {
                self.count_operator()?;
                self.advance()?;
                left = if strength == SUM && self.is("INTERVAL") {
                    let back = operator == Operator::Minus;
                    self.interval(left, back)?
                } else {
                    let right = self.deeper(|parser| parser.climb(strength + 1))?;
                    Expression::Binary { operator, left: Box::new(left), right: Box::new(right) }
                };
            } else if weakest <= COMPARISON && ["IS", "NOT", "LIKE", "IN"].iter().any(|word| self.is(word)) {
                self.count_operator()?;
                left = self.tested(left)?;
            } else {
                return Ok(left);
            }
        }
    }

    /// The operator at hand, and how strongly it binds.
    fn operator(&self) -> Option<(Operator, u8)> {
        if self.is("OR") {
            return Some((Operator::Or, OR));
        }
        if self.is("AND") {
            return Some((Operator::And, AND));
        }
        let Token::Sign(sign) = self.current.token else { return None };
        Some(match sign {
            "||" => (Operator::Or, OR),
            "&&" => (Operator::And, AND),
            "=" => (Operator::Equal, COMPARISON),
            "<=>" => (Operator::NullSafeEqual, COMPARISON),
            "<>" | "!=" => (Operator::NotEqual, COMPARISON),
            "<" => (Operator::Less, COMPARISON),
            "<=" => (Operator::LessOrEqual, COMPARISON),
            ">" => (Operator::Greater, COMPARISON),
            ">=" => (Operator::GreaterOrEqual, COMPARISON),
            "+" => (Operator::Plus, SUM),
            "-" => (Operator::Minus, SUM),
            "*" => (Operator::Times, PRODUCT),
            _ => return None,
        })
    }

    /// `IS [NOT] NULL`, `[NOT] LIKE x`, `[NOT] IN (…)` behind `left`.
    fn tested(&mut self, left: Expression) -> Result<Expression, SqlError> {
        let operand = Box::new(left);
        if self.eat("IS")? {
            let negated = self.eat("NOT")?;
            self.expect("NULL")?;
            return Ok(Expression::IsNull { operand, negated });
        }
        let negated = self.eat("NOT")?;
        if self.eat("LIKE")? {
            let pattern = Box::new(self.deeper(|parser| parser.climb(SUM))?);
            return Ok(Expression::Like { operand, pattern, negated });
        }
        self.expect("IN")?;
        self.expect_sign("(")?;
        let list = self.list()?;
        self.expect_sign(")")?;
        Ok(Expression::In { operand, list, negated })
    }

    /// Expressions with commas between them, at least one.
    pub(super) fn list(&mut self) -> Result<Vec<Expression>, SqlError> {
        let mut list = vec![self.expression()?];
        while self.eat_sign(",")? {
            list.push(self.expression()?);
        }
        Ok(list)
    }

    /// `INTERVAL n unit` behind a moment.
    fn interval(&mut self, moment: Expression, back: bool) -> Result<Expression, SqlError> {
        self.expect("INTERVAL")?;
        let count = Box::new(self.expression()?);
        let unit = match &self.current.token {
            Token::Word(name) => IntervalUnit::parse(name),
            _ => None,
        };
        let Some(unit) = unit else { return self.unexpected() };
        self.advance()?;
        Ok(Expression::Shifted { moment: Box::new(moment), count, unit, back })
    }

    /// What stands before an operator, with its own signs before it.
    fn prefixed(&mut self) -> Result<Expression, SqlError> {
        if self.eat("NOT")? {
            self.count_operator()?;
            return Ok(Expression::Not(Box::new(self.deeper(|parser| parser.climb(NOT))?)));
        }
        if self.eat_sign("!")? {
            self.count_operator()?;
            return Ok(Expression::Not(Box::new(self.deeper(Self::prefixed)?)));
        }
        if self.eat_sign("-")? {
            self.count_operator()?;
            return Ok(Expression::Negative(Box::new(self.deeper(Self::prefixed)?)));
        }
        if self.eat_sign("+")? {
            return self.deeper(Self::prefixed);
        }
        self.primary()
    }

    fn primary(&mut self) -> Result<Expression, SqlError> {
        match self.current.token.clone() {
            Token::Integer(digits) => {
                self.advance()?;
                // Longer ones than any integer type are decimals to a server too.
                let value = digits.parse().map_or(Value::Decimal(digits), Value::Integer);
                Ok(Expression::Literal(value))
            }
            Token::Decimal(text) => {
                self.advance()?;
                Ok(Expression::Literal(Value::Decimal(text)))
            }
            Token::Text(_) => self.strings(),
            Token::UserVariable(name) => {
                self.advance()?;
                Ok(Expression::UserVariable(name.to_lowercase()))
            }
            Token::AtAt => {
                let (scope, name) = self.system_variable()?;
                Ok(Expression::SystemVariable { scope, name })
            }
            Token::Sign("(") => {
                self.advance()?;
                let inside = self.expression()?;
                self.expect_sign(")")?;
                Ok(inside)
            }
            Token::Word(word) => self.named(&word),
            Token::Quoted(name) => {
                self.advance()?;
                Ok(Expression::Column(name))
            }
            Token::Sign(_) | Token::End => self.unexpected(),
        }
    }

    /// A string; several that follow each other are one.
    fn strings(&mut self) -> Result<Expression, SqlError> {
        let mut text = self.string()?;
        while matches!(self.current.token, Token::Text(_)) {
            text.push_str(&self.string()?);
        }
        Ok(Expression::Literal(Value::Text(text)))
    }

    /// What begins with a word: a literal, a call, a name.
    fn named(&mut self, word: &str) -> Result<Expression, SqlError> {
        if NO_NAMES.iter().any(|reserved| word.eq_ignore_ascii_case(reserved)) {
            return self.unexpected();
        }
        // A character set before a string, as in _utf8mb4'x', says nothing that is not so already.
        let next = self.peek()?;
        if matches!(next, Token::Text(_)) && (word.starts_with('_') || word.eq_ignore_ascii_case("N")) {
            self.advance()?;
            return self.strings();
        }
        self.advance()?;
        let name = word.to_ascii_lowercase();
        if self.eat_sign("(")? {
            return self.call(name);
        }
        Ok(match name.as_str() {
            "null" => Expression::Literal(Value::Null),
            "true" => Expression::Literal(Value::truth(true)),
            "false" => Expression::Literal(Value::truth(false)),
            _ if BARE_FUNCTIONS.contains(&name.as_str()) => {
                Expression::Function { name, arguments: Vec::new() }
            }
            _ => Expression::Column(word.to_owned()),
        })
    }

    /// The arguments of a call, behind its opening parenthesis.
    fn call(&mut self, name: String) -> Result<Expression, SqlError> {
        if self.eat_sign(")")? {
            return Ok(Expression::Function { name, arguments: Vec::new() });
        }
        let mut arguments = vec![self.expression()?];
        let shift_back = match name.as_str() {
            "date_sub" | "subdate" => Some(true),
            "date_add" | "adddate" => Some(false),
            _ => None,
        };
        while self.eat_sign(",")? {
            if let (Some(back), true, 1) = (shift_back, self.is("INTERVAL"), arguments.len()) {
                let shifted = self.interval(arguments.remove(0), back)?;
                self.expect_sign(")")?;
                return Ok(shifted);
            }
            arguments.push(self.expression()?);
        }
        self.expect_sign(")")?;
        Ok(Expression::Function { name, arguments })
    }

    /// `@@name`, `@@global.name`; the name in lower case, of a structured variable with its component.
    pub(super) fn system_variable(&mut self) -> Result<(Option<Scope>, String), SqlError> {
        self.advance()?;
        let scope = self.scope_keyword();
        if scope.is_some() {
            self.advance()?;
            self.expect_sign(".")?;
        }
        Ok((scope, self.variable_name()?))
    }

    /// The scope that the word at hand is, if it is one.
    pub(super) fn scope_keyword(&self) -> Option<Scope> {
        if ["GLOBAL", "PERSIST", "PERSIST_ONLY"].iter().any(|word| self.is(word)) {
            Some(Scope::Global)
        } else if self.is("SESSION") || self.is("LOCAL") {
            Some(Scope::Session)
        } else {
            None
        }
    }

    /// The name of a system variable, in lower case.
    pub(super) fn variable_name(&mut self) -> Result<String, SqlError> {
        let mut name = self.name()?;
        if self.eat_sign(".")? {
            name.push('.');
            name.push_str(&self.name()?);
        }
        Ok(name.to_ascii_lowercase())
    }
}
