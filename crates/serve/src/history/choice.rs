//! Which events of a file a reader gets.
//!
//! A reader by file and position gets all of them. One by GTID gets no transaction that it has: MySQL says so by a set,
//! MariaDB by the last transaction of each domain ([`MariadbChoice`]).

use super::mariadb_choice::MariadbChoice;
use super::seen::{After, Seen, Verdict};
use crate::dump::bound::Bound;
use crate::dump::refusal::Refusal;
use codec::event::{EventType, GtidEvent};
use codec::gtid::{Gtid, GtidSet, TransactionId};

/// The choice for one dump.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) rule: Rule,
    /// What holds the dump back; `None` for nothing.
    pub(crate) bound: Option<Bound>,
}

/// What it goes by.
#[derive(Debug)]
pub(crate) enum Rule {
    /// Everything.
    All,
    /// Not what a reader of MySQL has.
    Mysql(MysqlChoice),
    /// As MariaDB chooses, by GTID or by position.
    Mariadb(Box<MariadbChoice>),
}

impl Choice {
    /// Whether everything is sent, so that no event need be looked at.
    pub(crate) fn is_all(&self) -> bool {
        matches!(self.rule, Rule::All) && self.bound.is_none()
    }

    /// Whether an event of this type must be in memory for [`Choice::decide`], up to `PEEK_BYTES_MAX`.
    pub(crate) fn looks_into(&self, event_type: EventType) -> bool {
        let is_gtid = GtidEvent::is_gtid(event_type);
        match &self.rule {
            Rule::All => is_gtid && self.bound.is_some(),
            Rule::Mysql(_) => is_gtid,
            Rule::Mariadb(choice) => is_gtid || choice.looks_into(event_type),
        }
    }

    /// Decides about the next event.
    ///
    /// # Errors
    /// What the reader cannot be sent.
    pub(crate) fn decide(&mut self, seen: &Seen<'_>) -> Result<Verdict, Refusal> {
        let is_gtid = GtidEvent::is_gtid(seen.header.event_type);
        let gtid = match is_gtid && !self.is_all() {
            true => Some(GtidEvent::parse(&seen.header, seen.bytes).map_err(|_| Refusal::Bogus)?),
            false => None,
        };
        if let (Some(bound), Some(gtid)) = (&mut self.bound, &gtid)
            && let Some(verdict) = bound.holds_back(gtid, seen, self.rule.leaves_out(gtid))
        {
            return Ok(verdict);
        }
        let verdict = match &mut self.rule {
            Rule::All => Verdict::Send,
            Rule::Mysql(choice) => choice.decide(seen, gtid.as_ref())?,
            Rule::Mariadb(choice) => choice.decide(seen, gtid.as_ref())?,
        };
        if let (Some(bound), Some(gtid), Verdict::Send) = (&mut self.bound, &gtid, verdict) {
            bound.sent(gtid);
        }
        Ok(verdict)
    }

    /// What follows the event that was decided about last.
    pub(crate) fn after(&mut self, seen: &Seen<'_>) -> After {
        match &mut self.rule {
            Rule::Mariadb(choice) => choice.after(seen),
            _ => After::default(),
        }
    }
}

impl Rule {
    /// Whether the reader has the transaction.
    fn leaves_out(&self, gtid: &GtidEvent) -> bool {
        match (self, gtid.id) {
            (Rule::Mysql(choice), Some(TransactionId::Mysql(id))) => choice.leaves_out(&id),
            (Rule::Mariadb(choice), Some(TransactionId::Mariadb(id))) => choice.leaves_out(id),
            _ => false,
        }
    }
}

/// For a reader of MySQL by GTID, in one file.
#[derive(Debug)]
pub(crate) struct MysqlChoice {
    /// What the reader has of this file and what follows, or is to get from another one.
    has: GtidSet,
    /// How many of those are still to come. At 0 nothing is left out any more.
    outstanding: u64,
    /// The present transaction is left out.
    skips: bool,
}

impl MysqlChoice {
    /// For a file before which `before` was executed, and a reader that has `has`.
    pub(crate) fn new(has: &GtidSet, before: Option<&GtidSet>) -> MysqlChoice {
        // A history has each number once.
        let has = before.map_or_else(|| has.clone(), |before| has.subtract(before));
        MysqlChoice { outstanding: has.len(), has, skips: false }
    }

    fn leaves_out(&self, gtid: &Gtid) -> bool {
        self.outstanding > 0 && self.has.contains(gtid)
    }

    fn decide(&mut self, seen: &Seen<'_>, gtid: Option<&GtidEvent>) -> Result<Verdict, Refusal> {
        match (seen.header.event_type, gtid) {
            (EventType::ANONYMOUS_GTID, _) => {
                return Err(Refusal::Anonymous { file: seen.file.to_owned(), position: seen.start });
            }
            (_, Some(gtid)) => {
                self.skips = matches!(gtid.id, Some(TransactionId::Mysql(id)) if self.leaves_out(&id));
                self.outstanding -= u64::from(self.skips);
            }
            (EventType::ROTATE, _) => self.skips = false,
            _ => {}
        }
        Ok(if self.skips { Verdict::Skip } else { Verdict::Send })
    }
}
