//! What passes between two machines, a while later. Each connection has two threads of this process, one a direction.

use anyhow::Context;
use rig::statistics::Samples;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// Round trips that say what a relay takes.
const ROUND_TRIPS: usize = 200;

/// Measurements of which the shortest is what a delay is corrected by.
const CORRECTED_BY: usize = 3;

/// Microseconds that a relay may be found to take by itself, each way. More is something else on this machine.
const SURPLUS_US_MAX: f64 = 60.0;

/// Makes ways between machines that are so far from one another.
#[derive(Debug)]
pub(super) struct Relays {
    /// How long a message is kept; none where ways are direct.
    kept: Option<Duration>,
    round_trip_us: f64,
}

impl Relays {
    /// Each message `delay` later than over a direct way. What a relay takes by itself is measured, and taken off.
    ///
    /// # Errors
    /// When the system has no more threads or ports.
    pub(super) fn of(delay: Duration) -> anyhow::Result<Relays> {
        if delay.is_zero() {
            return Ok(Relays { kept: None, round_trip_us: 0.0 });
        }
        let direct = round_trip(None)?;
        // What others do on this machine only makes it longer: the shortest of some.
        let mut taken = f64::INFINITY;
        for _ in 0..CORRECTED_BY {
            taken = taken.min(round_trip(Some(delay))?);
        }
        let surplus_us = ((taken - direct) / 2.0 - delay.as_secs_f64() * 1e6).clamp(0.0, SURPLUS_US_MAX);
        let kept = delay.saturating_sub(Duration::from_nanos((surplus_us * 1e3) as u64));
        Ok(Relays { kept: Some(kept), round_trip_us: round_trip(Some(kept))? - direct })
    }

    /// How much longer a message and its answer take, the median.
    pub(super) fn round_trip_us(&self) -> f64 {
        self.round_trip_us
    }

    /// A port of this machine that leads to another one. It leads there as long as this process lives.
    ///
    /// # Errors
    /// When the system has no more ports.
    pub(super) fn way_to(&self, port: u16) -> io::Result<u16> {
        self.kept.map_or(Ok(port), |kept| relay(port, kept))
    }
}

/// Begins a relay to `port`, and gives its own.
fn relay(port: u16, kept: Duration) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let own = listener.local_addr()?.port();
    std::thread::Builder::new().name("relay".to_owned()).spawn(move || {
        for near in listener.incoming().flatten() {
            let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
            for stream in [&near, &far] {
                let _ = stream.set_nodelay(true);
            }
            let (Ok(near_again), Ok(far_again)) = (near.try_clone(), far.try_clone()) else { continue };
            std::thread::spawn(move || carry(near, far, kept));
            std::thread::spawn(move || carry(far_again, near_again, kept));
        }
    })?;
    Ok(own)
}

/// Carries one direction until its sender has ended, and everything that the sender sent has come.
fn carry(from: TcpStream, to: TcpStream, kept: Duration) {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    if carry_all(&from, &to, kept).is_err() {
        let _ = from.shutdown(Shutdown::Both);
    }
    let _ = to.shutdown(Shutdown::Write);
}

fn carry_all(mut from: &TcpStream, mut to: &TcpStream, kept: Duration) -> io::Result<()> {
    let mut under_way: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let mut buffer = vec![0; 1 << 16];
    let mut has_ended = false;
    while !has_ended || !under_way.is_empty() {
        let wait = under_way.front().map(|(due, _)| due.saturating_duration_since(Instant::now()));
        if wait == Some(Duration::ZERO)
            && let Some((_, bytes)) = under_way.pop_front()
        {
            to.write_all(&bytes)?;
            continue;
        }
        let limit = wait
            .map(|wait| Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) });
        let mut waited = [PollFd::new(from, PollFlags::IN)];
        let waited: &mut [PollFd<'_>] = if has_ended { &mut [] } else { &mut waited };
        if poll(waited, limit.as_ref())? == 0 {
            continue;
        }
        match from.read(&mut buffer)? {
            0 => has_ended = true,
            len => under_way.push_back((Instant::now() + kept, buffer[..len].to_vec())),
        }
    }
    Ok(())
}

/// The median of a message's way and back, in microseconds; over a relay where a time is given.
fn round_trip(kept: Option<Duration>) -> anyhow::Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let answers = std::thread::spawn(move || -> io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut byte = [0];
        while stream.read(&mut byte)? > 0 {
            stream.write_all(&byte)?;
        }
        Ok(())
    });
    let port = kept.map_or(Ok(port), |kept| relay(port, kept))?;
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_nodelay(true)?;
    let mut samples = Samples::default();
    for _ in 0..ROUND_TRIPS {
        let begun = Instant::now();
        stream.write_all(&[1])?;
        stream.read_exact(&mut [0])?;
        samples.record(begun.elapsed());
    }
    drop(stream);
    let _ = answers.join().ok().context("the echo panicked")?;
    Ok(samples.percentiles().p50)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_kept_as_long_as_asked() {
        let relays = Relays::of(Duration::from_millis(20)).unwrap();
        assert!(relays.round_trip_us() >= 20_000.0, "{relays:?}");
        let direct = Relays::of(Duration::ZERO).unwrap();
        assert_eq!(direct.way_to(7).unwrap(), 7);
    }
}
