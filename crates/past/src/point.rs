//! Where a point is in the line.

use crate::line::{Beside, Line, Place};
use codec::gtid::{GtidState, TransactionId};
use config::{Point, PointPlace};
use points::criteria::Criteria;
use points::transaction::Transaction;
use points::wanted_gtids::WantedGtids;
use repair::history::{Until, Watch};
use std::collections::HashSet;

/// A point in the line.
pub(crate) struct Cut {
    /// The first that is behind it.
    pub(crate) place: Place,
    /// Why what was before it is not held, so that nobody knows what happened up to there; of a time that is before the log held, in a gap, or
    /// behind the end.
    pub(crate) doubt: Option<String>,
}

/// Finds it.
///
/// # Errors
/// In words: it is not in the log, or means several places.
pub(crate) fn cut(line: &Line<'_>, until: &Until) -> Result<Cut, String> {
    let end = Place { file: line.last(), at: u64::MAX };
    let sure = |place| Ok(Cut { place, doubt: None });
    match until {
        Until::End => sure(end),
        Until::BeforeStatement(statement) => {
            let found = all(line, &statement.criteria(), &|transaction| statement.is_in(transaction))?;
            match &found[..] {
                [] => Err(format!("the log held has none: {until}")),
                [(place, id, _)] => sure(line.counted(*place, *id)?),
                several => {
                    let shown: Vec<String> = several
                        .iter()
                        .map(|(place, id, _)| {
                            id.map_or_else(
                                || format!("{}:{}", line.name(place.file), place.at),
                                |id| id.to_string(),
                            )
                        })
                        .collect();
                    Err(format!("{until} means several: {}. Name one by its GTID", shown.join(", ")))
                }
            }
        }
        Until::Executed(_) => Err(format!("{until}: a row is looked for at a GTID, a position or a time")),
        Until::Before(Point { place, .. }) | Until::After(Point { place, .. }) => {
            let is_after = matches!(until, Until::After(_));
            let wanted = match place {
                PointPlace::Time(at) => return by_time(line, until, *at),
                PointPlace::Position(at) => {
                    return match line.named(&at.file)[..] {
                        [] => Err(format!("the log held has no file {}", at.file)),
                        [file] => sure(Place { file, at: at.offset + u64::from(is_after) }),
                        _ => Err(format!(
                            "several timelines have a file {}: choose one with --timeline, or name a GTID",
                            at.file
                        )),
                    };
                }
                PointPlace::Gtids(set) => WantedGtids::Mysql(set.clone()),
                PointPlace::Mariadb(list) => WantedGtids::Mariadb(list.clone()),
            };
            let criteria = Criteria { gtids: Some(wanted.clone()), ..Criteria::default() };
            let found = all(line, &criteria, &|_| true)?;
            let ids: HashSet<TransactionId> = found.iter().filter_map(|(_, id, _)| *id).collect();
            if let Some(missing) = wanted.not_among(ids.iter()) {
                return Err(format!("the log held does not have {missing}"));
            }
            let chosen = if is_after { found.last() } else { found.first() };
            let (place, id, len) = chosen.ok_or_else(|| format!("the log held has none: {until}"))?;
            let place = line.counted(*place, *id)?;
            sure(Place { at: place.at + if is_after { (*len).max(1) } else { 0 }, ..place })
        }
    }
}

/// Each that is meant once: where it stands first, its GTID, its bytes.
fn all(
    line: &Line<'_>,
    criteria: &Criteria,
    is_meant: &dyn Fn(&Transaction) -> bool,
) -> Result<Vec<(Place, Option<TransactionId>, u64)>, String> {
    let (mut found, mut seen, mut file) = (Vec::new(), HashSet::new(), line.first());
    loop {
        line.each_copy(file, criteria, &mut |_, transaction| {
            if is_meant(transaction) && transaction.id.is_none_or(|id| seen.insert(id)) {
                found.push((Place { file, at: transaction.at }, transaction.id, transaction.size()));
            }
            true
        })?;
        match line.following(file) {
            Some(next) => file = next,
            None => return Ok(found),
        }
    }
}

fn by_time(line: &Line<'_>, until: &Until, at: i64) -> Result<Cut, String> {
    let criteria = Criteria { from: Some(at), ..Criteria::default() };
    let mut file = line.first();
    loop {
        let (mut watch, mut found) = (Watch::new(until, &GtidState::default()), None);
        let name = line.searched(file).name.clone();
        line.each_copy(file, &criteria, &mut |_, transaction| {
            if watch.ends_before(&name, transaction) {
                found = Some((transaction.at, transaction.id));
            }
            found.is_none()
        })?;
        if let Some((at, id)) = found {
            let place = Place { file, at };
            // Nothing held was committed between the edge and the point.
            let edge = match line.before(file) {
                Beside::Edge(why) if begins_with(line, place)? => {
                    Some(format!("{why}, and {until} is before that"))
                }
                _ => None,
            };
            return Ok(Cut { place: line.counted(place, id)?, doubt: edge });
        }
        match line.following(file) {
            Some(next) => file = next,
            None => break,
        }
    }
    let doubt = format!(
        "nothing that is held was committed since: what {until} means may not have been received yet"
    );
    Ok(Cut { place: Place { file: line.last(), at: u64::MAX }, doubt: Some(doubt) })
}

/// Whether a file begins with that transaction.
fn begins_with(line: &Line<'_>, place: Place) -> Result<bool, String> {
    let mut first = None;
    line.each_copy(place.file, &Criteria::default(), &mut |_, transaction| {
        first = Some(transaction.at);
        false
    })?;
    Ok(first == Some(place.at))
}
