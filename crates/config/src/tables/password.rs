//! Where a source's password comes from, and who else can read it.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::super::document::{Item, Value};
use super::super::entry::{Entry, Unread};
use super::super::error::{Findings, Place};
use super::super::key::Key;
use super::super::value::below;
use wire::{Secret, Verifiers};

/// Looks up an environment variable: `None` when it is not set, an error when it is not UTF-8.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<Result<String, NotUtf8>>;

/// A variable or file holds bytes that are not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotUtf8;

/// The variable that counts when no key names a password.
pub const PASSWORD_VARIABLE: &str = "BINLOGD_PASSWORD";

/// The variable in which a binlogd that was given a password in a URL hands it to itself, still percent-encoded.
pub const URL_PASSWORD_VARIABLE: &str = "BINLOGD_URL_PASSWORD";

/// Largest password file, in bytes. MySQL's own limit for a password is far below.
const PASSWORD_FILE_BYTES_MAX: u64 = 4096;

/// The environment of this process.
pub fn process_environment(name: &str) -> Option<Result<String, NotUtf8>> {
    std::env::var_os(name).map(|value| value.into_string().map_err(|_| NotUtf8))
}

/// The keys of which one gives a password.
pub(crate) struct Origins<'a> {
    /// The password itself.
    pub(crate) text: &'a Entry<Unread>,
    /// A file that holds it.
    pub(crate) file: &'a Entry<Unread>,
    /// A variable that does.
    pub(crate) variable: &'a Entry<Unread>,
    /// What a method of authentication needs instead, where it is enough.
    pub(crate) hash: Option<&'a Entry<Unread>>,
}

/// How a password was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Password {
    /// Not at all.
    None,
    /// As such, or by a variable.
    Text(Secret),
    /// By this file, which will be read again.
    File(Secret, PathBuf),
    /// As a hash, which is checked.
    Hash(Secret),
}

impl Origins<'_> {
    /// The password. `None` after an error.
    pub(crate) fn password(&self, environment: Environment<'_>, findings: &mut Findings) -> Option<Password> {
        let keys = [Some(self.text), Some(self.file), Some(self.variable), self.hash];
        let given: Vec<(&Key, &Item)> =
            keys.into_iter().flatten().filter_map(|entry| Some((entry.key, entry.given.as_ref()?))).collect();
        let (key, item) = match given[..] {
            [] => return Some(Password::None),
            [only] => only,
            [(first_key, first), .., (last_key, last)] => {
                let (first, last_name) = (named(first_key, &first.place), named(last_key, &last.place));
                let text = format!("{first} and {last_name} both give the password: keep one of them");
                findings.error(&last.place, text);
                return None;
            }
        };
        if let Some(entry) = self.hash.filter(|entry| entry.given.is_some()) {
            return hash(entry, item, findings);
        }
        let what = named(key, &item.place);
        let mut refuse = |why: &str| findings.error(&item.place, format!("{what}{why}"));
        let Value::Text(text) = &item.value else {
            refuse(&format!(" is a {}: it must be a text in quotes", item.type_name()));
            return None;
        };
        if text.contains('\0') {
            refuse(" holds a NUL character, which MySQL passwords cannot");
            return None;
        }
        if self.text.given.is_some() {
            return Some(Password::Text(Secret::new(text.clone())));
        }
        if self.file.given.is_some() {
            let path = below(item.place.folder(), text);
            return Some(Password::File(from_file(&path, &what, &item.place, findings)?, path));
        }
        if text.is_empty() {
            refuse(" is empty: it must name an environment variable");
            return None;
        }
        if environment(text).is_none() {
            refuse(&format!(" = \"{text}\": this environment variable is not set"));
            return None;
        }
        from_environment(text, &item.place, &format!("{what}: "), environment, findings).map(Password::Text)
    }
}

fn hash(entry: &Entry<Unread>, item: &Item, findings: &mut Findings) -> Option<Password> {
    let checked = match item.text() {
        Some(text) => text.parse::<Verifiers>().map(|_| text).map_err(|error| error.to_string()),
        None => Err(format!("must be {}", entry.key.allowed())),
    };
    match checked {
        Ok(text) => Some(Password::Hash(Secret::new(text.to_owned()))),
        Err(why) => {
            entry.wrong(why, findings);
            None
        }
    }
}

/// The password of an account of a source for which no key gives one. `None` after an error.
pub(crate) fn ambient(
    place: &Place,
    environment: Environment<'_>,
    findings: &mut Findings,
) -> Option<Secret> {
    from_environment(PASSWORD_VARIABLE, place, "", environment, findings)
}

fn from_environment(
    variable: &str,
    place: &Place,
    prefix: &str,
    environment: Environment<'_>,
    findings: &mut Findings,
) -> Option<Secret> {
    match environment(variable) {
        None => Some(Secret::default()),
        Some(Ok(text)) => Some(Secret::new(text)),
        Some(Err(NotUtf8)) => {
            findings.error(place, format!("{prefix}the environment variable {variable} is not valid UTF-8"));
            None
        }
    }
}

fn from_file(path: &Path, what: &str, place: &Place, findings: &mut Findings) -> Option<Secret> {
    let what = format!("{what} \"{}\"", path.display());
    warn_if_exposed(path, "holds a password", place, findings);
    match read_file(path) {
        Ok(secret) => Some(secret),
        Err(problem) => {
            findings.error(place, format!("{what} {problem}"));
            None
        }
    }
}

/// The password in a file of its own, as it stands there now. The error completes the sentence "the file …".
///
/// # Errors
/// When it cannot be read, or is not one line of text.
pub fn read_file(path: &Path) -> Result<Secret, String> {
    let text = read_bounded(path, PASSWORD_FILE_BYTES_MAX)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_empty() {
        return Err("is empty: it must hold the password".to_owned());
    }
    if line.contains(['\n', '\0']) {
        return Err("holds more than the one line with the password".to_owned());
    }
    Ok(Secret::new(line))
}

/// Reads a whole text file of at most `bytes_max`. The error completes the sentence "the file …".
pub fn read_bounded(path: &Path, bytes_max: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes))
        .map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("is larger than {bytes_max} bytes"));
    }
    String::from_utf8(bytes)
        .map_err(|error| format!("is not UTF-8 (byte {})", error.utf8_error().valid_up_to() + 1))
}

/// Warns when others than the owner can read the file at `path`. `why` completes the sentence "the file …".
pub(crate) fn warn_if_exposed(path: &Path, why: &str, place: &Place, findings: &mut Findings) {
    let Ok(metadata) = std::fs::metadata(path) else { return };
    let mode = metadata.permissions().mode() & 0o777;
    if metadata.is_file() && mode & 0o077 != 0 {
        let path = path.display().to_string();
        // The message begins with the place, which may be the file itself.
        let file = if place.to_string() == path { "this file" } else { &path };
        findings.warning(
            place,
            format!("{file} {why} and others than its owner can use it (mode {mode:04o}): chmod 600 {path}"),
        );
    }
}

/// A key as the operator wrote it: the key of a file, or the flag.
fn named(key: &Key, place: &Place) -> String {
    match place {
        // Only the URL gives what has no flag.
        Place::Flag(flag) if key.flag.is_none() => format!("the URL of {flag}"),
        Place::Flag(flag) => flag.clone(),
        _ => key.name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Config;
    use super::super::super::tests::{SOURCE, error, source};
    use super::*;

    #[test]
    fn a_password_has_one_origin() {
        assert_eq!(source("password_env = \"SET\"").password.expose(), "from-env");
        assert_eq!(source("").password.expose(), "");
        for (lines, message) in [
            (
                "password = \"a\"\npassword_env = \"SET\"",
                "b.toml:5:16: password and password_env both give the password: keep one of them",
            ),
            (
                "password = \"a\"\npassword_env = \"SET\"\npassword_file = \"x\"",
                "b.toml:5:16: password and password_env both give the password: keep one of them",
            ),
            (
                "password_env = \"UNSET\"",
                "b.toml:4:16: password_env = \"UNSET\": this environment variable is not set",
            ),
            (
                "password_env = \"BYTES\"",
                "b.toml:4:16: password_env: the environment variable BYTES is not valid UTF-8",
            ),
            (
                "password_env = \"\"",
                "b.toml:4:16: password_env is empty: it must name an environment variable",
            ),
            ("password = 12345", "b.toml:4:12: password is a whole number: it must be a text in quotes"),
            (
                "password = \"a\\u0000\"",
                "b.toml:4:12: password holds a NUL character, which MySQL passwords cannot",
            ),
        ] {
            assert_eq!(error(lines), message, "{lines}");
        }
        let from_variable = Config::parse(SOURCE, Path::new("b.toml"), &|name| {
            (name == "BINLOGD_PASSWORD").then(|| Ok("ambient".to_owned()))
        });
        assert_eq!(from_variable.unwrap().config.sources[0].password.expose(), "ambient");
    }

    #[test]
    fn password_files_are_read_and_their_mode_is_checked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        let config = folder.path().join("b.toml");
        let read = |bytes: &[u8], mode: u32| {
            std::fs::write(&path, bytes).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            Config::parse(&format!("{SOURCE}password_file = \"./password\"\n"), &config, &|_| None)
        };
        let at = format!("{}:4:17", config.display());
        let shown = path.display();

        for (bytes, password) in
            [(&b"pw"[..], "pw"), (b"pw\n", "pw"), (b"pw\r\n", "pw"), (b" p w \n", " p w ")]
        {
            let loaded = read(bytes, 0o600).unwrap();
            assert_eq!(loaded.config.sources[0].password.expose(), password);
            assert_eq!(loaded.warnings, []);
        }
        assert_eq!(
            read(b"pw", 0o644).unwrap().warnings[0].to_string(),
            format!(
                "{at}: {shown} holds a password and others than its owner can use it (mode 0644): chmod 600 {shown}"
            )
        );
        for (bytes, problem) in [
            (&b""[..], "is empty: it must hold the password"),
            (b"\n", "is empty: it must hold the password"),
            (b"a\nb\n", "holds more than the one line with the password"),
            (b"\xff", "is not UTF-8 (byte 1)"),
            (&[b'x'; 4097], "is larger than 4096 bytes"),
        ] {
            let message = read(bytes, 0o600).unwrap_err().to_string();
            assert_eq!(message, format!("{at}: password_file \"{shown}\" {problem}"));
        }
        std::fs::remove_file(&path).unwrap();
        let text = format!("{SOURCE}password_file = \"./password\"\n");
        let message = Config::parse(&text, &config, &|_| None).unwrap_err().to_string();
        assert_eq!(
            message,
            format!("{at}: password_file \"{shown}\" cannot be read: No such file or directory (os error 2)")
        );
    }

    #[test]
    fn a_configuration_that_holds_a_password_should_be_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.toml");
        std::fs::write(&path, format!("{SOURCE}password = \"pw\"\n")).unwrap();
        for (mode, warnings) in [(0o640, 1), (0o600, 0)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(Config::load(&path).unwrap().warnings.len(), warnings);
        }
        assert_eq!(Config::load(&path).unwrap().config.data_dir, folder.path().join("data"));
    }
}
