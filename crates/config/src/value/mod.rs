//! Texts with a grammar of their own: names, addresses, places to start.

pub mod duration;
pub(crate) mod point;
pub(crate) mod privileges;
pub(crate) mod space;

use std::fmt;
use std::path::{Path, PathBuf};

use codec::BinlogName;
use codec::gtid::{GtidSet, MariadbGtidState};

pub use point::{Point, PointPlace};
pub use privileges::Privileges;
pub use space::DiskWarn;

/// Port of a source when none is given.
const DEFAULT_PORT: u16 = 3306;
/// Characters of a source's name.
const NAME_CHARS_MAX: usize = 64;

/// Address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPort {
    /// Host name, IPv4 address, or IPv6 address without brackets.
    pub host: String,
    /// TCP port, 1..=65535.
    pub port: u16,
}

impl fmt::Display for HostPort {
    /// `host:port`, with brackets around an IPv6 address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.starts_with('/') {
            // A socket of this machine.
            f.write_str(&self.host)
        } else if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Where to begin while nothing has been copied from a source yet. Once there is a copy, binlogd continues it.
///
/// A copy holds whole files only, so every choice begins at the start of one of the source's files: that is what
/// makes each sealed file byte-identical to the source's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// Continue; with an empty folder, as `Earliest`.
    Resume,
    /// At the oldest file that the source still has.
    Earliest,
    /// At the start of the file that the source is writing now.
    Latest,
    /// At the start of the file that holds the first transaction outside this GTID set. The text as given, of MySQL's or
    /// MariaDB's shape.
    Gtid(String),
    /// At the start of this file.
    File {
        /// The source's name for it, for example `binlog.000042`.
        name: String,
        /// The position the operator gave, at least 4. It is only checked against the file: copying begins at the file's start.
        position: u64,
    },
}

/// Whether `text` can name a source, and so a folder and a label of a metric.
pub fn is_name(text: &str) -> bool {
    (1..=NAME_CHARS_MAX).contains(&text.len())
        && !text.starts_with('.')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// `path` seen from `base`, without the `./` that operators like to write.
pub fn below(base: &Path, path: &str) -> PathBuf {
    let path = Path::new(path);
    if base.as_os_str().is_empty() {
        path.to_owned()
    } else {
        base.join(path.strip_prefix(".").unwrap_or(path))
    }
}

/// Reads `host`, `host:port`, `[ipv6]` or `[ipv6]:port`. The error completes the sentence "`text` …".
pub fn parse_host_port(text: &str) -> Result<HostPort, &'static str> {
    if text.contains(['@', '/']) {
        return Err("is not host:port alone: user and password have keys of their own");
    }
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or("lacks the closing bracket")?;
        if host.parse::<std::net::Ipv6Addr>().is_err() {
            return Err("has no IPv6 address between the brackets");
        }
        match rest.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if rest.is_empty() => (host, None),
            None => return Err("has something other than a port after the bracket"),
        }
    } else if text.matches(':').count() > 1 {
        return Err("is an IPv6 address without brackets: write [::1]:3306");
    } else {
        match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    if host.is_empty() {
        return Err("has no host");
    }
    if host.contains(|c: char| c.is_whitespace() || c.is_control() || "?#,\"'".contains(c)) {
        return Err("is not host:port: a host name holds no blank, comma, ?, # or quote");
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            port.parse().ok().filter(|port| *port > 0).ok_or("has a port outside 1 to 65535")?
        }
        Some(_) => return Err("has a port that is not a number"),
    };
    Ok(HostPort { host: host.to_owned(), port })
}

/// Reads where to begin. The error completes the sentence "`text` …".
pub fn parse_start(text: &str) -> Result<Start, String> {
    match text {
        "resume" => return Ok(Start::Resume),
        "earliest" => return Ok(Start::Earliest),
        "latest" => return Ok(Start::Latest),
        _ => {}
    }
    if let Some(set) = text.strip_prefix("gtid:") {
        return match gtid_set_error(set) {
            None => Ok(Start::Gtid(set.to_owned())),
            Some(error) => Err(error),
        };
    }
    if let Some(rest) = text.strip_prefix("file:") {
        let (name, position) =
            rest.rsplit_once(':').ok_or("lacks the position: write file:<name>:<position>")?;
        if BinlogName::parse(name).is_err() {
            return Err("needs the bare name of a binlog file, as in file:binlog.000042:4".to_owned());
        }
        let position = position
            .parse()
            .ok()
            .filter(|position| *position >= 4)
            .ok_or("needs a position of at least 4, which is where the first event of a file stands")?;
        return Ok(Start::File { name: name.to_owned(), position });
    }
    Err("must be resume, earliest, latest, gtid:<set> or file:<name>:<position>".to_owned())
}

/// What keeps `set` from being a GTID set of MySQL or a GTID position of MariaDB that holds something, or `None`.
fn gtid_set_error(set: &str) -> Option<String> {
    // Only MySQL's form has colons: uuid:1-100 against 0-1-100.
    let parsed = if set.contains(':') {
        set.parse().map(|set: GtidSet| set.is_empty())
    } else {
        set.parse().map(|state: MariadbGtidState| state.is_empty())
    };
    match parsed {
        Ok(false) => None,
        Ok(true) => Some("holds no transaction: to begin with the oldest file, write earliest".to_owned()),
        Err(error) => Some(format!("is not a GTID set: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_safe_folders() {
        for good in ["a", "db-1.eu_west", "default", "1", &"x".repeat(64)] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", ".", "..", ".hidden", "a/b", "a b", "é", "a\n", &"x".repeat(65)] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }

    #[test]
    fn hosts_with_and_without_port() {
        let host = |host: &str, port| Ok(HostPort { host: host.to_owned(), port });
        assert_eq!(parse_host_port("db1"), host("db1", 3306));
        assert_eq!(parse_host_port("db1:13306"), host("db1", 13306));
        assert_eq!(parse_host_port("10.0.0.1:1"), host("10.0.0.1", 1));
        assert_eq!(parse_host_port("[::1]"), host("::1", 3306));
        assert_eq!(parse_host_port("[fe80::1]:65535"), host("fe80::1", 65535));
        for bad in [
            "",
            ":3306",
            "db1:",
            "db1:0",
            "db1:65536",
            "db1:+1",
            "db1:x",
            "::1",
            "[::1",
            "[::1]x",
            "[db]:1",
            "a b",
        ] {
            assert!(parse_host_port(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn start_of_every_form() {
        let uuid = "3E11FA47-71CA-11E1-9E33-C80AA9429562";
        for set in [
            format!("{uuid}:1-5"),
            format!("{uuid}:1"),
            format!("{uuid}:1-5:7:9-11"),
            format!("{uuid}:1-5:mytag:1-3:7, {uuid}:tag_2:4"),
            "0-1-100".to_owned(),
            "0-1-100,1-4294967295-18446744073709551615".to_owned(),
        ] {
            assert_eq!(parse_start(&format!("gtid:{set}")), Ok(Start::Gtid(set)));
        }
        assert_eq!(
            parse_start("file:mysql-bin.000007:1234"),
            Ok(Start::File { name: "mysql-bin.000007".to_owned(), position: 1234 })
        );
        for bad in [
            "".to_owned(),
            "Latest".to_owned(),
            "gtid:".to_owned(),
            format!("gtid:{uuid}"),
            format!("gtid:{uuid}:5-1"),
            format!("gtid:{uuid}:0"),
            format!("gtid:{uuid}:1,0-1-2"),
            "gtid:0-1".to_owned(),
            "gtid:0-4294967296-1".to_owned(),
            "file:binlog.000001".to_owned(),
            "file:binlog.000001:3".to_owned(),
            "file:/var/lib/mysql/binlog.000001:4".to_owned(),
            "file::4".to_owned(),
            "file:binlog:4".to_owned(),
        ] {
            assert!(parse_start(&bad).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text: String) {
            let _ = (is_name(&text), parse_host_port(&text), parse_start(&text));
            let _ = parse_start(&format!("gtid:{text}"));
            let _ = parse_start(&format!("file:{text}"));
        }

        #[test]
        fn an_address_reads_back_as_written(host in "[a-z0-9.-]{1,40}", port in 1u16..) {
            let address = HostPort { host, port };
            prop_assert_eq!(parse_host_port(&address.to_string()), Ok(address));
        }
    }
}
