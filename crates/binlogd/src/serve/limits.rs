//! How long a client is waited for.

use std::time::Duration;

/// A login may take so long altogether.
pub(super) const LOGIN_MAX: Duration = Duration::from_secs(10);

/// A session that says nothing for so long is ended, unless it has chosen another `wait_timeout`: as servers do.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(28_800);

/// The longest `wait_timeout` that a session gets, as servers have it: a year.
pub(super) const IDLE_LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// A client that does not take what one write gives it within this time is gone, unless its session has chosen another
/// `net_write_timeout`: as servers do.
pub(super) const WRITE_MAX: Duration = Duration::from_secs(60);

/// The longest `net_write_timeout` that a session gets: a client that has gone without a word holds a thread and descriptors
/// for so long.
pub(super) const WRITE_LONGEST: Duration = Duration::from_secs(3600);
