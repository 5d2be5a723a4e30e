//! The end of the receivers: each finishes its batch, syncs, acknowledges and closes. Unless the disk does not answer: then
//! nothing can be finished, and whoever asked for the end is told what is not known.

use codec::Position;
use status::SourceMonitor;
use std::time::{Duration, Instant};

/// A receiver whose disk does not answer is waited for at most so long.
pub(super) const STOP_HANG_MAX: Duration = Duration::from_secs(10);

/// Pause between two looks whether a thread has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Waits until `is_finished`. False when the source's disk does not answer, and [`STOP_HANG_MAX`] has passed since `asked`:
/// a disk that is only slow is waited for.
pub(super) fn wait(monitor: &SourceMonitor, asked: Instant, is_finished: impl Fn() -> bool) -> bool {
    loop {
        if is_finished() {
            return true;
        }
        if asked.elapsed() >= STOP_HANG_MAX && monitor.disk_hang().is_some() {
            return false;
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}

/// What nobody knows of a source whose receiver could not end, in words.
pub(super) fn not_known(monitor: &SourceMonitor) -> String {
    let positions = monitor.positions();
    let at =
        |rung: &Option<Position>| rung.as_ref().map_or_else(|| "nothing".to_owned(), Position::to_string);
    let operation = monitor.disk_hang().map_or_else(String::new, |hang| {
        format!("{} has been under way for {} s. ", hang.operation, hang.since.elapsed().as_secs())
    });
    format!(
        "the disk does not answer: {operation}Known to be on it: up to {}; acknowledged: up to {}. Whether the disk keeps what \
         came after that is not known; none of it was acknowledged. The next start finds out from the disk",
        at(&positions.durable),
        at(&positions.acknowledged)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use status::{DiskHang, Ladder};

    #[test]
    fn a_disk_that_hangs_is_given_up_and_a_slow_one_is_not() {
        let monitor = SourceMonitor::new("s");
        let long_ago = Instant::now().checked_sub(STOP_HANG_MAX).unwrap();
        let began = Instant::now();
        assert!(wait(&monitor, long_ago, || began.elapsed() > LOOK_INTERVAL * 4), "no hang is known");
        monitor.set_disk_hang(Some(DiskHang { operation: "a sync".to_owned(), since: long_ago }));
        assert!(!wait(&monitor, long_ago, || false));
        let at = Some(Position::new("b.000001", 99));
        monitor.publish_positions(&Ladder {
            received: at.clone(),
            written: at.clone(),
            durable: at,
            acknowledged: None,
        });
        let said = not_known(&monitor);
        assert!(
            said.contains("a sync has been under way for 10 s") && said.contains("up to b.000001:99"),
            "{said}"
        );
        assert!(said.contains("acknowledged: up to nothing"), "{said}");
    }
}
