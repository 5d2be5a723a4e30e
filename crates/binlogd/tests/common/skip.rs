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
    say(why);
}

/// As [`skip`], for what a network may not have: it is said and does not fail, not even in `.ci/run`.
pub fn skip_what_cannot_be_fetched(why: &str) {
    say(why);
}

/// Written past the harness, which keeps the output of tests that pass to itself.
fn say(why: &str) {
    let _ = writeln!(std::io::stderr(), "\n*** SKIPPED: {why} ***\n");
}
