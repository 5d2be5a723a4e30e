//! The buffer pool of a server, resized while it runs.

use crate::lab::Lab;
use crate::point::place::DATA_GB;
use crate::server::Target;
use anyhow::{Context, anyhow};
use std::time::Duration;

/// Longest wait until a pool has its new size.
const RESIZE_MAX: Duration = Duration::from_secs(600);
/// How far a pool may be from what is wanted.
const TOLERANCE: f64 = 0.02;
/// A smaller one leaves no room for the pages that transactions hold.
const LEAST: u64 = 8 << 20;
const MIB: u64 = 1 << 20;
/// The variable.
pub(super) const SIZE: &str = "innodb_buffer_pool_size";

/// The sizes that a running server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sizes {
    /// It takes multiples of this.
    step: u64,
    /// And nothing above, where it has such a bound.
    most: Option<u64>,
}

/// The bytes that a pool of `share` 90ths of tables of `tables` bytes has on one of the lab's own servers.
pub(super) fn wanted(tables: u64, share: u32) -> u64 {
    (tables * u64::from(share) / u64::from(DATA_GB)).next_multiple_of(MIB)
}

/// The same on a user's server, where it may be 2 % off.
///
/// # Errors
/// When the server cannot have such a pool; the error says why, and what would help.
pub(super) fn possible(target: &mut Target, tables: u64, share: u32) -> anyhow::Result<u64> {
    let found = Sizes::of(target)?.nearest(wanted(tables, share));
    found.map_err(|reason| {
        anyhow!(
            "a buffer pool of {share}/{DATA_GB} of the tables is {reason}; --set pools=own leaves it as it is"
        )
    })
}

impl Sizes {
    fn of(target: &mut Target) -> anyhow::Result<Sizes> {
        let mut number = |name: &str| {
            let value = target.variable(name)?;
            anyhow::Ok(value.and_then(|value| value.parse::<u64>().ok()).filter(|value| *value > 0))
        };
        // MariaDB that has this bound takes every MiB, whatever it says of chunks.
        let most = number("innodb_buffer_pool_size_max")?;
        let chunk = number("innodb_buffer_pool_chunk_size")?;
        let instances = number("innodb_buffer_pool_instances")?;
        let step = match most {
            Some(_) => MIB,
            None => chunk.unwrap_or(MIB) * instances.unwrap_or(1),
        };
        Ok(Sizes { step, most })
    }

    /// What comes next to `wanted`, if it is near enough; otherwise why not, and what would help.
    fn nearest(self, wanted: u64) -> Result<u64, String> {
        let Sizes { step, most } = self;
        if wanted < LEAST {
            return Err(format!(
                "{} MiB, too little to measure with: --set warehouses with more, or larger --set pools",
                wanted / MIB
            ));
        }
        if let Some(most) = most.filter(|most| wanted > *most) {
            return Err(format!(
                "{} MiB, and the server allows {} MiB at most (innodb_buffer_pool_size_max): --set warehouses with \
                 fewer, smaller --set pools, or a server started with more",
                wanted / MIB,
                most / MIB
            ));
        }
        let steps = ((wanted as f64 / step as f64).round() as u64).max(1);
        let nearest = steps * step;
        if (nearest as f64 / wanted as f64 - 1.0).abs() > TOLERANCE {
            return Err(format!(
                "{} MiB, and the server allows multiples of {} MiB only (innodb_buffer_pool_chunk_size × \
                 innodb_buffer_pool_instances): --set warehouses with more, other --set pools, or a server started \
                 with a smaller innodb_buffer_pool_chunk_size",
                wanted / MIB,
                step / MIB
            ));
        }
        Ok(nearest)
    }
}

/// Gives the server a pool of so many bytes, waits until it has it, and returns what it calls its size then: MySQL may
/// round it by some of its steps.
///
/// # Errors
/// When the server refuses or does not do it, and when the run is broken off.
pub(super) fn resize(target: &mut Target, bytes: u64, lab: &Lab) -> anyhow::Result<u64> {
    target.set(SIZE, &bytes.to_string())?;
    let page: f64 =
        target.variable("innodb_page_size")?.and_then(|page| page.parse().ok()).unwrap_or(16384.0);
    let resized = lab.interrupt.wait(RESIZE_MAX, || {
        // A few of a hundred hold descriptors of the others.
        let now = status(target, "Innodb_buffer_pool_pages_total")? * page / bytes as f64;
        let size = target.variable(SIZE)?.and_then(|size| size.parse::<u64>().ok()).unwrap_or(0);
        let near = !target.is_users() || (size as f64 / bytes as f64 - 1.0).abs() <= TOLERANCE;
        Ok(((0.85..1.02).contains(&now) && near).then_some(size))
    })?;
    resized.with_context(|| format!("{} did not change its buffer pool to {bytes} bytes", target.name()))
}

/// One of the server's counters.
fn status(target: &mut Target, name: &str) -> anyhow::Result<f64> {
    let rows = target.query(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))?;
    let value = rows.get(0, "Value").and_then(|value| value.parse().ok());
    value.with_context(|| format!("{} has no counter {name}", target.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_the_nearest_that_the_server_allows() {
        let small = Sizes { step: MIB, most: None };
        assert_eq!(small.nearest(wanted(90 * MIB, 70)), Ok(70 * MIB));
        let large = Sizes { step: 128 * MIB, most: None };
        assert_eq!(large.nearest(12_700 * MIB), Ok(12_672 * MIB));
        let reason = large.nearest(70 * MIB).unwrap_err();
        assert!(reason.contains("multiples of 128 MiB") && reason.contains("warehouses"), "{reason}");
    }

    #[test]
    fn a_bound_of_the_server_is_named() {
        let bounded = Sizes { step: MIB, most: Some(128 * MIB) };
        assert_eq!(bounded.nearest(128 * MIB), Ok(128 * MIB));
        let reason = bounded.nearest(129 * MIB).unwrap_err();
        assert!(reason.contains("128 MiB at most (innodb_buffer_pool_size_max)"), "{reason}");
        assert!(bounded.nearest(MIB).unwrap_err().contains("too little"));
    }
}
