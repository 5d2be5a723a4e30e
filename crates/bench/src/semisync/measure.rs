//! One cell: attach, look, load, look again, detach.

use super::attachment::Attachment;
use super::cell::{Numbers, Setting};
use super::configuration::Configuration;
use super::source::Source;
use super::stage::Stage;
use rig::semi_sync::SemiSync;
use std::time::{Duration, Instant};

/// Longest wait until a receiver is attached.
const ATTACH_MAX: Duration = Duration::from_secs(20);

/// What came of it, and why it does not count if it does not.
pub type Measured = (Option<Numbers>, Option<String>);

/// Measures one cell.
///
/// # Errors
/// When the source does not work, or the run is broken off. What the receiver does wrong makes the cell invalid.
pub fn measure(
    stage: &mut Stage,
    setting: &Setting,
    configuration: Configuration,
    seconds: u64,
) -> anyhow::Result<Measured> {
    stage.source.drop_dumps(&stage.interrupt)?;
    let place = stage.source.begin_log()?;
    stage.source.set_semi_sync(configuration != Configuration::None)?;
    let port = stage.source.server().port();
    let mut attachment = match stage.receivers.attach(configuration, stage.dialect, port, &place) {
        Ok(attachment) => attachment,
        Err(error) => return Ok((None, Some(format!("it does not start: {error:#}")))),
    };
    let measured = loaded(stage, setting, configuration, seconds, &mut attachment);
    let detached = stage.receivers.detach(attachment);
    stage.source.drop_dumps(&stage.interrupt)?;
    let (numbers, invalid) = measured?;
    Ok((numbers, invalid.or(detached.err().map(|error| format!("it does not stop: {error:#}")))))
}

fn loaded(
    stage: &mut Stage,
    setting: &Setting,
    configuration: Configuration,
    seconds: u64,
    attachment: &mut Attachment,
) -> anyhow::Result<Measured> {
    let Stage { source, receivers, sysbench, interrupt, .. } = stage;
    let attached = interrupt.wait(ATTACH_MAX, || {
        Ok(match wrong(source, configuration)? {
            Some(_) if receivers.usage(attachment).is_ok() => None,
            wrong => Some(wrong),
        })
    })?;
    if attached != Some(None) {
        let wrong = wrong(source, configuration)?.unwrap_or_default();
        let complaint = receivers.complaint(attachment);
        return Ok((None, Some(format!("before the load: {wrong}; the receiver: {complaint}"))));
    }
    // MySQL's thread that reads acknowledgements looks for new receivers once a second (`Ack_receiver::run` of
    // plugin/semisync): commits before that wait for it, up to a quarter of a short cell.
    source.commit_probes()?;
    let before = source.semi_sync()?;
    let log_before = source.log_bytes()?;
    let used_before = match receivers.usage(attachment) {
        Ok(used) => used,
        Err(error) => return Ok((None, Some(format!("before the load: {error:#}")))),
    };
    let began = Instant::now();
    let outcome = sysbench.load(&setting.workload, setting.threads, seconds, interrupt);
    let took = began.elapsed().as_secs_f64();
    interrupt.check()?;
    let used = receivers.usage(attachment);
    let after = source.semi_sync()?;
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return Ok((None, Some(format!("{error:#}")))),
    };
    let mut numbers = Numbers {
        tps: outcome.per_second,
        p95_ms: outcome.p95_ms,
        transactions: outcome.transactions,
        waits: after.waits.saturating_sub(before.waits),
        wait_us: after.wait_us.saturating_sub(before.wait_us),
        acknowledgements: after.acknowledgements.saturating_sub(before.acknowledgements),
        yes_tx: after.yes_tx.saturating_sub(before.yes_tx),
        no_tx: after.no_tx.saturating_sub(before.no_tx),
        log_bytes: source.log_bytes()?.saturating_sub(log_before),
        cores: None,
        resident_kib: None,
    };
    let mut reasons = Vec::new();
    match (used_before, used) {
        (Some((before, _)), Ok(Some((after, memory)))) => {
            // sysbench connects and prepares its statements first; a receiver has nothing to do then.
            numbers.cores = Some(after.seconds_since(&before) / took.min(seconds as f64));
            numbers.resident_kib = Some(memory.resident);
        }
        (_, Err(error)) => reasons.push(format!("{error:#}")),
        _ => {}
    }
    reasons.extend(wrong(source, configuration)?.map(|wrong| format!("after the load: {wrong}")));
    reasons.extend(unacknowledged(configuration, &before, &after, &numbers));
    Ok((Some(numbers), (!reasons.is_empty()).then(|| reasons.join("; "))))
}

/// What is not as it must be before and after a load: semi-sync on and one receiver, or neither.
fn wrong(source: &mut Source, configuration: Configuration) -> anyhow::Result<Option<String>> {
    let (counters, dumps) = (source.semi_sync()?, source.dumps()?.len());
    let wanted = configuration != Configuration::None;
    let right =
        counters.on == wanted && counters.clients == u64::from(wanted) && dumps == usize::from(wanted);
    Ok((!right).then(|| {
        format!(
            "semi-sync is {}, the source counts {} semi-sync receivers, and {dumps} read its log",
            if counters.on { "on" } else { "off" },
            counters.clients
        )
    }))
}

/// Why not every transaction was waited for, if so.
fn unacknowledged(
    configuration: Configuration,
    before: &SemiSync,
    after: &SemiSync,
    numbers: &Numbers,
) -> Option<String> {
    if configuration == Configuration::None {
        return (numbers.yes_tx > 0).then(|| format!("{} transactions were acknowledged", numbers.yes_tx));
    }
    if after.no_tx != before.no_tx {
        return Some(format!("{} transactions went without an acknowledgement", numbers.no_tx));
    }
    (numbers.yes_tx == 0 || numbers.waits == 0)
        .then(|| "the source counts no transaction as acknowledged".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_counts_only_when_all_was_acknowledged() {
        let counters = |no_tx| SemiSync { no_tx, ..SemiSync::default() };
        let numbers = |yes_tx, waits| Numbers { yes_tx, waits, ..Numbers::default() };
        let judge = |configuration, no_tx: [u64; 2], numbers| {
            unacknowledged(configuration, &counters(no_tx[0]), &counters(no_tx[1]), &numbers)
        };
        let binlogd = Configuration::Binlogd1;
        assert_eq!(judge(binlogd, [3, 3], numbers(9, 9)), None);
        assert!(judge(binlogd, [3, 4], numbers(9, 9)).is_some());
        assert!(judge(binlogd, [3, 3], numbers(0, 0)).is_some());
        assert_eq!(judge(Configuration::None, [3, 9], numbers(0, 0)), None);
        assert!(judge(Configuration::None, [3, 3], numbers(1, 0)).is_some());
    }
}
