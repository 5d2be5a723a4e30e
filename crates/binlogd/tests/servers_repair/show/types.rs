//! A column of every type, with values at its edges.

use crate::common::Server;
use codec::ServerKind;

/// How the values of a column are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compared {
    /// As the text that the server prints.
    Plain,
    /// As a whole number; of BIT.
    Bit,
    /// As a TIMESTAMP in UTC.
    Timestamp,
    /// As a FLOAT.
    Float,
    /// As a DOUBLE.
    Double,
    /// As text in UTF-8.
    Text,
    /// As text of another character set.
    OtherText,
    /// As the bytes of a text that is not told.
    NotTold,
    /// As bytes.
    Bytes,
    /// As text, of a COMPRESSED column.
    Packed,
    /// As bytes, of a COMPRESSED column.
    PackedBytes,
    /// As the name of a member.
    Enum,
    /// As names of members.
    Set,
    /// As JSON.
    Json,
    /// As the bytes of a geometry or a vector.
    Raw,
    /// As text where a server says what the type is, else as bytes (UUID, INET4, INET6).
    Address,
}

/// A column: its type, how it is compared, and values in SQL. Each table has one of each.
pub(crate) type Typed = (&'static str, Compared, &'static [&'static str]);

/// Those that both kinds of server have.
const BOTH: &[Typed] = &[
    ("TINYINT", Compared::Plain, &["-128", "127", "0", "-1"]),
    ("TINYINT UNSIGNED", Compared::Plain, &["255", "0", "128"]),
    ("SMALLINT", Compared::Plain, &["-32768", "32767"]),
    ("SMALLINT UNSIGNED", Compared::Plain, &["65535", "32768"]),
    ("MEDIUMINT", Compared::Plain, &["-8388608", "8388607", "-1"]),
    ("MEDIUMINT UNSIGNED", Compared::Plain, &["16777215", "8388608"]),
    ("INT", Compared::Plain, &["-2147483648", "2147483647"]),
    ("INT UNSIGNED", Compared::Plain, &["4294967295", "2147483648"]),
    ("BIGINT", Compared::Plain, &["-9223372036854775808", "9223372036854775807"]),
    ("BIGINT UNSIGNED", Compared::Plain, &["18446744073709551615", "9223372036854775808"]),
    ("FLOAT", Compared::Float, &["1.1", "-3.4028234e38", "1.17549435e-38", "0", "16777217"]),
    (
        "DOUBLE",
        Compared::Double,
        &["1.1", "-1.7976931348623157e308", "2.2250738585072014e-308", "0.1", "-0.5"],
    ),
    ("DECIMAL(10,2)", Compared::Plain, &["-99999999.99", "99999999.99", "0", "-0.01", "1.5"]),
    (
        "DECIMAL(65,30)",
        Compared::Plain,
        &[
            "-12345678901234567890123456789012345.123456789012345678901234567890",
            "0.000000000000000000000000000001",
        ],
    ),
    ("DECIMAL(5,5)", Compared::Plain, &["0.12345", "-0.99999"]),
    ("DECIMAL(20,0) UNSIGNED", Compared::Plain, &["99999999999999999999", "0"]),
    ("BIT(1)", Compared::Bit, &["b'1'", "b'0'"]),
    ("BIT(17)", Compared::Bit, &["b'10101010101010101'", "b'1'"]),
    ("BIT(64)", Compared::Bit, &["0xffffffffffffffff", "b'0'"]),
    ("YEAR", Compared::Plain, &["1901", "2155", "'0000'", "2026"]),
    (
        "DATE",
        Compared::Plain,
        &["'1000-01-01'", "'9999-12-31'", "'0000-00-00'", "'2024-00-00'", "'2024-02-29'"],
    ),
    ("TIME", Compared::Plain, &["'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:01'"]),
    ("TIME(1)", Compared::Plain, &["'-00:00:00.1'", "'12:34:56.7'", "'-12:34:56.7'"]),
    ("TIME(3)", Compared::Plain, &["'-838:59:58.999'", "'00:00:00.001'", "'-00:00:00.001'"]),
    ("TIME(6)", Compared::Plain, &["'-00:00:00.000001'", "'838:59:58.999999'", "'-01:00:00.000000'"]),
    (
        "DATETIME",
        Compared::Plain,
        &["'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'0000-00-00 00:00:00'"],
    ),
    ("DATETIME(1)", Compared::Plain, &["'2024-01-02 03:04:05.6'", "'9999-12-31 23:59:59.9'"]),
    ("DATETIME(4)", Compared::Plain, &["'2024-01-02 03:04:05.6789'"]),
    ("DATETIME(6)", Compared::Plain, &["'2024-12-31 23:59:59.999999'", "'0000-00-00 00:00:00.000000'"]),
    (
        "TIMESTAMP NULL",
        Compared::Timestamp,
        &["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'0000-00-00 00:00:00'"],
    ),
    ("TIMESTAMP(3) NULL", Compared::Timestamp, &["'2024-02-29 12:34:56.789'", "'2000-01-01 00:00:00.001'"]),
    ("TIMESTAMP(6) NULL", Compared::Timestamp, &["'2024-02-29 12:34:56.000001'"]),
    ("CHAR(10) CHARACTER SET utf8mb4", Compared::Text, &["''", "'char'", "'ä😀'", "'it''s'"]),
    ("CHAR(255) CHARACTER SET utf8mb4", Compared::Text, &["REPEAT('😀', 255)", "'long'"]),
    ("VARCHAR(10) CHARACTER SET utf8mb4", Compared::Text, &["''", "'trail  '", "'\\n\\t\\\\'", "'日本語'"]),
    ("VARCHAR(3000) CHARACTER SET utf8mb4", Compared::Text, &["REPEAT('w', 3000)", "'x'"]),
    ("VARCHAR(20) CHARACTER SET latin1", Compared::OtherText, &["'äöü€'", "'plain'"]),
    ("CHAR(20) CHARACTER SET ascii", Compared::Text, &["'ascii'"]),
    ("VARCHAR(20) CHARACTER SET utf16", Compared::OtherText, &["'ä😀'", "''"]),
    ("VARCHAR(20) CHARACTER SET ucs2", Compared::OtherText, &["'äö'"]),
    ("VARCHAR(20) CHARACTER SET utf32", Compared::OtherText, &["'ä😀'"]),
    ("VARCHAR(20) CHARACTER SET gbk", Compared::OtherText, &["'中文\\\\'", "'a'"]),
    ("CHAR(20) CHARACTER SET sjis", Compared::OtherText, &["'日本語ｱ'", "'表\\\\'"]),
    ("VARCHAR(20) CHARACTER SET cp932", Compared::OtherText, &["'①表～'"]),
    ("TEXT CHARACTER SET ujis", Compared::OtherText, &["'日本語ｱ'"]),
    ("VARCHAR(20) CHARACTER SET euckr", Compared::OtherText, &["'한국어'"]),
    ("VARCHAR(20) CHARACTER SET big5", Compared::OtherText, &["'中文功'"]),
    ("VARCHAR(20) CHARACTER SET cp1251", Compared::OtherText, &["'Привет №'"]),
    ("VARCHAR(20) CHARACTER SET cp850", Compared::NotTold, &["'äöü'"]),
    ("ENUM('中','表') CHARACTER SET gbk", Compared::OtherText, &["'表'", "'中'"]),
    ("BINARY(16)", Compared::Bytes, &["X'00112233445566778899aabbccddeeff'", "X'6162'", "X'610000'"]),
    ("VARBINARY(300)", Compared::Bytes, &["X''", "X'00ff00'", "REPEAT('y', 300)"]),
    ("TINYBLOB", Compared::Bytes, &["X'00'", "X''"]),
    ("BLOB", Compared::Bytes, &["REPEAT(X'00ff', 400)"]),
    ("MEDIUMBLOB", Compared::Bytes, &["REPEAT(X'27', 70000)", "X'27'"]),
    ("TEXT CHARACTER SET utf8mb4", Compared::Text, &["'text ''quoted'' ä'", "''"]),
    ("LONGTEXT CHARACTER SET utf8mb4", Compared::Text, &["REPEAT('t', 70000)"]),
    ("ENUM('x','it''s','ä') CHARACTER SET utf8mb4", Compared::Enum, &["'x'", "'it''s'", "'ä'"]),
    ("SET('x','y','z','ä') CHARACTER SET utf8mb4", Compared::Set, &["''", "'x'", "'x,z,ä'"]),
    (
        "GEOMETRY",
        Compared::Raw,
        &[
            "ST_GeomFromText('POINT(1 2)')",
            "ST_GeomFromText('LINESTRING(0 0,1.5 -2)')",
            "ST_GeomFromText('POLYGON((0 0,4 0,4 4,0 0),(1 1,2 1,2 2,1 1))')",
            "ST_GeomFromText('MULTIPOINT(1 1,2 2)')",
            "ST_GeomFromText('MULTIPOLYGON(((0 0,4 0,4 4,0 0)))')",
            "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))')",
        ],
    ),
    ("POINT", Compared::Raw, &["ST_GeomFromText('POINT(-1.25 3)', 4326)"]),
];

const MYSQL: &[Typed] = &[
    ("VARCHAR(20) CHARACTER SET gb18030", Compared::OtherText, &["'中文😀'", "'ä'"]),
    (
        "JSON",
        Compared::Json,
        &[
            "'{}'",
            "'[]'",
            "'null'",
            "'\"text ä😀\"'",
            "'{\"a\": 1, \"b\": [true, false, null, -1, 65535, 70000, -70000, 5000000000, 18446744073709551615], \"c\": {\"d\": {\"e\": 1.5e10}}}'",
            "JSON_OBJECT('decimal', CAST(1.50 AS DECIMAL(10,2)), 'time', CAST('-12:34:56.000001' AS TIME(6)), 'date', CAST('2024-02-29' AS DATE), \
         'datetime', CAST('2024-02-29 12:34:56.5' AS DATETIME(6)), 'bytes', X'00ff')",
            "JSON_OBJECT('long', REPEAT('x', 70000), 'list', JSON_ARRAY(1, 2, 'ä'))",
            "CAST('3.0' AS JSON)",
            "'-1e300'",
        ],
    ),
    ("VECTOR(3)", Compared::Raw, &["STRING_TO_VECTOR('[1,-2.5,3e10]')"]),
];

const MARIADB: &[Typed] = &[
    ("JSON", Compared::Json, &["'{}'", "'{\"a\": [1, 2.5, \"ä\"]}'"]),
    (
        "INET6",
        Compared::Address,
        &[
            "'::1'",
            "'2001:db8::ff00:42:8329'",
            "'::'",
            "'::1.2.3.4'",
            "'::ffff:0.0.0.0'",
            "'1:0:2:3:4:5:6:7'",
            "'1:0:0:2:0:0:0:3'",
            "'1:2:3:4:5:6:7:0'",
            "'::2:3:4:5:6:7'",
        ],
    ),
    ("INET4", Compared::Address, &["'10.0.0.1'", "'0.0.0.0'", "'255.255.255.255'"]),
    (
        "UUID",
        Compared::Address,
        &[
            "'123e4567-e89b-12d3-a456-426655440000'",
            "'00000000-0000-0000-0000-000000000000'",
            "'00000001-0002-8003-8104-aabbccddeeff'",
            "'f0000001-0002-7003-c104-aabbccddee00'",
        ],
    ),
    (
        "VARCHAR(3000) COMPRESSED CHARACTER SET utf8mb4",
        Compared::Packed,
        &["REPEAT('wä', 1500)", "'x'", "''"],
    ),
    ("TEXT COMPRESSED CHARACTER SET gbk", Compared::Packed, &["REPEAT('中文 ', 500)", "'中'"]),
    ("MEDIUMBLOB COMPRESSED", Compared::PackedBytes, &["REPEAT(X'00ff27', 40000)", "X'00'", "X''"]),
    ("VECTOR(3)", Compared::Bytes, &["VEC_FromText('[1,-2.5,3e10]')"]),
];

/// All columns that a server has.
pub(crate) fn all(server: &Server) -> Vec<Typed> {
    let own = match server.kind() {
        ServerKind::MySql => MYSQL,
        ServerKind::MariaDb => MARIADB,
    };
    let mut all = [BOTH, own].concat();
    // VECTOR came with MySQL 9.0 and MariaDB 11.7.
    if matches!(server.name(), "mysql-8.0.31" | "mariadb-10.11") {
        all.retain(|(sql, ..)| !sql.starts_with("VECTOR"));
    }
    all
}

/// The name of a column.
pub(crate) fn name(at: usize) -> String {
    format!("c{at}")
}

/// CREATE TABLE with all columns behind an `id`.
pub(crate) fn create(table: &str, types: &[Typed]) -> String {
    let columns: Vec<String> =
        (0..).zip(types).map(|(at, (sql, ..))| format!("{} {sql}", name(at))).collect();
    format!("CREATE TABLE {table} (id INT PRIMARY KEY, {})", columns.join(", "))
}

/// How many rows show every value, with one of NULLs.
pub(crate) fn rows(types: &[Typed]) -> usize {
    types.iter().map(|(.., values)| values.len()).max().unwrap_or(0) + 1
}

/// INSERT of all of them.
pub(crate) fn insert(table: &str, types: &[Typed]) -> String {
    let count = rows(types);
    let row = |number: usize| {
        let values = types
            .iter()
            .map(|(.., values)| if number + 1 == count { "NULL" } else { values[number % values.len()] });
        format!("({number}, {})", values.collect::<Vec<_>>().join(", "))
    };
    let rows: Vec<String> = (0..count).map(row).collect();
    format!("INSERT INTO {table} VALUES {}", rows.join(", "))
}

/// What SELECT gives a value to be compared by.
pub(crate) fn selected(at: usize, compared: Compared) -> String {
    let name = name(at);
    match compared {
        Compared::Plain | Compared::Timestamp => name,
        Compared::Bit => format!("{name} + 0"),
        Compared::Float | Compared::Double => format!("{name} + 0e0"),
        Compared::Text
        | Compared::OtherText
        | Compared::Packed
        | Compared::Enum
        | Compared::Set
        | Compared::Json
        | Compared::Address => format!("HEX(CONVERT({name} USING utf8mb4))"),
        Compared::NotTold | Compared::Bytes | Compared::PackedBytes | Compared::Raw => format!("HEX({name})"),
    }
}
