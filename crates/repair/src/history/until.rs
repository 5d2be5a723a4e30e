//! The point that is asked for.

use super::shown::shortened;
use codec::gtid::{GtidSet, GtidState, MariadbGtid, TransactionId};
use config::{Point, PointPlace};
use points::criteria::Criteria;
use points::effects::Effects;
use points::glob::TableGlob;
use points::transaction::Transaction;
use std::fmt;

/// Where what is wanted ends; or begins.
#[derive(Debug, Clone)]
pub enum Until {
    /// Behind everything that the copy holds.
    End,
    /// The first transaction behind the point is this one, or comes at or behind this place.
    Before(Point),
    /// The last one before the point is this one, or comes at or before this place.
    After(Point),
    /// The first transaction behind the point is the only one that does this.
    BeforeStatement(Statement),
    /// The first transaction behind the point is none of these: where the log has them in another order, something of them is behind it.
    /// Of MariaDB each domain goes up to its sequence number.
    Executed(GtidState),
}

/// A statement by what it does.
#[derive(Debug, Clone)]
pub struct Statement {
    /// As it was given.
    text: String,
    /// All of these.
    effects: &'static [Effects],
    table: TableGlob,
    /// It is about a whole schema.
    is_of_schema: bool,
}

/// The words that a statement begins with, and what it does. The longest first.
const STATEMENTS: [(&str, &[Effects]); 20] = [
    ("DROP TABLE", &[Effects::DROP, Effects::OF_TABLE]),
    ("DROP VIEW", &[Effects::DROP, Effects::OF_VIEW]),
    ("DROP DATABASE", &[Effects::DROP, Effects::OF_SCHEMA]),
    ("DROP SCHEMA", &[Effects::DROP, Effects::OF_SCHEMA]),
    ("TRUNCATE TABLE", &[Effects::TRUNCATE]),
    ("TRUNCATE", &[Effects::TRUNCATE]),
    ("ALTER TABLE", &[Effects::ALTERS, Effects::OF_TABLE]),
    ("ALTER VIEW", &[Effects::ALTERS, Effects::OF_VIEW]),
    ("ALTER DATABASE", &[Effects::ALTERS, Effects::OF_SCHEMA]),
    ("ALTER SCHEMA", &[Effects::ALTERS, Effects::OF_SCHEMA]),
    ("CREATE TABLE", &[Effects::CREATES, Effects::OF_TABLE]),
    ("CREATE VIEW", &[Effects::CREATES, Effects::OF_VIEW]),
    ("CREATE DATABASE", &[Effects::CREATES, Effects::OF_SCHEMA]),
    ("CREATE SCHEMA", &[Effects::CREATES, Effects::OF_SCHEMA]),
    ("RENAME TABLE", &[Effects::RENAMES, Effects::OF_TABLE]),
    ("DELETE FROM", &[Effects::DELETE]),
    ("DELETE", &[Effects::DELETE]),
    ("UPDATE", &[Effects::UPDATE]),
    ("INSERT INTO", &[Effects::INSERT]),
    ("INSERT", &[Effects::INSERT]),
];

/// How a point is written.
const FORMS: &str = "'before DROP TABLE shop.orders', a GTID, FILE:POSITION or a time, with before (which is meant where it is left \
                     out) or after in front of it; or end";

impl Until {
    /// Reads a point. `time` reads a text that is a time, in microseconds since 1970; `None` when it is none.
    ///
    /// # Errors
    /// In words, with what a point can be.
    pub fn parse(text: &str, time: &dyn Fn(&str) -> Option<Result<i64, String>>) -> Result<Until, String> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("end") {
            return Ok(Until::End);
        }
        let (is_after, place) = match text.split_once(char::is_whitespace) {
            Some((word, rest)) if word.eq_ignore_ascii_case("before") => (false, rest.trim()),
            Some((word, rest)) if word.eq_ignore_ascii_case("after") => (true, rest.trim()),
            _ => (false, text),
        };
        if let Some(statement) = Statement::parse(place)? {
            if is_after {
                return Err(format!(
                    "{text:?}: a point is before a statement, never after it; name a GTID for after"
                ));
            }
            return Ok(Until::BeforeStatement(statement));
        }
        let point = match time(place) {
            Some(micros) => Point::at_time(place, micros?),
            None => place.parse().map_err(|_| format!("{text:?} is no point: write {FORMS}"))?,
        };
        Ok(if is_after { Until::After(point) } else { Until::Before(point) })
    }
}

impl Statement {
    /// `None` when it begins with no statement.
    fn parse(text: &str) -> Result<Option<Statement>, String> {
        let upper = text.to_ascii_uppercase();
        let words = upper.split_whitespace().collect::<Vec<_>>().join(" ");
        let Some((start, effects)) =
            STATEMENTS.iter().find(|(start, _)| words.starts_with(&format!("{start} ")))
        else {
            return Ok(None);
        };
        let name = text.split_whitespace().nth(start.split(' ').count()).unwrap_or_default();
        let name = name.trim_end_matches(';').replace('`', "");
        let of_schema = start.ends_with("DATABASE") || start.ends_with("SCHEMA");
        let is_whole = if of_schema { !name.contains('.') } else { name.contains('.') };
        if !is_whole {
            let form = if of_schema { "DROP DATABASE shop" } else { "DROP TABLE shop.orders" };
            return Err(format!("{text:?}: name what it is about, as in 'before {form}'"));
        }
        let pattern = if of_schema { format!("{name}.*") } else { name };
        let table = TableGlob::parse(&pattern).map_err(|why| format!("{text:?}: {why}"))?;
        Ok(Some(Statement { text: text.to_owned(), effects, table, is_of_schema: of_schema }))
    }

    /// What finds the transactions that may do that.
    pub fn criteria(&self) -> Criteria {
        Criteria { tables: vec![self.table.clone()], ..Criteria::default() }
    }

    /// Whether a transaction does that.
    pub fn is_in(&self, transaction: &Transaction) -> bool {
        let is_meant = |change: &points::transaction::TableChange| {
            self.effects.iter().all(|effect| change.effects.contains(*effect))
                && self.table.matches(&change.name)
                && (!self.is_of_schema || change.name.table.is_empty())
        };
        transaction.tables.iter().any(is_meant)
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Until::End => f.write_str("the end of the copy"),
            Until::Before(point) => write!(f, "before {point}"),
            Until::After(point) => write!(f, "after {point}"),
            Until::BeforeStatement(statement) => write!(f, "before {}", statement.text),
            Until::Executed(set) => write!(f, "exactly {}", shortened(&set.to_line())),
        }
    }
}

/// Tells of one transaction after the other, in the order of the log, whether it is the first behind the point.
#[derive(Debug)]
pub struct Watch<'a> {
    until: &'a Until,
    /// Of a point after GTIDs, those that were not seen yet.
    left: Option<Left>,
    /// A transaction of the file of a position was seen.
    has_seen_file: bool,
}

#[derive(Debug)]
enum Left {
    Mysql(GtidSet),
    Mariadb(Vec<MariadbGtid>),
}

impl<'a> Watch<'a> {
    /// For a walk that begins behind `executed`.
    pub fn new(until: &'a Until, executed: &GtidState) -> Watch<'a> {
        let left = match until {
            Until::After(Point { place: PointPlace::Gtids(set), .. }) => match executed {
                GtidState::Mysql(executed) => Some(Left::Mysql(set.subtract(executed))),
                GtidState::Mariadb(_) => Some(Left::Mysql(set.clone())),
            },
            Until::After(Point { place: PointPlace::Mariadb(list), .. }) => {
                let is_left = |id: &&MariadbGtid| !executed.contains(&TransactionId::Mariadb(**id));
                Some(Left::Mariadb(list.iter().filter(is_left).copied().collect()))
            }
            _ => None,
        };
        Watch { until, left, has_seen_file: false }
    }

    /// Whether the point is before `transaction`, of `file`.
    pub fn ends_before(&mut self, file: &str, transaction: &Transaction) -> bool {
        let time = transaction.committed.micros;
        match self.until {
            Until::End => false,
            Until::BeforeStatement(statement) => statement.is_in(transaction),
            Until::Executed(set) => transaction.id.is_some_and(|id| !is_of(set, id)),
            Until::Before(point) => match (&point.place, transaction.id) {
                (PointPlace::Gtids(set), Some(TransactionId::Mysql(id))) => set.contains(&id),
                (PointPlace::Mariadb(list), Some(TransactionId::Mariadb(id))) => {
                    list.iter().any(|one| one.domain == id.domain && id.sequence >= one.sequence)
                }
                (PointPlace::Position(at), _) => self.is_behind(&at.file, file, transaction.at >= at.offset),
                (PointPlace::Time(at), _) => time >= *at,
                _ => false,
            },
            Until::After(point) => {
                if let Some(left) = &mut self.left {
                    return left.ends_before(transaction.id);
                }
                match &point.place {
                    PointPlace::Position(at) => self.is_behind(&at.file, file, transaction.at > at.offset),
                    PointPlace::Time(at) => time > *at,
                    _ => false,
                }
            }
        }
    }

    /// Behind the end of a position's file everything is behind the position.
    fn is_behind(&mut self, wanted: &str, file: &str, is_behind_in_file: bool) -> bool {
        if wanted != file {
            return self.has_seen_file;
        }
        self.has_seen_file = true;
        is_behind_in_file
    }

    /// The end of the copy has come without the point. Whether everything that was to be applied was seen.
    pub(crate) fn is_reached_by_end(&self) -> bool {
        match (self.until, &self.left) {
            (Until::End | Until::Executed(_), _) => true,
            (Until::After(_), Some(Left::Mysql(set))) => set.is_empty(),
            (Until::After(_), Some(Left::Mariadb(list))) => list.is_empty(),
            _ => false,
        }
    }
}

/// Whether a state has a transaction, where one of MariaDB was read from a position, which names one server of each domain.
fn is_of(set: &GtidState, id: TransactionId) -> bool {
    match (set, id) {
        (GtidState::Mariadb(state), TransactionId::Mariadb(id)) => {
            state.positions().any(|last| last.domain == id.domain && id.sequence <= last.sequence)
        }
        _ => set.contains(&id),
    }
}

impl Left {
    fn ends_before(&mut self, id: Option<TransactionId>) -> bool {
        match (self, id) {
            (Left::Mysql(set), Some(TransactionId::Mysql(id))) => {
                if set.is_empty() {
                    return true;
                }
                let mut one = GtidSet::new();
                one.insert(id);
                *set = set.subtract(&one);
                false
            }
            (Left::Mariadb(list), Some(TransactionId::Mariadb(id))) => {
                if list.is_empty() {
                    return true;
                }
                list.retain(|one| one.domain != id.domain || id.sequence < one.sequence);
                false
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Until, String> {
        Until::parse(text, &|text| {
            text.contains('T')
                .then(|| {
                    text.parse::<jiff::Timestamp>()
                        .map(|at| at.as_microsecond())
                        .map_err(|_| "no time".to_owned())
                })
                .filter(Result::is_ok)
        })
    }

    #[test]
    fn points_are_read_in_all_their_forms() {
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        for (text, shown) in [
            ("end", "the end of the copy".to_owned()),
            ("before DROP TABLE shop.orders", "before DROP TABLE shop.orders".to_owned()),
            ("drop   table `shop`.`orders`;", "before drop   table `shop`.`orders`;".to_owned()),
            ("before drop database shop", "before drop database shop".to_owned()),
            (&format!("{uuid}:7"), format!("before {uuid}:7")),
            (&format!("after {uuid}:7"), format!("after {uuid}:7")),
            ("AFTER 0-1-7", "after 0-1-7".to_owned()),
            ("mysql-bin.000007:1234", "before mysql-bin.000007:1234".to_owned()),
            ("before 2026-11-23T06:30:00Z", "before 2026-11-23T06:30:00Z".to_owned()),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn what_is_no_point_is_refused_with_what_one_is() {
        for (text, words) in [
            ("yesterday", "is no point: write"),
            ("before DROP TABLE orders", "as in 'before DROP TABLE shop.orders'"),
            ("DROP DATABASE shop.orders", "as in 'before DROP DATABASE shop'"),
            ("after DROP TABLE shop.orders", "name a GTID for after"),
            ("", "is no point"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
