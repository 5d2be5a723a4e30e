//! `binlogd status`: what the daemon says of itself, or what the files say when no daemon answers.

mod head;
mod page;
mod readers;
mod summary;
mod table;

use super::exit::{EXIT_PROBLEM, print_result};
use super::style;
use crate::admin::{AddressFile, reachable};
use crate::status::{DaemonStatus, absolute};
use anyhow::{Context, anyhow, bail};
use jiff::Timestamp;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use wire::Secret;

/// Asked when neither an option nor an address file says otherwise: the default of `[admin] listen`.
const DEFAULT_ADMIN: &str = "127.0.0.1:9306";
/// The default of `data_dir`, counted from the folder of the configuration file.
const DEFAULT_DATA_DIR: &str = "./data";
/// Longest time for the whole question and answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(3);
/// Longest answer read. A source takes some kilobytes; one with millions of GTID intervals, tens of megabytes.
const ANSWER_BYTES_MAX: u64 = 512 << 20;

/// The arguments of `binlogd status`.
#[derive(Debug, Default, clap::Args)]
pub(super) struct StatusArgs {
    /// Find the daemon and its files by this configuration file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data_dir", "admin"])]
    config: Option<PathBuf>,
    /// Find the daemon and its files by this data folder
    #[arg(long, value_name = "DIR", conflicts_with = "admin")]
    data_dir: Option<PathBuf>,
    /// Ask the daemon at this address, host:port [default: 127.0.0.1:9306]
    #[arg(long, value_name = "ADDR")]
    admin: Option<String>,
    /// Print JSON with stable keys
    #[arg(long)]
    json: bool,
    /// Show this source only
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Show everything about each source, however many there are; without it, more than four are summed up
    #[arg(long, conflicts_with = "source")]
    all: bool,
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
    offline: impl FnOnce(&Path) -> anyhow::Result<DaemonStatus>,
) -> anyhow::Result<ExitCode> {
    let report = gather(&args, offline)?;
    let text = if args.json {
        serde_json::to_string_pretty(&report.status)? + "\n"
    } else {
        let in_full = args.all || report.status.sources.len() <= summary::SHOWN_IN_FULL_MAX;
        let render = if in_full { table::render } else { summary::render };
        let (colored, now) = (style::stdout_is_colored(), Timestamp::now());
        let readers = report.status.serve.as_ref().map(|serve| readers::render(serve, colored, now));
        render(&report.status, report.unanswered.as_deref(), colored, now) + &readers.unwrap_or_default()
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

fn gather(
    args: &StatusArgs,
    offline: impl FnOnce(&Path) -> anyhow::Result<DaemonStatus>,
) -> anyhow::Result<Report> {
    let target = Target::of(args)?;
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
    }
    if status.sources.is_empty() {
        bail!("there is no source {name:?}; there are: {names}");
    }
    Ok(())
}

/// Whom to ask, and which files to read when nobody answers.
#[derive(Debug, PartialEq)]
struct Target {
    /// `None` when the configuration turns the admin server off.
    address: Option<String>,
    /// When known, only the daemon of this folder counts as an answer.
    data_dir: Option<PathBuf>,
}

impl Target {
    fn of(args: &StatusArgs) -> anyhow::Result<Target> {
        if let Some(address) = &args.admin {
            return Ok(Target { address: Some(address.clone()), data_dir: None });
        }
        let (configured, data_dir) = match (&args.config, &args.data_dir) {
            (Some(file), _) => {
                let keys = StatusKeys::read(file)?;
                (keys.listen, Some(keys.data_dir))
            }
            (None, data_dir) => (Some(DEFAULT_ADMIN.to_owned()), data_dir.clone()),
        };
        // The daemon wrote the file when it began to listen; it may have been started with another configuration.
        let written = data_dir.as_deref().and_then(AddressFile::read).map(|address| address.to_string());
        Ok(Target { address: written.or(configured), data_dir })
    }

    /// The daemon's answer, or in words why there is none.
    fn ask(&self) -> Result<DaemonStatus, String> {
        let Some(address) = &self.address else {
            return Err("the configuration turns the admin server off".to_owned());
        };
        let token = self.data_dir.as_deref().and_then(AddressFile::token);
        let status =
            ask(address, token.as_ref()).map_err(|why| format!("no daemon answers at {address} ({why})"))?;
        match &self.data_dir {
            Some(data_dir) if status.data_dir != absolute(data_dir).display().to_string() => {
                Err(format!("the daemon at {address} is that of another data folder, {}", status.data_dir))
            }
            _ => Ok(status),
        }
    }
}

/// What the daemon of a data folder says, where one runs that has written its address.
pub(super) fn of_folder(data_dir: &Path) -> Option<DaemonStatus> {
    let address = AddressFile::read(data_dir)?.to_string();
    ask(&address, AddressFile::token(data_dir).as_ref())
        .ok()
        .filter(|status| status.data_dir == absolute(data_dir).display().to_string())
}

fn ask(address: &str, token: Option<&Secret>) -> Result<DaemonStatus, String> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(ANSWER_TIME_MAX))
        .http_status_as_error(false)
        .max_redirects(0)
        // The daemon is near; a proxy of the environment is for the outside.
        .proxy(None)
        .build()
        .into();
    let mut request = agent.get(format!("http://{address}/status"));
    if let Some(token) = token {
        request = request.header("Authorization", format!("Bearer {}", token.expose()));
    }
    let mut response = request.call().map_err(|error| error.to_string())?;
    if [401, 403].contains(&response.status().as_u16()) {
        let why = "it asks for a login; on its machine, name the data folder with --data-dir or --config";
        return Err(why.to_owned());
    }
    if response.status() != 200 {
        return Err(format!("HTTP status {}: this is not binlogd", response.status().as_u16()));
    }
    let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
    let body = body.map_err(|error| error.to_string())?;
    serde_json::from_slice(&body)
        .map_err(|error| format!("its answer is not the status of a binlogd: {error}"))
}

/// The two keys of a configuration file that say where to look. The rest of the file is not judged here, because an
/// account that may ask for the status need not be able to read the password files that it names.
#[derive(Debug, PartialEq)]
struct StatusKeys {
    data_dir: PathBuf,
    listen: Option<String>,
}

#[derive(Deserialize)]
struct File {
    data_dir: Option<PathBuf>,
    #[serde(default)]
    admin: FileAdmin,
}

#[derive(Default, Deserialize)]
struct FileAdmin {
    listen: Option<String>,
}

impl StatusKeys {
    fn read(path: &Path) -> anyhow::Result<StatusKeys> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| anyhow!("cannot read the configuration {}: {error}", path.display()))?;
        Self::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> anyhow::Result<StatusKeys> {
        // The parser's own text would quote the line, which may hold a password.
        let file: File = toml::from_str(text).map_err(|error| {
            anyhow!("{} is not a valid configuration: {}", path.display(), error.message())
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let data_dir = folder.join(file.data_dir.as_deref().unwrap_or(Path::new(DEFAULT_DATA_DIR)));
        let listen = match file.admin.listen.as_deref().unwrap_or(DEFAULT_ADMIN) {
            "off" => None,
            text => {
                let address: SocketAddr = text.parse().with_context(|| {
                    format!(
                        "{}: [admin] listen = {text:?} is no address such as {DEFAULT_ADMIN}",
                        path.display()
                    )
                })?;
                Some(reachable(address).to_string())
            }
        };
        Ok(StatusKeys { data_dir, listen })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::AdminServer;
    use crate::config::Config;
    use crate::status::{DaemonMonitor, NOT_RUNNING, SourceMonitor, SourceState, SourceStatus};
    use std::sync::Arc;

    fn from_files(data_dir: &Path) -> anyhow::Result<DaemonStatus> {
        Ok(DaemonStatus {
            binlogd_version: "0".to_owned(),
            pid: None,
            uptime_seconds: None,
            data_dir: data_dir.display().to_string(),
            disk: None,
            running: false,
            sources: vec![SourceStatus { state: NOT_RUNNING.to_owned(), ..SourceStatus::default() }],
            ..DaemonStatus::default()
        })
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
    fn the_three_ways_to_find_a_daemon_exclude_each_other() {
        use clap::Args;
        let command = StatusArgs::augment_args(clap::Command::new("status"));
        command.clone().debug_assert();
        let parses = |line: &str| command.clone().try_get_matches_from(line.split(' ')).is_ok();
        assert!(parses("status --admin a:1 --json --source orders"));
        for both in ["--config c --data-dir d", "--config c --admin a:1", "--data-dir d --admin a:1"] {
            assert!(!parses(&format!("status {both}")), "{both}");
        }
    }

    #[test]
    fn a_daemon_is_found_by_its_address() {
        let folder = tempfile::tempdir().unwrap();
        let (server, _) = daemon(folder.path());
        let args = StatusArgs { admin: Some(server.local_addr().to_string()), ..StatusArgs::default() };
        let report = gather(&args, no_files).unwrap();
        assert!(report.status.running && report.unanswered.is_none());
        assert_eq!(report.status.sources.len(), 2);
    }

    #[test]
    fn a_daemon_is_found_by_the_address_file_of_its_data_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (server, _) = daemon(folder.path());
        let _file = AddressFile::publish(folder.path(), server.local_addr(), None).unwrap();
        let args = StatusArgs { data_dir: Some(folder.path().join(".")), ..StatusArgs::default() };
        assert!(gather(&args, no_files).unwrap().status.running);
        let config = folder.path().join("binlogd.toml");
        std::fs::write(&config, "data_dir = '.'\n[admin]\nlisten = '127.0.0.1:1'\n").unwrap();
        let args = StatusArgs { config: Some(config), ..StatusArgs::default() };
        assert!(gather(&args, no_files).unwrap().status.running);
    }

    #[test]
    fn the_daemon_of_another_data_folder_is_no_answer() {
        let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (server, _) = daemon(theirs.path());
        // What a crashed daemon left behind, with its port taken over by another.
        let _file = AddressFile::publish(ours.path(), server.local_addr(), None).unwrap();
        let args = StatusArgs { data_dir: Some(ours.path().to_owned()), ..StatusArgs::default() };
        let report = gather(&args, from_files).unwrap();
        assert!(!report.status.running);
        assert!(report.unanswered.unwrap().contains("is that of another data folder"));
    }

    #[test]
    fn without_an_answer_the_files_are_read_or_the_way_out_is_told() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(crate::admin::ADDRESS_FILE), closed_address()).unwrap();
        let args = StatusArgs { data_dir: Some(folder.path().to_owned()), ..StatusArgs::default() };
        let report = gather(&args, from_files).unwrap();
        assert!(report.unanswered.unwrap().starts_with("no daemon answers at 127.0.0.1:"));
        let error = gather(&args, |_| bail!("no such folder")).unwrap_err().to_string();
        assert!(error.contains("no daemon answers") && error.ends_with("no such folder"), "{error}");
        let args = StatusArgs { admin: Some(closed_address()), ..StatusArgs::default() };
        let error = gather(&args, no_files).unwrap_err().to_string();
        assert!(error.contains("no daemon answers") && error.contains("--data-dir"), "{error}");
    }

    #[test]
    fn something_else_at_the_address_is_told_apart() {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let other = std::thread::spawn(move || {
            for answer in [
                "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            ] {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 4096]).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        assert!(ask(&address, None).unwrap_err().contains("HTTP status 404: this is not binlogd"));
        assert!(ask(&address, None).unwrap_err().contains("not the status of a binlogd"));
        other.join().unwrap();
    }

    #[test]
    fn one_source_can_be_chosen_and_decides_health() {
        let folder = tempfile::tempdir().unwrap();
        let (server, orders) = daemon(folder.path());
        orders.set_state(SourceState::Receiving);
        let mut args = StatusArgs { admin: Some(server.local_addr().to_string()), ..StatusArgs::default() };
        assert!(!gather(&args, no_files).unwrap().status.is_healthy());
        args.source = Some("orders".to_owned());
        assert!(gather(&args, no_files).unwrap().status.is_healthy());
        args.source = Some("order".to_owned());
        let error = gather(&args, no_files).unwrap_err().to_string();
        assert_eq!(error, "there is no source \"order\"; there are: orders, stock");
    }

    #[test]
    fn the_two_keys_agree_with_the_whole_configuration() {
        let source = "[[source]]\nhosts = ['db1:3306']\nuser = 'repl'\n";
        let path = Path::new("conf/binlogd.toml");
        for head in [
            "",
            "data_dir = 'd'\n",
            "data_dir = '/d'\n[admin]\nlisten = 'off'\n",
            "[admin]\nlisten = '[::1]:7'\n",
        ] {
            let text = format!("{head}{source}");
            let whole = Config::parse(&text, path, &|_| None).unwrap().config;
            let keys = StatusKeys::parse(&text, path).unwrap();
            assert_eq!(keys.data_dir, whole.data_dir);
            assert_eq!(keys.listen, whole.admin.listen.map(|address| address.to_string()));
        }
    }

    #[test]
    fn a_broken_configuration_is_explained_without_its_password() {
        let text = "[[source]]\npassword = 'secret\n";
        let error = StatusKeys::parse(text, Path::new("b.toml")).unwrap_err().to_string();
        assert!(error.starts_with("b.toml is not a valid configuration: "), "{error}");
        assert!(!error.contains("secret"), "{error}");
        let text = "[admin]\nlisten = 'db'\n";
        let error = StatusKeys::parse(text, Path::new("b.toml")).unwrap_err().to_string();
        assert!(error.contains("[admin] listen = \"db\" is no address"), "{error}");
    }
}
