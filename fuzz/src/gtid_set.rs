//! GTID sets and tagged GTID events from arbitrary bytes and text.
//!
//! First byte: which decoder. What a decoder accepts must survive being written and read again, in every form.

use codec::gtid::{Gtid, GtidSet, MariadbGtidState, decode_gtid_tagged_event};

/// Decodes what follows the first byte.
pub fn run(data: &[u8]) {
    let Some((which, data)) = data.split_first() else { return };
    match which % 6 {
        0 => drop(GtidSet::decode(data).map(|set| mysql(&set))),
        1 => drop(std::str::from_utf8(data).map(|text| text.parse().map(|set| mysql(&set)))),
        2 => drop(MariadbGtidState::decode_gtid_list(data).map(|state| mariadb(&state))),
        3 => drop(std::str::from_utf8(data).map(|text| text.parse().map(|state| mariadb(&state)))),
        4 => tagged_event(data),
        _ => two_sets(data),
    }
}

fn mysql(set: &GtidSet) {
    let mut wire = Vec::new();
    set.encode(&mut wire);
    assert_eq!(GtidSet::decode(&wire).as_ref(), Ok(set), "wire form");
    assert_eq!(set.to_string().parse::<GtidSet>().as_ref(), Ok(set), "text form");
    assert_eq!(set.to_line().parse::<GtidSet>().as_ref(), Ok(set), "text on one line");
    assert_eq!(set.is_empty(), set.iter().next().is_none());
    assert!(set.contains_set(set));
    assert!(set.subtract(set).is_empty());
    assert_eq!(&set.intersect(set), set);
    let mut rebuilt = GtidSet::new();
    for (uuid, tag, numbers) in set.iter() {
        let first = Gtid::new(uuid, tag, *numbers.start()).expect("in range");
        assert!(set.contains(&first));
        assert_eq!(first.to_string().parse(), Ok(first));
        assert!(
            rebuilt.insert_interval(uuid, tag, *numbers.start(), *numbers.end()),
            "intervals do not overlap"
        );
    }
    assert_eq!(&rebuilt, set);
}

fn mariadb(state: &MariadbGtidState) {
    let mut wire = Vec::new();
    state.encode_gtid_list(&mut wire);
    assert_eq!(MariadbGtidState::decode_gtid_list(&wire).as_ref(), Ok(state), "wire form");
    assert_eq!(state.binlog_state().parse().as_ref(), Ok(state), "text of the whole state");
    let mut rebuilt = MariadbGtidState::new();
    for gtid in state.list() {
        assert!(state.contains(&gtid));
        rebuilt.insert(gtid);
    }
    assert_eq!(&rebuilt, state);
    assert!(state.contains_state(state));
    assert!(state.subtract(state).is_empty());
    let mut joined = state.clone();
    joined.union_with(state);
    assert_eq!(&joined, state);
    let position: MariadbGtidState = state.position().parse().expect("a position can be read");
    assert!(state.contains_state(&position));
    assert!(position.positions().eq(state.positions()));
}

fn tagged_event(data: &[u8]) {
    let Ok(event) = decode_gtid_tagged_event(data) else { return };
    let gtid = event.gtid;
    assert_eq!(Gtid::new(gtid.uuid, gtid.tag, gtid.gno).as_ref(), Ok(&gtid), "the number is in range");
    assert_eq!(gtid.to_string().parse(), Ok(gtid));
    mysql(&GtidSet::from_iter([gtid]));
}

/// Text of two sets, a zero byte between them: the algebra must agree with itself.
fn two_sets(data: &[u8]) {
    let mut parts =
        data.splitn(2, |byte| *byte == 0).map(|part| std::str::from_utf8(part).unwrap_or_default());
    let mut next = || parts.next().unwrap_or_default().parse::<GtidSet>().unwrap_or_default();
    let (a, b) = (next(), next());
    let mut union = a.clone();
    union.union_with(&b);
    let (only_a, only_b, both) = (a.subtract(&b), b.subtract(&a), a.intersect(&b));
    assert!(union.contains_set(&a) && union.contains_set(&b));
    assert_eq!(both, b.intersect(&a));
    assert!(only_a.intersect(&b).is_empty());
    let mut joined = only_a;
    joined.union_with(&both);
    assert_eq!(joined, a);
    joined.union_with(&only_b);
    assert_eq!(joined, union);
    for set in [&union, &both] {
        mysql(set);
    }
}
