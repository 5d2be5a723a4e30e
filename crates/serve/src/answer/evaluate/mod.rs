//! The value of an expression.

pub(in crate::answer) mod functions;
pub(in crate::answer) mod pattern;
pub(in crate::answer) mod time;

use super::error;
use super::variables;
use crate::answer::evaluate::pattern::{PATTERN_BYTES_MAX, is_like};
use crate::answer::session_state::context::Context;
use crate::sql::{Expression, Operator, Value};
use codec::packet::ErrPacket;
use std::cmp::Ordering;

/// The row that a WHERE of SHOW looks at: the value of a column, `None` for a column that there is not.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<Value>;

/// No row: a name is of no column.
pub(super) fn no_row(_: &str) -> Option<Value> {
    None
}

/// Computes a value. `place` is the clause for the error about a column that there is not.
///
/// # Errors
/// With the error of the server for what it cannot compute.
pub(super) fn evaluate(
    context: &Context,
    expression: &Expression,
    row: Lookup,
    place: &str,
) -> Result<Value, ErrPacket> {
    let value = |inner: &Expression| evaluate(context, inner, row, place);
    let result = match expression {
        Expression::Literal(literal) => literal.clone(),
        Expression::UserVariable(name) => context.session.user_variable(name).cloned().unwrap_or(Value::Null),
        Expression::SystemVariable { scope, name } => variables::read(context, *scope, name)?,
        Expression::Column(name) => row(name).ok_or_else(|| error::unknown_column(name, place))?,
        Expression::Function { name, arguments } => {
            let arguments = arguments.iter().map(value).collect::<Result<Vec<_>, _>>()?;
            functions::call(context, name, &arguments)?
        }
        Expression::Not(inner) => value(inner)?.is_true().map_or(Value::Null, |is| Value::truth(!is)),
        Expression::Negative(inner) => negative(value(inner)?)?,
        Expression::Binary { operator, left, right } => binary(context, *operator, left, right, &value)?,
        Expression::IsNull { operand, negated } => Value::truth((value(operand)? == Value::Null) != *negated),
        Expression::Like { operand, pattern, negated } => {
            match (value(operand)?.to_text(), value(pattern)?.to_text()) {
                (Some(text), Some(pattern)) => Value::truth(like(context, &text, &pattern)? != *negated),
                _ => Value::Null,
            }
        }
        Expression::In { operand, list, negated } => {
            is_in(context, &value(operand)?, list, *negated, &value)?
        }
        Expression::Shifted { moment, count, unit, back } => {
            let (moment, count) = (value(moment)?.to_text(), value(count)?.to_integer());
            let zone = context.session.zone();
            let sign = if *back { -1 } else { 1 };
            let shifted = moment.zip(count).and_then(|(moment, count)| {
                let micros =
                    i64::try_from(count).ok()?.checked_mul(unit.seconds * sign)?.checked_mul(1_000_000)?;
                zone.datetime(zone.parse_datetime(&moment)?.checked_add(micros)?, 0)
            });
            shifted.map_or(Value::Null, Value::Text)
        }
    };
    context.spend(weight(&result))?;
    Ok(result)
}

/// Whether a text is like a pattern, counted as work.
pub(super) fn like(context: &Context, text: &str, pattern: &str) -> Result<bool, ErrPacket> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(error::not_supported(format!(
            "A pattern of LIKE may have {PATTERN_BYTES_MAX} bytes here"
        )));
    }
    // The worst case compares each byte of the text with each of the pattern.
    context.spend(text.len().saturating_mul(pattern.len().max(1)))?;
    Ok(is_like(text, pattern))
}

/// Bytes of a value, and what a node of the tree costs without any.
fn weight(value: &Value) -> usize {
    32 + match value {
        Value::Null | Value::Integer(_) => 0,
        Value::Decimal(text) | Value::Text(text) => text.len(),
    }
}

fn negative(value: Value) -> Result<Value, ErrPacket> {
    Ok(match value {
        Value::Null => Value::Null,
        Value::Decimal(text) => match text.strip_prefix('-') {
            Some(positive) => Value::Decimal(positive.to_owned()),
            None => Value::Decimal(format!("-{text}")),
        },
        other => Value::Integer(in_range(other.to_integer().and_then(i128::checked_neg))?),
    })
}

/// The result of arithmetic, which must fit BIGINT or BIGINT UNSIGNED.
fn in_range(number: Option<i128>) -> Result<i128, ErrPacket> {
    let fits = |number: &i128| (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(number);
    number.filter(fits).ok_or_else(error::out_of_range)
}

fn binary(
    context: &Context,
    operator: Operator,
    left: &Expression,
    right: &Expression,
    value: &dyn Fn(&Expression) -> Result<Value, ErrPacket>,
) -> Result<Value, ErrPacket> {
    let left = value(left)?;
    // What decides already is enough: the right side of another column's comparison may be NULL.
    match (operator, left.is_true()) {
        (Operator::Or, Some(true)) => return Ok(Value::truth(true)),
        (Operator::And, Some(false)) => return Ok(Value::truth(false)),
        _ => {}
    }
    let right = value(right)?;
    context.spend(weight(&left) + weight(&right))?;
    let compared = |holds: &dyn Fn(Ordering) -> bool| {
        left.compare(&right).map_or(Value::Null, |order| Value::truth(holds(order)))
    };
    Ok(match operator {
        Operator::Or => match (left.is_true(), right.is_true()) {
            (_, Some(true)) => Value::truth(true),
            (Some(false), Some(false)) => Value::truth(false),
            _ => Value::Null,
        },
        Operator::And => match (left.is_true(), right.is_true()) {
            (_, Some(false)) => Value::truth(false),
            (Some(true), Some(true)) => Value::truth(true),
            _ => Value::Null,
        },
        Operator::Equal => compared(&Ordering::is_eq),
        Operator::NullSafeEqual => match (&left, &right) {
            (Value::Null, other) | (other, Value::Null) => Value::truth(*other == Value::Null),
            _ => compared(&Ordering::is_eq),
        },
        Operator::NotEqual => compared(&Ordering::is_ne),
        Operator::Less => compared(&Ordering::is_lt),
        Operator::LessOrEqual => compared(&Ordering::is_le),
        Operator::Greater => compared(&Ordering::is_gt),
        Operator::GreaterOrEqual => compared(&Ordering::is_ge),
        Operator::Plus | Operator::Minus | Operator::Times => arithmetic(operator, &left, &right)?,
    })
}

/// Whole numbers only: nothing that clients ask needs fractions.
fn arithmetic(operator: Operator, left: &Value, right: &Value) -> Result<Value, ErrPacket> {
    if matches!(left, Value::Decimal(_)) || matches!(right, Value::Decimal(_)) {
        return Err(error::not_supported("binlogd computes with whole numbers only"));
    }
    let (Some(left), Some(right)) = (left.to_integer(), right.to_integer()) else { return Ok(Value::Null) };
    let number = match operator {
        Operator::Plus => left.checked_add(right),
        Operator::Minus => left.checked_sub(right),
        _ => left.checked_mul(right),
    };
    in_range(number).map(Value::Integer)
}

fn is_in(
    context: &Context,
    operand: &Value,
    list: &[Expression],
    negated: bool,
    value: &dyn Fn(&Expression) -> Result<Value, ErrPacket>,
) -> Result<Value, ErrPacket> {
    let mut is_unknown = *operand == Value::Null;
    for candidate in list {
        let candidate = value(candidate)?;
        context.spend(weight(operand) + weight(&candidate))?;
        match operand.compare(&candidate) {
            Some(Ordering::Equal) => return Ok(Value::truth(!negated)),
            None => is_unknown = true,
            Some(_) => {}
        }
    }
    Ok(if is_unknown { Value::Null } else { Value::truth(negated) })
}
