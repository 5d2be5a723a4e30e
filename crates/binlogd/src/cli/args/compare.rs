//! How much of what a server has already is compared, on the command line of rescue and restore.

use repair::rescue::Scope;

/// How much of what the target has already is compared with the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum Compare {
    /// The newest 1,000 of each server, and what forks took with 1,000 around.
    Sample,
    /// Everything that both have.
    All,
    /// Nothing: go by GTIDs alone, also for what is handed over.
    None,
}

impl Compare {
    pub(in crate::cli) fn scope(self) -> Option<Scope> {
        match self {
            Compare::Sample => Some(Scope::Sample),
            Compare::All => Some(Scope::All),
            Compare::None => None,
        }
    }
}
