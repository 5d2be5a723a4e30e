//! What a receiver publishes at every batch allocates nothing. A test binary of its own, because it counts the
//! allocations of the whole process.

use codec::Position;
use codec::gtid::{Gtid, GtidState};
use status::{Ladder, SourceMonitor};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

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

fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

#[test]
fn publishing_does_not_allocate() {
    let monitor = SourceMonitor::new("orders");
    let files: [Arc<str>; 2] = ["mysql-bin.000001".into(), "mysql-bin.000002".into()];
    let mut ladder = Ladder::default();
    let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    let gtid = |gno: u64| Gtid { uuid: uuid.parse().unwrap(), tag: Default::default(), gno };
    let mut recent = GtidState::default();
    // The first transaction of a server makes the sets, and each of the two that change places between receiver and readers.
    for gno in 1..4 {
        recent.clear();
        recent.insert(gtid(gno).into()).unwrap();
        monitor.publish_gtids(|gtids| {
            gtids.durable.append(&recent);
            gtids.acknowledged.append(&recent);
        });
        drop(monitor.gtids());
    }
    let mut by_readers = 0;
    let before = allocations();
    for batch in 0..10_000u64 {
        // A new file in the middle: its name was allocated by the receiver, once.
        let at = Position::new(files[(batch / 5_000) as usize].clone(), 4 + batch);
        ladder.received = Some(at.clone());
        ladder.written = Some(at.clone());
        ladder.durable = Some(at.clone());
        ladder.acknowledged = Some(at);
        monitor.publish_positions(&ladder);
        monitor.publish_event_time(1_700_000_000);
        monitor.publish_caught_up();
        // A set of one transaction, as after each batch, and now and then somebody who reads.
        recent.clear();
        recent.insert(gtid(4 + batch).into()).unwrap();
        monitor.publish_gtids(|gtids| {
            gtids.durable.append(&recent);
            gtids.acknowledged.append(&recent);
        });
        if batch % 100 == 0 {
            let reading = allocations();
            drop(monitor.gtids());
            by_readers += allocations() - reading;
        }
        monitor.counters.events.fetch_add(7, Relaxed);
        monitor.sync_latency.record(Duration::from_micros(batch));
        monitor.acknowledge_latency.record(Duration::from_micros(batch));
    }
    assert_eq!(allocations() - before - by_readers, 0);
    assert_eq!(monitor.gtids().durable.to_line(), format!("{uuid}:1-10003"));
    assert!(monitor.positions().is_ordered(config::FsyncMode::SyncThenAcknowledge));
}

#[test]
fn the_counter_counts() {
    let before = allocations();
    drop(std::hint::black_box(Box::new(1u64)));
    assert_eq!(allocations() - before, 1);
}
