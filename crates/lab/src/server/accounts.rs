//! The accounts of one of the lab's own servers, which begin without passwords.

use super::sql::quoted;
use anyhow::Context;
use rig::server::Session;
use std::fs::File;
use std::io::Read;
use wire::Secret;

/// Accounts that can be used without a password. The servers' own are locked. Roles have no host.
const OPEN: &str = "SELECT user, host FROM mysql.user WHERE authentication_string = '' AND host <> '' \
                    AND user NOT IN ('root', 'mariadb.sys') AND user NOT LIKE 'mysql.%'";
const ROOT: &str = "SELECT user, host FROM mysql.user WHERE user = 'root'";

/// Gives every account of root the same random password, which is returned, and removes the others that have none.
pub(super) fn close(session: &mut Session) -> anyhow::Result<Secret> {
    let password = random()?;
    for account in accounts(session, OPEN)? {
        session.query(&format!("DROP USER {account}"))?;
    }
    for account in accounts(session, ROOT)? {
        let statement = format!("ALTER USER {account} IDENTIFIED BY {}", quoted(&password));
        session.query_unquoted(&statement, &format!("ALTER USER {account}"))?;
    }
    Ok(Secret::new(password))
}

/// As statements name them.
fn accounts(session: &mut Session, sql: &str) -> anyhow::Result<Vec<String>> {
    let rows = session.query(sql)?;
    let text = |cell: &Option<Vec<u8>>| quoted(&String::from_utf8_lossy(cell.as_deref().unwrap_or_default()));
    Ok(rows.rows.iter().map(|row| row.iter().map(text).collect::<Vec<_>>().join("@")).collect())
}

fn random() -> anyhow::Result<String> {
    let mut bytes = [0; 15];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.context("reading /dev/urandom")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
