//! What GTID sets allocate: nothing while a stream goes on, and never more because a peer claims more.

use codec::gtid::{Gtid, GtidSet, GtidState, MariadbGtid, MariadbGtidState, TransactionId};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

/// Counts the bytes that each thread asks for.
struct Counting;

thread_local! {
    static REQUESTED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        REQUESTED.set(REQUESTED.get() + layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes requested while `work` runs.
fn requested<T>(work: impl FnOnce() -> T) -> usize {
    let before = REQUESTED.get();
    let result = work();
    let bytes = REQUESTED.get() - before;
    drop(result);
    bytes
}

fn mysql(server: u8, gno: u64) -> TransactionId {
    let text = format!("3e11fa47-71ca-11e1-9e33-c80aa94295{server:02x}:tag:{gno}");
    text.parse::<Gtid>().unwrap().into()
}

fn mariadb(server_id: u32, sequence: u64) -> TransactionId {
    MariadbGtid { domain: 0, server_id, sequence }.into()
}

#[test]
fn a_running_stream_allocates_nothing() {
    for ids in [[mysql(1, 1), mysql(2, 1)], [mariadb(1, 1), mariadb(2, 1)]] {
        let mut state = GtidState::default();
        let follow = |state: &mut GtidState| {
            for step in 0..1000 {
                for id in ids {
                    let next = match id {
                        TransactionId::Mysql(gtid) => Gtid { gno: gtid.gno + step, ..gtid }.into(),
                        TransactionId::Mariadb(gtid) => MariadbGtid { sequence: 2 * step, ..gtid }.into(),
                    };
                    state.insert(next).unwrap();
                }
            }
        };
        follow(&mut state);
        let mut total = state.clone();
        state.clear();
        // The first clearing set memory aside for the entries; from then on batches come and go without allocation.
        follow(&mut state);
        // The receiver hands its batches on from one set to another, both cleared each time.
        let mut handed_on = state.clone();
        handed_on.clear();
        let bytes = requested(|| {
            state.clear();
            follow(&mut state);
            handed_on.append(&state).unwrap();
            total.append(&state).unwrap();
            total.union_with(&state).unwrap();
        });
        assert_eq!(bytes, 0);
    }
}

#[test]
fn a_claimed_count_allocates_nothing() {
    let mut body = vec![0xff; 4096];
    body[7] = 0;
    assert_eq!(requested(|| GtidSet::decode(&body)), 0, "number of UUIDs");
    body[..8].copy_from_slice(&1u64.to_le_bytes());
    assert_eq!(requested(|| GtidSet::decode(&body)), 0, "number of intervals");
    assert_eq!(requested(|| MariadbGtidState::decode_gtid_list(&body[8..])), 0, "number of GTIDs");
}

#[test]
fn decoding_allocates_in_proportion_to_the_input() {
    let names = 10_000u64;
    let mut body = names.to_le_bytes().to_vec();
    for name in 0..names {
        body.extend_from_slice(&[[0; 8], name.to_be_bytes()].concat());
        body.extend([1, 1, 2u64].into_iter().flat_map(u64::to_le_bytes));
    }
    let bytes = requested(|| GtidSet::decode(&body).unwrap());
    assert!(bytes < 10 * body.len(), "{bytes} bytes for a set of {}", body.len());

    let mut list = 10_000u32.to_le_bytes().to_vec();
    for server in (0..10_000u32).rev() {
        list.extend([0, server, 1, 0].into_iter().flat_map(u32::to_le_bytes));
    }
    let bytes = requested(|| MariadbGtidState::decode_gtid_list(&list).unwrap());
    assert!(bytes < 10 * list.len(), "{bytes} bytes for a list of {}", list.len());
}
