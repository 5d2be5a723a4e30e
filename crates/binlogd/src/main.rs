//! The `binlogd` command.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    binlogd::cli::main()
}
