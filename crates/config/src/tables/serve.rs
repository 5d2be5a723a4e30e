//! The `[serve]` table: the port for replicas and log readers, and who may read.

use super::super::document::{Document, Table};
use super::super::entry::{Entry, Unread};
use super::super::error::Findings;
use super::super::key::ReloadEffect::{AtOnce, Restart};
use super::super::key::{Kind, Section, TEN_YEARS, default, implied, ms, unset};
use super::super::table::table;
use super::super::value::{Point, Privileges};
use super::password::{Environment, Origins};
use super::source::SourceKeys;
use super::tls;
use super::users::{Proof, check_user_names};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

table! {
    /// Replicas and log readers.
    struct ServeConfig, ServeKeys for Section::Serve, AtOnce;

    /// Address at which replicas and log readers find the copy, by the protocol of MySQL and MariaDB. They
    /// log in as a [[serve.user]], or, where there is none, with the user and password of a [[source]], and
    /// are served that source.
    listen: Option<SocketAddr> = default("\"off\"").flag("serve").kind(Kind::SERVE_LISTEN).on_reload(Restart);
    /// Files of the certificate and of its private key, for TLS.
    field tls: Option<(PathBuf, PathBuf)>;
    /// PEM file of the certificate to show to readers, with tls_key. Without it binlogd makes one: see
    /// auto_generate_certs. A reload reads both files again; readers that are connected stay so.
    key tls_cert: Option<PathBuf> = unset("\"server-cert.pem\"").flag("serve-tls-cert");
    /// PEM file of its private key.
    key tls_key: Option<PathBuf> = unset("\"server-key.pem\"").flag("serve-tls-key");
    /// Whether to make a certificate in the data folder where tls_cert is not given, as MySQL does: ca.pem,
    /// server-cert.pem and server-key.pem, valid for ten years. With false and without tls_cert there is no
    /// TLS for readers.
    auto_generate_certs: bool = default("true").flag("serve-auto-generate-certs");
    /// Whether to refuse readers that do not encrypt, with error 3159.
    require_tls: bool = default("false").flag("serve-require-tls");
    /// Most readers that are logged in at a time. One more is refused with error 1040, as a server does.
    /// Fewer where the limit of open files leaves room for fewer beside the sources; binlogd says so when it
    /// starts. Connections that have not logged in have room of their own, a quarter of this.
    max_connections: u32 = default("500").flag("serve-max-connections").range(1, 100_000);
    /// Failed logins from one address, of IPv6 from one /64, within a minute after which it is refused, with
    /// error 1129, until a minute has passed.
    max_failed_logins: u32 = default("20").flag("serve-max-failed-logins").range(1, 100_000);
    /// Longest statement, or request for a dump with its GTID set, in bytes. A longer one is refused with
    /// error 1153.
    max_statement_bytes: u32 = default("1048576").flag("serve-max-statement-bytes").range(1024, 16_777_215);
    /// Whether each replica that says its UUID has a slot of that name: its place is remembered, and
    /// [retention] keeps what it has not read, up to slot_max_age and slot_max_bytes. Some log readers make
    /// up another UUID at each connection, so it is off; slot of a [[serve.user]] gives chosen readers a
    /// slot.
    slots: bool = default("false").flag("serve-slots");
    /// Who may read. Where nobody is named, the accounts of the sources count.
    field users: Vec<ServeUser>;
}

table! {
    /// Who may read. Repeat this table for each further user. Without any, the accounts of the sources count.
    struct ServeUser, ServeUserKeys for Section::ServeUser, AtOnce;

    /// Name with which a reader logs in. It must be given.
    name: String = unset("\"reader\"");
    /// What tells that it is the user.
    field proof: Proof;
    /// Its password: one of these four keys must be given.
    key password: Unread = unset("\"reader's secret\"").kind(Kind::SECRET);
    /// File that holds the password and nothing else; a newline at its end does not count.
    key password_file: Unread = unset("\"reader.password\"").kind(Kind::PATH);
    /// Environment variable that holds the password.
    key password_env: Unread = unset("\"READER_PASSWORD\"");
    /// What a method of authentication needs instead of the password. Only that method then works:
    ///   sha256:<64 hex digits>   caching_sha2_password: SHA256(SHA256(password))
    ///   *<40 hex digits>         mysql_native_password, as servers print it
    ///   <43 letters>             ed25519, as MariaDB prints it
    key password_hash: Unread = unset("\"*6BB4837EB74329105EE4568DDA7DC67ED2CA2AD9\"").kind(Kind::SECRET);
    /// The sources that it may read. Never empty; each is configured.
    field sources: Vec<String>;
    /// Name of the source that the user is served, as a list of one: nothing in a login tells which of
    /// several is meant. It may be left out where there is one [[source]].
    key sources: Option<Vec<String>> = unset("[\"orders\"]").kind(Kind::NAMES);
    /// What the user may do; without it, read. A connection keeps what it had when it logged in. The account
    /// of a [[source]] may read and nothing else.
    privileges: Privileges = implied("[\"read\"]", "[\"read\", \"purge\"]");
    /// Name of the slot of this user's reader: its place is remembered while it is away, and [retention]
    /// keeps what it has not read, up to slot_max_age and slot_max_bytes. One reader a slot, known by its
    /// server_id: a second one is refused while the first is connected, and while it is away no other reader
    /// moves its slot. A reader without a server_id (mysqlbinlog without --stop-never) has none.
    slot: Option<String> = unset("\"warehouse\"").kind(Kind::NAME);
    /// How far its dumps go.
    field bounds: Bounds;
    /// Dumps stop before this point: a replica gets everything that comes before, and then nothing more,
    /// though its connection stays. Transactions stay whole. One of:
    ///   "<GTID set>"               before the first transaction of the set
    ///   "0-1-100,7-1-5"            MariaDB: before the first of these transactions
    ///   "mysql-bin.000007:1234"    before the first transaction that begins there or later
    ///   "2026-11-23T06:30:00Z"     before the first transaction that was committed then or later
    key stop_before: Option<Point> = unset("\"3e11fa47-71ca-11e1-9e33-c80aa9429562:51\"");
    /// As stop_before, behind that point: when all transactions of the set have been sent, or each of these
    /// of MariaDB; with a position or a time, before the first transaction that begins, or was committed,
    /// later.
    key stop_after: Option<Point> = unset("\"mysql-bin.000007:1234\"");
    /// A transaction is sent when it was committed at least so long ago, by the clock of this machine.
    key delay: Duration = implied("\"0s\"", "\"1h\"").lasting(ms(0), TEN_YEARS);
}

impl ServeConfig {
    /// Room for connections that have not logged in, where so many that have may be there.
    pub fn strangers_beside(readers: u32) -> u32 {
        (readers / 4).clamp(4, 250)
    }
}

/// What holds the dumps of an account back although the log goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The first transaction that is not sent, or comes behind it.
    pub stop_before: Option<Point>,
    /// The last that is sent. Never beside `stop_before`.
    pub stop_after: Option<Point>,
    /// A transaction is sent when so much time has passed since its commit. Zero: at once.
    pub delay: Duration,
}

/// `None` after an error.
pub(super) fn build(
    serve: ServeKeys,
    document: &Document,
    environment: Environment<'_>,
    sources: &[SourceKeys],
    findings: &mut Findings,
) -> Option<ServeConfig> {
    let tls = tls::of_server(&serve.tls_cert, &serve.tls_key, findings);
    let makes_none = serve.auto_generate_certs.value == Some(false);
    if serve.require_tls.value == Some(true) && tls == Some(None) && makes_none {
        serve.require_tls.relation(
            "require_tls needs a certificate: give tls_cert and tls_key, or set auto_generate_certs to true",
            findings,
        );
    }
    let users: Vec<(&Table, ServeUserKeys)> =
        document.all(Section::ServeUser).map(|table| (table, ServeUserKeys::read(table, findings))).collect();
    let named = users.iter().map(|(table, keys)| (&table.place, &keys.name));
    check_user_names(Section::ServeUser, named, findings);
    if users.is_empty() && matches!(serve.listen.value, Some(Some(_))) {
        check_accounts(document, sources, findings);
    }
    let users: Vec<Option<ServeUser>> = users
        .into_iter()
        .map(|(table, user)| build_user(user, table, environment, sources, findings))
        .collect();
    serve.whole(tls, users.into_iter().collect())
}

fn build_user(
    user: ServeUserKeys,
    table: &Table,
    environment: Environment<'_>,
    sources: &[SourceKeys],
    findings: &mut Findings,
) -> Option<ServeUser> {
    let ServeUserKeys { password, password_file, password_env, password_hash, .. } = &user;
    let origins =
        Origins { text: password, file: password_file, variable: password_env, hash: Some(password_hash) };
    let proof = Proof::given(&origins, table, environment, findings);
    let names = readable(&user.sources, sources, findings);
    let bounds = bounds(&user, findings);
    user.whole(proof, names, bounds)
}

/// The sources that a user may read. `None` after an error.
fn readable(
    key: &Entry<Option<Vec<String>>>,
    sources: &[SourceKeys],
    findings: &mut Findings,
) -> Option<Vec<String>> {
    let configured: Vec<&String> = sources.iter().filter_map(|source| source.name.value.as_ref()).collect();
    let Some(names) = key.value.clone()? else {
        if configured.len() > 1 {
            key.relation(
                "[[serve.user]] lacks sources: there are several, so say which it may read",
                findings,
            );
            return None;
        }
        return Some(configured.into_iter().cloned().collect());
    };
    for name in names.iter().filter(|name| !configured.contains(name)) {
        key.relation(format!("sources: there is no [[source]] with the name \"{name}\""), findings);
    }
    if names.len() > 1 {
        key.relation(
            "sources: a user is served one source, because nothing in a login tells which of several is meant: make a \
             [[serve.user]] with a name of its own for each source",
            findings,
        );
    }
    Some(names)
}

fn bounds(user: &ServeUserKeys, findings: &mut Findings) -> Option<Bounds> {
    if let (Some(Some(_)), Some(Some(_))) = (&user.stop_before.value, &user.stop_after.value) {
        user.stop_after.relation(
            "stop_after and stop_before are both given, and dumps stop at one point: remove one of them",
            findings,
        );
    }
    Some(Bounds {
        stop_before: user.stop_before.value.clone()?,
        stop_after: user.stop_after.value.clone()?,
        delay: user.delay.value?,
    })
}

/// Readers log in with the sources' own accounts: each must tell which source is meant.
fn check_accounts(document: &Document, sources: &[SourceKeys], findings: &mut Findings) {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    for (table, source) in document.all(Section::Source).zip(sources) {
        let (Some(user), Some(name)) = (&source.user.value, &source.name.value) else { continue };
        if let Some(first) = seen.insert(user, name) {
            findings.error(
                &table.place,
                format!(
                    "the sources \"{first}\" and \"{name}\" are both read as user = \"{user}\", so that readers who log in with \
                     it cannot say which they want: give readers accounts of their own, a [[serve.user]] for each source"
                ),
            );
        }
    }
}
