//! What an account of readers may do.

/// The privileges of a `[[serve.user]]`, beyond what everybody who logs in may ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Privileges {
    /// Dumps, and SHOW of binary logs and of replication.
    pub read: bool,
    /// PURGE BINARY LOGS.
    pub purge: bool,
    /// START and STOP REPLICA, KILL of other users' connections, and the sight of these in SHOW PROCESSLIST.
    pub control: bool,
}

impl Privileges {
    /// What an account has by which a source itself is read.
    pub const READ: Privileges = Privileges { read: true, purge: false, control: false };
    /// Everything.
    pub const ALL: Privileges = Privileges { read: true, purge: true, control: true };
}
