//! Whether what is to be applied fits the disk of the target, where that is a disk of this machine.

use crate::restore::target::{Target, is_by_socket};
use status::{DiskSpace, units};
use std::fmt;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;
use wire::ConnectOptions;

/// What is applied is written to the server's relay logs, to its own binary log, and to its tables, for which nobody knows how much
/// that comes to.
const TIMES: u64 = 2;

/// The file system of the target's data folder has less room than that takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Short {
    /// The data folder.
    pub datadir: String,
    /// Bytes that are free there.
    pub free: u64,
    /// Bytes that are to be applied.
    pub bytes: u64,
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} are free where {} lies on this machine, and {} are to be applied: they are written to the server's relay logs \
             and to its own binary log, and their rows to its tables",
            units::bytes(self.free),
            self.datadir,
            units::bytes(self.bytes)
        )
    }
}

/// Whether the disk is too small. A server does not tell of its disk, so nothing is known of one on another machine, whose address
/// is not ours (`own`).
pub(in crate::restore) fn short_of_space(
    target: &mut Target,
    options: &ConnectOptions,
    own: IpAddr,
    bytes: u64,
) -> Option<Short> {
    if !is_by_socket(options) {
        let mut addresses = (options.host.as_str(), options.port).to_socket_addrs().ok()?;
        if !addresses.any(|address| address.ip() == own) {
            return None;
        }
    }
    let datadir = target.datadir().ok()??;
    let free = DiskSpace::of(Path::new(&datadir)).ok()?.free;
    short_of(&datadir, free, bytes)
}

fn short_of(datadir: &str, free: u64, bytes: u64) -> Option<Short> {
    (free < bytes.saturating_mul(TIMES)).then(|| Short { datadir: datadir.to_owned(), free, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_too_small_is_told() {
        assert_eq!(short_of("/var/lib/mysql", 2 << 30, 1 << 30), None);
        let said = short_of("/var/lib/mysql", 1 << 30, 1 << 30).unwrap().to_string();
        assert!(said.starts_with("1.0 GiB are free where /var/lib/mysql lies"), "{said}");
        assert!(short_of("/", u64::MAX, u64::MAX).is_none(), "no overflow");
    }
}
