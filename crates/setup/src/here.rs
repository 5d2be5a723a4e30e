//! What was found on this machine, and of the daemon.

use super::files::Files;

/// What is there on this machine.
#[derive(Debug, Clone)]
pub struct Here {
    /// Configuration and password.
    pub files: Files,
    /// Whether the account lets us in with the password of the file; `None` when one of them is not there.
    pub login: Option<Result<(), String>>,
    /// Whether binlogd receives from the source and has caught up; else why not.
    pub attached: Result<(), String>,
    /// The commands that start binlogd here, or make it take up its configuration.
    pub start: String,
}
