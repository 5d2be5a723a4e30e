//! What is asked for and what is learnt, the same for every study.

use crate::apart::Apart;
pub use crate::results::fact::Fact;
pub use crate::results::measured::Measured;
use anyhow::{anyhow, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// How large a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// A minute or two: everything happens once, the numbers mean little.
    Smoke,
    /// Minutes to half an hour: small data, short cells, several rounds.
    Quick,
    /// Every published cell, with data and seconds for two processors: about two hours a study.
    Grid,
    /// As published: hours to days, and a machine for it.
    Full,
}

/// A server to measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum ServerChoice {
    /// One that the lab fetches and starts, by the name that `scripts/servers` has for it, such as `mysql-9.7`.
    Own(String),
    /// One of the user's: `mysql://user:password@host:port`.
    Url(String),
}

/// Names on the command line and in `scripts/servers`.
const OWN_SERVERS: [(&str, &str); 6] = [
    ("mysql:9.7", "mysql-9.7"),
    ("mysql:8.0", "mysql-8.0.31"),
    ("mysql:8.0.15", "mysql-8.0.15"),
    ("mysql:5.7", "mysql-5.7.22"),
    ("mariadb:10.11", "mariadb-10.11"),
    ("mariadb:11.8", "mariadb-11.8"),
];

/// The lab's own servers that come without semi-sync plugins, as their builds are published.
const WITHOUT_SEMI_SYNC: [&str; 3] = ["mysql-8.0.31", "mysql-8.0.15", "mysql-5.7.22"];

impl ServerChoice {
    /// Whether it can wait for an acknowledgement; of a user's server that is not known yet.
    pub fn may_have_semi_sync(&self) -> bool {
        !matches!(self, ServerChoice::Own(name) if WITHOUT_SEMI_SYNC.contains(&name.as_str()))
    }
}

impl FromStr for ServerChoice {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<ServerChoice> {
        if text.contains("://") {
            return Ok(ServerChoice::Url(text.to_owned()));
        }
        let known = OWN_SERVERS.iter().find(|(name, own)| *name == text || *own == text);
        if let Some((_, own)) = known {
            return Ok(ServerChoice::Own((*own).to_owned()));
        }
        let names: Vec<&str> = OWN_SERVERS.iter().map(|(name, _)| *name).collect();
        bail!(
            "no server is called {text:?}; there are {}, and URLs: mysql://user@host:port",
            names.join(", ")
        )
    }
}

impl TryFrom<String> for ServerChoice {
    type Error = anyhow::Error;

    fn try_from(text: String) -> anyhow::Result<ServerChoice> {
        text.parse()
    }
}

impl From<ServerChoice> for String {
    fn from(choice: ServerChoice) -> String {
        match choice {
            ServerChoice::Own(name) => name,
            ServerChoice::Url(url) => url,
        }
    }
}

impl fmt::Display for ServerChoice {
    /// Without the password of a URL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerChoice::Own(name) => f.write_str(name),
            ServerChoice::Url(url) => {
                let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
                let (account, place) = rest.rsplit_once('@').unwrap_or(("", rest));
                let user = account.split_once(':').map_or(account, |(user, _)| user);
                write!(f, "{scheme}://{user}{}{place}", if user.is_empty() { "" } else { "@" })
            }
        }
    }
}

/// What a run is asked to do: a study, its profile, and what was changed of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Size of the run.
    pub profile: Profile,
    /// The servers; empty for the study's own choice.
    pub servers: Vec<ServerChoice>,
    /// Settings of the study with their values under this profile, those of `--set` in place of the study's own.
    pub settings: Settings,
    /// What is set apart. An older lab set nothing apart.
    #[serde(default, skip_serializing_if = "Apart::is_nothing")]
    pub apart: Apart,
}

impl Order {
    /// With the study's own choice of servers, and nothing set apart.
    pub fn new(profile: Profile, settings: Settings) -> Order {
        Order { profile, servers: Vec::new(), settings, apart: Apart::default() }
    }

    /// Whether a server is one of the user's, which may be on another machine.
    pub fn is_of_users_servers(&self) -> bool {
        self.servers.iter().any(|server| matches!(server, ServerChoice::Url(_)))
    }

    /// The servers, or these of the lab's own where none was asked for.
    pub fn servers_or(&self, own: &[&str]) -> Vec<ServerChoice> {
        match self.servers.is_empty() {
            true => own.iter().map(|name| ServerChoice::Own((*name).to_owned())).collect(),
            false => self.servers.clone(),
        }
    }
}

/// Settings of a study by name, such as `threads` = `2,8,32` or `seconds` = `5`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings(pub BTreeMap<String, String>);

impl Settings {
    /// From pairs of name and value.
    pub fn of<const N: usize>(pairs: [(&str, &str); N]) -> Settings {
        Settings(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
    }

    /// The setting, as what it should be.
    ///
    /// # Errors
    /// When the study has no such setting, or its value cannot be read as one; the error names the setting.
    pub fn get<T: FromStr<Err: fmt::Display>>(&self, name: &str) -> anyhow::Result<T> {
        let Some(value) = self.0.get(name) else { bail!("the study has no setting {name}") };
        value.parse().map_err(|error| anyhow!("--set {name}={value}: {error}"))
    }

    /// The setting, a list with commas.
    ///
    /// # Errors
    /// As [`Settings::get`], and when the list is empty.
    pub fn list<T: FromStr<Err: fmt::Display>>(&self, name: &str) -> anyhow::Result<Vec<T>> {
        let text: String = self.get(name)?;
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let values: Result<Vec<T>, _> = parts.map(str::parse).collect();
        match values {
            Ok(values) if !values.is_empty() => Ok(values),
            Ok(_) => bail!("--set {name}={text}: a list with commas is wanted here"),
            Err(error) => bail!("--set {name}={text}: a list with commas is wanted here: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_known_by_both_names_and_passwords_are_not_shown() {
        assert_eq!("mysql:9.7".parse::<ServerChoice>().unwrap(), ServerChoice::Own("mysql-9.7".to_owned()));
        assert_eq!("mysql-9.7".parse::<ServerChoice>().unwrap().to_string(), "mysql-9.7");
        let url = "mysql://dba:a:b@c@db.example:3306";
        assert_eq!(url.parse::<ServerChoice>().unwrap().to_string(), "mysql://dba@db.example:3306");
        let error = "oracle:23".parse::<ServerChoice>().unwrap_err().to_string();
        assert!(error.contains("oracle:23") && error.contains("mariadb:11.8"), "{error}");
    }

    #[test]
    fn a_setting_that_is_wrong_is_named() {
        let settings = Settings::of([("threads", "2, 8,32"), ("seconds", "five")]);
        assert_eq!(settings.list::<u32>("threads").unwrap(), [2, 8, 32]);
        assert!(settings.get::<u64>("seconds").unwrap_err().to_string().contains("seconds=five"));
        assert!(settings.get::<u64>("second").unwrap_err().to_string().contains("second"));
        assert!(Settings::of([("threads", ",")]).list::<u32>("threads").is_err());
    }
}
