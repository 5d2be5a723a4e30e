//! What `binlogd --version` says.

/// The version, the commit that it was built of, and for which machines. `/status` tells the version alone.
pub(super) const LONG: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("BINLOGD_BUILD"), ")");
