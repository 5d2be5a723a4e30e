//! What a cell is measured under: where the server's files lie, and how much of the data its buffer pool holds.

use crate::machine::file_system::Kind;
use anyhow::Context;
use std::fmt;
use std::str::FromStr;

/// Size of the published study's data in GB, about: what a share of a pool is counted in.
pub const DATA_GB: u32 = 90;

const USERS: &str = "its own file system";
const POOL: &str = ", buffer pool ";
const OWN_POOL: &str = ", its own buffer pool";

/// Where the files of a server lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Files {
    /// In a file system of the lab's.
    Lab(Kind),
    /// Where a user's server has them; which file system that is cannot be told from here.
    Users,
}

/// How large the buffer pool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pool {
    /// In 90ths of the data.
    Share(u32),
    /// As a user's server has it.
    Own,
}

impl Pool {
    /// In 90ths of the data; `None` where nobody looked.
    pub fn share(self) -> Option<u32> {
        match self {
            Pool::Share(share) => Some(share),
            Pool::Own => None,
        }
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pool::Share(share) => write!(f, "{share}/{DATA_GB}"),
            Pool::Own => f.write_str("its own"),
        }
    }
}

impl FromStr for Pool {
    type Err = anyhow::Error;

    /// As in the setting `pools`: a number, or `own`.
    fn from_str(text: &str) -> anyhow::Result<Pool> {
        if text == "own" {
            return Ok(Pool::Own);
        }
        let share = text.parse().ok().filter(|share| (1..=DATA_GB).contains(share)).map(Pool::Share);
        share.with_context(|| {
            format!("{text:?} is no share of the data in {DATA_GB}ths, from 1 to {DATA_GB}, nor `own`")
        })
    }
}

/// A condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Condition {
    /// Where the files are.
    pub files: Files,
    /// The buffer pool.
    pub pool: Pool,
}

impl FromStr for Condition {
    type Err = anyhow::Error;

    /// As it is printed: `ext4, buffer pool 60/90`, `its own file system, buffer pool 60/90`.
    fn from_str(text: &str) -> anyhow::Result<Condition> {
        let (files, pool) = match text.strip_suffix(OWN_POOL) {
            Some(files) => (files, Pool::Own),
            None => {
                let parts =
                    text.split_once(POOL).and_then(|(files, pool)| Some((files, pool.split_once('/')?.0)));
                let (files, pool) =
                    parts.with_context(|| format!("sync-binlog has no condition {text:?}"))?;
                (files, pool.parse()?)
            }
        };
        Ok(Condition { files: files.parse()?, pool })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pool {
            Pool::Share(_) => write!(f, "{}{POOL}{}", self.files, self.pool),
            Pool::Own => write!(f, "{}{OWN_POOL}", self.files),
        }
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
            for pool in [Pool::Share(60), Pool::Own] {
                let condition = Condition { files, pool };
                assert_eq!(condition.to_string().parse::<Condition>().unwrap(), condition);
            }
        }
        let printed = |pool: &str| Condition { files: Files::Users, pool: pool.parse().unwrap() }.to_string();
        assert_eq!(printed("70"), "its own file system, buffer pool 70/90");
        assert_eq!(printed("own"), "its own file system, its own buffer pool");
        let error = |text: &str| text.parse::<Condition>().unwrap_err().to_string();
        assert!(error("ext4").contains("\"ext4\""), "{}", error("ext4"));
        assert!(error("zfs, buffer pool 60/90").contains("\"zfs\""));
        assert!(error("ext4, buffer pool 91/90").contains("\"91\""));
    }
}
