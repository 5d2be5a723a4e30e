//! Where an archive is: a bucket or container with a prefix, or a folder.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

/// The forms that are understood, as messages and the documentation show them.
pub const FORMS: &str = "s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///folder";

/// A root below which an archive stands. The prefix of a bucket may be empty; it has no slash at either end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A bucket of S3, or of a store that speaks S3's protocol.
    S3 {
        /// Its name.
        bucket: String,
        /// Names of objects begin with it.
        prefix: String,
    },
    /// A bucket of Google Cloud Storage.
    Google {
        /// Its name.
        bucket: String,
        /// Names of objects begin with it.
        prefix: String,
    },
    /// A container of Azure Blob Storage. The account comes from the environment.
    Azure {
        /// Its name.
        container: String,
        /// Names of objects begin with it.
        prefix: String,
    },
    /// A folder of this machine, or one that is mounted here. Absolute.
    Folder(PathBuf),
}

impl Location {
    /// The store's kind, as it is named in front of `://`.
    pub fn scheme(&self) -> &'static str {
        match self {
            Location::S3 { .. } => "s3",
            Location::Google { .. } => "gs",
            Location::Azure { .. } => "az",
            Location::Folder(_) => "file",
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Folder(path) => write!(f, "file://{}", path.display()),
            Location::S3 { bucket, prefix }
            | Location::Google { bucket, prefix }
            | Location::Azure { container: bucket, prefix } => {
                let slash = if prefix.is_empty() { "" } else { "/" };
                write!(f, "{}://{bucket}{slash}{prefix}", self.scheme())
            }
        }
    }
}

impl FromStr for Location {
    type Err = String;

    /// Reads a URL. The error completes the sentence "`url` …", and shows no part of the URL: it may hold a password.
    fn from_str(url: &str) -> Result<Location, String> {
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(format!("must be {FORMS}"));
        };
        if rest.contains(['?', '#']) {
            return Err("must end before a ? or #: signatures and options do not belong in it".to_owned());
        }
        match scheme {
            "file" => folder(rest).map(Location::Folder),
            "s3" => bucket(rest, "bucket").map(|(bucket, prefix)| Location::S3 { bucket, prefix }),
            "gs" => bucket(rest, "bucket").map(|(bucket, prefix)| Location::Google { bucket, prefix }),
            "az" => {
                bucket(rest, "container").map(|(container, prefix)| Location::Azure { container, prefix })
            }
            "http" | "https" => Err(format!(
                "must be {FORMS}; the address of a store of your own goes into endpoint, and its bucket into s3://bucket"
            )),
            _ => Err(format!("has an unknown kind of store: write {FORMS}")),
        }
    }
}

/// `bucket` or `bucket/some/prefix`, with or without a slash at the end.
fn bucket(rest: &str, what: &str) -> Result<(String, String), String> {
    if rest.contains('@') {
        return Err("must hold no account and no password: credentials come from the environment".to_owned());
    }
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(format!("lacks the {what}"));
    }
    if !crate::names::is_part(bucket) {
        return Err(format!("has a {what} with other characters than A-Z a-z 0-9 . _ -"));
    }
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    if !prefix.is_empty() && !prefix.split('/').all(crate::names::is_part) {
        return Err(
            "has a prefix that is not names of A-Z a-z 0-9 . _ - between single slashes, none with a dot in front"
                .to_owned(),
        );
    }
    Ok((bucket.to_owned(), prefix.to_owned()))
}

/// The absolute path after `file://`.
fn folder(rest: &str) -> Result<PathBuf, String> {
    let path = Path::new(rest);
    if !path.is_absolute() {
        return Err("needs an absolute path after file://, so three slashes: file:///folder".to_owned());
    }
    if rest.contains(['%', '\0']) {
        return Err(
            "has a % in its path: it is taken as it stands, so write the path without escapes".to_owned()
        );
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return Err("must not hold ..".to_owned());
    }
    // Without doubled and trailing slashes, so that one folder has one form.
    let path: PathBuf = path.components().collect();
    if path == Path::new("/") {
        return Err("must not be the root of the file system: name a folder".to_owned());
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_shown_again() {
        for (url, shown) in [
            ("s3://backups", "s3://backups"),
            ("s3://backups/", "s3://backups"),
            ("s3://backups/mysql/eu-1/", "s3://backups/mysql/eu-1"),
            ("gs://my_bucket/x", "gs://my_bucket/x"),
            ("az://container/a.b", "az://container/a.b"),
            ("file:///srv//archive/", "file:///srv/archive"),
        ] {
            let location: Location = url.parse().unwrap();
            assert_eq!(location.to_string(), shown, "{url}");
            assert_eq!(shown.parse::<Location>().unwrap(), location, "{url}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_reason() {
        for (url, why) in [
            ("", "must be s3://"),
            ("backups", "must be s3://"),
            ("/srv/archive", "must be s3://"),
            ("s3://", "lacks the bucket"),
            ("s3:///x", "lacks the bucket"),
            ("az://", "lacks the container"),
            ("s3://a b", "other characters"),
            ("s3://bucket//x", "single slashes"),
            ("s3://bucket/x//y", "single slashes"),
            ("s3://bucket/../y", "dot in front"),
            ("s3://key:secret@bucket", "no password"),
            ("s3://bucket/x?X-Amz-Signature=abc", "before a ?"),
            ("https://s3.amazonaws.com/bucket", "endpoint"),
            ("ftp://x/y", "unknown kind"),
            ("S3://bucket", "unknown kind"),
            ("file://srv/archive", "three slashes"),
            ("file:///", "root of the file system"),
            ("file:///srv/../etc", "must not hold .."),
            ("file:///srv/my%20archive", "%"),
        ] {
            let error = url.parse::<Location>().unwrap_err();
            assert!(error.contains(why), "{url}: {error}");
            assert!(!error.contains("secret") && !error.contains("Signature="), "{url}: {error}");
        }
    }
}
