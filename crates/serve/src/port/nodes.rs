//! What the other nodes of a quorum ask for at this port: to hear how far this one is, and what a promoter wants of it.
//!
//! Both are statements of our own, `BINLOGD QUORUM LISTEN` and `BINLOGD QUORUM {…}`, which no server knows. Who has the account by
//! which the source is received may give them: as a semi-sync replica it could acknowledge to the source itself.

use super::session::Session;
use crate::answer::{Answer, Column, Rows};
use codec::packet::ErrPacket;
use quorum::{Node, Request};
use std::io;
use std::time::{Duration, Instant};

/// With what the statements begin.
const BEGINNING: &[u8] = b"BINLOGD QUORUM ";

/// What is told again after this time, though nothing has changed: it says that this node is there.
const TOLD_AGAIN: Duration = Duration::from_millis(500);

/// What is asked for behind the beginning; `None` for every other statement.
pub(super) fn asked(statement: &[u8]) -> Option<&[u8]> {
    let (beginning, rest) = statement.split_at_checked(BEGINNING.len())?;
    beginning.eq_ignore_ascii_case(BEGINNING).then(|| rest.trim_ascii())
}

impl Session<'_> {
    /// Answers one of these statements.
    pub(super) fn node(&mut self, asked: &[u8]) -> io::Result<()> {
        let user = &self.client.user;
        let Some(node) = self.source.quorum.clone() else {
            let text =
                format!("source {} of this binlogd has no quorum: set quorum in its [[source]]", self.name);
            return self.send_error(&refused(1105, &text));
        };
        if *user != self.source.user && !self.client.privileges.control {
            let text = format!(
                "user '{user}' is no node's: the nodes of a quorum log in with the user of their [[source]], here '{}'",
                self.source.user
            );
            return self.send_error(&refused(1227, &text));
        }
        if asked.eq_ignore_ascii_case(b"LISTEN") {
            return self.tell(&node);
        }
        let answer = match Request::of_text(asked) {
            Ok(request) => {
                let monitor = self.source.monitor.clone();
                match node.answer(&request, || (*monitor.gtids().durable).clone()) {
                    Ok(reply) => one_row(reply.to_text()),
                    Err(error) => Answer::Error(refused(1105, &error.to_string())),
                }
            }
            Err(error) => {
                let text = format!(
                    "this is no request of a quorum ({error}): both binlogds should have the same version"
                );
                Answer::Error(refused(1064, &text))
            }
        };
        self.send_answer(1, &answer, false).map(drop)
    }

    /// Tells how far this node is, as often as it changes, until the other one is gone.
    fn tell(&mut self, node: &Node) -> io::Result<()> {
        let published = self.source.published.clone();
        let (mut sequence, mut last, mut at) = (1_u8, None, Instant::now());
        let mut changes = None;
        loop {
            if self.reader().is_killed() || self.accepted.is_gone() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            let seen = published.news();
            let now_changes = node.changes();
            let told = node.told(changes != Some(now_changes));
            if let Some(told) = told.filter(|told| last.as_ref() != Some(told) || at.elapsed() >= TOLD_AGAIN)
            {
                let mut bytes = Vec::new();
                sequence = codec::packet::append_message(&mut bytes, sequence, told.to_text().as_bytes());
                self.send(&bytes)?;
                changes = Some(now_changes);
                last = Some(quorum::Told { accepted: None, ..told });
                at = Instant::now();
            }
            published.wait(seen, TOLD_AGAIN);
        }
    }
}

fn one_row(text: String) -> Answer {
    Answer::Rows(Rows { columns: vec![Column::text("quorum")], rows: vec![vec![Some(text)]] })
}

fn refused(code: u16, message: &str) -> ErrPacket {
    ErrPacket { code, sqlstate: "HY000".to_owned(), message: message.to_owned() }
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
