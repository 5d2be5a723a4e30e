//! A row, in pieces.

use crate::{Level, SourceStatus, Topic};
use jiff::Timestamp;

/// A part of what a row says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Words.
    Text(String),
    /// A moment.
    At(Timestamp),
    /// How long ago a moment was, behind it. A page that shows moments as they are leaves it out: it would change each second.
    Ago(Timestamp),
    /// A set of GTIDs, on a line of its own; empty for none.
    Gtids(String),
    /// What follows stands on a line of its own.
    Line,
}

/// A name and what is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// A word or two.
    pub name: &'static str,
    /// The worst that the judgement says of what the row is about.
    pub level: Level,
    /// In their order; not empty.
    pub pieces: Vec<Piece>,
}

impl Row {
    pub(super) fn new(name: &'static str, level: Level) -> Row {
        Row { name, level, pieces: Vec::new() }
    }

    pub(super) fn text(mut self, text: impl Into<String>) -> Row {
        self.pieces.push(Piece::Text(text.into()));
        self
    }

    pub(super) fn at(mut self, at: Timestamp) -> Row {
        self.pieces.push(Piece::At(at));
        self
    }

    /// The moment and how long ago it was.
    pub(super) fn at_ago(self, at: Timestamp) -> Row {
        let mut row = self.at(at);
        row.pieces.push(Piece::Ago(at));
        row
    }

    pub(super) fn gtids(mut self, set: &str) -> Row {
        self.pieces.push(Piece::Gtids(set.to_owned()));
        self
    }

    pub(super) fn line(mut self, text: impl Into<String>) -> Row {
        self.pieces.push(Piece::Line);
        self.text(text)
    }
}

/// Whether commits wait for this copy, in a word.
pub fn semi_sync(source: &SourceStatus) -> &'static str {
    if source.semi_sync.active { "on" } else { "off" }
}

/// The level of what a row is about.
pub(super) fn level(source: &SourceStatus, topic: Topic) -> Level {
    source.verdict.about(topic)
}
