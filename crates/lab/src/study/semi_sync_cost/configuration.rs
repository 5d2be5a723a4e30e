//! What is compared, and what is the same for all.

/// The one that is measured unless another is asked for.
pub(super) const SERVER: &str = "mysql-9.7";
/// MySQL's default of `sync_relay_log`.
pub(super) const SYNC_RELAY_LOG: u32 = 10_000;

/// The baseline.
pub(super) const ASYNCHRONOUS: &str = "two asynchronous replicas";
/// One of the replicas is semi-synchronous: a commit waits before the engine commits.
pub(super) const AFTER_SYNC: &str = "semi-sync (AFTER_SYNC) and asynchronous replica";
/// The same after the engine has committed.
pub(super) const AFTER_COMMIT: &str = "semi-sync (AFTER_COMMIT) and asynchronous replica";
/// binlogd in the place of the semi-synchronous replica.
pub(super) const BINLOGD: &str = "binlogd (AFTER_SYNC, fsync_mode 1) and asynchronous replica";

/// In the order of measuring and of the legends.
pub(super) const CONFIGURATIONS: [&str; 4] = [ASYNCHRONOUS, AFTER_SYNC, AFTER_COMMIT, BINLOGD];
