//! A program that is run beside the daemon: it ends with the daemon, and when its time is over, and what it says is bounded.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use source::stop::StopSignal;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// So many bytes of what it says are kept, the last ones.
const SAID_MAX: usize = 1 << 16;

/// Pause between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(100);

/// Between the request to end and the kill: where the daemon ends too, and where only the time is over.
const GRACE_STOPPED: Duration = Duration::from_millis(400);
const GRACE_LATE: Duration = Duration::from_secs(20);

/// What it has said is waited for so long after its end: a program that it left behind may hold the pipe.
const SAID_WAIT: Duration = Duration::from_secs(2);

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Itself(ExitStatus),
    /// It took too long, and was killed.
    Late,
    /// The daemon ends, and has killed it.
    Stopped,
}

/// What came of a program.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) ended: Ended,
    /// The end of its standard output.
    pub(crate) said: Vec<u8>,
    /// The end of its standard error.
    pub(crate) complained: Vec<u8>,
}

impl Ended {
    pub(crate) fn is_success(self) -> bool {
        matches!(self, Ended::Itself(status) if status.success())
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Itself(status) => match status.code() {
                Some(code) => write!(f, "exit code {code}"),
                None => status.fmt(f),
            },
            Ended::Late => f.write_str("it took too long"),
            Ended::Stopped => f.write_str("binlogd ended"),
        }
    }
}

/// Runs a program to its end, with all that it starts in one process group. It stands as far back as the thread that calls.
///
/// # Errors
/// When it cannot be started, or attended; then it is killed.
pub(crate) fn run(command: &mut Command, limit: Duration, stop: &StopSignal) -> io::Result<Run> {
    run_with(command, Vec::new(), limit, stop)
}

/// As [`run`], with this on its standard input.
///
/// # Errors
/// When it cannot be started, or attended; then it is killed.
pub(crate) fn run_with(
    command: &mut Command,
    input: Vec<u8>,
    limit: Duration,
    stop: &StopSignal,
) -> io::Result<Run> {
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    platform::ends_with_us(command);
    let mut child = command.spawn()?;
    let attended = attend(&mut child, input, limit, stop);
    // Nothing that it has started outlives it. The number of its group is its own until it was waited for.
    signal(&child, Signal::KILL);
    let status = child.wait()?;
    let Attended { killed, said, complained } = attended?;
    let ended = killed.unwrap_or(Ended::Itself(status));
    let all = |from: Option<Receiver<Vec<u8>>>| {
        from.and_then(|from| from.recv_timeout(SAID_WAIT).ok()).unwrap_or_default()
    };
    Ok(Run { ended, said: all(said), complained: all(complained) })
}

/// A program that has ended, or is to be killed now.
struct Attended {
    /// Why, unless it has ended by itself.
    killed: Option<Ended>,
    said: Option<Receiver<Vec<u8>>>,
    complained: Option<Receiver<Vec<u8>>>,
}

fn attend(child: &mut Child, input: Vec<u8>, limit: Duration, stop: &StopSignal) -> io::Result<Attended> {
    let began = Instant::now();
    if let Some(mut to) = child.stdin.take() {
        // One that does not read it holds nobody up; what it does not read is nothing to us.
        thread::Builder::new().spawn(move || to.write_all(&input))?;
    }
    let said = child.stdout.take().map(the_end_of).transpose()?;
    let complained = child.stderr.take().map(the_end_of).transpose()?;
    let mut killed = None;
    while !is_over(child)? {
        let grace = if stop.wait(LOOK) {
            killed = Some(Ended::Stopped);
            GRACE_STOPPED
        } else if began.elapsed() >= limit {
            killed = Some(Ended::Late);
            GRACE_LATE
        } else {
            continue;
        };
        signal(child, Signal::TERM);
        let until = Instant::now() + grace;
        while !is_over(child)? && Instant::now() < until {
            thread::sleep(LOOK / 10);
        }
        break;
    }
    Ok(Attended { killed, said, complained })
}

/// Whether it has ended; it is not waited for.
fn is_over(child: &Child) -> io::Result<bool> {
    let Some(id) = id(child) else { return Ok(true) };
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(waitid(WaitId::Pid(id), look)?.is_some())
}

fn id(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// To its process group; where that is gone, to nobody.
fn signal(child: &Child, signal: Signal) {
    if let Some(group) = id(child) {
        let _ = kill_process_group(group, signal);
    }
}

/// The last bytes that come from a pipe, once it is closed. All of it is read, so that nobody waits for a full pipe.
fn the_end_of(mut from: impl Read + Send + 'static) -> io::Result<Receiver<Vec<u8>>> {
    let (to, end) = channel();
    thread::Builder::new().spawn(move || {
        let (mut kept, mut chunk) = (Vec::new(), [0; 4096]);
        while let Ok(read @ 1..) = from.read(&mut chunk) {
            kept.extend_from_slice(&chunk[..read]);
            if kept.len() > 2 * SAID_MAX {
                kept.drain(..kept.len() - SAID_MAX);
            }
        }
        kept.drain(..kept.len().saturating_sub(SAID_MAX));
        let _ = to.send(kept);
    })?;
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_it_says_and_how_it_ends_is_known_and_bounded() {
        let script = "head -c 1000000 /dev/zero | tr '\\0' x; echo end; echo why >&2; exit 3";
        let run = run(&mut shell(script), Duration::from_secs(60), &StopSignal::new()).unwrap();
        assert_eq!(run.ended.to_string(), "exit code 3");
        assert!(run.said.len() == SAID_MAX && run.said.ends_with(b"xend\n"));
        assert_eq!(run.complained, b"why\n");
    }

    /// The children of a shell that ignores the request: the pipe is closed when the last one has gone.
    #[test]
    fn whatever_it_has_started_goes_with_it() {
        let script = "trap '' TERM; sleep 600 & sleep 600; wait";
        let late = run(&mut shell("trap '' TERM; sleep 600 & wait"), Duration::ZERO, &asked()).unwrap();
        assert_eq!(late.ended, Ended::Stopped);
        let stop = Arc::new(StopSignal::new());
        let asks = stop.clone();
        let asker = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            asks.request();
        });
        let began = Instant::now();
        assert_eq!(run(&mut shell(script), Duration::from_secs(60), &stop).unwrap().ended, Ended::Stopped);
        assert!(began.elapsed() < SAID_WAIT, "a pipe stayed open");
        asker.join().unwrap();
    }

    fn asked() -> StopSignal {
        let stop = StopSignal::new();
        stop.request();
        stop
    }
}
