//! What is known of what was measured on.

/// A fact about what was measured on, such as a server's variable that differs from its default.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fact {
    /// What it is about: `machine`, `disk`, `binlogd`, `server mysql-9.7`, `load`.
    pub about: String,
    /// Its name, such as `sync_binlog`.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl Fact {
    /// One.
    pub fn new(about: &str, name: &str, value: impl ToString) -> Fact {
        Fact { about: about.to_owned(), name: name.to_owned(), value: value.to_string() }
    }
}
