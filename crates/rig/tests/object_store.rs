//! The stores that tests use keep what the archive relies on, as the client sees it that binlogd links: each real one, and
//! the stand-in for the one that cannot run here.

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3Builder, Checksum};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path as Name;
use object_store::{ClientOptions, Error, ObjectStore as _, ObjectStoreExt as _, PutMode, PutPayload};
use rig::gcs::Gcs;
use rig::object_store::{self as stores, ObjectStore};
use std::io::Write as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

type Client = Box<dyn object_store::ObjectStore>;

fn scripts() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scripts/stores")
}

/// Why a program cannot be had here; `None` for one that is there.
fn missing(program: &str) -> Option<String> {
    stores::program(&scripts(), program).err().map(|error| format!("{program} cannot be had: {error}"))
}

/// Says that a test is left out, past the harness, which keeps the output of tests that pass to itself.
fn skip(why: &str) {
    assert!(std::env::var_os("BINLOGD_NO_SKIPS").is_none(), "nothing may be skipped: {why}");
    let _ = writeln!(std::io::stderr(), "\n*** SKIPPED: {why} ***\n");
}

/// Runs what a client does to its end, in a minute at most.
fn block<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime
        .block_on(async { tokio::time::timeout(Duration::from_secs(60), work).await.expect("in a minute") })
}

/// For 127.0.0.1 without TLS.
fn options() -> ClientOptions {
    // The client asks for one however little it needs it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    ClientOptions::new().with_allow_http(true)
}

fn s3(store: &ObjectStore, bucket: &str) -> Client {
    let (access, secret) = (store.access_key().unwrap(), store.secret_key().unwrap());
    s3_as(store, bucket, access, secret)
}

fn s3_as(store: &ObjectStore, bucket: &str, access_key: &str, secret_key: &str) -> Client {
    let builder = AmazonS3Builder::new().with_endpoint(store.endpoint().unwrap()).with_bucket_name(bucket);
    let builder = builder.with_access_key_id(access_key).with_secret_access_key(secret_key);
    let builder = builder.with_region(store.fact("REGION").unwrap()).with_client_options(options());
    Box::new(builder.with_checksum_algorithm(Checksum::SHA256).build().unwrap())
}

fn azure(store: &ObjectStore, container: &str) -> Client {
    let builder = MicrosoftAzureBuilder::new().with_endpoint(store.endpoint().unwrap().to_owned());
    let builder = builder.with_account(store.access_key().unwrap()).with_container_name(container);
    let builder = builder.with_access_key(store.secret_key().unwrap()).with_client_options(options());
    Box::new(builder.build().unwrap())
}

fn gcs(store: &Gcs, bucket: &str) -> Client {
    let account = store.service_account().unwrap();
    let builder = GoogleCloudStorageBuilder::new().with_service_account_key(account).with_bucket_name(bucket);
    Box::new(builder.with_client_options(options()).build().unwrap())
}

async fn create(client: &Client, name: &Name, data: &str) -> Result<(), Error> {
    let put = client.put_opts(name, PutPayload::from(data.to_owned()), PutMode::Create.into());
    put.await.map(|_| ())
}

async fn read(client: &Client, name: &Name) -> Bytes {
    client.get(name).await.unwrap().bytes().await.unwrap()
}

/// What every store must keep.
async fn keeps_its_word(client: &Client) {
    let name = Name::from("a/f 1+ä&.zst");
    creates_once(client, &name).await;
    replaces_what_is_known(client).await;

    // What is there, and parts of it.
    let head = client.head(&name).await.unwrap();
    assert_eq!((head.size, head.location.clone()), (5, name.clone()));
    assert_eq!(client.get_range(&name, 1..3).await.unwrap(), "ir");
    assert_eq!(client.get_ranges(&name, &[0..1, 4..5]).await.unwrap(), ["f", "t"]);
    let missing = client.get(&Name::from("none")).await.unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing:?}");

    lists(client).await;
    client.delete(&name).await.unwrap();
    assert!(matches!(client.head(&name).await.unwrap_err(), Error::NotFound { .. }));
}

/// An object is created once, and who lost is told so.
async fn creates_once(client: &Client, name: &Name) {
    create(client, name, "first").await.unwrap();
    let again = create(client, name, "second").await.unwrap_err();
    assert!(matches!(again, Error::AlreadyExists { .. }), "{again:?}");
    assert_eq!(read(client, name).await, "first");

    // By one of many who try at the same time.
    for round in 0..5 {
        let name = Name::from(format!("race/{round}"));
        let tries = (0..8).map(|writer| {
            let (client, name) = (&client, &name);
            async move { (writer, create(client, name, &format!("writer {writer}")).await) }
        });
        let mut winners = Vec::new();
        for (writer, outcome) in join_all(tries).await {
            match outcome {
                Ok(()) => winners.push(writer),
                Err(error) => assert!(matches!(error, Error::AlreadyExists { .. }), "{error:?}"),
            }
        }
        assert_eq!(winners.len(), 1, "round {round}: {winners:?} were told that they created it");
        assert_eq!(read(client, &name).await, format!("writer {}", winners[0]));
    }
}

async fn replaces_what_is_known(client: &Client) {
    let name = Name::from("b");
    let first = client.put(&name, "one".into()).await.unwrap();
    let update = || PutMode::Update(first.clone().into()).into();
    client.put_opts(&name, "two".into(), update()).await.unwrap();
    let stale = client.put_opts(&name, "three".into(), update()).await.unwrap_err();
    assert!(matches!(stale, Error::Precondition { .. }), "{stale:?}");
    assert_eq!(read(client, &name).await, "two");
}

/// In the order of names, and from a name on.
async fn lists(client: &Client) {
    for name in ["list/deeper/1", "listed"] {
        client.put(&Name::from(name), "x".into()).await.unwrap();
    }
    for number in 0..10 {
        client.put(&Name::from(format!("list/{number}")), "x".into()).await.unwrap();
    }
    let prefix = Name::from("list");
    let names = |found: Vec<object_store::ObjectMeta>| {
        found.into_iter().map(|object| object.location.to_string()).collect::<Vec<_>>()
    };
    let mut expected: Vec<_> = (0..10).map(|number| format!("list/{number}")).collect();
    expected.push("list/deeper/1".to_owned());
    assert_eq!(names(client.list(Some(&prefix)).try_collect().await.unwrap()), expected);
    let later = client.list_with_offset(Some(&prefix), &Name::from("list/6")).try_collect().await.unwrap();
    assert_eq!(names(later), expected[7..]);
    let level = client.list_with_delimiter(Some(&prefix)).await.unwrap();
    assert_eq!((level.objects.len(), level.common_prefixes), (10, vec![Name::from("list/deeper")]));
}

/// On pages of three, so that lists have more than one.
#[test]
fn the_stand_in_for_google_keeps_its_word() {
    let store = Gcs::start("the-bucket", 3).unwrap();
    block(keeps_its_word(&gcs(&store, "the-bucket")));
    assert_eq!(store.names().iter().filter(|name| name.starts_with("race/")).count(), 5);
    let pages = store.requests().iter().filter(|request| request.contains("continuation-token")).count();
    // Eleven names, four, and ten with a folder.
    assert_eq!(pages, 3 + 1 + 3, "{:?}", store.requests());
}

#[test]
fn the_stand_in_for_google_refuses_strangers_and_what_it_does_not_know() {
    let store = Gcs::start("the-bucket", 1000).unwrap();
    let client = gcs(&store, "the-bucket");
    let parts = block(client.put_multipart(&Name::from("parts"))).map(|_| ()).unwrap_err();
    assert!(parts.to_string().contains("501"), "{parts}");
    let copy = block(client.copy(&Name::from("a"), &Name::from("b"))).unwrap_err();
    assert!(copy.to_string().contains("501"), "{copy}");
    let elsewhere = block(gcs(&store, "another").put(&Name::from("a"), "x".into())).unwrap_err();
    assert!(elsewhere.to_string().contains("NoSuchBucket"), "{elsewhere}");

    let mut account: serde_json::Value = serde_json::from_str(&store.service_account().unwrap()).unwrap();
    account["disable_oauth"] = true.into();
    let builder = GoogleCloudStorageBuilder::new().with_service_account_key(account.to_string());
    let stranger = builder.with_bucket_name("the-bucket").with_client_options(options()).build().unwrap();
    let refused = block(stranger.put(&Name::from("a"), "x".into())).unwrap_err();
    assert!(matches!(refused, Error::Unauthenticated { .. }), "{refused:?}");
    assert!(store.names().is_empty());

    block(client.put(&Name::from("a"), "good".into())).unwrap();
    assert!(store.damage("a", b"bad!") && !store.damage("b", b"bad!"));
    assert_eq!(block(read(&client, &Name::from("a"))), "bad!");
}

#[test]
fn versitygw_keeps_its_word_and_its_objects() {
    let dir = TempDir::new().unwrap();
    let mut store = ObjectStore::versitygw(&scripts(), dir.path().join("store")).unwrap();
    store.bucket("plain").unwrap();
    block(keeps_its_word(&s3(&store, "plain")));
    assert_eq!(std::fs::read(store.file("plain", "list/7")).unwrap(), b"x");

    let endpoint = store.endpoint().unwrap().to_owned();
    store.kill().unwrap();
    store.restart().unwrap();
    assert_eq!(store.endpoint().unwrap(), endpoint);
    let (client, name) = (s3(&store, "plain"), Name::from("b"));
    assert_eq!(block(read(&client, &name)), "two");

    store.pause().unwrap();
    let waits = async { tokio::time::timeout(Duration::from_millis(200), client.head(&name)).await };
    assert!(block(waits).is_err(), "a store that is stopped answers nothing");
    store.go_on().unwrap();
    block(client.head(&name)).unwrap();
}

/// Or each test that drops its folder first would leave one behind.
#[test]
fn a_store_ends_with_its_value_even_after_its_folder() {
    let dir = TempDir::new().unwrap();
    let store = ObjectStore::versitygw(&scripts(), dir.path().join("store")).unwrap();
    let port = store.fact("PORT").unwrap().to_owned();
    let connect = || TcpStream::connect(format!("127.0.0.1:{port}"));
    connect().unwrap();
    drop(dir);
    drop(store);
    let deadline = Instant::now() + Duration::from_secs(30);
    while connect().is_ok() {
        assert!(Instant::now() < deadline, "it still listens");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn azurite_keeps_its_word_and_its_objects() {
    if let Some(why) = missing("azurite") {
        return skip(&why);
    }
    let dir = TempDir::new().unwrap();
    let mut store = ObjectStore::azurite(&scripts(), dir.path().join("store")).unwrap();
    store.bucket("plain").unwrap();
    block(keeps_its_word(&azure(&store, "plain")));
    store.stop().unwrap();
    store.restart().unwrap();
    assert_eq!(block(read(&azure(&store, "plain"), &Name::from("b"))), "two");
}

#[test]
fn versitygw_locks_versions() {
    if let Some(why) = missing("aws") {
        return skip(&why);
    }
    let dir = TempDir::new().unwrap();
    let store = ObjectStore::versitygw(&scripts(), dir.path().join("store")).unwrap();
    store.locked_bucket("locked", Some(1)).unwrap();
    let (client, name) = (s3(&store, "locked"), Name::from("a"));
    block(create(&client, &name, "kept")).unwrap();
    let query = ["--query", "Versions[0].VersionId", "--output", "text"];
    let version = store.aws(&[&["s3api", "list-object-versions", "--bucket", "locked"], &query[..]].concat());
    let version = version.unwrap().trim().to_owned();
    let delete = ["s3api", "delete-object", "--bucket", "locked", "--key", "a", "--version-id", &version];
    for more in [&[][..], &["--bypass-governance-retention"]] {
        let refused = store.aws(&[&delete[..], more].concat()).unwrap_err().to_string();
        assert!(refused.contains("object protected by object lock"), "{refused}");
    }
    assert_eq!(block(read(&client, &name)), "kept");
}

#[test]
fn versitygw_holds_accounts_to_their_policies() {
    if let Some(why) = missing("aws") {
        return skip(&why);
    }
    let dir = TempDir::new().unwrap();
    let store = ObjectStore::versitygw(&scripts(), dir.path().join("store")).unwrap();
    store.bucket("policed").unwrap();
    store.account("writer", "writer-secret").unwrap();
    let (writer, name) = (s3_as(&store, "policed", "writer", "writer-secret"), Name::from("a"));
    let refused = block(create(&writer, &name, "early")).unwrap_err();
    assert!(matches!(refused, Error::PermissionDenied { .. }), "{refused:?}");
    let policy = r#"{"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": {"AWS": ["writer"]}, "Action": ["s3:PutObject", "s3:GetObject"],
            "Resource": ["arn:aws:s3:::policed/*"]},
        {"Effect": "Allow", "Principal": {"AWS": ["writer"]}, "Action": ["s3:ListBucket"],
            "Resource": ["arn:aws:s3:::policed"]}]}"#;
    store.policy("policed", policy).unwrap();
    block(create(&writer, &name, "kept")).unwrap();
    assert_eq!(block(writer.list(None).collect::<Vec<_>>()).len(), 1);
    // The client asks for many deletions at once, and is refused each for itself.
    let refused = block(writer.delete(&name)).unwrap_err();
    assert!(refused.to_string().contains("AccessDenied"), "{refused:?}");
    assert_eq!(block(read(&writer, &name)), "kept");
}

#[test]
fn stock_tools_run() {
    let tools = [
        ("age", "1.1"),
        ("age-keygen", "1.1"),
        ("aws", "aws-cli/"),
        ("rclone", "rclone v1."),
        ("zstd", "v1."),
    ];
    for (name, version) in tools {
        if let Some(why) = missing(name).filter(|_| ["aws", "rclone"].contains(&name)) {
            skip(&why);
            continue;
        }
        let output = stores::tool(&scripts(), name).unwrap().arg("--version").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains(version), "{name}: {}: {said}", output.status);
    }
}
