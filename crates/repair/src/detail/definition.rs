//! A table as a server defines it now.

use codec::ServerKind;
use codec::packet::ResultSet;
use codec::rows::{Charset, Column, ColumnType};
use wire::{Connection, WireError};

/// A column, as `information_schema.columns` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: String,
    /// `int`, `varchar`: the type without its length.
    pub data_type: String,
    /// `int unsigned`, `enum('a','b')`: the type as it is declared.
    pub column_type: String,
    /// The name of its character set, where it has one.
    pub charset: Option<String>,
    /// It belongs to the primary key.
    pub is_key: bool,
    /// An index begins with it, or the primary key has it.
    pub is_indexed: bool,
    /// The server computes it.
    pub is_generated: bool,
    /// The server keeps versions of the rows by it (MariaDB's system versioning).
    pub is_version: bool,
    /// The server counts it up (AUTO_INCREMENT).
    pub is_counted: bool,
}

/// One side of a foreign key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySide {
    /// Names the foreign key: its table and itself.
    pub key: String,
    /// The rows of this table are referred to; else they refer to others.
    pub is_parent: bool,
    /// Its columns, by their numbers from 0 on, in the order of the foreign key.
    pub columns: Vec<usize>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDefinition {
    /// Its columns, in order.
    pub columns: Vec<ColumnDefinition>,
    /// Its foreign keys, and those of other tables that refer to it: of MySQL from 9.6 on, whose log has the rows that they change.
    pub foreign_keys: Vec<KeySide>,
    /// When the server made or last changed it, in seconds since 1970, where the server says so. Both kinds of server have the time of
    /// the last ALTER there, also of an INSTANT one.
    pub created: Option<i64>,
}

impl TableDefinition {
    /// Asks a server; `None` when it has no such table, or the account may not see it.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub fn ask(
        connection: &mut Connection,
        schema: &str,
        table: &str,
    ) -> Result<Option<TableDefinition>, WireError> {
        let is_this = is_table("table_schema", "table_name", schema, table);
        // A primary key that MySQL made by itself (sql_generate_invisible_primary_key) may be hidden there, and stands in the log.
        if connection.server_kind() == ServerKind::MySql {
            connection.query(
                "SET @binlogd = 0 /*!80030 , SESSION show_gipk_in_create_table_and_information_schema = ON */",
            )?;
        }
        let found = connection.query(&format!(
            "SELECT column_name AS n, data_type AS d, column_type AS t, character_set_name AS c, column_key AS k, extra AS e, \
             generation_expression AS g FROM information_schema.columns WHERE {is_this} ORDER BY ordinal_position"
        ))?;
        let mut columns: Vec<ColumnDefinition> =
            (0..found.rows.len()).map(|row| column(&found, row)).collect();
        if columns.is_empty() {
            return Ok(None);
        }
        if connection.server_kind() == ServerKind::MariaDb {
            let found = connection.query(&format!(
                "SELECT table_type AS t, (SELECT COUNT(DISTINCT index_name) FROM information_schema.statistics WHERE {is_this} AND \
                 index_type = 'HASH') AS h FROM information_schema.tables WHERE {is_this} AND engine <> 'MEMORY'"
            ))?;
            columns.extend(hidden(&found, columns.iter().any(|column| column.is_version)));
        }
        let created = connection.query(&format!(
            "SELECT UNIX_TIMESTAMP(create_time) AS t FROM information_schema.tables WHERE {is_this}"
        ))?;
        let created = created.first().and_then(|text| text.split('.').next()?.parse().ok());
        let foreign_keys = foreign_keys(connection, &columns, schema, table)?;
        Ok(Some(TableDefinition { columns, foreign_keys, created }))
    }

    /// Why the rows of the log are not of this table; `None` when they may be: as many columns, and of each what the log tells.
    pub(crate) fn disagrees(&self, columns: &[Column]) -> Option<String> {
        if self.columns.len() != columns.len() {
            return Some(format!(
                "it has {} columns there and {} in the log",
                self.columns.len(),
                columns.len()
            ));
        }
        let mut all = self.columns.iter().zip(columns);
        all.find_map(|(there, here)| there.disagrees(here).map(|why| format!("its column {why}")))
    }

    /// What the log does not tell of columns even where it names them; `None` where nothing.
    pub(super) fn untold(&self, columns: &[Column]) -> Option<&'static str> {
        let mut all = self.columns.iter().zip(columns);
        all.find_map(|(there, here)| match here.kind {
            _ if there.is_generated => Some("the log does not tell which columns the server computed"),
            ColumnType::Enum | ColumnType::Set(_) if here.members.is_none() => {
                Some("the log does not tell the members of an ENUM or a SET")
            }
            _ if here.charset == Some(Charset::Other) => {
                Some("binlogd does not know the character set of a column")
            }
            ColumnType::Char(_) if matches!(there.data_type.as_str(), "uuid" | "inet4" | "inet6") => {
                Some("the log does not tell BINARY from UUID and INET")
            }
            _ => None,
        })
    }
}

fn foreign_keys(
    connection: &mut Connection,
    columns: &[ColumnDefinition],
    schema: &str,
    table: &str,
) -> Result<Vec<KeySide>, WireError> {
    let mut sides: Vec<KeySide> = Vec::new();
    if connection.server_kind() != ServerKind::MySql {
        return Ok(sides);
    }
    for (is_parent, of, column) in [
        (false, ("table_schema", "table_name"), "column_name"),
        (true, ("referenced_table_schema", "referenced_table_name"), "referenced_column_name"),
    ] {
        let is_this = is_table(of.0, of.1, schema, table);
        // A server before 9.6 reads the comment as one, and tells nothing.
        let found = connection.query(&format!(
            "SELECT CONCAT_WS('.', HEX(table_schema), HEX(table_name), HEX(constraint_name)) AS k, {column} AS c FROM \
             information_schema.key_column_usage WHERE FALSE /*!90600 OR referenced_table_name IS NOT NULL AND {is_this} */ \
             ORDER BY k, ordinal_position"
        ))?;
        for row in 0..found.rows.len() {
            let text = |name| found.get(row, name).unwrap_or_default();
            let Some(at) = columns.iter().position(|one| one.name.eq_ignore_ascii_case(text("c"))) else {
                continue;
            };
            match sides.last_mut().filter(|side| side.key == text("k") && side.is_parent == is_parent) {
                Some(side) => side.columns.push(at),
                None => sides.push(KeySide { key: text("k").to_owned(), is_parent, columns: vec![at] }),
            }
        }
    }
    Ok(sides)
}

/// Columns of MariaDB that stand in the log and not in `information_schema`: a hash for each UNIQUE over a BLOB or a long text, and the
/// time of the rows of a table whose versions are kept by columns without names of their own.
fn hidden(found: &ResultSet, has_version: bool) -> Vec<ColumnDefinition> {
    let of = |name: String, data_type: &str, column_type: &str, is_version: bool| ColumnDefinition {
        name,
        data_type: data_type.to_owned(),
        column_type: column_type.to_owned(),
        charset: None,
        is_key: false,
        is_indexed: false,
        is_generated: !is_version,
        is_version,
        is_counted: false,
    };
    let hashes = found.get(0, "h").and_then(|count| count.parse().ok()).unwrap_or(0);
    let hashes =
        (1..=hashes).map(|at: u32| of(format!("DB_ROW_HASH_{at}"), "bigint", "bigint(21) unsigned", false));
    let is_versioned = found.get(0, "t") == Some("SYSTEM VERSIONED") && !has_version;
    let versions =
        ["row_start", "row_end"].map(|name| of(name.to_owned(), "timestamp", "timestamp(6)", true));
    versions.into_iter().filter(|_| is_versioned).chain(hashes).collect()
}

/// A condition that two columns of `information_schema` have the names of a table: its collations take names that differ by case, or by
/// accents, for one, which the server does with `lower_case_table_names` only, and by case only.
pub fn is_table(schema_column: &str, table_column: &str, schema: &str, table: &str) -> String {
    let is = |column: &str, name: &str| {
        let (stored, name) = (format!("CONVERT({column} USING utf8mb4)"), hex_text(name));
        format!(
            "{column} = {name} AND IF(@@lower_case_table_names = 0, {stored} COLLATE utf8mb4_bin = {name}, \
             LOWER({stored}) COLLATE utf8mb4_bin = LOWER({name}))"
        )
    };
    format!("{} AND {}", is(schema_column, schema), is(table_column, table))
}

/// A name as a literal in which no quote can be closed.
fn hex_text(text: &str) -> String {
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
        is_indexed: !text("k").is_empty(),
        is_generated: !generation.is_empty() && !is_version
            || extra.contains("GENERATED") && !extra.contains("DEFAULT_GENERATED"),
        is_version,
        is_counted: extra.contains("AUTO_INCREMENT"),
    }
}

impl ColumnDefinition {
    /// How it differs from what the log tells of a column: its name, its type, its sign, its character set, its members.
    fn disagrees(&self, column: &Column) -> Option<String> {
        let name = &self.name;
        if let Some(here) = column.name.as_ref().filter(|here| *here != name) {
            return Some(format!("is {name} there and {here} in the log"));
        }
        let has_sign = column.unsigned.is_none_or(|is| is == self.column_type.contains("unsigned"));
        if !self.is_type_of(column) || !has_sign {
            return Some(format!(
                "{name} is {} there and {} in the log",
                self.column_type,
                column.type_text()
            ));
        }
        let is_told = !matches!(column.kind, ColumnType::Enum | ColumnType::Set(_));
        let here = column.charset.filter(|here| is_told && *here != Charset::Other);
        if here.is_some_and(|here| here != Charset::of_name(self.charset.as_deref())) {
            let there = self.charset.as_deref().unwrap_or("binary");
            return Some(format!(
                "{name} is of the character set {there} there, and of another one in the log"
            ));
        }
        let (here, there) = (column.members.as_ref()?, members(&self.column_type)?);
        // An empty name is that of no member too: such a value is told by its number.
        let is_by_number = here.iter().any(String::is_empty);
        let has_all = if is_by_number { *here == there } else { here.iter().all(|one| there.contains(one)) };
        (!has_all).then(|| format!("{name} has other members there: {}", self.column_type))
    }

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
            ColumnType::OldDateTime => name == "datetime" && self.has_digits(None),
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
            (ColumnType::OldDateTime, _) => column.kind = ColumnType::DateTime(None),
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
            is_indexed: false,
            is_generated: false,
            is_version: false,
            is_counted: false,
        };
        let table = TableDefinition {
            columns: vec![definition("decimal", "decimal(10,2) unsigned")],
            foreign_keys: Vec::new(),
            created: None,
        };
        assert_eq!(table.disagrees(&[Column::of(ColumnType::Decimal(10, 2))]), None);
        assert!(table.disagrees(&[Column::of(ColumnType::Decimal(10, 3))]).unwrap().contains("column c"));
        assert!(table.disagrees(&[]).unwrap().contains("1 columns there and 0"));
        let signed = Column { unsigned: Some(false), ..Column::of(ColumnType::Decimal(10, 2)) };
        assert!(table.disagrees(&[signed]).unwrap().contains("decimal(10,2) unsigned there"));
        let other = Column { name: Some("d".into()), ..Column::of(ColumnType::Decimal(10, 2)) };
        assert_eq!(table.disagrees(&[other]).unwrap(), "its column is c there and d in the log");
        let members = |there: &str, here: &[&str]| {
            let column = Column {
                members: Some(here.iter().map(|one| (*one).to_owned()).collect()),
                ..Column::of(ColumnType::Enum)
            };
            TableDefinition {
                columns: vec![definition("enum", there)],
                foreign_keys: Vec::new(),
                created: None,
            }
            .disagrees(&[column])
        };
        assert_eq!(members("enum('c','b','a')", &["a", "b"]), None);
        assert!(members("enum('b')", &["a", "b"]).unwrap().contains("other members"));
        assert!(members("enum('a','')", &["", "a"]).unwrap().contains("other members"));
        let time = TableDefinition {
            columns: vec![definition("time", "time(3)")],
            foreign_keys: Vec::new(),
            created: None,
        };
        assert_eq!(time.disagrees(&[Column::of(ColumnType::Time(Some(3)))]), None);
        assert!(time.disagrees(&[Column::of(ColumnType::Time(Some(0)))]).is_some());
    }
}
