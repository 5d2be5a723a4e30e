//! A course in parts, where transactions are passed over.
//!
//! MySQL is told that a GTID is executed before anything comes, so that one leg is enough. MariaDB's positions have no holes, and a server
//! without GTIDs has a position only: these are brought to just before the transaction, told that they are behind it, and go on.

use super::no_course::NoCourse;
use crate::history::{Copied, Shown, Until};
use crate::restore::begin::Begin;
use crate::restore::course::Course;
use codec::gtid::TransactionId;
use codec::{Position, ServerKind};
use source::identify::SourceIdentity;

/// A part of a course.
#[derive(Debug)]
pub(in crate::restore) struct Leg {
    /// What is applied.
    pub(in crate::restore) course: Course,
    /// What comes behind that and is passed over.
    pub(in crate::restore) passes_over: Option<Shown>,
}

/// Parts `course`, which goes from `begin` to `until`, at what it passes over.
///
/// # Errors
/// As [`Course::find`].
pub(in crate::restore) fn legs(
    copied: &Copied,
    begin: Begin<'_>,
    until: &Until,
    course: Course,
) -> Result<Vec<Leg>, NoCourse> {
    if course.skipped.is_empty() || (copied.kind == ServerKind::MySql && begin.position().is_none()) {
        return Ok(vec![Leg { course, passes_over: None }]);
    }
    let mut at = Owned::of(begin);
    let mut legs = Vec::new();
    for shown in course.skipped {
        let point = match shown.id {
            Some(id) => id.to_string(),
            None => format!("{}:{}", shown.file, shown.at),
        };
        let before = Until::Before(point.parse().expect("a GTID and a position are points"));
        let course = Course::find(copied, at.begin(), &before, &[], &mut |_, _| ())?;
        at.passes(&shown, &course);
        legs.push(Leg { course, passes_over: Some(shown) });
    }
    let course = Course::find(copied, at.begin(), until, &[], &mut |_, _| ())?;
    legs.push(Leg { course, passes_over: None });
    Ok(legs)
}

/// What the target has when it has come so far.
enum Owned {
    Gtids(Box<SourceIdentity>),
    Position(Position),
}

impl Owned {
    fn of(begin: Begin<'_>) -> Owned {
        match begin {
            Begin::Gtids(target) => Owned::Gtids(Box::new(target.clone())),
            Begin::Position(at) => Owned::Position(at.clone()),
        }
    }

    fn begin(&self) -> Begin<'_> {
        match self {
            Owned::Gtids(target) => Begin::Gtids(target),
            Owned::Position(at) => Begin::Position(at),
        }
    }

    fn passes(&mut self, shown: &Shown, course: &Course) {
        match self {
            Owned::Gtids(target) => {
                // Both are of the copy's kind.
                let _ = target.executed.union_with(&course.at_the_point);
                if let Some(id) = shown.id {
                    let _ = target.executed.insert(id);
                    if let TransactionId::Mariadb(id) = id {
                        target.applied.insert(id);
                    }
                }
            }
            Owned::Position(at) => *at = Position::new(shown.file.as_str(), shown.at + shown.size),
        }
    }
}
