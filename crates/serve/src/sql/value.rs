//! A value of an expression: what a literal says, a variable holds or a function returns.

use std::cmp::Ordering;

/// One value. Dates and times are text, as a server sends them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Unknown, or not there.
    Null,
    /// A whole number; wide enough for both BIGINT and BIGINT UNSIGNED.
    Integer(i128),
    /// A number with a fraction or an exponent, as it was written.
    Decimal(String),
    /// A string.
    Text(String),
}

impl Value {
    /// A string value.
    pub fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }

    /// TRUE is 1 and FALSE is 0.
    pub(crate) fn truth(is: bool) -> Value {
        Value::Integer(i128::from(is))
    }

    /// As a row of a text result set holds it; `None` for NULL.
    pub(crate) fn to_text(&self) -> Option<String> {
        match self {
            Value::Null => None,
            Value::Integer(number) => Some(number.to_string()),
            Value::Decimal(text) | Value::Text(text) => Some(text.clone()),
        }
    }

    /// The whole number: of a string the one at its beginning and 0 where none stands there, of a fraction the nearest.
    /// `None` for NULL.
    pub(crate) fn to_integer(&self) -> Option<i128> {
        match self {
            Value::Null => None,
            Value::Integer(number) => Some(*number),
            // A cast of a float saturates.
            Value::Decimal(text) => Some(text.parse::<f64>().map_or(0, |number| number.round() as i128)),
            Value::Text(text) => Some(leading_integer(text)),
        }
    }

    /// Whether a condition of this value holds; `None` where that is unknown.
    pub(crate) fn is_true(&self) -> Option<bool> {
        Some(self.to_number()? != 0.0)
    }

    fn to_number(&self) -> Option<f64> {
        match self {
            Value::Null => None,
            Value::Integer(number) => Some(*number as f64),
            Value::Decimal(text) => Some(text.parse().unwrap_or(0.0)),
            Value::Text(text) => Some(leading_number(text)),
        }
    }

    /// The order of two values, `None` where one is NULL: two strings without regard to case, whole numbers exactly,
    /// anything else as floating-point numbers.
    pub fn compare(&self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Value::Null, _) | (_, Value::Null) => None,
            (Value::Text(left), Value::Text(right)) => Some(left.to_lowercase().cmp(&right.to_lowercase())),
            (Value::Integer(left), Value::Integer(right)) => Some(left.cmp(right)),
            _ => self.to_number()?.partial_cmp(&other.to_number()?),
        }
    }
}

/// The whole number at the beginning of a text, saturated; 0 where there is none.
fn leading_integer(text: &str) -> i128 {
    let text = text.trim_start();
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let mut number: i128 = 0;
    for digit in digits.bytes().take_while(u8::is_ascii_digit) {
        number = number.saturating_mul(10).saturating_add(i128::from(digit - b'0'));
    }
    if negative { -number } else { number }
}

/// The number at the beginning of a text, with its fraction; 0 where there is none.
fn leading_number(text: &str) -> f64 {
    let text = text.trim_start();
    let is_part = |(at, byte): (usize, u8)| {
        byte.is_ascii_digit() || byte == b'.' || (at == 0 && (byte == b'-' || byte == b'+'))
    };
    let end = text.bytes().enumerate().take_while(|part| is_part(*part)).count();
    text[..end].parse().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_the_number_at_its_beginning() {
        assert_eq!(Value::text(" -12abc").to_integer(), Some(-12));
        assert_eq!(Value::text("abc").to_integer(), Some(0));
        assert_eq!(Value::text("9".repeat(100)).to_integer(), Some(i128::MAX));
        assert_eq!(Value::Decimal("1.5e1".to_owned()).to_integer(), Some(15));
        assert_eq!(Value::Null.to_integer(), None);
    }

    #[test]
    fn strings_compare_without_case_and_numbers_as_numbers() {
        assert_eq!(Value::text("Uptime").compare(&Value::text("uptime")), Some(Ordering::Equal));
        assert_eq!(Value::text("10").compare(&Value::Integer(9)), Some(Ordering::Greater));
        assert_eq!(Value::text("1.5x").compare(&Value::Decimal("1.50".to_owned())), Some(Ordering::Equal));
        assert_eq!(Value::Null.compare(&Value::Null), None);
        assert_eq!(Value::text("0").is_true(), Some(false));
    }
}
