//! From given values to a [`Config`]: types, ranges, relations between keys.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::error::{ConfigError, Findings, Place, Problem};
use super::given::{Document, Item, Table, Value};
use super::keys::{Absent, Key, Kind, Section, key};
use super::password::{self, Environment};
use super::value::{is_name, parse_host_port, parse_start};
use super::{
    AdminConfig, Config, FsyncMode, HostPort, LogConfig, LogFormat, LogLevel, OnGap, SourceConfig, Start,
    duration, file,
};
use crate::wire::{TlsMode, TlsOptions};

/// Largest configuration file that is read, in bytes. A real one has some thousand.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A usable configuration and what an operator should mend in it.
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
        let text = password::read_bounded(path, FILE_BYTES_MAX).map_err(|problem| ConfigError {
            problems: vec![Problem {
                place: Place::WholeFile(path.to_owned()),
                text: format!("the configuration file {problem}"),
            }],
        })?;
        Self::parse(&text, path, &password::process_environment)
    }

    /// As [`load`](Self::load), from `text`. `path` names the file in messages, and its folder is where relative paths
    /// begin; `environment` looks up variables.
    pub fn parse(text: &str, path: &Path, environment: Environment<'_>) -> Result<Loaded, ConfigError> {
        let mut findings = Findings::default();
        let document = file::parse(text, path, &mut findings);
        let config = document.and_then(|document| {
            if document.sources.iter().any(|source| source.items.contains_key("password")) {
                password::warn_if_exposed(
                    path,
                    "holds a password",
                    &Place::WholeFile(path.to_owned()),
                    &mut findings,
                );
            }
            build(&document, environment, &mut findings)
        });
        findings.finish(config).map(|(config, warnings)| Loaded { config, warnings })
    }
}

/// Checks every value of `document`; `None` when there was an error, which `findings` then holds.
pub fn build(document: &Document, environment: Environment<'_>, findings: &mut Findings) -> Option<Config> {
    let mut root = Reader::new(document, Section::Root, &document.root, findings);
    let data_dir = root.path("data_dir");
    let mut admin = Reader::new(document, Section::Admin, &document.admin, findings);
    let listen = admin.listen("listen");
    let mut log = Reader::new(document, Section::Log, &document.log, findings);
    let level = log.choice("level", log_level);
    let format = log.choice("format", log_format);
    let sources: Vec<Option<SourceConfig>> = document
        .sources
        .iter()
        .map(|table| build_source(Reader::new(document, Section::Source, table, findings), environment))
        .collect();
    if sources.is_empty() {
        findings.error(&document.root.place, "there is no [[source]]: add one table for each server to copy");
    }
    check_names(&document.sources, &sources, findings);
    check_server_ids(&document.sources, &sources, findings);
    Some(Config {
        data_dir: data_dir?,
        admin: AdminConfig { listen: listen? },
        log: LogConfig { level: level?, format: format? },
        sources: sources.into_iter().collect::<Option<_>>()?,
    })
}

fn build_source(mut reader: Reader<'_>, environment: Environment<'_>) -> Option<SourceConfig> {
    let name = reader.name("name");
    let hosts = reader.hosts("hosts");
    let user = reader.text("user");
    let password = reader.password(environment);
    let server_id = reader.number("server_id");
    let start = reader.start("start");
    let fsync_mode = reader.choice("fsync_mode", fsync_mode);
    let fsync_interval = reader.duration("fsync_interval");
    let semi_sync = reader.boolean("semi_sync");
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
    Some(SourceConfig {
        name: name?,
        hosts: hosts?,
        user: user?,
        password: password?,
        server_id: server_id?,
        start: start?,
        fsync_mode: fsync_mode?,
        fsync_interval: fsync_interval?,
        semi_sync: semi_sync?,
        heartbeat_period: heartbeat_period?,
        net_read_timeout: net_read_timeout?,
        connect_timeout: connect_timeout?,
        backoff_min: backoff_min?,
        backoff_max: backoff_max?,
        tls: tls?,
        on_gap: on_gap?,
    })
}

/// Two sources in one folder would mix their files.
fn check_names(tables: &[Table], sources: &[Option<SourceConfig>], findings: &mut Findings) {
    let mut seen: HashMap<&str, &Place> = HashMap::new();
    for (table, source) in tables.iter().zip(sources) {
        let Some(source) = source else { continue };
        let place = table.items.get("name").map_or(&table.place, |item| &item.place);
        match seen.get(source.name.as_str()) {
            Some(first) => findings.error(
                place,
                format!(
                    "name = \"{}\" is taken by the source at {first}: give each [[source]] its own name",
                    source.name
                ),
            ),
            None => {
                seen.insert(&source.name, place);
            }
        }
    }
}

/// A server drops the older of two replicas with one server id, so that both would reconnect for ever.
fn check_server_ids(tables: &[Table], sources: &[Option<SourceConfig>], findings: &mut Findings) {
    let mut seen: HashMap<(u32, &HostPort), &Place> = HashMap::new();
    for (table, source) in tables.iter().zip(sources) {
        let Some(source) = source else { continue };
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

fn on_gap(word: &str) -> Option<OnGap> {
    Some(match word {
        "stop" => OnGap::Stop,
        "record" => OnGap::Record,
        _ => return None,
    })
}

/// Reads the keys of one section. Each method returns `None` after it has noted an error.
struct Reader<'a> {
    base: &'a Path,
    section: Section,
    table: &'a Table,
    findings: &'a mut Findings,
}

impl<'a> Reader<'a> {
    fn new(document: &'a Document, section: Section, table: &'a Table, findings: &'a mut Findings) -> Self {
        Self { base: &document.base, section, table, findings }
    }

    /// The key's item: the given one, its default, or nothing. A required key that is missing is an error.
    fn item(&mut self, key: &'static Key) -> Option<Item> {
        if let Some(item) = self.table.items.get(key.name) {
            return Some(item.clone());
        }
        match key.absent {
            Absent::Default(toml) => Some(file::default_item(toml)),
            Absent::Unset(_) => None,
            Absent::Required(example) => {
                let text =
                    format!("{} lacks {}: add {} = {example}", self.section.title(), key.name, key.name);
                self.findings.error(&self.table.place, text);
                None
            }
        }
    }

    /// Notes that an item's value does not fit, and says what would.
    fn refuse(&mut self, key: &Key, item: &Item) {
        self.wrong(key, item, &format!("must be {}", key.allowed()));
    }

    fn wrong(&mut self, key: &Key, item: &Item, why: &str) {
        let text = format!("{}: {why}", subject(key, item));
        self.findings.error(&item.place, text);
    }

    fn text(&mut self, name: &str) -> Option<String> {
        let key = key(self.section, name);
        let item = self.item(key)?;
        match &item.value {
            Value::Text(text) if !text.is_empty() && !text.contains('\0') => Some(text.clone()),
            _ => {
                self.refuse(key, &item);
                None
            }
        }
    }

    fn path(&mut self, name: &str) -> Option<PathBuf> {
        self.optional_path(name)?
    }

    /// A path below the base folder, or `Some(None)` when the key is absent.
    fn optional_path(&mut self, name: &str) -> Option<Option<PathBuf>> {
        let key = key(self.section, name);
        let Some(item) = self.item(key) else { return Some(None) };
        match &item.value {
            Value::Text(text) if !text.is_empty() && !text.contains('\0') => {
                Some(Some(below(self.base, text)))
            }
            _ => {
                self.refuse(key, &item);
                None
            }
        }
    }

    fn name(&mut self, name: &str) -> Option<String> {
        let key = key(self.section, name);
        let item = self.item(key)?;
        match &item.value {
            Value::Text(text) if is_name(text) => Some(text.clone()),
            _ => {
                self.refuse(key, &item);
                None
            }
        }
    }

    fn hosts(&mut self, name: &str) -> Option<Vec<HostPort>> {
        let key = key(self.section, name);
        let item = self.item(key)?;
        let items = match &item.value {
            Value::List(items) if !items.is_empty() => items,
            _ => {
                self.refuse(key, &item);
                return None;
            }
        };
        let mut hosts: Vec<HostPort> = Vec::new();
        for item in items {
            let Value::Text(text) = &item.value else {
                self.refuse(key, item);
                continue;
            };
            match parse_host_port(text) {
                Ok(host) if hosts.contains(&host) => self.wrong(key, item, "is listed twice"),
                Ok(host) => hosts.push(host),
                Err(why) => self.wrong(key, item, why),
            }
        }
        (hosts.len() == items.len()).then_some(hosts)
    }

    fn listen(&mut self, name: &str) -> Option<Option<SocketAddr>> {
        let key = key(self.section, name);
        let item = self.item(key)?;
        if let Value::Text(text) = &item.value {
            if text == "off" {
                return Some(None);
            }
            if let Ok(address) = SocketAddr::from_str(text) {
                return Some(Some(address));
            }
        }
        self.refuse(key, &item);
        None
    }

    /// One of a key's words or numbers.
    fn choice<T>(&mut self, name: &str, value: fn(&str) -> Option<T>) -> Option<T> {
        let key = key(self.section, name);
        let item = self.item(key)?;
        let found = match &item.value {
            Value::Text(word) | Value::Integer(word) => value(word),
            _ => None,
        };
        if found.is_none() {
            self.refuse(key, &item);
        }
        found
    }

    fn boolean(&mut self, name: &str) -> Option<bool> {
        let key = key(self.section, name);
        let item = self.item(key)?;
        match (&item.value, &item.place) {
            (Value::Boolean(boolean), _) => Some(*boolean),
            (Value::Text(text), Place::Flag(_)) if text == "true" => Some(true),
            (Value::Text(text), Place::Flag(_)) if text == "false" => Some(false),
            _ => {
                self.refuse(key, &item);
                None
            }
        }
    }

    /// A number in the key's range, or `Some(None)` when the key is absent.
    fn number(&mut self, name: &str) -> Option<Option<u32>> {
        let key = key(self.section, name);
        let Kind::Number { min, max } = key.kind else { unreachable!("{name} is not a number") };
        let Some(item) = self.item(key) else { return Some(None) };
        let number: Option<u64> = match (&item.value, &item.place) {
            (Value::Integer(text), _) | (Value::Text(text), Place::Flag(_)) => text.parse().ok(),
            _ => None,
        };
        match number
            .filter(|number| (min..=max).contains(number))
            .and_then(|number| u32::try_from(number).ok())
        {
            Some(number) => Some(Some(number)),
            None => {
                self.refuse(key, &item);
                None
            }
        }
    }

    fn duration(&mut self, name: &str) -> Option<Duration> {
        let key = key(self.section, name);
        let Kind::Duration { min, max } = key.kind else { unreachable!("{name} is not a duration") };
        let item = self.item(key)?;
        let parsed = match &item.value {
            Value::Text(text) => duration::parse(text),
            // Said as a unit that is missing, because that is what an operator forgot.
            Value::Integer(number) => Err(duration::DurationError::NoUnit(number.clone())),
            _ => Err(duration::DurationError::Malformed),
        };
        match parsed {
            Ok(duration) if (min..=max).contains(&duration) => Some(duration),
            Ok(_) => {
                self.refuse(key, &item);
                None
            }
            Err(error) => {
                self.wrong(key, &item, &error.to_string());
                None
            }
        }
    }

    /// Two durations of which `why_not(low, high)` says what is wrong between them.
    fn ordered(
        &mut self,
        low: &str,
        high: &str,
        why_not: fn(Duration, Duration) -> Option<&'static str>,
    ) -> (Option<Duration>, Option<Duration>) {
        let (low_value, high_value) = (self.duration(low), self.duration(high));
        if let (Some(low_value), Some(high_value)) = (low_value, high_value)
            && let Some(why) = why_not(low_value, high_value)
        {
            let place = [high, low]
                .iter()
                .find_map(|name| self.table.items.get(*name))
                .map_or(&self.table.place, |item| &item.place)
                .clone();
            let relation =
                if why_not(low_value, low_value).is_some() { "must exceed" } else { "must not be below" };
            let text = format!(
                "{} {relation} {}: {why}",
                self.described(high, high_value),
                self.described(low, low_value)
            );
            self.findings.error(&place, text);
        }
        (low_value, high_value)
    }

    /// `net_read_timeout = "5s"` or `heartbeat_period (default 5s)`.
    fn described(&self, name: &str, value: Duration) -> String {
        match self.table.items.get(name) {
            Some(item) => subject(key(self.section, name), item),
            None => format!("{name} (default {})", duration::format(value)),
        }
    }

    fn start(&mut self, name: &str) -> Option<Start> {
        let key = key(self.section, name);
        let item = self.item(key)?;
        let Value::Text(text) = &item.value else {
            self.refuse(key, &item);
            return None;
        };
        match parse_start(text) {
            Ok(start) => Some(start),
            Err(why) => {
                self.wrong(key, &item, &why);
                None
            }
        }
    }

    fn password(&mut self, environment: Environment<'_>) -> Option<crate::wire::Secret> {
        password::resolve(self.table, self.base, environment, self.findings)
    }

    fn tls(&mut self) -> Option<TlsOptions> {
        let mode = self.choice("tls", |word| TlsMode::from_str(word).ok());
        let (ca, cert, key) =
            (self.optional_path("tls_ca"), self.optional_path("tls_cert"), self.optional_path("tls_key"));
        let options = TlsOptions { mode: mode?, ca: ca?, cert: cert?, key: key? };
        self.check_tls_files(&options);
        let verifies = matches!(options.mode, TlsMode::VerifyCa | TlsMode::VerifyFull);
        if verifies && options.ca.is_none() {
            self.tls_error(
                "tls",
                &format!("tls = \"{}\" needs tls_ca, the authorities to trust", options.mode),
            );
        }
        if !verifies && options.ca.is_some() {
            // Silence here would let an operator believe that the certificate is checked.
            let text = format!(
                "tls_ca is not used while tls is {}: set tls to verify-ca or verify-full, or remove tls_ca",
                options.mode
            );
            self.tls_error("tls_ca", &text);
        }
        match (&options.cert, &options.key) {
            (Some(_), None) => self.tls_error("tls_cert", "tls_cert needs tls_key, its private key"),
            (None, Some(_)) => {
                self.tls_error("tls_key", "tls_key needs tls_cert, the certificate that it belongs to")
            }
            (Some(_), Some(_)) if options.mode == TlsMode::Disabled => {
                self.tls_error("tls_cert", "tls_cert and tls_key are not used while tls is disabled");
            }
            _ => {}
        }
        Some(options)
    }

    fn check_tls_files(&mut self, options: &TlsOptions) {
        for (name, path) in [("tls_ca", &options.ca), ("tls_cert", &options.cert), ("tls_key", &options.key)]
        {
            let (Some(path), Some(item)) = (path, self.table.items.get(name)) else { continue };
            match std::fs::File::open(path).and_then(|file| file.metadata()) {
                Ok(metadata) if metadata.is_dir() => {
                    self.wrong(key(self.section, name), item, "is a folder, not a PEM file");
                }
                Ok(_) => {}
                Err(error) => self.wrong(key(self.section, name), item, &format!("cannot be read: {error}")),
            }
        }
        if let (Some(path), Some(item)) = (&options.key, self.table.items.get("tls_key")) {
            password::warn_if_exposed(path, "is a private key", &item.place, self.findings);
        }
    }

    fn tls_error(&mut self, name: &str, text: &str) {
        let place = self.table.items.get(name).map_or(&self.table.place, |item| &item.place).clone();
        self.findings.error(&place, text);
    }
}

/// `path` seen from `base`, without the `./` that operators like to write.
fn below(base: &Path, path: &str) -> PathBuf {
    let path = Path::new(path);
    if base.as_os_str().is_empty() {
        path.to_owned()
    } else {
        base.join(path.strip_prefix(".").unwrap_or(path))
    }
}

/// How a message names an item: `fsync_mode = 2`, or `--fsync-mode 2`. A password's value never appears.
fn subject(key: &Key, item: &Item) -> String {
    let shown = match (key.kind, &item.value) {
        (Kind::Secret, _) => format!("(a {})", item.type_name()),
        _ => item.shown(),
    };
    match &item.place {
        Place::Flag(flag) => format!("{flag} {shown}"),
        _ => format!("{} = {shown}", key.name),
    }
}
