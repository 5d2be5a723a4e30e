//! The metrics of the port for readers.
//!
//! A reader is named by its source, account, address and `server_id`, not by its connection: a replica that comes again goes on
//! with its series. There are as many series as readers at a time, and never more than [`SERIES_MAX`]; who is gone has none.

use super::families::{counter, counters, gauge, gauges};
use codec::BinlogName;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Unit;
use status::{ReaderStatus, ServeStatus, SlotStatus};
use std::collections::BTreeMap;
use std::fmt::Result;

/// Readers with series of their own. The counts of the port are of all.
const SERIES_MAX: usize = 500;

/// What names a reader.
type Labels = [(&'static str, String); 4];

/// What is shown of those with the same name, who are one as a rule.
#[derive(Debug, Default)]
struct Shown {
    behind_bytes: Option<u64>,
    behind_seconds: Option<u64>,
    /// Of the one that is behind most.
    place: Option<(u64, u64)>,
    sent_bytes: u64,
}

/// Everything about the port and who reads.
pub(crate) fn encode(encoder: &mut DescriptorEncoder, status: &ServeStatus) -> Result {
    let help = "Connections of readers, with those that have not logged in";
    gauge(encoder, "binlogd_serve_connections", help, status.connections)?;
    let help = "How many readers may be logged in at a time";
    gauge(encoder, "binlogd_serve_max_connections", help, status.max_connections.into())?;
    let help = "Connections of readers that came, with those that were refused";
    counter(encoder, "binlogd_serve_accepted_connections", None, help, status.counters.accepted)?;
    let refused = status.counters.refused.iter();
    let refused = refused.map(|(reason, count)| ([("reason", reason.as_str())], *count));
    let help = "Connections of readers that did not get as far as a statement, by why";
    counters(encoder, "binlogd_serve_refused_connections", None, help, refused)?;
    let help = "Logins of readers that were refused: a wrong user, password or database";
    counter(encoder, "binlogd_serve_failed_logins", None, help, status.counters.failed_logins)?;
    let help = "Bytes sent in dumps, framing included, to all readers since the start";
    counter(encoder, "binlogd_serve_sent", Some(&Unit::Bytes), help, status.counters.sent_bytes)?;
    let dumps = || status.readers.iter().filter(|reader| reader.dumps());
    let mut by_source: BTreeMap<&str, u64> = BTreeMap::new();
    dumps().for_each(|reader| *by_source.entry(&reader.source).or_default() += 1);
    let by_source = by_source.into_iter().map(|(source, count)| ([("source", source)], count));
    gauges(encoder, "binlogd_readers", None, "Readers that read binary logs now", by_source)?;
    encode_readers(encoder, &shown(dumps()))?;
    encode_slots(encoder, &status.slots)
}

fn encode_slots(encoder: &mut DescriptorEncoder, slots: &[SlotStatus]) -> Result {
    fn each<'a>(
        slots: &'a [SlotStatus],
        value: impl Fn(&SlotStatus) -> Option<u64> + 'a,
    ) -> impl Iterator<Item = ([(&'static str, &'a str); 2], u64)> + 'a {
        let labels = |slot: &'a SlotStatus| [("source", slot.source.as_str()), ("slot", slot.name.as_str())];
        slots.iter().take(SERIES_MAX).filter_map(move |slot| Some((labels(slot), value(slot)?)))
    }
    let help = "Bytes from the place of the slot to the end, absent when its file is not held any more";
    gauges(encoder, "binlogd_slot_behind", Some(&Unit::Bytes), help, each(slots, |slot| slot.behind_bytes))?;
    let help = "0 for a slot whose reader lacks nothing, else now minus the timestamp of the newest event sent to it";
    let seconds = Some(&Unit::Seconds);
    gauges(encoder, "binlogd_slot_behind", seconds, help, each(slots, |slot| slot.behind_seconds))?;
    let help = "For how long the reader of the slot has been away, 0 while it is connected";
    gauges(encoder, "binlogd_slot_away", seconds, help, each(slots, |slot| Some(slot.away_seconds)))?;
    let help =
        "1 when the slot keeps nothing, because a limit of [retention] has released it or its file is gone";
    let released = each(slots, |slot| Some(u64::from(slot.released.is_some())));
    gauges(encoder, "binlogd_slot_released", None, help, released)
}

fn encode_readers(encoder: &mut DescriptorEncoder, readers: &BTreeMap<Labels, Shown>) -> Result {
    fn each<'a>(
        readers: &'a BTreeMap<Labels, Shown>,
        value: impl Fn(&Shown) -> Option<u64> + 'a,
    ) -> impl Iterator<Item = (Labels, u64)> + 'a {
        readers.iter().filter_map(move |(labels, shown)| Some((labels.clone(), value(shown)?)))
    }
    let bytes = Some(&Unit::Bytes);
    let help = "Bytes of the binary logs that the reader lacks of what it may have, absent when not known";
    gauges(encoder, "binlogd_reader_behind", bytes, help, each(readers, |shown| shown.behind_bytes))?;
    let help =
        "0 for a reader that lacks nothing, else now minus the timestamp of the newest event sent to it";
    let seconds = Some(&Unit::Seconds);
    gauges(encoder, "binlogd_reader_behind", seconds, help, each(readers, |shown| shown.behind_seconds))?;
    let help = "Offset in the file of the end of what was sent to the reader";
    gauges(
        encoder,
        "binlogd_reader_position",
        bytes,
        help,
        each(readers, |shown| shown.place.map(|(_, offset)| offset)),
    )?;
    let help = "Number at the end of the name of the file in which what was sent to the reader ends";
    gauges(
        encoder,
        "binlogd_reader_position_file_number",
        None,
        help,
        each(readers, |shown| shown.place.map(|(number, _)| number)),
    )?;
    let help = "Bytes sent in dumps to the reader since it connected";
    counters(encoder, "binlogd_reader_sent", bytes, help, each(readers, |shown| Some(shown.sent_bytes)))
}

fn shown<'a>(readers: impl Iterator<Item = &'a ReaderStatus>) -> BTreeMap<Labels, Shown> {
    let mut all: BTreeMap<Labels, Shown> = BTreeMap::new();
    for reader in readers {
        let address = reader.address.rsplit_once(':').map_or("", |(address, _)| address);
        let labels = [
            ("source", reader.source.clone()),
            ("user", reader.user.clone()),
            ("address", address.trim_matches(['[', ']']).to_owned()),
            ("server_id", reader.server_id.map_or_else(String::new, |id| id.to_string())),
        ];
        if all.len() >= SERIES_MAX && !all.contains_key(&labels) {
            continue;
        }
        let shown = all.entry(labels).or_default();
        let place = reader.position.as_ref().and_then(|at| {
            let number = BinlogName::parse(&at.file).ok()?.number();
            Some((number, at.offset))
        });
        shown.behind_bytes = shown.behind_bytes.max(reader.behind_bytes);
        shown.behind_seconds = shown.behind_seconds.max(reader.behind_seconds);
        shown.place = match (shown.place, place) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        shown.sent_bytes += reader.sent_bytes;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::Position;

    fn reader(address: &str, command: &str, behind: u64) -> ReaderStatus {
        ReaderStatus {
            source: "orders".to_owned(),
            user: "repl".to_owned(),
            address: address.to_owned(),
            command: command.to_owned(),
            server_id: Some(7),
            position: Some(Position::new("mysql-bin.000003", 100 - behind)),
            behind_bytes: Some(behind),
            behind_seconds: Some(behind / 10),
            sent_bytes: 5,
            ..ReaderStatus::default()
        }
    }

    fn labels(address: &str) -> Labels {
        [("source", "orders"), ("user", "repl"), ("address", address), ("server_id", "7")]
            .map(|(name, value)| (name, value.to_owned()))
    }

    #[test]
    fn those_with_one_name_are_one_and_the_worst_counts() {
        let dump = "Binlog Dump GTID";
        let readers =
            [reader("10.0.0.1:50", dump, 20), reader("10.0.0.1:51", dump, 90), reader("[::1]:52", dump, 0)];
        let all = shown(readers.iter());
        assert_eq!(all.keys().cloned().collect::<Vec<_>>(), [labels("10.0.0.1"), labels("::1")]);
        let both = &all[&labels("10.0.0.1")];
        assert_eq!((both.behind_bytes, both.behind_seconds), (Some(90), Some(9)));
        assert_eq!((both.place, both.sent_bytes), (Some((3, 10)), 10));
    }

    #[test]
    fn the_number_of_series_is_bounded() {
        let readers: Vec<ReaderStatus> = (0..2 * SERIES_MAX)
            .map(|n| reader(&format!("10.0.{}.{}:1", n / 250, n % 250), "Binlog Dump", 1))
            .collect();
        assert_eq!(shown(readers.iter()).len(), SERIES_MAX);
    }
}
