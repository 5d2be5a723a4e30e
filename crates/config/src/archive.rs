//! The `[archive]` table: where history is kept for good, and for whom it is encrypted.

use super::error::Findings;
use super::given::{Document, Value};
use super::key::Section;
use super::reader::Reader;
use super::settings::ArchiveConfig;
use archive::keys::{Identities, Recipients};
use archive::remote::{Location, Options};
use std::path::PathBuf;
use std::time::Duration;

/// zstd's own default.
const LEVEL: u32 = 3;
const INTERVAL: Duration = Duration::from_secs(10);
const CONCURRENCY: u32 = 4;
const CACHE_SIZE: u64 = 1 << 30;
/// A store looks after its bytes by itself; what a look once a day adds is that somebody hears of it within a day.
const VERIFY_INTERVAL: Duration = Duration::from_secs(86_400);
/// With the interval: each object is read within a quarter of a year, and a hundredth of the archive crosses the network a day.
const VERIFY_SAMPLE: u32 = 100;

/// Reads the table; `Some(None)` when nothing is archived.
pub(crate) fn build(document: &Document, findings: &mut Findings) -> Option<Option<ArchiveConfig>> {
    if !document.archive.items.contains_key("url") {
        return without_url(document, findings).then_some(None);
    }
    let mut reader = Reader::new(Section::Archive, &document.archive, findings);
    let location = reader.parsed("url", |text| text.parse::<Location>());
    let endpoint = reader.optional_text("endpoint");
    let region = reader.optional_text("region");
    let path_style = reader.optional_boolean("path_style");
    let allow_http = reader.optional_boolean("allow_http");
    let level = reader.number("level");
    let recipients = reader.texts("recipients");
    let recipients_file = reader.optional_path("recipients_file");
    let identity = reader.paths("identity");
    let interval = reader.optional_duration("interval");
    let bandwidth = reader.optional_bytes("bandwidth");
    let concurrency = reader.number("concurrency");
    let cache_size = reader.optional_bytes("cache_size");
    let single_writer = reader.optional_boolean("single_writer");
    let verify_interval = reader.optional_duration("verify_interval");
    let verify_sample = reader.number("verify_sample");
    check_recipients(&mut reader, recipients.as_ref(), recipients_file.as_ref());
    check_identity(&mut reader, identity.as_ref());
    let options = match (endpoint, region, path_style, allow_http) {
        (Some(endpoint), Some(region), Some(path_style), Some(allow_http)) => {
            Some(Options { endpoint, region, path_style, allow_http: allow_http.unwrap_or(false) })
        }
        _ => None,
    };
    if let (Some(location), Some(options)) = (&location, &options)
        && let Err(wrong) = options.check(location)
    {
        reader.relation(wrong.name, &format!("{} {}", wrong.name, wrong.why));
    }
    Some(Some(ArchiveConfig {
        location: location?,
        options: options?,
        level: level?.unwrap_or(LEVEL),
        recipients: recipients?.unwrap_or_default(),
        recipients_file: recipients_file?,
        identity: identity?.unwrap_or_default(),
        interval: interval?.unwrap_or(INTERVAL),
        bandwidth: bandwidth?,
        concurrency: concurrency?.unwrap_or(CONCURRENCY),
        cache_size: cache_size?.unwrap_or(CACHE_SIZE),
        single_writer: single_writer?.unwrap_or(false),
        verify_interval: verify_interval?.unwrap_or(VERIFY_INTERVAL),
        verify_sample: verify_sample?.unwrap_or(VERIFY_SAMPLE),
    }))
}

/// What is said of an archive where there is none; false when there is such a thing.
fn without_url(document: &Document, findings: &mut Findings) -> bool {
    let mut is_silent = true;
    for (name, item) in &document.archive.items {
        findings.error(
            &item.place,
            format!("{name} means nothing without url in [archive]: nothing is archived"),
        );
        is_silent = false;
    }
    for source in &document.sources {
        if let Some(item) = source.items.get("archive")
            && matches!(item.value, Value::Boolean(true))
        {
            findings
                .error(&item.place, "archive = true needs url in [archive]: nothing is archived without it");
            is_silent = false;
        }
    }
    is_silent
}

/// Every key must be one for which something can be encrypted: a setting of encryption is never passed over.
fn check_recipients(
    reader: &mut Reader<'_>,
    keys: Option<&Option<Vec<String>>>,
    file: Option<&Option<PathBuf>>,
) {
    let mut recipients = Recipients::new();
    for (at, key) in keys.into_iter().flatten().flatten().enumerate() {
        if let Err(error) = recipients.add(key, &format!("recipients, key {}", at + 1)) {
            reader.relation("recipients", &error.to_string());
        }
    }
    if let Some(Some(path)) = file
        && let Err(error) = recipients.add_file(path)
    {
        reader.relation("recipients_file", &format!("recipients_file: {error}"));
    }
}

/// What cannot be opened by these files is known before it is needed.
fn check_identity(reader: &mut Reader<'_>, files: Option<&Option<Vec<PathBuf>>>) {
    let mut identities = Identities::new();
    for file in files.into_iter().flatten().flatten() {
        if let Err(error) = identities.add_unattended(file) {
            reader.relation("identity", &format!("identity: {error}"));
        }
    }
}
