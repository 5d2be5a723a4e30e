//! Delays packets between two interfaces, where the kernel has nothing that does.

use super::tun::PACKET_LEN_MAX;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes that may be under way in one direction. What comes then waits in the interface, as before a wire that is full. More
/// than any load has.
const UNDER_WAY_MAX: usize = 256 << 20;

/// Two threads, one a direction. They are of the lab's process and so end with it, however it ends. They do nothing else, and
/// run before everything that is measured: a packet that is late is a delay that nobody asked for. They may use all
/// processors.
#[derive(Debug)]
pub(super) struct Delayer {
    threads: Vec<JoinHandle<()>>,
    /// Nanoseconds that each packet is kept.
    kept_ns: Arc<AtomicU64>,
    /// Closed, it ends them.
    going: Option<PipeWriter>,
}

impl Delayer {
    /// Carries packets between two interfaces until it is dropped, each `delay` after it came. In each direction they keep
    /// their order.
    ///
    /// # Errors
    /// When the kernel has no more threads or files.
    pub(super) fn start(near: File, far: File, delay: Duration) -> io::Result<Delayer> {
        let (end, going) = io::pipe()?;
        let (near, far) = (Arc::new(near), Arc::new(far));
        let kept_ns = Arc::new(AtomicU64::new(delay.as_nanos() as u64));
        let mut delayer = Delayer { threads: Vec::new(), kept_ns, going: Some(going) };
        for (from, to) in [(&near, &far), (&far, &near)] {
            let (from, to, end) = (Arc::clone(from), Arc::clone(to), end.try_clone()?);
            let kept_ns = Arc::clone(&delayer.kept_ns);
            let thread = std::thread::Builder::new().name("lab-delay".to_owned());
            delayer.threads.push(thread.spawn(move || {
                hurry();
                carry(&from, &to, &end, &kept_ns);
            })?);
        }
        Ok(delayer)
    }

    /// Keeps packets that come from now on for so much less.
    pub(super) fn shorten(&self, by: Duration) {
        let kept = Duration::from_nanos(self.kept_ns.load(Ordering::Relaxed));
        self.kept_ns.store(kept.saturating_sub(by).as_nanos() as u64, Ordering::Relaxed);
    }
}

impl Drop for Delayer {
    fn drop(&mut self) {
        drop(self.going.take());
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Packets that came and are not due yet.
#[derive(Debug, Default)]
struct UnderWay {
    packets: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
}

impl UnderWay {
    fn push(&mut self, due: Instant, packet: &[u8]) {
        self.bytes += packet.len();
        self.packets.push_back((due, packet.to_vec()));
    }

    /// How long until the next one is due; none when there is none.
    fn wait(&self) -> Option<Duration> {
        self.packets.front().map(|(due, _)| due.saturating_duration_since(Instant::now()))
    }

    /// Gives those that are due.
    fn send_due(&mut self, mut to: &File) {
        while self.wait() == Some(Duration::ZERO) {
            let Some((_, packet)) = self.packets.pop_front() else { return };
            self.bytes -= packet.len();
            // What an interface does not take is lost, as on any network, and TCP sends it again.
            let _ = to.write(&packet);
        }
    }
}

/// Until `end` has another end no more, or the interface is gone.
fn carry(mut from: &File, to: &File, end: &PipeReader, kept_ns: &AtomicU64) {
    let mut packet = vec![0; PACKET_LEN_MAX];
    let mut under_way = UnderWay::default();
    loop {
        under_way.send_due(to);
        let is_room = under_way.bytes < UNDER_WAY_MAX;
        let readable = if is_room { PollFlags::IN } else { PollFlags::empty() };
        let mut waited = [PollFd::from_borrowed_fd(from.as_fd(), readable), PollFd::new(end, PollFlags::IN)];
        let wait = under_way
            .wait()
            .map(|wait| Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) });
        match poll(&mut waited, wait.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        if !waited[1].revents().is_empty() {
            return;
        }
        while is_room && under_way.bytes < UNDER_WAY_MAX {
            match from.read(&mut packet) {
                Ok(len) => {
                    let kept = Duration::from_nanos(kept_ns.load(Ordering::Relaxed));
                    under_way.push(Instant::now() + kept, &packet[..len]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
            under_way.send_due(to);
        }
    }
}

/// Lets this thread run as soon as it can, and wake when it wants to. Where the kernel refuses, the delay is less exact;
/// what it is gets measured.
fn hurry() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    run_before_others();
}

#[expect(unsafe_code, reason = "a function of the C library that no crate here wraps")]
fn run_before_others() {
    // SAFETY: all zeros are a value of it, which has numbers alone.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // The lowest priority of those that are before all others.
    parameters.sched_priority = 1;
    // SAFETY: it reads the parameters, and sets what the kernel knows of this thread.
    let _ = unsafe { libc::pthread_setschedparam(libc::pthread_self(), libc::SCHED_FIFO, &parameters) };
}
