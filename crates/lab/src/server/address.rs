//! Where a server is, and who we are there.

use anyhow::{anyhow, bail};
use binlogd::cli::source_url::SourceUrl;
use config::value::parse_host_port;
use std::time::Duration;
use wire::{ConnectOptions, Secret, TlsMode, TlsOptions};

/// The password where a URL holds none, and of `binlogd-lab restore`.
pub const PASSWORD_VARIABLE: &str = "BINLOGD_LAB_PASSWORD";

/// Longest wait for a connection, and for the answer to an ordinary statement.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// The account that a URL `mysql://user:password@host:port` names. Without a password in it, that of the environment
/// variable `BINLOGD_LAB_PASSWORD` is taken, or none. TLS is used where the server offers it.
///
/// # Errors
/// When the URL is not of this form; the error quotes nothing of it that may be a password.
pub fn account(url: &str) -> anyhow::Result<ConnectOptions> {
    let parsed = SourceUrl::parse(url).map_err(|why| anyhow!("the server's URL {why}"))?;
    let [host] = parsed.hosts.as_slice() else {
        bail!("the server's URL names several hosts; the lab measures one")
    };
    let place = parse_host_port(host).map_err(|why| anyhow!("the server's URL: {host} {why}"))?;
    Ok(ConnectOptions {
        host: place.host,
        port: place.port,
        user: parsed.user,
        password: parsed.password.unwrap_or_else(password_of_environment),
        connect_timeout: ANSWER_MAX,
        tls: TlsOptions { mode: TlsMode::Preferred, ..TlsOptions::default() },
    })
}

/// That of the environment variable `BINLOGD_LAB_PASSWORD`; empty without one.
fn password_of_environment() -> Secret {
    Secret::new(std::env::var(PASSWORD_VARIABLE).unwrap_or_default())
}

/// `host:port`, with brackets around an IPv6 address.
pub fn place(account: &ConnectOptions) -> String {
    let ConnectOptions { host, port, .. } = account;
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// `host:port` as it may stand in the name of a file.
pub fn file_name(place: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '_' };
    place.chars().map(safe).collect()
}

/// An account as a URL, without its password.
pub fn url_without_password(account: &ConnectOptions) -> String {
    format!("mysql://{}@{}", percent_encoded(&account.user), place(account))
}

/// Everything but what RFC 3986 calls unreserved, as `%XX`.
fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_one_account_of_one_server() {
        let account = account("mysql://d%40ba:p%3a@[::1]:3307").unwrap();
        assert_eq!((account.user.as_str(), account.password.expose()), ("d@ba", "p:"));
        assert_eq!(place(&account), "[::1]:3307");
        assert_eq!(file_name(&place(&account)), "___1__3307");
        assert_eq!(url_without_password(&account), "mysql://d%40ba@[::1]:3307");
        assert_eq!(super::account("mysql://u:@db").unwrap().port, 3306);
    }

    #[test]
    fn a_url_that_is_wrong_is_not_quoted() {
        for url in [
            "mysql://u:SECRET@a,b",
            "mysql://u:SECRET@db/orders",
            "mysql://u:SECRET%@db",
            "mysql://u:SECRET@:1",
        ] {
            let error = format!("{:#}", account(url).unwrap_err());
            assert!(!error.contains("SECRET"), "{error}");
        }
    }
}
