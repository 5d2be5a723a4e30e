//! What an operator has to see to before it breaks, as metrics: certificates that expire, copies that were verified, and
//! identities that two receivers have.

use super::families::{counters, gauges, of};
use jiff::Timestamp;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Unit;
use status::{ReceiverStatus, ServeStatus, SourceFacts, SourceMonitor};
use std::fmt::Result;
use std::sync::Arc;

/// Of all sources, and of the port for readers if there is one.
pub(crate) fn encode(
    encoder: &mut DescriptorEncoder,
    sources: &[Arc<SourceMonitor>],
    serve: Option<&ServeStatus>,
) -> Result {
    let facts: Vec<_> = sources.iter().map(|source| (source, source.facts())).collect();
    encode_certificates(encoder, &facts, serve)?;
    let began = |facts: &SourceFacts| Some(seconds(facts.timelines.first()?.began_at.parse().ok()?));
    gauges(
        encoder,
        "binlogd_copy_began_timestamp",
        Some(&Unit::Seconds),
        "When the copy began: the oldest of its timelines, of the newest 50",
        facts.iter().filter_map(|(source, facts)| Some((of(source), began(facts)?))),
    )?;
    let verified = || facts.iter().filter_map(|(source, facts)| Some((of(source), facts.verified.as_ref()?)));
    gauges(
        encoder,
        "binlogd_verify_last_run_timestamp",
        Some(&Unit::Seconds),
        "When binlogd verify looked at the copy last, absent before its first run",
        verified().map(|(source, verified)| (source, seconds(verified.at))),
    )?;
    gauges(
        encoder,
        "binlogd_verify_findings",
        None,
        "How many problems binlogd verify found then",
        verified().map(|(source, verified)| (source, verified.findings)),
    )?;
    gauges(
        encoder,
        "binlogd_server_id_rival",
        None,
        "1 while another replica is known that has our server_id at the source, otherwise 0",
        facts.iter().map(|(source, facts)| (of(source), u64::from(facts.rival.is_some()))),
    )?;
    gauges(
        encoder,
        "binlogd_hosts_in_doubt",
        None,
        "1 while clients can write to two hosts of the source, of which none is guessed to be the source, otherwise 0",
        facts.iter().map(|(source, facts)| (of(source), u64::from(facts.hosts_in_doubt.is_some()))),
    )
}

fn encode_certificates(
    encoder: &mut DescriptorEncoder,
    facts: &[(&Arc<SourceMonitor>, SourceFacts)],
    serve: Option<&ServeStatus>,
) -> Result {
    let of_sources = facts.iter().filter_map(|(source, facts)| {
        let labels = vec![("certificate", "source"), ("source", source.name())];
        Some((labels, seconds(facts.certificate_expires?)))
    });
    let of_port = serve.and_then(|serve| serve.tls_certificate_expires);
    let of_port = of_port.map(|expires| (vec![("certificate", "serve")], seconds(expires)));
    gauges(
        encoder,
        "binlogd_certificate_expiry_timestamp",
        Some(&Unit::Seconds),
        "Until when a certificate is valid: that of the port for readers, those that the sources showed last",
        of_port.into_iter().chain(of_sources),
    )
}

/// Who is told of changes.
pub(crate) fn encode_receivers(encoder: &mut DescriptorEncoder, receivers: &[ReceiverStatus]) -> Result {
    let labelled = |receiver: &ReceiverStatus| [("receiver", receiver.key.clone())];
    let failures = receivers.iter().map(|receiver| (labelled(receiver), receiver.failures));
    let help = "Tries to reach a receiver of [notify] that failed: command, webhook, heartbeat";
    counters(encoder, "binlogd_notify_failures", None, help, failures)?;
    let down = receivers.iter().map(|receiver| (labelled(receiver), u64::from(receiver.down)));
    let help = "1 while the last try to reach a receiver of [notify] failed, otherwise 0";
    gauges(encoder, "binlogd_notify_down", None, help, down)
}

/// Seconds since 1970; 0 for what was before.
fn seconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_second()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use status::{DaemonMonitor, Verified};
    use std::path::Path;

    #[test]
    fn what_is_known_is_told_and_what_is_not_is_absent() {
        let daemon = Arc::new(DaemonMonitor::new(Path::new("data")));
        let orders = Arc::new(SourceMonitor::new("orders"));
        orders.update_facts(|facts| {
            facts.certificate_expires = Some(Timestamp::from_second(2_000_000_000).unwrap());
            facts.verified =
                Some(Verified { at: Timestamp::from_second(1_900_000_000).unwrap(), findings: 3 });
            facts.rival = Some("another replica".to_owned());
            facts.hosts_in_doubt = Some("clients can write to both".to_owned());
        });
        daemon.notify.configure(&["command", "webhook"]);
        daemon.notify.failed("webhook", "refused");
        daemon.add(orders);
        daemon.add(Arc::new(SourceMonitor::new("stock")));
        let text = crate::metrics::text(&daemon, Timestamp::UNIX_EPOCH).unwrap();
        for line in [
            "binlogd_certificate_expiry_timestamp_seconds{certificate=\"source\",source=\"orders\"} 2000000000",
            "binlogd_verify_last_run_timestamp_seconds{source=\"orders\"} 1900000000",
            "binlogd_verify_findings{source=\"orders\"} 3",
            "binlogd_server_id_rival{source=\"orders\"} 1",
            "binlogd_server_id_rival{source=\"stock\"} 0",
            "binlogd_notify_failures_total{receiver=\"webhook\"} 1",
            "binlogd_notify_down{receiver=\"webhook\"} 1",
            "binlogd_notify_down{receiver=\"command\"} 0",
            "binlogd_hosts_in_doubt{source=\"orders\"} 1",
            "binlogd_hosts_in_doubt{source=\"stock\"} 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
        }
        for absent in
            ["findings{source=\"stock\"", "certificate=\"serve\"", "certificate=\"source\",source=\"stock\""]
        {
            assert!(!text.contains(absent), "{absent} is in\n{text}");
        }
    }
}
