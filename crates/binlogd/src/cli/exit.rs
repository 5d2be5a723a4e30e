//! How a verb ends: what it prints last, and its exit code.

use std::io::{self, Write};
use std::process::ExitCode;

/// All is well.
pub(super) const EXIT_OK: u8 = 0;
/// A problem was found: damage, a warning of the doctor, a source that does not receive.
pub(super) const EXIT_PROBLEM: u8 = 1;
/// The command line or the configuration is wrong. clap uses the same number.
pub(super) const EXIT_USAGE: u8 = 2;

/// What was asked for is done, and a command that was to be run after that has failed.
pub(super) const EXIT_HOOK: u8 = 3;

/// Prints `error`, one line for each of its lines, and returns the exit code of a usage error.
pub(super) fn usage_error(error: &dyn std::fmt::Display) -> ExitCode {
    for line in error.to_string().lines() {
        errln!("error: {line}");
    }
    ExitCode::from(EXIT_USAGE)
}

/// Writes a result to standard output. A reader that has gone away, as in `binlogd config example | head`, is no error.
pub(super) fn print_result(text: &(impl AsRef<[u8]> + ?Sized)) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            errln!("error: cannot write to standard output: {error}");
            ExitCode::from(EXIT_PROBLEM)
        }
        _ => ExitCode::from(EXIT_OK),
    }
}
