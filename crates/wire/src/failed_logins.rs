//! Addresses from which too many logins fail are refused for a while. A login that succeeds excuses none that failed: who has one
//! account could guess the others without end.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Failures are counted within this time, and an address is refused for as long.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);

/// Addresses that are remembered. Somebody with many addresses must not fill the memory: the oldest is forgotten.
const ADDRESSES_MAX: usize = 10_000;

/// Failed logins by address.
#[derive(Debug, Default)]
pub struct FailedLogins(Mutex<HashMap<IpAddr, Failures>>);

#[derive(Debug)]
struct Failures {
    count: u32,
    /// When the first of them was.
    since: Instant,
}

/// Who is counted as one: an IPv4 address, or the /64 of an IPv6 address, of which somebody with one has all.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << 64)).into(),
        ip => ip,
    }
}

/// What becomes of a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is right, and its network is not refused.
    Admitted,
    /// It is wrong.
    Wrong,
    /// It is wrong, and its network is refused from now on.
    WrongTooOften,
    /// Its network is refused already: right or wrong, nobody is told. It was under way before.
    Refused,
}

impl FailedLogins {
    /// Whether an address is refused now.
    pub fn refuses(&self, address: IpAddr, max: u32, now: Instant) -> bool {
        self.all().get(&network_of(address)).is_some_and(|failed| failed.refuses(max, now))
    }

    /// Judges a guess, and counts a wrong one. However many connections guess at once, `max` of their guesses are judged.
    pub fn judge(&self, address: IpAddr, right: bool, max: u32, now: Instant) -> Verdict {
        let mut all = self.all();
        let network = network_of(address);
        match all.get(&network) {
            Some(failed) if failed.refuses(max, now) => return Verdict::Refused,
            _ if right => return Verdict::Admitted,
            _ => {}
        }
        if all.len() >= ADDRESSES_MAX && !all.contains_key(&network) {
            all.retain(|_, failed| now.duration_since(failed.since) < WINDOW);
            let oldest = all.iter().min_by_key(|(_, failed)| failed.since).map(|(address, _)| *address);
            if let Some(oldest) = oldest.filter(|_| all.len() >= ADDRESSES_MAX) {
                all.remove(&oldest);
            }
        }
        let failed = all.entry(network).or_insert(Failures { count: 0, since: now });
        if now.duration_since(failed.since) >= WINDOW {
            *failed = Failures { count: 0, since: now };
        }
        failed.count = failed.count.saturating_add(1);
        if failed.count < max {
            return Verdict::Wrong;
        }
        failed.since = now;
        Verdict::WrongTooOften
    }

    fn all(&self) -> MutexGuard<'_, HashMap<IpAddr, Failures>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Failures {
    fn refuses(&self, max: u32, now: Instant) -> bool {
        self.count >= max && now.duration_since(self.since) < WINDOW
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
        let wrong = |now| failed.judge(ADDRESS, false, 3, now);
        assert_eq!([wrong(began), wrong(began)], [Verdict::Wrong; 2]);
        assert!(!failed.refuses(ADDRESS, 3, began));
        assert_eq!(failed.judge(ADDRESS, true, 3, began), Verdict::Admitted, "which excuses none");
        let third = began + Duration::from_secs(50);
        assert_eq!(wrong(third), Verdict::WrongTooOften);
        assert!(failed.refuses(ADDRESS, 3, began + WINDOW), "a minute after the last failure, not the first");
        assert!(!failed.refuses(ADDRESS, 3, third + WINDOW));
        assert_eq!(wrong(third + WINDOW), Verdict::Wrong, "counted anew");
    }

    #[test]
    fn guesses_that_were_under_way_learn_nothing() {
        let failed = FailedLogins::default();
        let began = Instant::now();
        for _ in 0..3 {
            failed.judge(ADDRESS, false, 3, began);
        }
        assert_eq!([true, false].map(|right| failed.judge(ADDRESS, right, 3, began)), [Verdict::Refused; 2]);
        let later = began + WINDOW - Duration::from_secs(1);
        failed.judge(ADDRESS, false, 3, later);
        assert!(!failed.refuses(ADDRESS, 3, began + WINDOW), "they do not prolong it");
    }

    #[test]
    fn a_network_of_ipv6_is_one_and_an_address_of_ipv4_is_one() {
        let network = |text: &str| network_of(text.parse().unwrap()).to_string();
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(network("::ffff:10.0.0.7"), "10.0.0.7");
        let failed = FailedLogins::default();
        let now = Instant::now();
        for last in 0..3_u16 {
            failed.judge(IpAddr::from([0x2001, 0xdb8, 0, 0, last, 0, 0, last]), false, 3, now);
        }
        assert!(failed.refuses("2001:db8::9".parse().unwrap(), 3, now));
        assert!(!failed.refuses("2001:db8:0:1::9".parse().unwrap(), 3, now));
    }

    #[test]
    fn the_memory_is_bounded() {
        let failed = FailedLogins::default();
        let began = Instant::now();
        for number in 0..=ADDRESSES_MAX as u32 {
            let now = began + Duration::from_micros(number.into());
            failed.judge(IpAddr::from(number.to_be_bytes()), false, 1, now);
        }
        let now = began + Duration::from_secs(1);
        assert_eq!(failed.0.lock().unwrap().len(), ADDRESSES_MAX);
        assert!(!failed.refuses(IpAddr::from(0_u32.to_be_bytes()), 1, now), "the oldest is forgotten");
        assert!(failed.refuses(IpAddr::from(9_u32.to_be_bytes()), 1, now));
    }
}
