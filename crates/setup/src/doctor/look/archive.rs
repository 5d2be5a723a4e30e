//! The archive of `binlogd doctor --archive`: tried out, as a writer would use it.

use super::archive_held;
use crate::doctor::Finding;
use archive::store::probe;
use archive::store::probe::{Terms, probe};
use archive::store::remote::{Folder, Location, Remote};
use archive::store::{Store, StoreError};
use config::{ArchiveConfig, Config};
use jiff::Timestamp;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

/// Tries the archive out, and looks what it has of the sources that are to be archived. One or two small objects are made in it, and
/// removed again where that is allowed.
pub fn look(archive: &ArchiveConfig, config: &Config) -> Vec<Finding> {
    let mut findings = Vec::from_iter(not_encrypted(archive));
    findings.extend(same_disk(archive, &config.data_dir));
    match probed(archive) {
        Ok((store, probed)) => {
            findings.extend(probed.into_iter().map(finding));
            let sources = config.sources.iter().filter(|source| source.archive);
            let names: Vec<&str> = sources.map(|source| &*source.name).collect();
            findings.extend(archive_held::look(&store, archive, &names));
        }
        Err(error) => findings.push(Finding::error(error.text)),
    }
    findings
}

fn probed(config: &ArchiveConfig) -> Result<(Arc<dyn Store>, Vec<probe::Finding>), StoreError> {
    let terms = Terms { now: &Timestamp::now, single_writer: config.single_writer, lock_of: None };
    match &config.location {
        Location::Folder(path) => {
            let folder = Folder::open(path)?;
            let findings = probe(&folder, &terms);
            Ok((Arc::new(folder), findings))
        }
        location => {
            let remote = Remote::open(location, &config.options)?;
            let lock_of = |name: &str| remote.lock_of(name);
            let findings = probe(&remote, &Terms { lock_of: Some(&lock_of), ..terms });
            Ok((Arc::new(remote), findings))
        }
    }
}

/// An archive that dies with the copy is none, and its syncs are in the way of those that commits wait for.
fn same_disk(config: &ArchiveConfig, data_dir: &Path) -> Option<Finding> {
    let Location::Folder(path) = &config.location else { return None };
    let device = |path: &Path| {
        let there = path.ancestors().find(|folder| folder.is_dir())?;
        there.metadata().ok().map(|metadata| metadata.dev())
    };
    if device(path)? != device(data_dir)? {
        return None;
    }
    let mut finding = Finding::warning(format!(
        "{} is on the same file system as the copy in {}",
        path.display(),
        data_dir.display()
    ));
    finding.why = "both are lost with that disk, and uploads make the acknowledgements slower, which sync the same disk: take a folder on \
                   another disk or machine, or a bucket"
        .to_owned();
    Some(finding)
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
    use archive::store::remote::Options;
    use std::time::Duration;

    fn config(url: &str, options: Options) -> ArchiveConfig {
        ArchiveConfig {
            location: url.parse().unwrap(),
            options,
            level: 3,
            recipients: Vec::new(),
            recipients_file: None,
            sign_key: None,
            signed_by: Vec::new(),
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
        let (_, findings) = probed(&config(&url, Options::default())).unwrap();
        assert!(
            findings.len() > 5 && findings.iter().all(|finding| finding.level == probe::Level::Ok),
            "{findings:#?}"
        );
        let url = format!("file://{}", around.path().join("not/there").display());
        assert!(probed(&config(&url, Options::default())).is_err());
    }

    #[test]
    fn a_folder_on_the_disk_of_the_copy_is_worth_a_word() {
        let around = tempfile::tempdir().unwrap();
        let config = |folder: &Path| config(&format!("file://{}", folder.display()), Options::default());
        let data_dir = around.path().join("data/not/yet/there");
        let found = same_disk(&config(&around.path().join("archive")), &data_dir).unwrap();
        assert_eq!(found.level, Level::Warning);
        assert_eq!(same_disk(&config(Path::new("/proc/archive")), &data_dir), None);
        assert_eq!(same_disk(&super::tests::config("s3://bucket", Options::default()), &data_dir), None);
    }

    #[test]
    fn a_bucket_without_encryption_is_worth_a_word() {
        let config = config("s3://bucket", Options::default());
        assert_eq!(not_encrypted(&config).unwrap().level, Level::Warning);
        let encrypted = ArchiveConfig { recipients_file: Some("keys".into()), ..config };
        assert!(not_encrypted(&encrypted).is_none());
    }
}
