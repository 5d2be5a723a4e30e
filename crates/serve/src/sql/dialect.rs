//! How statements are to be read: the server whose words are spoken, and the session's own settings.

use codec::ServerKind;
use codec::packet::release;

/// What decides how a text is cut into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Whose comments and names are understood.
    pub kind: ServerKind,
    /// The server's version as in executed comments: 80031 for 8.0.31, 110806 for 11.8.6.
    pub version: u32,
    /// `ANSI_QUOTES` in the session's `sql_mode`: a text in double quotes is a name.
    pub ansi_quotes: bool,
    /// `NO_BACKSLASH_ESCAPES` in the session's `sql_mode`: a backslash in a string is itself.
    pub no_backslash_escapes: bool,
}

impl Dialect {
    /// A server's dialect before its session has set anything. `version` is the server's own text, as in its greeting.
    pub fn new(kind: ServerKind, version: &str) -> Dialect {
        Dialect { kind, version: version_number(version), ansi_quotes: false, no_backslash_escapes: false }
    }

    /// Whether a comment such as `/*!80000 … */` is to be executed.
    ///
    /// MariaDB passes over the numbers of MySQL 5.7 to 9.9, in whose comments stand words that MariaDB does not have
    /// (MariaDB Knowledge Base, "Comment Syntax").
    pub(super) fn executes(&self, version: u32) -> bool {
        let is_of_mysql = (50_700..=99_999).contains(&version);
        version <= self.version && !(self.kind == ServerKind::MariaDb && is_of_mysql)
    }
}

/// `8.0.31-debug` is 80031. A text that is no version counts as 0, and a part as at most 99, because the number has no
/// place for more.
pub fn version_number(version: &str) -> u32 {
    let (major, minor, patch) = release(version).unwrap_or((0, 0, 0));
    major.min(99) * 10_000 + minor.min(99) * 100 + patch.min(99)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        assert_eq!(version_number("8.0.31"), 80_031);
        assert_eq!(version_number("11.8.6-MariaDB-log"), 110_806);
        assert_eq!(version_number("9.7"), 90_700);
        assert_eq!(version_number("what"), 0);
        assert_eq!(version_number("400.1.2"), 990_102);
    }

    #[test]
    fn each_server_executes_its_own_comments() {
        let mysql = Dialect::new(ServerKind::MySql, "8.0.31");
        assert!(mysql.executes(50_701) && mysql.executes(80_031) && !mysql.executes(80_032));
        let mariadb = Dialect::new(ServerKind::MariaDb, "11.8.6");
        assert!(mariadb.executes(50_600) && mariadb.executes(100_100));
        assert!(!mariadb.executes(50_701) && !mariadb.executes(80_000));
    }
}
