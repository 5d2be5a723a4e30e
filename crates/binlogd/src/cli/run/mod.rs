//! `binlogd run`: receive until told to stop.

pub(in crate::cli) mod args;

use super::exit::{EXIT_OK, EXIT_PROBLEM, usage_error};
use crate::cli::run::args::RunArgs;
use ::daemon::Reload;
use std::process::ExitCode;

/// Runs the daemon in the foreground.
pub(super) fn execute(args: &RunArgs) -> ExitCode {
    let loaded = match args.load() {
        Ok(loaded) => loaded,
        Err(error) => return usage_error(&error),
    };
    for warning in &loaded.warnings {
        errln!("warning: {warning}");
    }
    let reload = Reload { read: &|| args.load(), file: args.config.as_deref() };
    match ::daemon::run(loaded.config, &reload) {
        Ok(()) => ExitCode::from(EXIT_OK),
        Err(error) => {
            errln!("error: {error:#}");
            ExitCode::from(EXIT_PROBLEM)
        }
    }
}
