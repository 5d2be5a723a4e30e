//! The `binlogd` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    binlogd::cli::main()
}
