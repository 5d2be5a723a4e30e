//! The `[archive]` table: where history is kept for good, and for whom it is encrypted.

use super::super::document::{Document, Table};
use super::super::error::Findings;
use super::super::key::ReloadEffect::Restart;
use super::super::key::{HOUR, Section, TEN_YEARS, implied, ms, unset};
use super::super::table::table;
use super::source::SourceKeys;
use archive::chain::trust::Signing;
use archive::keys::signing::{SigningKey, VerifyingKey};
use archive::keys::{Identities, KeyError, Recipients};
use archive::store::remote::{Location, Options};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

table! {
    /// History in an object store or in another folder, of all sources. Without url nothing is archived.
    /// Credentials come from the environment and the usual files (AWS_*, ~/.aws/credentials,
    /// GOOGLE_APPLICATION_CREDENTIALS, AZURE_*).
    struct ArchiveConfig, ArchiveKeys for Section::Archive, Restart;

    /// Bucket, container or folder.
    field location: Location;
    /// How it is reached. They mean something there.
    field options: Options;
    /// Where the archive is. Several binlogds may share it, each with names of sources of its own. One of:
    ///   s3://bucket/prefix      S3, or a store that speaks its protocol: see endpoint
    ///   gs://bucket/prefix      Google Cloud Storage
    ///   az://container/prefix   Azure Blob Storage, of the account AZURE_STORAGE_ACCOUNT_NAME
    ///   file:///folder          a folder, of another disk or mounted; it needs hard links, and is created if the
    ///                           folder around it is there
    key url: Option<Location> = unset("\"s3://bucket/binlogd\"").flag("archive-url");
    /// Address of the store where it is not the provider's own. Of Azure with the account, as in
    /// https://account.blob.core.windows.net. Not for file://.
    key endpoint: Option<String> = unset("\"https://minio.example.com:9000\"").flag("archive-endpoint");
    /// Region of the bucket, for s3:// only. Without it AWS_REGION, AWS_DEFAULT_REGION or the profile's, else
    /// us-east-1.
    key region: Option<String> = unset("\"eu-central-1\"").flag("archive-region");
    /// Whether requests name the bucket in the path, and not in the host's name; for s3:// only. Without it:
    /// true where there is an endpoint.
    key path_style: Option<bool> = unset("true").flag("archive-path-style");
    /// Whether to go on without TLS, false where it is not given: needed for an endpoint that begins with
    /// http://, and refused without one. What is not encrypted by recipients is then read by whoever sees the
    /// network.
    key allow_http: bool = implied("false", "true").flag("archive-allow-http");
    /// How hard zstd tries to make objects small; 3 where it is not given. Transactions that the source has
    /// compressed are not compressed again.
    level: u32 = implied("3", "3").flag("archive-level").range(1, 19);
    /// Public keys of age (age1…) or SSH (ssh-ed25519, ssh-rsa): history is encrypted so that whoever has the
    /// private key of one of them can read it, and this machine cannot. Without recipients and
    /// recipients_file nothing is encrypted.
    recipients: Vec<String> = unset("[\"age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p\"]");
    /// File of further such keys, one a line, as age -R reads it.
    recipients_file: Option<PathBuf> = unset("\"archive.recipients\"").flag("archive-recipients-file");
    /// Files with private keys, which open what is encrypted when it is read back here: for readers of old
    /// files, and to begin from the archive. None of them may be protected by a passphrase: nobody can be
    /// asked.
    identity: Vec<PathBuf> = unset("[\"archive.key\"]");
    /// File of the private key with which each commit is signed, so that `binlogd verify URL --signed-by` tells a
    /// history of this machine from a forged one. `openssl genpkey -algorithm ed25519 -out FILE` makes it; not
    /// everybody may read it, and it has no passphrase. Once commits are signed none is made without a key.
    sign_key: Option<PathBuf> = unset("\"archive-sign.key\"").flag("archive-sign-key");
    /// Public keys of others who write to the archive of a source of this machine, or have: another binlogd, whoever
    /// runs `binlogd prune`, sign_key before it was changed. Behind a commit that was signed, binlogd goes on only
    /// when each further one is signed by one of these or by sign_key.
    signed_by: Vec<String> = unset("[\"MCowBQYDK2VwAyEA4QT28fIBL7L9Ynp/pocGCxxnYRSpsOb0+S+2XAzx6W8=\"]");
    /// Longest time for which new transactions wait before they are uploaded, 10s where it is not given: so
    /// much may the archive lack when this machine is lost.
    interval: Duration = implied("\"10s\"", "\"10s\"").flag("archive-interval").lasting(ms(1000), HOUR);
    /// Most bytes a second that are uploaded, of all sources together. Without it there is no limit.
    bandwidth: Option<u64> = unset("\"20MiB\"").flag("archive-bandwidth");
    /// Most uploads at a time; 4 where it is not given.
    concurrency: u32 = implied("4", "4").flag("archive-concurrency").range(1, 32);
    /// Most bytes of a source that are kept in data_dir of what was fetched for readers of files that were
    /// purged here; 1GiB where it is not given. While disk_warn is passed, or a twentieth of the disk is not
    /// free, nothing is kept.
    cache_size: u64 = implied("\"1GiB\"", "\"4GiB\"").flag("archive-cache-size");
    /// How often the archive is verified beside the uploads, 1d where it is not given: all commits, whether
    /// the store lists every object with its length, and of some objects the bytes. What is found stands in
    /// the status. 0s switches it off.
    verify_interval: Duration = implied("\"1d\"", "\"1d\"")
        .flag("archive-verify-interval").lasting(ms(0), TEN_YEARS);
    /// One of so many objects is read back and compared each time, 100 where it is not given: others each
    /// time, so that so many runs come to all. 1 reads the whole archive each time, which some stores charge
    /// for.
    verify_sample: u32 = implied("100", "100").flag("archive-verify-sample").range(1, 1_000_000);
    /// Whether to go on with a store that ignores conditions and overwrites what is there; false where it is
    /// not given. It says that never more than one binlogd writes to the archive of a source: two would
    /// destroy it. binlogd doctor --archive tells whether a store needs it.
    single_writer: bool = implied("false", "true").flag("archive-single-writer");
}

impl ArchiveConfig {
    /// For whom it is encrypted: the keys of `recipients` and `recipients_file`. `None` for nobody: it is not encrypted.
    ///
    /// # Errors
    /// When one of them, which could be read when the configuration was, cannot be read any more.
    pub fn readers(&self) -> Result<Option<Arc<Recipients>>, KeyError> {
        let mut readers = Recipients::new();
        for key in &self.recipients {
            readers.add(key, "recipients in [archive]")?;
        }
        if let Some(file) = &self.recipients_file {
            readers.add_file(file)?;
        }
        Ok((!readers.is_empty()).then(|| Arc::new(readers)))
    }

    /// What opens what is encrypted: the keys of `identity`.
    ///
    /// # Errors
    /// When one of its files, which could be read when the configuration was, cannot be read any more.
    pub fn identities(&self) -> Result<Identities, KeyError> {
        let mut identities = Identities::new();
        for file in &self.identity {
            identities.add_unattended(file)?;
        }
        Ok(identities)
    }

    /// Who writes to the archive, and the key by which this machine does.
    ///
    /// # Errors
    /// When the file of `sign_key`, which could be read when the configuration was, cannot be read any more.
    pub fn signing(&self) -> Result<Signing, KeyError> {
        let key = self.sign_key.as_deref().map(SigningKey::read).transpose()?;
        // What is none was refused with the configuration.
        let others: Vec<VerifyingKey> = self.signed_by.iter().filter_map(|key| key.parse().ok()).collect();
        Ok(Signing::new(key, &others))
    }
}

/// Reads the table; `Some(None)` when nothing is archived, `None` after an error.
pub(super) fn build(
    document: &Document,
    sources: &[SourceKeys],
    findings: &mut Findings,
) -> Option<Option<ArchiveConfig>> {
    let table = document.one(Section::Archive);
    if !table.items.contains_key(ArchiveKeys::url.name) {
        return without_url(&table, sources, findings).then_some(None);
    }
    let keys = ArchiveKeys::read(&table, findings);
    check_recipients(&keys, findings);
    check_identity(&keys, findings);
    check_signing(&keys, findings);
    let options = options(&keys);
    let location = keys.url.value.clone().flatten();
    if let (Some(location), Some(options)) = (&location, &options)
        && let Err(wrong) = options.check(location)
    {
        let place = table.items.get(wrong.name).map_or(&table.place, |item| &item.place);
        findings.error(place, format!("{} {}", wrong.name, wrong.why));
    }
    keys.whole(location, options).map(Some)
}

fn options(keys: &ArchiveKeys) -> Option<Options> {
    Some(Options {
        endpoint: keys.endpoint.value.clone()?,
        region: keys.region.value.clone()?,
        path_style: keys.path_style.value?,
        allow_http: keys.allow_http.value?,
    })
}

/// What is said of an archive where there is none; false when there is such a thing.
fn without_url(table: &Table, sources: &[SourceKeys], findings: &mut Findings) -> bool {
    for (name, item) in &table.items {
        findings.error(
            &item.place,
            format!("{name} means nothing without url in [archive]: nothing is archived"),
        );
    }
    let wants = |source: &&SourceKeys| source.archive.given.is_some() && source.archive.value == Some(true);
    for source in sources.iter().filter(wants) {
        source
            .archive
            .relation("archive = true needs url in [archive]: nothing is archived without it", findings);
    }
    table.items.is_empty() && !sources.iter().any(|source| wants(&source))
}

/// Every key must be one for which something can be encrypted: a setting of encryption is never passed over.
fn check_recipients(keys: &ArchiveKeys, findings: &mut Findings) {
    let mut recipients = Recipients::new();
    for (at, key) in keys.recipients.value.iter().flatten().enumerate() {
        if let Err(error) = recipients.add(key, &format!("recipients, key {}", at + 1)) {
            keys.recipients.relation(error.to_string(), findings);
        }
    }
    if let Some(Some(path)) = &keys.recipients_file.value
        && let Err(error) = recipients.add_file(path)
    {
        keys.recipients_file.relation(format!("recipients_file: {error}"), findings);
    }
}

/// A key that cannot sign is known before the first commit, and whose commits are not believed before they stop the archive.
fn check_signing(keys: &ArchiveKeys, findings: &mut Findings) {
    if let Some(Err(error)) = keys.sign_key.value.iter().flatten().next().map(|path| SigningKey::read(path)) {
        keys.sign_key.relation(format!("sign_key: {error}"), findings);
    }
    for (at, key) in keys.signed_by.value.iter().flatten().enumerate() {
        if let Err(wrong) = key.parse::<VerifyingKey>() {
            keys.signed_by.relation(format!("signed_by, key {}: {wrong}", at + 1), findings);
        }
    }
}

/// What cannot be opened by these files is known before it is needed.
fn check_identity(keys: &ArchiveKeys, findings: &mut Findings) {
    let mut identities = Identities::new();
    for file in keys.identity.value.iter().flatten() {
        if let Err(error) = identities.add_unattended(file) {
            keys.identity.relation(format!("identity: {error}"), findings);
        }
    }
}
