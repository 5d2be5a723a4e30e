//! A transaction that is not to be applied, as it is named by hand.

use crate::history::Shown;
use codec::gtid::TransactionId;
use codec::{Position, ServerKind};
use points::transaction::Transaction;
use std::fmt;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Skip {
    /// The one of this GTID.
    Id(TransactionId),
    /// The first of that file that begins there or later: where the target has no GTIDs, its error names such a place.
    At(Position),
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Skip::Id(id) => id.fmt(f),
            Skip::At(at) => at.fmt(f),
        }
    }
}

impl Skip {
    /// Reads it. A server without GTIDs has positions only, and one with GTIDs only these.
    ///
    /// # Errors
    /// In words.
    pub fn parse(text: &str, kind: ServerKind, has_gtids: bool) -> Result<Skip, String> {
        let text = text.trim();
        let told = |what: &str| format!("--skip {text}: name {what}");
        if !has_gtids {
            let position = text.parse::<config::Point>().ok().and_then(|point| match point.place {
                config::PointPlace::Position(at) => Some(Skip::At(at)),
                _ => None,
            });
            return position.ok_or_else(|| {
                told("a transaction by where it begins, as FILE:POSITION: the target has no GTIDs")
            });
        }
        let id = match kind {
            ServerKind::MySql => text.parse().map(TransactionId::Mysql),
            ServerKind::MariaDb => text.parse().map(TransactionId::Mariadb),
        };
        id.map(Skip::Id).map_err(|error| format!("--skip {text}: {error}"))
    }

    /// Whether `transaction`, of `file`, is meant.
    pub(in crate::restore) fn is_meant(&self, file: &str, transaction: &Transaction) -> bool {
        match self {
            Skip::Id(id) => transaction.id == Some(*id),
            Skip::At(at) => *at.file == *file && transaction.at >= at.offset,
        }
    }

    /// Whether it was found as `shown`.
    pub(in crate::restore) fn is_shown(&self, shown: &Shown) -> bool {
        match self {
            Skip::Id(id) => shown.id == Some(*id),
            Skip::At(at) => *at.file == *shown.file && shown.at >= at.offset,
        }
    }
}
