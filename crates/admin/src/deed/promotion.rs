//! A promotion that a tool asks for.

use serde::{Deserialize, Deserializer};
use wire::Secret;

/// What is asked for, as the body says it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromoteAsked {
    /// One of the `hosts` of the source, as it stands there.
    pub to: String,
    /// The account by which that is changed; `None` for the source's own.
    pub user: Option<String>,
    /// Its password.
    #[serde(default, deserialize_with = "secret")]
    pub password: Secret,
    /// The source; needed when several have a quorum.
    pub source: Option<String>,
    /// Say what would be done, and do nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// Settings of the server that stay as they are.
    #[serde(default)]
    pub accept: Vec<String>,
    /// The present source must be of this epoch.
    pub epoch: Option<u64>,
    /// Point the other hosts that are replicas to the server.
    #[serde(default)]
    pub repoint: bool,
    /// So long the server is waited for to have what the nodes hold, in seconds.
    #[serde(default = "wait")]
    pub wait: u64,
}

/// Why there is no promotion.
#[derive(Debug)]
pub enum NotPromoted {
    /// The body asks for what cannot be asked for here.
    Asked(String),
    /// It was refused, or did not come to its end.
    Refused(String),
}

fn secret<'de, D: Deserializer<'de>>(from: D) -> Result<Secret, D::Error> {
    String::deserialize(from).map(Secret::new)
}

fn wait() -> u64 {
    10
}
