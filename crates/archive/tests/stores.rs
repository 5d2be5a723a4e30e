//! The real client against real stores: what S3's protocol and Azure's really answer, through every operation and every fault.

use archive::store::probe;
use archive::store::probe::{Level, Terms, probe};
use archive::store::remote::{Location, Options, Remote};
use archive::store::{Created, Fault, Store};
use bytes::Bytes;
use jiff::Timestamp;
use rig::gcs::Gcs;
use rig::object_store::{ObjectStore, program};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// Longest time until it is clear that nobody listens, with all repetitions.
const REFUSED_CONNECTION_LIMIT: Duration = Duration::from_secs(10);

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/stores")
}

/// Says that a test is left out, past the harness, which keeps the output of tests that pass to itself.
fn skip(why: &str) {
    assert!(std::env::var_os("BINLOGD_NO_SKIPS").is_none(), "nothing may be skipped: {why}");
    let _ = writeln!(std::io::stderr(), "\n*** SKIPPED: {why} ***\n");
}

/// Opens a bucket or container of a store, with these variables and no others.
fn open(url: &str, options: &Options, variables: &[(&str, &str)]) -> Remote {
    let location: Location = url.parse().unwrap();
    let environment =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Remote::open_with(&location, options, &environment).unwrap()
}

fn options(endpoint: &str) -> Options {
    Options { endpoint: Some(endpoint.to_owned()), allow_http: true, ..Options::default() }
}

/// A store of each kind with a bucket, and how it is opened: by the URL, with the account or another one.
struct Fixture {
    _dir: tempfile::TempDir,
    store: ObjectStore,
    is_azure: bool,
}

impl Fixture {
    fn s3() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let store = ObjectStore::versitygw(&scripts(), dir.path().join("store")).unwrap();
        store.bucket("archive").unwrap();
        Fixture { _dir: dir, store, is_azure: false }
    }

    /// `None` where npm cannot install Azurite, which is said.
    fn azure() -> Option<Fixture> {
        if let Err(error) = program(&scripts(), "azurite") {
            skip(&format!("Azurite cannot be had: {error}"));
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let store = ObjectStore::azurite(&scripts(), dir.path().join("store")).unwrap();
        store.bucket("archive").unwrap();
        Some(Fixture { _dir: dir, store, is_azure: true })
    }

    fn open(&self, bucket: &str, prefix: &str, secret: &str) -> Remote {
        self.open_as(bucket, prefix, self.store.access_key().unwrap(), secret)
    }

    fn open_as(&self, bucket: &str, prefix: &str, key: &str, secret: &str) -> Remote {
        let options = options(self.store.endpoint().unwrap());
        if self.is_azure {
            let variables = [("AZURE_STORAGE_ACCOUNT_NAME", key), ("AZURE_STORAGE_ACCOUNT_KEY", secret)];
            open(&format!("az://{bucket}{prefix}"), &options, &variables)
        } else {
            let region = self.store.fact("REGION").unwrap();
            let variables =
                [("AWS_ACCESS_KEY_ID", key), ("AWS_SECRET_ACCESS_KEY", secret), ("AWS_REGION", region)];
            open(&format!("s3://{bucket}{prefix}"), &options, &variables)
        }
    }

    fn remote(&self) -> Remote {
        self.open("archive", "/some/prefix", self.store.secret_key().unwrap())
    }
}

fn names(store: &dyn Store, prefix: &str, after: Option<&str>) -> Vec<String> {
    store.list(prefix, after).unwrap().into_iter().map(|meta| meta.name).collect()
}

fn every_operation(store: &dyn Store) {
    let bytes = Bytes::from((0..100_000u32).map(|number| number.to_le_bytes()[0]).collect::<Vec<_>>());
    assert_eq!(store.create("s/0001-a/f.000001/one.zst", bytes.clone()).unwrap(), Created::New);
    assert_eq!(store.create("s/0001-a/f.000001/one.zst", Bytes::from_static(b"2")).unwrap(), Created::Exists);
    assert_eq!(store.get("s/0001-a/f.000001/one.zst").unwrap(), bytes);
    assert_eq!(
        store.get_range("s/0001-a/f.000001/one.zst", 70_000..70_100).unwrap(),
        bytes.slice(70_000..70_100)
    );
    assert_eq!(store.get_range("s/0001-a/f.000001/one.zst", 99_990..200_000).unwrap(), bytes.slice(99_990..));
    let error = store.get_range("s/0001-a/f.000001/one.zst", 100_000..100_001).unwrap_err();
    assert_eq!(error.fault, Fault::Refused, "{error}");
    let meta = store.head("s/0001-a/f.000001/one.zst").unwrap();
    assert_eq!((meta.name.as_str(), meta.size), ("s/0001-a/f.000001/one.zst", 100_000));
    assert!(
        meta.modified.duration_since(Timestamp::now()).abs() < jiff::SignedDuration::from_mins(1),
        "{meta:?}"
    );
    assert_eq!(store.create("s/empty", Bytes::new()).unwrap(), Created::New);
    assert_eq!(store.get("s/empty").unwrap(), Bytes::new());

    for missing in ["s/nothing", "s/0001-a", "s/0001-a/f.000001/one"] {
        for error in [
            store.get(missing).unwrap_err(),
            store.get_range(missing, 0..1).unwrap_err(),
            store.head(missing).unwrap_err(),
        ] {
            assert!(error.is_missing() && error.text.contains(missing), "{error}");
        }
    }

    // More than one page of any store: S3 gives 1000, Azure 5000.
    for number in (1..=12u64).rev() {
        let name = archive::names::commit("s", number);
        assert_eq!(store.create(&name, Bytes::from(format!("{number}\n"))).unwrap(), Created::New);
    }
    let commits: Vec<String> = (1..=12).map(|number| archive::names::commit("s", number)).collect();
    assert_eq!(names(store, "s/commits/", None), commits);
    assert_eq!(names(store, "s/commits/", Some(&commits[6])), commits[7..]);
    assert_eq!(names(store, "s/commits/", Some("s/commits/00000000000000000003")), commits[2..]);
    assert_eq!(names(store, "s/commits/", Some(&commits[11])), Vec::<String>::new());
    assert_eq!(names(store, "s/comm/", None), Vec::<String>::new());
    assert_eq!(names(store, "", None).len(), 14);

    store.delete("s/empty").unwrap();
    store.delete("s/empty").unwrap();
    assert!(store.head("s/empty").unwrap_err().is_missing());
    assert_eq!(store.create("s/empty", Bytes::from_static(b"again")).unwrap(), Created::New);
}

/// Of eight that make one name at the same time one is told that it did, and its bytes are there.
fn rivals(store: Remote) {
    let store = Arc::new(store);
    for round in 0..10 {
        let name = format!("race/{round}");
        let barrier = Arc::new(Barrier::new(8));
        let threads: Vec<_> = (0..8u8)
            .map(|number| {
                let (store, barrier, name) = (store.clone(), barrier.clone(), name.clone());
                std::thread::spawn(move || {
                    barrier.wait();
                    (number, store.create(&name, Bytes::from(vec![number; 5000])).unwrap())
                })
            })
            .collect();
        let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let new: Vec<u8> = outcomes
            .iter()
            .filter(|(_, created)| *created == Created::New)
            .map(|(number, _)| *number)
            .collect();
        assert_eq!(new.len(), 1, "{name}: {outcomes:?}");
        assert_eq!(store.get(&name).unwrap(), Bytes::from(vec![new[0]; 5000]), "{name}");
    }
}

/// Each fault is told as what it is, in every operation, and no error shows the secret.
fn faults(fixture: &Fixture, wrong_secret: &str) {
    let secret = fixture.store.secret_key().unwrap();
    for (store, fault) in [
        (fixture.open("archive", "", wrong_secret), Fault::Denied),
        (fixture.open("no-such-bucket", "", secret), Fault::Refused),
    ] {
        let errors = [
            store.create("a/b", Bytes::from_static(b"x")).unwrap_err(),
            store.get("a/b").unwrap_err(),
            store.get_range("a/b", 0..1).unwrap_err(),
            store.head("a/b").unwrap_err(),
            store.list("a/", None).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.fault, fault, "{error}");
            assert!(!error.text.contains(wrong_secret) && !error.text.contains(secret), "{error}");
            assert!(!error.text.contains('\n') && error.text.contains("the store says"), "{error}");
        }
    }
}

fn nobody_listens(url: &str, variables: &[(&str, &str)]) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let store = open(url, &options(&format!("http://{address}")), variables);
    let began = Instant::now();
    for error in [store.create("a/b", Bytes::new()).unwrap_err(), store.list("a/", None).unwrap_err()] {
        assert_eq!(error.fault, Fault::Unavailable, "{error}");
        assert!(error.text.contains("nobody listens"), "{error}");
    }
    assert!(began.elapsed() < 2 * REFUSED_CONNECTION_LIMIT, "{:?}", began.elapsed());
}

fn probed(store: &Remote) -> Vec<probe::Finding> {
    let lock_of = |name: &str| store.lock_of(name);
    probe(store, &Terms { now: &Timestamp::now, single_writer: false, lock_of: Some(&lock_of) })
}

#[test]
fn s3_does_every_operation() {
    let fixture = Fixture::s3();
    every_operation(&fixture.remote());
    rivals(fixture.remote());
    faults(&fixture, "wrong-secret-of-somebody");
    let findings = probed(&fixture.remote());
    assert!(findings.iter().all(|finding| finding.level == Level::Ok), "{findings:#?}");
    assert!(names(&fixture.remote(), "probe/", None).is_empty());
    let stranger = fixture.open_as("archive", "", "AKISTRANGER", "wrong-secret-of-somebody");
    let error = stranger.get("a/b").unwrap_err();
    assert!(error.fault == Fault::Denied && error.text.contains("InvalidAccessKeyId"), "{error}");
}

#[test]
fn azure_does_every_operation() {
    let Some(fixture) = Fixture::azure() else { return };
    every_operation(&fixture.remote());
    rivals(fixture.remote());
    faults(&fixture, "d3Jvbmctc2VjcmV0LW9mLXNvbWVib2R5");
    let findings = probed(&fixture.remote());
    assert!(findings.iter().all(|finding| finding.level == Level::Ok), "{findings:#?}");
    assert!(names(&fixture.remote(), "probe/", None).is_empty());
}

/// Google's has no program to run here: a stand-in answers for it, with pages of three entries.
#[test]
fn google_does_every_operation() {
    let gcs = Gcs::start("archive", 3).unwrap();
    let account = gcs.service_account().unwrap();
    let open = |url: &str| open(url, &options(&gcs.base_url()), &[("GOOGLE_SERVICE_ACCOUNT_KEY", &account)]);
    every_operation(&open("gs://archive/some/prefix"));
    rivals(open("gs://archive/some/prefix"));
    let findings = probed(&open("gs://archive"));
    assert!(findings.iter().all(|finding| finding.level == Level::Ok), "{findings:#?}");
    let error = open("gs://no-such-bucket").create("a/b", Bytes::from_static(b"x")).unwrap_err();
    assert_eq!(error.fault, Fault::Refused, "{error}");
}

#[test]
fn where_nobody_listens_a_store_is_unavailable_within_seconds() {
    nobody_listens("s3://archive", &[("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret-key")]);
    nobody_listens(
        "az://archive",
        &[("AZURE_STORAGE_ACCOUNT_NAME", "account"), ("AZURE_STORAGE_ACCOUNT_KEY", "c2VjcmV0LWtleQ==")],
    );
}

#[test]
fn keys_of_a_shared_profile_are_used_and_read_again() {
    let fixture = Fixture::s3();
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".aws")).unwrap();
    let write = |secret: &str| {
        let text = format!(
            "[backup]\naws_access_key_id = {}\naws_secret_access_key = {secret}\nregion = {}\n",
            fixture.store.access_key().unwrap(),
            fixture.store.fact("REGION").unwrap()
        );
        std::fs::write(home.path().join(".aws/credentials"), text).unwrap();
    };
    write("wrong-secret-of-somebody");
    let variables = [("HOME", home.path().to_str().unwrap()), ("AWS_PROFILE", "backup")];
    let store = open("s3://archive", &options(fixture.store.endpoint().unwrap()), &variables);
    let error = store.list("", None).unwrap_err();
    assert_eq!(error.fault, Fault::Denied, "{error}");
    write(fixture.store.secret_key().unwrap());
    assert!(store.list("", None).unwrap().is_empty());
}

/// A bucket with Object Lock takes what the client sends, checksums and all; the probe tells what it sees of the lock, and an
/// account that may not delete is good enough.
#[test]
fn a_locked_bucket_and_an_account_that_cannot_delete_will_do() {
    if let Err(error) = program(&scripts(), "aws") {
        return skip(&format!("the command line of AWS cannot be had: {error}"));
    }
    let fixture = Fixture::s3();
    fixture.store.locked_bucket("locked", None).unwrap();
    let (key, secret) = ("writer", "writers-own-secret");
    fixture.store.account(key, secret).unwrap();
    let policy = r#"{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": ["writer"]},
        "Action": ["s3:PutObject", "s3:GetObject", "s3:ListBucket"], "Resource": ["arn:aws:s3:::locked", "arn:aws:s3:::locked/*"]}]}"#;
    fixture.store.policy("locked", policy).unwrap();
    let store = fixture.open_as("locked", "", key, secret);
    let findings = probed(&store);
    let warnings: Vec<_> = findings.iter().filter(|finding| finding.level != Level::Ok).collect();
    assert_eq!(warnings.len(), 1, "{findings:#?}");
    assert!(
        warnings[0].level == Level::Warning && warnings[0].what.contains("deleting is not allowed"),
        "{findings:#?}"
    );
    let left = names(&store, "probe/", None);
    assert!(left.len() == 2 && left.iter().all(|name| warnings[0].what.contains(name)), "{left:?}");
    assert_eq!(store.delete(&left[0]).unwrap_err().fault, Fault::Denied);
}

/// A signature of Azure may allow to create, and not to write. Then the store refuses a name that is taken for lack of rights, before
/// it looks at any condition; for a writer that is the same answer.
#[test]
fn a_signature_that_cannot_overwrite_will_do() {
    let Some(fixture) = Fixture::azure() else { return };
    let signed = |rights: &str| {
        let token = fixture.store.sas("archive", rights).unwrap();
        let account = fixture.store.access_key().unwrap();
        let variables = [("AZURE_STORAGE_ACCOUNT_NAME", account), ("AZURE_STORAGE_SAS_TOKEN", &token)];
        open("az://archive/some/prefix", &options(fixture.store.endpoint().unwrap()), &variables)
    };
    let writer = signed("rcl");
    assert!(probe::refuses_to_overwrite(&writer).unwrap());
    assert!(
        probe::refuses_to_overwrite(&writer).unwrap(),
        "the next start finds the object of the one before"
    );
    let findings = probed(&writer);
    let warnings: Vec<_> = findings.iter().filter(|finding| finding.level != Level::Ok).collect();
    assert!(warnings.len() == 1 && warnings[0].what.contains("deleting is not allowed"), "{findings:#?}");

    let reader = signed("rl");
    assert_eq!(reader.create("a/b", Bytes::from_static(b"x")).unwrap_err().fault, Fault::Denied);
    assert_eq!(names(&reader, "", None).len(), 3);
    assert_eq!(reader.delete("probe/conditions").unwrap_err().fault, Fault::Denied);
    let pruner = signed("rcld");
    pruner.delete("probe/conditions").unwrap();
    assert!(pruner.head("probe/conditions").unwrap_err().is_missing());
}
