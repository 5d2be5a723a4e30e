//! The order in which transactions of several timelines are handed over.
//!
//! A timeline that begins with a fork holds again what both have, and what was handed back to its source. In the order of the newer
//! timeline they were done one after the other on a server that had just these; so it counts, and what only the older one
//! holds goes where its neighbours stand.

use super::lacked::Lacked;
use codec::gtid::{MariadbGtid, TransactionId};
use std::collections::{HashMap, HashSet};

/// What a timeline holds, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rescue) enum Step {
    /// A transaction that no older one has shown.
    New(Lacked),
    /// One that an older one has shown.
    Again(TransactionId),
}

/// What older timelines hold and what a newer one holds, in one order: that of the newer one for all that it holds, that of
/// the older ones for the rest.
pub(in crate::rescue) fn merged(older: Vec<Lacked>, newer: Vec<Step>) -> Vec<Lacked> {
    let places: HashMap<TransactionId, usize> =
        older.iter().enumerate().map(|(place, lacked)| (lacked.id, place)).collect();
    let in_both: HashSet<usize> = newer
        .iter()
        .filter_map(|step| if let Step::Again(id) = step { places.get(id).copied() } else { None })
        .collect();
    let mut older: Vec<Option<Lacked>> = older.into_iter().map(Some).collect();
    let (mut all, mut fresh, mut next) = (Vec::new(), Vec::new(), 0);
    let only_older = |older: &mut [Option<Lacked>], next: &mut usize, end: usize| {
        let places = *next..end.max(*next);
        *next = end.max(*next);
        places.filter(|place| !in_both.contains(place)).filter_map(|place| older[place].take()).collect()
    };
    for step in newer {
        match step {
            Step::New(lacked) => fresh.push(lacked),
            Step::Again(id) => {
                // What cannot be handed over, or is left out, has no place.
                let Some(&place) = places.get(&id) else { continue };
                let before = only_older(&mut older, &mut next, place);
                side_by_side(&mut all, before, std::mem::take(&mut fresh));
                all.extend(older[place].take());
            }
        }
    }
    let end = older.len();
    let rest = only_older(&mut older, &mut next, end);
    side_by_side(&mut all, rest, fresh);
    all
}

/// The older ones first, but for the numbers of one server.
fn side_by_side(all: &mut Vec<Lacked>, older: Vec<Lacked>, newer: Vec<Lacked>) {
    let mut newer = newer.into_iter().peekable();
    for lacked in older {
        while let Some(first) = newer.next_if(|first| is_earlier(&first.id, &lacked.id)) {
            all.push(first);
        }
        all.push(lacked);
    }
    all.extend(newer);
}

/// Whether a server has given the one number before the other.
fn is_earlier(one: &TransactionId, other: &TransactionId) -> bool {
    match (one, other) {
        (TransactionId::Mysql(one), TransactionId::Mysql(other)) => {
            (one.uuid, one.tag) == (other.uuid, other.tag) && one.gno < other.gno
        }
        (TransactionId::Mariadb(one), TransactionId::Mariadb(other)) => {
            (one.domain, one.server_id) == (other.domain, other.server_id) && one.sequence < other.sequence
        }
        _ => false,
    }
}

/// MariaDB: which of them stand behind a greater number of the same server in the same domain, and behind which.
pub(in crate::rescue) fn out_of_order(transactions: &[Lacked]) -> Vec<(usize, MariadbGtid)> {
    let mut newest: HashMap<(u32, u32), MariadbGtid> = HashMap::new();
    let mut found = Vec::new();
    for (place, lacked) in transactions.iter().enumerate() {
        let TransactionId::Mariadb(id) = lacked.id else { continue };
        let newest = newest.entry((id.domain, id.server_id)).or_insert(id);
        if id.sequence < newest.sequence {
            found.push((place, *newest));
        } else {
            *newest = id;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacked(id: &str) -> Lacked {
        Lacked {
            id: TransactionId::Mariadb(id.parse().unwrap()),
            timeline: String::new(),
            path: "b.000001".into(),
            at: 4,
            end: 9,
            timestamp: 0,
            changes: Vec::new(),
        }
    }

    /// GTIDs of domain 0 and server 1, or in full; those of the newer timeline that the older one has too with a +.
    fn order(older: &str, newer: &str) -> String {
        let full = |id: &str| if id.contains('-') { id.to_owned() } else { format!("0-1-{id}") };
        let older = older.split_whitespace().map(|id| lacked(&full(id))).collect();
        let newer = newer.split_whitespace().map(|id| match id.strip_prefix('+') {
            Some(id) => Step::Again(lacked(&full(id)).id),
            None => Step::New(lacked(&full(id))),
        });
        let all = merged(older, newer.collect());
        let short = |lacked: &Lacked| lacked.id.to_string().replace("0-1-", "");
        all.iter().map(short).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_both_timelines_hold_stands_in_the_order_of_the_newer_one() {
        assert_eq!(order("1 2", "3 4"), "1 2 3 4");
        assert_eq!(order("8 9 10 11", "6 7 +8 +9 +10 +11 12"), "6 7 8 9 10 11 12", "given twice and settled");
        assert_eq!(order("6 7 8 9", "+6 +7 0-2-8"), "6 7 8 9 0-2-8", "handed back in part");
        assert_eq!(order("8 9 10 11", "6 7 +10 +11"), "6 7 8 9 10 11", "some left out when handed back");
        assert_eq!(order("6 7", "+7 +6 8"), "7 6 8", "as the newer one has it");
        assert_eq!(order("6 7", "+99 8"), "6 7 8", "what is not to be handed over");
        assert_eq!(order("0-1-6 0-1-7", "0-2-6 0-2-7"), "6 7 0-2-6 0-2-7", "two servers");
        assert_eq!(order("", "5") + &order("5", ""), "55");
    }

    #[test]
    fn a_number_behind_a_greater_one_of_the_same_server_is_found() {
        let behind = |ids: &[&str]| {
            let transactions: Vec<Lacked> = ids.iter().map(|id| lacked(id)).collect();
            out_of_order(&transactions)
                .into_iter()
                .map(|(place, id)| (place, id.to_string()))
                .collect::<Vec<_>>()
        };
        assert_eq!(behind(&["0-1-5", "0-1-6", "0-2-3", "1-1-1"]), []);
        assert_eq!(behind(&["0-1-5", "0-1-9", "0-1-6"]), [(2, "0-1-9".to_owned())]);
    }
}
