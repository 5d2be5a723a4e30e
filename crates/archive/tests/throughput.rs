//! How fast segments are made and read back on one core. Run by hand, built for release:
//!
//! ```text
//! cargo test --release -p binlogd-archive --test throughput -- --ignored --nocapture
//! ```
//!
//! The time is that of the thread on a core, so that other work on the machine does not count.

use age::secrecy::ExposeSecret as _;
use archive::chain::commit::Segment;
use archive::frames::{self, Packer};
use archive::keys::{Identities, Recipients};
use archive::names;
use archive::segment::runs::Walker;
use archive::segment::{Opener, SEGMENT_BYTES_MAX, Sealer};
use codec::event::{BINLOG_MAGIC, EventType, HEADER_LEN};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Rounds of each measurement.
const ROUNDS: usize = 7;

/// Segments of 8 MiB in each round: Linux counts the time on a core by ticks of up to 4 ms.
const SEGMENTS: usize = 8;

/// Seed of all that is random here.
const SEED: u64 = 0x5eed_0000_0007;

/// How long this thread was on a core.
fn time_on_core() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux says so");
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// How fast `work` goes, which does one segment: half of its rounds are faster, and the fastest.
struct Speed {
    median: f64,
    best: f64,
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // MB are 10^6 bytes.
        write!(f, "{:4.0} MB/s (best {:4.0})", self.median, self.best)
    }
}

fn speed<T>(mut work: impl FnMut() -> T) -> Speed {
    let mut round = |_| {
        let begin = time_on_core();
        for _ in 0..SEGMENTS {
            drop(work());
        }
        let time = time_on_core() - begin;
        (SEGMENTS * SEGMENT_BYTES_MAX) as f64 / 1e6 / time.as_secs_f64()
    };
    let mut rounds: Vec<f64> = (0..ROUNDS).map(&mut round).collect();
    rounds.sort_by(f64::total_cmp);
    Speed { median: rounds[ROUNDS / 2], best: rounds[ROUNDS - 1] }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }
}

/// Events of one file as a source writes them, with checksums that are none.
struct Source {
    random: Random,
    words: Vec<String>,
    bytes: Vec<u8>,
    second: u32,
    id: u64,
}

impl Source {
    fn new() -> Source {
        let mut random = Random(SEED);
        let word = |random: &mut Random| -> String {
            let len = 2 + random.below(8);
            (0..len).map(|_| char::from(b"etaoinshrdlucmfwypvbgk"[random.below(22) as usize])).collect()
        };
        let words = (0..3000).map(|_| word(&mut random)).collect();
        Source { random, words, bytes: BINLOG_MAGIC.to_vec(), second: 1_790_000_000, id: 1 << 20 }
    }

    fn event(&mut self, event_type: EventType, body: &[u8]) {
        let len = HEADER_LEN + body.len() + 4;
        self.bytes.extend(self.second.to_le_bytes());
        self.bytes.push(event_type.0);
        self.bytes.extend(1_u32.to_le_bytes());
        self.bytes.extend(u32::try_from(len).unwrap().to_le_bytes());
        let end = (self.bytes.len() + len) as u32;
        self.bytes.extend(end.to_le_bytes());
        self.bytes.extend([0, 0]);
        self.bytes.extend_from_slice(body);
        let checksum = self.random.next() as u32;
        self.bytes.extend(checksum.to_le_bytes());
    }

    fn gtid(&mut self) {
        self.second += u32::from(self.random.below(50) == 0);
        self.id += 1;
        let mut body = b"\x01\x3e\x11\xfa\x47\x71\xca\x11\xe1\x9e\x33\xc8\x0a\xa9\x42\x95\x62".to_vec();
        body.extend(self.id.to_le_bytes());
        body.push(2);
        body.extend((self.id - 1).to_le_bytes());
        body.extend(self.id.to_le_bytes());
        let micros = u64::from(self.second) * 1_000_000 + self.random.below(1_000_000);
        body.extend(&micros.to_le_bytes()[..7]);
        body.extend([0xfc, 0x03, 0x04, 0x17, 0x38, 0x01, 0x00]);
        self.event(EventType::GTID, &body);
    }

    /// A transaction of some rows with numbers, dates, a name and a sentence.
    fn transaction(&mut self) {
        self.gtid();
        self.event(EventType::QUERY, b"\x08\0\0\0\0\0\0\0\x04\0\0\x1d\0\0\0\0\0\0\x01\x20\0\xa0shop\0BEGIN");
        self.event(EventType::TABLE_MAP, b"\x7b\0\0\0\0\0\x01\0\x04shop\0\x06orders\0\x06\x08\x03\x12\x0f\xfe\x0f\x05\0\0\x04\0\xf7\x01\0\x10\x3c");
        let mut rows = b"\x7b\0\0\0\0\0\x01\0\x02\0\x06\xff".to_vec();
        for _ in 0..1 + self.random.below(6) {
            rows.push(0);
            self.id += 1;
            rows.extend(self.id.to_le_bytes());
            rows.extend((self.random.below(200_000) as u32).to_le_bytes());
            rows.extend(&(0x99b0_0000_0000 + self.random.below(1 << 24)).to_be_bytes()[3..]);
            rows.extend(b"\x04paid");
            let name = self.words[self.random.below(3000) as usize].clone();
            rows.extend(format!("{name}@example.com").bytes());
            for _ in 0..4 + self.random.below(40) {
                // Some words are frequent, as in every language.
                let word = (self.random.below(3000) * self.random.below(3000) / 3000) as usize;
                rows.extend(self.words[word].bytes());
                rows.push(b' ');
            }
        }
        self.event(EventType::WRITE_ROWS, &rows);
        let xid = self.id.to_le_bytes();
        self.event(EventType::XID, &xid);
    }

    /// A transaction that the source has compressed.
    fn payload(&mut self) {
        self.gtid();
        let len = 200 + self.random.below(3000);
        let body: Vec<u8> = (0..len).map(|_| self.random.next() as u8).collect();
        self.event(EventType::TRANSACTION_PAYLOAD, &body);
    }

    fn segment(mut self, mut write: impl FnMut(&mut Source)) -> Vec<u8> {
        while self.bytes.len() < SEGMENT_BYTES_MAX {
            write(&mut self);
        }
        self.bytes.truncate(SEGMENT_BYTES_MAX);
        self.bytes
    }
}

fn noise() -> Vec<u8> {
    let mut random = Random(SEED);
    (0..SEGMENT_BYTES_MAX / 8).flat_map(|_| random.next().to_le_bytes()).collect()
}

#[test]
#[ignore = "measures; run by hand, built for release"]
fn segments_on_one_core() {
    if cfg!(debug_assertions) {
        println!("not built for release: these numbers say nothing");
    }
    let identity = age::x25519::Identity::generate();
    let mut recipients = Recipients::new();
    recipients.add(&identity.to_public().to_string(), "test").unwrap();
    let recipients = Arc::new(recipients);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, identity.to_string().expose_secret()).unwrap();
    let mut identities = Identities::new();
    identities.add_file(&path, &mut |_| None).unwrap();
    let opener = Opener::new(identities);

    let rows = Source::new().segment(Source::transaction);
    println!("sha256 {}", speed(|| names::sha256(&rows)));
    println!("walk   {}", speed(|| Walker::new(0).piece(&rows)));
    let mut packer = Packer::new(1).unwrap();
    let mut packed = Vec::with_capacity(2 * SEGMENT_BYTES_MAX);
    println!("pack   {}", speed(|| packer.pack(&rows, &[], &mut packed).unwrap()));
    println!("unpack {}", speed(|| frames::unpack(&packed, rows.len()).unwrap()));
    for (what, plain) in
        [("rows", rows.clone()), ("payloads", Source::new().segment(Source::payload)), ("noise", noise())]
    {
        let ranges: Vec<Range<usize>> = Walker::new(0).piece(&plain);
        for level in [1, 3, 6] {
            for recipients in [None, Some(Arc::clone(&recipients))] {
                let encrypted = if recipients.is_some() { "age" } else { "   " };
                let mut sealer = Sealer::new(level, recipients).unwrap();
                // The first takes memory from the system.
                let sealed = sealer.seal(&plain, &ranges).unwrap();
                let seal = speed(|| sealer.seal(&plain, &ranges).unwrap());
                let segment = Segment {
                    from: 0,
                    to: plain.len() as u64,
                    sha256: sealed.sha256.clone(),
                    object: format!("object.zst{}", if sealed.keys.is_empty() { "" } else { ".age" }),
                    stored: sealed.bytes.len() as u64,
                    stored_sha256: sealed.stored_sha256.clone(),
                    keys: sealed.keys.clone(),
                };
                let open = speed(|| opener.open(&segment, &sealed.bytes).unwrap());
                let ratio = plain.len() as f64 / sealed.bytes.len() as f64;
                println!("{what:<8} level {level} {encrypted} seal {seal}  open {open}  ratio {ratio:.2}");
            }
        }
    }
}
