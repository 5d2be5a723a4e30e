//! The files of TLS: whether they are there, can be read and fit together.

use super::super::entry::Entry;
use super::super::error::Findings;
use super::password::warn_if_exposed;
use std::fs::File;
use std::path::PathBuf;
use wire::{ServerTls, TlsMode, TlsOptions};

/// The key of a file that may be named.
type FileKey = Entry<Option<PathBuf>>;

/// Certificate and key of a server, or `Some(None)` without them. `None` after an error.
pub(crate) fn of_server(
    cert: &FileKey,
    key: &FileKey,
    findings: &mut Findings,
) -> Option<Option<(PathBuf, PathBuf)>> {
    let can_be_read = check_files(&[cert], key, findings);
    check_pair(cert, key, findings);
    match (cert.value.clone()?, key.value.clone()?) {
        (None, None) => Some(None),
        (Some(cert_file), Some(key_file)) => {
            if can_be_read && let Err(error) = ServerTls::load(&cert_file, &key_file) {
                let text = format!(
                    "{error}: tls_cert must hold the server's certificate in PEM form, and tls_key the private key of that \
                     certificate"
                );
                cert.relation(text, findings);
            }
            Some(Some((cert_file, key_file)))
        }
        _ => None,
    }
}

/// How a source is connected to. `None` after an error.
pub(crate) fn of_client(
    mode: &Entry<TlsMode>,
    ca: &FileKey,
    cert: &FileKey,
    key: &FileKey,
    findings: &mut Findings,
) -> Option<TlsOptions> {
    check_files(&[ca, cert], key, findings);
    check_pair(cert, key, findings);
    let options = TlsOptions {
        mode: mode.value?,
        ca: ca.value.clone()?,
        cert: cert.value.clone()?,
        key: key.value.clone()?,
    };
    let verifies = matches!(options.mode, TlsMode::VerifyCa | TlsMode::VerifyFull);
    if !verifies && options.ca.is_some() {
        // Silence here would let an operator believe that the certificate is checked.
        let text = format!(
            "tls_ca is not used while tls is {}: set tls to verify-ca or verify-full, or remove tls_ca",
            options.mode
        );
        ca.relation(text, findings);
    }
    if options.mode == TlsMode::Disabled && options.cert.is_some() && options.key.is_some() {
        cert.relation("tls_cert and tls_key are not used while tls is disabled", findings);
    }
    Some(options)
}

fn check_pair(cert: &FileKey, key: &FileKey, findings: &mut Findings) {
    match (&cert.value, &key.value) {
        (Some(Some(_)), Some(None)) => cert.relation("tls_cert needs tls_key, its private key", findings),
        (Some(None), Some(Some(_))) => {
            key.relation("tls_key needs tls_cert, the certificate that it belongs to", findings);
        }
        _ => {}
    }
}

/// Tells of files that cannot be opened, and of a private key that others can read. True when all can be.
fn check_files(certificates: &[&FileKey], key: &FileKey, findings: &mut Findings) -> bool {
    let mut can_be_read = true;
    for entry in certificates.iter().copied().chain([key]) {
        let Some(Some(path)) = &entry.value else { continue };
        let wrong = match File::open(path).and_then(|file| file.metadata()) {
            Ok(metadata) if metadata.is_dir() => "is a folder, not a PEM file".to_owned(),
            Ok(_) => continue,
            Err(error) => format!("cannot be read: {error}"),
        };
        entry.wrong(wrong, findings);
        can_be_read = false;
    }
    if let Some(Some(path)) = &key.value {
        warn_if_exposed(path, "is a private key", key.place(), findings);
    }
    can_be_read
}
