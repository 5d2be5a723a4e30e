//! Whether a text is a public key for which something can be encrypted. Small on purpose: the module of keys takes its place.

use std::path::Path;

/// Longest file of keys, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Whether it is one. The error shows nothing of the text, which may be a secret in the wrong place.
///
/// # Errors
/// In words, when it is none.
pub fn check(key: &str) -> Result<(), String> {
    let key = key.trim();
    let is_private = key.to_ascii_uppercase().starts_with("AGE-SECRET-KEY-") || key.contains("PRIVATE KEY");
    if is_private {
        return Err(
            "this is a private key, and what encrypts needs the public one (age-keygen -y FILE prints it). Take the private key away \
             from here; if others could read it, make a new one"
                .to_owned(),
        );
    }
    if key.parse::<age::x25519::Recipient>().is_ok() || key.parse::<age::ssh::Recipient>().is_ok() {
        return Ok(());
    }
    Err("this is no public key of age (age1…) or of SSH (ssh-ed25519 or ssh-rsa)".to_owned())
}

/// As [`check`], for each line of a file that is neither empty nor begins with `#`.
///
/// # Errors
/// Also when the file cannot be read or has no key.
pub fn check_file(path: &Path) -> Result<(), String> {
    let length = std::fs::metadata(path).map_err(|error| format!("it cannot be read: {error}"))?.len();
    if length > FILE_BYTES_MAX {
        return Err(format!("it has more than {} KiB, so it is no file of keys", FILE_BYTES_MAX >> 10));
    }
    let text = std::fs::read_to_string(path).map_err(|error| format!("it cannot be read: {error}"))?;
    let mut keys = 0;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            check(line).map_err(|why| format!("line {}: {why}", at + 1))?;
            keys += 1;
        }
    }
    if keys == 0 { Err("there is no key in it".to_owned()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use age::secrecy::ExposeSecret;

    #[test]
    fn public_keys_are_taken_and_private_ones_are_not_shown() {
        let identity = age::x25519::Identity::generate();
        check(&identity.to_public().to_string()).unwrap();
        let secret = identity.to_string();
        let error = check(secret.expose_secret()).unwrap_err();
        assert!(error.contains("private") && !error.contains(&secret.expose_secret()[20..]), "{error}");
        for bad in ["", "age1", "passphrase", "ssh-dss AAAA"] {
            assert!(check(bad).unwrap_err().contains("no public key"), "{bad}");
        }
    }

    #[test]
    fn a_file_needs_a_key_and_names_the_line_that_is_wrong() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let public = age::x25519::Identity::generate().to_public();
        for (text, why) in
            [("", "no key"), ("# only this\n", "no key"), (&format!("{public}\n\nhello\n"), "line 3")]
        {
            std::fs::write(file.path(), text).unwrap();
            assert!(check_file(file.path()).unwrap_err().contains(why), "{text:?}");
        }
        std::fs::write(file.path(), format!("# ours\n{public}\n")).unwrap();
        check_file(file.path()).unwrap();
        assert!(check_file(&file.path().join("x")).unwrap_err().contains("cannot be read"));
    }
}
