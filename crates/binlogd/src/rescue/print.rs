//! Transactions as statements for a person, who runs them by hand where no tool can decide: under GTIDs that the server gives.

use super::statements::Translator;
use codec::gtid::TransactionId;
use codec::secrets::{masked, may_hold_secret};
use log::forks::{Lost, Place};
use log::posix::PosixStorage;
use log::transactions::TransactionReader;
use std::fmt::Write;
use std::io;
use std::path::Path;

/// What the client program takes for the end of a statement, as mysqlbinlog writes it: no statement of a log holds it.
const DELIMITER: &str = "/*!*/;";

/// The beginning of the text that [`versions`] and [`transaction`] go on with.
pub(crate) fn head() -> String {
    format!(
        "-- Statements of transactions that binlogd holds, for a person to look at and to run by hand: mysql --binary-mode < FILE\n\
         -- They name no GTID, so that the server gives new ones. Rows are BINLOG statements; mysqlbinlog -v shows them in the file named.\n\
         DELIMITER {DELIMITER}\n"
    )
}

/// The end of the text.
pub(crate) fn tail() -> &'static str {
    "DELIMITER ;\n"
}

/// Each of the transactions that had a GTID, in the order in which they had it.
///
/// # Errors
/// When a file of the copy cannot be read as it was.
pub(crate) fn versions(id: &TransactionId, lost: &Lost) -> io::Result<String> {
    let mut text = String::new();
    for (number, version) in lost.versions.iter().enumerate() {
        let which = match lost.versions.len() {
            1 => "lost by the source, and not handed back".to_owned(),
            count if number + 1 == count => {
                format!("{} of {count}: the one that the source has now", number + 1)
            }
            count => format!("{} of {count}: lost by the source", number + 1),
        };
        let at = jiff::Timestamp::from_second(i64::from(version.timestamp))
            .map_or("?".into(), |at| at.to_string());
        text.push_str(&transaction(id, &version.place, &format!("{which}; {at}"))?);
    }
    Ok(text)
}

/// One transaction.
///
/// # Errors
/// When the file of the copy cannot be read as it was.
pub(crate) fn transaction(id: &TransactionId, place: &Place, about: &str) -> io::Result<String> {
    let mut reader = TransactionReader::open(&PosixStorage, &place.path)?;
    let format = reader.format_event().to_vec();
    reader.seek(place.at)?;
    let moved = || {
        let text = format!("{} at {} does not hold {id} any more", place.path.display(), place.at);
        io::Error::new(io::ErrorKind::InvalidData, text)
    };
    let transaction = reader.next(|_| true)?.filter(|found| found.id == Some(*id)).ok_or_else(moved)?;
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = writeln!(text, "\n-- {id}, {about}");
    let _ = writeln!(text, "-- {} at {} to {}", place.path.display(), place.at, place.end);
    match Translator::default().statements(&transaction, &format) {
        Ok(statements) => {
            for statement in statements.iter().filter(|statement| !names_transaction(statement)) {
                // Base64 may hold the letters of any word.
                if !statement.starts_with(b"BINLOG '") && may_hold_secret(statement) {
                    let shown = masked(statement).replace('\n', "\n-- ");
                    let _ = writeln!(text, "-- It holds a secret, which only the file shows: {shown}");
                } else {
                    let _ = writeln!(text, "{}\n{DELIMITER}", String::from_utf8_lossy(statement));
                }
            }
        }
        Err(why) => {
            let name = place.path.file_name().map(Path::new).unwrap_or(Path::new("")).display();
            let _ = writeln!(
                text,
                "-- It cannot be told by statements here: {why}. mysqlbinlog can: mysqlbinlog -v --start-position={} \
                 --stop-position={} {name}",
                place.at, place.end
            );
        }
    }
    Ok(text)
}

/// The statements that give a transaction its GTID.
fn names_transaction(statement: &[u8]) -> bool {
    ["SET @@session.gtid_next", "SET @@session.gtid_domain_id"]
        .iter()
        .any(|beginning| statement.starts_with(beginning.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use log::testing::{FileBuilder, SERVER_UUID};

    #[test]
    fn statements_name_no_gtid_and_say_where_they_are_from() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.000001");
        let mut file = FileBuilder::new().previous_gtids("");
        let at = file.len() as u64;
        file.event(33, &[&[0][..], &[0xab; 16], &7u64.to_le_bytes()].concat());
        file.event(2, &[&[0; 14][..], b"CREATE TABLE d.t (id INT)"].concat());
        let end = file.len() as u64;
        std::fs::write(&path, file.finish()).unwrap();
        let id: TransactionId = format!("{SERVER_UUID}:7").parse::<codec::gtid::Gtid>().unwrap().into();
        let place = Place { path: path.into(), at, end };
        let text = transaction(&id, &place, "lost").unwrap();
        assert!(text.contains(&format!("-- {id}, lost")) && text.contains("b.000001 at "), "{text}");
        assert!(text.contains("CREATE TABLE d.t (id INT)\n/*!*/;") && !text.contains("gtid_next"), "{text}");
        let moved = transaction(&id, &Place { at: 4, ..place }, "lost").unwrap();
        assert!(moved.contains("CREATE TABLE"), "the next transaction from there");
        assert!(head().ends_with("DELIMITER /*!*/;\n") && tail() == "DELIMITER ;\n");
    }

    #[test]
    fn secrets_are_masked_and_rows_that_spell_a_word_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.000001");
        let mut file = FileBuilder::new().previous_gtids("");
        let user = file.len() as u64;
        file.event(33, &[&[0][..], &[0xab; 16], &7u64.to_le_bytes()].concat());
        file.event(2, &[&[0; 14][..], b"CREATE USER u IDENTIFIED BY 'hunter2'"].concat());
        let rows = file.len() as u64;
        file.event(33, &[&[0][..], &[0xab; 16], &8u64.to_le_bytes()].concat());
        file.event(2, &[&[0; 14][..], b"BEGIN"].concat());
        file.event(19, b"\x01\0\0\0\0\0\x01\0\x01d\0\x01t\0");
        // In one of the three places it begins with a letter of base64: pwdp.
        let spells = [0xa7, 0x07, 0x69, 0].repeat(3);
        file.event(30, &[&[1, 0, 0, 0, 0, 0, 1, 0][..], &spells].concat());
        file.event(16, &8u64.to_le_bytes());
        std::fs::write(&path, file.finish()).unwrap();
        let shown = |number: u64, at| {
            let id: TransactionId =
                format!("{SERVER_UUID}:{number}").parse::<codec::gtid::Gtid>().unwrap().into();
            transaction(&id, &Place { path: path.clone().into(), at, end: at }, "lost").unwrap()
        };
        let user = shown(7, user);
        assert!(user.contains("It holds a secret") && !user.contains("hunter2"), "{user}");
        let rows = shown(8, rows);
        assert!(rows.contains("pwd") && !rows.contains("secret"), "{rows}");
    }
}
