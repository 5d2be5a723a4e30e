//! The source's side of semi-sync, under the names that MySQL and MariaDB have for it.

use std::time::{Duration, Instant};

use crate::common::Server;
use codec::ServerKind;

/// Longest wait for the source to notice that binlogd has come or gone.
const NOTICE_MAX: Duration = Duration::from_secs(30);

/// The settings and counters of one server.
pub struct SemiSync<'a> {
    server: &'a Server,
    /// `source` or, with MariaDB, `master`: the middle of all its names.
    role: &'static str,
}

/// `SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source_%'` at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SemiSyncCounters {
    /// Whether the source waits for acknowledgements; OFF after a wait that took longer than the timeout.
    pub on: bool,
    /// Replicas that acknowledge.
    pub clients: u64,
    /// Commits that were acknowledged. MySQL counts the transactions that one sync of its binary log covers as one.
    pub yes_tx: u64,
    /// Commits that were not.
    pub no_tx: u64,
    /// Packets that asked for an acknowledgement.
    pub asked: u64,
    /// Acknowledgements that arrived; MySQL does not count them.
    pub received: Option<u64>,
}

impl<'a> SemiSync<'a> {
    /// Switches it on. From now on every statement that writes waits up to `timeout` for binlogd: what is needed without
    /// it must have been made before.
    pub fn enable(server: &'a Server, timeout: Duration) -> Self {
        let semi_sync = Self::of(server);
        semi_sync.set_timeout(timeout);
        server.sql(&format!("SET GLOBAL rpl_semi_sync_{}_enabled = 1", semi_sync.role));
        semi_sync
    }

    /// Of a server on which it was switched on before.
    pub fn of(server: &'a Server) -> Self {
        let role = if server.kind() == ServerKind::MariaDb { "master" } else { "source" };
        Self { server, role }
    }

    /// How long a commit waits before the source falls back to asynchronous replication. Holds from the next commit on.
    pub fn set_timeout(&self, timeout: Duration) {
        let (role, milliseconds) = (self.role, timeout.as_millis());
        self.server.sql(&format!("SET GLOBAL rpl_semi_sync_{role}_timeout = {milliseconds}"));
    }

    /// Switches it on or off, with whoever is attached.
    pub fn set_enabled(&self, on: bool) {
        let (role, value) = (self.role, u8::from(on));
        self.server.sql(&format!("SET GLOBAL rpl_semi_sync_{role}_enabled = {value}"));
    }

    pub fn counters(&self) -> SemiSyncCounters {
        let rows = self.server.sql("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync%'");
        let value = |name: &str| {
            let name = format!("Rpl_semi_sync_{}_{name}", self.role);
            let found = rows.lines().filter_map(|row| row.split_once('\t')).find(|(key, _)| *key == name);
            found.unwrap_or_else(|| panic!("no {name} in\n{rows}")).1
        };
        let mariadb = self.role == "master";
        let number = |name| value(name).parse().expect("a number");
        SemiSyncCounters {
            on: value("status") == "ON",
            clients: number("clients"),
            yes_tx: number("yes_tx"),
            no_tx: number("no_tx"),
            asked: number(if mariadb { "request_ack" } else { "net_waits" }),
            received: mariadb.then(|| number("get_ack")),
        }
    }

    /// Waits until the counters are as wanted.
    #[track_caller]
    pub fn wait_until(&self, wanted: impl Fn(&SemiSyncCounters) -> bool) -> SemiSyncCounters {
        let deadline = Instant::now() + NOTICE_MAX;
        loop {
            let counters = self.counters();
            if wanted(&counters) {
                return counters;
            }
            assert!(Instant::now() < deadline, "not within {NOTICE_MAX:?}: {counters:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until binlogd is attached and the source waits for it.
    #[track_caller]
    pub fn wait_attached(&self) -> SemiSyncCounters {
        self.wait_until(|counters| counters.on && counters.clients == 1)
    }
}
