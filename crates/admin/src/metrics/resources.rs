//! Metrics of what each source takes of the machine.

use super::families::{gauges, of};
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use status::SourceMonitor;
use std::fmt::Result;
use std::sync::Arc;

/// What is not known yet is absent.
pub(crate) fn encode(encoder: &mut DescriptorEncoder, sources: &[Arc<SourceMonitor>]) -> Result {
    let known: Vec<_> = sources.iter().map(|source| (source, source.resources.status())).collect();
    let disk = known.iter().filter_map(|(source, found)| Some((of(source), found.disk_bytes?)));
    let help = "Bytes that the folder of the source takes on the disk";
    gauges(encoder, "binlogd_source_disk", Some(&Unit::Bytes), help, disk)?;
    let growth = known.iter().filter_map(|(source, found)| Some((of(source), found.growth_bytes_per_day?)));
    let help = "Bytes by which the copy would grow in a day, at the rate of the last 10 minutes";
    gauges(encoder, "binlogd_source_growth_per_day", Some(&Unit::Bytes), help, growth)?;
    let help = "Processor time of the thread that receives from the source";
    let name = "binlogd_receive_cpu";
    let mut metric = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Counter)?;
    for (source, found) in &known {
        let Some(seconds) = found.receive_cpu_seconds else { continue };
        metric.encode_family(&of(source))?.encode_counter::<NoLabelSet, _, u64>(&seconds, None)?;
    }
    Ok(())
}
