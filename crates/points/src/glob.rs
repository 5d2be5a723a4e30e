//! `db.table` with `*` and `?`, as a search is given it.

use crate::table::TableName;
use std::fmt;

/// A pattern of names of tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableGlob {
    schema: String,
    table: String,
}

/// A text is no pattern of tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadGlob(String);

impl fmt::Display for BadGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} names no table: write SCHEMA.TABLE, where * and ? stand for any characters, as in shop.orders or shop.*",
            self.0
        )
    }
}

impl std::error::Error for BadGlob {}

impl TableGlob {
    /// Reads `schema.table`. The first point parts the two; a schema with a point in its name is found with `?` in its place.
    ///
    /// # Errors
    /// When one of the two is empty.
    pub fn parse(text: &str) -> Result<TableGlob, BadGlob> {
        let plain = text.replace('`', "");
        match plain.split_once('.') {
            Some((schema, table)) if !schema.is_empty() && !table.is_empty() => {
                Ok(TableGlob { schema: schema.to_owned(), table: table.to_owned() })
            }
            _ => Err(BadGlob(text.to_owned())),
        }
    }

    /// Whether it means that table. What is done to a whole schema is done to each of its tables. Case does not matter, because
    /// servers differ in that.
    pub fn matches(&self, name: &TableName) -> bool {
        let is_whole_schema = name.table.is_empty();
        matches(&self.schema, &name.schema) && (is_whole_schema || matches(&self.table, &name.table))
    }
}

/// Whether `pattern` means `text`. Looks at each character once for each `*` at most.
fn matches(pattern: &str, text: &str) -> bool {
    let fold = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<Vec<char>>();
    let (pattern, text) = (fold(pattern), fold(text));
    let (mut at, mut seen) = (0, 0);
    // Where the last `*` stands, and up to where it reaches.
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(one) if *one == '?' || *one == text[seen] => {
                at += 1;
                seen += 1;
            }
            _ => {
                let Some((star_at, reach)) = star else { return false };
                star = Some((star_at, reach + 1));
                (at, seen) = (star_at + 1, reach + 1);
            }
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_mean_tables() {
        let is = |glob: &str, schema: &str, table: &str| {
            TableGlob::parse(glob).unwrap().matches(&TableName::new(schema.as_bytes(), table.as_bytes()))
        };
        for glob in [
            "shop.orders",
            "shop.*",
            "*.orders",
            "sh?p.ord*s",
            "*.*",
            "SHOP.Orders",
            "`shop`.`orders`",
            "s*.o*e*",
        ] {
            assert!(is(glob, "shop", "orders"), "{glob}");
        }
        for glob in ["shop.order", "shop.orders2", "shops.orders", "shop.?", "?.orders", "sho.*", "s*.o*x*"] {
            assert!(!is(glob, "shop", "orders"), "{glob}");
        }
        assert!(is("shop.orders", "shop", ""), "its schema was dropped");
        assert!(!is("shop.orders", "stock", ""));
        assert!(is("*.*", "", ""));
    }

    #[test]
    fn what_names_no_table_is_refused() {
        for text in ["", "orders", ".orders", "shop.", "."] {
            assert!(TableGlob::parse(text).unwrap_err().to_string().contains("SCHEMA.TABLE"), "{text}");
        }
    }
}
