//! What `mysqlbinlog -v` prints of the same rows.

use super::types::{Compared, Typed};
use super::unhex;
use crate::common::Server;
use crate::common::daemon::Daemon;
use serde_json::Value;

/// Compares the rows of an INSERT into `shop.verbose` with what mysqlbinlog prints of them. Some types it prints in a way of its own;
/// these are brought into one form here.
pub(crate) fn compare(server: &Server, daemon: &Daemon, types: &[Typed], shown: &Value) {
    let file = std::fs::read_dir(daemon.timeline_dir())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|number| number == "000001"))
        .expect("the first binary log");
    let output = server.mysqlbinlog(&["-v", "--base64-output=DECODE-ROWS", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Values stand there as their bytes: a character is a byte here.
    let printed: String = output.stdout.iter().copied().map(char::from).collect();
    let printed = rows(&printed);
    let ours = shown["rows"].as_array().unwrap();
    assert_eq!(printed.len(), ours.len());
    for (number, (printed, ours)) in printed.iter().zip(ours).enumerate() {
        for (at, (sql, compared, _)) in types.iter().enumerate() {
            let what = format!("row {number}: {sql}: {:.200}", printed[at + 1]);
            same(&what, sql, *compared, &printed[at + 1], &ours["after"][at + 1]);
        }
    }
}

/// The values of each row of `INSERT INTO shop.verbose`.
fn rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut is_meant) = (Vec::new(), false);
    for line in text.lines() {
        let Some(line) = line.strip_prefix("### ") else {
            is_meant = false;
            continue;
        };
        if line == "INSERT INTO `shop`.`verbose`" {
            is_meant = true;
            rows.push(Vec::new());
        } else if let (true, Some((_, value))) =
            (is_meant, line.trim_start().strip_prefix('@').and_then(|rest| rest.split_once('=')))
        {
            rows.last_mut().unwrap().push(value.to_owned());
        } else if line != "SET" {
            is_meant = false;
        }
    }
    rows
}

#[track_caller]
fn same(what: &str, sql: &str, compared: Compared, printed: &str, ours: &Value) {
    if printed == "NULL" || ours.is_null() {
        assert!(ours.is_null() && printed == "NULL", "{what}: {ours}");
        return;
    }
    let text = ours.as_str().map_or_else(|| ours.to_string(), str::to_owned);
    let hex = || unhex(ours["hex"].as_str().unwrap_or_else(|| panic!("{what}: {ours}")));
    let trimmed = |bytes: Vec<u8>| {
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
        bytes[..end].to_vec()
    };
    match compared {
        // A negative number with the other reading in brackets, whatever the column is; DATE with colons.
        Compared::Plain if sql == "DATE" => {
            assert_eq!(printed.trim_matches('\'').replace(':', "-"), text, "{what}")
        }
        // It knows no year 0.
        Compared::Plain if sql == "YEAR" && text == "0000" => assert_eq!(printed, "1900", "{what}"),
        Compared::Plain => {
            let readings: Vec<&str> = printed.trim_matches('\'').split(['(', ')']).map(str::trim).collect();
            // Its fraction is printed as the column has it, its whole part without a zero in front.
            assert!(readings.contains(&text.as_str()), "{what}: {text}");
        }
        Compared::Bit => {
            let bits = printed.trim_start_matches("b'").trim_end_matches('\'');
            assert_eq!(u64::from_str_radix(bits, 2).unwrap(), ours.as_u64().unwrap(), "{what}");
        }
        // Seconds since 1970.
        Compared::Timestamp => {
            let (seconds, fraction) = printed.split_once('.').unwrap_or((printed, ""));
            let seconds: i64 = seconds.parse().unwrap();
            let at = match seconds {
                0 => "0000-00-00 00:00:00".to_owned(),
                _ => jiff::Timestamp::from_second(seconds).unwrap().strftime("%Y-%m-%d %H:%M:%S").to_string(),
            };
            let at = if fraction.is_empty() { at } else { format!("{at}.{fraction}") };
            assert_eq!(at, text, "{what}");
        }
        // Six digits.
        Compared::Float | Compared::Double => {
            let first = printed.split('(').next().unwrap().trim();
            let (printed, ours): (f64, f64) = (first.parse().unwrap(), ours.as_f64().unwrap());
            assert!((printed - ours).abs() <= ours.abs() * 1e-5, "{what}: {ours}");
        }
        Compared::Text => assert_eq!(String::from_utf8_lossy(&unescaped(printed)), text, "{what}"),
        // mysqlbinlog prints bytes: of characters nobody knows which, of an address as they are, of a COMPRESSED column packed.
        Compared::OtherText
        | Compared::NotTold
        | Compared::Address
        | Compared::Packed
        | Compared::PackedBytes => {}
        Compared::Bytes => assert_eq!(trimmed(unescaped(printed)), trimmed(hex()), "{what}"),
        Compared::Raw => assert_eq!(unescaped(printed), hex(), "{what}"),
        // By their numbers.
        Compared::Enum => {
            let members = ["x", "it's", "ä"];
            let number: usize = printed.parse().unwrap();
            assert_eq!(members[number - 1], text, "{what}");
        }
        Compared::Set => {
            let bits =
                u64::from_str_radix(printed.trim_start_matches("b'").trim_end_matches('\''), 2).unwrap();
            let members = ["x", "y", "z", "ä"].into_iter().enumerate();
            let chosen: Vec<&str> =
                members.filter(|(bit, _)| bits & 1 << bit != 0).map(|(_, name)| name).collect();
            assert_eq!(chosen.join(","), text, "{what}");
        }
        Compared::Json => {
            let theirs = String::from_utf8_lossy(&unescaped(printed)).into_owned();
            // A text is printed without its quotes.
            if serde_json::from_str::<Value>(&text).unwrap().as_str() == Some(theirs.as_str()) {
                return;
            }
            let parse = |text: &str| {
                serde_json::from_str::<Value>(text).unwrap_or_else(|_| panic!("{what}: {text:.300}"))
            };
            assert_eq!(parse(&theirs), parse(&text), "{what}");
        }
    }
}

/// `'a\x00b'` as bytes.
fn unescaped(printed: &str) -> Vec<u8> {
    let inner = printed.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).unwrap_or(printed);
    let inner: Vec<u8> = inner.chars().map(|one| u8::try_from(u32::from(one)).expect("a byte")).collect();
    let (mut bytes, mut rest) = (Vec::new(), &inner[..]);
    while let Some((first, behind)) = rest.split_first() {
        if *first == b'\\' && behind.first() == Some(&b'x') && behind.len() >= 3 {
            bytes.push(u8::from_str_radix(std::str::from_utf8(&behind[1..3]).unwrap(), 16).unwrap());
            rest = &behind[3..];
        } else if *first == b'\\' && matches!(behind.first(), Some(b'\\' | b'\'')) {
            bytes.push(behind[0]);
            rest = &behind[1..];
        } else if let (b'\\', Some(letter)) = (first, behind.first().and_then(|letter| control(*letter))) {
            bytes.push(letter);
            rest = &behind[1..];
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    bytes
}

fn control(letter: u8) -> Option<u8> {
    Some(match letter {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'f' => 12,
        b'0' => 0,
        b'"' => b'"',
        _ => return None,
    })
}
