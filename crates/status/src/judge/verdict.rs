//! The judgement of a source, or of the daemon, in values. `judge.rs` makes it, once, in the daemon; every surface shows it.

use crate::events::Level;
use serde::{Deserialize, Serialize};

/// What a problem is about, and so which line of a surface has its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// What the receiver does.
    State,
    /// Whether commits wait for this copy.
    SemiSync,
    /// The receivers further down that acknowledgements wait for.
    Receivers,
    /// The nodes of the quorum.
    Quorum,
    /// When an acknowledgement leaves: before or after the sync.
    Sync,
    /// How far the copy is behind.
    Behind,
    /// The look at the source.
    Look,
    /// What the source lacks or gave twice.
    Fork,
    /// What was never copied.
    Gap,
    /// Whether the copy is sound.
    Copy,
    /// The search indexes.
    Search,
    /// The identity at the source.
    ServerId,
    /// Which host of the list is the source.
    Hosts,
    /// The other binlogds of the source.
    Peers,
    /// The object store.
    Archive,
    /// A certificate.
    Certificate,
    /// The file system of the data folder.
    Disk,
    /// Readers and their slots.
    Readers,
    /// Something that this version does not know.
    #[default]
    #[serde(other)]
    Other,
}

/// One thing that is not as it should be, or good to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Worry {
    /// How much it concerns an operator.
    pub level: Level,
    /// Which of the reasons there are, such as `behind` or `archive_damaged`. More may be added.
    pub kind: String,
    /// What it is about, and so which line of a surface has its colour.
    pub about: Topic,
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
    /// The worst of the problems; of the daemon, the worst of its sources and of its own problems.
    pub level: Level,
    /// Whether what was acknowledged is safe and commits are waited for, in one sentence.
    pub headline: String,
    /// All of them, the worst first.
    pub problems: Vec<Worry>,
    /// What `binlogd health` and `/healthz` go by: the source is received, no commit waits for other replicas, and the archive was not put
    /// back; of the daemon, that holds for every source. Null from an older binlogd.
    pub healthy: Option<bool>,
    /// Commits wait for this copy, and what is acknowledged survives a crash of this machine; of the daemon, that holds for every source.
    pub protected: bool,
}

impl Verdict {
    /// Of these problems.
    pub(crate) fn of(headline: String, mut problems: Vec<Worry>) -> Verdict {
        // Those of one level stay in their order.
        problems.sort_by_key(|problem| std::cmp::Reverse(problem.level));
        let level = problems.first().map(|problem| problem.level).unwrap_or_default();
        Verdict { level, headline, problems, ..Verdict::default() }
    }

    /// One more, behind those of its level.
    pub(crate) fn add(&mut self, problem: Worry) {
        self.level = self.level.max(problem.level);
        self.problems.push(problem);
        self.problems.sort_by_key(|problem| std::cmp::Reverse(problem.level));
    }

    /// The worst of what concerns this.
    pub fn about(&self, topic: Topic) -> Level {
        let concerned = self.problems.iter().filter(|problem| problem.about == topic);
        concerned.map(|problem| problem.level).max().unwrap_or_default()
    }
}
