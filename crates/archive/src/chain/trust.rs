//! Whose signatures are believed.
//!
//! The first commit that a believed key has signed stands for all before it: it names the hash of the one before, and that one of the
//! one before it. Behind it every commit must be signed by a believed key. So a key that is not used any more need not be believed,
//! and what came before anybody signed is covered as well, as it was then.
//!
//! Where commits are gone, a snapshot stands for them. One counts only where a commit behind it names it: anybody could put a made up
//! snapshot beside a sound commit, and nobody can make that the next ones name it.

use super::commit::Commit;
use super::signed::Signed;
use crate::keys::signing::{SigningKey, VerifyingKey};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Whose signatures are believed; nobody's by default, and then none is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    keys: BTreeSet<VerifyingKey>,
    /// Whether an archive in which nobody has ever signed is refused.
    is_required: bool,
}

/// What a writer signs with, and whose commits it goes on behind.
#[derive(Debug, Clone, Default)]
pub struct Signing {
    /// Its key; `None` where nothing is signed.
    pub key: Option<Arc<SigningKey>>,
    /// Its own commits, and those of other writers.
    pub trust: Trust,
}

impl Signing {
    /// With a key of one's own, behind commits of it and of others.
    pub fn new(key: Option<SigningKey>, others: &[VerifyingKey]) -> Signing {
        let own = key.as_ref().map(SigningKey::public);
        Signing {
            key: key.map(Arc::new),
            trust: Trust::of_writers(own.into_iter().chain(others.iter().copied())),
        }
    }
}

impl Trust {
    /// Of those who may write here. An archive that nobody has signed yet may be signed from now on.
    pub fn of_writers(keys: impl IntoIterator<Item = VerifyingKey>) -> Trust {
        Trust { keys: keys.into_iter().collect(), is_required: false }
    }

    /// Of those who must have signed what is read.
    pub fn required(keys: impl IntoIterator<Item = VerifyingKey>) -> Trust {
        Trust { keys: keys.into_iter().collect(), is_required: true }
    }

    /// Whether nobody is believed, so nothing is asked for.
    pub fn is_nobody(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether a commit is signed by one of them. Its signature was compared when it was read.
    pub(crate) fn accepts(&self, commit: &Commit) -> bool {
        let by = commit.signed.as_ref().and_then(|signed| signed.by.parse().ok());
        by.is_some_and(|key| self.keys.contains(&key))
    }

    /// What is wrong with a commit behind one that was believed, number `since`; `None` for nothing.
    pub(super) fn objection(&self, commit: &Commit, since: Option<u64>) -> Option<String> {
        if self.is_nobody() || self.accepts(commit) {
            return None;
        }
        let whose = whose(commit.signed.as_ref());
        since.map(|since| {
            format!("{whose}, and from commit {since} on only your writers have signed: it is a foreign one")
        })
    }

    /// What is wrong with a chain whose last commit is this one, when none of it is believed; `None` for nothing.
    pub(super) fn objection_to_all(&self, last: Option<&Signed>) -> Option<String> {
        let is_begun = last.is_some();
        (!self.is_nobody() && (is_begun || self.is_required)).then(|| {
            format!(
                "{}, and no commit before it is signed by one of the keys that are believed here",
                whose(last)
            )
        })
    }
}

fn whose(signed: Option<&Signed>) -> String {
    signed.map_or_else(|| "it is not signed".to_owned(), |signed| format!("it is signed by {}", signed.by))
}
