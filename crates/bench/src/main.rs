//! The benchmarks of binlogd; `binlogd-bench --help` lists them.

fn main() -> anyhow::Result<()> {
    binlogd_bench::cli::main()
}
