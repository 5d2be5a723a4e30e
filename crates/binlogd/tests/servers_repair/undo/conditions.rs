//! A condition holds for the value and for no other, and a key finds the row: pairs of values that something takes for one, and keys of
//! every type.

use super::Scene;
use crate::common::daemon::url;
use crate::common::readers::checksums;
use crate::common::verbs::text;
use codec::ServerKind;

/// A type, the value that a transaction leaves, and another one that a collation, a number or a text takes for the same.
type Pair = (&'static str, &'static str, &'static str);

const BOTH: &[Pair] = &[
    ("CHAR(10) CHARACTER SET utf8mb4", "'paid'", "'PAID'"),
    ("VARCHAR(10) CHARACTER SET utf8mb4", "'René'", "'rene'"),
    ("VARCHAR(10) CHARACTER SET utf8mb4", "'a'", "'a '"),
    ("VARCHAR(10) CHARACTER SET latin1", "'ä'", "'a'"),
    ("TEXT CHARACTER SET utf8mb4", "'a'", "'a  '"),
    ("VARCHAR(10) CHARACTER SET utf8mb4", "''", "NULL"),
    ("VARBINARY(10)", "X'61'", "X'6100'"),
    ("BINARY(3)", "X'610000'", "X'610020'"),
    ("BLOB", "X''", "X'00'"),
    ("FLOAT", "1.1", "1.1000001"),
    ("DOUBLE", "0.1", "0.10000000000000002"),
    ("DECIMAL(30,10)", "1.5", "1.5000000001"),
    ("BIGINT UNSIGNED", "18446744073709551615", "18446744073709551614"),
    ("BIT(64)", "18446744073709551615", "18446744073709551614"),
    ("ENUM('','x')", "''", "'x'"),
    ("SET('x','y')", "''", "'y'"),
    ("ENUM('1','2')", "'2'", "'1'"),
    ("YEAR", "'0000'", "2000"),
    ("DATE", "'0000-00-00'", "NULL"),
    ("DATE", "'2024-02-00'", "'2024-02-01'"),
    ("DATETIME(6)", "'2024-01-01 00:00:00.000000'", "'2024-01-01 00:00:00.000001'"),
    ("TIME(3)", "'-00:00:00.001'", "'00:00:00.001'"),
    // In Berlin both are half past two.
    ("TIMESTAMP NULL", "'2024-10-27 00:30:00'", "'2024-10-27 01:30:00'"),
    ("GEOMETRY", "ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('POINT(1 2)', 4326)"),
    ("MEDIUMBLOB", "REPEAT('a', 5000)", "CONCAT(REPEAT('a', 4999), 'b')"),
    ("MEDIUMTEXT CHARACTER SET utf8mb4", "REPEAT('é', 3000)", "CONCAT(REPEAT('é', 2999), 'É')"),
    ("MEDIUMTEXT CHARACTER SET latin1", "REPEAT('é', 5000)", "REPEAT('e', 5000)"),
    (
        "GEOMETRY",
        "ST_GeomFromText(CONCAT('LINESTRING(', REPEAT('1 2,', 600), '3 4)'))",
        "ST_GeomFromText(CONCAT('LINESTRING(', REPEAT('1 2,', 600), '3 5)'))",
    ),
    ("JSON", "JSON_OBJECT('k', REPEAT('x', 300000))", "JSON_OBJECT('k', REPEAT('X', 300000))"),
    ("JSON", r#"'{"state": "paid"}'"#, r#"'{"state": "PAID"}'"#),
    ("JSON", r#"'["é"]'"#, r#"'["e"]'"#),
    ("JSON", "'1'", "'1.0'"),
];

const MYSQL: &[Pair] = &[
    ("DOUBLE", "0", "-0e0"),
    ("FLOAT", "-0e0", "0"),
    ("JSON", "'[0.0]'", "'[-0.0]'"),
    ("JSON", "'1'", "CAST(CAST(1 AS UNSIGNED) AS JSON)"),
    ("JSON", r#"'{"a": [1.5]}'"#, "JSON_OBJECT('a', JSON_ARRAY(1.5))"),
    ("JSON", r#"'{"d\\"x": "2024-02-29"}'"#, "JSON_OBJECT('d\"x', CAST('2024-02-29' AS DATE))"),
    ("JSON", "JSON_ARRAY(CAST('12:00:00' AS TIME(6)))", r#"'["12:00:00.000000"]'"#),
    ("JSON", "JSON_ARRAY(X'00ff')", r#"'["base64:type15:AP8="]'"#),
    ("JSON", "'null'", "NULL"),
];

const MARIADB: &[Pair] = &[
    ("INET6", "'::ffff:0.0.0.1'", "'::0.0.0.1'"),
    ("UUID", "'00000001-0002-8003-8104-aabbccddeeff'", "'00000001-0002-8003-8104-aabbccddeefe'"),
    ("VARCHAR(100) COMPRESSED CHARACTER SET utf8mb4", "'a'", "'A'"),
    ("JSON", r#"'{"a":1}'"#, r#"'{"a": 1}'"#),
];

/// Each row is left with a value, then somebody makes the other one of it: that row is another one.
pub(super) fn hold_for_one_value(scene: &Scene) {
    let own = if scene.source.kind() == ServerKind::MySql { MYSQL } else { MARIADB };
    // MySQL 5.7 has such bytes in a document as BIT, which no literal makes.
    let is_old = scene.source.name() == "mysql-5.7.22";
    let pairs: Vec<&Pair> =
        BOTH.iter().chain(own).filter(|pair| !is_old || !pair.1.contains("X'00ff'")).collect();
    let sql = |statements: &str| scene.source.sql(&format!("{}; {statements}", super::SESSION));
    let columns: Vec<String> = (0..).zip(&pairs).map(|(at, (kind, ..))| format!("c{at} {kind}")).collect();
    sql(&format!("CREATE TABLE shop.pairs (id INT PRIMARY KEY, {})", columns.join(", ")));
    let rows: Vec<String> = (0..pairs.len()).map(|id| format!("({id})")).collect();
    sql(&format!("INSERT INTO shop.pairs (id) VALUES {}", rows.join(", ")));
    let before = checksums(&scene.source, "shop");
    let set = |of: &dyn Fn(&Pair) -> &'static str| {
        let all = pairs.iter().enumerate();
        // A server that takes the two for one writes nothing; from NULL it writes.
        let one = |at: usize, value: &str| format!("UPDATE shop.pairs SET c{at} = {value} WHERE id = {at}");
        let all = all.map(|(at, pair)| format!("{}; {}", one(at, "NULL"), one(at, of(pair))));
        sql(&format!("BEGIN; {}; COMMIT", all.collect::<Vec<_>>().join("; ")));
    };
    set(&|pair| pair.1);
    let gtids = scene.gtids("shop.pairs");
    let gtid = gtids.last().unwrap();
    set(&|pair| pair.2);
    let url = url(&scene.source);
    let output = scene.run("undo", &["--gtid", gtid, "--into", &url, "--plan"]);
    let said = text(&output.stdout);
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("updated shop.pairs")).collect();
    for (at, pair) in pairs.iter().enumerate() {
        let is_told = lines.iter().any(|line| line.ends_with(&format!("id={at}")));
        assert!(is_told, "{pair:?} are taken for one: {said}{}", text(&output.stderr));
    }
    let output = scene.run("undo", &["--gtid", gtid, "--into", &url, "--yes", "--leave-out-changed"]);
    assert!(text(&output.stderr).contains("no row is as these"), "{}", text(&output.stderr));
    set(&|pair| pair.1);
    let output = scene.run("undo", &["--gtid", gtid, "--into", &url, "--yes"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(checksums(&scene.source, "shop"), before);
    sql("DROP TABLE shop.pairs");
}

/// A type of a key, and the value of row `i`.
const KEYS: &[(&str, &str)] = &[
    ("INT", "i"),
    ("DECIMAL(20,4)", "i / 4"),
    ("FLOAT", "i / 4"),
    ("DOUBLE", "i - 4.5"),
    ("BIT(10)", "i"),
    ("YEAR", "IF(i = 5, '0000', 2000 + i % 100)"),
    ("DATE", "IF(i = 5, '2024-00-00', '2026-01-01' + INTERVAL i DAY)"),
    ("TIME(3)", "SEC_TO_TIME(i - 10)"),
    ("DATETIME(3)", "'2026-01-01' + INTERVAL i SECOND"),
    ("DATETIME", "IF(i = 5, '0000-00-00', '2026-01-01' + INTERVAL i SECOND)"),
    ("TIMESTAMP(6)", "'2026-01-01' + INTERVAL i SECOND"),
    ("ENUM('a','ü','c')", "1 + i % 3"),
    ("SET('a','b','c')", "i % 8"),
    ("CHAR(40) CHARACTER SET utf8mb4", "CONCAT('kä', i)"),
    ("VARCHAR(40) CHARACTER SET latin1", "CONCAT('kä\\n', i)"),
    ("VARCHAR(40) CHARACTER SET cp850", "CONCAT('ä', i)"),
    ("VARCHAR(40) CHARACTER SET utf16", "CONCAT('中', i)"),
    ("BINARY(16)", "UNHEX(LEFT(SHA2(i, 256), 32))"),
];

const KEYS_OF_MARIADB: &[(&str, &str)] = &[("INET6", "CONCAT('::', i)"), ("UUID", "MD5(i)")];

/// EXPLAIN of each statement has the primary key, and one row.
pub(super) fn find_rows_by_their_key(scene: &Scene) {
    let is_mariadb = scene.source.kind() == ServerKind::MariaDb;
    let own = if is_mariadb { KEYS_OF_MARIADB } else { &[] };
    let keys: Vec<_> = KEYS.iter().chain(own).collect();
    let numbers = "(SELECT a.i + 10 * b.i + 100 * c.i i FROM shop.d a, shop.d b, shop.d c) n WHERE i < 300";
    let sql = |statements: &str| scene.source.sql(&format!("{}; {statements}", super::SESSION));
    sql(
        "CREATE TABLE shop.d (i INT); INSERT INTO shop.d VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
    );
    for (at, (kind, value)) in keys.iter().enumerate() {
        sql(&format!(
            "CREATE TABLE shop.key{at} (c {kind}, i INT, v INT, PRIMARY KEY (c, i)); \
             INSERT INTO shop.key{at} SELECT {value}, i, 0 FROM {numbers}; ANALYZE TABLE shop.key{at}"
        ));
    }
    // Without a primary key the column that begins an index finds it.
    sql(&format!(
        "CREATE TABLE shop.no_key (c DATETIME, i INT, v INT, KEY (c)); \
         INSERT INTO shop.no_key SELECT '2026-01-01' + INTERVAL i SECOND, i, 0 FROM {numbers}; ANALYZE TABLE shop.no_key"
    ));
    let updates: Vec<String> =
        (0..keys.len()).map(|at| format!("UPDATE shop.key{at} SET v = 1 WHERE i = 5")).collect();
    sql(&format!("BEGIN; {}; UPDATE shop.no_key SET v = 1 WHERE i = 5; COMMIT", updates.join("; ")));
    let gtid = scene.gtids("shop.key0").pop().unwrap();
    let output = scene.run("undo", &["--gtid", &gtid, "--schema", &url(&scene.source)]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let script = text(&output.stdout);
    let session: Vec<&str> = script.lines().filter(|line| line.starts_with("SET ")).collect();
    let explain = if is_mariadb { "EXPLAIN" } else { "EXPLAIN FORMAT=TRADITIONAL" };
    let mut count = 0;
    for statement in script.lines().filter(|line| line.starts_with("UPDATE")) {
        let path = scene.source.dir().join("explain.sql");
        std::fs::write(&path, format!("{}\n{explain} {statement}\n", session.join("\n"))).unwrap();
        let plan = scene.source.sql_file(&path, &["--binary-mode"]);
        let key = if statement.contains("no_key") { "\tc\tc\t" } else { "\tPRIMARY\tPRIMARY\t" };
        assert!(plan.contains("range") && plan.contains(key), "{statement}\n{plan}");
        count += 1;
    }
    assert_eq!(count, keys.len() + 1, "{script}");
    let output = scene.run("undo", &["--gtid", &gtid, "--into", &url(&scene.source), "--yes"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut changed = String::new();
    for at in 0..keys.len() {
        changed += &scene.source.sql(&format!("SELECT {at}, c FROM shop.key{at} WHERE v <> 0"));
    }
    assert_eq!(changed, "");
}
