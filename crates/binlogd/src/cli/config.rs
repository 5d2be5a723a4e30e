//! `binlogd config check FILE` and `binlogd config example`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::doctor::try_archive;
use super::exit::{EXIT_OK, print_result, usage_error};
use super::units;
use ::daemon::watch::descriptors::Descriptors;
use config::Config;
use config::example::example;

/// The arguments of `binlogd config`.
#[derive(Debug, Args)]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    verb: ConfigVerb,
}

#[derive(Debug, Subcommand)]
enum ConfigVerb {
    /// Read a configuration file as `run` would, and say everything that is wrong with it
    ///
    /// Exits with 0 when binlogd can run with it and with 2 when it cannot. Password and TLS files that it names are
    /// read too.
    Check {
        /// The configuration file
        file: PathBuf,
        /// Try out the archive of [archive] too, as `doctor --archive` does; exits with 1 when it cannot be used
        #[arg(long)]
        archive: bool,
    },
    /// Print a commented configuration that means exactly the defaults
    Example,
}

/// Runs `binlogd config`.
pub(super) fn execute(args: ConfigArgs) -> ExitCode {
    match args.verb {
        ConfigVerb::Example => print_result(&example()),
        ConfigVerb::Check { file, archive } => match Config::load(&file) {
            Ok(loaded) => {
                for warning in &loaded.warnings {
                    errln!("warning: {warning}");
                }
                let mut warnings = loaded.warnings.len();
                if let Err(too_few) = Descriptors::reachable().suffice_for(&loaded.config.sources) {
                    errln!("warning: with the limits that hold here, {too_few}");
                    warnings += 1;
                }
                let serve = &loaded.config.serve;
                let sources = &loaded.config.sources;
                let room = Descriptors::reachable().suffice_for_readers(sources, serve.max_connections);
                if let (Err(less), Some(_)) = (room, serve.listen) {
                    errln!("warning: with the limits that hold here, {less}");
                    warnings += 1;
                }
                let printed =
                    print_result(&format!("{}: {}\n", file.display(), summary(&loaded.config, warnings)));
                match &loaded.config.archive {
                    _ if !archive || printed != ExitCode::from(EXIT_OK) => printed,
                    Some(archive) => try_archive(archive, &loaded.config),
                    None => usage_error(&"there is no archive to try out: [archive] has no url"),
                }
            }
            Err(error) => usage_error(&error),
        },
    }
}

/// Of more sources the first are named.
const NAMED_MAX: usize = 8;

/// `ok, 2 sources (orders, users), data in /var/lib/binlogd, 1 warning`.
fn summary(config: &Config, warnings: usize) -> String {
    let count = config.sources.len();
    let mut names: Vec<&str> =
        config.sources.iter().map(|source| source.name.as_str()).take(NAMED_MAX).collect();
    if count > NAMED_MAX {
        names.push("…");
    }
    let warnings = match warnings {
        0 => String::new(),
        count => format!(", {}", units::counted(count as u64, "warning")),
    };
    format!(
        "ok, {} ({}), data in {}{warnings}",
        units::counted(count as u64, "source"),
        names.join(", "),
        config.data_dir.display()
    )
}
