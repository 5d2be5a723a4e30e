//! A key of the configuration: what it accepts, and what holds without it.

use std::time::Duration;

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
    /// Each `[[source]]`.
    Source,
}

impl Section {
    /// How messages name the section.
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
            Self::Source => "[[source]]",
        }
    }
}

/// What a key accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text but an empty one.
    Text,
    /// A password.
    Secret,
    /// The path of a file or folder.
    Path,
    /// A list of paths.
    Paths,
    /// A path or a pattern of paths, or a list of them.
    Patterns,
    /// The name of a source.
    Name,
    /// A list of names of sources.
    Names,
    /// A list of `host[:port]`.
    Hosts,
    /// A list of texts that are not empty.
    Texts,
    /// The URL of an archive.
    ArchiveUrl,
    /// `ip:port` or `off`.
    Listen,
    /// One of these words or numbers, each with its meaning.
    Choice(&'static [(&'static str, &'static str)]),
    /// A list of these words, each with its meaning.
    Choices(&'static [(&'static str, &'static str)]),
    /// `true` or `false`.
    Boolean,
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
    /// An amount or a percentage of disk space, or `off`.
    Space,
    /// An amount of disk space.
    Bytes,
    /// Where to begin.
    Start,
    /// Where to stop.
    Point,
}

impl Kind {
    /// The word that stands for a value in `--help`.
    pub fn placeholder(self) -> &'static str {
        match self {
            Self::Text => "TEXT",
            Self::Secret => "PASSWORD",
            Self::Path => "PATH",
            Self::Paths => "PATHS",
            Self::Patterns => "PATTERN",
            Self::Name => "NAME",
            Self::Names => "NAMES",
            Self::Hosts => "HOSTS",
            Self::Texts => "TEXTS",
            Self::ArchiveUrl => "URL",
            Self::Listen => "ADDRESS",
            Self::Choice(_) => "CHOICE",
            Self::Choices(_) => "CHOICES",
            Self::Boolean => "BOOLEAN",
            Self::Number { .. } => "NUMBER",
            Self::Duration { .. } => "DURATION",
            Self::Space => "SPACE",
            Self::Bytes => "BYTES",
            Self::Start => "START",
            Self::Point => "POINT",
        }
    }
}

/// What holds when a key is absent. Values are TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The key must be given; here is an example.
    Required(&'static str),
    /// Nothing is set; here is an example.
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
    /// What holds without it.
    pub absent: Absent,
    /// What a change needs.
    pub reload: ReloadEffect,
    /// What it does, as sentences; one paragraph a line. A line that begins with two blanks keeps its shape.
    pub about: &'static str,
}

impl Key {
    /// What the key accepts, as a phrase after "must be".
    pub fn allowed(&self) -> String {
        match self.kind {
            Kind::Text => "a text that is not empty".to_owned(),
            Kind::Secret => "a text".to_owned(),
            Kind::Path => "a path".to_owned(),
            Kind::Paths => "a list of paths".to_owned(),
            Kind::Patterns => "a path or a pattern such as \"conf.d/*.toml\", or a list of them".to_owned(),
            Kind::Name => "1 to 64 of the characters A-Z a-z 0-9 _ . - and not begin with a dot".to_owned(),
            Kind::Names => "a list of names of sources, such as [\"orders\", \"billing\"]".to_owned(),
            Kind::Hosts => "a list of \"host:port\", such as [\"db1:3306\", \"[::1]:3306\"]".to_owned(),
            Kind::Texts => "a list of texts that are not empty".to_owned(),
            Kind::ArchiveUrl => archive::remote::FORMS.to_owned(),
            Kind::Listen => {
                let port = if self.section == Section::Serve { 3307 } else { 9306 };
                format!("an IP address and port, such as 127.0.0.1:{port} or [::1]:{port}, or off")
            }
            Kind::Choice(choices) => {
                let words: Vec<String> =
                    choices.iter().map(|(word, meaning)| format!("{word} ({meaning})")).collect();
                format!("one of {}", words.join(", "))
            }
            Kind::Choices(choices) => {
                let words: Vec<String> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
                format!("a list of {}", words.join(", "))
            }
            Kind::Boolean => "true or false".to_owned(),
            Kind::Number { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Duration { min, max } => {
                format!(
                    "a duration from {} to {}",
                    super::duration::format(min),
                    super::duration::format(max)
                )
            }
            Kind::Space => super::space::ALLOWED.to_owned(),
            Kind::Bytes => super::space::ALLOWED_BYTES.to_owned(),
            Kind::Point => {
                super::point::NoPoint::Unknown.to_string().trim_start_matches("must be ").to_owned()
            }
            Kind::Start => "resume, earliest, latest, gtid:<set> or file:<name>:<position>".to_owned(),
        }
    }
}
