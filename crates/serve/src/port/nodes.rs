//! What the other nodes of a quorum ask for at this port: to hear how far this one is, and what a promoter wants of it.
//!
//! Both are statements of our own, `BINLOGD QUORUM LISTEN` and `BINLOGD QUORUM {…}`, which no server knows. Who has the account by
//! which the source is received may give them: as a semi-sync replica it could acknowledge to the source itself.

use super::readers::Reader;
use super::shared::Source;
use crate::answer::{Answer, Client, Column, Rows};
use binlog::writer::published::Published;
use codec::packet::ErrPacket;
use quorum::{Node, Request, Told};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::Accepted;

/// With what the statements begin.
const BEGINNING: &[u8] = b"BINLOGD QUORUM ";

/// What is told again after this time, though nothing has changed: it says that this node is there.
const TOLD_AGAIN: Duration = Duration::from_millis(500);

/// What is asked for behind the beginning; `None` for every other statement.
pub(super) fn asked(statement: &[u8]) -> Option<&[u8]> {
    let (beginning, rest) = statement.split_at_checked(BEGINNING.len())?;
    beginning.eq_ignore_ascii_case(BEGINNING).then(|| rest.trim_ascii())
}

/// What comes of such a statement.
pub(super) enum Answered {
    /// An answer, as to any statement.
    With(Answer),
    /// The other node listens from now on.
    Listens(Arc<Node>),
}

/// Answers one of these statements, of a client of `source`, which is called `name`.
pub(super) fn answer(asked: &[u8], source: &Source, name: &str, client: &Client) -> Answered {
    let refused = |code, text: String| Answered::With(Answer::Error(refusal(code, text)));
    let user = &client.user;
    let Some(node) = source.quorum.clone() else {
        return refused(
            1105,
            format!("source {name} of this binlogd has no quorum: set quorum in its [[source]]"),
        );
    };
    if *user != source.user && !client.privileges.control {
        let text = format!(
            "user '{user}' is no node's: the nodes of a quorum log in with the user of their [[source]], here '{}'",
            source.user
        );
        return refused(1227, text);
    }
    if asked.eq_ignore_ascii_case(b"LISTEN") {
        return Answered::Listens(node);
    }
    match Request::of_text(asked) {
        Ok(request) => match node.answer(&request, || (*source.monitor.gtids().durable).clone()) {
            Ok(reply) => Answered::With(one_row(reply.to_text())),
            Err(error) => refused(1105, error.to_string()),
        },
        Err(error) => {
            let text = format!(
                "this is no request of a quorum ({error}): both binlogds should have the same version"
            );
            refused(1064, text)
        }
    }
}

/// Tells another node how far this one is, as often as it changes, until that one is gone.
///
/// # Errors
/// When it is gone.
pub(super) fn tell(
    node: &Node,
    published: &Published,
    accepted: &mut Accepted,
    reader: &Reader,
) -> io::Result<()> {
    let (mut sequence, mut last, mut at) = (1_u8, None, Instant::now());
    let mut changes = None;
    loop {
        if reader.is_killed() || accepted.is_gone() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let seen = published.news();
        let now_changes = node.changes();
        let told = node.told(changes != Some(now_changes));
        if let Some(told) = told.filter(|told| last.as_ref() != Some(told) || at.elapsed() >= TOLD_AGAIN) {
            let mut bytes = Vec::new();
            sequence = codec::packet::append_message(&mut bytes, sequence, told.to_text().as_bytes());
            accepted.send(&bytes)?;
            changes = Some(now_changes);
            last = Some(Told { accepted: None, ..told });
            at = Instant::now();
        }
        published.wait(seen, TOLD_AGAIN);
    }
}

fn one_row(text: String) -> Answer {
    Answer::Rows(Rows { columns: vec![Column::text("quorum")], rows: vec![vec![Some(text)]] })
}

fn refusal(code: u16, message: String) -> ErrPacket {
    ErrPacket { code, sqlstate: "HY000".to_owned(), message }
}

#[cfg(test)]
mod tests {
    use super::asked;

    #[test]
    fn only_its_own_statements() {
        assert_eq!(asked(b"BINLOGD QUORUM LISTEN"), Some(&b"LISTEN"[..]));
        assert_eq!(asked(b"binlogd quorum  {\"a\":1} "), Some(&b"{\"a\":1}"[..]));
        assert_eq!(asked(b"SELECT 1"), None);
        assert_eq!(asked(b"BINLOGD QUORUM"), None);
    }
}
