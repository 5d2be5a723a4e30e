//! The Prometheus text, in the OpenMetrics form that prometheus-client writes.
//!
//! Names carry their unit and every series its `source`. They are read from the monitors at each scrape; nothing is
//! kept between scrapes. docs/reference/metrics.md lists them.

pub(crate) mod archives;
pub(crate) mod families;
pub(crate) mod format;
pub(crate) mod peers;
pub(crate) mod quorum;
pub(crate) mod resources;
pub(crate) mod serving;
pub(crate) mod upkeep;

use crate::metrics::families::{counters, gauge, gauges, histograms, of};
use codec::BinlogName;
use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use status::{
    AckReplicasStatus, CounterValues, DaemonMonitor, DaemonStatus, SourceMonitor, StateName, count,
};
use std::fmt::{Error, Result};
use std::sync::Arc;

/// All metrics at one moment, as OpenMetrics text.
pub fn text(monitor: &Arc<DaemonMonitor>, now: Timestamp) -> std::result::Result<String, Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape { monitor: monitor.clone(), now }));
    let mut text = String::with_capacity(16 * 1024);
    text::encode(&mut text, &registry)?;
    Ok(text)
}

struct Scrape {
    monitor: Arc<DaemonMonitor>,
    now: Timestamp,
}

impl std::fmt::Debug for Scrape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> Result {
        f.debug_struct("Scrape").field("now", &self.now).finish_non_exhaustive()
    }
}

/// One counter a source: name without `_total`, unit, help, value.
type CounterRow = (&'static str, Option<Unit>, &'static str, fn(&CounterValues) -> u64);

const COUNTERS: [CounterRow; 11] = [
    ("binlogd_events", None, "Events stored", |c| c.events),
    ("binlogd_transactions", None, "Transactions stored to their end", |c| c.transactions),
    ("binlogd_acknowledgements", None, "Semi-sync acknowledgements sent to the source", |c| {
        c.acknowledgements
    }),
    (
        "binlogd_acknowledged_alone",
        None,
        "Acknowledgements for which too few receivers further down had confirmed (ack_timeout_action = \"go_on\")",
        |c| c.acknowledged_alone,
    ),
    ("binlogd_reconnects", None, "Sessions with the source that ended and were tried again", |c| {
        c.reconnects
    }),
    ("binlogd_checksum_failures", None, "Events refused because their CRC32 did not match", |c| {
        c.checksum_failures
    }),
    ("binlogd_received", Some(Unit::Bytes), "Bytes read from the source's connection", |c| c.bytes_received),
    ("binlogd_written", Some(Unit::Bytes), "Bytes appended to the log", |c| c.bytes_written),
    ("binlogd_syncs", None, "Durable writes of the journal and completed fdatasyncs of the log", |c| c.syncs),
    (
        "binlogd_unexpected_acknowledgement_requests",
        None,
        "Packets that wanted an acknowledgement where none is expected",
        |c| c.unexpected_ack_requests,
    ),
    (
        "binlogd_unasked_transactions",
        None,
        "Transactions that arrived live and for which the source asked for no acknowledgement in time",
        |c| c.unasked_transactions,
    ),
];

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result {
        let sources = self.monitor.sources();
        self.encode_daemon(&mut encoder)?;
        self.encode_disk(&mut encoder)?;
        upkeep::encode_receivers(&mut encoder, &self.monitor.notify.status())?;
        let serve = self.monitor.serving(self.now);
        if let Some(serve) = &serve {
            serving::encode(&mut encoder, serve)?;
        }
        encode_states(&mut encoder, &sources)?;
        encode_levels(&mut encoder, &self.monitor.glance(self.now))?;
        encode_facts(&mut encoder, &sources)?;
        upkeep::encode(&mut encoder, &sources, serve.as_ref())?;
        peers::encode(&mut encoder, &sources)?;
        encode_replicas(&mut encoder, &sources)?;
        quorum::encode(&mut encoder, &sources)?;
        archives::encode(&mut encoder, &sources, self.now)?;
        encode_looks(&mut encoder, &sources)?;
        self.encode_seconds_behind(&mut encoder, &sources)?;
        encode_positions(&mut encoder, &sources)?;
        resources::encode(&mut encoder, &sources)?;
        for (name, unit, help, value) in &COUNTERS {
            let rows = sources.iter().map(|source| (of(source), value(&source.counters.values())));
            counters(&mut encoder, name, unit.as_ref(), help, rows)?;
        }
        histograms(
            &mut encoder,
            "binlogd_sync_latency",
            "Time of one durable write of the journal or fdatasync of the log",
            &sources,
            |source| &source.sync_latency,
        )?;
        histograms(
            &mut encoder,
            "binlogd_acknowledge_latency",
            "Time from the arrival of a packet that wants an acknowledgement to the acknowledgement leaving",
            &sources,
            |source| &source.acknowledge_latency,
        )
    }
}

impl Scrape {
    fn encode_daemon(&self, encoder: &mut DescriptorEncoder) -> Result {
        encoder
            .encode_descriptor("binlogd_build", "The binlogd that answers", None, MetricType::Info)?
            .encode_info(&[("version", env!("CARGO_PKG_VERSION"))])?;
        encoder
            .encode_descriptor(
                "binlogd_uptime",
                "Time since the daemon started",
                Some(&Unit::Seconds),
                MetricType::Gauge,
            )?
            .encode_gauge(&self.monitor.uptime_seconds())
    }

    fn encode_disk(&self, encoder: &mut DescriptorEncoder) -> Result {
        let Some(disk) = self.monitor.disk.status() else { return Ok(()) };
        let mut gauge = |name, unit: Option<&Unit>, help, value: f64| {
            encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?.encode_gauge(&value)
        };
        let bytes = Some(&Unit::Bytes);
        let help = "Bytes free in the file system of the data folder";
        gauge("binlogd_disk_free", bytes, help, disk.free_bytes as f64)?;
        let help = "Size of the file system of the data folder";
        gauge("binlogd_disk_size", bytes, help, disk.size_bytes as f64)?;
        let help =
            "1 from when less than disk_warn is free until a tenth of it is free above it, otherwise 0";
        gauge("binlogd_disk_low", None, help, f64::from(u8::from(disk.low)))?;
        let Some(hours) = disk.hours_left else { return Ok(()) };
        let help =
            "Hours until the disk is full at the rate of the last 10 minutes, absent while nothing is stored";
        gauge("binlogd_disk_left", Some(&Unit::Other("hours".to_owned())), help, hours)?;
        let help = "Seconds until the disk is full at the rate of the last 10 minutes, absent while nothing is stored";
        gauge("binlogd_disk_left", Some(&Unit::Seconds), help, hours * 3600.0)
    }

    fn encode_seconds_behind(
        &self,
        encoder: &mut DescriptorEncoder,
        sources: &[Arc<SourceMonitor>],
    ) -> Result {
        let rows = sources.iter().filter_map(|source| Some((of(source), source.seconds_behind(self.now)?)));
        gauges(
            encoder,
            "binlogd_seconds_behind",
            None,
            "Now minus the timestamp of the newest event; 0 when the source has nothing newer, absent when not known",
            rows,
        )
    }
}

fn encode_states(encoder: &mut DescriptorEncoder, sources: &[Arc<SourceMonitor>]) -> Result {
    let states: Vec<_> = sources.iter().map(|source| (source, source.state_in_words().0)).collect();
    let up = states.iter().map(|(source, state)| (of(source), u64::from(*state == StateName::Receiving)));
    gauges(encoder, "binlogd_source_up", None, "1 while the source is received, otherwise 0", up)?;
    let each = states.iter().flat_map(|(source, state)| {
        StateName::ALL
            .iter()
            .map(move |name| ([("source", source.name()), ("state", name.word())], u64::from(name == state)))
    });
    gauges(encoder, "binlogd_source_state", None, "1 for the state that the source is in, otherwise 0", each)
}

/// The one judgement, as every other surface shows it.
fn encode_levels(encoder: &mut DescriptorEncoder, status: &DaemonStatus) -> Result {
    let help = "The level of the verdict on all: 0 ok, 1 notice, 2 warning, 3 critical";
    gauge(encoder, "binlogd_level", help, status.verdict.level as u64)?;
    let help = "The level of the verdict on the source: 0 ok, 1 notice, 2 warning, 3 critical";
    let rows = status.sources.iter().map(|source| ([("source", &*source.name)], source.verdict.level as u64));
    gauges(encoder, "binlogd_source_level", None, help, rows)
}

fn encode_facts(encoder: &mut DescriptorEncoder, sources: &[Arc<SourceMonitor>]) -> Result {
    let facts: Vec<_> = sources.iter().map(|source| (source, source.facts())).collect();
    let mut info = encoder.encode_descriptor(
        "binlogd_source",
        "The server that the source was at the last connection",
        None,
        MetricType::Info,
    )?;
    for (source, facts) in &facts {
        let text = |fact: &Option<String>| fact.clone().unwrap_or_default();
        info.encode_info(&[
            ("source", source.name().to_owned()),
            ("server_version", text(&facts.server_version)),
            ("server_uuid", text(&facts.server_uuid)),
            ("timeline", text(&facts.timeline)),
        ])?;
    }
    let lacked =
        facts.iter().filter_map(|(source, facts)| Some((of(source), count(facts.source_lacked.as_ref()?))));
    gauges(
        encoder,
        "binlogd_source_lacks_transactions",
        None,
        "Transactions that the copy holds and the source lacks; for MariaDB the servers whose newest it lacks",
        lacked,
    )?;
    let twice = facts
        .iter()
        .map(|(source, facts)| (of(source), facts.given_twice.as_ref().map_or(0, |(count, _)| *count)));
    gauges(
        encoder,
        "binlogd_gtids_given_twice",
        None,
        "GTIDs that the source lost and gave to other transactions, about which nobody has decided",
        twice,
    )?;
    let missing = facts.iter().map(|(source, facts)| (of(source), facts.missing.count()));
    gauges(
        encoder,
        "binlogd_missing_transactions",
        None,
        "Transactions that were never copied, because the source had purged them; for MariaDB of how many servers",
        missing,
    )?;
    let gaps = facts.iter().map(|(source, facts)| (of(source), facts.missing.gaps.len() as u64));
    let help = "Recorded gaps: places where transactions were never copied, with or without GTIDs";
    gauges(encoder, "binlogd_gaps", None, help, gaps)?;
    let unindexed =
        facts.iter().filter_map(|(source, _)| Some((of(source), source.search_index_missing.get()?)));
    let help = "Sealed files that have no search index yet";
    gauges(encoder, "binlogd_search_index_missing_files", None, help, unindexed)?;
    let failed = facts.iter().filter_map(|(source, _)| Some((of(source), source.search_index_failed.get()?)));
    let help = "Sealed files of which no search index could be made: they cannot be read, or are damaged";
    gauges(encoder, "binlogd_search_index_failed_files", None, help, failed)?;
    let oldest =
        facts.iter().filter_map(|(source, _)| Some((of(source), source.oldest_commit.get()? / 1_000_000)));
    let help = "When the oldest transaction that is held was committed";
    gauges(encoder, "binlogd_oldest_commit_timestamp_seconds", None, help, oldest)?;
    let wanted = facts.iter().map(|(source, facts)| (of(source), u64::from(facts.semi_sync_wanted)));
    gauges(encoder, "binlogd_semi_sync_wanted", None, "1 with semi_sync = true, otherwise 0", wanted)?;
    let active = facts.iter().map(|(source, facts)| (of(source), u64::from(facts.semi_sync.active)));
    gauges(
        encoder,
        "binlogd_semi_sync_active",
        None,
        "1 while the source waits for acknowledgements and gets them, otherwise 0",
        active,
    )
}

/// The receivers further down that acknowledgements wait for, of sources that demand some.
fn encode_replicas(encoder: &mut DescriptorEncoder, sources: &[Arc<SourceMonitor>]) -> Result {
    let shown: Vec<_> =
        sources.iter().filter_map(|source| Some((of(source), source.ack_replicas.status()?))).collect();
    let mut gauge = |name, help, value: fn(&AckReplicasStatus) -> u32| {
        let rows = shown.iter().map(|(source, replicas)| (*source, u64::from(value(replicas))));
        gauges(encoder, name, None, help, rows)
    };
    let help = "ack_after_replicas: receivers further down that must have made a transaction durable";
    gauge("binlogd_ack_replicas_wanted", help, |replicas| replicas.wanted)?;
    let help = "Receivers further down that have confirmed the oldest place for which the source waits, or else all that is durable";
    gauge("binlogd_ack_replicas_confirmed", help, |replicas| replicas.confirmed)?;
    let help = "1 while the source waits for an acknowledgement that is held";
    gauge("binlogd_ack_replicas_waiting", help, |replicas| replicas.waiting.into())?;
    let help = "1 while these receivers are not waited for, because they did not come within ack_timeout";
    gauge("binlogd_ack_replicas_alone", help, |replicas| replicas.alone.into())
}

/// What the source says of itself, as of the last look at it.
fn encode_looks(encoder: &mut DescriptorEncoder, sources: &[Arc<SourceMonitor>]) -> Result {
    let looks: Vec<_> = sources.iter().map(|source| (source, source.semi_sync_look())).collect();
    let watched = looks.iter().map(|(source, looks)| (of(source), u64::from(looks.succeed)));
    gauges(
        encoder,
        "binlogd_source_watched",
        None,
        "1 while looks at the source succeed, otherwise 0",
        watched,
    )?;
    let now = || looks.iter().filter_map(|(source, looks)| Some((of(source), looks.now()?)));
    gauges(
        encoder,
        "binlogd_source_semi_sync_status",
        None,
        "The source's own rpl_semi_sync_source_status: 1 while its commits wait, otherwise 0",
        now().map(|(source, look)| (source, u64::from(look.on))),
    )?;
    gauges(
        encoder,
        "binlogd_source_semi_sync_clients",
        None,
        "The source's own rpl_semi_sync_source_clients: how many semi-sync replicas it has",
        now().map(|(source, look)| (source, look.clients)),
    )?;
    gauges(
        encoder,
        "binlogd_source_semi_sync_wait_sessions",
        None,
        "The source's own rpl_semi_sync_source_wait_sessions: commits that wait for an acknowledgement",
        now().filter_map(|(source, look)| Some((source, look.wait_sessions?))),
    )?;
    let commits = looks.iter().filter(|(_, looks)| looks.look.is_some());
    counters(
        encoder,
        "binlogd_source_semi_sync_no_tx",
        None,
        "Commits of which the source told clients without an acknowledgement, by its no_tx, since the last look of the daemon before",
        commits.map(|(source, looks)| (of(source), looks.unacknowledged)),
    )?;
    gauges(
        encoder,
        "binlogd_source_semi_sync_no_tx_while_away",
        None,
        "How many of these commits were made while no daemon looked, before the first look of this one",
        looks.iter().filter_map(|(source, looks)| Some((of(source), looks.while_away?))),
    )
}

/// Positions are bytes in a file, so each comes with the number of its file: `mysql-bin.000003` is 3. The name itself
/// is no label, because every file would then begin new series.
fn encode_positions(encoder: &mut DescriptorEncoder, sources: &[Arc<SourceMonitor>]) -> Result {
    let ladders: Vec<_> = sources.iter().map(|source| (source, source.positions())).collect();
    let rungs: Vec<_> = ladders
        .iter()
        .flat_map(|(source, ladder)| ladder.rungs().map(|(rung, position)| (source.name(), rung, position)))
        .filter_map(|(source, rung, position)| Some(([("source", source), ("rung", rung)], position?)))
        .collect();
    let offsets = rungs.iter().map(|(labels, position)| (*labels, position.offset));
    let help = "Offset in the file, by rung of the ladder received, written, durable, acknowledged";
    gauges(encoder, "binlogd_position", Some(&Unit::Bytes), help, offsets)?;
    let numbers = rungs.iter().filter_map(|(labels, position)| {
        let name = BinlogName::parse(&position.file).ok()?;
        Some((*labels, name.number()))
    });
    gauges(
        encoder,
        "binlogd_position_file_number",
        None,
        "Number at the end of the file's name, by rung",
        numbers,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::Position;
    use config::DiskWarn;
    use status::{DiskSpace, Ladder, SemiSyncStatus, SourceState};
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;
    use std::time::Duration;

    /// One line of the exposition that is not a comment.
    #[derive(Debug)]
    struct Sample {
        family: String,
        name: String,
        labels: String,
        value: f64,
    }

    /// Reads the text as a scraper does, and refuses what breaks the OpenMetrics rules: a sample outside its declared
    /// family, a series twice, a counter without `_total`, a unit that is not in the name, no `# EOF`.
    fn parse(text: &str) -> (BTreeMap<String, String>, Vec<Sample>) {
        let mut types = BTreeMap::new();
        let mut helped = BTreeSet::new();
        let mut series = BTreeSet::new();
        let mut samples = Vec::new();
        let mut family = String::new();
        let body = text.strip_suffix("# EOF\n").expect("ends with # EOF");
        for line in body.lines() {
            if let Some(comment) = line.strip_prefix("# ") {
                let (keyword, rest) = comment.split_once(' ').expect(line);
                let (name, content) = rest.split_once(' ').expect(line);
                assert!(name.starts_with("binlogd_"), "{line}");
                match keyword {
                    "HELP" => {
                        family = name.to_owned();
                        assert!(helped.insert(name.to_owned()), "twice: {line}");
                        assert!(!content.trim().is_empty(), "{line}");
                    }
                    "TYPE" => {
                        assert_eq!(name, family);
                        types.insert(name.to_owned(), content.to_owned());
                    }
                    "UNIT" => assert!(name == family && name.ends_with(&format!("_{content}")), "{line}"),
                    _ => panic!("unknown comment: {line}"),
                }
                continue;
            }
            let (key, value) = line.rsplit_once(' ').expect(line);
            let (name, labels) = key.split_once('{').unwrap_or((key, ""));
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{line}");
            let suffixes: &[&str] = match types.get(&family).expect(line).as_str() {
                "gauge" => &[""],
                "counter" => &["_total"],
                "info" => &["_info"],
                "histogram" => &["_sum", "_count", "_bucket"],
                other => panic!("unknown type {other}"),
            };
            assert!(
                suffixes.iter().any(|suffix| name == format!("{family}{suffix}")),
                "{line} under {family}"
            );
            assert!(series.insert(key.to_owned()), "twice: {line}");
            samples.push(Sample {
                family: family.clone(),
                name: name.to_owned(),
                labels: labels.to_owned(),
                value: value.parse().expect(line),
            });
        }
        (types, samples)
    }

    fn two_sources() -> Arc<DaemonMonitor> {
        let daemon = Arc::new(DaemonMonitor::new(Path::new("data")));
        let receiving = Arc::new(SourceMonitor::new("orders"));
        let file: Arc<str> = "mysql-bin.000003".into();
        let at = |offset| Some(Position::new(file.clone(), offset));
        receiving.publish_positions(&Ladder {
            received: at(40),
            written: at(30),
            durable: at(20),
            acknowledged: None,
        });
        receiving.update_facts(|facts| {
            facts.server_version = Some("9.7.0".to_owned());
            facts.semi_sync = SemiSyncStatus { active: true, reason: "negotiated".to_owned() };
        });
        receiving.set_state(SourceState::Receiving);
        receiving.publish_event_time(990);
        receiving.counters.bytes_received.store(77, std::sync::atomic::Ordering::Relaxed);
        for microseconds in [1, 50, 1_000, 100_000_000] {
            receiving.sync_latency.record(Duration::from_micros(microseconds));
        }
        daemon.disk.set_warn(DiskWarn::Percent(10));
        for (at, stored) in [(0, 0), (10, 20 << 30)] {
            daemon.disk.observe(
                Duration::from_secs(at),
                DiskSpace { free: 9 << 40, reserved: 0, size: 100 << 40 },
                stored,
            );
        }
        daemon.add(receiving);
        daemon.add(Arc::new(SourceMonitor::new("stock \"a\\b\"\n}")));
        daemon
    }

    fn scrape() -> String {
        text(&two_sources(), Timestamp::from_second(1_000).unwrap()).unwrap()
    }

    #[test]
    fn the_text_obeys_the_format() {
        let (types, samples) = parse(&scrape());
        for sample in &samples {
            let daemon_wide = ["binlogd_build", "binlogd_uptime_seconds", "binlogd_level"]
                .contains(&sample.family.as_str())
                || sample.family.starts_with("binlogd_disk_");
            assert!(daemon_wide || sample.labels.contains("source=\""), "{sample:?}");
        }
        for expected in [
            ("binlogd_received_bytes", "counter"),
            ("binlogd_position_bytes", "gauge"),
            ("binlogd_sync_latency_seconds", "histogram"),
            ("binlogd_acknowledge_latency_seconds", "histogram"),
            ("binlogd_acknowledgements", "counter"),
            ("binlogd_source_up", "gauge"),
            ("binlogd_semi_sync_active", "gauge"),
            ("binlogd_seconds_behind", "gauge"),
            ("binlogd_disk_free_bytes", "gauge"),
            ("binlogd_disk_left_hours", "gauge"),
        ] {
            assert_eq!(types.get(expected.0).map(String::as_str), Some(expected.1), "{}", expected.0);
        }
    }

    #[test]
    fn values_are_those_of_the_monitors() {
        let text = scrape();
        for line in [
            "binlogd_disk_free_bytes 9895604649984.0",
            "binlogd_disk_size_bytes 109951162777600.0",
            "binlogd_disk_low 1.0",
            "binlogd_disk_left_hours 1.28",
            "binlogd_disk_left_seconds 4608.0",
            "binlogd_source_up{source=\"orders\"} 1",
            "binlogd_source_state{source=\"orders\",state=\"receiving\"} 1",
            "binlogd_source_state{source=\"orders\",state=\"backing off\"} 0",
            "binlogd_semi_sync_active{source=\"orders\"} 1",
            "binlogd_seconds_behind{source=\"orders\"} 10",
            "binlogd_position_bytes{source=\"orders\",rung=\"durable\"} 20",
            "binlogd_position_file_number{source=\"orders\",rung=\"received\"} 3",
            "binlogd_received_bytes_total{source=\"orders\"} 77",
            "binlogd_sync_latency_seconds_count{source=\"orders\"} 4",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        // What is not known is absent, not 0.
        assert!(!text.contains("rung=\"acknowledged\""));
        assert!(!text.contains("binlogd_seconds_behind{source=\"stock"));
        let idle = Arc::new(DaemonMonitor::new(Path::new("data")));
        assert!(!super::text(&idle, Timestamp::UNIX_EPOCH).unwrap().contains("binlogd_disk"));
        idle.disk.observe(Duration::ZERO, DiskSpace { free: 1, reserved: 0, size: 2 }, 0);
        let text = super::text(&idle, Timestamp::UNIX_EPOCH).unwrap();
        assert!(text.contains("binlogd_disk_free_bytes") && !text.contains("binlogd_disk_left"), "{text}");
    }

    #[test]
    fn a_hostile_name_stays_inside_its_label() {
        let text = scrape();
        assert!(text.contains(r#"binlogd_source_up{source="stock \"a\\b\"\n}"} 0"#), "{text}");
    }

    #[test]
    fn histogram_buckets_grow_up_to_the_count() {
        let (_, samples) = parse(&scrape());
        let of_orders = |suffix: &str| {
            let name = format!("binlogd_sync_latency_seconds{suffix}");
            samples
                .iter()
                .filter(move |sample| sample.name == name && sample.labels.contains("\"orders\""))
                .collect::<Vec<_>>()
        };
        let buckets = of_orders("_bucket");
        assert!(buckets.is_sorted_by(|a, b| a.value <= b.value));
        let last = buckets.last().unwrap();
        assert!(last.labels.contains("le=\"+Inf\"") && last.value == 4.0, "{last:?}");
        assert_eq!(of_orders("_count")[0].value, 4.0);
        assert!((of_orders("_sum")[0].value - 100.001_051).abs() < 1e-9);
    }
}
