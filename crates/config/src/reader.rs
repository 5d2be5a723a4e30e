//! Reads the keys of one section, each by the kind of its value.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::error::{Findings, Place};
use super::given::{Item, Table, Value};
use super::key::{Absent, Key, Kind, Section};
use super::keys::key;
use super::password::{self, Environment, Password};
use super::point::Point;
use super::privileges::Privileges;
use super::settings::{Bounds, Proof};
use super::space::{self, DiskWarn};
use super::value::{HostPort, Start, below, is_name, parse_host_port, parse_start};
use super::{duration, file};
use wire::{Secret, ServerTls, TlsMode, TlsOptions, Verifiers};

/// Reads the keys of one section. Each method returns `None` after it has noted an error.
pub(crate) struct Reader<'a> {
    base: &'a Path,
    section: Section,
    table: &'a Table,
    findings: &'a mut Findings,
}

impl<'a> Reader<'a> {
    /// A reader of `table`, which is a `section`.
    pub(crate) fn new(section: Section, table: &'a Table, findings: &'a mut Findings) -> Self {
        Self { base: table.place.folder(), section, table, findings }
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

    /// A text that is not empty.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
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

    /// As [`text`](Self::text), or `Some(None)` when the key is absent.
    pub(crate) fn optional_text(&mut self, name: &str) -> Option<Option<String>> {
        match self.item(key(self.section, name)) {
            Some(_) => self.text(name).map(Some),
            None => Some(None),
        }
    }

    /// A text with a grammar of its own, whose error completes the sentence "`key` …".
    pub(crate) fn parsed<T>(&mut self, name: &str, parse: fn(&str) -> Result<T, String>) -> Option<T> {
        let key = key(self.section, name);
        let item = self.item(key)?;
        let Value::Text(text) = &item.value else {
            self.refuse(key, &item);
            return None;
        };
        parse(text).map_err(|why| self.wrong(key, &item, &why)).ok()
    }

    /// A list of texts, or `Some(None)` when the key is absent.
    pub(crate) fn texts(&mut self, name: &str) -> Option<Option<Vec<String>>> {
        let key = key(self.section, name);
        let Some(item) = self.item(key) else { return Some(None) };
        let texts: Option<Vec<String>> = match &item.value {
            Value::List(items) if !items.is_empty() => items
                .iter()
                .map(|item| match &item.value {
                    Value::Text(text) if !text.trim().is_empty() => Some(text.clone()),
                    _ => None,
                })
                .collect(),
            _ => None,
        };
        if texts.is_none() {
            // The value is not shown: a private key may stand in the wrong place.
            let text = format!("{name} must be {}, or be left out", key.allowed());
            self.findings.error(&item.place, text);
        }
        texts.map(Some)
    }

    /// A path, seen from the base folder.
    pub(crate) fn path(&mut self, name: &str) -> Option<PathBuf> {
        self.optional_path(name)?
    }

    /// A path below the base folder, or `Some(None)` when the key is absent.
    pub(crate) fn optional_path(&mut self, name: &str) -> Option<Option<PathBuf>> {
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

    /// A list of paths, seen from the base folder, or `Some(None)` when the key is absent.
    pub(crate) fn paths(&mut self, name: &str) -> Option<Option<Vec<PathBuf>>> {
        let texts = self.texts(name)?;
        let base = self.base;
        Some(texts.map(|texts| texts.iter().map(|text| below(base, text)).collect()))
    }

    /// A name that can be a folder.
    pub(crate) fn name(&mut self, name: &str) -> Option<String> {
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

    /// A list of addresses without repetition.
    pub(crate) fn hosts(&mut self, name: &str) -> Option<Vec<HostPort>> {
        self.given_hosts(name)?
    }

    /// As [`hosts`](Self::hosts), or `Some(None)` when the key is absent.
    pub(crate) fn given_hosts(&mut self, name: &str) -> Option<Option<Vec<HostPort>>> {
        let key = key(self.section, name);
        let Some(item) = self.item(key) else {
            return matches!(key.absent, Absent::Unset(_)).then_some(None);
        };
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
        (hosts.len() == items.len()).then_some(Some(hosts))
    }

    /// An address to listen at, or `Some(None)` for `off`.
    pub(crate) fn listen(&mut self, name: &str) -> Option<Option<SocketAddr>> {
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
    pub(crate) fn choice<T>(&mut self, name: &str, value: fn(&str) -> Option<T>) -> Option<T> {
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

    /// `true` or `false`; a flag gives it as text.
    pub(crate) fn boolean(&mut self, name: &str) -> Option<bool> {
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

    /// As [`boolean`](Self::boolean), or `Some(None)` when the key is absent.
    pub(crate) fn optional_boolean(&mut self, name: &str) -> Option<Option<bool>> {
        match self.item(key(self.section, name)) {
            Some(_) => self.boolean(name).map(Some),
            None => Some(None),
        }
    }

    /// A number in the key's range, or `Some(None)` when the key is absent.
    pub(crate) fn number(&mut self, name: &str) -> Option<Option<u32>> {
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

    /// A duration in the key's range.
    pub(crate) fn duration(&mut self, name: &str) -> Option<Duration> {
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

    /// A duration, or `Some(None)` when the key is absent.
    pub(crate) fn optional_duration(&mut self, name: &str) -> Option<Option<Duration>> {
        match self.item(key(self.section, name)) {
            Some(_) => self.duration(name).map(Some),
            None => Some(None),
        }
    }

    /// An amount of disk space in bytes, or `Some(None)` when the key is absent.
    pub(crate) fn optional_bytes(&mut self, name: &str) -> Option<Option<u64>> {
        let key = key(self.section, name);
        let Some(item) = self.item(key) else { return Some(None) };
        match &item.value {
            Value::Text(text) => match space::parse(text) {
                Ok(DiskWarn::Bytes(bytes)) => return Some(Some(bytes)),
                Ok(_) | Err(space::SpaceError::Other) => self.refuse(key, &item),
                Err(error) => self.wrong(key, &item, &error.to_string()),
            },
            _ => self.refuse(key, &item),
        }
        None
    }

    /// An amount of disk space.
    pub(crate) fn space(&mut self, name: &str) -> Option<DiskWarn> {
        let key = key(self.section, name);
        let item = self.item(key)?;
        let parsed = match &item.value {
            Value::Text(text) => space::parse(text),
            Value::Integer(number) => Err(space::SpaceError::NoUnit(number.clone())),
            _ => Err(space::SpaceError::Other),
        };
        match parsed {
            Ok(warn) => Some(warn),
            Err(error) => {
                self.wrong(key, &item, &error.to_string());
                None
            }
        }
    }

    /// A name that can be that of a file, or `Some(None)` when the key is absent.
    pub(crate) fn optional_name(&mut self, name: &str) -> Option<Option<String>> {
        match self.item(key(self.section, name)) {
            Some(_) => self.name(name).map(Some),
            None => Some(None),
        }
    }

    /// Two durations of which `why_not(low, high)` says what is wrong between them.
    pub(crate) fn ordered(
        &mut self,
        low: &str,
        high: &str,
        why_not: fn(Duration, Duration) -> Option<&'static str>,
    ) -> (Option<Duration>, Option<Duration>) {
        let (low_value, mut high_value) = (self.duration(low), self.duration(high));
        if !self.table.items.contains_key(high)
            && let (Some(low_value), Some(default)) = (low_value, high_value)
            && why_not(low_value, low_value).is_none()
        {
            // Only `low` was given, and it counts: a default must not stand in its way.
            high_value = Some(default.max(low_value));
        }
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

    /// Where to begin.
    pub(crate) fn start(&mut self, name: &str) -> Option<Start> {
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

    /// The password, from the one key or variable that gives it.
    pub(crate) fn password(&mut self, environment: Environment<'_>) -> Option<Password> {
        password::resolve(self.table, self.base, environment, self.findings)
    }

    /// What a `[[serve.user]]` knows of the password: exactly one key must say it.
    pub(crate) fn proof(&mut self, environment: Environment<'_>) -> Option<Proof> {
        const KEYS: [&str; 4] = ["password", "password_file", "password_env", "password_hash"];
        match password::given(self.table, &KEYS, self.findings)? {
            Some(("password_hash", item)) => match &item.value {
                Value::Text(text) => match text.parse::<Verifiers>() {
                    Ok(_) => Some(Proof::Hash(Secret::new(text.clone()))),
                    Err(error) => {
                        self.wrong(key(self.section, "password_hash"), item, &error.to_string());
                        None
                    }
                },
                _ => {
                    self.refuse(key(self.section, "password_hash"), item);
                    None
                }
            },
            Some((name, item)) => {
                let given = password::resolve_key(name, item, self.base, environment, self.findings)?;
                Some(Proof::Password(given.secret))
            }
            None => {
                let text = format!("{} lacks a password: add password_file = \"…\"", self.section.title());
                self.findings.error(&self.table.place, text);
                None
            }
        }
    }

    /// A text that must be given, though an example shows none.
    pub(crate) fn given_text(&mut self, name: &str) -> Option<String> {
        if !self.table.items.contains_key(name) {
            let text = format!("{} lacks {name}", self.section.title());
            self.findings.error(&self.table.place, text);
            return None;
        }
        self.text(name)
    }

    /// A list of names without repetition, or `Some(None)` when the key is absent.
    pub(crate) fn names(&mut self, name: &str) -> Option<Option<Vec<String>>> {
        let key = key(self.section, name);
        let Some(item) = self.item(key) else { return Some(None) };
        let names: Option<Vec<String>> = match &item.value {
            Value::List(items) if !items.is_empty() => items
                .iter()
                .map(|item| match &item.value {
                    Value::Text(text) if is_name(text) => Some(text.clone()),
                    _ => None,
                })
                .collect(),
            _ => None,
        };
        if names.is_none() {
            self.refuse(key, &item);
        }
        names.map(Some)
    }

    /// Where dumps stop, or `Some(None)` when the key is absent.
    fn point(&mut self, name: &str) -> Option<Option<Point>> {
        let key = key(self.section, name);
        let Some(item) = self.item(key) else { return Some(None) };
        let Value::Text(text) = &item.value else {
            self.refuse(key, &item);
            return None;
        };
        match text.parse() {
            Ok(point) => Some(Some(point)),
            Err(error) => {
                self.wrong(key, &item, &error.to_string());
                None
            }
        }
    }

    /// What holds the dumps of an account back.
    pub(crate) fn bounds(&mut self) -> Option<Bounds> {
        let (stop_before, stop_after) = (self.point("stop_before"), self.point("stop_after"));
        let delay = match self.table.items.contains_key("delay") {
            true => self.duration("delay"),
            false => Some(Duration::ZERO),
        };
        if let (Some(Some(_)), Some(Some(_))) = (&stop_before, &stop_after) {
            let text =
                "stop_after and stop_before are both given, and dumps stop at one point: remove one of them";
            self.relation("stop_after", text);
        }
        Some(Bounds { stop_before: stop_before?, stop_after: stop_after?, delay: delay? })
    }

    /// What an account may do; without the key, read.
    pub(crate) fn privileges(&mut self, name: &str) -> Option<Privileges> {
        let key = key(self.section, name);
        let Some(item) = self.item(key) else { return Some(Privileges::READ) };
        let mut privileges = Privileges::default();
        let is_understood = match &item.value {
            Value::List(items) if !items.is_empty() => {
                items.iter().all(|item| matches!(&item.value, Value::Text(word) if privileges.add(word)))
            }
            _ => false,
        };
        if !is_understood {
            self.refuse(key, &item);
        }
        is_understood.then_some(privileges)
    }

    /// Certificate and key of a server, or `Some(None)` without them.
    pub(crate) fn server_tls(&mut self) -> Option<Option<(PathBuf, PathBuf)>> {
        let (cert, key) = (self.optional_path("tls_cert")?, self.optional_path("tls_key")?);
        let files = TlsOptions { cert: cert.clone(), key: key.clone(), ..TlsOptions::default() };
        self.check_tls_files(&files);
        match (cert, key) {
            (None, None) => Some(None),
            (Some(cert), Some(key)) => {
                // Files that cannot be opened were told above.
                let can_be_read = [&cert, &key].iter().all(|file| std::fs::File::open(file).is_ok());
                if can_be_read && let Err(error) = ServerTls::load(&cert, &key) {
                    let text = format!(
                        "{error}: tls_cert must hold the server's certificate in PEM form, and tls_key the private key of that \
                         certificate"
                    );
                    self.relation("tls_cert", &text);
                }
                Some(Some((cert, key)))
            }
            (Some(_), None) => {
                self.relation("tls_cert", "tls_cert needs tls_key, its private key");
                None
            }
            (None, Some(_)) => {
                self.relation("tls_key", "tls_key needs tls_cert, the certificate that it belongs to");
                None
            }
        }
    }

    /// The four keys of TLS, which must fit together and whose files must be readable.
    pub(crate) fn tls(&mut self) -> Option<TlsOptions> {
        let mode = self.choice("tls", |word| TlsMode::from_str(word).ok());
        let (ca, cert, key) =
            (self.optional_path("tls_ca"), self.optional_path("tls_cert"), self.optional_path("tls_key"));
        let options = TlsOptions { mode: mode?, ca: ca?, cert: cert?, key: key? };
        self.check_tls_files(&options);
        let verifies = matches!(options.mode, TlsMode::VerifyCa | TlsMode::VerifyFull);
        if !verifies && options.ca.is_some() {
            // Silence here would let an operator believe that the certificate is checked.
            let text = format!(
                "tls_ca is not used while tls is {}: set tls to verify-ca or verify-full, or remove tls_ca",
                options.mode
            );
            self.relation("tls_ca", &text);
        }
        match (&options.cert, &options.key) {
            (Some(_), None) => self.relation("tls_cert", "tls_cert needs tls_key, its private key"),
            (None, Some(_)) => {
                self.relation("tls_key", "tls_key needs tls_cert, the certificate that it belongs to")
            }
            (Some(_), Some(_)) if options.mode == TlsMode::Disabled => {
                self.relation("tls_cert", "tls_cert and tls_key are not used while tls is disabled");
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

    /// Notes what is wrong between a key and others.
    pub(crate) fn relation(&mut self, name: &str, text: &str) {
        let place = self.table.items.get(name).map_or(&self.table.place, |item| &item.place).clone();
        self.findings.error(&place, text);
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
