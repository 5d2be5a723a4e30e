//! A log of another release than the server's that applies it.

use codec::ServerKind;
use codec::packet::release;
use std::collections::BTreeSet;

/// What a person should know, by the versions of the servers whose log it is and that of the target.
pub(super) fn other_release(versions: &BTreeSet<String>, kind: ServerKind, target: &str) -> Option<String> {
    let of = |version: &str| release(version).map(|(major, minor, _)| (major, minor));
    let own = of(target)?;
    if let Some(newer) = versions.iter().find(|version| of(version).is_some_and(|log| log > own)) {
        return Some(format!(
            "the log is of {newer}, a newer release than the target's {target}: no server promises to apply it as the source did. What the \
             target does not know it refuses or, as a default collation, passes over: restore on the source's release"
        ));
    }
    let old = versions.iter().find(|version| of(version).is_some_and(|log| log < (8, 0)))?;
    (kind == ServerKind::MySql && own >= (8, 0)).then(|| {
        format!(
            "the log is of {old}, which does not write explicit_defaults_for_timestamp: set it on the target as it was on the source \
             (OFF where nothing was said), or CREATE TABLE makes other TIMESTAMP columns"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_log_is_told_and_the_same_release_is_not() {
        let of = |kind, log: &str, target| other_release(&[log.to_owned()].into(), kind, target);
        let mysql = |log, target| of(ServerKind::MySql, log, target);
        assert!(
            mysql("9.7.0", "8.0.31").unwrap().contains("of 9.7.0, a newer release than the target's 8.0.31")
        );
        assert_eq!(mysql("8.0.31", "8.0.15"), None);
        assert_eq!(mysql("8.0.31", "9.7.0"), None);
        assert!(mysql("5.7.22-log", "8.0.31").unwrap().contains("explicit_defaults_for_timestamp"));
        let mariadb = |log, target| of(ServerKind::MariaDb, log, target);
        assert!(mariadb("11.8.2-MariaDB-log", "10.11.9-MariaDB").unwrap().contains("a newer release"));
        assert_eq!(mariadb("10.11.9-MariaDB-log", "11.8.2-MariaDB"), None);
    }
}
