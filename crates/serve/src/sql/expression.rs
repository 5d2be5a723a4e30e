//! Expressions: what stands in a SELECT list, behind a `=` of SET, or in a WHERE of SHOW.

use super::value::Value;

/// Which of a system variable's two values is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `@@global.x`, SHOW GLOBAL, SET GLOBAL, SET PERSIST.
    Global,
    /// `@@session.x`, `@@local.x`, SHOW SESSION.
    Session,
}

/// An operator between two expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `OR`, `||`.
    Or,
    /// `AND`, `&&`.
    And,
    /// `=`.
    Equal,
    /// `<=>`: NULL equals NULL.
    NullSafeEqual,
    /// `<>`, `!=`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
    /// `+`.
    Plus,
    /// `-`.
    Minus,
    /// `*`.
    Times,
}

/// A unit of an INTERVAL, by its seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalUnit {
    /// Length of the unit, in seconds.
    pub seconds: i64,
}

impl IntervalUnit {
    /// The unit of a name, whatever its case. Units of no fixed length, as MONTH, are not known here.
    pub(super) fn parse(name: &str) -> Option<IntervalUnit> {
        let seconds = match name.to_ascii_uppercase().as_str() {
            "SECOND" => 1,
            "MINUTE" => 60,
            "HOUR" => 3_600,
            "DAY" => 86_400,
            "WEEK" => 604_800,
            _ => return None,
        };
        Some(IntervalUnit { seconds })
    }
}

/// An expression. Its depth is bounded by the parser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// What it says.
    Literal(Value),
    /// `@name`, in lower case: user variables do not differ by case.
    UserVariable(String),
    /// `@@scope.name`, in lower case.
    SystemVariable {
        /// As written; without one the session's value, or the global one where there is no other.
        scope: Option<Scope>,
        /// The name.
        name: String,
    },
    /// A name: in a WHERE of SHOW a column of what is shown.
    Column(String),
    /// A call, also of functions that need no parentheses; the name in lower case.
    Function {
        /// The name.
        name: String,
        /// The arguments.
        arguments: Vec<Expression>,
    },
    /// `NOT x`, `! x`.
    Not(Box<Expression>),
    /// `- x`.
    Negative(Box<Expression>),
    /// `x op y`.
    Binary {
        /// The operator.
        operator: Operator,
        /// Before it.
        left: Box<Expression>,
        /// Behind it.
        right: Box<Expression>,
    },
    /// `x IS [NOT] NULL`.
    IsNull {
        /// What is looked at.
        operand: Box<Expression>,
        /// With NOT.
        negated: bool,
    },
    /// `x [NOT] LIKE y`.
    Like {
        /// What is looked at.
        operand: Box<Expression>,
        /// The pattern.
        pattern: Box<Expression>,
        /// With NOT.
        negated: bool,
    },
    /// `x [NOT] IN (a, b, …)`.
    In {
        /// What is looked for.
        operand: Box<Expression>,
        /// Among these.
        list: Vec<Expression>,
        /// With NOT.
        negated: bool,
    },
    /// A moment plus or minus an INTERVAL.
    Shifted {
        /// The moment.
        moment: Box<Expression>,
        /// How many units.
        count: Box<Expression>,
        /// Of which length.
        unit: IntervalUnit,
        /// Minus.
        back: bool,
    },
}
