//! How long a client is waited for, and what its threads get.

use rustix::process::setpriority_process;
use std::time::Duration;

/// A login may take so long altogether.
pub(crate) const LOGIN_MAX: Duration = Duration::from_secs(10);

/// A session that says nothing for so long is ended, unless it has chosen another `wait_timeout`: as servers do.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(28_800);

/// The longest `wait_timeout` that a session gets, as servers have it: a year.
pub(crate) const IDLE_LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// A client that does not take what one write gives it within this time is gone, unless its session has chosen another
/// `net_write_timeout`: as servers do.
pub(crate) const WRITE_MAX: Duration = Duration::from_secs(60);

/// The longest `net_write_timeout` that a session gets: a client that has gone without a word holds a thread and descriptors
/// for so long.
pub(crate) const WRITE_LONGEST: Duration = Duration::from_secs(3600);

/// How much less of a busy processor the thread of a reader gets, as a nice value: the thread that receives and acknowledges comes
/// first.
const READER_NICE: i32 = 10;

/// Lets the calling thread give way to the one that acknowledges, for the rest of its life. (On Linux a nice value is a thread's.)
pub(crate) fn give_way() {
    // Refused only to one that gives way still more, where the whole of binlogd was started so.
    let _ = setpriority_process(None, READER_NICE);
}

/// Stack of a connection's thread, in bytes: only what is touched takes memory.
pub(crate) const STACK_BYTES: usize = 512 << 10;
