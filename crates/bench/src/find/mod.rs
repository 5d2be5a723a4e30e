//! Finding transactions: a walk without indexes, and a search over a thousand files by their indexes.

mod log;

use self::log::{Log, TRANSACTION_MICROS, first_number, rows_file, sparse_file};
use crate::common::Common;
use anyhow::{Context, ensure};
use points::criteria::{Criteria, Verdict};
use points::walk::{Options, Walk};
use rig::statistics::{Table, with_spread};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Arguments of `binlogd-bench find`.
#[derive(Debug, Clone, clap::Args)]
pub struct FindArgs {
    /// Common ones.
    #[command(flatten)]
    pub common: Common,
    /// Files of the copy that is searched.
    #[arg(long, default_value_t = 1000)]
    pub files: u64,
    /// MB of each file.
    #[arg(long, default_value_t = 100)]
    pub mb: u64,
    /// Bytes of rows in a transaction of what is walked.
    #[arg(long, value_delimiter = ',', default_values_t = [200, 1000, 8000, 100_000])]
    pub row_bytes: Vec<usize>,
}

/// Runs it and prints a table of each.
///
/// # Errors
/// When files cannot be written, or what is searched for is not found.
pub fn run(args: &FindArgs) -> anyhow::Result<()> {
    walks(args)?;
    searches(args)
}

fn walks(args: &FindArgs) -> anyhow::Result<()> {
    println!("## A walk of {} MB in memory, one thread, {} rounds\n", args.mb, args.common.rounds);
    let mut table = Table::new(&["bytes of rows", "transactions", "find, GB/s", "index, GB/s"]);
    for row_bytes in &args.row_bytes {
        let log = Log(rows_file(0, args.mb * 1_000_000, *row_bytes, "orders"));
        let len = log.0.len() as u64;
        let mut rates = [Vec::new(), Vec::new()];
        let mut transactions = 0;
        for _ in 0..args.common.rounds {
            let begun = Instant::now();
            transactions = walk(&log, len)?;
            rates[0].push(len as f64 / 1e9 / begun.elapsed().as_secs_f64());
            let begun = Instant::now();
            let index = points::index::build(&log, len, &mut |_| Ok(()))?;
            rates[1].push(len as f64 / 1e9 / begun.elapsed().as_secs_f64());
            ensure!(index.head.transactions == transactions, "a walk and an index do not agree");
            ensure!(index.to_bytes().len() as u64 <= len / 200, "an index is longer than 0.5 %");
        }
        let [find, index] = rates.map(|rates| with_spread(&rates, 2));
        table.row(vec![row_bytes.to_string(), transactions.to_string(), find, index]);
    }
    table.print();
    Ok(())
}

/// As `binlogd find` walks a file without an index.
fn walk(log: &Log, len: u64) -> anyhow::Result<u64> {
    let criteria = Criteria { min_rows: u64::MAX, ..Criteria::default() };
    let (mut walk, mut count) = (Walk::open(log, len, Options::default())?, 0);
    while let Some(transaction) = walk.next_transaction()? {
        ensure!(criteria.judge(transaction) == Verdict::No, "a transaction of no rows that are counted");
        count += 1;
    }
    Ok(count)
}

fn searches(args: &FindArgs) -> anyhow::Result<()> {
    let dir = tempfile::Builder::new().prefix("bench-find-").tempdir_in(&args.common.dir)?;
    let folder = dir.path().join("orders").join("0001-abababab-abab-abab-abab-abababababab");
    fs::create_dir_all(&folder)?;
    let (real, index_bytes) = write_copy(args, &folder)?;
    let number = first_number(real) + 77;
    let micros = TRANSACTION_MICROS * number as i64;
    let second = |at: i64| format!("{}.{:06}", micros_text(at), at % 1_000_000);
    let searches = [
        ("GTID", vec!["--gtid".to_owned(), format!("abababab-abab-abab-abab-abababababab:{number}")]),
        (
            "time",
            vec!["--time".to_owned(), format!("{}..{}", second(micros), second(micros + TRANSACTION_MICROS))],
        ),
        ("table, 100 of one file", ["--table", "shop.rare", "--limit", "100"].map(str::to_owned).to_vec()),
        ("table, all of one file", ["--table", "shop.rare", "--limit", "0"].map(str::to_owned).to_vec()),
        ("no table", vec!["--table".to_owned(), "nowhere.none".to_owned()]),
    ];
    println!(
        "\n## `binlogd find` over {} files of {} MB, {} KB of indexes each, warm, {} rounds\n",
        args.files,
        args.mb,
        index_bytes / 1000,
        args.common.rounds
    );
    let mut table = Table::new(&["by", "found", "ms"]);
    for (name, options) in searches {
        let mut millis = Vec::new();
        let mut found = 0;
        // Once to warm.
        for round in 0..=args.common.rounds {
            let begun = Instant::now();
            found = search(args, dir.path(), &options)?;
            if round > 0 {
                millis.push(begun.elapsed().as_secs_f64() * 1e3);
            }
        }
        ensure!((found == 0) == (name == "no table"), "by {name}: {found} transactions were found");
        let spread = with_spread(&millis, 1);
        table.row(vec![name.to_owned(), found.to_string(), spread]);
    }
    table.print();
    Ok(())
}

fn search(args: &FindArgs, data_dir: &Path, options: &[String]) -> anyhow::Result<usize> {
    let mut command = Command::new(&args.common.binlogd);
    command.arg("find").arg(data_dir).arg("--json").args(options).env("TZ", "UTC");
    let output =
        command.output().with_context(|| format!("{} does not run", args.common.binlogd.display()))?;
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    ensure!(answer["sources"][0]["transactions"].is_array(), "nothing was searched: {answer}");
    Ok(answer["sources"][0]["transactions"].as_array().map_or(0, Vec::len))
}

/// The files, all sparse but one in the middle; gives the number of that one and the bytes of its index.
fn write_copy(args: &FindArgs, folder: &Path) -> anyhow::Result<(u64, usize)> {
    const ROW_BYTES: usize = 1000;
    let real = args.files / 2;
    let indexes = folder.join("search-index");
    fs::create_dir(&indexes)?;
    let timeline = "began_at = \"2026-01-02T03:04:05Z\"\nreason = \"first\"\nserver_uuid = \"abababab-abab-abab-abab-abababababab\"\n\
                    server_version = \"9.7.0\"\nserver_kind = \"mysql\"\nfirst_file = \"b.000001\"\n";
    fs::write(folder.join("timeline.toml"), timeline)?;
    let (mut names, mut index_bytes) = (String::new(), 0);
    for file in 0..args.files {
        let name = format!("b.{:06}", file + 1);
        names.push_str(&format!("{name}\n"));
        let path = folder.join(&name);
        let index = if file == real {
            let log = Log(rows_file(first_number(file), args.mb * 1_000_000, ROW_BYTES, "rare"));
            fs::write(&path, &log.0)?;
            points::index::build(&log, log.0.len() as u64, &mut |_| Ok(()))?
        } else {
            sparse_file(&path, file, args.mb * 1_000_000)?
        };
        let bytes = index.to_bytes();
        if file == real {
            index_bytes = bytes.len();
        }
        fs::write(indexes.join(&name), bytes)?;
    }
    // The live one.
    let name = format!("b.{:06}", args.files + 1);
    names.push_str(&format!("{name}\n"));
    fs::write(folder.join(&name), rows_file(first_number(args.files), 1000, 100, "orders"))?;
    fs::write(folder.join("binlog.index"), names)?;
    Ok((real, index_bytes))
}

/// Seconds since 1970 as RFC 3339 without a zone, in UTC. The first transactions were committed on that day.
fn micros_text(micros: i64) -> String {
    let seconds = micros / 1_000_000;
    let (days, left) = (seconds / 86_400, seconds % 86_400);
    format!(
        "1970-{}-{:02} {:02}:{:02}:{:02}",
        month(days).0,
        month(days).1,
        left / 3600,
        left / 60 % 60,
        left % 60
    )
}

/// Month and day of a day of 1970.
fn month(mut days: i64) -> (String, i64) {
    const DAYS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    for (number, len) in (1..).zip(DAYS) {
        if days < len {
            return (format!("{number:02}"), days + 1);
        }
        days -= len;
    }
    ("12".to_owned(), 31)
}
