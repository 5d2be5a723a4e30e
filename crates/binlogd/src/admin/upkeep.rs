//! What an operator has to see to before it breaks, as metrics: certificates that expire, copies that were verified, and
//! identities that two receivers have.

use super::families::{gauges, of};
use crate::status::{ServeStatus, SourceFacts, SourceMonitor};
use jiff::Timestamp;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Unit;
use std::fmt::Result;
use std::sync::Arc;

/// Of all sources, and of the port for readers if there is one.
pub(super) fn encode(
    encoder: &mut DescriptorEncoder,
    sources: &[Arc<SourceMonitor>],
    serve: Option<&ServeStatus>,
) -> Result {
    let facts: Vec<_> = sources.iter().map(|source| (source, source.facts())).collect();
    encode_certificates(encoder, &facts, serve)?;
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

/// Seconds since 1970; 0 for what was before.
fn seconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_second()).unwrap_or(0)
}
