//! Families of metrics: one value a source and label, each with its name, unit and help.

use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use status::{LatencyHistogram, SourceMonitor};
use std::fmt::Result;
use std::sync::Arc;

/// Which source.
pub(crate) type SourceLabel<'a> = [(&'static str, &'a str); 1];

/// The label of a source.
pub(crate) fn of(source: &SourceMonitor) -> SourceLabel<'_> {
    [("source", source.name())]
}

/// Gauges of whole numbers.
pub(crate) fn gauges<L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder,
    name: &str,
    unit: Option<&Unit>,
    help: &str,
    rows: impl Iterator<Item = (L, u64)>,
) -> Result {
    let mut metric = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    for (labels, value) in rows {
        metric.encode_family(&labels)?.encode_gauge(&value)?;
    }
    Ok(())
}

/// Counters.
pub(crate) fn counters<L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder,
    name: &str,
    unit: Option<&Unit>,
    help: &str,
    rows: impl Iterator<Item = (L, u64)>,
) -> Result {
    let mut metric = encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
    for (labels, value) in rows {
        metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
    }
    Ok(())
}

/// A gauge of the daemon.
pub(crate) fn gauge(encoder: &mut DescriptorEncoder, name: &str, help: &str, value: u64) -> Result {
    encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
}

/// A counter of the daemon.
pub(crate) fn counter(
    encoder: &mut DescriptorEncoder,
    name: &str,
    unit: Option<&Unit>,
    help: &str,
    value: u64,
) -> Result {
    let mut metric = encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
    metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
}

/// One histogram a source.
pub(crate) fn histograms(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    sources: &[Arc<SourceMonitor>],
    histogram: fn(&SourceMonitor) -> &LatencyHistogram,
) -> Result {
    let mut metric = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
    for source in sources {
        let histogram = histogram(source);
        let buckets = histogram.octaves();
        let count = buckets.iter().map(|bucket| bucket.1).sum();
        metric.encode_family(&of(source))?.encode_histogram::<NoLabelSet>(
            histogram.sum_seconds(),
            count,
            &buckets,
            None,
        )?;
    }
    Ok(())
}
