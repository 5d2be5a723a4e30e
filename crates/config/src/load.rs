//! From given values to a [`Config`]: types, ranges, relations between keys.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use super::archive;
use super::error::{ConfigError, Findings, Place, Problem};
use super::file;
use super::given::{Document, Table, Value};
use super::include;
use super::key::Section;
use super::password::{self, Environment, Password};
use super::reader::Reader;
use super::settings::{
    AckTimeoutAction, AdminConfig, AdminUser, Config, FsyncMode, LogConfig, LogFormat, LogLevel, OnFork,
    OnGap, OnStranger, RetentionConfig, ServeConfig, ServeUser, SourceConfig,
};
use super::value::HostPort;

/// A usable configuration and what an operator should fix in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Findings that do not prevent a start, such as a password file that others can read.
    pub warnings: Vec<Problem>,
}

impl Config {
    /// Reads the file at `path`, the password files that it names, and the environment variables that it names.
    ///
    /// # Errors
    ///
    /// Every problem at once, each with its file, line, column, key, value and what is allowed.
    pub fn load(path: &Path) -> Result<Loaded, ConfigError> {
        Self::load_with(path, &password::process_environment)
    }

    /// As [`load`](Self::load), with another environment.
    pub fn load_with(path: &Path, environment: Environment<'_>) -> Result<Loaded, ConfigError> {
        let text = file::read(path).map_err(|problem| ConfigError { problems: vec![problem] })?;
        Self::parse(&text, path, environment)
    }

    /// As [`load`](Self::load), from `text`. `path` names the file in messages, and its folder is where relative paths
    /// begin; `environment` looks up variables.
    pub fn parse(text: &str, path: &Path, environment: Environment<'_>) -> Result<Loaded, ConfigError> {
        let mut findings = Findings::default();
        let document = file::parse(text, path, &mut findings);
        let config = document.and_then(|mut document| {
            include::add_included(&mut document, path, &mut findings)?;
            warn_of_exposed(&document, &mut findings);
            build(&document, environment, &mut findings)
        });
        findings.finish(config).map(|(config, warnings)| Loaded { config, warnings })
    }
}

/// Warns of each file that holds a password and can be read by others.
fn warn_of_exposed(document: &Document, findings: &mut Findings) {
    let accounts = document.sources.iter().chain(&document.serve_users).chain(&document.admin_users);
    let with_password = accounts.filter_map(|table| table.items.get("password"));
    let files: BTreeSet<&Path> = with_password.filter_map(|item| item.place.file()).collect();
    for path in files {
        password::warn_if_exposed(path, "holds a password", &Place::WholeFile(path.to_owned()), findings);
    }
}

/// Checks every value of `document`; `None` when there was an error, which `findings` then holds.
pub fn build(document: &Document, environment: Environment<'_>, findings: &mut Findings) -> Option<Config> {
    let mut root = Reader::new(Section::Root, &document.root, findings);
    let data_dir = root.path("data_dir");
    let disk_warn = root.space("disk_warn");
    let search_index = root.boolean("search_index");
    let admin = build_admin(document, environment, findings);
    let mut log = Reader::new(Section::Log, &document.log, findings);
    let level = log.choice("level", log_level);
    let format = log.choice("format", log_format);
    // What is wrong with it is said where it is read for good.
    let serves = Reader::new(Section::Serve, &document.serve, &mut Findings::default())
        .listen("listen")
        .is_none_or(|listen| listen.is_some());
    let (identities, sources): (Vec<Identity>, Vec<Option<SourceConfig>>) = document
        .sources
        .iter()
        .map(|table| build_source(Reader::new(Section::Source, table, findings), environment, serves))
        .unzip();
    if sources.is_empty() {
        findings.error(&document.root.place, "there is no [[source]]: add one table for each server to copy");
    }
    check_names(&document.sources, &identities, findings);
    let serve = build_serve(document, environment, &identities, findings);
    check_server_ids(&document.sources, &identities, findings);
    let retention = build_retention(Reader::new(Section::Retention, &document.retention, findings));
    let archive = archive::build(document, findings);
    Some(Config {
        data_dir: data_dir?,
        disk_warn: disk_warn?,
        search_index: search_index?,
        admin: admin?,
        log: LogConfig { level: level?, format: format? },
        serve: serve?,
        retention: retention?,
        archive: archive?,
        sources: sources.into_iter().collect::<Option<_>>()?,
    })
}

fn build_admin(
    document: &Document,
    environment: Environment<'_>,
    findings: &mut Findings,
) -> Option<AdminConfig> {
    let users: Vec<Option<AdminUser>> = document
        .admin_users
        .iter()
        .map(|table| {
            let mut reader = Reader::new(Section::AdminUser, table, findings);
            let (name, proof) = (reader.given_text("name"), reader.proof(environment));
            let write = match table.items.contains_key("write") {
                true => reader.boolean("write"),
                false => Some(false),
            };
            Some(AdminUser { name: name?, proof: proof?, write: write? })
        })
        .collect();
    let names: Vec<Option<&str>> =
        users.iter().map(|user| user.as_ref().map(|user| user.name.as_str())).collect();
    check_user_names(Section::AdminUser, &document.admin_users, &names, findings);
    let mut admin = Reader::new(Section::Admin, &document.admin, findings);
    let (listen, tls, write) = (admin.listen("listen"), admin.server_tls(), admin.boolean("write"));
    let is_exposed = matches!(listen, Some(Some(listen)) if !listen.ip().is_loopback());
    if is_exposed && tls == Some(None) && !users.is_empty() {
        admin.relation(
            "listen",
            "[[admin.user]] needs tls_cert and tls_key where listen is no loopback address: passwords would go over the network in \
             clear",
        );
    }
    if is_exposed && write == Some(true) && users.is_empty() {
        admin.relation(
            "write",
            "write = true needs an [[admin.user]] where listen is no loopback address: whoever reaches it could stop receiving and \
             drop slots",
        );
    }
    if write == Some(false) {
        let wants = document.admin_users.iter().filter_map(|user| user.items.get("write"));
        for item in wants.filter(|item| matches!(item.value, Value::Boolean(true))) {
            findings.warning(
                &item.place,
                "write = true of an [[admin.user]] does nothing without write = true in [admin]",
            );
        }
    }
    let users = users.into_iter().collect::<Option<_>>()?;
    Some(AdminConfig { listen: listen?, tls: tls?, write: write?, users })
}

fn build_retention(mut retention: Reader<'_>) -> Option<RetentionConfig> {
    let max_age = retention.optional_duration("max_age");
    let max_bytes = retention.optional_bytes("max_bytes");
    let max_files = retention.number("max_files");
    let slot_max_age = retention.duration("slot_max_age");
    let slot_max_bytes = retention.optional_bytes("slot_max_bytes");
    let slot_margin = retention.duration("slot_margin");
    Some(RetentionConfig {
        max_age: max_age?,
        max_bytes: max_bytes?,
        max_files: max_files?,
        slot_max_age: slot_max_age?,
        slot_max_bytes: slot_max_bytes?,
        slot_margin: slot_margin?,
    })
}

fn build_serve(
    document: &Document,
    environment: Environment<'_>,
    identities: &[Identity],
    findings: &mut Findings,
) -> Option<ServeConfig> {
    let sources: Vec<&str> = identities.iter().filter_map(|source| source.name.as_deref()).collect();
    let mut serve = Reader::new(Section::Serve, &document.serve, findings);
    let listen = serve.listen("listen");
    let tls = serve.server_tls();
    let require_tls = serve.boolean("require_tls");
    let auto_generate_certs = serve.boolean("auto_generate_certs");
    if require_tls == Some(true) && tls == Some(None) && auto_generate_certs == Some(false) {
        serve.relation(
            "require_tls",
            "require_tls needs a certificate: give tls_cert and tls_key, or set auto_generate_certs to true",
        );
    }
    let max_connections = serve.number("max_connections");
    let max_failed_logins = serve.number("max_failed_logins");
    let max_statement_bytes = serve.number("max_statement_bytes");
    let slots = serve.boolean("slots");
    let users: Vec<Option<ServeUser>> = document
        .serve_users
        .iter()
        .map(|table| build_user(Reader::new(Section::ServeUser, table, findings), environment, &sources))
        .collect();
    let names: Vec<Option<&str>> =
        users.iter().map(|user| user.as_ref().map(|user| user.name.as_str())).collect();
    check_user_names(Section::ServeUser, &document.serve_users, &names, findings);
    if document.serve_users.is_empty() && matches!(listen, Some(Some(_))) {
        check_accounts(document, identities, findings);
    }
    Some(ServeConfig {
        listen: listen?,
        tls: tls?,
        auto_generate_certs: auto_generate_certs?,
        require_tls: require_tls?,
        max_connections: max_connections??,
        max_failed_logins: max_failed_logins??,
        max_statement_bytes: max_statement_bytes??,
        slots: slots?,
        users: users.into_iter().collect::<Option<_>>()?,
    })
}

fn build_user(mut reader: Reader<'_>, environment: Environment<'_>, sources: &[&str]) -> Option<ServeUser> {
    let name = reader.given_text("name");
    let proof = reader.proof(environment);
    let (privileges, bounds) = (reader.privileges("privileges"), reader.bounds());
    let slot = reader.optional_name("slot");
    let names = reader.names("sources");
    let names = match names? {
        Some(names) => {
            for name in names.iter().filter(|name| !sources.contains(&name.as_str())) {
                reader.relation(
                    "sources",
                    &format!("sources: there is no [[source]] with the name \"{name}\""),
                );
            }
            if names.len() > 1 {
                reader.relation(
                    "sources",
                    "sources: a user is served one source, because nothing in a login tells which of several is meant: make a \
                     [[serve.user]] with a name of its own for each source",
                );
            }
            names
        }
        None if sources.len() > 1 => {
            reader.relation(
                "sources",
                "[[serve.user]] lacks sources: there are several, so say which it may read",
            );
            return None;
        }
        None => sources.iter().map(|name| (*name).to_owned()).collect(),
    };
    let (privileges, bounds, slot) = (privileges?, bounds?, slot?);
    Some(ServeUser { name: name?, proof: proof?, sources: names, privileges, bounds, slot })
}

/// Readers log in with the sources' own accounts: each must tell which source is meant.
fn check_accounts(document: &Document, identities: &[Identity], findings: &mut Findings) {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    for (table, source) in document.sources.iter().zip(identities) {
        let Some(Value::Text(user)) = table.items.get("user").map(|item| &item.value) else { continue };
        let Some(name) = source.name.as_deref() else { continue };
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

/// Two users of one name would make it a matter of chance which password counts.
fn check_user_names(section: Section, tables: &[Table], names: &[Option<&str>], findings: &mut Findings) {
    let mut seen: HashMap<&str, &Place> = HashMap::new();
    for (table, name) in tables.iter().zip(names) {
        let Some(name) = *name else { continue };
        if let Some(first) = seen.insert(name, &table.place) {
            findings.error(
                &table.place,
                format!(
                    "name = \"{name}\" is taken by the {} at {first}: give each its own name",
                    section.title()
                ),
            );
        }
    }
}

/// What no two sources may share, as far as it is right, whatever else of the source is wrong.
struct Identity {
    name: Option<String>,
    hosts: Vec<HostPort>,
    server_id: Option<u32>,
}

fn build_source(
    mut reader: Reader<'_>,
    environment: Environment<'_>,
    serves: bool,
) -> (Identity, Option<SourceConfig>) {
    let name = reader.name("name");
    let hosts = reader.hosts("hosts");
    let server_id = reader.number("server_id");
    let identity = Identity {
        name: name.clone(),
        hosts: hosts.clone().unwrap_or_default(),
        server_id: server_id.flatten(),
    };
    (identity, build_named_source(reader, environment, serves, name, hosts, server_id))
}

fn build_named_source(
    mut reader: Reader<'_>,
    environment: Environment<'_>,
    serves: bool,
    name: Option<String>,
    hosts: Option<Vec<HostPort>>,
    server_id: Option<Option<u32>>,
) -> Option<SourceConfig> {
    let peers = reader.given_hosts("peers");
    let user = reader.text("user");
    let password = reader.password(environment);
    let start = reader.start("start");
    let fsync_mode = reader.choice("fsync_mode", fsync_mode);
    let fsync_interval = reader.duration("fsync_interval");
    let ack_after_replicas = reader.number("ack_after_replicas");
    let ack_timeout = reader.duration("ack_timeout");
    let ack_timeout_action = reader.choice("ack_timeout_action", ack_timeout_action);
    // Without effect, and still no error.
    let _ = reader.number("busy_wait_us");
    let semi_sync = reader.boolean("semi_sync");
    if ack_after_replicas.flatten().is_some_and(|count| count > 0) {
        if semi_sync == Some(false) {
            reader.relation(
                "ack_after_replicas",
                "ack_after_replicas needs semi_sync = true: without it nothing is acknowledged that could wait",
            );
        }
        if !serves {
            reader.relation(
                "ack_after_replicas",
                "ack_after_replicas needs a port at which the receivers read: set listen in [serve], or --serve",
            );
        }
    }
    let watch_interval = reader.duration("watch_interval");
    let connect_timeout = reader.duration("connect_timeout");
    let (heartbeat_period, net_read_timeout) =
        reader.ordered("heartbeat_period", "net_read_timeout", |low, high| {
            (low >= high)
                .then_some("a source with nothing to send would count as lost between two heartbeats")
        });
    let (backoff_min, backoff_max) = reader.ordered("backoff_min", "backoff_max", |low, high| {
        (low > high).then_some("the longest pause cannot be shorter than the first one")
    });
    let tls = reader.tls();
    let on_gap = reader.choice("on_gap", on_gap);
    let on_fork = reader.choice("on_fork", on_fork);
    let on_stranger = reader.choice("on_stranger", on_stranger);
    let archive = reader.optional_boolean("archive");
    if let (Some(hosts), Some(Some(peers))) = (&hosts, &peers)
        && let Some(both) = peers.iter().find(|peer| hosts.contains(peer))
    {
        reader.relation(
            "peers",
            &format!(
                "peers: {both} is among the hosts: a peer is another binlogd, and never taken for the source"
            ),
        );
    }
    let Password { secret: password, file: password_file } = password?;
    Some(SourceConfig {
        name: name?,
        hosts: hosts?,
        peers: peers?.unwrap_or_default(),
        user: user?,
        password,
        password_file,
        server_id: server_id?,
        start: start?,
        fsync_mode: fsync_mode?,
        fsync_interval: fsync_interval?,
        ack_after_replicas: ack_after_replicas?.unwrap_or(0),
        ack_timeout: ack_timeout?,
        ack_timeout_action: ack_timeout_action?,
        semi_sync: semi_sync?,
        heartbeat_period: heartbeat_period?,
        net_read_timeout: net_read_timeout?,
        watch_interval: watch_interval?,
        connect_timeout: connect_timeout?,
        backoff_min: backoff_min?,
        backoff_max: backoff_max?,
        tls: tls?,
        on_gap: on_gap?,
        on_fork: on_fork?,
        on_stranger: on_stranger?,
        archive: archive?.unwrap_or(true),
    })
}

/// Two sources in one folder would mix their files.
fn check_names(tables: &[Table], identities: &[Identity], findings: &mut Findings) {
    let mut seen: HashMap<&str, &Place> = HashMap::new();
    for (table, source) in tables.iter().zip(identities) {
        let Some(name) = source.name.as_deref() else { continue };
        let place = table.items.get("name").map_or(&table.place, |item| &item.place);
        match seen.get(name) {
            Some(first) => findings.error(
                place,
                format!(
                    "name = \"{name}\" is taken by the source at {first}: give each [[source]] its own name"
                ),
            ),
            None => {
                seen.insert(name, place);
            }
        }
    }
}

/// A server drops the older of two replicas with one server id, so that both would reconnect for ever.
fn check_server_ids(tables: &[Table], identities: &[Identity], findings: &mut Findings) {
    let mut seen: HashMap<(u32, &HostPort), &Place> = HashMap::new();
    for (table, source) in tables.iter().zip(identities) {
        let (Some(id), Some(item)) = (source.server_id, table.items.get("server_id")) else { continue };
        let clash = source.hosts.iter().find_map(|host| Some((host, *seen.get(&(id, host))?)));
        if let Some((host, first)) = clash {
            findings.error(
                &item.place,
                format!("server_id = {id} is used for {host} already, at {first}: each replica of a server needs its own"),
            );
        }
        for host in &source.hosts {
            seen.entry((id, host)).or_insert(&item.place);
        }
    }
}

fn log_level(word: &str) -> Option<LogLevel> {
    Some(match word {
        "error" => LogLevel::Error,
        "warn" => LogLevel::Warn,
        "info" => LogLevel::Info,
        "debug" => LogLevel::Debug,
        "trace" => LogLevel::Trace,
        _ => return None,
    })
}

fn log_format(word: &str) -> Option<LogFormat> {
    Some(match word {
        "text" => LogFormat::Text,
        "json" => LogFormat::Json,
        _ => return None,
    })
}

fn fsync_mode(word: &str) -> Option<FsyncMode> {
    Some(match word {
        "0" => FsyncMode::WriteThenAcknowledge,
        "1" => FsyncMode::SyncThenAcknowledge,
        _ => return None,
    })
}

fn ack_timeout_action(word: &str) -> Option<AckTimeoutAction> {
    Some(match word {
        "wait" => AckTimeoutAction::Wait,
        "go_on" => AckTimeoutAction::GoOn,
        _ => return None,
    })
}

fn on_fork(word: &str) -> Option<OnFork> {
    Some(match word {
        "follow" => OnFork::Follow,
        "withhold" => OnFork::Withhold,
        "stop" => OnFork::Stop,
        _ => return None,
    })
}

fn on_stranger(word: &str) -> Option<OnStranger> {
    Some(match word {
        "refuse" => OnStranger::Refuse,
        "follow" => OnStranger::Follow,
        _ => return None,
    })
}

fn on_gap(word: &str) -> Option<OnGap> {
    Some(match word {
        "stop" => OnGap::Stop,
        "record" => OnGap::Record,
        _ => return None,
    })
}
