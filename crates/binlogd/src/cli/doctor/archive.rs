//! The archive of `binlogd doctor --archive`: tried out, as a writer would use it.

use crate::config::ArchiveConfig;
use crate::doctor::Finding;
use archive::probe::{self, Terms, probe};
use archive::remote::{Folder, Location, Remote};
use archive::store::StoreError;
use jiff::Timestamp;

/// Tries the archive out. One or two small objects are made in it, and removed again where that is allowed.
pub(super) fn look(config: &ArchiveConfig) -> Vec<Finding> {
    let mut findings = Vec::from_iter(not_encrypted(config));
    match probed(config) {
        Ok(probed) => findings.extend(probed.into_iter().map(finding)),
        Err(error) => findings.push(Finding::error(error.text)),
    }
    findings
}

fn probed(config: &ArchiveConfig) -> Result<Vec<probe::Finding>, StoreError> {
    let terms = Terms { now: &Timestamp::now, single_writer: config.single_writer, lock_of: None };
    match &config.location {
        Location::Folder(path) => Ok(probe(&Folder::open(path)?, &terms)),
        location => {
            let remote = Remote::open(location, &config.options)?;
            let lock_of = |name: &str| remote.lock_of(name);
            Ok(probe(&remote, &Terms { lock_of: Some(&lock_of), ..terms }))
        }
    }
}

/// Who keeps history in a bucket should know who can read it.
fn not_encrypted(config: &ArchiveConfig) -> Option<Finding> {
    let is_encrypted = !config.recipients.is_empty() || config.recipients_file.is_some();
    if is_encrypted || matches!(config.location, Location::Folder(_)) {
        return None;
    }
    let mut finding = Finding::warning("history is not encrypted");
    finding.why = "whoever may read the bucket reads every row that was changed: set recipients in [archive]"
        .to_owned();
    Some(finding)
}

fn finding(found: probe::Finding) -> Finding {
    let mut finding = match found.level {
        probe::Level::Ok => Finding::ok(found.what),
        probe::Level::Warning => Finding::warning(found.what),
        probe::Level::Error => Finding::error(found.what),
    };
    finding.why = found.why;
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;
    use archive::remote::Options;
    use std::time::Duration;

    fn config(url: &str, options: Options) -> ArchiveConfig {
        ArchiveConfig {
            location: url.parse().unwrap(),
            options,
            level: 3,
            recipients: Vec::new(),
            recipients_file: None,
            identity: Vec::new(),
            cache_size: 1 << 30,
            interval: Duration::from_secs(10),
            bandwidth: None,
            concurrency: 4,
            single_writer: false,
            verify_interval: Duration::ZERO,
            verify_sample: 1,
        }
    }

    #[test]
    fn a_folder_is_tried_out() {
        let around = tempfile::tempdir().unwrap();
        let url = format!("file://{}", around.path().join("archive").display());
        let findings = look(&config(&url, Options::default()));
        assert!(
            findings.len() > 5 && findings.iter().all(|finding| finding.level == Level::Ok),
            "{findings:#?}"
        );
        let url = format!("file://{}", around.path().join("not/there").display());
        let findings = look(&config(&url, Options::default()));
        assert!(findings.len() == 1 && findings[0].level == Level::Error, "{findings:#?}");
    }

    #[test]
    fn a_bucket_without_encryption_is_worth_a_word() {
        let config = config("s3://bucket", Options::default());
        assert_eq!(not_encrypted(&config).unwrap().level, Level::Warning);
        let encrypted = ArchiveConfig { recipients_file: Some("keys".into()), ..config };
        assert!(not_encrypted(&encrypted).is_none());
    }
}
