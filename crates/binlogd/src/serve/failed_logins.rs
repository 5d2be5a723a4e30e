//! Addresses from which too many logins fail are refused for a while. A login that succeeds excuses none that failed: who has one
//! account could guess the others without end.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Failures are counted within this time, and an address is refused for as long.
pub(super) const WINDOW: Duration = Duration::from_secs(60);

/// Addresses that are remembered. Somebody with many addresses must not fill the memory: the oldest is forgotten.
const ADDRESSES_MAX: usize = 10_000;

/// Failed logins by address.
#[derive(Debug, Default)]
pub(super) struct FailedLogins(Mutex<HashMap<IpAddr, Failures>>);

#[derive(Debug)]
struct Failures {
    count: u32,
    /// When the first of them was.
    since: Instant,
}

impl FailedLogins {
    /// Whether an address is refused now.
    pub(super) fn refuses(&self, address: IpAddr, max: u32, now: Instant) -> bool {
        let failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        failed
            .get(&address)
            .is_some_and(|failed| failed.count >= max && now.duration_since(failed.since) < WINDOW)
    }

    /// A login from there has failed. True when the address is refused from now on.
    pub(super) fn failed(&self, address: IpAddr, max: u32, now: Instant) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= ADDRESSES_MAX && !all.contains_key(&address) {
            all.retain(|_, failed| now.duration_since(failed.since) < WINDOW);
            let oldest = all.iter().min_by_key(|(_, failed)| failed.since).map(|(address, _)| *address);
            if let Some(oldest) = oldest.filter(|_| all.len() >= ADDRESSES_MAX) {
                all.remove(&oldest);
            }
        }
        let failed = all.entry(address).or_insert(Failures { count: 0, since: now });
        if now.duration_since(failed.since) >= WINDOW {
            *failed = Failures { count: 0, since: now };
        }
        failed.count = failed.count.saturating_add(1);
        if failed.count == max {
            failed.since = now;
        }
        failed.count == max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn an_address_is_refused_for_a_minute_after_too_many_failures() {
        let failed = FailedLogins::default();
        let began = Instant::now();
        assert!(!failed.failed(ADDRESS, 3, began) && !failed.failed(ADDRESS, 3, began));
        assert!(!failed.refuses(ADDRESS, 3, began));
        let third = began + Duration::from_secs(50);
        assert!(failed.failed(ADDRESS, 3, third), "told once");
        assert!(failed.refuses(ADDRESS, 3, began + WINDOW), "a minute after the last failure, not the first");
        assert!(!failed.refuses(ADDRESS, 3, third + WINDOW));
        assert!(!failed.failed(ADDRESS, 3, third + WINDOW), "counted anew");
    }

    #[test]
    fn the_memory_is_bounded() {
        let failed = FailedLogins::default();
        let began = Instant::now();
        for number in 0..=ADDRESSES_MAX as u32 {
            failed.failed(
                IpAddr::from(number.to_be_bytes()),
                1,
                began + Duration::from_micros(number.into()),
            );
        }
        let now = began + Duration::from_secs(1);
        assert_eq!(failed.0.lock().unwrap().len(), ADDRESSES_MAX);
        assert!(!failed.refuses(IpAddr::from(0_u32.to_be_bytes()), 1, now), "the oldest is forgotten");
        assert!(failed.refuses(IpAddr::from(9_u32.to_be_bytes()), 1, now));
    }
}
