//! A table as a server defines it now.

use codec::packet::ResultSet;
use codec::rows::{Charset, Column, ColumnType};
use wire::{Connection, WireError};

/// A column, as `information_schema.columns` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ColumnDefinition {
    /// Its name.
    pub(crate) name: String,
    /// `int`, `varchar`: the type without its length.
    pub(crate) data_type: String,
    /// `int unsigned`, `enum('a','b')`: the type as it is declared.
    pub(crate) column_type: String,
    /// The name of its character set, where it has one.
    pub(crate) charset: Option<String>,
    /// It belongs to the primary key.
    pub(crate) is_key: bool,
    /// The server computes it.
    pub(crate) is_generated: bool,
    /// The server keeps versions of the rows by it (MariaDB's system versioning).
    pub(crate) is_version: bool,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableDefinition {
    /// Its columns, in order.
    pub(crate) columns: Vec<ColumnDefinition>,
}

impl TableDefinition {
    /// Asks a server; `None` when it has no such table, or the account may not see it.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub(crate) fn ask(
        connection: &mut Connection,
        schema: &str,
        table: &str,
    ) -> Result<Option<TableDefinition>, WireError> {
        let sql = format!(
            "SELECT column_name AS n, data_type AS d, column_type AS t, character_set_name AS c, column_key AS k, extra AS e, \
             generation_expression AS g FROM information_schema.columns WHERE table_schema = {} AND table_name = {} \
             ORDER BY ordinal_position",
            hex_text(schema),
            hex_text(table)
        );
        let found = connection.query(&sql)?;
        let columns: Vec<ColumnDefinition> = (0..found.rows.len()).map(|row| column(&found, row)).collect();
        Ok((!columns.is_empty()).then_some(TableDefinition { columns }))
    }

    /// Why the rows of the log are not of this table; `None` when they may be: as many columns, of the same types.
    pub(crate) fn disagrees(&self, columns: &[Column]) -> Option<String> {
        if self.columns.len() != columns.len() {
            return Some(format!(
                "it has {} columns there and {} in the log",
                self.columns.len(),
                columns.len()
            ));
        }
        let other = self.columns.iter().zip(columns).find(|(there, here)| !there.is_type_of(here))?;
        Some(format!(
            "its column {} is {} there and {} in the log",
            other.0.name,
            other.0.column_type,
            other.1.type_text()
        ))
    }
}

/// A name as a literal in which no quote can be closed.
pub(crate) fn hex_text(text: &str) -> String {
    match text.is_empty() {
        true => "''".to_owned(),
        false => format!("CONVERT(X'{}' USING utf8mb4)", codec::rows::hex(text.as_bytes())),
    }
}

fn column(found: &ResultSet, row: usize) -> ColumnDefinition {
    let text = |name: &str| found.get(row, name).unwrap_or_default().to_owned();
    let (extra, generation) = (text("e").to_uppercase(), text("g").to_uppercase());
    let is_version = generation == "ROW START" || generation == "ROW END";
    ColumnDefinition {
        name: text("n"),
        data_type: text("d").to_lowercase(),
        column_type: text("t"),
        charset: found.get(row, "c").map(str::to_owned),
        is_key: text("k") == "PRI",
        is_generated: !generation.is_empty() && !is_version
            || extra.contains("GENERATED") && !extra.contains("DEFAULT_GENERATED"),
        is_version,
    }
}

impl ColumnDefinition {
    /// Whether the log would have a column of this definition so.
    fn is_type_of(&self, column: &Column) -> bool {
        let name = self.data_type.as_str();
        match column.kind {
            ColumnType::Integer(1) => name == "tinyint",
            ColumnType::Integer(2) => name == "smallint",
            ColumnType::Integer(3) => name == "mediumint",
            ColumnType::Integer(4) => name == "int",
            ColumnType::Integer(_) => name == "bigint",
            ColumnType::Float => name == "float",
            ColumnType::Double => name == "double",
            ColumnType::Decimal(all, behind) => {
                name == "decimal" && self.column_type.starts_with(&format!("decimal({all},{behind})"))
            }
            ColumnType::Bit(bits) => self.column_type == format!("bit({bits})"),
            ColumnType::Year => name == "year",
            ColumnType::Date => name == "date",
            ColumnType::Time(digits) => name == "time" && self.has_digits(digits),
            ColumnType::DateTime(digits) => name == "datetime" && self.has_digits(digits),
            ColumnType::Timestamp(digits) => name == "timestamp" && self.has_digits(digits),
            ColumnType::Char(_) => matches!(name, "char" | "binary" | "inet4" | "inet6" | "uuid"),
            ColumnType::Uuid => name == "uuid",
            ColumnType::Inet4 => name == "inet4",
            ColumnType::Inet6 => name == "inet6",
            ColumnType::VarChar(_) => matches!(name, "varchar" | "varbinary" | "vector"),
            ColumnType::Blob(_) => name.ends_with("text") || name.ends_with("blob"),
            ColumnType::Enum => name == "enum",
            ColumnType::Set(_) => name == "set",
            ColumnType::Json => name == "json",
            ColumnType::Geometry => matches!(
                name,
                "geometry"
                    | "point"
                    | "linestring"
                    | "polygon"
                    | "multipoint"
                    | "multilinestring"
                    | "multipolygon"
                    | "geomcollection"
                    | "geometrycollection"
            ),
            ColumnType::Vector => name == "vector",
            ColumnType::Compressed => {
                name.ends_with("text") || name.ends_with("blob") || name.starts_with("var")
            }
            ColumnType::Other(_) => false,
        }
    }

    fn has_digits(&self, digits: Option<u8>) -> bool {
        let stated = self.column_type.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
        let stated = stated.and_then(|(digits, _)| digits.parse().ok()).unwrap_or(0);
        digits.unwrap_or(0) == stated
    }

    /// Adds to a column what the log does not say of it.
    pub(super) fn complete(&self, column: &mut Column) {
        match (column.kind, self.data_type.as_str()) {
            (ColumnType::Char(16), "uuid") => column.kind = ColumnType::Uuid,
            (ColumnType::Char(4), "inet4") => column.kind = ColumnType::Inet4,
            (ColumnType::Char(16), "inet6") => column.kind = ColumnType::Inet6,
            _ => {}
        }
        column.name.get_or_insert_with(|| self.name.clone());
        let is_number = matches!(
            column.kind,
            ColumnType::Integer(_) | ColumnType::Float | ColumnType::Double | ColumnType::Decimal(..)
        );
        if is_number {
            column.unsigned.get_or_insert(self.column_type.contains("unsigned"));
        }
        match column.kind {
            ColumnType::Char(_) | ColumnType::VarChar(_) | ColumnType::Blob(_) | ColumnType::Compressed => {
                column.charset.get_or_insert(Charset::of_name(self.charset.as_deref()));
            }
            ColumnType::Enum | ColumnType::Set(_) if column.members.is_none() => {
                column.members = members(&self.column_type);
            }
            _ => {}
        }
        column.is_key.get_or_insert(self.is_key);
    }
}

/// The members of `enum('a','it''s')`.
fn members(column_type: &str) -> Option<Vec<String>> {
    let (_, list) = column_type.split_once('(')?;
    let mut rest = list.trim_end().strip_suffix(')')?;
    let mut members = Vec::new();
    loop {
        rest = rest.strip_prefix('\'')?;
        let mut member = String::new();
        loop {
            let (part, behind) = rest.split_once('\'')?;
            member.push_str(part);
            match behind.strip_prefix('\'') {
                Some(more) => {
                    member.push('\'');
                    rest = more;
                }
                None => {
                    rest = behind;
                    break;
                }
            }
        }
        members.push(member);
        if rest.is_empty() {
            return Some(members);
        }
        rest = rest.strip_prefix(',')?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_with_their_quotes() {
        let read = |text| members(text).map(|list| list.join("|"));
        assert_eq!(read("enum('a','it''s','x,y')").as_deref(), Some("a|it's|x,y"));
        assert_eq!(read("set('')").as_deref(), Some(""));
        assert_eq!(read("enum('a"), None);
        assert_eq!(read("int"), None);
    }

    #[test]
    fn another_table_is_noticed() {
        let definition = |data_type: &str, column_type: &str| ColumnDefinition {
            name: "c".into(),
            data_type: data_type.into(),
            column_type: column_type.into(),
            charset: None,
            is_key: false,
            is_generated: false,
            is_version: false,
        };
        let table = TableDefinition { columns: vec![definition("decimal", "decimal(10,2) unsigned")] };
        assert_eq!(table.disagrees(&[Column::of(ColumnType::Decimal(10, 2))]), None);
        assert!(table.disagrees(&[Column::of(ColumnType::Decimal(10, 3))]).unwrap().contains("column c"));
        assert!(table.disagrees(&[]).unwrap().contains("1 columns there and 0"));
        let time = TableDefinition { columns: vec![definition("time", "time(3)")] };
        assert_eq!(time.disagrees(&[Column::of(ColumnType::Time(Some(3)))]), None);
        assert!(time.disagrees(&[Column::of(ColumnType::Time(Some(0)))]).is_some());
    }
}
