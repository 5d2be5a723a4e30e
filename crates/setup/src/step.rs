//! One step of a plan.

use std::path::PathBuf;
use wire::Secret;

/// Stands for the password in a statement that is shown.
pub const PASSWORD_HERE: &str = "'<password>'";

/// One step: what is to be done, why, and whether it is done already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What is done, or what is there already.
    pub what: String,
    /// Why; empty when that is plain, or nothing is to be done.
    pub why: String,
    /// Who does it, and when.
    pub state: State,
    /// How.
    pub act: Act,
}

/// Who does a step, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Nobody: what it makes is there.
    There,
    /// setup, now.
    ToDo,
    /// The operator.
    Yours,
    /// setup, later: what it waits for.
    Waits(String),
}

/// How a step is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// By nothing more than is said.
    Nothing,
    /// By statements on the source.
    Sql(Vec<Statement>),
    /// By making up a password and writing it into this file.
    MakePassword(PathBuf),
    /// By logging in with the account and the password of the file.
    LogIn,
    /// By making this folder, which only binlogd may enter.
    MakeFolder(PathBuf),
    /// By writing a file that does not exist; what stands in its place is put aside under the second name.
    Write {
        /// The file.
        path: PathBuf,
        /// What goes into it.
        text: String,
        /// The name that an example in its place gets.
        aside: Option<PathBuf>,
    },
    /// By these commands or lines, which the operator uses.
    Text(String),
    /// By switching semi-sync on, and off again if binlogd is gone at that moment.
    SwitchOn {
        /// Switches it on.
        on: Statement,
        /// Switches it off.
        off: Statement,
    },
}

/// A statement for the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// As it is shown, without the semicolon: with [`PASSWORD_HERE`] where the password stands.
    text: String,
    /// The statement that takes it back.
    pub undo: Option<String>,
}

impl Statement {
    /// A statement that needs no undoing.
    pub(crate) fn new(text: impl Into<String>) -> Statement {
        Statement { text: text.into(), undo: None }
    }

    /// What takes it back.
    pub(crate) fn undone_by(mut self, undo: impl Into<String>) -> Statement {
        self.undo = Some(undo.into());
        self
    }

    /// As a person reads it, without any password.
    pub fn shown(&self) -> String {
        format!("{};", self.text)
    }

    /// As the server gets it. Only for a session with the sql_mode that `quote` is made for.
    pub fn sql(&self, password: &Secret) -> String {
        self.text.replacen(PASSWORD_HERE, &quote(password.expose()), 1)
    }
}

/// A text in quotes, for a session whose sql_mode has no NO_BACKSLASH_ESCAPES.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

impl Step {
    /// A step of setup's own.
    pub(crate) fn to_do(what: impl Into<String>, why: impl Into<String>, act: Act) -> Step {
        Step { what: what.into(), why: why.into(), state: State::ToDo, act }
    }

    /// Something that is there already.
    pub(crate) fn there(what: impl Into<String>) -> Step {
        Step { what: what.into(), why: String::new(), state: State::There, act: Act::Nothing }
    }

    /// How to take the step back when all of it is done, one line each.
    pub fn undo(&self) -> Vec<String> {
        match &self.act {
            Act::Sql(statements) => statements.iter().rev().filter_map(|one| one.undo.clone()).collect(),
            Act::MakePassword(path) => vec![format!("rm {}", path.display())],
            Act::Write { path, aside: None, .. } => vec![format!("rm {}", path.display())],
            Act::Write { path, aside: Some(aside), .. } => {
                vec![format!("mv {} {}", aside.display(), path.display())]
            }
            Act::MakeFolder(path) => vec![format!("rmdir {}", path.display())],
            Act::SwitchOn { off, .. } => vec![off.shown()],
            Act::Nothing | Act::LogIn | Act::Text(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_sent_and_not_shown() {
        let statement = Statement::new(format!("CREATE USER 'a'@'b' IDENTIFIED BY {PASSWORD_HERE}"));
        assert_eq!(
            statement.sql(&Secret::new(r"it's a \ '<password>'")),
            r"CREATE USER 'a'@'b' IDENTIFIED BY 'it''s a \\ ''<password>'''"
        );
        assert_eq!(statement.shown(), "CREATE USER 'a'@'b' IDENTIFIED BY '<password>';");
    }
}
