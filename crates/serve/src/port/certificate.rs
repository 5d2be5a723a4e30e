//! The certificate that clients are shown: the configured one, or one that is made at the first start, as MySQL does. Clients
//! of MySQL 9 and of MariaDB 11.4 encrypt unless they are told not to.

use super::error::ServeError;
use binlog::storage::Storage;
use binlog::timeline::index::replace_file;
use config::ServeConfig;
use jiff::{Timestamp, ToSpan, Zoned};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use wire::{Day, MadeCertificate, ServerTls};

/// In the data folder, with MySQL's names: what clients check the certificate by, if they check it.
const CA_FILE: &str = "ca.pem";
const CERT_FILE: &str = "server-cert.pem";
const KEY_FILE: &str = "server-key.pem";

/// How long one is valid, as those that MySQL makes.
const VALID_YEARS: i64 = 10;

/// What clients that encrypt are shown.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) tls: ServerTls,
    is_made: bool,
}

impl Shown {
    /// The configured certificate, or the one that is in the data folder, which is made where there is none. `None` where that
    /// is switched off.
    ///
    /// # Errors
    /// When the configured one cannot be used. One that is made can always be had, if need be for this run only: the copy
    /// matters more than its readers.
    pub(crate) fn of(
        config: &ServeConfig,
        listen: SocketAddr,
        storage: &dyn Storage,
        data_dir: &Path,
    ) -> Result<Option<Shown>, ServeError> {
        if let Some((cert, key)) = &config.tls {
            let tls = ServerTls::load(cert, key).map_err(ServeError::Tls)?;
            return Ok(Some(Shown { tls, is_made: false }));
        }
        if !config.auto_generate_certs {
            return Ok(None);
        }
        let tls = match kept(storage, data_dir) {
            Ok(Some(tls)) => tls,
            Ok(None) => made(listen, storage, data_dir)?,
            Err(why) => {
                tracing::error!(
                    "[serve]: {why}. Readers are shown a certificate of this run only. Make {CERT_FILE} and {KEY_FILE} in {} \
                     usable for binlogd's account again, or remove {CERT_FILE} alone: the next start makes others",
                    data_dir.display()
                );
                ServerTls::from_pem_of(&new(listen)?)?
            }
        };
        Ok(Some(Shown { tls, is_made: true }))
    }

    /// Until when it is valid.
    pub(crate) fn expires(&self) -> Option<Timestamp> {
        self.tls.expires().and_then(|second| Timestamp::from_second(second).ok())
    }

    /// Where it comes from, as the status says it.
    pub(crate) fn origin(&self) -> &'static str {
        if self.is_made { "self-made" } else { "configured" }
    }
}

/// The one that was made before; `None` when there is none.
fn kept(storage: &dyn Storage, data_dir: &Path) -> Result<Option<ServerTls>, String> {
    let (cert, key) = (data_dir.join(CERT_FILE), data_dir.join(KEY_FILE));
    // The certificate is written last: without it nothing was finished.
    match storage.exists(&cert) {
        Ok(true) => ServerTls::load(&cert, &key).map(Some).map_err(|error| error.to_string()),
        Ok(false) => Ok(None),
        Err(error) => Err(format!("{} cannot be looked at: {error}", cert.display())),
    }
}

fn made(listen: SocketAddr, storage: &dyn Storage, data_dir: &Path) -> Result<ServerTls, ServeError> {
    let made = new(listen)?;
    match keep(&made, storage, data_dir) {
        Ok(()) => tracing::info!(
            "made a certificate for readers, in {}: {CA_FILE} is for clients that are to check it",
            data_dir.join(CERT_FILE).display()
        ),
        Err(error) => tracing::error!(
            "[serve]: the certificate that was made for readers cannot be kept in {}: {error}. It is that of this run only",
            data_dir.display()
        ),
    }
    ServerTls::from_pem_of(&made)
}

/// # Errors
/// When they cannot be written, or a file of one of the names is there that was not made here.
fn keep(made: &MadeCertificate, storage: &dyn Storage, data_dir: &Path) -> io::Result<()> {
    let is_there = |name: &str| storage.exists(&data_dir.join(name));
    // Each that was made has its key, which is written first.
    if is_there(CA_FILE)? && !is_there(KEY_FILE)? {
        let why = format!("there is a {CA_FILE} that binlogd has not made, which is left alone");
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    }
    for (name, text) in [(KEY_FILE, &made.key), (CA_FILE, &made.ca), (CERT_FILE, &made.cert)] {
        replace_file(storage, &data_dir.join(name), text.as_bytes())?;
    }
    Ok(())
}

fn new(listen: SocketAddr) -> Result<MadeCertificate, ServeError> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let uname = rustix::system::uname();
    let host = uname.nodename().to_str().unwrap_or_default();
    if !host.is_empty() && host.is_ascii() {
        names.push(host.to_owned());
    }
    if !listen.ip().is_unspecified() {
        names.push(listen.ip().to_canonical().to_string());
    }
    names.dedup();
    let today = Zoned::now();
    let day = |date: &Zoned| -> Day {
        // February 29 of a year that has none would be no day: the 28th is one in all.
        (date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs().min(28))
    };
    let until = today.checked_add(VALID_YEARS.years()).unwrap_or_else(|_| today.clone());
    // Clocks differ, and so do zones.
    let from = today.checked_sub(2.days()).unwrap_or_else(|_| today.clone());
    MadeCertificate::make(&names, day(&from), day(&until)).map_err(ServeError::Tls)
}

trait FromMade: Sized {
    fn from_pem_of(made: &MadeCertificate) -> Result<Self, ServeError>;
}

impl FromMade for ServerTls {
    fn from_pem_of(made: &MadeCertificate) -> Result<ServerTls, ServeError> {
        ServerTls::from_pem(&made.cert, &made.key).map_err(ServeError::Tls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::storage::posix::PosixStorage;
    use config::Config;
    use std::os::unix::fs::PermissionsExt;

    fn serve(lines: &str) -> ServeConfig {
        let text = format!("[serve]\n{lines}\n[[source]]\nhosts = ['h']\nuser = 'u'\n");
        Config::parse(&text, Path::new("b.toml"), &|_| None).unwrap().config.serve
    }

    /// It may be what the source's certificate is checked by.
    #[test]
    fn the_certificate_of_somebody_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(CA_FILE), "theirs").unwrap();
        let listen = "10.1.2.3:3307".parse().unwrap();
        let shown = Shown::of(&serve("listen = '10.1.2.3:3307'"), listen, &PosixStorage, folder.path());
        assert!(shown.unwrap().is_some_and(|shown| shown.is_made));
        assert_eq!(std::fs::read_to_string(folder.path().join(CA_FILE)).unwrap(), "theirs");
        assert!(!folder.path().join(CERT_FILE).exists() && !folder.path().join(KEY_FILE).exists());
    }

    #[test]
    fn one_is_made_and_kept_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let listen = "10.1.2.3:3307".parse().unwrap();
        let shown = |lines: &str| Shown::of(&serve(lines), listen, &PosixStorage, folder.path()).unwrap();
        assert!(shown("auto_generate_certs = false").is_none());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(shown("").unwrap().origin(), "self-made");
        let read =
            || [CA_FILE, CERT_FILE, KEY_FILE].map(|name| std::fs::read(folder.path().join(name)).unwrap());
        let first = read();
        let days =
            (shown("").unwrap().expires().unwrap().as_second() - Timestamp::now().as_second()) / 86_400;
        assert!((3_640..3_655).contains(&days), "{days} days");
        for name in [CA_FILE, CERT_FILE, KEY_FILE] {
            let mode = folder.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{name}");
        }
        shown("").unwrap();
        assert!(first == read(), "it stays the same");
        std::fs::remove_file(folder.path().join(CERT_FILE)).unwrap();
        shown("").unwrap();
        assert!(first != read(), "one that is removed is made anew");
        // A key that does not fit: readers are served all the same, and the files stay for the operator.
        std::fs::write(folder.path().join(KEY_FILE), &first[2]).unwrap();
        let broken = read();
        assert!(shown("").is_some() && broken == read());
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_keeps_nobody_from_reading() {
        let gone = Path::new("/proc/no-such-folder");
        let listen = "[::]:3307".parse().unwrap();
        assert!(Shown::of(&serve(""), listen, &PosixStorage, gone).unwrap().is_some());
    }
}
