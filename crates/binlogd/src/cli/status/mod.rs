//! `binlogd status`: what the daemon says of itself, or what the files say when no daemon answers.

mod groups;
pub(super) mod head;
pub(super) mod page;
pub(super) mod rank;
pub(super) mod readers;
mod summary;
pub(super) mod table;
pub(super) mod target;
mod watch;

use super::exit::{EXIT_PROBLEM, print_result};
use super::style;
use anyhow::{anyhow, bail};
use jiff::Timestamp;
use status::DaemonStatus;
use std::path::Path;
use std::process::ExitCode;
use target::{Target, TargetArgs};

pub(super) use target::of_folder;

/// The arguments of `binlogd status`.
#[derive(Debug, Default, clap::Args)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Print JSON with stable keys
    #[arg(long)]
    json: bool,
    /// Show this source only
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Show everything about each source, however many there are; without it, more than four are summed up
    #[arg(long, conflicts_with = "source")]
    all: bool,
    /// Show it again every so many seconds until interrupted; with --json one line each time
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    watch: Option<u64>,
}

/// Prints the status. The exit code is 0 when a daemon runs and every source shown receives, and 1 otherwise.
///
/// `offline` reads a data folder when no daemon answers for it.
///
/// # Errors
/// When there is no status to show: nothing answers and no data folder is known, its files cannot be read, the
/// configuration cannot be read, there is no such source. The caller exits with [`EXIT_USAGE`](super::exit::EXIT_USAGE).
pub(super) fn run(
    args: StatusArgs,
    offline: impl Fn(&Path) -> anyhow::Result<DaemonStatus>,
) -> anyhow::Result<ExitCode> {
    if let Some(seconds) = args.watch {
        let look = |now| {
            let report = gather(&args, &offline)?;
            Ok(if args.json {
                serde_json::to_string(&report.status)? + "\n"
            } else {
                report.text(args.all, style::stdout_is_colored(), now)
            })
        };
        return Ok(watch::run(seconds, args.json, look));
    }
    let report = gather(&args, offline)?;
    let text = if args.json {
        serde_json::to_string_pretty(&report.status)? + "\n"
    } else {
        report.text(args.all, style::stdout_is_colored(), Timestamp::now())
    };
    let printed = print_result(&text);
    Ok(if report.status.is_healthy() { printed } else { ExitCode::from(EXIT_PROBLEM) })
}

/// A status, and why it is not from a daemon if it is not.
#[derive(Debug)]
struct Report {
    status: DaemonStatus,
    unanswered: Option<String>,
}

impl Report {
    /// For a person. Everything about each source where it is wanted (`all`) or there are few.
    fn text(&self, all: bool, colored: bool, now: Timestamp) -> String {
        let in_full = all || self.status.sources.len() <= summary::SHOWN_IN_FULL_MAX;
        let render = if in_full { table::render } else { summary::render };
        let readers = self.status.serve.as_ref().map(|serve| readers::render(serve, colored, now));
        render(&self.status, self.unanswered.as_deref(), colored, now) + &readers.unwrap_or_default()
    }
}

fn gather(
    args: &StatusArgs,
    offline: impl FnOnce(&Path) -> anyhow::Result<DaemonStatus>,
) -> anyhow::Result<Report> {
    let target = Target::of(&args.target)?;
    let mut report = match (target.ask(), target.data_dir) {
        (Ok(status), _) => Report { status, unanswered: None },
        (Err(why), Some(data_dir)) => {
            let status = offline(&data_dir).map_err(|error| {
                anyhow!("{why}, and the files in {} cannot be read: {error:#}", data_dir.display())
            })?;
            Report { status, unanswered: Some(why) }
        }
        (Err(why), None) => bail!(
            "{why}. Name another address with --admin, or the data folder with --data-dir or --config to read its files"
        ),
    };
    if let Some(name) = &args.source {
        keep_only(&mut report.status, name)?;
    }
    Ok(report)
}

fn keep_only(status: &mut DaemonStatus, name: &str) -> anyhow::Result<()> {
    let names = status.sources.iter().map(|source| source.name.clone()).collect::<Vec<_>>().join(", ");
    status.sources.retain(|source| source.name == name);
    if let Some(serve) = &mut status.serve {
        serve.readers.retain(|reader| reader.source == name);
        serve.slots.retain(|slot| slot.source == name);
    }
    if status.sources.is_empty() {
        bail!("there is no source {name:?}; there are: {names}");
    }
    Ok(())
}

/// What is printed of a status, in colours.
#[cfg(test)]
pub(super) fn shown(status: DaemonStatus, all: bool) -> String {
    Report { status, unanswered: None }.text(all, true, Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use admin::{AddressFile, AdminServer};
    use status::{DaemonMonitor, SourceMonitor, SourceState, SourceStatus, StateName};
    use std::sync::Arc;

    fn from_files(data_dir: &Path) -> anyhow::Result<DaemonStatus> {
        Ok(DaemonStatus {
            binlogd_version: "0".to_owned(),
            pid: None,
            uptime_seconds: None,
            data_dir: data_dir.display().to_string(),
            disk: None,
            running: false,
            sources: vec![SourceStatus { state: StateName::NotRunning, ..SourceStatus::default() }],
            ..DaemonStatus::default()
        })
    }

    fn with(target: TargetArgs) -> StatusArgs {
        StatusArgs { target, ..StatusArgs::default() }
    }

    fn no_files(_: &Path) -> anyhow::Result<DaemonStatus> {
        panic!("the files are not to be read")
    }

    fn daemon(data_dir: &Path) -> (AdminServer, Arc<SourceMonitor>) {
        let monitor = Arc::new(DaemonMonitor::new(data_dir));
        let source = Arc::new(SourceMonitor::new("orders"));
        monitor.add(source.clone());
        monitor.add(Arc::new(SourceMonitor::new("stock")));
        (AdminServer::start("127.0.0.1:0".parse().unwrap(), monitor).unwrap(), source)
    }

    /// An address where nothing listens.
    fn closed_address() -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    }

    #[test]
    fn a_daemon_is_found_by_its_address() {
        let folder = tempfile::tempdir().unwrap();
        let (server, _) = daemon(folder.path());
        let args = with(TargetArgs { admin: Some(server.local_addr().to_string()), ..TargetArgs::default() });
        let report = gather(&args, no_files).unwrap();
        assert!(report.status.running && report.unanswered.is_none());
        assert_eq!(report.status.sources.len(), 2);
    }

    #[test]
    fn a_daemon_is_found_by_the_address_file_of_its_data_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (server, _) = daemon(folder.path());
        let _file = AddressFile::publish(folder.path(), server.local_addr(), None).unwrap();
        let args = with(TargetArgs { data_dir: Some(folder.path().join(".")), ..TargetArgs::default() });
        assert!(gather(&args, no_files).unwrap().status.running);
        let config = folder.path().join("binlogd.toml");
        std::fs::write(&config, "data_dir = '.'\n[admin]\nlisten = '127.0.0.1:1'\n").unwrap();
        let args = with(TargetArgs { config: Some(config), ..TargetArgs::default() });
        assert!(gather(&args, no_files).unwrap().status.running);
    }

    #[test]
    fn the_daemon_of_another_data_folder_is_no_answer() {
        let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (server, _) = daemon(theirs.path());
        // What a crashed daemon left behind, with its port taken over by another.
        let _file = AddressFile::publish(ours.path(), server.local_addr(), None).unwrap();
        let args = with(TargetArgs { data_dir: Some(ours.path().to_owned()), ..TargetArgs::default() });
        let report = gather(&args, from_files).unwrap();
        assert!(!report.status.running);
        assert!(report.unanswered.unwrap().contains("is that of another data folder"));
    }

    #[test]
    fn without_an_answer_the_files_are_read_or_the_way_out_is_told() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(admin::ADDRESS_FILE), closed_address()).unwrap();
        let args = with(TargetArgs { data_dir: Some(folder.path().to_owned()), ..TargetArgs::default() });
        let report = gather(&args, from_files).unwrap();
        assert!(report.unanswered.unwrap().starts_with("no daemon answers at 127.0.0.1:"));
        let error = gather(&args, |_| bail!("no such folder")).unwrap_err().to_string();
        assert!(error.contains("no daemon answers") && error.ends_with("no such folder"), "{error}");
        let args = with(TargetArgs { admin: Some(closed_address()), ..TargetArgs::default() });
        let error = gather(&args, no_files).unwrap_err().to_string();
        assert!(error.contains("no daemon answers") && error.contains("--data-dir"), "{error}");
    }

    #[test]
    fn one_source_can_be_chosen_and_decides_health() {
        let folder = tempfile::tempdir().unwrap();
        let (server, orders) = daemon(folder.path());
        orders.set_state(SourceState::Receiving);
        let mut args =
            with(TargetArgs { admin: Some(server.local_addr().to_string()), ..TargetArgs::default() });
        assert!(!gather(&args, no_files).unwrap().status.is_healthy());
        args.source = Some("orders".to_owned());
        assert!(gather(&args, no_files).unwrap().status.is_healthy());
        args.source = Some("order".to_owned());
        let error = gather(&args, no_files).unwrap_err().to_string();
        assert_eq!(error, "there is no source \"order\"; there are: orders, stock");
    }
}
