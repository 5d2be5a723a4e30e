//! The judgement of a source, or of the daemon, in values. `judge.rs` makes it.

use super::events::Level;
use serde::{Deserialize, Serialize};

/// One thing that is not as it should be, or good to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Worry {
    /// How much it concerns an operator.
    pub level: Level,
    /// What it is.
    pub text: String,
    /// What helps, in words; empty where the text says it.
    pub advice: String,
    /// A command to copy; empty for none.
    pub command: String,
}

/// The judgement of a source, or of the daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Verdict {
    /// The worst of the problems.
    pub level: Level,
    /// Whether what was acknowledged is safe and commits are waited for, in one sentence.
    pub headline: String,
    /// All of them, the worst first.
    pub problems: Vec<Worry>,
}

impl Verdict {
    /// Of these problems.
    pub(crate) fn of(headline: String, mut problems: Vec<Worry>) -> Verdict {
        // Those of one level stay in their order.
        problems.sort_by_key(|problem| std::cmp::Reverse(problem.level));
        let level = problems.first().map(|problem| problem.level).unwrap_or_default();
        Verdict { level, headline, problems }
    }
}
