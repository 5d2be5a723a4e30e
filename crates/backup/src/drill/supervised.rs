//! A drill that ends: by itself, when its time is over, or when somebody ends it.

use super::{Report, Request, drill};
use rustix::process::{Pid, Signal, kill_process};
use source::clock::Clock;
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// One whose programs are killed has ended by then, unless a store does not answer.
const END_MAX: Duration = Duration::from_secs(60);

/// Drills on a thread of its own for so long, or until `is_ended` is raised. Then each program that this process has started is killed,
/// until it is over. `hear` is told how far it is.
///
/// # Errors
/// When the system has no thread left.
pub fn supervised(
    request: &Request,
    limit: Duration,
    is_ended: &AtomicBool,
    clock: &Arc<dyn Clock>,
    mut hear: impl FnMut(repair::Event<'_>) + Send + 'static,
) -> io::Result<Report> {
    let over = Arc::new(AtomicBool::new(false));
    let (started, until) = (clock.wall_time(), clock.now() + limit);
    let (sender, result) = sync_channel(1);
    // Not one that is waited for: what hangs in a store ends with this process, and so do its programs.
    let (request_of, clock_of, is_over) = (request.clone(), clock.clone(), over.clone());
    thread::Builder::new().name("drill".to_owned()).spawn(move || {
        let report = drill(&request_of, &*clock_of, &is_over, &mut hear);
        // Nobody waits any more where it took too long to end.
        let _ = sender.send(report);
    })?;
    let without = |fault: Option<String>| Report {
        source: request.source.clone(),
        started,
        finished: started,
        fault,
        ..Report::default()
    };
    let mut end: Option<(String, Instant)> = None;
    loop {
        match result.recv_timeout(LOOK) {
            Ok(report) => return Ok(with_end(report, end)),
            Err(RecvTimeoutError::Disconnected) => {
                return Ok(without(Some("the thread of the drill has ended, a bug of binlogd".to_owned())));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = clock.now();
        let Some((_, last)) = &end else {
            end =
                ended(limit, now >= until, is_ended.load(Ordering::Relaxed)).map(|why| (why, now + END_MAX));
            continue;
        };
        over.store(true, Ordering::Relaxed);
        children().into_iter().for_each(kill);
        if now >= *last {
            return Ok(with_end(without(None), end));
        }
    }
}

fn ended(limit: Duration, is_late: bool, is_ended: bool) -> Option<String> {
    match (is_ended, is_late) {
        (true, _) => Some("ended by a signal".to_owned()),
        (_, true) => Some(format!("time limit: it took longer than {} s", limit.as_secs())),
        _ => None,
    }
}

/// What a drill that was ended says of it is what was killed.
fn with_end(mut report: Report, end: Option<(String, Instant)>) -> Report {
    if let (Some((why, _)), true) = (end, report.fault.is_some() || report.proof.is_none()) {
        let at = report
            .steps
            .last()
            .map_or_else(|| "at its beginning".to_owned(), |(step, _)| format!("behind the step \"{step}\""));
        report.fault = Some(format!("{why}, {at}"));
    }
    report
}

fn kill(pid: Pid) {
    // One that has ended already is not there any more.
    let _ = kill_process(pid, Signal::KILL);
}

/// The programs that this process has started.
fn children() -> Vec<Pid> {
    let mine = std::process::id().to_string();
    let is_mine = |stat: &str| {
        // The name before, in parentheses, may have anything in it.
        let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        fields.split(' ').nth(1) == Some(&mine)
    };
    let of = |name: String| {
        let stat = fs::read_to_string(format!("/proc/{name}/stat")).ok()?;
        is_mine(&stat).then(|| Pid::from_raw(name.parse().ok()?)).flatten()
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| of(entry.file_name().into_string().ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_programs_that_were_started_are_found_and_killed() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).unwrap();
        assert!(children().contains(&pid));
        kill(pid);
        assert!(!child.wait().unwrap().success());
    }
}
