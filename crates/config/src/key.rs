//! A key of the configuration: what it accepts, what holds without it, and what a change of it needs.

use super::value::{duration, point, space};
use std::time::Duration;

pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const DAY: Duration = Duration::from_secs(86_400);
pub(crate) const TEN_YEARS: Duration = Duration::from_secs(3650 * 86_400);

pub(crate) const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// The table of a configuration file that a key belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Above the first table.
    Root,
    /// `[admin]`.
    Admin,
    /// Each `[[admin.user]]`.
    AdminUser,
    /// `[log]`.
    Log,
    /// `[serve]`.
    Serve,
    /// Each `[[serve.user]]`.
    ServeUser,
    /// `[retention]`.
    Retention,
    /// `[archive]`.
    Archive,
    /// `[backup]`.
    Backup,
    /// `[drill]`.
    Drill,
    /// `[notify]`.
    Notify,
    /// Each `[[source]]`.
    Source,
}

impl Section {
    /// All of them, in the order of the example.
    pub const ALL: [Section; 12] = [
        Self::Root,
        Self::Admin,
        Self::AdminUser,
        Self::Log,
        Self::Serve,
        Self::ServeUser,
        Self::Retention,
        Self::Archive,
        Self::Backup,
        Self::Drill,
        Self::Notify,
        Self::Source,
    ];

    /// How messages name the section, and how it is written.
    pub fn title(self) -> &'static str {
        match self {
            Self::Root => "the top level",
            Self::Admin => "[admin]",
            Self::AdminUser => "[[admin.user]]",
            Self::Log => "[log]",
            Self::Serve => "[serve]",
            Self::ServeUser => "[[serve.user]]",
            Self::Retention => "[retention]",
            Self::Archive => "[archive]",
            Self::Backup => "[backup]",
            Self::Drill => "[drill]",
            Self::Notify => "[notify]",
            Self::Source => "[[source]]",
        }
    }

    /// Whether there may be several.
    pub fn is_repeated(self) -> bool {
        self.title().starts_with("[[")
    }

    /// Its name in the table around it.
    pub(crate) fn name(self) -> &'static str {
        let path = self.title().trim_matches(['[', ']']);
        path.rsplit_once('.').map_or(path, |(_, name)| name)
    }

    /// The sections whose tables stand in this one's.
    pub(crate) fn inside(self) -> impl Iterator<Item = Section> {
        Self::ALL.into_iter().filter(move |inner| match inner {
            Self::Root => false,
            Self::AdminUser => self == Self::Admin,
            Self::ServeUser => self == Self::Serve,
            _ => self == Self::Root,
        })
    }
}

/// What a key accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text, a list or a boolean with rules of its own.
    Form {
        /// The word that stands for a value in `--help`.
        placeholder: &'static str,
        /// What is accepted, as a phrase after "must be".
        allowed: &'static str,
    },
    /// One of these words or numbers, each with its meaning.
    Choice(&'static [(&'static str, &'static str)]),
    /// A list of these words, each with its meaning.
    Choices(&'static [(&'static str, &'static str)]),
    /// A whole number in this range, ends included.
    Number {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// A duration in this range, ends included.
    Duration {
        /// Shortest.
        min: Duration,
        /// Longest.
        max: Duration,
    },
}

impl Kind {
    /// Any text but an empty one.
    pub const TEXT: Kind = form("TEXT", "a text that is not empty");
    /// A password: its value is never shown.
    pub const SECRET: Kind = form("PASSWORD", "a text");
    /// A URL that is as good as a password: its value is never shown.
    pub const SECRET_URL: Kind = form("URL", "a URL that begins with http:// or https://");
    /// The path of a file or folder.
    pub const PATH: Kind = form("PATH", "a path");
    /// A list of paths.
    pub const PATHS: Kind = form("PATHS", "a list of paths");
    /// A path or a pattern of paths, or a list of them.
    pub const PATTERNS: Kind =
        form("PATTERN", "a path or a pattern such as \"conf.d/*.toml\", or a list of them");
    /// The name of a source.
    pub const NAME: Kind =
        form("NAME", "1 to 64 of the characters A-Z a-z 0-9 _ . - and not begin with a dot");
    /// A list of names of sources.
    pub const NAMES: Kind = form("NAMES", "a list of names of sources, such as [\"orders\", \"billing\"]");
    /// A list of `host[:port]`.
    pub const HOSTS: Kind = form("HOSTS", "a list of \"host:port\", such as [\"db1:3306\", \"[::1]:3306\"]");
    /// A list of texts that are not empty.
    pub const TEXTS: Kind = form("TEXTS", "a list of texts that are not empty");
    /// The URL of an archive.
    pub const ARCHIVE_URL: Kind = form("URL", archive::store::remote::FORMS);
    /// Which backups stay.
    pub const KEEP: Kind = form("RULE", "how many days, weeks, months and years, such as \"7d 4w 12m\"");
    /// A time of day.
    pub const TIME_OF_DAY: Kind = form("TIME", "a time of day, such as \"03:30\"");
    /// `ip:port` of the admin address, or `off`.
    pub const LISTEN: Kind =
        form("ADDRESS", "an IP address and port, such as 127.0.0.1:9306 or [::1]:9306, or off");
    /// `ip:port` for readers, or `off`.
    pub const SERVE_LISTEN: Kind =
        form("ADDRESS", "an IP address and port, such as 127.0.0.1:3307 or [::1]:3307, or off");
    /// `true` or `false`.
    pub const BOOLEAN: Kind = form("BOOLEAN", "true or false");
    /// An amount or a percentage of disk space, or `off`.
    pub const SPACE: Kind = form("SPACE", space::ALLOWED);
    /// An amount of disk space.
    pub const BYTES: Kind = form("BYTES", space::ALLOWED_BYTES);
    /// Where to begin.
    pub const START: Kind = form("START", "resume, earliest, latest, gtid:<set> or file:<name>:<position>");
    /// Where to stop.
    pub const POINT: Kind = form("POINT", point::FORMS);

    /// The word that stands for a value in `--help`.
    pub fn placeholder(self) -> &'static str {
        match self {
            Self::Form { placeholder, .. } => placeholder,
            Self::Choice(_) => "CHOICE",
            Self::Choices(_) => "CHOICES",
            Self::Number { .. } => "NUMBER",
            Self::Duration { .. } => "DURATION",
        }
    }
}

const fn form(placeholder: &'static str, allowed: &'static str) -> Kind {
    Kind::Form { placeholder, allowed }
}

/// What the example and the reference show where a key is absent. Values are TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The key must be given; here is an example.
    Required(&'static str),
    /// Nothing is set, or what the explanation says; here is an example.
    Unset(&'static str),
    /// This value is used.
    Default(&'static str),
}

/// What a change of a key needs before it takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReloadEffect {
    /// Nothing: it only says where an empty folder begins.
    NextEmptyFolder,
    /// Nothing: it holds from the reload on.
    AtOnce,
    /// A new connection to the source, which the daemon makes at once.
    Reconnect,
    /// A restart of binlogd.
    Restart,
}

/// One key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The table it belongs to.
    pub section: Section,
    /// Its name in that table.
    pub name: &'static str,
    /// Its flag of `binlogd run`, without dashes; `None` where the URL of `--source` says it.
    pub flag: Option<&'static str>,
    /// What it accepts.
    pub kind: Kind,
    /// What is shown where it is absent.
    pub absent: Absent,
    /// The value that counts where it is absent, if there is one. It is TOML.
    pub(crate) fallback: Option<&'static str>,
    /// What a change needs.
    pub reload: ReloadEffect,
    /// The lines of its explanation, each with the blank in front that a comment has.
    about: &'static [&'static str],
}

impl Key {
    /// What the key accepts, as a phrase after "must be".
    pub fn allowed(&self) -> String {
        match self.kind {
            Kind::Form { allowed, .. } => allowed.to_owned(),
            Kind::Choice(choices) => {
                let words: Vec<String> =
                    choices.iter().map(|(word, meaning)| format!("{word} ({meaning})")).collect();
                format!("one of {}", words.join(", "))
            }
            Kind::Choices(choices) => {
                let words: Vec<String> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
                format!("a list of {}", words.join(", "))
            }
            Kind::Number { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Duration { min, max } => {
                format!("a duration from {} to {}", duration::format(min), duration::format(max))
            }
        }
    }

    /// What it does, as sentences; one paragraph a line. A line that begins with two blanks keeps its shape.
    pub fn about(&self) -> String {
        paragraphs(self.about)
    }
}

/// The lines of a comment, joined to one line a paragraph. An empty line ends a paragraph; a line that is set in by two blanks
/// more keeps its shape.
pub(crate) fn paragraphs(comment: &[&'static str]) -> String {
    let mut text = String::new();
    let mut goes_on = false;
    for line in comment {
        let line = after_blank(line);
        let keeps_shape = line.starts_with("  ");
        if line.is_empty() {
            goes_on = false;
            continue;
        }
        if !text.is_empty() {
            text.push(if goes_on && !keeps_shape { ' ' } else { '\n' });
        }
        text.push_str(line);
        goes_on = !keeps_shape;
    }
    text
}

/// The text of a comment's line, without the blank in front.
pub(crate) const fn after_blank(line: &'static str) -> &'static str {
    match line.as_bytes() {
        [b' ', ..] => line.split_at(1).1,
        _ => line,
    }
}

/// What a key's declaration says beside its type and explanation. See [`tables`](super::tables).
#[derive(Clone, Copy)]
pub(crate) struct Spec {
    absent: Absent,
    fallback: Option<&'static str>,
    flag: Option<&'static str>,
    kind: Option<Kind>,
    reload: Option<ReloadEffect>,
}

/// The key must be given; here is an example.
pub(crate) const fn required(example: &'static str) -> Spec {
    Spec { absent: Absent::Required(example), fallback: None, flag: None, kind: None, reload: None }
}

/// Nothing is set without the key; here is an example.
pub(crate) const fn unset(example: &'static str) -> Spec {
    Spec { absent: Absent::Unset(example), ..required(example) }
}

/// This value is used without the key.
pub(crate) const fn default(value: &'static str) -> Spec {
    Spec { absent: Absent::Default(value), fallback: Some(value), ..required(value) }
}

/// This value is used without the key, as its explanation says; the example shows another, because its table is one that is
/// not there by default.
pub(crate) const fn implied(value: &'static str, example: &'static str) -> Spec {
    Spec { fallback: Some(value), ..unset(example) }
}

impl Spec {
    /// The flag of `binlogd run`, without dashes.
    pub(crate) const fn flag(self, flag: &'static str) -> Spec {
        Spec { flag: Some(flag), ..self }
    }

    /// What is accepted, where the type does not say it.
    pub(crate) const fn kind(self, kind: Kind) -> Spec {
        Spec { kind: Some(kind), ..self }
    }

    /// The range of a number, ends included.
    pub(crate) const fn range(self, min: u64, max: u64) -> Spec {
        self.kind(Kind::Number { min, max })
    }

    /// The range of a duration, ends included.
    pub(crate) const fn lasting(self, min: Duration, max: Duration) -> Spec {
        self.kind(Kind::Duration { min, max })
    }

    /// What a change needs, where it is not what the table's other keys need.
    pub(crate) const fn on_reload(self, effect: ReloadEffect) -> Spec {
        Spec { reload: Some(effect), ..self }
    }

    /// The key: what the declaration says, and else what its type and its table do.
    pub(crate) const fn key(
        self,
        (section, reload): (Section, ReloadEffect),
        name: &'static str,
        about: &'static [&'static str],
        kind: Kind,
    ) -> Key {
        Key {
            section,
            name,
            flag: self.flag,
            kind: match self.kind {
                Some(kind) => kind,
                None => kind,
            },
            absent: self.absent,
            fallback: self.fallback,
            reload: match self.reload {
                Some(reload) => reload,
                None => reload,
            },
            about,
        }
    }
}
