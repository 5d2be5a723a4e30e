//! The arguments of `binlogd run`: a configuration file, or one source on the command line.
//!
//! The flags of a source come from the table of keys, so that a key cannot lack its flag, nor a flag differ from its
//! key in default, range or meaning.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::error::Error as ClapError;
use clap::{Arg, ArgGroup, ArgMatches, Args, Command, FromArgMatches, value_parser};

use super::hide_password::URL_PASSWORD_VARIABLE;
use super::source_url::{SourceUrl, percent_decoded};
use crate::config::error::{Findings, Place};
use crate::config::given::{Document, Item, Table, Value};
use crate::config::keys::{Absent, KEYS, Key, Kind, Section};
use crate::config::password::{Environment, PASSWORD_VARIABLE, process_environment};
use crate::config::{Config, ConfigError, Loaded, load};
use crate::wire::Secret;

/// The flag that names the source.
const SOURCE: &str = "--source";

/// The arguments of `binlogd run`, and of any verb that needs a source. Cloned, they can be loaded again at SIGHUP.
#[derive(Clone, Debug)]
pub struct RunArgs {
    /// The file of `--config`.
    pub config: Option<PathBuf>,
    /// The URL of `--source`. A secret, because it may hold a password.
    source: Option<Secret>,
    /// The other flags that were given.
    flags: Vec<(&'static Key, String)>,
}

impl RunArgs {
    /// The configuration that the arguments describe; see [`load`](Self::load), which also returns the warnings.
    pub fn into_config(self) -> Result<Config, ConfigError> {
        self.load().map(|loaded| loaded.config)
    }

    /// Reads the file of `--config`, or builds a configuration of one source from the flags.
    ///
    /// # Errors
    ///
    /// Every problem at once. None quotes a password.
    pub fn load(&self) -> Result<Loaded, ConfigError> {
        self.load_with(&process_environment)
    }

    /// As [`load`](Self::load), with another environment.
    pub fn load_with(&self, environment: Environment<'_>) -> Result<Loaded, ConfigError> {
        if let Some(path) = &self.config {
            return Config::load(path);
        }
        let mut findings = Findings::default();
        let config = self
            .document(environment, &mut findings)
            .and_then(|document| load::build(&document, environment, &mut findings));
        findings.finish(config).map(|(config, warnings)| Loaded { config, warnings })
    }

    fn document(&self, environment: Environment<'_>, findings: &mut Findings) -> Option<Document> {
        let place = Place::Flag(SOURCE.to_owned());
        let empty = Table { place: place.clone(), items: BTreeMap::new() };
        let mut document = Document {
            base: PathBuf::new(),
            root: empty.clone(),
            admin: empty.clone(),
            log: empty.clone(),
            sources: Vec::new(),
        };
        let mut source = empty;
        for (key, text) in &self.flags {
            let place = Place::Flag(format!("--{}", key.flag.expect("only keys with a flag become flags")));
            let table = match key.section {
                Section::Root => &mut document.root,
                Section::Admin => &mut document.admin,
                Section::Log => &mut document.log,
                Section::Source => &mut source,
            };
            table.items.insert(key.name, Item { value: Value::Text(text.clone()), place });
        }
        self.add_url(environment, &mut source, findings)?;
        document.sources.push(source);
        Some(document)
    }

    /// Adds what the URL says to the source. `None` after an error.
    fn add_url(
        &self,
        environment: Environment<'_>,
        source: &mut Table,
        findings: &mut Findings,
    ) -> Option<()> {
        let place = source.place.clone();
        let Some(url) = &self.source else {
            findings.error(&place, "give --config FILE, or --source mysql://user@host:3306");
            return None;
        };
        let item = |value| Item { value, place: place.clone() };
        let text = |text: String| item(Value::Text(text));
        let mut refuse = |why: &str| findings.error(&place, format!("{SOURCE}: the URL {why}"));
        let url = SourceUrl::parse(url.expose()).map_err(&mut refuse).ok()?;
        let moved = match environment(URL_PASSWORD_VARIABLE) {
            Some(Ok(encoded)) => Some(Secret::new(percent_decoded(&encoded).map_err(&mut refuse).ok()?)),
            _ => None,
        };
        source.items.insert("user", text(url.user));
        source.items.insert("hosts", item(Value::List(url.hosts.into_iter().map(text).collect())));
        if let Some(password) = url.password.or(moved) {
            findings.warning(
                &place,
                format!(
                    "{SOURCE}: a password in the URL can be seen in the process list for a moment and in the shell's \
                     history: --password-file or {PASSWORD_VARIABLE} keeps it out"
                ),
            );
            source.items.insert("password", text(password.expose().to_owned()));
        }
        Some(())
    }
}

impl Args for RunArgs {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help("Configuration file, for any number of sources; see `binlogd config example`");
        let source = Arg::new("source")
            .long("source")
            .value_name("URL")
            .help("One source without a file: mysql://user[:password]@host:port[,host2:port2]")
            .long_help(format!(
                "One source without a file: mysql://user[:password]@host:port[,host2:port2]\n\n\
                 Characters that a URL reserves are written %XX. Better than a password in the URL, which shells and \
                 process lists may show, are --password-file and the environment variable {PASSWORD_VARIABLE}."
            ));
        let command = command
            .arg(config)
            .arg(source)
            .group(ArgGroup::new("what").args(["config", "source"]).required(true));
        KEYS.iter().filter_map(flag).fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The flag of a key. It takes any text: the value is checked where a file's is, so that both give the same message.
fn flag(key: &'static Key) -> Option<Arg> {
    let name = key.flag?;
    let paragraph = key.about.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    let default = match key.absent {
        Absent::Default(toml) => format!("\n\nDefault: {}", toml.trim_matches('"')),
        Absent::Required(_) | Absent::Unset(_) => String::new(),
    };
    let arg = Arg::new(name)
        .long(name)
        .value_name(key.kind.placeholder())
        .value_parser(NonEmptyStringValueParser::new())
        .conflicts_with("config")
        .requires("source")
        .help(short_help(key))
        .long_help(format!("{paragraph}\nAllowed: {}{default}", key.allowed()));
    Some(if key.kind == Kind::Boolean { arg.num_args(0..=1).default_missing_value("true") } else { arg })
}

/// The first sentence of a key's explanation, with its default.
fn short_help(key: &Key) -> String {
    let about = key.about.replace('\n', " ");
    let sentence = about.split_once(". ").map_or(about.as_str(), |(first, _)| first).trim_end_matches('.');
    match key.absent {
        Absent::Default(toml) => format!("{sentence} [default: {}]", toml.trim_matches('"')),
        Absent::Required(_) | Absent::Unset(_) => sentence.to_owned(),
    }
}

impl FromArgMatches for RunArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, ClapError> {
        Ok(Self {
            config: matches.get_one::<PathBuf>("config").cloned(),
            source: matches.get_one::<String>("source").map(Secret::new),
            flags: KEYS
                .iter()
                .filter_map(|key| Some((key, matches.get_one::<String>(key.flag?)?.clone())))
                .collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), ClapError> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
