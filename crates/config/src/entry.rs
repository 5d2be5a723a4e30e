//! One key of one table: as it was given, and what that means.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::document::text::default_item;
use super::document::{Item, Table, Value};
use super::error::{Findings, Place};
use super::key::{Absent, Key, Kind};
use super::value::duration::{self, DurationError};
use super::value::space::{self, DiskWarn, SpaceError};
use super::value::{HostPort, Point, Privileges, Start, below, is_name, parse_host_port, parse_start};
use archive::store::remote::Location;
use archive::upkeep::keep::Keep;
use wire::{Secret, TlsMode};

/// A key of one table as it was given.
pub struct Entry<T> {
    /// Which key.
    pub key: &'static Key,
    /// What was given; `None` where the key is absent.
    pub given: Option<Item>,
    /// What it means, or what counts where it is absent. `None` where that is wrong, or must be given: that has been told.
    pub value: Option<T>,
    /// Where the table begins.
    table: Place,
}

impl<T: FromItem> Entry<T> {
    /// Reads a key of `table`. What is wrong is told.
    pub(crate) fn read(key: &'static Key, table: &Table, findings: &mut Findings) -> Entry<T> {
        let mut entry =
            Entry { key, given: table.items.get(key.name).cloned(), value: None, table: table.place.clone() };
        let fallback = key.fallback.map(|toml| default_item(toml, &table.place));
        entry.value = match entry.given.as_ref().or(fallback.as_ref()) {
            Some(item) => T::read(key, item).map_err(|wrong| wrong.tell(key, item, findings)).ok(),
            None => {
                let absent = T::absent().filter(|_| !matches!(key.absent, Absent::Required(_)));
                if absent.is_none() {
                    let add = match key.absent {
                        Absent::Required(example) => format!(": add {} = {example}", key.name),
                        Absent::Unset(_) | Absent::Default(_) => String::new(),
                    };
                    let text = format!("{} lacks {}{add}", key.section.title(), key.name);
                    findings.error(&table.place, text);
                }
                absent
            }
        };
        entry
    }
}

impl<T> Entry<T> {
    /// Where it was given, else where its table begins.
    pub(crate) fn place(&self) -> &Place {
        self.given.as_ref().map_or(&self.table, |item| &item.place)
    }

    /// Notes what is wrong between this key and others.
    pub(crate) fn relation(&self, text: impl Into<String>, findings: &mut Findings) {
        findings.error(self.place(), text);
    }

    /// Notes what is wrong with the value that was given. `why` completes "`key = value`: …".
    pub(crate) fn wrong(&self, why: impl Display, findings: &mut Findings) {
        if let Some(item) = &self.given {
            Wrong::because(why).tell(self.key, item, findings);
        }
    }
}

impl Entry<Duration> {
    /// `net_read_timeout = "5s"` or `heartbeat_period (default 5s)`.
    pub(crate) fn described(&self) -> String {
        match (&self.given, self.value) {
            (Some(item), _) => subject(self.key, item),
            (None, Some(value)) => format!("{} (default {})", self.key.name, duration::format(value)),
            (None, None) => self.key.name.to_owned(),
        }
    }
}

/// How a message names an item: `fsync_mode = 2`, or `--fsync-mode 2`. A password's value never appears.
fn subject(key: &Key, item: &Item) -> String {
    let shown = match key.kind {
        Kind::SECRET | Kind::SECRET_URL => format!("(a {})", item.type_name()),
        _ => item.shown(),
    };
    match &item.place {
        Place::Flag(flag) => format!("{flag} {shown}"),
        _ => format!("{} = {shown}", key.name),
    }
}

/// Why an item is not a value of its key.
#[derive(Clone, Debug)]
pub enum Wrong {
    /// It is not what the key accepts.
    Refused,
    /// The same, and it is not shown, because a secret may stand in the wrong place.
    RefusedUnseen,
    /// This, which completes the sentence "`key = value`: …".
    Because(String),
    /// Some elements of a list, each with its reason.
    Elements(Vec<(Item, Wrong)>),
}

impl Wrong {
    /// What completes the sentence "`key = value`: …".
    pub(crate) fn because(why: impl Display) -> Wrong {
        Wrong::Because(why.to_string())
    }

    fn tell(self, key: &Key, item: &Item, findings: &mut Findings) {
        let text = match self {
            Wrong::Refused => format!("{}: must be {}", subject(key, item), key.allowed()),
            Wrong::RefusedUnseen => format!("{} must be {}, or be left out", key.name, key.allowed()),
            Wrong::Because(why) => format!("{}: {why}", subject(key, item)),
            Wrong::Elements(elements) => {
                return elements.into_iter().for_each(|(item, wrong)| wrong.tell(key, &item, findings));
            }
        };
        findings.error(&item.place, text);
    }
}

/// A type of values that a key can have.
pub trait FromItem: Sized {
    /// What a key of this type accepts, where its declaration does not say more.
    const KIND: Kind;

    /// The value of a key that is absent and has no default; `None`: it must be given.
    fn absent() -> Option<Self> {
        None
    }

    /// The value that an item gives.
    ///
    /// # Errors
    /// Why it is none.
    fn read(key: &Key, item: &Item) -> Result<Self, Wrong>;
}

/// The value of a key that is read together with others.
pub struct Unread;

impl FromItem for Unread {
    const KIND: Kind = Kind::TEXT;

    fn absent() -> Option<Unread> {
        Some(Unread)
    }

    fn read(_: &Key, _: &Item) -> Result<Unread, Wrong> {
        Ok(Unread)
    }
}

/// A key that may be absent.
impl<T: FromItem> FromItem for Option<T> {
    const KIND: Kind = T::KIND;

    fn absent() -> Option<Option<T>> {
        Some(None)
    }

    fn read(key: &Key, item: &Item) -> Result<Option<T>, Wrong> {
        T::read(key, item).map(Some)
    }
}

impl FromItem for bool {
    const KIND: Kind = Kind::BOOLEAN;

    fn read(_: &Key, item: &Item) -> Result<bool, Wrong> {
        match (&item.value, &item.place) {
            (Value::Boolean(boolean), _) => Ok(*boolean),
            // A flag gives it as text.
            (Value::Text(text), Place::Flag(_)) => text.parse().map_err(|_| Wrong::Refused),
            _ => Err(Wrong::Refused),
        }
    }
}

impl FromItem for u32 {
    const KIND: Kind = Kind::Number { min: 0, max: u32::MAX as u64 };

    fn read(key: &Key, item: &Item) -> Result<u32, Wrong> {
        let Kind::Number { min, max } = key.kind else { return Err(Wrong::Refused) };
        let number: Option<u32> = match (&item.value, &item.place) {
            (Value::Integer(text), _) | (Value::Text(text), Place::Flag(_)) => text.parse().ok(),
            _ => None,
        };
        number.filter(|number| (min..=max).contains(&u64::from(*number))).ok_or(Wrong::Refused)
    }
}

impl FromItem for Duration {
    const KIND: Kind = Kind::Duration { min: Duration::ZERO, max: Duration::MAX };

    fn read(key: &Key, item: &Item) -> Result<Duration, Wrong> {
        let Kind::Duration { min, max } = key.kind else { return Err(Wrong::Refused) };
        let duration = match &item.value {
            Value::Text(text) => duration::parse(text),
            // Said as a unit that is missing, because that is what an operator forgot.
            Value::Integer(number) => Err(DurationError::NoUnit(number.clone())),
            _ => Err(DurationError::Malformed),
        };
        let duration = duration.map_err(Wrong::because)?;
        if (min..=max).contains(&duration) { Ok(duration) } else { Err(Wrong::Refused) }
    }
}

impl FromItem for DiskWarn {
    const KIND: Kind = Kind::SPACE;

    fn read(_: &Key, item: &Item) -> Result<DiskWarn, Wrong> {
        let warn = match &item.value {
            Value::Text(text) => space::parse(text),
            Value::Integer(number) => Err(SpaceError::NoUnit(number.clone())),
            _ => Err(SpaceError::Other),
        };
        warn.map_err(Wrong::because)
    }
}

/// An amount of disk space, in bytes.
impl FromItem for u64 {
    const KIND: Kind = Kind::BYTES;

    fn read(_: &Key, item: &Item) -> Result<u64, Wrong> {
        let Value::Text(text) = &item.value else { return Err(Wrong::Refused) };
        match space::parse(text) {
            Ok(DiskWarn::Bytes(bytes)) => Ok(bytes),
            Ok(_) | Err(SpaceError::Other) => Err(Wrong::Refused),
            Err(error) => Err(Wrong::because(error)),
        }
    }
}

impl FromItem for String {
    const KIND: Kind = Kind::TEXT;

    fn read(key: &Key, item: &Item) -> Result<String, Wrong> {
        let is_right = |text: &&str| match key.kind {
            Kind::NAME => is_name(text),
            _ => !text.is_empty() && !text.contains('\0'),
        };
        item.text().filter(is_right).map(str::to_owned).ok_or(Wrong::Refused)
    }
}

/// A URL that is never shown.
impl FromItem for Secret {
    const KIND: Kind = Kind::SECRET_URL;

    fn read(_: &Key, item: &Item) -> Result<Secret, Wrong> {
        let is_url = |text: &&str| {
            let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
            let is_plain = !text.contains(|c: char| c.is_whitespace() || c.is_control());
            let is_named = host.is_some_and(|host| !host.is_empty() && !host.starts_with('/'));
            is_plain && is_named && url::Url::parse(text).is_ok()
        };
        item.text().filter(is_url).map(Secret::from).ok_or(Wrong::Refused)
    }
}

/// A path counts from the folder of the file in which it stands.
impl FromItem for PathBuf {
    const KIND: Kind = Kind::PATH;

    fn read(_: &Key, item: &Item) -> Result<PathBuf, Wrong> {
        let text = item.text().filter(|text| !text.is_empty() && !text.contains('\0'));
        text.map(|text| below(item.place.folder(), text)).ok_or(Wrong::Refused)
    }
}

impl FromItem for Vec<String> {
    const KIND: Kind = Kind::TEXTS;

    fn absent() -> Option<Vec<String>> {
        Some(Vec::new())
    }

    fn read(key: &Key, item: &Item) -> Result<Vec<String>, Wrong> {
        let are_names = key.kind == Kind::NAMES;
        let is_right = |text: &&str| if are_names { is_name(text) } else { !text.trim().is_empty() };
        let texts = item.list().map(|item| item.text().filter(is_right).map(str::to_owned));
        let texts: Option<Vec<String>> = texts.collect();
        let wrong = if are_names { Wrong::Refused } else { Wrong::RefusedUnseen };
        texts.filter(|texts| !texts.is_empty()).ok_or(wrong)
    }
}

impl FromItem for Vec<PathBuf> {
    const KIND: Kind = Kind::PATHS;

    fn absent() -> Option<Vec<PathBuf>> {
        Some(Vec::new())
    }

    fn read(key: &Key, item: &Item) -> Result<Vec<PathBuf>, Wrong> {
        let texts = Vec::<String>::read(key, item)?;
        Ok(texts.iter().map(|text| below(item.place.folder(), text)).collect())
    }
}

impl FromItem for Vec<HostPort> {
    const KIND: Kind = Kind::HOSTS;

    fn absent() -> Option<Vec<HostPort>> {
        Some(Vec::new())
    }

    fn read(_: &Key, item: &Item) -> Result<Vec<HostPort>, Wrong> {
        let (mut hosts, mut wrong) = (Vec::new(), Vec::new());
        for item in item.list() {
            let host = item.text().ok_or(Wrong::Refused);
            match host.and_then(|text| parse_host_port(text).map_err(Wrong::because)) {
                Ok(host) if hosts.contains(&host) => {
                    wrong.push((item.clone(), Wrong::because("is listed twice")));
                }
                Ok(host) => hosts.push(host),
                Err(why) => wrong.push((item.clone(), why)),
            }
        }
        match (hosts.is_empty(), wrong.is_empty()) {
            (_, false) => Err(Wrong::Elements(wrong)),
            (true, true) => Err(Wrong::Refused),
            (false, true) => Ok(hosts),
        }
    }
}

/// An address to listen at; `None` for `off`.
impl FromItem for Option<SocketAddr> {
    const KIND: Kind = Kind::LISTEN;

    fn read(_: &Key, item: &Item) -> Result<Option<SocketAddr>, Wrong> {
        match item.text() {
            Some("off") => Ok(None),
            text => text.and_then(|text| text.parse().ok()).map(Some).ok_or(Wrong::Refused),
        }
    }
}

/// A text with a grammar of its own, whose error completes the sentence "`key = value`: …".
macro_rules! from_text {
    ($Value:ty, $kind:expr, $parse:expr) => {
        impl FromItem for $Value {
            const KIND: Kind = $kind;

            fn read(_: &Key, item: &Item) -> Result<$Value, Wrong> {
                $parse(item.text().ok_or(Wrong::Refused)?).map_err(Wrong::because)
            }
        }
    };
}

from_text!(Start, Kind::START, parse_start);
from_text!(Point, Kind::POINT, str::parse::<Point>);
from_text!(Keep, Kind::KEEP, str::parse::<Keep>);
from_text!(Location, Kind::ARCHIVE_URL, str::parse::<Location>);

impl FromItem for TlsMode {
    const KIND: Kind = Kind::Choice(&[
        ("disabled", "never"),
        ("preferred", "where the server offers it"),
        ("required", "always, the certificate unchecked"),
        ("verify-ca", "always, the certificate from a trusted authority"),
        ("verify-full", "as verify-ca, and it names the host"),
    ]);

    fn read(_: &Key, item: &Item) -> Result<TlsMode, Wrong> {
        item.text().and_then(|word| word.parse().ok()).ok_or(Wrong::Refused)
    }
}

/// A list of words, of which each adds a privilege.
impl FromItem for Privileges {
    const KIND: Kind = Kind::Choices(&[
        ("read", "dumps, and SHOW of binary logs and of replication"),
        ("purge", "PURGE BINARY LOGS"),
        ("control", "START and STOP REPLICA; KILL of other users' connections, and the sight of these"),
        ("all", "all of them"),
    ]);

    fn read(_: &Key, item: &Item) -> Result<Privileges, Wrong> {
        let mut privileges = Privileges::default();
        for item in item.list() {
            match item.text() {
                Some("read") => privileges.read = true,
                Some("purge") => privileges.purge = true,
                Some("control") => privileges.control = true,
                Some("all") => privileges = Privileges::ALL,
                _ => return Err(Wrong::Refused),
            }
        }
        // A list of none, and what is no list.
        if privileges == Privileges::default() { Err(Wrong::Refused) } else { Ok(privileges) }
    }
}
