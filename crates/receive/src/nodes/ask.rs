//! What a promoter asks of nodes, over the port at which they serve.

use super::common::not_reached;
use crate::attempt::context::Upstream;
use config::HostPort;
use quorum::{Ballot, Reply, Request};
use source::clock::Clock;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Longest time for one node to answer.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// So long the others are waited for when enough have answered: one that is well answers within a few milliseconds.
const GRACE: Duration = Duration::from_millis(300);

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
    ask_enough(upstream, nodes, request, |_| false)
}

/// The same. Once `is_enough` of what has come, the others have a moment more; what they answer later is not heard.
pub fn ask_enough<'a>(
    upstream: &Upstream,
    nodes: &'a [HostPort],
    request: &Request,
    is_enough: impl Fn(&[&Reply]) -> bool,
) -> Vec<(&'a HostPort, Result<Reply, String>)> {
    let (tell, told) = mpsc::channel();
    for (number, node) in nodes.iter().enumerate() {
        let (upstream, node, request, tell) = (upstream.clone(), node.clone(), request.clone(), tell.clone());
        let asks = move || {
            // Nobody listens to one that comes too late.
            let _ = tell.send((number, ask(&upstream, &node, &request)));
        };
        // Without a thread there is no answer.
        let _ = std::thread::Builder::new().name("ask-node".to_owned()).spawn(asks);
    }
    drop(tell);
    let mut answers: Vec<Option<Result<Reply, String>>> = vec![None; nodes.len()];
    let mut until: Option<Instant> = None;
    let why = loop {
        let next = match until {
            None => told.recv().map_err(|_| "no thread of ours has asked it"),
            Some(until) => told
                .recv_timeout(until.saturating_duration_since(upstream.clock.now()))
                .map_err(|_| "it has not answered by the time that enough others had"),
        };
        match next {
            Ok((number, answer)) => answers[number] = Some(answer),
            Err(why) => break why,
        }
        let replies: Vec<&Reply> = answers.iter().flatten().flatten().collect();
        if until.is_none() && is_enough(&replies) {
            until = Some(upstream.clock.now() + GRACE);
        }
    };
    nodes
        .iter()
        .zip(answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(why.to_owned()))))
        .collect()
}

fn ask(upstream: &Upstream, node: &HostPort, request: &Request) -> Result<Reply, String> {
    let mut connection = upstream.connect_to(node, ANSWER_MAX).map_err(|error| not_reached(&error))?;
    connection.set_timeout(ANSWER_MAX);
    let rows = connection.query(&format!("BINLOGD QUORUM {}", request.to_text()));
    let rows = rows.map_err(|error| error.in_its_own_words())?;
    let text = rows.first().ok_or("it answers nothing")?;
    let reply = Reply::of_text(text.as_bytes()).map_err(|error| error.to_string());
    connection.close();
    reply
}
