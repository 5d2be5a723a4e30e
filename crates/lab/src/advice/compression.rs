//! Whether to compress the binary log.

use super::verdict::{AMOUNT, Verdict, again, told};
use crate::outline::{Entry, Part, Table};
use crate::point::Condition;
use crate::point::binlog_compression::{Compression, Configuration, LEVEL};
use crate::results::run::Run;
use crate::results::statistics::{Figures, Missing, Spread};

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
                let processor = ratio("source_us_a_transaction");
                // The level that a server has when nobody chooses one.
                if matches!(one.compression, Compression::Zstd(LEVEL) | Compression::Events) {
                    let sentence = sentence(&bytes, &tps, &processor);
                    parts.push(Part::Text(format!("{one}, {threads} threads: {sentence}")));
                }
                rows.push(vec![
                    Entry::Text(one.to_string()),
                    Entry::Number(f64::from(threads), 0),
                    Entry::Text(told(&bytes, AMOUNT)),
                    Entry::Text(told(&tps, AMOUNT)),
                    Entry::Text(told(&processor, AMOUNT)),
                ]);
            }
        }
    }
    if rows.is_empty() {
        return vec![Part::Text("No server that compresses its log was measured.".to_owned())];
    }
    let heads =
        ["server", "threads", "bytes of the log", "transactions a second", "processor of a transaction"];
    let notes = [
        "binlogd stores and sends what the source wrote, compressed, so that its disk and the network save the same. \
         sysbench's rows are random digits: words and repeated values compress better, what is compressed or encrypted \
         already not at all.",
    ];
    parts.push(Part::Table(Table::new("Compressed, against the same server without", &heads, rows, &notes)));
    parts
}

/// A log that is shown to be smaller is no advice yet: what that costs must have been measured too.
fn sentence(
    bytes: &Result<Spread, Missing>,
    tps: &Result<Spread, Missing>,
    processor: &Result<Spread, Missing>,
) -> String {
    let (saved, cost) = (told(bytes, AMOUNT), told(tps, AMOUNT));
    let mut text = match (bytes.as_ref().map(Verdict::of), tps.as_ref().map(Verdict::of)) {
        (Err(_), _) => format!("whether it saves anything cannot be told: {saved}."),
        (Ok(Verdict::TooFew), _) => {
            format!("whether it saves anything cannot be told, bytes of the log: {saved}: {}.", again())
        }
        (Ok(Verdict::More), _) => format!("do not compress: bytes of the log: {saved}."),
        (Ok(Verdict::NotShown), _) => format!("that it saves anything is {saved}."),
        (Ok(Verdict::Less), Ok(Verdict::Less)) => format!(
            "bytes of the log: {saved}; it costs throughput: {cost}. Compress where disk or network are the limit, not \
             the processor."
        ),
        (Ok(Verdict::Less), Ok(Verdict::More)) => {
            format!("compress: bytes of the log: {saved}, and throughput is {cost}.")
        }
        (Ok(Verdict::Less), Ok(Verdict::NotShown)) => {
            format!("compress: bytes of the log: {saved}, and a cost in throughput is {cost}.")
        }
        (Ok(Verdict::Less), Ok(Verdict::TooFew)) => format!(
            "bytes of the log: {saved}; what that costs cannot be told, throughput: {cost}: {}.",
            again()
        ),
        (Ok(Verdict::Less), Err(_)) => {
            format!("bytes of the log: {saved}; what that costs cannot be told, throughput: {cost}.")
        }
    };
    if processor.as_ref().is_ok_and(|processor| Verdict::of(processor) == Verdict::More) {
        let more = told(processor, AMOUNT);
        text += &format!(" A transaction takes {more} of the source's processor, which may be the limit.");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Measured, Order, Profile, Settings};
    use crate::point::{CellKey, Panel};
    use crate::report::example;
    use crate::results::run::Cell;

    fn of(values: &[f64]) -> Result<Spread, Missing> {
        Ok(Spread::of(values).unwrap())
    }

    #[test]
    fn it_says_compress_unless_every_round_shows_a_cost() {
        let (saved, same) = (of(&[0.46, 0.45, 0.47]), of(&[1.0, 1.1, 0.9]));
        assert_eq!(
            sentence(&saved, &of(&[0.99, 1.01, 0.98]), &same),
            "compress: bytes of the log: 54 % less (53 to 55 %), and a cost in throughput is not shown by these ranges: \
             0.99 (0.98 to 1.01)."
        );
        let cost = sentence(&saved, &of(&[0.93, 0.9, 0.95]), &same);
        assert!(cost.contains("costs throughput: 7.0 % less (5.0 to 10 %)"), "{cost}");
        let open = sentence(&same, &saved, &same);
        assert!(open.starts_with("that it saves anything is not shown by these ranges"), "{open}");
        let larger = sentence(&of(&[1.25, 1.2, 1.5]), &saved, &same);
        assert_eq!(larger, "do not compress: bytes of the log: 25 % more (20 to 50 %).");
    }

    #[test]
    fn nothing_is_advised_where_the_cost_was_not_measured() {
        let (saved, same) = (of(&[0.46, 0.45, 0.47]), of(&[1.0, 1.1, 0.9]));
        let missing = Err(Missing("invalid: errors".to_owned()));
        assert_eq!(
            sentence(&saved, &missing, &same),
            "bytes of the log: 54 % less (53 to 55 %); what that costs cannot be told, throughput: not measured (invalid: \
             errors)."
        );
        assert_eq!(
            sentence(&saved, &of(&[0.98]), &missing),
            "bytes of the log: 54 % less (53 to 55 %); what that costs cannot be told, throughput: 0.98 in one round, too \
             few to tell: measure again with --set rounds=3."
        );
        assert_eq!(
            sentence(&of(&[0.46]), &of(&[0.98]), &of(&[1.1])),
            "whether it saves anything cannot be told, bytes of the log: 0.46 in one round, too few to tell: measure again \
             with --set rounds=3."
        );
        let none = sentence(&missing, &same, &same);
        assert_eq!(none, "whether it saves anything cannot be told: not measured (invalid: errors).");
    }

    #[test]
    fn more_work_for_the_processor_is_told_where_it_is_shown() {
        let (saved, same) = (of(&[0.46, 0.45, 0.47]), of(&[1.0, 1.1, 0.9]));
        let told = sentence(&saved, &same, &of(&[1.06, 1.09, 1.08]));
        assert!(told.contains("takes 8.0 % more (6.0 to 9.0 %) of the source's processor"), "{told}");
        assert!(!sentence(&saved, &same, &of(&[1.1])).contains("processor"));
    }

    #[test]
    fn each_number_of_threads_is_named() {
        let panel = Panel { server: "mysql-9.7".to_owned(), condition: Condition::NobodyAttached };
        let cell = |threads: u32, round: u32, compression, bytes: f64| {
            let mut measured = Measured::default();
            measured.put("binlog_bytes_a_transaction", bytes);
            measured.put("tps", 100.0);
            let one = Configuration { server: "mysql-9.7".to_owned(), compression };
            Cell { key: CellKey { point: panel.point(one, threads), round }, started: 0, took: 1.0, measured }
        };
        let mut cells = Vec::new();
        for threads in [4, 16] {
            for round in 0..3 {
                cells.push(cell(threads, round, Compression::Off, 1000.0));
                cells.push(cell(threads, round, Compression::Zstd(LEVEL), 500.0));
            }
        }
        let order = Order::new(Profile::Quick, Settings::default());
        let parts = advice(&example::run("binlog-compression", order, cells));
        for (part, threads) in parts.iter().zip([4, 16]) {
            let Part::Text(text) = part else { panic!("a sentence for each") };
            let begins = format!("mysql-9.7, zstd level 3, {threads} threads: compress: ");
            assert!(text.starts_with(&begins), "{text}");
        }
    }
}
