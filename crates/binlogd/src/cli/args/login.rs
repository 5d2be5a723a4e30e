//! How a verb that is given a server's URL logs in there: password by file, URL, environment, or asked for.

use super::source_url::{SourceUrl, percent_decoded};
use config::password::{PASSWORD_VARIABLE, URL_PASSWORD_VARIABLE, process_environment, read_bounded};
use config::value::parse_host_port;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::{ConnectOptions, Secret, TlsMode, TlsOptions};

/// Largest password file, in bytes.
const PASSWORD_FILE_BYTES_MAX: u64 = 4096;
/// Time for connecting, and for each answer until the verb says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// What a command line says of one server.
#[derive(Debug)]
pub(in crate::cli) struct ServerLogin<'a> {
    /// The argument that holds the URL, for messages: `--to`.
    pub(in crate::cli) argument: &'a str,
    /// What the server is for, for messages: `the server to complete`.
    pub(in crate::cli) purpose: &'a str,
    /// The URL.
    pub(in crate::cli) url: &'a Secret,
    /// The file of `--password-file`.
    pub(in crate::cli) password_file: Option<&'a Path>,
    /// `--tls`.
    pub(in crate::cli) tls: TlsMode,
    /// `--tls-ca`.
    pub(in crate::cli) tls_ca: Option<&'a PathBuf>,
    /// Whether to ask for a password that nothing gives, where somebody sits at a terminal.
    pub(in crate::cli) asks: bool,
}

impl ServerLogin<'_> {
    /// The one server, and who to be there.
    ///
    /// # Errors
    /// What is wrong with the command line. No password is quoted.
    pub(in crate::cli) fn options(&self) -> Result<ConnectOptions, String> {
        let argument = self.argument;
        let url = SourceUrl::parse(self.url.expose()).map_err(|why| format!("{argument}: the URL {why}"))?;
        let [host] = &url.hosts[..] else {
            return Err(format!("{argument}: the URL must name one host: {}", self.purpose));
        };
        let host = parse_host_port(host).map_err(|why| format!("{argument}: the host {why}"))?;
        let password = match (self.password_file, url.password) {
            (Some(_), Some(_)) => {
                return Err(format!("{argument} and --password-file both give a password: keep one"));
            }
            (Some(file), None) => password_of(file)?,
            (None, Some(password)) => password,
            (None, None) => match self.password_of_environment()? {
                Some(password) => password,
                None if self.asks && io::stdin().is_terminal() => ask(&url.user, &host.to_string())?,
                None => Secret::default(),
            },
        };
        Ok(ConnectOptions {
            host: host.host,
            port: host.port,
            user: url.user,
            password,
            connect_timeout: CONNECT_TIMEOUT,
            tls: TlsOptions { mode: self.tls, ca: self.tls_ca.cloned(), ..TlsOptions::default() },
        })
    }

    /// The URL's password, which was moved there, or the one variable.
    fn password_of_environment(&self) -> Result<Option<Secret>, String> {
        if let Some(Ok(encoded)) = process_environment(URL_PASSWORD_VARIABLE) {
            let password = percent_decoded(&encoded).map(Secret::new);
            return password.map(Some).map_err(|why| format!("{}: the URL {why}", self.argument));
        }
        match process_environment(PASSWORD_VARIABLE) {
            None => Ok(None),
            Some(Ok(password)) => Ok(Some(Secret::new(password))),
            Some(Err(_)) => Err(format!("the environment variable {PASSWORD_VARIABLE} is not valid UTF-8")),
        }
    }
}

fn password_of(file: &Path) -> Result<Secret, String> {
    let text = read_bounded(file, PASSWORD_FILE_BYTES_MAX)
        .map_err(|problem| format!("--password-file \"{}\" {problem}", file.display()))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Secret::new(line.strip_suffix('\r').unwrap_or(line)))
}

fn ask(user: &str, host: &str) -> Result<Secret, String> {
    rpassword::prompt_password(format!("Password of {user} on {host} (Enter for none): "))
        .map(Secret::new)
        .map_err(|error| format!("the password cannot be read from the terminal: {error}"))
}
