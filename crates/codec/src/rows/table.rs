//! A table as its TABLE_MAP event describes it.

use super::charset::Charset;
use super::optional::Optional;
use crate::ServerKind;
use crate::event::{EventError, RowImages, RowsEvent, TableColumns, TableMap};

/// The type of a column, as far as a log tells it. What a log does not tell apart is one here: CHAR and BINARY, TEXT and BLOB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// TINYINT to BIGINT, of so many bytes.
    Integer(u8),
    /// FLOAT.
    Float,
    /// DOUBLE.
    Double,
    /// DECIMAL: digits, and those behind the point.
    Decimal(u8, u8),
    /// BIT, of so many bits.
    Bit(u16),
    /// YEAR.
    Year,
    /// DATE.
    Date,
    /// TIME; digits of its fraction, `None` of the old form.
    Time(Option<u8>),
    /// DATETIME, the same.
    DateTime(Option<u8>),
    /// DATETIME of MariaDB of old, with six digits or none: eight bytes, and the log does not tell.
    OldDateTime,
    /// TIMESTAMP, the same.
    Timestamp(Option<u8>),
    /// CHAR, BINARY and types of a fixed length made of it, of so many bytes at most.
    Char(u16),
    /// VARCHAR, VARBINARY, of so many bytes at most.
    VarChar(u16),
    /// TEXT, BLOB and their kin; bytes of the length.
    Blob(u8),
    /// ENUM.
    Enum,
    /// SET, of so many bytes.
    Set(u8),
    /// JSON of MySQL.
    Json,
    /// GEOMETRY and its kin.
    Geometry,
    /// VECTOR of MySQL.
    Vector,
    /// A column that MariaDB has compressed.
    Compressed,
    /// UUID of MariaDB. A log has it as BINARY; only who knows better says so, and of the next two.
    Uuid,
    /// INET4 of MariaDB.
    Inet4,
    /// INET6 of MariaDB.
    Inet6,
    /// Another type, by its number.
    Other(u8),
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its type.
    pub kind: ColumnType,
    /// Its name, where the log has it.
    pub name: Option<String>,
    /// Whether it is unsigned, where it is a number and the log says so.
    pub unsigned: Option<bool>,
    /// Its character set, where it has one and the log says so; [`Charset::Binary`] of bytes.
    pub charset: Option<Charset>,
    /// The names of an ENUM or a SET, where the log has them.
    pub members: Option<Vec<String>>,
    /// It belongs to the primary key; `None` where the log does not say what does.
    pub is_key: Option<bool>,
    /// It may be NULL.
    pub is_nullable: bool,
}

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its schema, in UTF-8 as the server stores names.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// The names of its columns stand in the log.
    pub has_names: bool,
    pub(super) images: RowImages,
}

impl Table {
    /// Reads a TABLE_MAP event without its checksum, of that kind of server: MariaDB counts geometries among the columns that have a
    /// character set, MySQL its VECTOR. Both count YEAR among the numbers.
    ///
    /// # Errors
    /// When it is damaged, or a column's type is not known, so that nobody can tell where its values end.
    pub fn parse(event: &[u8], server: ServerKind) -> Result<Table, EventError> {
        const DAMAGED: EventError =
            EventError::Malformed("the optional fields of a TABLE_MAP event are damaged");
        let names = TableMap::parse(event)?;
        let columns = TableColumns::parse(event)?;
        let images = RowImages::of(&columns)?;
        let metadata = RowImages::metadata_of(&columns).ok_or(DAMAGED)?;
        let optional = Optional::parse(columns.optional).ok_or(DAMAGED)?;
        let is_mariadb = server == ServerKind::MariaDb;
        let kinds = columns.types.iter().zip(&metadata).map(|(code, own)| match kind(*code, own) {
            ColumnType::DateTime(None) if is_mariadb => ColumnType::OldDateTime,
            kind => kind,
        });
        let mut families = Families::of(&optional, server);
        let mut all = Vec::with_capacity(columns.types.len());
        for (at, kind) in kinds.enumerate() {
            let mut column = families.column(kind);
            column.name = optional.names.get(at).map(|name| text(name));
            column.is_nullable = columns.nullable.get(at / 8).is_some_and(|bits| bits & 1 << (at % 8) != 0);
            let says_key = !optional.primary_key.is_empty();
            column.is_key = says_key.then(|| optional.primary_key.contains(&(at as u64)));
            all.push(column);
        }
        let has_names = !all.is_empty() && optional.names.len() == all.len();
        Ok(Table { schema: text(names.schema), name: text(names.table), columns: all, has_names, images })
    }
}

impl Table {
    /// As [`RowsEvent::is_told`], of an event of this table.
    pub fn is_told(&self, event: &RowsEvent<'_>, rows: &[u8]) -> bool {
        event.is_told(&self.images, rows)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Counts the columns of each family, for which the optional fields are.
struct Families<'a> {
    optional: &'a Optional<'a>,
    server: ServerKind,
    numbers: usize,
    characters: usize,
    enums_and_sets: usize,
    enums: usize,
    sets: usize,
}

impl<'a> Families<'a> {
    fn of(optional: &'a Optional<'a>, server: ServerKind) -> Families<'a> {
        Families { optional, server, numbers: 0, characters: 0, enums_and_sets: 0, enums: 0, sets: 0 }
    }

    fn column(&mut self, kind: ColumnType) -> Column {
        let (mut unsigned, mut charset, mut members) = (None, None, None);
        let is_mariadb = self.server == ServerKind::MariaDb;
        match kind {
            ColumnType::Integer(_) | ColumnType::Float | ColumnType::Double | ColumnType::Decimal(..) => {
                let at = next(&mut self.numbers);
                let bits = self.optional.unsigned;
                unsigned = bits.and_then(|bits| bits.get(at / 8)).map(|byte| byte & 0x80 >> (at % 8) != 0);
            }
            ColumnType::Char(_) | ColumnType::VarChar(_) | ColumnType::Blob(_) | ColumnType::Compressed => {
                let at = next(&mut self.characters);
                charset = self.optional.charsets.get(at).map(Charset::of_collation);
            }
            ColumnType::Year => drop(next(&mut self.numbers)),
            ColumnType::Geometry if is_mariadb => drop(next(&mut self.characters)),
            ColumnType::Vector => drop(next(&mut self.characters)),
            ColumnType::Enum | ColumnType::Set(_) => {
                let at = next(&mut self.enums_and_sets);
                charset = self.optional.enum_charsets.get(at).map(Charset::of_collation);
                let list = match kind {
                    ColumnType::Enum => self.optional.enums.get(next(&mut self.enums)),
                    _ => self.optional.sets.get(next(&mut self.sets)),
                };
                let decoder = charset.unwrap_or(Charset::Utf8);
                members = list.and_then(|list| {
                    list.iter().map(|name| decoder.decode(name).map(|name| name.into_owned())).collect()
                });
            }
            _ => {}
        }
        Column { unsigned, charset, members, ..Column::of(kind) }
    }
}

fn next(count: &mut usize) -> usize {
    *count += 1;
    *count - 1
}

fn kind(code: u8, metadata: &[u8]) -> ColumnType {
    let byte = |at: usize| metadata.get(at).copied().unwrap_or(0);
    let word = u16::from_le_bytes([byte(0), byte(1)]);
    match code {
        1 => ColumnType::Integer(1),
        2 => ColumnType::Integer(2),
        9 => ColumnType::Integer(3),
        3 => ColumnType::Integer(4),
        8 => ColumnType::Integer(8),
        4 => ColumnType::Float,
        5 => ColumnType::Double,
        246 => ColumnType::Decimal(byte(0), byte(1)),
        16 => ColumnType::Bit(u16::from(byte(1)) * 8 + u16::from(byte(0))),
        13 => ColumnType::Year,
        10 | 14 => ColumnType::Date,
        11 => ColumnType::Time(None),
        12 => ColumnType::DateTime(None),
        7 => ColumnType::Timestamp(None),
        19 => ColumnType::Time(Some(byte(0))),
        18 => ColumnType::DateTime(Some(byte(0))),
        17 => ColumnType::Timestamp(Some(byte(0))),
        15 | 253 => ColumnType::VarChar(word),
        249..=252 => ColumnType::Blob(byte(0)),
        247 => ColumnType::Enum,
        248 => ColumnType::Set(byte(1)),
        245 => ColumnType::Json,
        255 => ColumnType::Geometry,
        242 => ColumnType::Vector,
        140 | 141 => ColumnType::Compressed,
        // In its place ENUM and SET; else the two high bits of a length stand in the first byte, turned round.
        254 => match byte(0) | 0x30 {
            247 => ColumnType::Enum,
            248 => ColumnType::Set(byte(1)),
            _ => ColumnType::Char((u16::from((byte(0) & 0x30) ^ 0x30) << 4) | u16::from(byte(1))),
        },
        other => ColumnType::Other(other),
    }
}

impl Column {
    /// A column of which nothing is known but its type.
    pub fn of(kind: ColumnType) -> Column {
        Column {
            kind,
            name: None,
            unsigned: None,
            charset: None,
            members: None,
            is_key: None,
            is_nullable: true,
        }
    }

    /// The type in words of SQL, as far as the log tells it.
    pub fn type_text(&self) -> String {
        let unsigned = if self.unsigned == Some(true) { " UNSIGNED" } else { "" };
        let digits = |name: &str, digits: Option<u8>| match digits {
            None | Some(0) => name.to_owned(),
            Some(digits) => format!("{name}({digits})"),
        };
        let is_binary = self.charset == Some(Charset::Binary);
        match self.kind {
            ColumnType::Integer(1) => format!("TINYINT{unsigned}"),
            ColumnType::Integer(2) => format!("SMALLINT{unsigned}"),
            ColumnType::Integer(3) => format!("MEDIUMINT{unsigned}"),
            ColumnType::Integer(4) => format!("INT{unsigned}"),
            ColumnType::Integer(_) => format!("BIGINT{unsigned}"),
            ColumnType::Float => format!("FLOAT{unsigned}"),
            ColumnType::Double => format!("DOUBLE{unsigned}"),
            ColumnType::Decimal(all, behind) => format!("DECIMAL({all},{behind}){unsigned}"),
            ColumnType::Bit(bits) => format!("BIT({bits})"),
            ColumnType::Year => "YEAR".to_owned(),
            ColumnType::Date => "DATE".to_owned(),
            ColumnType::Time(fraction) => digits("TIME", fraction),
            ColumnType::DateTime(fraction) => digits("DATETIME", fraction),
            ColumnType::OldDateTime => "DATETIME".to_owned(),
            ColumnType::Timestamp(fraction) => digits("TIMESTAMP", fraction),
            ColumnType::Char(_) => if is_binary { "BINARY" } else { "CHAR" }.to_owned(),
            ColumnType::VarChar(_) => if is_binary { "VARBINARY" } else { "VARCHAR" }.to_owned(),
            ColumnType::Blob(_) => {
                if self.charset.is_some_and(|_| !is_binary) { "TEXT" } else { "BLOB" }.to_owned()
            }
            ColumnType::Enum => "ENUM".to_owned(),
            ColumnType::Set(_) => "SET".to_owned(),
            ColumnType::Json => "JSON".to_owned(),
            ColumnType::Geometry => "GEOMETRY".to_owned(),
            ColumnType::Vector => "VECTOR".to_owned(),
            ColumnType::Compressed => "COMPRESSED".to_owned(),
            ColumnType::Uuid => "UUID".to_owned(),
            ColumnType::Inet4 => "INET4".to_owned(),
            ColumnType::Inet6 => "INET6".to_owned(),
            ColumnType::Other(code) => format!("type {code}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::HEADER_LEN;
    use proptest::prelude::*;

    /// A TABLE_MAP event of `shop.t` with those types, metadata and optional fields.
    fn event(types: &[u8], metadata: &[u8], optional: &[u8]) -> Vec<u8> {
        let mut event = vec![0; HEADER_LEN];
        event.extend_from_slice(&[7, 0, 0, 0, 0, 0, 1, 0]);
        event.extend_from_slice(b"\x04shop\0\x01t\0");
        event.push(types.len() as u8);
        event.extend_from_slice(types);
        event.push(metadata.len() as u8);
        event.extend_from_slice(metadata);
        event.extend_from_slice(&vec![0xff; types.len().div_ceil(8)]);
        event.extend_from_slice(optional);
        event
    }

    #[test]
    fn what_the_log_says_of_columns_is_found_by_family() {
        let optional = [
            &[1, 1, 0x40][..],
            &[2, 3, 45, 1, 63],
            &[4, 10, 1, b'a', 1, b'b', 1, b'c', 1, b'd', 1, b'e'],
            &[6, 3, 1, 1, b'x'],
            &[8, 1, 1],
        ]
        .concat();
        let table =
            Table::parse(&event(&[3, 8, 254, 15, 252], &[247, 1, 64, 0, 2], &optional), ServerKind::MySql)
                .unwrap();
        assert!(table.has_names && table.schema == "shop" && table.name == "t");
        let unsigned: Vec<_> = table.columns.iter().map(|column| column.unsigned).collect();
        assert_eq!(unsigned, [Some(false), Some(true), None, None, None]);
        assert_eq!(table.columns[2].members.as_deref(), Some(&["x".to_owned()][..]));
        assert_eq!(table.columns[3].charset, Some(Charset::Utf8));
        assert_eq!(table.columns[4].charset, Some(Charset::Binary));
        assert_eq!((table.columns[0].is_key, table.columns[1].is_key), (Some(false), Some(true)));
        assert_eq!(table.columns[1].type_text(), "BIGINT UNSIGNED");
        let bare = Table::parse(&event(&[3, 8], &[], &[]), ServerKind::MySql).unwrap();
        assert!(!bare.has_names && bare.columns[0].unsigned.is_none() && bare.columns[0].is_key.is_none());
        assert!(Table::parse(&event(&[99], &[], &[]), ServerKind::MySql).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            types in proptest::collection::vec(any::<u8>(), 0..8),
            metadata in proptest::collection::vec(any::<u8>(), 0..16),
            optional in proptest::collection::vec(0_u8..12, 0..40),
        ) {
            let _ = Table::parse(&event(&types, &metadata, &optional), ServerKind::MySql);
        }
    }
}
