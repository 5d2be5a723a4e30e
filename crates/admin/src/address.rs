//! The file that tells where the daemon of a data folder answers.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use wire::Secret;

/// In the answer of `/healthz`: whose health it is, so that who asks for one daemon is not answered by another that has
/// taken over its port.
pub const DATA_DIR_HEADER: &str = "binlogd-data-dir";
/// Stands there for a folder whose name a header cannot hold, or is not told to who has not logged in.
pub const DATA_DIR_UNTOLD: &str = "?";
/// Likewise: the level of the verdict on all, as JSON has it.
pub const LEVEL_HEADER: &str = "binlogd-level";
/// Name of the file in the data folder: one line, the address as `host:port`.
pub const ADDRESS_FILE: &str = "admin.address";
/// Beside it, where the address asks for a token: one line, the token. Who may read the data folder may ask.
const TOKEN_FILE: &str = "admin.token";
/// Longer files are not ours.
const ADDRESS_BYTES_MAX: u64 = 128;

/// `<data_dir>/admin.address` while a daemon runs. Dropping it removes the file.
///
/// After a crash of the daemon an old file remains. A reader therefore treats it as a hint: it asks the address, and
/// checks that the answer is about the same data folder.
#[derive(Debug)]
pub struct AddressFile {
    path: PathBuf,
}

impl AddressFile {
    /// Writes the file, replacing an old one whole, so that no reader sees half an address. An unspecified address
    /// such as `0.0.0.0` is written as the loopback address of its family, because a client cannot connect to it.
    pub fn publish(data_dir: &Path, address: SocketAddr, token: Option<&Secret>) -> io::Result<AddressFile> {
        let token_path = data_dir.join(TOKEN_FILE);
        match token {
            Some(token) => write_whole(&token_path, token.expose())?,
            None => drop(std::fs::remove_file(&token_path)),
        }
        let path = data_dir.join(ADDRESS_FILE);
        write_whole(&path, &reachable(address).to_string())?;
        Ok(AddressFile { path })
    }

    /// The token to show at the address in the file; `None` where none is asked for.
    pub fn token(data_dir: &Path) -> Option<Secret> {
        let path = data_dir.join(TOKEN_FILE);
        let metadata = path.metadata().ok()?;
        if !metadata.is_file() || metadata.len() > ADDRESS_BYTES_MAX {
            return None;
        }
        std::fs::read_to_string(path).ok().map(|text| Secret::new(text.trim()))
    }

    /// The address in the file; `None` when there is no file or it holds no address.
    pub fn read(data_dir: &Path) -> Option<SocketAddr> {
        let path = data_dir.join(ADDRESS_FILE);
        let metadata = path.metadata().ok()?;
        if !metadata.is_file() || metadata.len() > ADDRESS_BYTES_MAX {
            return None;
        }
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the file with the admin address");
        }
        let _ = std::fs::remove_file(self.path.with_file_name(TOKEN_FILE)); // As a rule there is none.
    }
}

/// Writes a file of one line whole, so that nobody sees half of it. Like everything in the data folder it is its owner's only,
/// whatever the umask.
fn write_whole(path: &Path, line: &str) -> io::Result<()> {
    let temporary = path.with_extension("new");
    match std::fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {} // One that a crash left behind.
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    writeln!(file, "{line}")?;
    std::fs::rename(&temporary, path)
}

/// The address that a client on this machine connects to.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_holds_a_reachable_address_and_goes_with_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(AddressFile::read(folder.path()), None);
        for (listen, connect) in
            [("127.0.0.1:9306", "127.0.0.1:9306"), ("0.0.0.0:1", "127.0.0.1:1"), ("[::]:2", "[::1]:2")]
        {
            let file = AddressFile::publish(folder.path(), listen.parse().unwrap(), None).unwrap();
            assert_eq!(AddressFile::read(folder.path()), Some(connect.parse().unwrap()));
            drop(file);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_token_is_for_its_owner_alone_and_goes_too() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let token = Secret::new("abc");
        let file = AddressFile::publish(folder.path(), "127.0.0.1:7".parse().unwrap(), Some(&token)).unwrap();
        assert_eq!(AddressFile::token(folder.path()), Some(token));
        let mode = folder.path().join(TOKEN_FILE).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(file);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_is_not_an_address_is_no_hint() {
        let folder = tempfile::tempdir().unwrap();
        for content in ["", "nonsense", &"1".repeat(4096)] {
            std::fs::write(folder.path().join(ADDRESS_FILE), content).unwrap();
            assert_eq!(AddressFile::read(folder.path()), None);
        }
    }
}
