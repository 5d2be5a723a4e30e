//! Bringing a server from a backup to the end of the log: `binlogd restore` beside `mysqlbinlog | mysql`, and beside binary logs that
//! are copied to where the server keeps its relay logs.
//!
//! Everybody begins with the same backup, on a server of its own, and ends when the server has executed everything. What is
//! measured is the whole: binlogd reads everything before it changes anything, and compares in the end; relay logs are copied first.
//!
//! | file | noun |
//! |---|---|
//! | `args.rs` | what it is asked for |
//! | `scene.rs` | the source with its log, the backup, and the copy |
//! | `ways.rs` | the ways to apply it |

mod args;
mod scene;
mod ways;

use args::Durability;
pub use args::RestoreArgs;
use rig::statistics::{Table, with_spread};
use scene::Scene;
use ways::Way;

/// Runs it and prints one table for each durability.
///
/// # Errors
/// When a server does not come to the end, or has other rows than the source.
pub fn run(args: &RestoreArgs) -> anyhow::Result<()> {
    let dir = tempfile::Builder::new().prefix("binlogd-restore-").tempdir_in(&args.common.dir)?;
    let dir_path = dir.path().canonicalize()?;
    eprintln!("making {} transactions on {}", args.transactions, args.server);
    let scene = Scene::make(args, &dir_path)?;
    println!("## To the end of the log, {} rounds\n", args.common.rounds);
    println!("servers       {} {}", scene.source.fact("SERVER_KIND")?, scene.source.fact("VERSION")?);
    println!("transactions  {}, of {} sessions at once", scene.transactions, args.sessions);
    println!("log           {:.0} MiB\n", scene.bytes() as f64 / f64::from(1 << 20));
    let relay = args.workers.iter().map(|workers| Way::Relay { workers: *workers });
    let ours = args.workers.iter().map(|workers| Way::Binlogd { workers: *workers });
    let ways: Vec<Way> = [Way::Pipe, Way::Statements].into_iter().chain(relay).chain(ours).collect();
    for durability in &args.durability {
        let rounds = args.common.in_turn(&ways, |round, way| {
            let dir = dir_path.join(format!("target-{round}"));
            let seconds = way.measure(args, &scene, *durability, &dir)?;
            std::fs::remove_dir_all(&dir)?;
            eprintln!("round {}: {durability}: {way}: {seconds:.1} s", round + 1);
            Ok(seconds)
        })?;
        print(*durability, &scene, &ways, &rounds);
    }
    Ok(())
}

fn print(durability: Durability, scene: &Scene, ways: &[Way], rounds: &[Vec<f64>]) {
    println!("The restored server: {}\n", durability.settings());
    let mut table =
        Table::new(&["", "transactions/s", "against the pipe", "against relay logs, as many threads"]);
    let of = |way: Way| ways.iter().position(|other| *other == way).map(|at| &rounds[at]);
    for (way, seconds) in ways.iter().zip(rounds) {
        let speeds: Vec<f64> = seconds.iter().map(|seconds| scene.transactions as f64 / seconds).collect();
        let against = |others: Option<&Vec<f64>>| match others {
            Some(others) => {
                let ratios: Vec<f64> = others.iter().zip(seconds).map(|(other, one)| other / one).collect();
                with_spread(&ratios, 2)
            }
            None => String::new(),
        };
        let relay = match way {
            Way::Binlogd { workers } => of(Way::Relay { workers: *workers }),
            _ => None,
        };
        table.row(vec![way.to_string(), with_spread(&speeds, 0), against(of(Way::Pipe)), against(relay)]);
    }
    table.print();
}
