//! Which copy, and which server: what the command line of a rescue names.

use super::super::hide_password::URL_PASSWORD_VARIABLE;
use super::super::source_url::{SourceUrl, percent_decoded};
use super::args::RescueArgs;
use crate::config::password::{PASSWORD_VARIABLE, process_environment, read_bounded};
use crate::config::value::parse_host_port;
use log::folder::source_folders;
use log::posix::PosixStorage;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::{ConnectOptions, Secret, TlsOptions};

/// Largest password file, in bytes.
const PASSWORD_FILE_BYTES_MAX: u64 = 4096;
/// Time for connecting, and for each answer until transactions are sent.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The source's folder, or what is wrong with the command line.
pub(super) fn choose(data_dir: &Path, wanted: Option<&str>) -> Result<(String, PathBuf), String> {
    let shown = data_dir.display();
    let mut sources =
        source_folders(&PosixStorage, data_dir).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let names = sources.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    if let Some(wanted) = wanted {
        let found = sources.iter().position(|(name, _)| name == wanted);
        let found = found.ok_or_else(|| format!("{shown} holds no source {wanted:?}; there are: {names}"))?;
        return Ok(sources.swap_remove(found));
    }
    match sources.len() {
        0 => Err(format!("{shown} holds no source: name the data_dir of the configuration")),
        1 => Ok(sources.swap_remove(0)),
        _ => Err(format!("{shown} holds several sources: choose one with --source; there are: {names}")),
    }
}

pub(super) fn options(args: &RescueArgs) -> Result<ConnectOptions, String> {
    let url = SourceUrl::parse(args.to.expose()).map_err(|why| format!("--to: the URL {why}"))?;
    let [host] = &url.hosts[..] else {
        return Err("--to: the URL must name one host: the server to complete".to_owned());
    };
    let host = parse_host_port(host).map_err(|why| format!("--to: the host {why}"))?;
    let password = match (&args.password_file, url.password) {
        (Some(_), Some(_)) => {
            return Err("--to and --password-file both give a password: keep one".to_owned());
        }
        (Some(file), None) => password_of(file)?,
        (None, Some(password)) => password,
        (None, None) => password_of_environment()?,
    };
    Ok(ConnectOptions {
        host: host.host,
        port: host.port,
        user: url.user,
        password,
        connect_timeout: CONNECT_TIMEOUT,
        tls: TlsOptions { mode: args.tls, ca: args.tls_ca.clone(), ..TlsOptions::default() },
    })
}

fn password_of(file: &Path) -> Result<Secret, String> {
    let text = read_bounded(file, PASSWORD_FILE_BYTES_MAX)
        .map_err(|problem| format!("--password-file \"{}\" {problem}", file.display()))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Secret::new(line.strip_suffix('\r').unwrap_or(line)))
}

/// The URL's password, which was moved there, or the one variable.
fn password_of_environment() -> Result<Secret, String> {
    if let Some(Ok(encoded)) = process_environment(URL_PASSWORD_VARIABLE) {
        return percent_decoded(&encoded).map(Secret::new).map_err(|why| format!("--to: the URL {why}"));
    }
    match process_environment(PASSWORD_VARIABLE) {
        None => Ok(Secret::default()),
        Some(Ok(password)) => Ok(Secret::new(password)),
        Some(Err(_)) => Err(format!("the environment variable {PASSWORD_VARIABLE} is not valid UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, Command, FromArgMatches};
    use log::posix::PosixStorage;
    use log::testing::first_timeline;
    use wire::TlsMode;

    fn parse(line: &str) -> RescueArgs {
        let command = RescueArgs::augment_args(Command::new("rescue"));
        RescueArgs::from_arg_matches(&command.try_get_matches_from(line.split(' ')).unwrap()).unwrap()
    }

    #[test]
    fn the_target_is_one_server() {
        let told = |line: &str| options(&parse(line));
        let one = told("rescue data --to mysql://root:pw@db2:3307 --tls required").unwrap();
        assert_eq!((one.host.as_str(), one.port, one.user.as_str()), ("db2", 3307, "root"));
        assert_eq!((one.password.expose(), one.tls.mode), ("pw", TlsMode::Required));
        assert!(told("rescue data --to mysql://root@a,b").unwrap_err().contains("one host"));
        assert!(told("rescue data --to root@a").unwrap_err().starts_with("--to: the URL must begin"));
        let missing = told("rescue data --to mysql://root@a --password-file none").unwrap_err();
        assert!(missing.starts_with("--password-file \"none\" cannot be read"), "{missing}");
        let twice = told("rescue data --to mysql://root:pw@a --password-file none").unwrap_err();
        assert!(twice.contains("keep one"));
    }

    #[test]
    fn one_source_needs_no_name() {
        let dir = tempfile::tempdir().unwrap();
        assert!(choose(dir.path(), None).unwrap_err().contains("holds no source"));
        let timeline = first_timeline("a");
        for name in ["orders", "stock"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            timeline.create(&PosixStorage, &dir.path().join(name), 1).unwrap();
            if name == "orders" {
                assert_eq!(choose(dir.path(), None).unwrap().0, "orders");
            }
        }
        assert!(choose(dir.path(), None).unwrap_err().contains("orders, stock"));
        assert_eq!(choose(dir.path(), Some("stock")).unwrap().0, "stock");
        assert!(choose(dir.path(), Some("other")).unwrap_err().contains("orders, stock"));
    }
}
