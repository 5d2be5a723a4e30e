//! Who has gone while its dump waited.
//!
//! A dump at the live end sleeps until there is news or a heartbeat is due. Of a client that asked for none (mysqlbinlog) it would
//! see only after a minute that nobody is there any more: so long the status would show a reader, a slot that is connected, and
//! files would be kept for it.

use super::readers::{Doing, Reader, Readers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::Arc;

/// Ends the dumps whose clients have closed their connections, or whose connections are broken. Waits for nobody.
pub(crate) fn end_those_gone(readers: &Readers) {
    let dumps =
        |reader: &Arc<Reader>| matches!(reader.shown().doing, Doing::Dump { .. }) && !reader.is_killed();
    let dumping: Vec<_> = readers.list().into_iter().filter(dumps).collect();
    let mut asked: Vec<_> =
        dumping.iter().map(|reader| PollFd::from_borrowed_fd(reader.socket(), PollFlags::RDHUP)).collect();
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // What fails is asked again by the next look.
    if asked.is_empty() || !poll(&mut asked, Some(&now)).is_ok_and(|count| count > 0) {
        return;
    }
    let gone = asked.iter().zip(&dumping).filter(|(answer, _)| !answer.revents().is_empty());
    gone.for_each(|(_, reader)| reader.kill());
}

#[cfg(test)]
mod tests {
    use super::super::readers::Arrival;
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    #[test]
    fn a_dump_ends_when_its_client_has_gone_and_others_go_on() {
        let readers = Arc::new(Readers::default());
        let come = |id, doing| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (ours, address) = listener.accept().unwrap();
            let arrival = Arrival {
                id,
                user: "reader".to_owned(),
                address,
                source: "orders".to_owned(),
                program: String::new(),
                closer: ours.into(),
                published: Arc::default(),
            };
            let present = readers.arrived(arrival, 9).unwrap();
            present.reader.does(doing);
            (present, theirs)
        };
        let dump = Doing::Dump { by_gtids: false };
        end_those_gone(&readers);
        let (stays, _theirs) = come(1, dump);
        let (goes, gone) = come(2, dump);
        // Between two statements the session itself waits for what the client sends.
        let (idle, also_gone) = come(3, Doing::Idle);
        end_those_gone(&readers);
        assert!(!stays.reader.is_killed() && !goes.reader.is_killed());
        drop((gone, also_gone));
        let began = Instant::now();
        while !goes.reader.is_killed() {
            assert!(began.elapsed() < Duration::from_secs(30), "it was not seen");
            end_those_gone(&readers);
        }
        assert!(!stays.reader.is_killed() && !idle.reader.is_killed());
    }
}
