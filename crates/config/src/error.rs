//! What is wrong with a configuration, and where.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a value stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A character of a file; line and column count from 1.
    File {
        /// The file as the operator named it.
        path: PathBuf,
        /// Line.
        line: usize,
        /// Column, in characters.
        column: usize,
    },
    /// A file as a whole.
    WholeFile(PathBuf),
    /// A flag of the command line, with its dashes.
    Flag(String),
}

impl Place {
    /// The file, where the value stands in one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. } | Self::WholeFile(path) => Some(path),
            Self::Flag(_) => None,
        }
    }

    /// The folder from which relative paths count: that of the file, else empty for the working directory.
    pub fn folder(&self) -> &Path {
        self.file().and_then(Path::parent).unwrap_or(Path::new(""))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::WholeFile(path) => write!(f, "{}", path.display()),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// One finding, an error or a warning. Its text never holds a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// The key and its value, and what to do.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            // The text names the flag already.
            Place::Flag(_) => f.write_str(&self.text),
            _ => write!(f, "{}: {}", self.place, self.text),
        }
    }
}

/// All that is wrong with a configuration, in the order of the file. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Each problem, with its place.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    /// One line a problem.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// What has been found so far while a configuration is read.
#[derive(Debug, Default)]
pub struct Findings {
    /// What makes the configuration unusable.
    pub errors: Vec<Problem>,
    /// What an operator should fix, though binlogd can run with it.
    pub warnings: Vec<Problem>,
}

impl Findings {
    /// Notes an error.
    pub fn error(&mut self, place: &Place, text: impl Into<String>) {
        self.errors.push(Problem { place: place.clone(), text: text.into() });
    }

    /// Notes a warning.
    pub fn warning(&mut self, place: &Place, text: impl Into<String>) {
        self.warnings.push(Problem { place: place.clone(), text: text.into() });
    }

    /// Pairs a finished value with the warnings, or returns every error in the order of the file.
    pub fn finish<T>(mut self, value: Option<T>) -> Result<(T, Vec<Problem>), ConfigError> {
        self.warnings.sort_by(|a, b| a.place.cmp(&b.place));
        match value {
            Some(value) if self.errors.is_empty() => Ok((value, self.warnings)),
            _ => {
                assert!(!self.errors.is_empty(), "a configuration was refused without a reason");
                self.errors.sort_by(|a, b| a.place.cmp(&b.place));
                Err(ConfigError { problems: self.errors })
            }
        }
    }
}

/// Hides the password of anything that looks like a URL, for messages that quote what an operator wrote.
pub fn redacted(text: &str) -> String {
    let after_scheme = text.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = text.split_at(after_scheme);
    match rest.rfind('@') {
        Some(at) => match rest[..at].find(':') {
            Some(colon) => format!("{scheme}{}:***{}", &rest[..colon], &rest[at..]),
            None => text.to_owned(),
        },
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redacts_passwords_in_urls_only() {
        assert_eq!(redacted("mysql://u:p@h:3306"), "mysql://u:***@h:3306");
        assert_eq!(redacted("mysql://u:p@ss:w@h"), "mysql://u:***@h");
        assert_eq!(redacted("u:p@h"), "u:***@h");
        assert_eq!(redacted("mysql://u@h:3306"), "mysql://u@h:3306");
        assert_eq!(redacted("db1:3306"), "db1:3306");
        assert_eq!(redacted("[::1]:3306"), "[::1]:3306");
    }
}
