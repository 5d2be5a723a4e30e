//! From a file, or the values of a command line, to a [`Config`].

use std::collections::BTreeMap;
use std::path::Path;

use super::document::{Document, file, include};
use super::error::{ConfigError, Findings, Place, Problem};
use super::tables::password::{self, Environment};
use super::tables::{self, Config, NotifyKeys, SourceKeys};

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
    ///
    /// # Errors
    /// As of [`load`](Self::load).
    pub fn load_with(path: &Path, environment: Environment<'_>) -> Result<Loaded, ConfigError> {
        let text = file::read(path).map_err(|problem| ConfigError { problems: vec![problem] })?;
        Self::parse(&text, path, environment)
    }

    /// As [`load`](Self::load), from `text`. `path` names the file in messages, and its folder is where relative paths
    /// begin; `environment` looks up variables.
    ///
    /// # Errors
    /// As of [`load`](Self::load).
    pub fn parse(text: &str, path: &Path, environment: Environment<'_>) -> Result<Loaded, ConfigError> {
        let mut findings = Findings::default();
        let document = file::parse(text, path, &mut findings).and_then(|mut document| {
            include::add_included(&mut document, path, &mut findings)?;
            Some(document)
        });
        load(document, environment, findings)
    }
}

/// Checks every value of `document`. `None` is one that could not be read, which `findings` then tell.
///
/// # Errors
/// Every problem at once, those of `findings` too.
pub fn load(
    document: Option<Document>,
    environment: Environment<'_>,
    mut findings: Findings,
) -> Result<Loaded, ConfigError> {
    let config = document.and_then(|document| {
        warn_of_exposed(&document, &mut findings);
        tables::build(&document, environment, &mut findings)
    });
    findings.finish(config).map(|(config, warnings)| Loaded { config, warnings })
}

/// Warns of each file that holds a password, whoever's it is, or a secret URL, and can be read by others.
fn warn_of_exposed(document: &Document, findings: &mut Findings) {
    let secrets = [
        (&SourceKeys::password, "holds a password"),
        (&NotifyKeys::webhook, "holds a secret URL"),
        (&NotifyKeys::heartbeat, "holds a secret URL"),
    ];
    let mut files = BTreeMap::new();
    for (key, why) in secrets {
        let items = document.tables.iter().filter_map(|table| table.items.get(key.name));
        for path in items.filter_map(|item| item.place.file()) {
            files.entry(path).or_insert(why);
        }
    }
    for (path, why) in files {
        password::warn_if_exposed(path, why, &Place::WholeFile(path.to_owned()), findings);
    }
}
