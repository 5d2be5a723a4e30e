//! A server, and how it compresses.

use crate::model::ServerChoice;
use anyhow::{Context, bail};
use codec::ServerKind;
use std::fmt;
use std::str::FromStr;

/// As published, and MySQL's default.
pub const LEVEL: u32 = 3;
/// The kinds of statements whose rates were published.
pub const KINDS: [&str; 4] = ["select", "delete", "insert", "update"];

/// How the log is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compression {
    /// The server has no compression of transactions, MySQL before 8.0.20.
    Absent,
    /// Switched off.
    Off,
    /// MySQL's `binlog_transaction_compression`, with zstd at this level.
    Zstd(u32),
    /// MariaDB's `log_bin_compress`, which compresses each event by zlib.
    Events,
}

/// A configuration: `mysql-9.7, zstd level 3`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Configuration {
    /// As [`ServerChoice`] prints it.
    pub server: String,
    /// How it compresses.
    pub compression: Compression,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compression::Absent => f.write_str("before the feature"),
            Compression::Off => f.write_str("compression off"),
            Compression::Zstd(level) => write!(f, "zstd level {level}"),
            Compression::Events => f.write_str("log_bin_compress"),
        }
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.server, self.compression)
    }
}

impl FromStr for Configuration {
    type Err = anyhow::Error;

    /// As it is printed.
    fn from_str(text: &str) -> anyhow::Result<Configuration> {
        let unknown = || format!("binlog-compression has no configuration {text:?}");
        let (server, compression) = text.rsplit_once(", ").with_context(unknown)?;
        let level = compression.strip_prefix("zstd level ").and_then(|level| level.parse().ok());
        let plain = [Compression::Absent, Compression::Off, Compression::Events];
        let compression = match plain.into_iter().find(|one| one.to_string() == compression) {
            Some(one) => one,
            None => Compression::Zstd(level.with_context(unknown)?),
        };
        Ok(Configuration { server: server.to_owned(), compression })
    }
}

impl Configuration {
    /// The same server with compression off, unless it is that.
    pub fn uncompressed(&self) -> Option<Configuration> {
        match self.compression {
            Compression::Absent | Compression::Off => None,
            _ => Some(Configuration { compression: Compression::Off, ..self.clone() }),
        }
    }
}

/// The configurations of these servers: each with compression off and at `level`, and at the levels of the sweep. What
/// is compared most closely stands side by side. Of a user's server it is not known yet whether it can compress.
pub fn all(servers: &[ServerChoice], level: u32, sweep: &[u32]) -> Vec<Configuration> {
    let mut configurations = Vec::new();
    for server in servers {
        let mut add = |compression| {
            configurations.push(Configuration { server: server.to_string(), compression });
        };
        match server {
            ServerChoice::Own(name) if ["mysql-8.0.15", "mysql-5.7.22"].contains(&name.as_str()) => {
                add(Compression::Absent);
            }
            ServerChoice::Own(name) if name.starts_with("mariadb") => {
                add(Compression::Off);
                add(Compression::Events);
            }
            // There the variable has no effect: MySQL's bug 34833913.
            ServerChoice::Own(name) if name == "mysql-8.0.31" => {
                add(Compression::Off);
                add(Compression::Zstd(level));
            }
            _ => {
                add(Compression::Off);
                add(Compression::Zstd(level));
                sweep
                    .iter()
                    .filter(|other| **other != level)
                    .for_each(|other| add(Compression::Zstd(*other)));
            }
        }
    }
    configurations
}

/// The variables that bring it about, in order.
///
/// # Errors
/// When a server of that kind cannot.
pub fn variables(compression: Compression, kind: ServerKind) -> anyhow::Result<Vec<(&'static str, String)>> {
    const SWITCH: &str = "binlog_transaction_compression";
    Ok(match (compression, kind) {
        (Compression::Absent, _) => Vec::new(),
        (Compression::Off, ServerKind::MariaDb) => vec![("log_bin_compress", "0".to_owned())],
        (Compression::Off, ServerKind::MySql) => vec![(SWITCH, "0".to_owned())],
        // The stock workload's events are shorter than the default of 256 bytes below which nothing is compressed.
        (Compression::Events, ServerKind::MariaDb) => {
            vec![("log_bin_compress_min_len", "10".to_owned()), ("log_bin_compress", "1".to_owned())]
        }
        (Compression::Zstd(level), ServerKind::MySql) => {
            vec![("binlog_transaction_compression_level_zstd", level.to_string()), (SWITCH, "1".to_owned())]
        }
        _ => bail!("{compression} is not known to {kind}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_configuration_is_known_by_its_name() {
        let servers: Vec<ServerChoice> = ["mysql:8.0.15", "mysql:9.7", "mariadb:11.8", "mysql://u@db:1"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        let all = all(&servers, 3, &[1, 3, 19]);
        assert_eq!(all.len(), 1 + 4 + 2 + 4);
        for one in &all {
            assert_eq!(one.to_string().parse::<Configuration>().unwrap(), *one);
        }
        assert_eq!(all[2].to_string(), "mysql-9.7, zstd level 3");
        assert_eq!(all[2].uncompressed().as_ref(), Some(&all[1]));
        assert_eq!(all[0].uncompressed(), None);
        assert!("mysql-9.7, zstd level".parse::<Configuration>().is_err());
        assert_eq!(super::all(&["mysql:8.0".parse().unwrap()], 3, &[1, 3, 19]).len(), 2);
    }
}
