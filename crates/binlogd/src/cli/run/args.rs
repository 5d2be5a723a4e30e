//! The arguments of `binlogd run`: a configuration file, or one source on the command line.
//!
//! The flags of a source come from the table of keys, so that a key cannot lack its flag, nor a flag differ from its
//! key in default, range or meaning.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::error::Error as ClapError;
use clap::{Arg, ArgGroup, ArgMatches, Args, Command, FromArgMatches, value_parser};

use crate::cli::args::source_url::{SourceUrl, percent_decoded};
use config::document::{Document, Item, Value};
use config::error::{Findings, Place};
use config::key::{Absent, Key, Kind, Section};
use config::password::{Environment, PASSWORD_VARIABLE, URL_PASSWORD_VARIABLE, process_environment};
use config::tables::{SourceKeys, all_keys};
use config::{Config, ConfigError, Loaded, load};
use wire::Secret;

/// The flag that names the source.
const SOURCE: &str = "--source";

/// The arguments of `binlogd run`, and of any verb that needs a source. Cloned, they can be loaded again at SIGHUP.
#[derive(Clone, Debug)]
pub(in crate::cli) struct RunArgs {
    /// The file of `--config`.
    pub config: Option<PathBuf>,
    /// The URL of `--source`. A secret, because it may hold a password.
    source: Option<Secret>,
    /// The other flags that were given.
    flags: Vec<(&'static Key, String)>,
}

impl RunArgs {
    /// Reads the file of `--config`, or builds a configuration of one source from the flags.
    ///
    /// # Errors
    ///
    /// Every problem at once. None quotes a password.
    pub(in crate::cli) fn load(&self) -> Result<Loaded, ConfigError> {
        self.load_with(&process_environment)
    }

    /// As [`load`](Self::load), with another environment.
    pub(in crate::cli) fn load_with(&self, environment: Environment<'_>) -> Result<Loaded, ConfigError> {
        if let Some(path) = &self.config {
            return Config::load_with(path, environment);
        }
        let mut findings = Findings::default();
        let document = self.document(environment, &mut findings);
        load::load(document, environment, findings)
    }

    fn document(&self, environment: Environment<'_>, findings: &mut Findings) -> Option<Document> {
        let mut document = Document::new(Place::Flag(SOURCE.to_owned()));
        for (key, given) in &self.flags {
            let Some(flag) = key.flag else { continue };
            let place = Place::Flag(format!("--{flag}"));
            let text = |text: &str| Item { value: Value::Text(text.to_owned()), place: place.clone() };
            let item = match key.kind {
                Kind::HOSTS => Item { value: Value::List(given.split(',').map(text).collect()), place },
                _ => text(given),
            };
            document.set(key.section, key.name, item);
        }
        self.add_url(environment, &mut document, findings)?;
        Some(document)
    }

    /// Adds what the URL says to the source. `None` after an error.
    fn add_url(
        &self,
        environment: Environment<'_>,
        document: &mut Document,
        findings: &mut Findings,
    ) -> Option<()> {
        let place = document.place.clone();
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
        let mut set = |key: Key, item| document.set(Section::Source, key.name, item);
        set(SourceKeys::user, text(url.user));
        set(SourceKeys::hosts, item(Value::List(url.hosts.into_iter().map(text).collect())));
        if let Some(password) = url.password.or(moved) {
            findings.warning(
                &place,
                format!(
                    "{SOURCE}: a password in the URL can be seen in the process list for a moment and in the shell's \
                     history: --password-file or {PASSWORD_VARIABLE} keeps it out"
                ),
            );
            set(SourceKeys::password, text(password.expose().to_owned()));
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
        all_keys().filter_map(flag).fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The flag of a key. It takes any text: the value is checked where a file's is, so that both give the same message.
fn flag(key: &'static Key) -> Option<Arg> {
    let name = key.flag?;
    let allowed = match key.kind {
        Kind::PATH | Kind::START => String::new(),
        Kind::HOSTS => "\nAllowed: host:port, several of them parted by commas".to_owned(),
        _ => format!("\nAllowed: {}", key.allowed()),
    };
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
        .long_help(format!("{}{allowed}{default}", key.about()));
    Some(if key.kind == Kind::BOOLEAN { arg.num_args(0..=1).default_missing_value("true") } else { arg })
}

/// The first sentence of a key's explanation, with its default.
fn short_help(key: &Key) -> String {
    let about = key.about().replace('\n', " ");
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
            flags: all_keys()
                .filter_map(|key| Some((key, matches.get_one::<String>(key.flag?)?.clone())))
                .collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), ClapError> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use config::{DiskWarn, FsyncMode, LogLevel, OnGap, Start};
    use wire::TlsMode;

    #[derive(Debug, Parser)]
    #[command(name = "run")]
    struct Run {
        #[command(flatten)]
        args: RunArgs,
    }

    fn parse(flags: &[&str]) -> Result<RunArgs, ClapError> {
        Run::try_parse_from([&["run"], flags].concat()).map(|run| run.args)
    }

    fn load(flags: &[&str]) -> Result<Loaded, ConfigError> {
        load_with(flags, &[])
    }

    fn load_with(flags: &[&str], environment: &[(&str, &str)]) -> Result<Loaded, ConfigError> {
        parse(flags).unwrap().load_with(&|name| {
            environment.iter().find(|(key, _)| *key == name).map(|(_, value)| Ok((*value).to_owned()))
        })
    }

    #[test]
    fn the_command_is_well_formed() {
        <Run as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn a_url_alone_means_the_defaults_of_a_file() {
        let file = Config::parse(
            "[[source]]\nhosts = [\"127.0.0.1:3306\"]\nuser = \"repl\"\n",
            std::path::Path::new("b.toml"),
            &|_| None,
        );
        assert_eq!(load(&["--source", "mysql://repl@127.0.0.1:3306"]), file);
    }

    #[test]
    fn every_flag_reaches_its_key() {
        let loaded = load(&[
            "--source=mysql://repl@db1,[::1]:3307",
            "--data-dir=d",
            "--disk-warn=5GiB",
            "--admin-listen=off",
            "--log-level=debug",
            "--log-format=json",
            "--name=n",
            "--server-id=7",
            "--start=latest",
            "--fsync-mode=0",
            "--fsync-interval=2s",
            "--busy-wait-us=9",
            "--semi-sync=false",
            "--heartbeat-period=1s",
            "--net-read-timeout=2s",
            "--connect-timeout=3s",
            "--backoff-min=1s",
            "--backoff-max=2s",
            "--tls=required",
            "--on-gap=record",
        ])
        .unwrap();
        let config = loaded.config;
        let source = &config.sources[0];
        assert_eq!(
            (config.data_dir.to_str(), config.disk_warn, config.admin.listen, config.log.level),
            (Some("d"), DiskWarn::Bytes(5 << 30), None, LogLevel::Debug)
        );
        let hosts: Vec<String> = source.hosts.iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["db1:3306", "[::1]:3307"]);
        let peers =
            &load(&["--source=mysql://u@h", "--peers=c1:3307,[::1]:3307"]).unwrap().config.sources[0].peers;
        let peers: Vec<String> = peers.iter().map(ToString::to_string).collect();
        assert_eq!(peers, ["c1:3307", "[::1]:3307"]);
        assert_eq!((source.name.as_str(), source.server_id, &source.start), ("n", Some(7), &Start::Latest));
        assert_eq!((source.fsync_mode, source.semi_sync), (FsyncMode::WriteThenAcknowledge, false));
        assert_eq!((source.tls.mode, source.on_gap), (TlsMode::Required, OnGap::Record));
        let seconds = [
            source.fsync_interval,
            source.heartbeat_period,
            source.net_read_timeout,
            source.connect_timeout,
            source.backoff_min,
            source.backoff_max,
        ]
        .map(|duration| duration.as_secs());
        assert_eq!(seconds, [2, 1, 2, 3, 1, 2]);
    }

    #[test]
    fn every_key_has_a_flag_or_a_place_in_the_url_but_those_of_accounts() {
        // The process that drills reads the configuration from a file. Addresses of receivers are secrets, which all users see in a flag.
        let in_files = [Section::ServeUser, Section::AdminUser, Section::Drill, Section::Notify];
        for key in all_keys().filter(|key| !in_files.contains(&key.section)) {
            // Other files are for who has one; keys for several sources, and a list that a file can hold, for who has a file.
            let has_none = [
                "hosts",
                "user",
                "password",
                "password_env",
                "include",
                "recipients",
                "identity",
                "signed_by",
                "archive",
            ]
            .contains(&key.name);
            assert_eq!(key.flag.is_none(), has_none, "{}", key.name);
            if let (Some(flag), Section::Source) = (key.flag, key.section) {
                assert_eq!(flag, key.name.replace('_', "-"));
            }
        }
    }

    #[test]
    fn semi_sync_needs_no_value() {
        assert!(load(&["--source=mysql://u@h", "--semi-sync"]).unwrap().config.sources[0].semi_sync);
    }

    #[test]
    fn wrong_values_are_named_by_their_flags() {
        let message = load(&[
            "--source=mysql://repl@db1,db1",
            "--server-id=x",
            "--heartbeat-period=20",
            "--semi-sync=maybe",
            "--backoff-min=40s",
            "--backoff-max=30s",
        ])
        .unwrap_err()
        .to_string();
        assert_eq!(
            message,
            "--backoff-max 30s must not be below --backoff-min 40s: the longest pause cannot be shorter than the first one\
             \n--heartbeat-period 20: has no unit: write 20s for seconds, 20ms for milliseconds, 20m for minutes or 20h for hours\
                   \n--semi-sync maybe: must be true or false\
                   \n--server-id x: must be a whole number from 1 to 4294967295\
                   \n--source db1: is listed twice"
        );
    }

    #[test]
    fn passwords_by_precedence() {
        let url = "mysql://u:in%40url@h";
        let password = |loaded: Loaded| loaded.config.sources[0].password.expose().to_owned();
        let variable = [(PASSWORD_VARIABLE, "ambient")];
        let moved = [(PASSWORD_VARIABLE, "ambient"), (URL_PASSWORD_VARIABLE, "moved%21")];
        assert_eq!(password(load_with(&["--source=mysql://u@h"], &variable).unwrap()), "ambient");
        assert_eq!(password(load_with(&["--source", url], &variable).unwrap()), "in@url");
        assert_eq!(password(load_with(&["--source=mysql://u@h"], &moved).unwrap()), "moved!");
        assert_eq!(load(&["--source", url]).unwrap().warnings.len(), 1);

        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "in file\n").unwrap();
        let flag = format!("--password-file={}", file.path().display());
        assert_eq!(password(load_with(&["--source=mysql://u@h", &flag], &variable).unwrap()), "in file");
        assert_eq!(
            load(&["--source", url, &flag]).unwrap_err().to_string(),
            "the URL of --source and --password-file both give the password: keep one of them"
        );
    }

    #[test]
    fn a_bad_url_is_explained_and_not_quoted() {
        for (url, why) in [
            ("u:SECRET@h", "must begin with mysql:// as in mysql://user@host:3306"),
            ("mysql://h:3306", "names no user: write mysql://user@host:3306"),
        ] {
            assert_eq!(load(&["--source", url]).unwrap_err().to_string(), format!("--source: the URL {why}"));
        }
        let message = load(&["--source", "mysql://u:SECRET@h:x"]).unwrap_err().to_string();
        assert_eq!(message, "--source h:x: has a port that is not a number");
        assert!(!format!("{:?}", parse(&["--source=mysql://u:SECRET@h"]).unwrap()).contains("SECRET"));
    }

    #[test]
    fn a_file_and_flags_exclude_each_other() {
        use clap::error::ErrorKind::{ArgumentConflict, MissingRequiredArgument};
        for (flags, kind) in [
            (&[][..], MissingRequiredArgument),
            (&["--name=x"], MissingRequiredArgument),
            (&["--config=b.toml", "--source=mysql://u@h"], ArgumentConflict),
            (&["--config=b.toml", "--fsync-mode=1"], ArgumentConflict),
        ] {
            assert_eq!(parse(flags).unwrap_err().kind(), kind, "{flags:?}");
        }
        let missing = load(&["--config=/nonexistent/b.toml"]).unwrap_err().to_string();
        assert!(
            missing.starts_with("/nonexistent/b.toml: the configuration file cannot be read"),
            "{missing}"
        );
    }
}
