//! `binlogd doctor`: looks at each source before anything is started.

use super::exit::{EXIT_OK, EXIT_PROBLEM, print_result, usage_error};
use super::style;
use crate::cli::run::args::RunArgs;
use ::daemon::watch::descriptors::Descriptors;
use clap::builder::NonEmptyStringValueParser;
use clap::error::Error as ClapError;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use config::{ArchiveConfig, Config, SourceConfig};
use setup::doctor::look;
use setup::doctor::{Finding, Level};
use std::process::ExitCode;

/// The arguments of `binlogd doctor`: those of `run`, except that `--name` also chooses a source of `--config`.
#[derive(Debug)]
pub(super) struct DoctorArgs {
    run: RunArgs,
    name: Option<String>,
    /// Whether to look at the archive, and at nothing else.
    archive: bool,
}

impl Args for DoctorArgs {
    fn augment_args(command: Command) -> Command {
        let archive = Arg::new("archive")
            .long("archive")
            .action(ArgAction::SetTrue)
            .help("Try out the archive of [archive], and look at nothing else")
            .long_help(
                "Try out the archive of [archive], and look at nothing else: whether it can be reached, whether the credentials suffice, \
                 whether it refuses to overwrite, what it has of each source, and whether the keys of identity open that. One or two small objects are made below probe/ for that, and deleted again where \
                 that is allowed.",
            );
        RunArgs::augment_args(command).arg(archive).mut_arg("name", |_| {
            Arg::new("name")
                .long("name")
                .value_name("NAME")
                .value_parser(NonEmptyStringValueParser::new())
                .help("With --config: look at this source only. With --source: its name below data_dir [default: default]")
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for DoctorArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, ClapError> {
        let run = RunArgs::from_arg_matches(matches)?;
        // With --source the name is the source's own and chooses nothing.
        let name = run.config.as_ref().and_then(|_| matches.get_one::<String>("name").cloned());
        Ok(Self { run, name, archive: matches.get_flag("archive") })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), ClapError> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Runs `binlogd doctor`. Exit code 0 when no line is an error, 1 when one is, 2 when the command line or the
/// configuration is wrong.
pub(super) fn execute(args: &DoctorArgs) -> ExitCode {
    let loaded = match args.run.load() {
        Ok(loaded) => loaded,
        Err(error) => return usage_error(&error),
    };
    for warning in &loaded.warnings {
        errln!("warning: {warning}");
    }
    if args.archive {
        return match &loaded.config.archive {
            Some(archive) => try_archive(archive, &loaded.config),
            None => usage_error(&"there is no archive to try out: [archive] has no url"),
        };
    }
    let sources = match choose(&loaded.config, args.name.as_deref()) {
        Ok(sources) => sources,
        Err(error) => return usage_error(&error),
    };
    let colored = style::stdout_is_colored();
    let running = super::status::of_folder(&loaded.config.data_dir);
    let mut worst = Level::Ok;
    for source in sources {
        let nodes = look::hear_nodes(source);
        for host in &source.hosts {
            let findings = look::at_source(source, host, &loaded.config, running.as_ref(), &nodes);
            worst = findings.iter().map(|finding| finding.level).fold(worst, Level::max);
            let printed = print_result(&render(&source.name, host, &findings, colored));
            if printed != ExitCode::from(EXIT_OK) {
                return printed;
            }
        }
        let findings = look::at_nodes(source, &nodes, &loaded.config);
        for ((node, _), finding) in nodes.iter().zip(findings) {
            worst = worst.max(finding.level);
            let printed = print_result(&render(&source.name, &format!("node {node}"), &[finding], colored));
            if printed != ExitCode::from(EXIT_OK) {
                return printed;
            }
        }
        for peer in &source.peers {
            let findings = look::at_peer(source, peer, &loaded.config);
            worst = findings.iter().map(|finding| finding.level).fold(worst, Level::max);
            let host = format!("peer {peer}");
            let printed = print_result(&render(&source.name, &host, &findings, colored));
            if printed != ExitCode::from(EXIT_OK) {
                return printed;
            }
        }
    }
    let room = || {
        let serve = &loaded.config.serve;
        let suffice =
            Descriptors::reachable().suffice_for_readers(&loaded.config.sources, serve.max_connections);
        suffice.err().map(|less| less.to_string())
    };
    if let Some((listen, findings)) = look::at_port(&loaded.config, running.as_ref(), room) {
        worst = findings.iter().map(|finding| finding.level).fold(worst, Level::max);
        let printed = print_result(&render("readers", &listen, &findings, colored));
        if printed != ExitCode::from(EXIT_OK) {
            return printed;
        }
    }
    ExitCode::from(if worst == Level::Error { EXIT_PROBLEM } else { EXIT_OK })
}

/// Tries an archive out and prints what was found. Exit code 0 when no line is an error, else 1.
pub(super) fn try_archive(archive: &ArchiveConfig, config: &Config) -> ExitCode {
    let findings = look::at_archive(archive, config);
    let printed = print_result(&render("archive", &archive.location, &findings, style::stdout_is_colored()));
    let is_wrong = findings.iter().any(|finding| finding.level == Level::Error);
    if is_wrong && printed == ExitCode::from(EXIT_OK) { ExitCode::from(EXIT_PROBLEM) } else { printed }
}

fn choose<'a>(config: &'a Config, name: Option<&str>) -> Result<Vec<&'a SourceConfig>, String> {
    let all = || config.sources.iter();
    match name {
        None => Ok(all().collect()),
        Some(name) => match all().find(|source| source.name == name) {
            Some(source) => Ok(vec![source]),
            None => {
                let names: Vec<&str> = all().map(|source| source.name.as_str()).collect();
                Err(format!("there is no source {name:?}; there are: {}", names.join(", ")))
            }
        },
    }
}

/// One line a finding, its statements below it.
fn render(name: &str, host: &dyn std::fmt::Display, findings: &[Finding], colored: bool) -> String {
    let mut text = format!("{name}: {host}\n");
    for finding in findings {
        let color = match finding.level {
            Level::Ok => style::GREEN,
            Level::Warning => style::YELLOW,
            Level::Error => style::RED,
        };
        // Padded before it is coloured: the codes take no room on the screen.
        let word = style::paint(&format!("{:<8}", finding.level.word()), color, colored);
        let why = if finding.why.is_empty() { String::new() } else { format!(": {}", finding.why) };
        text.push_str(&format!("  {word} {}\n", style::clean(&format!("{}{why}", finding.what))));
        for line in finding.sql.iter().flat_map(|sql| sql.lines()) {
            text.push_str(&format!("             {}\n", style::clean(line)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::HostPort;

    fn parse(line: &str) -> Result<DoctorArgs, ClapError> {
        let command = DoctorArgs::augment_args(Command::new("doctor"));
        DoctorArgs::from_arg_matches(&command.try_get_matches_from(line.split(' '))?)
    }

    #[test]
    fn a_source_of_a_file_can_be_chosen() {
        DoctorArgs::augment_args(Command::new("doctor")).debug_assert();
        assert_eq!(parse("doctor --config b.toml --name orders").unwrap().name.as_deref(), Some("orders"));
        assert_eq!(parse("doctor --source mysql://u@h --name orders").unwrap().name, None);
        assert!(parse("doctor --config b.toml --archive").unwrap().archive);
        assert!(parse("doctor").is_err() && parse("doctor --config b.toml --source mysql://u@h").is_err());
    }

    #[test]
    fn statements_stand_below_their_line() {
        let mut finding = Finding::warning("binlog_format: MIXED\x1b[2J");
        finding.why = "less certain".to_owned();
        finding.sql = Some("SET PERSIST binlog_format = 'ROW';".to_owned());
        let host = HostPort { host: "db1".to_owned(), port: 3306 };
        let findings = [Finding::ok("log_bin: ON"), finding];
        assert_eq!(
            render("orders", &host, &findings, false),
            "orders: db1:3306\n  ok       log_bin: ON\n  warning  binlog_format: MIXED [2J: less certain\n             \
             SET PERSIST binlog_format = 'ROW';\n"
        );
        assert!(render("orders", &host, &findings, true).contains("\x1b[1;32mok      \x1b[0m log_bin"));
    }
}
