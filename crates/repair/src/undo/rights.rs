//! Whether an account sees all that a server has to say against taking rows back. `information_schema` leaves out what an account has no
//! right to, without a word.
//!
//! | what is seen | MySQL | MariaDB |
//! |---|---|---|
//! | triggers of a table | TRIGGER on the table (`CAN_ACCESS_TRIGGER`) | also INSERT, UPDATE or DELETE |
//! | foreign keys that refer to a table, with their columns | a right to the columns of the table that has them, so in doubt of all tables (`CAN_ACCESS_TABLE`, `CAN_ACCESS_COLUMN`) | SELECT is not enough |
//!
//! Columns that cannot be seen are told by their number, which the log has. A CHECK is an error when a row is written.

use super::quoting::name;
use codec::ServerKind;
use wire::{Connection, WireError};

/// The rights of a session, as far as they are on schemas and tables.
#[derive(Debug)]
pub(super) struct Rights {
    kind: ServerKind,
    grants: Vec<Grant>,
    /// `%` and `_` in the name of a schema stand for themselves (partial_revokes).
    is_literal: bool,
}

/// A line of SHOW GRANTS.
#[derive(Debug)]
struct Grant {
    is_revoked: bool,
    rights: Vec<String>,
    /// Schema, as a pattern, and table; empty for all.
    schema: String,
    table: String,
}

impl Rights {
    /// Of the session: also those of its active roles.
    ///
    /// # Errors
    /// When the server does not tell them.
    pub(super) fn ask(connection: &mut Connection) -> Result<Rights, WireError> {
        const ER_OPTION_PREVENTS_STATEMENT: u16 = 1290;
        let kind = connection.server_kind();
        connection.query("SET SESSION sql_mode = '', sql_quote_show_create = 1")?;
        let grants = match connection.query("SHOW GRANTS") {
            // With skip_grant_tables nobody asks for rights there.
            Err(WireError::Server { code: ER_OPTION_PREVENTS_STATEMENT, .. }) => {
                grant("GRANT ALL PRIVILEGES ON *.*").into_iter().collect()
            }
            grants => {
                let lines = grants?.rows;
                let text = |row: &Vec<Option<Vec<u8>>>| {
                    Some(String::from_utf8_lossy(row.first()?.as_ref()?).into_owned())
                };
                lines.iter().filter_map(|row| grant(&text(row)?)).collect()
            }
        };
        let literal = connection.query("SHOW VARIABLES LIKE 'partial_revokes'")?;
        Ok(Rights { kind, grants, is_literal: literal.get(0, "Value") == Some("ON") })
    }

    /// What the account must be granted before it sees all triggers of a table and all foreign keys that refer to it.
    pub(super) fn lacking(&self, schema: &str, table: &str) -> Vec<String> {
        let (triggers, keys) = match self.kind {
            ServerKind::MySql => (&["TRIGGER"][..], &["REFERENCES", "INSERT", "UPDATE", "SELECT"][..]),
            ServerKind::MariaDb => {
                (&["TRIGGER", "INSERT", "UPDATE", "DELETE"][..], &["REFERENCES", "INSERT", "UPDATE"][..])
            }
        };
        let mut lacking = Vec::new();
        if !triggers.iter().any(|right| self.is_on(right, schema, table)) {
            lacking.push(format!("triggers: GRANT TRIGGER ON {}.{}", name(schema), name(table)));
        }
        if !keys.iter().any(|right| self.is_on_all(right)) {
            lacking.push(
                "foreign keys of other tables, of any schema, that refer to it: GRANT REFERENCES ON *.*"
                    .to_owned(),
            );
        }
        lacking
    }

    /// A right to every table; that to the server's own is no matter.
    fn is_on_all(&self, right: &str) -> bool {
        let is_of_all = |one: &Grant| one.schema.is_empty() && one.has(right);
        let is_revoked = |one: &Grant| one.is_revoked && one.has(right) && one.schema != "mysql";
        self.grants.iter().any(is_of_all) && !self.grants.iter().any(is_revoked)
    }

    /// Of several grants to schemas the server takes the one with the closest name alone (`acl_get`): all that fit must have it.
    fn is_on(&self, right: &str, schema: &str, table: &str) -> bool {
        let fits = |one: &&Grant| match self.is_literal {
            true => one.schema == schema,
            false => is_like(&one.schema.chars().collect::<Vec<_>>(), schema),
        };
        let mut of_schema =
            self.grants.iter().filter(|one| !one.is_revoked && one.table.is_empty()).filter(fits).peekable();
        self.is_on_all(right)
            || of_schema.peek().is_some() && of_schema.all(|one| one.has(right))
            || self.grants.iter().any(|one| one.schema == schema && one.table == table && one.has(right))
    }
}

impl Grant {
    fn has(&self, right: &str) -> bool {
        self.rights.iter().any(|one| one == right || one == "ALL PRIVILEGES")
    }
}

/// Reads one line; `None` for rights to columns, roles, routines and proxies.
fn grant(line: &str) -> Option<Grant> {
    let (rights, rest) = line.split_once(" ON ")?;
    let (verb, rights) = rights.split_once(' ')?;
    let (schema, table) = match rest.strip_prefix("*.*") {
        Some(_) => Default::default(),
        None => {
            let (schema, rest) = quoted_name(rest)?;
            let rest = rest.strip_prefix('.')?;
            let table = if rest.starts_with('*') { String::new() } else { quoted_name(rest)?.0 };
            (schema, table)
        }
    };
    let rights = if rights.contains('(') { return None } else { rights.split(", ").map(str::to_owned) };
    Some(Grant { is_revoked: verb == "REVOKE", rights: rights.collect(), schema, table })
}

/// A name in backticks, and what stands behind it.
fn quoted_name(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('`')?;
    let mut name = String::new();
    loop {
        let (part, behind) = rest.split_once('`')?;
        name += part;
        let Some(more) = behind.strip_prefix('`') else { return Some((name, behind)) };
        name.push('`');
        rest = more;
    }
}

/// Whether a pattern of LIKE has this name.
fn is_like(pattern: &[char], name: &str) -> bool {
    let mut chars = name.chars();
    match pattern {
        [] => name.is_empty(),
        ['%', rest @ ..] => {
            is_like(rest, name) || chars.next().is_some_and(|_| is_like(pattern, chars.as_str()))
        }
        ['_', rest @ ..] => chars.next().is_some_and(|_| is_like(rest, chars.as_str())),
        ['\\', one, rest @ ..] | [one, rest @ ..] => {
            chars.next() == Some(*one) && is_like(rest, chars.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_account_sees_follows_from_its_grants() {
        let lacking = |kind, grants: &[&str]| {
            let grants = grants.iter().filter_map(|line| grant(&format!("{line} TO `a`@`%`"))).collect();
            let lacking = Rights { kind, grants, is_literal: false }.lacking("my_shop", "t`");
            lacking.iter().map(|one| one.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
        };
        let (mysql, mariadb) = (ServerKind::MySql, ServerKind::MariaDb);
        let all = "GRANT ALL PRIVILEGES ON *.*";
        let of_schema = r"GRANT SELECT, TRIGGER ON `my\_shop`.*";
        for (kind, grants, expected) in [
            (mysql, &[all][..], ""),
            (mariadb, &[all], ""),
            (mysql, &["GRANT USAGE ON *.*"], "triggers: foreign"),
            (mysql, &["GRANT SELECT ON *.*", of_schema], ""),
            (mariadb, &["GRANT SELECT ON *.*", of_schema], "foreign"),
            (mysql, &["GRANT REFERENCES ON *.*", "GRANT DELETE ON `my_shop`.*"], "triggers:"),
            (mariadb, &["GRANT REFERENCES ON *.*", "GRANT DELETE ON `my_shop`.*"], ""),
            (mysql, &["GRANT REFERENCES ON *.*", "GRANT TRIGGER ON `my_shop`.`t```"], ""),
            (mysql, &["GRANT REFERENCES ON *.*", "GRANT TRIGGER ON `my_shop`.`t`"], "triggers:"),
            (mysql, &["GRANT REFERENCES ON *.*", "GRANT TRIGGER ON `other`.*"], "triggers:"),
            // The closer name counts alone.
            (mysql, &["GRANT REFERENCES ON *.*", "GRANT TRIGGER ON `my%`.*"], ""),
            (
                mysql,
                &["GRANT REFERENCES ON *.*", "GRANT TRIGGER ON `my%`.*", "GRANT SELECT ON `my_shop`.*"],
                "triggers:",
            ),
            (mysql, &[all, "REVOKE TRIGGER, SELECT ON `my_shop`.*"], "triggers:"),
            (mysql, &[all, "REVOKE ALL PRIVILEGES ON `other`.*"], "triggers: foreign"),
            (mysql, &[all, "REVOKE INSERT ON `mysql`.*"], ""),
            (mysql, &["GRANT SELECT (`a ON *.*`), TRIGGER ON `x`.*", "GRANT `r`@`%`"], "triggers: foreign"),
        ] {
            assert_eq!(lacking(kind, grants), expected, "{grants:?}");
        }
    }
}
