//! One MariaDB GTID.

use super::error::GtidError;
use super::mysql::decimal;
use std::{fmt, str::FromStr};

const EXPECTED: &str = "a MariaDB GTID such as 0-1-100 (domain, server id, sequence number)";

/// The global transaction identifier of MariaDB: `domain-server-sequence`. Source: MariaDB manual, "Global Transaction ID".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MariadbGtid {
    /// Replication domain: an independent stream. Sequence numbers of different domains are unrelated.
    pub domain: u32,
    /// `server_id` of the server on which the transaction was first committed.
    pub server_id: u32,
    /// Sequence number. One counter for the whole domain, so that it normally grows over changes of the server; only
    /// `gtid_strict_mode` makes the server refuse one that does not.
    pub sequence: u64,
}

impl fmt::Display for MariadbGtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.domain, self.server_id, self.sequence)
    }
}

impl FromStr for MariadbGtid {
    type Err = GtidError;

    fn from_str(text: &str) -> Result<MariadbGtid, GtidError> {
        parse(text).ok_or_else(|| GtidError::text(EXPECTED, text))
    }
}

fn parse(text: &str) -> Option<MariadbGtid> {
    let mut parts = text.split('-').map(decimal);
    let domain = parts.next()??.try_into().ok()?;
    let server_id = parts.next()??.try_into().ok()?;
    let sequence = parts.next()??;
    parts.next().is_none().then_some(MariadbGtid { domain, server_id, sequence })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trip() {
        for text in ["0-1-100", "4294967295-4294967295-18446744073709551615", "0-0-0"] {
            assert_eq!(text.parse::<MariadbGtid>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            "0",
            "0-1",
            "0-1-",
            "0-1-2-3",
            "-0-1-2",
            "4294967296-1-1",
            "0-+1-2",
            "0-1-0x2",
            " 0-1-2",
            "0-1-18446744073709551616",
        ] {
            assert!(text.parse::<MariadbGtid>().is_err(), "{text}");
        }
    }
}
