//! `binlogd import virtual_slave.cnf > binlogd.toml`.

pub(in crate::cli) mod cnf;
pub(in crate::cli) mod virtual_slave;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::exit::{print_result, usage_error};
use crate::cli::import::virtual_slave::{Translation, translate};
use config::password::read_bounded;

/// Largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The arguments of `binlogd import`.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// The configuration file of virtual_slave
    ///
    /// The translation goes to standard output. Each key that has no counterpart stands in it as a comment that says why,
    /// and is named on standard error.
    file: PathBuf,
}

/// Runs `binlogd import`.
pub(super) fn execute(args: &ImportArgs) -> ExitCode {
    match read_and_translate(&args.file) {
        Ok(translation) => {
            for warning in &translation.warnings {
                errln!("warning: {}: {warning}", args.file.display());
            }
            print_result(&translation.toml)
        }
        Err(error) => usage_error(&format!("{}: {error}", args.file.display())),
    }
}

fn read_and_translate(path: &Path) -> Result<Translation, String> {
    translate(&read_bounded(path, FILE_BYTES_MAX)?)
}
