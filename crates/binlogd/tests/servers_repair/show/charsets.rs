//! Every character of every character set that is told: as `CONVERT(… USING utf8mb4)` of a real server has it, or not told.

use super::unhex;
use crate::common::Server;
use codec::ServerKind;
use codec::rows::{Charset, LEGACY_CHARSETS};

/// Compares them.
pub(crate) fn compare(server: &Server) {
    collations(server);
    for legacy in LEGACY_CHARSETS {
        if server.kind() == ServerKind::MariaDb && legacy.name == "gb18030" {
            continue;
        }
        let codes: &[&str] = match legacy.name {
            "gb18030" => &[ONE, TWO, FOUR],
            "ujis" | "eucjpms" => &[ONE, TWO, THREE],
            "big5" | "cp932" | "euckr" | "gb2312" | "gbk" | "sjis" => &[ONE, TWO],
            _ => &[ONE],
        };
        let charset = Charset::of_name(Some(legacy.name));
        let (mut told, mut not_told) = (0, 0);
        for codes in codes {
            for (bytes, theirs) in characters(server, legacy.name, codes) {
                match charset.decode(&bytes) {
                    Some(ours) => {
                        assert_eq!(ours, theirs, "{} {bytes:02x?}", legacy.name);
                        told += 1;
                    }
                    None => not_told += 1,
                }
            }
        }
        println!("{}: {told} characters are told, {not_told} are not", legacy.name);
        // Fewer would mean that a table is not used at all.
        let least = if codes.len() > 1 { 7000 } else { 200 };
        assert!(told > least, "{}: {told} are told, {not_told} are not", legacy.name);
    }
}

/// Codes of one byte to four, of `n.i`. Of the longest those that stand for U+0080 to U+FFFF, and some of those behind.
const ONE: &str = "SELECT CHAR(i) x FROM n WHERE i < 256";
const TWO: &str = "SELECT CHAR(32768 + i) x FROM n WHERE i < 32768";
const THREE: &str = "SELECT CHAR(9371648 + i) x FROM n WHERE i < 65536";
const FOUR: &str = "SELECT CHAR(129 + j DIV 12600, 48 + j DIV 1260 MOD 10, 129 + j DIV 10 MOD 126, 48 + j MOD 10) x FROM \
    (SELECT IF(i < 50400, i, 50400 + (i - 50400) * 107) j FROM n WHERE i < 64000) n";

/// Codes that the server takes for sound, and the text that it reads. A character that it has no other for is `?` there.
fn characters(server: &Server, charset: &str, codes: &str) -> Vec<(Vec<u8>, String)> {
    let depth = match server.kind() {
        ServerKind::MySql => "cte_max_recursion_depth",
        ServerKind::MariaDb => "max_recursive_iterations",
    };
    let found = server.sql(&format!(
        "SET SESSION {depth} = 100000; WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 65535), c AS ({codes}) \
         SELECT HEX(x), HEX(CONVERT(CONVERT(x USING {charset}) USING utf8mb4)) FROM c WHERE HEX(x) = HEX(CONVERT(x USING {charset}))"
    ));
    found
        .lines()
        .map(|line| {
            let (bytes, text) = line.split_once('\t').expect("two columns");
            (unhex(bytes), String::from_utf8(unhex(text)).expect("UTF-8"))
        })
        .collect()
}

/// The number of each collation is that of its character set.
fn collations(server: &Server) {
    // MariaDB has collations of several sets, with a number of each in a table of its own.
    let table = match server.kind() {
        ServerKind::MySql => "SELECT id, character_set_name FROM information_schema.collations",
        ServerKind::MariaDb => {
            "SELECT id, character_set_name FROM information_schema.collation_character_set_applicability"
        }
    };
    let found = server.sql(table);
    for line in found.lines() {
        let (id, name) = line.split_once('\t').expect("two columns");
        let of_id = Charset::of_collation(id.parse().expect("a number"));
        assert_eq!(of_id, Charset::of_name(Some(name)), "{id} {name}");
    }
}
