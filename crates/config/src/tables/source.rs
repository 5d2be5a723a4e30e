//! A `[[source]]` table: a server whose binlog is copied.

use super::super::entry::{Entry, Unread};
use super::super::error::{Findings, Place};
use super::super::key::ReloadEffect::{AtOnce, NextEmptyFolder, Reconnect, Restart};
use super::super::key::{DAY, HOUR, Kind, MINUTE, Section};
use super::super::key::{default, implied, ms, required, unset};
use super::super::table::{table, words};
use super::super::value::{HostPort, Start};
use super::password::{self, Environment, Origins, Password};
use super::tls;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use wire::{Secret, TlsMode, TlsOptions};

table! {
    /// A server to copy. Repeat this table for each further one.
    struct SourceConfig, SourceKeys for Section::Source, Reconnect;

    /// Name of the source in status and metrics, and of its folder below data_dir. With several sources each
    /// needs its own. It does not follow from the host, so that a copy stays where it is when the source
    /// moves.
    name: String = default("\"default\"").flag("name").kind(Kind::NAME).on_reload(Restart);
    /// Addresses of the source, tried in order; several when a failover can move it. A host that is
    /// read-only, or that lacks what the copy holds, is taken only when no better one is found. Without a
    /// port: 3306.
    hosts: Vec<HostPort> = required("[\"127.0.0.1:3306\"]");
    /// Ports for readers ([serve] listen) of other binlogds of this source. They are asked for what they have
    /// and this copy lacks when the source is gone, before another server is followed, and before a gap
    /// counts, with user, password and tls of this source. They are never taken for the source. Until they
    /// have answered, [retention] keeps the end of older timelines. Without a port: 3306.
    peers: Vec<HostPort> = unset("[\"binlogd2:3307\"]").flag("peers");
    /// Account on the source. It needs REPLICATION SLAVE.
    user: String = required("\"repl\"");
    /// Its password, from whichever key or variable gave it; empty for an account without one.
    field password: Secret;
    /// The file that it was read from. It is read again at each connection, so that a new password in it counts from then on.
    field password_file: Option<PathBuf>;
    /// Its password: at most one of these three keys. Without them the environment variable BINLOGD_PASSWORD
    /// counts, and without that the account has none. A file with a password should have mode 0600.
    key password: Unread = unset("\"secret\"").kind(Kind::SECRET), at password;
    /// File that holds the password and nothing else; a newline at its end does not count. It is read again
    /// at each connection.
    key password_file: Unread = unset("\"binlogd.password\"")
        .flag("password-file").kind(Kind::PATH), at password_file;
    /// Environment variable that holds the password.
    key password_env: Unread = unset("\"REPL_PASSWORD\"");
    /// Replication server id, unique among the source and all its replicas. Without it binlogd chooses one at
    /// random and remembers it.
    server_id: Option<u32> = unset("4100000001").flag("server-id").range(1, 4_294_967_295);
    /// Where to begin while nothing has been copied from this source. Once there is a copy, binlogd continues
    /// it, whatever stands here: a restart neither skips nor repeats anything.
    ///
    /// The copy holds whole files, so that each finished file is byte-identical to the source's. Every choice
    /// therefore begins at the start of one of the source's files:
    ///   resume                   the oldest file that the source still has
    ///   earliest                 the same, said outright
    ///   latest                   the file that the source is writing now
    ///   gtid:<set>               the file of the first transaction outside the set, which is
    ///                            MySQL's (uuid:1-100) or a MariaDB position (0-1-100)
    ///   file:<name>:<position>   that file; the position is inside it, at least 4
    start: Start = default("\"resume\"").flag("start").on_reload(NextEmptyFolder);
    /// How safe a transaction must be before it is acknowledged.
    fsync_mode: FsyncMode = default("1").flag("fsync-mode");
    /// Longest time that received bytes stay unsynced when no acknowledgement asks for a sync: with
    /// fsync_mode = 0, and without semi-sync.
    fsync_interval: Duration = default("\"1s\"").flag("fsync-interval").lasting(ms(10), MINUTE);
    /// How many different receivers that read from this binlogd with semi-sync (a second binlogd, or
    /// replicas) must have confirmed a transaction before it is acknowledged to the source. 1: a commit
    /// returns when two machines have it. It needs listen in [serve]. A MySQL replica is as durable as its
    /// sync_relay_log, a binlogd as its fsync_mode.
    ack_after_replicas: u32 = default("0").flag("ack-after-replicas").range(0, 100);
    /// Ports for readers ([serve] listen) of the other binlogds of a quorum, as they are reached from here. All of
    /// them receive from the source, and each acknowledges what a majority of all, itself counted, has on
    /// stable storage: with two others a commit outlives any one of the three. They are asked with user,
    /// password and tls of this source, are peers where peers is not given, and need one another once, all
    /// of them, to begin. Without a port: 3306.
    quorum: Vec<HostPort> = unset("[\"binlogd2:3307\", \"binlogd3:3307\"]").flag("quorum").on_reload(Restart);
    /// How long these receivers are waited for before ack_timeout_action. The source's own semi-sync timeout
    /// runs all the same: for go_on choose less than that.
    ack_timeout: Duration = default("\"10s\"").flag("ack-timeout").lasting(ms(10), HOUR);
    /// What happens when they have not come by then. Either way the log, status and metrics say so.
    ack_timeout_action: AckTimeoutAction = default("\"wait\"").flag("ack-timeout-action");
    /// Without effect, and accepted so that a configuration which has it still loads. Leave it out.
    key busy_wait_us: u32 = default("0").flag("busy-wait-us").range(0, 10_000).on_reload(AtOnce);
    /// Whether to register as a semi-synchronous replica. A source without semi-sync is copied all the same,
    /// and status says so.
    semi_sync: bool = default("true").flag("semi-sync");
    /// How often a source with nothing to send says that it is alive.
    heartbeat_period: Duration = default("\"5s\"").flag("heartbeat-period").lasting(ms(100), HOUR);
    /// Silence after which the connection counts as lost. It must exceed heartbeat_period.
    net_read_timeout: Duration = default("\"15s\"").flag("net-read-timeout").lasting(ms(200), DAY);
    /// How often to look, over a second connection, whether the source waits for acknowledgements, and how
    /// many commits it told its clients of without one. While nothing arrives, one statement every 200 ms
    /// asks whether a commit waits. It needs no privilege and is no replica. "0s" switches it off: then only
    /// what arrives tells, and a source that gave up waiting for a short time is not noticed.
    watch_interval: Duration = default("\"1s\"").flag("watch-interval").lasting(ms(0), HOUR);
    /// Longest time for one attempt to connect and authenticate.
    connect_timeout: Duration = default("\"10s\"").flag("connect-timeout").lasting(ms(100), ms(600_000));
    /// Pause after the first failed attempt to connect. Each further pause is twice as long, up to
    /// backoff_max.
    backoff_min: Duration = default("\"100ms\"").flag("backoff-min").lasting(ms(10), HOUR);
    /// Longest pause between attempts while the source refuses or cuts connections: commits may wait for
    /// binlogd. Where a server tells it to go away (a wrong password, another replica with its server_id) the
    /// pauses grow from here up to 30 s. binlogd never gives up.
    backoff_max: Duration = default("\"500ms\"").flag("backoff-max").lasting(ms(10), HOUR);
    /// Protection of the connection.
    field tls: TlsOptions;
    /// Protection of the connection, as the MySQL client's --ssl-mode.
    key tls: TlsMode = default("\"preferred\"").flag("tls"), at tls.mode;
    /// PEM file of the certificate authorities to trust, for verify-ca and verify-full. Without it: the
    /// system's.
    key tls_ca: Option<PathBuf> = unset("\"ca.pem\"").flag("tls-ca"), at tls.ca;
    /// PEM file of the certificate to show to a source that asks for one; with tls_key.
    key tls_cert: Option<PathBuf> = unset("\"client-cert.pem\"").flag("tls-cert"), at tls.cert;
    /// PEM file of its private key.
    key tls_key: Option<PathBuf> = unset("\"client-key.pem\"").flag("tls-key"), at tls.key;
    /// What to do when the source has purged what was not copied yet, or cannot read it any more.
    on_gap: OnGap = default("\"stop\"").flag("on-gap");
    /// What to do when the source lacks transactions that the copy holds: it crashed and lost the end of its
    /// log, was put back to an earlier state, or was promoted without them. A source with relaxed settings
    /// wants withhold: it gives the GTIDs that it lost to its clients' next transactions.
    on_fork: OnFork = default("\"follow\"").flag("on-fork");
    /// What to do when another server answers with which the copy has no GTID in common: most often a wrong
    /// address or a proxy that leads elsewhere. A failover is none: a replica has the transactions of its
    /// source.
    on_stranger: OnStranger = default("\"refuse\"").flag("on-stranger");
    /// Whether the source's history is archived, where [archive] has a url; true where it is not given.
    archive: bool = implied("true", "false");
}

words! {
    /// How safe a transaction must be before it is acknowledged. The numbers are the configuration's.
    enum FsyncMode {
        /// written: survives a crash of binlogd, not of its machine
        WriteThenAcknowledge = "0",
        /// on stable storage: survives both
        SyncThenAcknowledge = "1",
    }
}

words! {
    /// What to do when receivers further down have not confirmed within `ack_timeout`.
    enum AckTimeoutAction {
        /// hold the acknowledgement until they have come; the source's own timeout decides
        Wait = "wait",
        /// acknowledge alone, and say so, until they have caught up
        GoOn = "go_on",
    }
}

words! {
    /// What to do when the source has purged transactions that were not copied, or cannot read them any more.
    enum OnGap {
        /// wait for an operator
        Stop = "stop",
        /// record what is missing and go on with the file after it
        Record = "record",
    }
}

words! {
    /// What to do when the source lacks transactions that the copy holds.
    enum OnFork {
        /// copy and acknowledge it, and say what it lacks
        Follow = "follow",
        /// copy it, and acknowledge nothing to it until it has been rescued or the loss is accepted
        Withhold = "withhold",
        /// wait for an operator
        Stop = "stop",
    }
}

words! {
    /// What to do when a server answers that has nothing in common with the copy.
    enum OnStranger {
        /// try again and again, until a server answers that has something in common with the copy
        Refuse = "refuse",
        /// begin a history of its own for it
        Follow = "follow",
    }
}

impl SourceConfig {
    /// The password now, and what is wrong with its file, if something is: then it is the one of the start, as far as is
    /// known. A file that is gone for a moment, or for good, must not be what keeps binlogd from its source.
    pub fn password_now(&self) -> (Secret, Option<String>) {
        let Some(path) = &self.password_file else { return (self.password.clone(), None) };
        match password::read_file(path) {
            Ok(secret) => (secret, None),
            Err(problem) => {
                (self.password.clone(), Some(format!("password_file \"{}\" {problem}", path.display())))
            }
        }
    }
}

/// `serves`: whether there is a port for readers, and at which address. `None` after an error.
pub(super) fn build(
    mut keys: SourceKeys,
    environment: Environment<'_>,
    (serves, listen): (bool, Option<SocketAddr>),
    findings: &mut Findings,
) -> Option<SourceConfig> {
    check_receivers(&keys, serves, findings);
    check_quorum(&mut keys, (serves, listen), findings);
    check_peers(&keys, findings);
    let silence = "a source with nothing to send would count as lost between two heartbeats";
    order(&keys.heartbeat_period, &mut keys.net_read_timeout, true, silence, findings);
    let pauses = "the longest pause cannot be shorter than the first one";
    order(&keys.backoff_min, &mut keys.backoff_max, false, pauses, findings);
    let tls = tls::of_client(&keys.tls, &keys.tls_ca, &keys.tls_cert, &keys.tls_key, findings);
    let (password, password_file) = match password(&keys, environment, findings) {
        Some((password, file)) => (Some(password), Some(file)),
        None => (None, None),
    };
    keys.whole(password, password_file, tls)
}

/// The password, and the file that it was read from. `None` after an error.
fn password(
    keys: &SourceKeys,
    environment: Environment<'_>,
    findings: &mut Findings,
) -> Option<(Secret, Option<PathBuf>)> {
    let SourceKeys { password, password_file, password_env, .. } = keys;
    let origins = Origins { text: password, file: password_file, variable: password_env, hash: None };
    match origins.password(environment, findings)? {
        Password::None => Some((password::ambient(keys.password.place(), environment, findings)?, None)),
        Password::Text(secret) | Password::Hash(secret) => Some((secret, None)),
        Password::File(secret, path) => Some((secret, Some(path))),
    }
}

fn check_receivers(keys: &SourceKeys, serves: bool, findings: &mut Findings) {
    let wanted = &keys.ack_after_replicas;
    if wanted.value.is_none_or(|count| count == 0) {
        return;
    }
    if keys.semi_sync.value == Some(false) {
        wanted.relation(
            "ack_after_replicas needs semi_sync = true: without it nothing is acknowledged that could wait",
            findings,
        );
    }
    if !serves {
        wanted.relation(
            "ack_after_replicas needs a port at which the receivers read: set listen in [serve], or --serve",
            findings,
        );
    }
}

/// What a quorum needs of the other keys of its source; those that were not given follow it.
fn check_quorum(
    keys: &mut SourceKeys,
    (serves, listen): (bool, Option<SocketAddr>),
    findings: &mut Findings,
) {
    let Some(others) = keys.quorum.value.clone().filter(|others| !others.is_empty()) else { return };
    let mut problems = Vec::new();
    let in_hosts = |other: &&HostPort| keys.hosts.value.as_ref().is_some_and(|hosts| hosts.contains(other));
    if let Some(both) = others.iter().find(in_hosts) {
        problems.push(format!("quorum: {both} is among the hosts: a node is another binlogd, and no source"));
    }
    if let Some(own) = others.iter().find(|other| listen.is_some_and(|listen| is_own(other, listen))) {
        problems
            .push(format!("quorum: {own} is this binlogd itself (listen in [serve]): name the other nodes"));
    }
    let same = |at: usize| others[..at].iter().any(|other| is_same(other, &others[at]));
    if let Some(twice) = (0..others.len()).find(|at| same(*at)) {
        problems.push(format!(
            "quorum: {} is listed twice, in other letters: two nodes have two names",
            others[twice]
        ));
    }
    if others.len() > 1 && others.len() % 2 == 1 {
        let nodes = others.len() + 1;
        problems.push(format!(
            "quorum: {nodes} nodes, this one counted, bear the loss of no more of them than {} do: name one more, or one less",
            nodes - 1
        ));
    }
    if !serves {
        problems.push(
            "quorum needs a port at which the others listen: set listen in [serve], or --serve".to_owned(),
        );
    }
    if keys.semi_sync.value == Some(false) {
        problems.push("quorum needs semi_sync = true: without it nothing is acknowledged".to_owned());
    }
    if keys.fsync_mode.value == Some(FsyncMode::WriteThenAcknowledge) {
        problems
            .push("quorum needs fsync_mode = 1: what a node confirms is on its stable storage".to_owned());
    }
    if keys.ack_after_replicas.value.is_some_and(|count| count > 0) {
        problems.push("quorum and ack_after_replicas are two ways to wait for others: choose one".to_owned());
    }
    if keys.on_fork.given.is_some() && keys.on_fork.value != Some(OnFork::Withhold) {
        problems.push(
            "quorum needs on_fork = \"withhold\": a source that lost what a majority holds is not acknowledged".to_owned(),
        );
    }
    for problem in problems {
        keys.quorum.relation(problem, findings);
    }
    keys.on_fork.value = Some(OnFork::Withhold);
    if keys.peers.given.is_none() {
        keys.peers.value = Some(others);
    }
}

/// Whether an address is one at which this binlogd serves, as far as the address itself tells. `binlogd doctor` asks who answers there.
fn is_own(other: &HostPort, listen: SocketAddr) -> bool {
    let address: Option<IpAddr> = match other.host.eq_ignore_ascii_case("localhost") {
        true => Some(Ipv4Addr::LOCALHOST.into()),
        false => other.host.parse().ok(),
    };
    let is_here =
        |address: IpAddr| address == listen.ip() || address.is_loopback() && listen.ip().is_unspecified();
    other.port == listen.port() && listen.port() != 0 && address.is_some_and(is_here)
}

/// Names of hosts do not differ by their letters' case.
fn is_same(one: &HostPort, other: &HostPort) -> bool {
    one.port == other.port && one.host.eq_ignore_ascii_case(&other.host)
}

fn check_peers(keys: &SourceKeys, findings: &mut Findings) {
    let (Some(hosts), Some(peers)) = (&keys.hosts.value, &keys.peers.value) else { return };
    if let Some(both) = peers.iter().find(|peer| hosts.contains(peer)) {
        let text = format!(
            "peers: {both} is among the hosts: a peer is another binlogd, and never taken for the source"
        );
        keys.peers.relation(text, findings);
    }
}

/// Tells when `high` is below `low`, or not above it where it `must_exceed`, and `why` it must not be.
fn order(
    low: &Entry<Duration>,
    high: &mut Entry<Duration>,
    must_exceed: bool,
    why: &str,
    findings: &mut Findings,
) {
    let (Some(low_value), Some(high_value)) = (low.value, high.value) else { return };
    if high.given.is_none() && !must_exceed {
        // Only `low` was given, and it counts: a default must not stand in its way.
        high.value = Some(high_value.max(low_value));
        return;
    }
    if high_value < low_value || (must_exceed && high_value == low_value) {
        let at_fault = if high.given.is_some() { &*high } else { low };
        let relation = if must_exceed { "must exceed" } else { "must not be below" };
        at_fault.relation(format!("{} {relation} {}: {why}", high.described(), low.described()), findings);
    }
}

/// Two sources in one folder would mix their files. And a server drops the older of two replicas with one server id, so that
/// both would reconnect for ever. Said of what is right of a source, whatever else is wrong.
pub(super) fn check_unique(sources: &[SourceKeys], findings: &mut Findings) {
    let mut names: HashMap<&str, &Place> = HashMap::new();
    let mut ids: HashMap<(u32, &HostPort), &Place> = HashMap::new();
    for source in sources {
        if let Some(name) = &source.name.value {
            let place = source.name.place();
            let first = *names.entry(name).or_insert(place);
            if first != place {
                findings.error(
                    place,
                    format!(
                        "name = \"{name}\" is taken by the source at {first}: give each [[source]] its own name"
                    ),
                );
            }
        }
        let Some(Some(id)) = source.server_id.value else { continue };
        let hosts = source.hosts.value.as_deref().unwrap_or_default();
        let place = source.server_id.place();
        if let Some((host, first)) = hosts.iter().find_map(|host| Some((host, *ids.get(&(id, host))?))) {
            findings.error(
                place,
                format!(
                    "server_id = {id} is used for {host} already, at {first}: each replica of a server needs its own"
                ),
            );
        }
        for host in hosts {
            ids.entry((id, host)).or_insert(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{SOURCE, parse};

    #[test]
    fn a_password_does_not_show_in_debug_output() {
        let config = parse(&format!("{SOURCE}password = \"hunter2\"\n")).unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
