//! The port at which the target reads, and how far it is sent.

use crate::history::Copied;
use anyhow::Context;
use binlog::storage::posix::PosixStorage;
use codec::rows::hex;
use config::{Bounds, Point, Privileges, Proof, RetentionConfig, ServeConfig, ServeUser};
use serve::retention::Purger;
use serve::{Place, ReceiverSwitch, ServeServer, Source, Users};
use status::SourceMonitor;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use wire::Secret;

/// The account of the target.
const USER: &str = "binlogd_restore";

/// The target's receiver, and what it leaves behind when it comes again.
const CONNECTIONS_MAX: u32 = 8;

/// Failed logins within a minute after which an address is refused.
const FAILED_LOGINS_MAX: u32 = 10;

/// Longest statement, in bytes: a set of GTIDs may be in it.
const STATEMENT_BYTES_MAX: u32 = 16 << 20;

/// A port that sends a copy up to a point. It is closed when this is dropped.
pub(in crate::restore) struct Stream {
    server: ServeServer,
    /// Known to the target alone.
    password: String,
    is_encrypted: bool,
}

/// Nothing is received here.
struct NoReceiver;

impl ReceiverSwitch for NoReceiver {
    fn stop(&self, _by: &str, _again: &str) -> bool {
        false
    }

    fn start(&self, _by: &str) -> bool {
        false
    }
}

impl Stream {
    /// Opens the port `listen`, at which the target gets `copied` up to the transaction at `stop`, which it does not get; all of it
    /// for `None`. What is encrypted is shown the certificate in `data_dir`. `encrypts`: nothing is sent in clear. `has_gtids`: whether
    /// its transactions have GTIDs.
    ///
    /// # Errors
    /// When the port cannot be had.
    pub(in crate::restore) fn open(
        copied: &Copied,
        stop: Option<Point>,
        listen: SocketAddr,
        data_dir: &Path,
        encrypts: bool,
        has_gtids: bool,
    ) -> anyhow::Result<Stream> {
        let password = made_up_word()?;
        let config = ServeConfig {
            listen: Some(listen),
            tls: None,
            auto_generate_certs: encrypts,
            require_tls: encrypts,
            max_connections: CONNECTIONS_MAX,
            max_failed_logins: FAILED_LOGINS_MAX,
            max_statement_bytes: STATEMENT_BYTES_MAX,
            slots: false,
            users: vec![ServeUser {
                name: USER.to_owned(),
                proof: Proof::Password(Secret::new(password.clone())),
                sources: vec![copied.name.clone()],
                privileges: Privileges::READ,
                slot: None,
                bounds: Bounds { stop_before: stop, stop_after: None, delay: Duration::ZERO },
            }],
        };
        let users = Users::new(&config, &[]);
        let place = Place { listen, storage: Arc::new(PosixStorage), data_dir: data_dir.to_owned() };
        let server = ServeServer::start(place, &config, users, CONNECTIONS_MAX)
            .with_context(|| format!("the port at which the target reads, {listen}"))?;
        let purger = Purger::new(
            &copied.name,
            copied.folder.clone(),
            copied.storage.clone(),
            copied.published.clone(),
            RetentionConfig::default(),
            Arc::default(),
        );
        let monitor = Arc::new(SourceMonitor::new(&copied.name));
        // A replica without GTIDs takes nothing from a source with them, and the other way round. Nobody asks the source here.
        let mode = if has_gtids { "ON" } else { "OFF" };
        monitor.update_facts(|facts| facts.settings = [("gtid_mode".to_owned(), mode.to_owned())].into());
        let source = Source {
            folder: copied.folder.clone(),
            storage: copied.storage.clone(),
            published: copied.published.clone(),
            monitor,
            user: USER.to_owned(),
            purger: Arc::new(purger),
            switch: Arc::new(NoReceiver),
            // A physical backup has the source's own UUID, and a server does not read from itself.
            quorum: None,
            uuid: Some(made_up_uuid()?),
        };
        server.shared().add_source(&copied.name, source);
        Ok(Stream { server, password, is_encrypted: encrypts })
    }

    /// Where it listens.
    pub(in crate::restore) fn address(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// The account of the target.
    pub(in crate::restore) fn user(&self) -> &'static str {
        USER
    }

    pub(in crate::restore) fn password(&self) -> &str {
        &self.password
    }

    /// Whether it takes nothing but encrypted connections.
    pub(in crate::restore) fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }
}

fn random<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).context("the system gives no random bytes")?;
    Ok(bytes)
}

fn made_up_word() -> anyhow::Result<String> {
    // MySQL takes 32 characters for the password of a source.
    Ok(hex(&random::<16>()?))
}

fn made_up_uuid() -> anyhow::Result<String> {
    let mut bytes = random::<16>()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = hex(&bytes);
    Ok(format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]))
}
