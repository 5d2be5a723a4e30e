//! Recovery of a timeline whose live file ends in anything.
//!
//! ```text
//! flags        1 byte: bit 0 the file starts valid, bits 1-2 with so many transactions, bit 3 a sealed file before it,
//!              bit 4 the tail is a script of events, bits 5-6 the index (right, missing, of wrong names, bytes)
//! cut          2 bytes: the valid beginning ends so many bytes before its end
//! tail         until the end
//! ```
//!
//! Held true: recovery never fails nor panics; the file ends at a boundary and what is before it is unchanged; no whole
//! transaction of the valid beginning is cut; the bytes that are cut are saved aside; the sealed file is untouched; a
//! second recovery changes nothing; and the walk that verification makes agrees.

use crate::binlog::{Binlog, code};
use crate::input::Input;
use crate::script;
use codec::event::BINLOG_MAGIC;
use jiff::Timestamp;
use binlog::timeline::index::INDEX_FILE;
use binlog::storage::posix::PosixStorage;
use binlog::recover::{Recovered, Tail, recover};
use binlog::scan::{FileScan, scan_file};
use scripted_source::event;
use std::fs::{self, File};
use std::path::Path;

const SEALED: &str = "mysql-bin.000001";
const LIVE: &str = "mysql-bin.000002";

/// Recovers one folder, twice.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let flags = input.u8();
    let (live, kept) = live_file(&mut input, flags);
    let folder = folder();
    let path = folder.path();
    fs::write(path.join(LIVE), &live).expect("written");
    let sealed = (flags & 8 != 0).then(sealed_file);
    if let Some(sealed) = &sealed {
        fs::write(path.join(SEALED), sealed).expect("written");
    }
    write_index(path, flags, &live);
    let before = scan(path);

    let found = recover(&PosixStorage, path, Tail::SaveAside(Timestamp::now()))
        .expect("the folder can be read and written");
    let position = found.resume_at().expect("there is a live file");
    let after = fs::read(path.join(LIVE)).expect("read");
    assert_eq!((&*position.file, position.offset), (LIVE, after.len() as u64));
    assert_eq!(position.offset, before.boundary.max(4));
    assert!(
        position.offset >= kept as u64,
        "a whole transaction was cut: {} of {kept} bytes kept",
        position.offset
    );
    if live.starts_with(&BINLOG_MAGIC) {
        assert!(live.starts_with(&after), "bytes before the boundary were changed");
    } else {
        assert_eq!(after, BINLOG_MAGIC);
    }
    check_saved_tail(path, &live, before.boundary as usize);
    assert_eq!(sealed, fs::read(path.join(SEALED)).ok(), "the sealed file was changed");
    check_recovered(path, &found, flags);

    let again = recover(&PosixStorage, path, Tail::SaveAside(Timestamp::now()))
        .expect("the folder can be read and written");
    assert_eq!(again.remarks, Vec::<String>::new(), "a second recovery finds something to repair");
    assert_eq!((again.resume_at(), &again.gtids, &again.files), (Some(position), &found.gtids, &found.files));
    assert_eq!(fs::read(path.join(LIVE)).expect("read"), after);
}

/// In memory where the system has such a place: the real disk would make syncing the only thing that is measured.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}

/// The file and how much of it must survive.
fn live_file(input: &mut Input<'_>, flags: u8) -> (Vec<u8>, usize) {
    let cut = usize::from(input.u16());
    let (mut bytes, mut kept) = (Vec::new(), 0);
    if flags & 1 != 0 {
        let mut prefix = Binlog::new("abababab-abab-abab-abab-abababababab:1-10");
        for number in 0..u64::from(flags >> 1 & 3) {
            prefix.transaction(11 + number);
        }
        bytes.extend_from_slice(&prefix.bytes[..prefix.bytes.len().saturating_sub(cut)]);
        kept = prefix.boundary_within(bytes.len());
    }
    if flags & 16 == 0 {
        bytes.extend_from_slice(input.rest());
    } else {
        while !input.is_empty() {
            let start = bytes.len() as u64;
            bytes.extend_from_slice(&script::next_event(input, start).bytes);
        }
    }
    (bytes, kept)
}

fn sealed_file() -> Vec<u8> {
    let mut sealed = Binlog::new("abababab-abab-abab-abab-abababababab:1-9");
    sealed.transaction(10);
    sealed.event(code::ROTATE, &event::rotate(4, LIVE), true);
    sealed.bytes
}

fn write_index(path: &Path, flags: u8, bytes: &[u8]) {
    let right = if flags & 8 != 0 { format!("{SEALED}\n{LIVE}\n") } else { format!("{LIVE}\n") };
    let content = match flags >> 5 & 3 {
        0 => right.as_bytes(),
        1 => return,
        2 => b"mysql-bin.000002\nmysql-bin.000002\n../x.000001\nmysql-bin.000099",
        // One that lists both files the wrong way round is a statement of order and would be believed.
        _ if bytes.windows(LIVE.len()).any(|window| window == LIVE.as_bytes()) => right.as_bytes(),
        _ => bytes,
    };
    fs::write(path.join(INDEX_FILE), content).expect("written");
}

fn scan(path: &Path) -> FileScan {
    let file = File::open(path.join(LIVE)).expect("opened");
    scan_file(&file, u64::MAX, |_| {}).expect("the file can be read")
}

fn check_saved_tail(path: &Path, live: &[u8], boundary: usize) {
    let torn: Vec<_> = fs::read_dir(path)
        .expect("read")
        .map(|entry| entry.expect("read").path())
        .filter(|path| path.to_string_lossy().contains(".torn-"))
        .collect();
    if live.len() == boundary {
        assert_eq!(torn, Vec::<std::path::PathBuf>::new());
    } else {
        assert_eq!(torn.len(), 1);
        assert_eq!(fs::read(&torn[0]).expect("read"), live[boundary..], "the saved tail is not what was cut");
    }
}

fn check_recovered(path: &Path, found: &Recovered, flags: u8) {
    let scan = scan(path);
    let live = found.live.as_ref().expect("there is a live file");
    assert_eq!((scan.damage, scan.boundary, scan.sound_end), (None, live.len, live.len));
    assert_eq!(scan.format, live.format);
    let expected: &[&str] = if flags & 8 != 0 { &[SEALED, LIVE] } else { &[LIVE] };
    assert_eq!(found.files, expected);
    assert_eq!(fs::read_to_string(path.join(INDEX_FILE)).expect("text"), expected.join("\n") + "\n");
}
