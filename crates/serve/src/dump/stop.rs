//! Where a dump stops although the log goes on.

use codec::event::GtidEvent;
use codec::gtid::{GtidSet, GtidState, MariadbGtid, TransactionId};
use codec::{Position, ServerKind};
use config::{Point, PointPlace};
use jiff::Timestamp;
use std::fmt;

/// Where a dump stops. It is looked at where a transaction begins, so that no reader is left with half of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopAt {
    /// Before the first transaction of the set, which is not sent any more (`SQL_BEFORE_GTIDS`).
    BeforeGtids(GtidSet),
    /// When the last transaction of the set has been sent (`SQL_AFTER_GTIDS`). What the reader had before counts as sent.
    AfterGtids(GtidSet),
    /// Before the first transaction that is one of these, or comes behind it in its domain.
    BeforeMariadb(Vec<MariadbGtid>),
    /// When each of these has been sent, or what comes behind it in its domain is about to be.
    AfterMariadb(Vec<MariadbGtid>),
    /// Before the first transaction that begins there or later.
    Position(Position),
    /// Before the first transaction that begins later.
    AfterPosition(Position),
    /// Before the first transaction that was committed at this moment or later, in microseconds since 1970.
    BeforeTime(i64),
    /// Before the first transaction that was committed later.
    AfterTime(i64),
}

impl StopAt {
    /// What a point means on a source of this kind.
    ///
    /// # Errors
    /// In words, for GTIDs of the other kind of server.
    pub(crate) fn of(point: &Point, is_before: bool, kind: ServerKind) -> Result<StopAt, String> {
        let wrong = |whose: &str| Err(format!("{point} names GTIDs of {whose}, and the source is {kind}"));
        Ok(match (&point.place, is_before) {
            (PointPlace::Gtids(_), _) if kind == ServerKind::MariaDb => return wrong("MySQL"),
            (PointPlace::Mariadb(_), _) if kind == ServerKind::MySql => return wrong("MariaDB"),
            (PointPlace::Gtids(set), true) => StopAt::BeforeGtids(set.clone()),
            (PointPlace::Gtids(set), false) => StopAt::AfterGtids(set.clone()),
            (PointPlace::Mariadb(list), true) => StopAt::BeforeMariadb(list.clone()),
            (PointPlace::Mariadb(list), false) => StopAt::AfterMariadb(list.clone()),
            (PointPlace::Position(at), true) => StopAt::Position(at.clone()),
            (PointPlace::Position(at), false) => StopAt::AfterPosition(at.clone()),
            (PointPlace::Time(micros), true) => StopAt::BeforeTime(*micros),
            (PointPlace::Time(micros), false) => StopAt::AfterTime(*micros),
        })
    }

    /// Whether what the reader has must be known.
    pub(crate) fn is_of_gtids(&self) -> bool {
        matches!(
            self,
            StopAt::BeforeGtids(_)
                | StopAt::AfterGtids(_)
                | StopAt::BeforeMariadb(_)
                | StopAt::AfterMariadb(_)
        )
    }

    /// The file of a position.
    pub(crate) fn file(&self) -> Option<&str> {
        match self {
            StopAt::Position(at) | StopAt::AfterPosition(at) => Some(&at.file),
            _ => None,
        }
    }

    /// What of it is not in a history that holds these GTIDs; `None` when nothing is missing.
    pub(crate) fn not_in(&self, held: &GtidState) -> Option<String> {
        let missing = match (self, held) {
            (StopAt::BeforeGtids(set) | StopAt::AfterGtids(set), GtidState::Mysql(held)) => {
                set.subtract(held).to_line()
            }
            (StopAt::BeforeMariadb(list) | StopAt::AfterMariadb(list), GtidState::Mariadb(held)) => {
                let lacks = |gtid: &&MariadbGtid| !held.contains(gtid);
                list.iter().filter(lacks).map(ToString::to_string).collect::<Vec<_>>().join(",")
            }
            _ => String::new(),
        };
        Some(missing).filter(|missing| !missing.is_empty())
    }
}

impl fmt::Display for StopAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |list: &[MariadbGtid]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let time = |micros: i64| {
            Timestamp::from_microsecond(micros).map_or_else(|_| "?".to_owned(), |at| at.to_string())
        };
        match self {
            StopAt::BeforeGtids(set) => write!(f, "before {}", set.to_line()),
            StopAt::AfterGtids(set) => write!(f, "after {}", set.to_line()),
            StopAt::BeforeMariadb(gtids) => write!(f, "before {}", list(gtids)),
            StopAt::AfterMariadb(gtids) => write!(f, "after {}", list(gtids)),
            StopAt::Position(at) => write!(f, "before {at}"),
            StopAt::AfterPosition(at) => write!(f, "after {at}"),
            StopAt::BeforeTime(micros) => write!(f, "before {}", time(*micros)),
            StopAt::AfterTime(micros) => write!(f, "after {}", time(*micros)),
        }
    }
}

/// What a reader has when its dump begins, as far as the stop needs to know.
#[derive(Debug, Clone)]
pub(crate) enum Had {
    Mysql(GtidSet),
    /// The last of each domain.
    Mariadb(Vec<MariadbGtid>),
}

/// Watches over one dump.
#[derive(Debug)]
pub(crate) struct StopWatch {
    at: StopAt,
    /// The point was before the place at which the dump goes on.
    is_past: bool,
    /// Of [`StopAt::AfterGtids`], how many are still to be sent.
    outstanding: u64,
    /// Of [`StopAt::AfterMariadb`], those that are still to be sent.
    left: Vec<MariadbGtid>,
}

impl StopWatch {
    /// For a dump that begins behind `had`.
    pub(crate) fn new(at: StopAt, had: &Had) -> StopWatch {
        let has = |gtid: &MariadbGtid| match had {
            Had::Mariadb(list) => {
                list.iter().any(|last| last.domain == gtid.domain && last.sequence >= gtid.sequence)
            }
            Had::Mysql(_) => false,
        };
        let (mut is_past, mut outstanding, mut left) = (false, u64::MAX, Vec::new());
        match (&at, had) {
            (StopAt::BeforeGtids(set), Had::Mysql(had)) => is_past = !set.intersect(had).is_empty(),
            (StopAt::AfterGtids(set), Had::Mysql(had)) => outstanding = set.subtract(had).len(),
            (StopAt::BeforeMariadb(list), _) => is_past = list.iter().any(has),
            (StopAt::AfterMariadb(list), _) => {
                left = list.iter().filter(|gtid| !has(gtid)).copied().collect();
            }
            _ => {}
        }
        StopWatch { at, is_past, outstanding, left }
    }

    /// A file begins. `is_behind` says of a file's name whether it comes before that.
    pub(crate) fn begin_file(&mut self, is_behind: impl Fn(&str) -> bool) {
        self.is_past |= self.at.file().is_some_and(is_behind);
    }

    /// Whether the event, which begins a transaction at `start` of `file` that was committed at `time`, in microseconds since
    /// 1970, is not to be sent any more.
    pub(crate) fn ends_before(&mut self, gtid: &GtidEvent, file: &str, start: u64, time: i64) -> bool {
        if self.is_past {
            return true;
        }
        match (&self.at, gtid.id) {
            (StopAt::BeforeGtids(set), id) => is_in(set, id),
            (StopAt::AfterGtids(_), _) => self.outstanding == 0,
            (StopAt::BeforeMariadb(list), Some(TransactionId::Mariadb(id))) => {
                list.iter().any(|gtid| gtid.domain == id.domain && id.sequence >= gtid.sequence)
            }
            (StopAt::AfterMariadb(_), id) => {
                if let Some(TransactionId::Mariadb(id)) = id {
                    self.left.retain(|gtid| gtid.domain != id.domain || id.sequence <= gtid.sequence);
                }
                self.left.is_empty()
            }
            (StopAt::BeforeMariadb(_), _) => false,
            (StopAt::Position(at), _) => *at.file == *file && start >= at.offset,
            (StopAt::AfterPosition(at), _) => *at.file == *file && start > at.offset,
            (StopAt::BeforeTime(stop), _) => time >= *stop,
            (StopAt::AfterTime(stop), _) => time > *stop,
        }
    }

    /// The transaction that the event begins is sent.
    pub(crate) fn sent(&mut self, gtid: &GtidEvent) {
        match (&self.at, gtid.id) {
            (StopAt::AfterGtids(set), id) if is_in(set, id) => {
                self.outstanding = self.outstanding.saturating_sub(1);
            }
            (StopAt::AfterMariadb(_), Some(TransactionId::Mariadb(id))) => {
                self.left.retain(|gtid| gtid.domain != id.domain || id.sequence < gtid.sequence);
            }
            _ => {}
        }
    }

    /// Whether everything that was wanted has been sent, outside any transaction.
    pub(crate) fn is_done(&self) -> bool {
        match self.at {
            StopAt::AfterMariadb(_) => self.left.is_empty(),
            _ => self.is_past || self.outstanding == 0,
        }
    }
}

fn is_in(set: &GtidSet, id: Option<TransactionId>) -> bool {
    matches!(id, Some(TransactionId::Mysql(gtid)) if set.contains(&gtid))
}
