//! The wire form of GTID sets and tagged GTID events against another implementation, mysql_common.

use codec::gtid::{GNO_MAX, Gtid, GtidSet, Tag, Uuid, decode_gtid_tagged_event};
use mysql_common::{
    binlog::{
        BinlogCtx,
        consts::{BinlogVersion, EventType},
        events::{FormatDescriptionEvent, GtidEvent, PreviousGtidsEvent, PreviousGtidsSid},
    },
    io::ParseBuf,
    packets::{self, GnoInterval},
    proto::{MyDeserialize, MySerialize},
};
use proptest::prelude::*;

fn any_tag() -> impl Strategy<Value = Tag> {
    "[a-z_][a-z0-9_]{0,31}".prop_map(|text| text.parse().unwrap())
}

fn any_set(tag: impl Strategy<Value = Tag>) -> impl Strategy<Value = GtidSet> {
    let part = (any::<[u8; 16]>(), tag, 1..=GNO_MAX, 0..1000u64);
    prop::collection::vec(part, 0..20).prop_map(|parts| {
        let mut set = GtidSet::new();
        for (uuid, tag, start, more) in parts {
            set.insert_interval(Uuid::from_bytes(uuid), tag, start, start.saturating_add(more));
        }
        set
    })
}

fn theirs(set: &GtidSet) -> PreviousGtidsEvent<'static> {
    let mut sids: Vec<((Uuid, Tag), Vec<GnoInterval>)> = Vec::new();
    for (uuid, tag, gnos) in set.iter() {
        let interval = GnoInterval::new(*gnos.start(), gnos.end() + 1);
        match sids.last_mut() {
            Some((name, intervals)) if *name == (uuid, tag) => intervals.push(interval),
            _ => sids.push(((uuid, tag), vec![interval])),
        }
    }
    let sids = sids.into_iter().map(|((uuid, tag), intervals)| {
        let tag = (!tag.is_empty()).then(|| packets::Tag::new(tag.to_string()).unwrap());
        PreviousGtidsSid::new(*uuid.as_bytes(), tag, intervals)
    });
    PreviousGtidsEvent::new(sids.collect())
}

fn check(set: &GtidSet) -> Result<(), TestCaseError> {
    let (mut ours, mut oracle) = (Vec::new(), Vec::new());
    set.encode(&mut ours);
    theirs(set).serialize(&mut oracle);
    prop_assert_eq!(&ours, &oracle);
    let fde = FormatDescriptionEvent::new(BinlogVersion::Version4);
    let context = BinlogCtx::new(ours.len(), &fde, EventType::PREVIOUS_GTIDS_EVENT as u8);
    let read = PreviousGtidsEvent::deserialize(context, &mut ParseBuf(&ours));
    prop_assert_eq!(read.unwrap(), theirs(set));
    Ok(())
}

proptest! {
    #[test]
    fn untagged_sets(set in any_set(Just(Tag::EMPTY))) {
        check(&set)?;
    }

    #[test]
    fn tagged_sets(set in any_set(prop_oneof![Just(Tag::EMPTY), any_tag()])) {
        check(&set)?;
    }

    #[test]
    fn tagged_events(uuid: [u8; 16], tag in any_tag(), gno in 1..=GNO_MAX, length in 1u64.., immediate in 1..1u64 << 55,
                     original in 1..1u64 << 55, last_committed in 0..i64::MAX as u64, ticket: u64) {
        let mut body = Vec::new();
        GtidEvent::new_tagged(uuid, packets::Tag::new(tag.to_string()).unwrap(), gno)
            .with_last_committed(last_committed)
            .with_sequence_number(last_committed + 1)
            .with_immediate_commit_timestamp(immediate)
            .with_original_commit_timestamp(original)
            .with_tx_length(length)
            .with_immediate_server_version(90704)
            .with_original_server_version(80300)
            .with_commit_group_ticket(ticket)
            .serialize(&mut body);
        let event = decode_gtid_tagged_event(&body).unwrap();
        prop_assert_eq!(event.gtid, Gtid { uuid: Uuid::from_bytes(uuid), tag, gno });
        prop_assert_eq!(event.last_committed as u64, last_committed);
        prop_assert_eq!(event.sequence_number as u64, last_committed + 1);
        prop_assert_eq!(event.immediate_commit_timestamp, immediate);
        prop_assert_eq!(event.original_commit_timestamp, original);
        prop_assert_eq!(event.transaction_length, Some(length));
        prop_assert_eq!((event.immediate_server_version, event.original_server_version), (90704, 80300));
        prop_assert_eq!(event.commit_group_ticket, ticket);
    }
}
