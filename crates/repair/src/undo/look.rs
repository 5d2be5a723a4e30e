//! Which rows are not as they were left: read in batches, by a snapshot and without locks, before anything is changed.

use super::inverse::{Inverse, Step};
use super::script::begin_session;
use std::collections::{BTreeSet, HashMap};
use wire::{Connection, WireError};

/// So many rows are asked for in one statement.
const ROWS_AT_ONCE: usize = 100;

/// What must be so at the server, and for which step.
#[derive(Debug)]
struct Expected<'a> {
    /// Number of the step, in the order of the script.
    step: usize,
    table: &'a str,
    condition: &'a str,
    /// So many rows at least; 0 stands for none at all.
    rows: u64,
}

/// What steps need of others and of the server.
#[derive(Debug, Default)]
struct Plan<'a> {
    expected: Vec<Expected<'a>>,
    /// A step, and an earlier one that makes its row, or its key free.
    follows: Vec<(usize, usize)>,
}

/// The numbers of the steps, in the order of the script and from 0 on, that cannot be taken back: their row is another one now, or is
/// gone, or one with its key is there, or they need another one of these.
///
/// # Errors
/// When the server cannot be asked.
pub(super) fn changed(connection: &mut Connection, inverse: &Inverse) -> Result<BTreeSet<usize>, String> {
    let steps: Vec<&Step> = inverse.in_order().collect();
    begin_session(connection)?;
    read(connection, plan(&steps), inverse.bytes_at_once()).map_err(|error| error.to_string())
}

fn read(
    connection: &mut Connection,
    plan: Plan<'_>,
    bytes_at_once: usize,
) -> Result<BTreeSet<usize>, WireError> {
    // One state of all rows. A SERIALIZABLE session would lock them.
    connection.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
    connection.query("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")?;
    let mut changed = BTreeSet::new();
    let mut rest = plan.expected.as_slice();
    while !rest.is_empty() {
        let (mut sql, mut count) = ("SELECT ".to_owned(), 0);
        for one in rest.iter().take(ROWS_AT_ONCE) {
            if count > 0 && sql.len() + one.condition.len() > bytes_at_once {
                break;
            }
            let comma = if count > 0 { ", " } else { "" };
            sql +=
                &format!("{comma}(SELECT COUNT(*) FROM {} WHERE {}) AS a{count}", one.table, one.condition);
            count += 1;
        }
        let answer = connection.query(&sql)?;
        for (at, one) in rest[..count].iter().enumerate() {
            let there = answer.get(0, &format!("a{at}")).and_then(|text| text.parse::<u64>().ok());
            let is_so = there.is_some_and(|there| if one.rows == 0 { there == 0 } else { there >= one.rows });
            if !is_so {
                changed.insert(one.step);
            }
        }
        rest = &rest[count..];
    }
    connection.query("COMMIT")?;
    for (step, earlier) in plan.follows {
        if changed.contains(&earlier) {
            changed.insert(step);
        }
    }
    Ok(changed)
}

/// A row that several transactions changed is looked for once: what they made of it in between is nowhere.
fn plan<'a>(steps: &[&'a Step]) -> Plan<'a> {
    let mut plan = Plan::default();
    // By what is in a row, and by a key: the steps that make such a row, or set such a key free.
    let (mut made, mut freed) = (HashMap::<_, Vec<usize>>::new(), HashMap::new());
    let mut needed = HashMap::new();
    for (number, step) in steps.iter().enumerate() {
        if let Some(condition) = step.condition() {
            let row = (step.table.as_str(), step.needs);
            match made.get_mut(&row).and_then(Vec::pop) {
                Some(earlier) => plan.follows.push((number, earlier)),
                None => {
                    let rows = needed.entry(row).or_insert(0_u64);
                    *rows += 1;
                    plan.expected.push(Expected { step: number, table: &step.table, condition, rows: *rows });
                }
            }
        }
        if let Some(key) = &step.frees {
            freed.insert((step.table.as_str(), key.as_str()), number);
        }
        if let Some(key) = &step.takes {
            match freed.remove(&(step.table.as_str(), key.as_str())) {
                Some(earlier) if earlier == number => {}
                Some(earlier) => plan.follows.push((number, earlier)),
                None => {
                    plan.expected.push(Expected {
                        step: number,
                        table: &step.table,
                        condition: key,
                        rows: 0,
                    });
                }
            }
        }
        if let Some(makes) = step.makes {
            made.entry((step.table.as_str(), Some(makes))).or_default().push(number);
        }
    }
    plan
}
