//! Whom to ask for a status: found by an address, a data folder or a configuration.

use admin::{AddressFile, reachable};
use anyhow::{Context, anyhow};
use jiff::Timestamp;
use serde::Deserialize;
use status::{DaemonStatus, absolute};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
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

/// Three ways to find a daemon, of which one at most is used.
#[derive(Clone, Debug, Default, clap::Args)]
pub(in crate::cli) struct TargetArgs {
    /// Find the daemon and its files by this configuration file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data_dir", "admin"])]
    pub(in crate::cli) config: Option<PathBuf>,
    /// Find the daemon and its files by this data folder
    #[arg(long, value_name = "DIR", conflicts_with = "admin")]
    pub(in crate::cli) data_dir: Option<PathBuf>,
    /// Ask the daemon at this address, host:port [default: 127.0.0.1:9306]
    #[arg(long, value_name = "ADDR")]
    pub(in crate::cli) admin: Option<String>,
}

/// Whom to ask, and which files to read when nobody answers.
#[derive(Debug, PartialEq)]
pub(in crate::cli) struct Target {
    /// `None` when the configuration turns the admin server off.
    pub(in crate::cli) address: Option<String>,
    /// When known, only the daemon of this folder counts as an answer.
    pub(in crate::cli) data_dir: Option<PathBuf>,
}

impl Target {
    pub(in crate::cli) fn of(args: &TargetArgs) -> anyhow::Result<Target> {
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
    pub(in crate::cli) fn ask(&self) -> Result<DaemonStatus, String> {
        let Some(address) = &self.address else {
            return Err("the configuration turns the admin server off".to_owned());
        };
        let status = ask(address, self.token().as_ref())
            .map_err(|why| format!("no daemon answers at {address} ({why})"))?;
        match self.folder_asked_for() {
            Some(folder) if status.data_dir != folder => {
                Err(format!("the daemon at {address} is that of another data folder, {}", status.data_dir))
            }
            _ => Ok(status),
        }
    }

    /// What the daemon of that data folder wants to be shown, if it wants something.
    pub(in crate::cli) fn token(&self) -> Option<Secret> {
        self.data_dir.as_deref().and_then(AddressFile::token)
    }

    /// The data folder whose daemon alone counts as an answer, as a daemon tells its own.
    pub(in crate::cli) fn folder_asked_for(&self) -> Option<String> {
        self.data_dir.as_deref().map(|data_dir| absolute(data_dir).display().to_string())
    }
}

/// The answer of the daemon at `address` to a question for `path`, whatever its code.
///
/// # Errors
/// When there is none within three seconds.
pub(in crate::cli) fn get(
    address: &str,
    path: &str,
    token: Option<&Secret>,
) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(ANSWER_TIME_MAX))
        .http_status_as_error(false)
        .max_redirects(0)
        // The daemon is near; a proxy of the environment is for the outside.
        .proxy(None)
        .build()
        .into();
    let mut request = agent.get(format!("http://{address}{path}"));
    if let Some(token) = token {
        request = request.header("Authorization", format!("Bearer {}", token.expose()));
    }
    request.call()
}

/// Why there is no answer, for a person.
pub(in crate::cli) fn in_words(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => format!("no answer within {} s", ANSWER_TIME_MAX.as_secs()),
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            "connection refused: nothing listens there".to_owned()
        }
        other => other.to_string(),
    }
}

/// What the daemon of a data folder says, where one runs that has written its address.
pub(in crate::cli) fn of_folder(data_dir: &Path) -> Option<DaemonStatus> {
    let address = AddressFile::read(data_dir)?.to_string();
    ask(&address, AddressFile::token(data_dir).as_ref())
        .ok()
        .filter(|status| status.data_dir == absolute(data_dir).display().to_string())
}

fn ask(address: &str, token: Option<&Secret>) -> Result<DaemonStatus, String> {
    let mut response = get(address, "/status", token).map_err(|error| in_words(&error))?;
    if [401, 403].contains(&response.status().as_u16()) {
        let why = "it asks for a login; on its machine, name the data folder with --data-dir or --config";
        return Err(why.to_owned());
    }
    if response.status() != 200 {
        return Err(format!("HTTP status {}: this is not binlogd", response.status().as_u16()));
    }
    let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
    let body = body.map_err(|error| error.to_string())?;
    let status: DaemonStatus = serde_json::from_slice(&body)
        .map_err(|error| format!("its answer is not the status of a binlogd: {error}"))?;
    // An older daemon does not judge.
    Ok(status.understood(Timestamp::now()))
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
    use config::Config;

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

    #[test]
    fn the_three_ways_to_find_a_daemon_exclude_each_other() {
        use clap::Args;
        let command = TargetArgs::augment_args(clap::Command::new("status"));
        command.clone().debug_assert();
        let parses = |line: &str| command.clone().try_get_matches_from(line.split(' ')).is_ok();
        assert!(parses("status --admin a:1"));
        for both in ["--config c --data-dir d", "--config c --admin a:1", "--data-dir d --admin a:1"] {
            assert!(!parses(&format!("status {both}")), "{both}");
        }
    }
}
