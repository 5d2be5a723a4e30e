use super::*;
use crate::chain::backup::{BackupPoint, Stream, Tool};
use crate::plain_stream::PlainStream;
use crate::store::Store;
use crate::testing::{Faults, Memory, Network};
use crate::upkeep::prune::{Rules, prune};
use crate::upkeep::scrub::{Depth, scrub};
use crate::writer::upload::Permits;
use codec::ServerKind;
use jiff::SignedDuration;
use std::sync::atomic::{AtomicU64, Ordering};

const SOURCE: &str = "shop";

fn uploader(store: &Arc<Memory>) -> Uploader {
    let permits = Arc::new(Permits::new(2));
    Uploader { store: store.clone(), permits, level: 1, recipients: None, stop: Arc::default() }
}

fn record(id: &str) -> BackupRecord {
    BackupRecord {
        id: id.to_owned(),
        tool: Tool::Mysqldump,
        tool_version: String::new(),
        stream: Stream::Sql,
        server_kind: ServerKind::MySql,
        server_version: "9.7.0".into(),
        server_uuid: "u".into(),
        started: Timestamp::UNIX_EPOCH,
        finished: Timestamp::UNIX_EPOCH,
        point: BackupPoint::default(),
        remarks: Vec::new(),
    }
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at.wrapping_mul(at) >> 9) as u8).collect()
}

fn put(uploader: &Uploader, id: &str, plain: &[u8]) -> Uploaded {
    upload(uploader, SOURCE, id, &mut &*plain, &|_| (), &|_| ()).unwrap()
}

fn reader(store: &Arc<Memory>) -> Reader {
    Reader { store: store.clone(), opener: Arc::new(Opener::new(Identities::new())) }
}

fn whole(store: &Arc<Memory>, backup: &ArchivedBackup) -> io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    PlainStream::open(&reader(store), &backup.file)?.read_to_end(&mut plain)?;
    Ok(plain)
}

fn writer(id: &str) -> Writer {
    Writer { id: id.into(), epoch: 0, host: "db1".into(), version: "0".into() }
}

fn committed(store: &Arc<Memory>, id: &str, uploaded: &Uploaded) -> Result<Arc<ArchivedBackup>, StreamError> {
    let uploader = uploader(store);
    let mut chain = Chain::open(&**store, SOURCE).unwrap();
    commit(&uploader, &mut chain, &writer(id), (record(id), uploaded), Timestamp::UNIX_EPOCH, &|_| ())
}

fn names_of(store: &Memory, id: &str) -> Vec<String> {
    let listed = store.list(&names::file(SOURCE, names::BACKUPS, id), None).unwrap();
    listed.into_iter().map(|meta| meta.name).collect()
}

#[test]
fn a_stream_comes_back_as_it_was_and_is_verified() {
    let store = Arc::new(Memory::default());
    for len in [1, PIECE_BYTES, PIECE_BYTES + 1, THREADS * PIECE_BYTES + 7] {
        let plain = bytes(len);
        let id = format!("b{len}");
        let uploaded = put(&uploader(&store), &id, &plain);
        assert_eq!((uploaded.bytes(), uploaded.segments.len()), (len as u64, len.div_ceil(PIECE_BYTES)));
        let backup = committed(&store, &id, &uploaded).unwrap();
        assert!(whole(&store, &backup).unwrap() == plain, "{len}");
        assert_eq!(backup.file.end(), len as u64);
    }
    let none = upload(&uploader(&store), SOURCE, "none", &mut &b""[..], &|_| (), &|_| ());
    assert!(matches!(none, Err(StreamError::Empty)));
    let report = scrub(&reader(&store), SOURCE, Depth::All, true, &|_| ()).unwrap();
    assert_eq!((report.findings, report.backups, report.files, report.unnamed), (vec![], 4, 0, 0));
    assert_eq!(report.objects, 1 + 1 + 2 + THREADS + 1);

    // One piece is changed: whoever verifies names it, and whoever reads is not given a byte of it.
    let backup = Chain::open(&*store, SOURCE).unwrap().history().backups["b1"].clone();
    let object = names_of(&store, "b1")
        .into_iter()
        .find(|name| name.ends_with(".zst") && !name.contains("segments"))
        .unwrap();
    let mut harmed = store.get(&object).unwrap().to_vec();
    harmed[9] ^= 1;
    store.delete(&object).unwrap();
    let _ = store.create(&object, harmed.into()).unwrap();
    let report = scrub(&reader(&store), SOURCE, Depth::All, true, &|_| ()).unwrap();
    assert!(
        report.findings.len() == 1 && report.findings[0].to_string().contains("backups/b1"),
        "{report:?}"
    );
    let error = whole(&store, &backup).unwrap_err().to_string();
    assert!(error.contains(&object), "{error}");
}

/// A stream that fails midway, and one that was never committed: nothing is listed, and what is left of them goes when it is old enough.
#[test]
fn what_was_not_committed_is_not_there_and_goes() {
    let store = Arc::new(Memory::default());
    let uploaded = put(&uploader(&store), "left", &bytes(10));
    let broken = &mut io::Read::chain(&b"abc"[..], Broken);
    let error = upload(&uploader(&store), SOURCE, "broken", broken, &|_| (), &|_| ()).unwrap_err();
    assert!(error.to_string().contains("the pipe"), "{error}");
    let mut chain = Chain::open(&*store, SOURCE).unwrap();
    assert!(chain.history().backups.is_empty());
    let kept = committed(&store, "kept", &put(&uploader(&store), "kept", &bytes(20))).unwrap();
    let rules = Rules::default();
    let at = |hours| Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours);
    assert_eq!(
        prune(&*store, &mut chain, &writer("p"), &rules, at(1)).unwrap().objects,
        0,
        "it may still be uploaded"
    );
    assert_eq!(prune(&*store, &mut chain, &writer("p"), &rules, at(24 * 8)).unwrap().objects, 1);
    assert_eq!(names_of(&store, "left"), [""; 0]);
    // Who uploaded so slowly is told so, whatever else was deleted since.
    assert!(chain.history().given_up.contains("left"));
    let error = committed(&store, "left", &uploaded).unwrap_err();
    assert!(matches!(error, StreamError::Lacks(_)), "{error}");
    for segment in &uploaded.segments {
        let _ = store.create(&segment.object, bytes::Bytes::from_static(b"?")).unwrap();
    }
    assert!(whole(&store, &kept).is_ok());
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the pipe"))
    }
}

/// A commit whose objects were to be deleted is refused also where the last such commit says nothing of them.
#[test]
fn an_upload_that_was_given_up_is_never_committed() {
    let store = Arc::new(Memory::default());
    let uploaded = put(&uploader(&store), "slow", &bytes(10));
    let mut chain = Chain::open(&*store, SOURCE).unwrap();
    for object in [uploaded.segments[0].object.clone(), "shop/0001-a/b.000001/x".to_owned()] {
        let doomed = vec![Change::Doomed { objects: vec![object] }];
        assert_eq!(
            chain.append(&*store, &writer("p"), Timestamp::UNIX_EPOCH, doomed).unwrap(),
            Appended::Done
        );
    }
    let error = committed(&store, "slow", &uploaded).unwrap_err().to_string();
    assert!(error.contains("were to be deleted"), "{error}");
    assert!(Chain::open(&*store, SOURCE).unwrap().history().backups.is_empty());
}

/// Others commit meanwhile, and the store loses the answer to the commit.
#[test]
fn a_backup_is_committed_once_whoever_else_commits() {
    let store = Arc::new(Memory::default());
    let (one, other) = (put(&uploader(&store), "one", &bytes(10)), put(&uploader(&store), "two", &bytes(20)));
    let uploader = uploader(&store);
    let mut stale = Chain::open(&*store, SOURCE).unwrap();
    let _ = committed(&store, "one", &one).unwrap();
    let done =
        commit(&uploader, &mut stale, &writer("w"), (record("two"), &other), Timestamp::UNIX_EPOCH, &|_| ());
    assert_eq!(done.unwrap().record.id, "two");
    let seq = stale.history().seq;
    let again =
        commit(&uploader, &mut stale, &writer("w"), (record("two"), &other), Timestamp::UNIX_EPOCH, &|_| ());
    assert_eq!((again.unwrap().record.id.as_str(), stale.history().seq), ("two", seq));
    assert_eq!(Chain::open(&*store, SOURCE).unwrap().history().backups.len(), 2);
}

/// Several threads upload, and the network fails them: what is said to be there is there, in order; and who gives up gives up.
#[test]
fn a_stream_over_a_network_that_fails_is_whole_or_an_error() {
    let drawn = getrandom::u64().unwrap();
    let seed = std::env::var("STREAM_SEED").map_or(drawn, |seed| seed.parse().unwrap());
    let mut random = binlog::testing::Random::new(seed);
    println!("STREAM_SEED={seed}");
    let plain = bytes(2 * THREADS * PIECE_BYTES + 3);
    let mut whole_ones = 0;
    for round in 0..6 {
        let memory = Arc::new(Memory::default());
        // From one fault in three operations, which six tries seldom outlast, to none.
        let faults = Faults::each([3, 8, 0][round % 3]);
        let network = Arc::new(Network::new(memory.clone(), random.next(), faults));
        let over = Uploader { store: network.clone(), ..uploader(&memory) };
        let told = AtomicU64::new(0);
        let progress = |bytes| {
            let _ = told.fetch_add(bytes, Ordering::Relaxed);
        };
        let uploaded = upload(&over, SOURCE, "b", &mut &*plain, &|_| (), &progress);
        network.calm();
        match uploaded {
            Ok(uploaded) => {
                assert_eq!((uploaded.bytes(), told.into_inner()), (plain.len() as u64, plain.len() as u64));
                let backup = committed(&memory, "b", &uploaded).unwrap();
                assert!(whole(&memory, &backup).unwrap() == plain, "round {round}");
                whole_ones += 1;
            }
            Err(StreamError::Upload(_)) if round % 3 < 2 => {}
            Err(other) => panic!("round {round}: {other}"),
        }
    }
    assert!(whole_ones >= 2);
}
