//! The archive without binlogd: Debian's age, zstd and coreutils, AWS's command line, and rclone.

use super::place::{Place, program_or_skip, scripts, wait_archived};
use super::{MYSQL, write};
use crate::common::Server;
use crate::common::readers::make_account;
use crate::common::workload;
use rig::object_store::{program, tool};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Puts a file together as docs/archive/archive.md says that it can be, and compares it.
const READ: &str = r#"
    set -euo pipefail
    list=(*.sha256)
    [[ ${#list[@]} -eq 1 ]]
    sha256sum -c --quiet "${list[0]}"
    grep -v '^#' "${list[0]}" | while read -r _ object; do "$AGE" -d -i "$KEY" "$object" | "$ZSTD" -dc; done | cmp - "$THEIRS"
"#;

/// Each of these closed files is read from the store's own files with stock tools, and is the source's.
#[track_caller]
pub(super) fn assert_read_without_us(place: &Place, source: &Server, names: &[String]) {
    let [age, zstd] = ["age", "zstd"].map(|name| program(&scripts(), name).expect("a stock tool"));
    for name in names {
        let folder = one_folder(&place.root().join("default"), name);
        let mut command = Command::new("bash");
        command.args(["-c", READ]).current_dir(&folder).env("AGE", &age).env("ZSTD", &zstd);
        command.env("KEY", place.identity()).env("THEIRS", source.datadir().join(name));
        let output = command.output().expect("bash runs");
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}: {}", folder.display(), String::from_utf8_lossy(&said));
    }
}

/// The folder of a file below that of the one timeline.
#[track_caller]
fn one_folder(source: &Path, file: &str) -> PathBuf {
    let timelines = std::fs::read_dir(source).expect("the source's folder").flatten();
    let mut found: Vec<PathBuf> =
        timelines.map(|entry| entry.path().join(file)).filter(|path| path.is_dir()).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// All files below a folder by their paths there.
fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).expect("below it").to_owned();
                found.insert(name, std::fs::read(&path).expect("a file"));
            }
        }
    }
    found
}

/// In a bucket that keeps everything for a day, an archive is kept as in any other, and nobody can delete of it: not even who
/// owns the store. AWS's command line and rclone see and bring back every object.
#[test]
fn in_a_locked_bucket_all_is_kept_and_aws_and_rclone_read_it() {
    let programs = ["aws", "rclone"].map(program_or_skip);
    if programs.iter().any(Option::is_none) {
        return;
    }
    let source = Server::start("mysql-9.7", &MYSQL);
    make_account(&source);
    workload::run(&source, "schema", &workload::schema("d", 2));
    let place = Place::locked().encrypted();
    let daemon = place.start(&source, "");
    write(&source);
    wait_archived(&daemon, &source);
    place.assert_sound();
    place.fetch().assert_is_of(&source);
    // From here on nothing is added that one would see and another not.
    drop(daemon);

    let objects = tree(&place.root());
    let store = place.store();
    let from = place.url();
    let listed = store.aws(&["s3", "ls", "--recursive", &from]).expect("aws lists");
    assert_eq!(listed.lines().count(), objects.len(), "{listed}");
    let dir = tempfile::tempdir().expect("a folder");
    let [by_aws, by_rclone] = ["aws", "rclone"].map(|name| dir.path().join(name));
    store.aws(&["s3", "cp", "--recursive", "--quiet", &from, by_aws.to_str().unwrap()]).expect("aws reads");
    assert!(tree(&by_aws) == objects, "what aws brings is not what is there");

    let mut rclone = tool(&scripts(), "rclone").expect("rclone");
    let endpoint = store.endpoint().unwrap();
    rclone.env("RCLONE_CONFIG", "/dev/null").env("RCLONE_CONFIG_S_TYPE", "s3");
    rclone.env("RCLONE_CONFIG_S_PROVIDER", "Other").env("RCLONE_CONFIG_S_ENDPOINT", endpoint);
    rclone.env("RCLONE_CONFIG_S_ACCESS_KEY_ID", store.access_key().unwrap());
    rclone.env("RCLONE_CONFIG_S_SECRET_ACCESS_KEY", store.secret_key().unwrap());
    let output = rclone.arg("copy").arg(from.replace("s3://", "s:")).arg(&by_rclone).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(tree(&by_rclone) == objects, "what rclone brings is not what is there");

    assert_protected(&place);
}

/// The first commit, without which nothing is worth anything, cannot be deleted for good.
fn assert_protected(place: &Place) {
    let (store, bucket) = (place.store(), place.bucket());
    let prefix = place.url().replace(&format!("s3://{bucket}/"), "");
    let key = format!("{prefix}/default/commits/{:020}.json", 1);
    let about = ["--bucket", bucket, "--key", &key];
    let head = store.aws(&[&["s3api", "head-object"], &about[..]].concat()).expect("it is there");
    let head: serde_json::Value = serde_json::from_str(&head).expect("JSON");
    let version = head["VersionId"].as_str().unwrap_or_else(|| panic!("no version: {head:#}"));
    let delete = [&["s3api", "delete-object", "--version-id", version], &about[..]].concat();
    for more in [&[][..], &["--bypass-governance-retention"]] {
        let refused = store.aws(&[&delete[..], more].concat()).expect_err("it is locked").to_string();
        assert!(refused.contains("object lock"), "{refused}");
    }
}
