//! What one source takes of the machine.

use super::rate::Rate;
use crate::lock::lock;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::time::Duration;

const DAY_SECONDS: f64 = 86_400.0;

/// What a source takes, as `/status` has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourcesStatus {
    /// Bytes that its folder takes on the disk; null before the first look.
    pub disk_bytes: Option<u64>,
    /// Bytes by which the copy would grow in a day, at the rate of the last 10 minutes; null while nothing is stored.
    pub growth_bytes_per_day: Option<u64>,
    /// Processor time of its receiving thread since the daemon started, in seconds, as of the last look; null before the first.
    pub receive_cpu_seconds: Option<f64>,
}

/// What is known of it. A thread that looks now and then writes, anybody reads; the receiving thread says once who it is.
#[derive(Debug, Default)]
pub struct Resources {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    disk_bytes: Option<u64>,
    rate: Rate,
    /// The receiving thread, as the system numbers it.
    thread: Option<i32>,
    /// Processor time of the threads that have ended.
    cpu_before: Duration,
    /// Of the present one.
    cpu: Option<Duration>,
}

impl Resources {
    /// The calling thread receives from now on.
    pub fn received_by(&self, thread: i32) {
        lock(&self.state).thread = Some(thread);
    }

    /// The receiving thread ends, and has used so much processor time.
    pub fn receiving_has_ended(&self, cpu: Option<Duration>) {
        let mut state = lock(&self.state);
        let last = state.cpu.take();
        state.cpu_before += cpu.or(last).unwrap_or_default();
        state.thread = None;
    }

    /// The receiving thread, while there is one.
    pub fn thread(&self) -> Option<i32> {
        lock(&self.state).thread
    }

    /// Takes a look: `at` is the time since the start, `grown` the bytes stored until then, `disk_bytes` what the folder takes
    /// and `cpu` what `thread` has used; `None` where that could not be seen.
    pub fn observe(&self, at: Duration, grown: u64, disk_bytes: Option<u64>, cpu: Option<(i32, Duration)>) {
        let mut state = lock(&self.state);
        state.rate.record(at, grown);
        state.disk_bytes = disk_bytes.or(state.disk_bytes);
        // It may have ended meanwhile.
        if let Some((_, cpu)) = cpu.filter(|(thread, _)| state.thread == Some(*thread)) {
            state.cpu = Some(cpu);
        }
    }

    /// What is known.
    pub fn status(&self) -> ResourcesStatus {
        let state = lock(&self.state);
        let is_known = state.cpu.is_some() || !state.cpu_before.is_zero();
        ResourcesStatus {
            disk_bytes: state.disk_bytes,
            growth_bytes_per_day: state.rate.bytes_per_second().map(|rate| (rate * DAY_SECONDS) as u64),
            receive_cpu_seconds: is_known
                .then(|| (state.cpu_before + state.cpu.unwrap_or_default()).as_millis() as f64 / 1000.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_goes_on_over_threads_and_growth_is_of_a_day() {
        let (resources, seconds) = (Resources::default(), Duration::from_secs);
        assert_eq!(resources.status(), ResourcesStatus::default());
        resources.received_by(7);
        resources.observe(seconds(0), 0, Some(4096), Some((7, seconds(2))));
        resources.observe(seconds(10), 1000, None, Some((7, seconds(3))));
        let status = resources.status();
        assert_eq!(status.disk_bytes, Some(4096), "the last look that succeeded");
        assert_eq!(status.growth_bytes_per_day, Some(8_640_000));
        assert_eq!(status.receive_cpu_seconds, Some(3.0));
        resources.receiving_has_ended(Some(seconds(4)));
        assert_eq!((resources.thread(), resources.status().receive_cpu_seconds), (None, Some(4.0)));
        resources.observe(seconds(20), 1000, None, Some((7, seconds(9))));
        assert_eq!(resources.status().receive_cpu_seconds, Some(4.0), "that thread has ended");
        resources.received_by(8);
        resources.observe(seconds(30), 1000, None, Some((8, seconds(1))));
        assert_eq!(resources.status().receive_cpu_seconds, Some(5.0));
    }
}
