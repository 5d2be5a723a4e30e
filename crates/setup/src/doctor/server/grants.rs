//! What SHOW GRANTS gives an account on the whole server.

use std::collections::BTreeSet;

/// Global privileges, in upper case. Both servers list those of active roles in SHOW GRANTS: MySQL merged into the
/// account's own, MariaDB on lines of their own.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Privileges {
    names: BTreeSet<String>,
    /// An account can hold a role that is not active when it logs in.
    pub roles: bool,
}

impl Privileges {
    /// Reads the lines of SHOW GRANTS.
    pub fn parse(lines: &[String]) -> Privileges {
        let mut privileges = Privileges::default();
        for line in lines {
            let Some(rest) = line.strip_prefix("GRANT ") else { continue };
            match rest.split_once(" ON ") {
                Some((names, object)) if object.starts_with("*.* TO ") => {
                    privileges.names.extend(names.split(',').map(|name| name.trim().to_ascii_uppercase()));
                }
                Some(_) => {} // On a database, a table, a routine, or PROXY.
                None => privileges.roles |= rest.contains(" TO "),
            }
        }
        privileges
    }

    /// Whether one of `names` is held, by itself or within ALL PRIVILEGES.
    pub fn has(&self, names: &[&str]) -> bool {
        ["ALL PRIVILEGES", "ALL"].iter().chain(names).any(|name| self.names.contains(*name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn privileges(lines: &[&str]) -> Privileges {
        Privileges::parse(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn global_privileges_count() {
        for lines in [
            &["GRANT REPLICATION SLAVE ON *.* TO `u`@`%`"][..],
            &["GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'u'@'%' WITH GRANT OPTION"],
            &["GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION"],
            &["GRANT REPLICATION SLAVE ON *.* TO `u`@`%` IDENTIFIED BY PASSWORD '*D8'"],
            &[
                "GRANT `r1` TO `u`@`%`",
                "GRANT USAGE ON *.* TO `u`@`%`",
                "GRANT REPLICATION SLAVE ON *.* TO `r1`",
            ],
        ] {
            assert!(privileges(lines).has(&["REPLICATION SLAVE"]), "{lines:?}");
        }
    }

    #[test]
    fn lesser_privileges_do_not() {
        for lines in [
            &["GRANT USAGE ON *.* TO `u`@`%`"][..],
            &["GRANT ALL PRIVILEGES ON `REPLICATION SLAVE`.* TO `u`@`%`"],
            &["GRANT PROXY ON ''@'' TO 'root'@'127.0.0.1' WITH GRANT OPTION"],
            &["GRANT `REPLICATION SLAVE`@`%` TO `u`@`%`"],
            &["REVOKE REPLICATION SLAVE ON *.* FROM `u`@`%`"],
            &["GRANT EXECUTE ON PROCEDURE `a`.`b` TO `u`@`%`", ""],
        ] {
            assert!(!privileges(lines).has(&["REPLICATION SLAVE"]), "{lines:?}");
        }
    }

    #[test]
    fn a_role_is_noticed() {
        assert!(privileges(&["GRANT USAGE ON *.* TO `u`@`%`", "GRANT `r1`@`%` TO `u`@`%`"]).roles);
        assert!(!privileges(&["GRANT USAGE ON *.* TO `u`@`%`"]).roles);
    }
}
