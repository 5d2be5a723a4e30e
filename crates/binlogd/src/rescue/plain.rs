//! A transaction as statements and comments for a person, who decides what to do with it.

use super::statements::{Translator, summary};
use codec::secrets::{masked, may_hold_secret};
use log::transactions::StoredTransaction;

/// What begins the statements that tell a server a GTID: a person runs them under one that the server gives.
const NAMING: [&[u8]; 2] = [b"SET @@session.gtid_next", b"SET @@session.gtid_domain_id"];

/// The statements of a transaction of a file with this format description, in order, each without its delimiter; lines of
/// comments begin with `-- `. They name no GTID, and secrets in them are masked, which a comment says. Rows are BINLOG statements.
///
/// # Errors
/// What in it cannot be told by statements, in words.
pub fn plain_statements(transaction: &StoredTransaction, format_event: &[u8]) -> Result<Vec<String>, String> {
    let summary = summary(transaction)?;
    let mut plain = vec![format!("-- changes {}", one_line(&summary.changes.join(", ")))];
    for statement in Translator::default().statements(transaction, format_event)? {
        if NAMING.iter().any(|naming| statement.starts_with(naming)) {
            continue;
        }
        // Base64 may hold the letters of any word.
        if statement.starts_with(b"BINLOG '") || !may_hold_secret(&statement) {
            plain.push(String::from_utf8_lossy(&statement).into_owned());
        } else {
            plain.push(
                "-- a secret of the next statement is masked; the server's own mysqlbinlog shows it".into(),
            );
            plain.push(masked(&statement));
        }
    }
    Ok(plain)
}

/// Nothing in a comment may end it.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use log::storage::PosixStorage;
    use log::testing::FileBuilder;
    use log::transactions::TransactionReader;

    #[test]
    fn a_person_sees_what_it_does_and_no_secret() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.000001");
        let mut file = FileBuilder::new().previous_gtids("");
        let at = file.len() as u64;
        for (number, text) in [(7u64, "CREATE TABLE d.t (id INT)"), (8, "CREATE USER u IDENTIFIED BY 'pw'")] {
            file.event(33, &[&[0][..], &[0xab; 16], &number.to_le_bytes()].concat());
            file.event(2, &[&[0; 14][..], text.as_bytes()].concat());
        }
        std::fs::write(&path, file.finish()).unwrap();
        let mut reader = TransactionReader::open(&PosixStorage, &path).unwrap();
        reader.seek(at).unwrap();
        let format = reader.format_event().to_vec();
        let mut plain = || plain_statements(&reader.next(|_| true).unwrap().unwrap(), &format).unwrap();
        let table = plain();
        assert_eq!(table[0], "-- changes CREATE TABLE d.t (id INT)");
        assert_eq!(table.last().unwrap(), "CREATE TABLE d.t (id INT)");
        assert!(!table.concat().contains("gtid_next"), "{table:?}");
        let user = plain();
        assert!(user[user.len() - 2].starts_with("-- a secret"), "{user:?}");
        assert_eq!(user.last().unwrap(), "CREATE USER u IDENTIFIED BY <secret>");
    }
}
