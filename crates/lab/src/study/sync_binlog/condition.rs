//! What a cell is measured under: where the server's files lie, and how much of the data its buffer pool holds.

use crate::file_system::Kind;
use crate::reference::sync_binlog::DATA_GB;
use std::fmt;
use std::str::FromStr;

const USERS: &str = "its own file system";
const POOL: &str = ", buffer pool ";

/// Where the files of a server lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Files {
    /// In a file system of the lab's.
    Lab(Kind),
    /// Where a user's server has them; which file system that is cannot be told from here.
    Users,
}

/// A condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Condition {
    /// Where the files are.
    pub files: Files,
    /// The buffer pool, in 90ths of the data.
    pub pool: u32,
}

impl Condition {
    /// As it is printed: `ext4, buffer pool 60/90`, `its own file system, buffer pool 60/90`. `None` when it is none.
    pub(super) fn parse(text: &str) -> Option<Condition> {
        let (files, pool) = text.split_once(POOL)?;
        Some(Condition { files: files.parse().ok()?, pool: pool.split_once('/')?.0.parse().ok()? })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{POOL}{}/{DATA_GB}", self.files, self.pool)
    }
}

impl fmt::Display for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Files::Lab(kind) => kind.fmt(f),
            Files::Users => f.write_str(USERS),
        }
    }
}

impl FromStr for Files {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Files> {
        if text == USERS { Ok(Files::Users) } else { text.parse().map(Files::Lab) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_read_back() {
        for files in [Files::Lab(Kind::Xfs), Files::Lab(Kind::Here), Files::Users] {
            let condition = Condition { files, pool: 60 };
            assert_eq!(Condition::parse(&condition.to_string()), Some(condition));
        }
        assert_eq!(
            Condition { files: Files::Users, pool: 70 }.to_string(),
            "its own file system, buffer pool 70/90"
        );
        assert_eq!(Condition::parse("ext4"), None);
        assert_eq!(Condition::parse("zfs, buffer pool 60/90"), None);
    }
}
