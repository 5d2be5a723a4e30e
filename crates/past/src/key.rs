//! The primary key of a row, as a person writes it or as a row of the log has it.

use codec::rows::{Column, Image, Value, hex};
use repair::detail::KnownTable;

/// A primary key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// As it was given: `42`, `id=42` or `a=1,b=x`. Which it is the columns decide.
    Given(String),
    /// Of a column by its name.
    Named(String, String),
}

/// The columns of a key in a table: their numbers, and what they are to be.
pub(crate) type Wanted = Vec<(usize, String)>;

/// Whether a row has a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matched {
    Yes,
    No,
    /// Not to the byte, but a collation may take the two for one.
    Near,
    /// The log does not have all of its key.
    Lacking,
}

impl Key {
    /// As it was given: one value, or a column and its value, for each.
    pub fn given(parts: &[String]) -> Key {
        Key { parts: parts.iter().cloned().map(Part::Given).collect() }
    }

    /// Of a row, in the columns of another key.
    pub(crate) fn of_row(columns: &[Column], image: &Image<'_>, wanted: &Wanted) -> Option<Key> {
        let part = |(at, _): &(usize, String)| {
            let (column, value) = (columns.get(*at)?, image.get(*at)?.as_ref()?);
            Some(Part::Named(column.name.clone()?, plain(column, value)))
        };
        Some(Key { parts: wanted.iter().map(part).collect::<Option<_>>()? })
    }

    /// Its columns in a table.
    ///
    /// # Errors
    /// In words: it is no primary key of that table, or nobody knows what that is.
    pub(crate) fn of_table(&self, table: &KnownTable) -> Result<Wanted, String> {
        let columns = &table.table.columns;
        let named = |name: &str| {
            columns
                .iter()
                .position(|column| column.name.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(name)))
        };
        let keys: Vec<usize> = (0..columns.len()).filter(|at| columns[*at].is_key == Some(true)).collect();
        let mut wanted = Wanted::new();
        for part in &self.parts {
            match part {
                Part::Named(name, text) => match named(name) {
                    Some(at) => wanted.push((at, text.clone())),
                    None => return Err(format!("{} has no column {name} here", table.name())),
                },
                Part::Given(text) => {
                    let pair = |text: &str| {
                        text.split_once('=')
                            .and_then(|(name, text)| Some((named(name.trim())?, text.to_owned())))
                    };
                    let pairs: Option<Wanted> = text.split(',').map(pair).collect();
                    match (pair(text), pairs) {
                        (Some(_), Some(pairs)) => wanted.extend(pairs),
                        (Some(pair), None) => wanted.push(pair),
                        (None, _) => match keys[..] {
                            [only] => wanted.push((only, text.clone())),
                            _ => return Err(self.untold(table, &keys)),
                        },
                    }
                }
            }
        }
        wanted.sort();
        let is_key = wanted.iter().map(|(at, _)| *at).eq(keys.iter().copied());
        if is_key || keys.is_empty() { Ok(wanted) } else { Err(self.untold(table, &keys)) }
    }

    fn untold(&self, table: &KnownTable, keys: &[usize]) -> String {
        let (name, columns) = (table.name(), &table.table.columns);
        let names: Vec<&str> = keys.iter().filter_map(|at| columns[*at].name.as_deref()).collect();
        if !names.is_empty() {
            let form: Vec<String> = names.iter().map(|name| format!("--key {name}=…")).collect();
            return format!("the primary key of {name} is ({}): write {}", names.join(", "), form.join(" "));
        }
        if table.has_names {
            return format!(
                "the log tells no primary key of {name}: name the columns that tell the row from all others, as --key {}=…",
                columns.first().and_then(|column| column.name.as_deref()).unwrap_or("a")
            );
        }
        format!(
            "the log does not name the columns of {name} (binlog_row_metadata is not FULL): ask a server with --schema mysql://…, or name \
             the key's columns by their numbers, as --key @1=42"
        )
    }

    /// As the command line takes it.
    pub fn text(&self) -> String {
        let part = |part: &Part| match part {
            Part::Given(text) => format!("--key {}", shell(text)),
            Part::Named(name, text) => format!("--key {}", shell(&format!("{name}={text}"))),
        };
        self.parts.iter().map(part).collect::<Vec<_>>().join(" ")
    }
}

/// A word of a shell.
fn shell(text: &str) -> String {
    let is_plain = |one: char| one.is_alphanumeric() || "_-=.:,@%+/".contains(one);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Whether a row has that key.
pub(crate) fn matched(columns: &[Column], image: &Image<'_>, wanted: &Wanted) -> Matched {
    let mut all = Matched::Yes;
    for (at, text) in wanted {
        let (Some(column), Some(value)) = (columns.get(*at), image.get(*at)) else { return Matched::Lacking };
        let Some(value) = value else { return Matched::Lacking };
        match value {
            value if is(column, value, text) => {}
            Value::Text(own, _) if is_near(own, text) => all = Matched::Near,
            _ => return Matched::No,
        }
    }
    all
}

/// Whether a value is what that text says.
fn is(column: &Column, value: &Value<'_>, text: &str) -> bool {
    let number = || text.trim().parse::<i128>().ok();
    match value {
        Value::Null | Value::Json(_) | Value::JsonDiffs(_) | Value::Undecoded(..) => false,
        Value::Int(own) => number() == Some(i128::from(*own)),
        Value::UInt(own) | Value::Bit(own) => number() == Some(i128::from(*own)),
        Value::Either(signed, unsigned) => {
            number().is_some_and(|number| number == i128::from(*signed) || number == i128::from(*unsigned))
        }
        Value::Float(own) => text.trim().parse() == Ok(*own),
        Value::Double(own) => text.trim().parse() == Ok(*own),
        Value::Decimal(own) => decimal(own) == decimal(text.trim()),
        Value::Year(own) => number() == Some(i128::from(*own)),
        Value::Temporal(own) | Value::Timestamp(own) => moment(own) == moment(text.trim()),
        Value::Text(own, _) => own == text,
        Value::Address(own, _) => own.eq_ignore_ascii_case(text.trim()),
        Value::Bytes(own) | Value::Encoded(own) => {
            let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
            **own == *text.as_bytes() || digits.is_some_and(|digits| hex(own).eq_ignore_ascii_case(digits))
        }
        Value::Enum(_) | Value::Set(_) => {
            let own = value.text(column);
            own == codec::rows::quoted(text)
                || matches!(value, Value::Enum(own) if column.members.is_none() && number() == Some(i128::from(*own)))
        }
        Value::Geometry(..) | Value::Vector(..) => value.text(column) == text,
    }
}

/// A value so that [`is`] takes it for itself.
fn plain(column: &Column, value: &Value<'_>) -> String {
    match value {
        Value::Bit(number) => number.to_string(),
        Value::Either(signed, _) => signed.to_string(),
        Value::Temporal(text) | Value::Timestamp(text) | Value::Address(text, _) => text.clone(),
        Value::Text(text, _) => text.clone().into_owned(),
        Value::Bytes(bytes) | Value::Encoded(bytes) => format!("0x{}", hex(bytes)),
        Value::Enum(number) => {
            let name = column.members.as_ref().and_then(|all| all.get(usize::from(*number).checked_sub(1)?));
            name.cloned().unwrap_or_else(|| number.to_string())
        }
        value => value.text(column),
    }
}

/// Without what makes no other number.
fn decimal(text: &str) -> (bool, String, String) {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (before, behind) = digits.split_once('.').unwrap_or((digits, ""));
    (is_negative, before.trim_start_matches('0').to_owned(), behind.trim_end_matches('0').to_owned())
}

/// Without zeros at the end of a fraction.
fn moment(text: &str) -> String {
    let text = text.replace('T', " ");
    match text.split_once('.') {
        Some((seconds, fraction)) => {
            let fraction = fraction.trim_end_matches('0');
            if fraction.is_empty() { seconds.to_owned() } else { format!("{seconds}.{fraction}") }
        }
        None => text,
    }
}

/// Whether a collation may take two texts for one: by case, by spaces at the end, or by accents. In doubt it may.
fn is_near(one: &str, other: &str) -> bool {
    let (one, other) = (one.trim_end_matches(' ').to_lowercase(), other.trim_end_matches(' ').to_lowercase());
    let is_same = |(one, other): (char, char)| one == other || !one.is_ascii() || !other.is_ascii();
    one.chars().count() == other.chars().count() && one.chars().zip(other.chars()).all(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::rows::ColumnType;

    fn has(value: &Value<'_>, text: &str) -> bool {
        is(&Column::of(ColumnType::Enum), value, text)
    }

    #[test]
    fn a_key_is_compared_by_the_type_of_its_column() {
        let text = |text: &'static str| Value::Text(text.into(), text.as_bytes().into());
        for (value, is_it, is_not) in [
            (Value::Int(-5), "-5", "5"),
            (Value::UInt(u64::MAX), "18446744073709551615", "-1"),
            (Value::Either(-1, 255), "255", "254"),
            (Value::Decimal("10.50".into()), "10.5", "10.05"),
            (Value::Decimal("-0.50".into()), "-.5", ".5"),
            (
                Value::Temporal("2026-03-01 10:00:00.500000".into()),
                "2026-03-01T10:00:00.5",
                "2026-03-01 10:00:00",
            ),
            (Value::Temporal("2026-03-01".into()), "2026-03-01", "2026-03-10"),
            (Value::Year(2026), "2026", "26"),
            (text("A"), "A", "a"),
            (text("0x41"), "0x41", "A"),
            (Value::Bytes(b"\x01A"[..].into()), "0x0141", "0141"),
            (Value::Bytes(b"A"[..].into()), "A", "a"),
            (Value::Enum(2), "2", "1"),
            (Value::Bit(3), "3", "2"),
            (Value::Double(1.5), "1.50", "1.51"),
            (Value::Null, "NULL2", "NULL"),
        ] {
            assert_eq!(has(&value, is_it), value != Value::Null, "{value:?} {is_it}");
            assert!(!has(&value, is_not), "{value:?} {is_not}");
            if value != Value::Null {
                let column = Column::of(ColumnType::Enum);
                assert!(is(&column, &value, &plain(&column, &value)), "{value:?}");
            }
        }
    }

    #[test]
    fn what_a_collation_may_take_for_one_is_told() {
        for (one, other, is) in
            [("A", "a", true), ("a ", "a", true), ("é", "e", true), ("a", "b", false), ("ab", "a", false)]
        {
            assert_eq!(is_near(one, other), is, "{one:?} {other:?}");
        }
    }
}
