//! What the receiver of a source is doing, as the status names it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What the receiver of a source is doing, in a word or two: the `state` of the JSON, of metrics and of `/healthz`.
/// [`SourceState`](crate::SourceState) is the same with its facts.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum StateName {
    /// `starting`.
    #[default]
    Starting,
    /// `recovering`.
    Recovering,
    /// `connecting`.
    Connecting,
    /// `receiving`: the only healthy one.
    Receiving,
    /// `withholding acknowledgements`.
    Withholding,
    /// `waiting for replicas`.
    WaitingForReplicas,
    /// `backing off`.
    BackingOff,
    /// `beginning from the archive`.
    BeginningFromArchive,
    /// `waiting for the archive`.
    WaitingForArchive,
    /// `stuck`.
    Stuck,
    /// `waiting for disk space`.
    WaitingForSpace,
    /// `disk does not answer`.
    DiskHangs,
    /// `stopped`.
    Stopped,
    /// `not running`: the status was read from the files, and no daemon answered.
    NotRunning,
    /// What a binlogd of another version calls it.
    Other(
        /// Its word.
        String,
    ),
}

impl StateName {
    /// Those of a daemon that runs.
    pub const ALL: [StateName; 13] = [
        StateName::Starting,
        StateName::Recovering,
        StateName::Connecting,
        StateName::Receiving,
        StateName::Withholding,
        StateName::WaitingForReplicas,
        StateName::BackingOff,
        StateName::BeginningFromArchive,
        StateName::WaitingForArchive,
        StateName::Stuck,
        StateName::WaitingForSpace,
        StateName::DiskHangs,
        StateName::Stopped,
    ];

    /// In words.
    pub fn word(&self) -> &str {
        match self {
            StateName::Starting => "starting",
            StateName::Recovering => "recovering",
            StateName::Connecting => "connecting",
            StateName::Receiving => "receiving",
            StateName::Withholding => "withholding acknowledgements",
            StateName::WaitingForReplicas => "waiting for replicas",
            StateName::BackingOff => "backing off",
            StateName::BeginningFromArchive => "beginning from the archive",
            StateName::WaitingForArchive => "waiting for the archive",
            StateName::Stuck => "stuck",
            StateName::WaitingForSpace => "waiting for disk space",
            StateName::DiskHangs => "disk does not answer",
            StateName::Stopped => "stopped",
            StateName::NotRunning => "not running",
            StateName::Other(word) => word,
        }
    }
}

impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl From<String> for StateName {
    fn from(word: String) -> StateName {
        let known =
            StateName::ALL.into_iter().chain([StateName::NotRunning]).find(|name| name.word() == word);
        known.unwrap_or(StateName::Other(word))
    }
}

impl From<StateName> for String {
    fn from(name: StateName) -> String {
        name.word().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_understood_and_one_of_another_version_stays() {
        for name in StateName::ALL.into_iter().chain([StateName::NotRunning]) {
            assert_eq!(StateName::from(String::from(name.clone())), name);
        }
        let newer = StateName::from("dreaming".to_owned());
        assert_eq!((newer.word(), format!("{newer:10}|").as_str()), ("dreaming", "dreaming  |"));
    }
}
