//! How a store is reached, where its address alone does not say it.

use super::location::Location;
use std::net::IpAddr;

/// What an operator may say of a store beside its location.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// `http://` or `https://` address of the store, where it is not the provider's own. Of Azure with the account, as it is
    /// written there: `https://account.blob.core.windows.net`, `http://127.0.0.1:10000/devstoreaccount1`.
    pub endpoint: Option<String>,
    /// Region of an S3 bucket. Without it that of the environment or of the profile, else `us-east-1`.
    pub region: Option<String>,
    /// Whether the bucket is in the path (true) or in the host's name (false). Without it: in the path where there is an
    /// endpoint.
    pub path_style: Option<bool>,
    /// Whether to go on without TLS. Only with an `http://` endpoint, and needed for one.
    pub allow_http: bool,
}

/// An option that is wrong, or means nothing here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongOption {
    /// Its name, which is that of its key in the configuration.
    pub name: &'static str,
    /// What is wrong and what to write, as the end of a sentence that begins with the option.
    pub why: String,
}

impl Options {
    /// Whether the options are sound and all of them mean something at this location.
    ///
    /// # Errors
    /// The first one that is wrong.
    pub fn check(&self, location: &Location) -> Result<(), WrongOption> {
        let wrong = |name, why: String| Err(WrongOption { name, why });
        let scheme = location.scheme();
        if scheme != "s3" {
            let named = [("region", self.region.is_some()), ("path_style", self.path_style.is_some())];
            if let Some((name, _)) = named.iter().find(|(_, is_given)| *is_given) {
                return wrong(name, format!("means nothing for {scheme}://: only s3:// has one"));
            }
        }
        let is_http = match &self.endpoint {
            Some(_) if scheme == "file" => {
                return wrong("endpoint", "means nothing for a folder: remove it".to_owned());
            }
            Some(endpoint) => match is_http(endpoint) {
                Ok(is_http) => is_http,
                Err(why) => return wrong("endpoint", why.to_owned()),
            },
            None => false,
        };
        if is_http && !self.allow_http {
            return wrong(
                "endpoint",
                "is an http:// address: names, commits and what is not encrypted would go over the network in clear. Use https://, \
                 or allow that: allow_http = true in [archive], --allow-http on a command line"
                    .to_owned(),
            );
        }
        if self.path_style == Some(false) && self.endpoint.as_deref().is_some_and(is_an_address) {
            let why = "cannot be false for an endpoint that is an IP address: the bucket would be a part of the host's name. Leave it out";
            return wrong("path_style", why.to_owned());
        }
        if self.allow_http && !is_http {
            return wrong("allow_http", "needs an endpoint that begins with http://".to_owned());
        }
        Ok(())
    }

    /// Whether requests name an S3 bucket in the path.
    pub(super) fn is_path_style(&self) -> bool {
        self.path_style.unwrap_or(self.endpoint.is_some())
    }
}

/// Whether the host of an endpoint is an IP address.
fn is_an_address(endpoint: &str) -> bool {
    let host = endpoint.split("://").nth(1).unwrap_or_default().split('/').next().unwrap_or_default();
    let without_port = host.rsplit_once(':').map_or(host, |(host, _)| host);
    host.starts_with('[') || host.parse::<IpAddr>().is_ok() || without_port.parse::<IpAddr>().is_ok()
}

/// Whether an endpoint is one without TLS. The error completes the sentence "`endpoint` …" and shows no part of it.
fn is_http(endpoint: &str) -> Result<bool, &'static str> {
    let (is_http, rest) = match (endpoint.strip_prefix("http://"), endpoint.strip_prefix("https://")) {
        (Some(rest), _) => (true, rest),
        (_, Some(rest)) => (false, rest),
        _ => return Err("must begin with https:// or http://"),
    };
    if rest.contains('@') {
        return Err("must hold no account and no password: credentials come from the environment");
    }
    if rest.contains(['?', '#']) {
        return Err("must end before a ? or #");
    }
    let host = rest.split('/').next().unwrap_or_default();
    if host.is_empty() || host.starts_with(':') {
        return Err("lacks the host");
    }
    if !rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:/[]~".contains(&byte)) {
        return Err("has characters that no address has");
    }
    if let Some((_, port)) = host.rsplit_once(':')
        && !port.ends_with(']')
        && port.parse::<u16>().is_err()
    {
        return Err("has a port outside 1 to 65535");
    }
    Ok(is_http)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, options: Options) -> Result<(), (&'static str, String)> {
        options.check(&url.parse().unwrap()).map_err(|wrong| (wrong.name, wrong.why))
    }

    fn endpoint(endpoint: &str) -> Options {
        Options { endpoint: Some(endpoint.to_owned()), ..Options::default() }
    }

    #[test]
    fn options_that_mean_something_are_taken() {
        let all = Options {
            region: Some("eu-central-1".into()),
            path_style: Some(true),
            allow_http: true,
            ..endpoint("http://[::1]:9000")
        };
        assert_eq!(check("s3://b", all), Ok(()));
        for url in ["s3://b", "gs://b", "az://c", "file:///srv/a"] {
            assert_eq!(check(url, Options::default()), Ok(()), "{url}");
        }
        assert_eq!(check("az://c", endpoint("https://account.blob.core.windows.net")), Ok(()));
        assert!(endpoint("https://minio:9000").is_path_style() && !Options::default().is_path_style());
    }

    #[test]
    fn options_that_mean_nothing_are_refused_by_name() {
        let region = || Options { region: Some("eu".into()), ..Options::default() };
        let path_style = || Options { path_style: Some(false), ..Options::default() };
        let http = || Options { allow_http: true, ..Options::default() };
        for (url, options, name) in [
            ("file:///srv/a", endpoint("https://x"), "endpoint"),
            ("file:///srv/a", region(), "region"),
            ("file:///srv/a", http(), "allow_http"),
            ("gs://b", region(), "region"),
            ("az://b", path_style(), "path_style"),
            ("s3://b", http(), "allow_http"),
            ("s3://b", Options { allow_http: true, ..endpoint("https://x") }, "allow_http"),
            ("s3://b", endpoint("http://x"), "endpoint"),
            (
                "s3://b",
                Options { path_style: Some(false), ..endpoint("https://10.0.0.7:9000") },
                "path_style",
            ),
            ("s3://b", Options { path_style: Some(false), ..endpoint("https://[::1]:9000") }, "path_style"),
        ] {
            assert_eq!(check(url, options.clone()).unwrap_err().0, name, "{url} {options:?}");
        }
        for bad in [
            "minio:9000",
            "https://",
            "https://:9000",
            "https://a:b",
            "https://user:secret@x",
            "https://x?y",
            "https://a b",
        ] {
            let (name, why) = check("s3://b", endpoint(bad)).unwrap_err();
            assert_eq!(name, "endpoint", "{bad}");
            assert!(!why.contains("secret"), "{why}");
        }
    }
}
