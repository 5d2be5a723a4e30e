//! One line of the doctor.

use crate::doctor::server::facts::Facts;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Ok,
    /// binlogd works, but something is less safe than it could be.
    Warning,
    /// binlogd will not work, or not for long.
    Error,
}

impl Level {
    /// The word at the front of a line.
    pub fn word(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// One line of the doctor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// What was looked at and what was found.
    pub what: String,
    /// Why it matters and what helps; empty when there is nothing to say.
    pub why: String,
    /// Statements for the source that fix the problem.
    pub sql: Option<String>,
    /// The global variable and its value that fix the problem, where one alone does; `sql` says the same.
    pub setting: Option<(String, String)>,
}

impl Finding {
    fn new(level: Level, what: impl Into<String>) -> Finding {
        Finding { level, what: what.into(), why: String::new(), sql: None, setting: None }
    }

    /// All is well.
    pub fn ok(what: impl Into<String>) -> Finding {
        Finding::new(Level::Ok, what)
    }

    /// Something could be better.
    pub fn warning(what: impl Into<String>) -> Finding {
        Finding::new(Level::Warning, what)
    }

    /// Something prevents the copy.
    pub fn error(what: impl Into<String>) -> Finding {
        Finding::new(Level::Error, what)
    }

    /// Why it matters and what helps.
    pub(super) fn because(mut self, why: impl Into<String>) -> Finding {
        self.why = why.into();
        self
    }

    /// The statements that fix it.
    pub(super) fn fixed_by(mut self, sql: impl Into<String>) -> Finding {
        self.sql = Some(sql.into());
        self
    }

    /// The variable that fixes it, so set that it lasts where the server can do that.
    pub(super) fn fixed_by_setting(mut self, facts: &Facts, name: &str, value: &str) -> Finding {
        self.setting = Some((name.to_owned(), value.to_owned()));
        self.fixed_by(facts.set(name, value))
    }
}
