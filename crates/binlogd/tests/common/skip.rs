//! Tests that cannot show what they are for where they run.

use std::io::Write as _;

/// When this is set in the environment, a skipped test fails.
const NO_SKIPS: &str = "BINLOGD_NO_SKIPS";

/// Says that a part of a test is left out, and why. The caller returns then.
///
/// # Panics
/// Where nothing may be skipped: `.ci/run` sets `BINLOGD_NO_SKIPS`.
#[track_caller]
pub fn skip(why: &str) {
    assert!(std::env::var_os(NO_SKIPS).is_none(), "{NO_SKIPS} is set, and this test would be skipped: {why}");
    // Written past the harness, which keeps the output of tests that pass to itself.
    let _ = writeln!(std::io::stderr(), "\n*** SKIPPED: {why} ***\n");
}
