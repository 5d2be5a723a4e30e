//! What a promoter asks of nodes, over the port at which they serve.

use crate::attempt::context::Upstream;
use config::HostPort;
use quorum::{Ballot, Reply, Request};
use source::clock::Clock;
use std::time::Duration;

/// Longest time for one node to answer.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// A ballot above all that were promised so far.
pub fn ballot_above(epoch: u64, clock: &dyn Clock) -> Ballot {
    let mut random = [0; 16];
    for part in random.chunks_mut(4) {
        part.copy_from_slice(&clock.jitter().to_le_bytes());
    }
    Ballot::above(epoch, random)
}

/// Asks these nodes, all at once: what each answers, or why it does not do what it is asked for.
pub fn ask_all<'a>(
    upstream: &Upstream,
    nodes: &'a [HostPort],
    request: &Request,
) -> Vec<(&'a HostPort, Result<Reply, String>)> {
    std::thread::scope(|scope| {
        let asked: Vec<_> =
            nodes.iter().map(|node| (node, scope.spawn(move || ask(upstream, node, request)))).collect();
        let answer = |asked: std::thread::ScopedJoinHandle<'_, Result<Reply, String>>| {
            asked.join().unwrap_or_else(|_| Err("a thread of ours has panicked".to_owned()))
        };
        asked.into_iter().map(|(node, asked)| (node, answer(asked))).collect()
    })
}

fn ask(upstream: &Upstream, node: &HostPort, request: &Request) -> Result<Reply, String> {
    let mut connection = upstream.connect_to(node, ANSWER_MAX).map_err(|error| error.to_string())?;
    connection.set_timeout(ANSWER_MAX);
    let rows = connection.query(&format!("BINLOGD QUORUM {}", request.to_text()));
    let rows = rows.map_err(|error| error.in_its_own_words())?;
    let text = rows.first().ok_or("it answers nothing")?;
    let reply = Reply::of_text(text.as_bytes()).map_err(|error| error.to_string());
    connection.close();
    reply
}
