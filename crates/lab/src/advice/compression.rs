//! Whether to compress the binary log.

use super::verdict::{AMOUNT, Verdict, told};
use crate::point::Condition;
use crate::report::outline::{Entry, Part, Table};
use crate::run::Run;
use crate::statistics::{Figures, Missing, Spread};
use crate::study::binlog_compression::configuration::{Compression, Configuration, LEVEL};

/// From a run of `binlog-compression`.
pub(super) fn advice(run: &Run) -> Vec<Part> {
    let figures = Figures::of(run);
    let mut parts = Vec::new();
    let mut rows = Vec::new();
    for panel in figures.panels().into_iter().filter(|panel| panel.condition == Condition::NobodyAttached) {
        let all: Vec<Configuration> = figures.own_configurations(panel);
        for threads in figures.threads(panel) {
            for one in &all {
                let Some(off) = one.uncompressed() else { continue };
                let ratio = |value| figures.ratio(&panel.point(one.clone(), threads), off.clone(), value);
                let (bytes, tps) = (ratio("binlog_bytes_a_transaction"), ratio("tps"));
                // The level that a server has when nobody chooses one.
                if matches!(one.compression, Compression::Zstd(LEVEL) | Compression::Events) {
                    parts.push(Part::Text(format!("{one}: {}", sentence(&bytes, &tps))));
                }
                rows.push(vec![
                    Entry::Text(one.to_string()),
                    Entry::Number(f64::from(threads), 0),
                    Entry::Text(told(&bytes, AMOUNT)),
                    Entry::Text(told(&tps, AMOUNT)),
                    Entry::Text(told(&ratio("source_us_a_transaction"), AMOUNT)),
                ]);
            }
        }
    }
    if rows.is_empty() {
        return vec![Part::Text("No server of the run can compress its log.".to_owned())];
    }
    parts.push(Part::Table(Table {
        title: "Compressed, against the same server without".to_owned(),
        columns: ["server", "threads", "bytes of the log", "transactions a second", "processor of a transaction"]
            .map(str::to_owned)
            .to_vec(),
        rows,
        notes: vec![
            "binlogd stores and sends what the source wrote, compressed, so that its disk and the network save the same. \
             sysbench's rows are random digits: words and repeated values compress better, what is compressed or encrypted \
             already not at all."
                .to_owned(),
        ],
    }));
    parts
}

fn sentence(bytes: &Result<Spread, Missing>, tps: &Result<Spread, Missing>) -> String {
    let saved = bytes.as_ref().is_ok_and(|bytes| Verdict::of(bytes) == Verdict::Less);
    let cost = tps.as_ref().map(Verdict::of);
    match (saved, cost) {
        (false, _) => format!("that it saves anything is not shown ({}).", told(bytes, AMOUNT)),
        (true, Ok(Verdict::Less)) => format!(
            "bytes of the log: {}; it costs throughput: {}. Compress where disk or network are the limit, not the processor.",
            told(bytes, AMOUNT),
            told(tps, AMOUNT)
        ),
        (true, Ok(Verdict::More)) => format!(
            "compress: bytes of the log: {}, and throughput is {}.",
            told(bytes, AMOUNT),
            told(tps, AMOUNT)
        ),
        (true, _) => format!(
            "compress: bytes of the log: {}, and a cost in throughput is not shown ({}).",
            told(bytes, AMOUNT),
            told(tps, AMOUNT)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_compress_unless_every_round_shows_a_cost() {
        let of = |values: &[f64]| Ok(Spread::of(values).unwrap());
        let saved = of(&[0.46, 0.45, 0.47]);
        assert_eq!(
            sentence(&saved, &of(&[0.99, 1.01, 0.98])),
            "compress: bytes of the log: 54 % less (53 to 55 %), and a cost in throughput is not shown (not shown by \
             these ranges: 0.99 (0.98 to 1.01))."
        );
        assert!(
            sentence(&saved, &of(&[0.93, 0.9, 0.95])).contains("costs throughput: 7.0 % less (5.0 to 10 %)")
        );
        assert!(sentence(&of(&[0.9, 1.1, 1.0]), &saved).starts_with("that it saves anything is not shown"));
    }
}
