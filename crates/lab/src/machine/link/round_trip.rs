//! How long a message takes over a link and back.

use anyhow::Context;
use rig::statistics::{Percentiles, Samples};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a message, about those of an acknowledgement.
const MESSAGE_LEN: usize = 64;
/// Messages that are sent, if that does not take too long.
const MESSAGES: usize = 500;
/// How long they are sent at most.
const LONGEST: Duration = Duration::from_secs(1);
/// Those that are not counted: a connection is slow at first.
const FIRST: usize = 5;
/// A link that takes this long is none.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(120);

/// Sends small messages over TCP, one at a time, which come back from a thread that stays here. `connect` connects from the
/// other side of the link to the port of this side.
///
/// # Errors
/// When there is no connection.
pub(super) fn measure(
    here: &str,
    connect: impl FnOnce(u16) -> anyhow::Result<TcpStream>,
) -> anyhow::Result<Percentiles> {
    let failed = || "measuring the round trip between source and receivers";
    let listener = TcpListener::bind((here, 0)).with_context(failed)?;
    let port = listener.local_addr().with_context(failed)?.port();
    let mut stream = connect(port).with_context(failed)?;
    let (mut accepted, _) = listener.accept().with_context(failed)?;
    for stream in [&stream, &accepted] {
        stream.set_nodelay(true).with_context(failed)?;
        stream.set_read_timeout(Some(GIVEN_UP_AFTER)).with_context(failed)?;
    }
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut message = [0; MESSAGE_LEN];
            while accepted.read_exact(&mut message).is_ok() && accepted.write_all(&message).is_ok() {}
        });
        let taken = send(&mut stream);
        // Ends the other side too.
        drop(stream);
        taken.with_context(failed)
    })
}

/// Does something while all processors have other work too.
pub(super) fn while_busy<T>(work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let _over = Over(&is_over);
        work()
    })
}

/// Says so when it goes, after a panic too: nothing would end the other work.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn send(stream: &mut TcpStream) -> std::io::Result<Percentiles> {
    let mut samples = Samples::with_capacity(MESSAGES);
    let began = Instant::now();
    let mut message = [7; MESSAGE_LEN];
    for number in 0..FIRST + MESSAGES {
        let sent = Instant::now();
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        if number >= FIRST {
            samples.record(sent.elapsed());
        }
        if began.elapsed() > LONGEST && !samples.is_empty() {
            break;
        }
    }
    Ok(samples.percentiles())
}
