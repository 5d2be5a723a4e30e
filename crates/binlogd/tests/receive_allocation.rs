//! Receiving allocates nothing per event, per batch or per acknowledgement. A test binary of its own, because it counts
//! allocations with the global allocator; only those of the receiving thread count.

use binlog::storage::posix::PosixStorage;
use binlog::timeline::{Reason, Timeline};
use config::FsyncMode;
use receive::attempt::copy::HeldCopy;
use receive::session::cursor::Cursor;
use receive::session::receive::receive;
use receive::session::{Outside, ReceiveOptions, Sender};
use scripted_source::{Script, ScriptedSource, SourceLog};
use source::clock::SystemClock;
use source::identify::SourceIdentity;
use source::link::End;
use source::negotiate::{Introduction, checksum_outside_files, dump_request};
use source::stop::StopSignal;
use status::SourceMonitor;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use wire::{ConnectOptions, Connection, TlsMode, TlsOptions};

/// Longest wait for one acknowledgement: the disk may be slow and the machine busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// What may differ between a short and a long stream without growing with it: how many events one read brings decides
/// how often the list of a batch's pieces doubles, at most to what a whole receive buffer of the smallest events needs.
const ALLOCATIONS_SLACK: u64 = 24;

const SERVER_ID: u32 = 77;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; counting touches only a const-initialised thread local,
// which does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How the transactions reach the receiver.
#[derive(Clone, Copy, Debug)]
enum Load {
    /// Each one alone: the next is sent when it has been acknowledged. Every one is a batch of its own.
    LockStep,
    /// All are there when the receiver comes: as many in a batch as one read brings.
    Bulk,
}

/// What one session did.
#[derive(Debug)]
struct Measured {
    allocations: u64,
    transactions: u64,
    acknowledgements: u64,
}

/// A source, the receiver's connection to it, and an empty copy.
struct Setup {
    source: ScriptedSource,
    copy: HeldCopy,
    cursor: Cursor,
    connection: Connection,
    request: Vec<u8>,
}

impl Setup {
    fn new(dir: &Path, log: SourceLog) -> Setup {
        let source = ScriptedSource::start(Script::new(log)).unwrap();
        let mut connection = Connection::connect(&ConnectOptions {
            host: "127.0.0.1".to_owned(),
            port: source.port(),
            user: "any".to_owned(),
            password: "".into(),
            connect_timeout: PATIENCE,
            tls: TlsOptions { mode: TlsMode::Disabled, ..TlsOptions::default() },
        })
        .unwrap();
        let identity = SourceIdentity::ask(&mut connection).unwrap();
        let (mut copy, _) =
            HeldCopy::open(Arc::new(PosixStorage), Arc::new(SystemClock), dir, "scripted").unwrap();
        copy.begin_timeline(Timeline {
            began_at: String::new(),
            reason: Reason::First,
            server_uuid: identity.uuid.clone(),
            server_version: identity.version.clone(),
            server_kind: identity.kind,
            first_file: "mysql-bin.000001".to_owned(),
            gtid_before: String::new(),
            source_lacks: String::new(),
            source_shares: String::new(),
            missing: String::new(),
            unreadable: String::new(),
            previous: String::new(),
            purged: Vec::new(),
        })
        .unwrap();
        let introduction = Introduction {
            replica: copy.identity(),
            server_id: SERVER_ID,
            heartbeat_period: PATIENCE,
            semi_sync: true,
        };
        introduction.make(&mut connection, &identity).unwrap();
        let (request, requested) = dump_request(SERVER_ID, "mysql-bin.000001", 4, true);
        let cursor = Cursor::new(None, requested, None, checksum_outside_files(&identity));
        Setup { source, copy, cursor, connection, request }
    }
}

/// Receives `transactions` of them, and counts what the receiving thread allocates from the first byte to the last.
fn session(load: Load, fsync_mode: FsyncMode, transactions: usize) -> Measured {
    let dir = tempfile::tempdir().unwrap();
    let mut log = SourceLog::default();
    if matches!(load, Load::Bulk) {
        for size in 0..transactions {
            log.group(1, size % 300);
        }
    }
    let Setup { source, mut copy, cursor, connection, request } = Setup::new(dir.path(), log);
    let stream = connection.start_dump(&request).unwrap();
    let monitor = SourceMonitor::new("scripted");
    monitor.set_fsync_mode(fsync_mode);
    let stop = StopSignal::new();
    let options = ReceiveOptions {
        clock: Arc::new(SystemClock),
        fsync_mode,
        fsync_interval: Duration::from_millis(5),
        net_read_timeout: PATIENCE,
        published: Arc::default(),
        sender: Sender::Source { forks: None, replicas: None, is_ended: false },
    };
    let allocations = std::thread::scope(|scope| {
        scope.spawn(|| {
            if matches!(load, Load::LockStep) {
                for size in 0..transactions {
                    let end = append_one(&source, size % 300);
                    assert!(
                        source.wait_for_acknowledgement(&end, PATIENCE),
                        "transaction {size} was not acknowledged"
                    );
                }
            }
            let end = source.log(SourceLog::end);
            assert!(source.wait_for_acknowledgement(&end, PATIENCE), "{end:?} was not acknowledged");
            stop.request();
        });
        let before = ALLOCATIONS.get();
        let timeline = copy.timeline_mut().unwrap();
        let mut on_stream = |_| {};
        let mut link = |_: &End<'_>| panic!("one file follows from the other");
        let mut outside = Outside { on_stream: &mut on_stream, link: &mut link };
        receive(stream, cursor, timeline, &options, &monitor, &stop, &mut outside).unwrap();
        ALLOCATIONS.get() - before
    });
    Measured {
        allocations,
        transactions: monitor.counters.transactions.load(Relaxed),
        acknowledgements: monitor.counters.acknowledgements.load(Relaxed),
    }
}

fn append_one(source: &ScriptedSource, payload_len: usize) -> scripted_source::Place {
    source.append(|log| {
        log.group(1, payload_len);
        log.end()
    })
}

#[track_caller]
fn a_longer_stream_allocates_no_more(load: Load, fsync_mode: FsyncMode, transactions: usize) {
    let short = session(load, fsync_mode, transactions);
    let long = session(load, fsync_mode, 2 * transactions);
    println!("{load:?}, {fsync_mode:?}: {short:?}, {long:?}");
    assert_eq!(short.transactions, transactions as u64);
    assert_eq!(long.transactions, 2 * transactions as u64);
    if matches!(load, Load::LockStep) {
        assert_eq!(long.acknowledgements, 2 * transactions as u64);
    }
    let grown = long.allocations.saturating_sub(short.allocations);
    assert!(grown <= ALLOCATIONS_SLACK, "{transactions} more transactions cost {grown} more allocations");
}

#[test]
fn a_transaction_at_a_time_synced_first() {
    a_longer_stream_allocates_no_more(Load::LockStep, FsyncMode::SyncThenAcknowledge, 400);
}

#[test]
fn a_transaction_at_a_time_synced_later() {
    a_longer_stream_allocates_no_more(Load::LockStep, FsyncMode::WriteThenAcknowledge, 2_000);
}

#[test]
fn thousands_of_events_in_each_batch() {
    a_longer_stream_allocates_no_more(Load::Bulk, FsyncMode::SyncThenAcknowledge, 10_000);
}

#[test]
fn the_counter_counts() {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(Box::new(1u64)));
    assert_eq!(ALLOCATIONS.get() - before, 1);
}
