//! What the first start needs beyond every other: the privilege to ask for the newest file.

use super::facts::Facts;
use super::grants::Privileges;
use super::semi_sync::at_once;
use crate::doctor::finding::Finding;
use crate::doctor::wanted::Wanted;
use codec::ServerKind;

/// Source: MySQL manual, "SHOW BINARY LOG STATUS Statement" (SUPER, which is deprecated, does as well).
const MYSQL: [&str; 2] = ["REPLICATION CLIENT", "SUPER"];
/// Source: MariaDB manual, "SHOW BINLOG STATUS". Before 10.5.2 it had MySQL's name.
const MARIADB: [&str; 4] = ["BINLOG MONITOR", "REPLICATION CLIENT", "BINLOG ADMIN", "SUPER"];

pub(in crate::doctor) fn examine(facts: &Facts, wanted: &Wanted) -> Option<Finding> {
    // Privileges that are not known are told with those that every start needs.
    let lines = facts.grants.as_ref().ok().filter(|_| wanted.starts_at_latest)?;
    let (accepted, name) = match facts.kind {
        ServerKind::MariaDb if facts.is_from(10, 5, 2) => (&MARIADB[..], MARIADB[0]),
        ServerKind::MariaDb => (&MARIADB[..], MYSQL[0]),
        ServerKind::MySql => (&MYSQL[..], MYSQL[0]),
    };
    let account = facts.quoted_account();
    if Privileges::parse(lines).has(accepted) {
        return Some(Finding::ok(format!(
            "start = \"latest\": {account} may ask which file the source writes"
        )));
    }
    Some(
        Finding::error(format!("start = \"latest\": {name} of {account} is missing"))
            .because("the first start asks the source which file it writes, and the source tells nobody without it")
            .fixed_by(at_once(facts, format!("GRANT {name} ON *.* TO {account};"))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::test_facts::{mariadb, mysql, only_fault, wanted};
    use crate::doctor::{Level, examine};

    #[test]
    fn the_newest_file_is_asked_for_with_a_privilege_of_its_own() {
        let latest = Wanted { starts_at_latest: true, ..wanted() };
        for (facts, name) in [
            (mysql(), "REPLICATION CLIENT"),
            (mariadb(), "BINLOG MONITOR"),
            (Facts { version: "12.1.2-MariaDB".to_owned(), ..mariadb() }, "BINLOG MONITOR"),
            (Facts { version: "10.4.1-MariaDB".to_owned(), ..mariadb() }, "REPLICATION CLIENT"),
        ] {
            let fault = only_fault(&facts, &latest);
            assert_eq!(fault.level, Level::Error);
            assert_eq!(fault.sql, Some(format!("GRANT {name} ON *.* TO 'repl'@'%';")));
            let line = format!("GRANT REPLICATION SLAVE, {name} ON *.* TO `repl`@`%`");
            let granted = Facts { grants: Ok(vec![line]), ..facts };
            assert!(examine(&granted, &latest).iter().all(|finding| finding.level == Level::Ok));
        }
    }
}
