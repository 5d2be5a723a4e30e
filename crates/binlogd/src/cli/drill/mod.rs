//! `binlogd drill URL`: a rehearsal of a recovery, in a server that is thrown away.

mod report;

use crate::cli::args::store::{StoreArgs, not_opened};
use crate::cli::exit::{EXIT_OK, EXIT_PROBLEM, usage_error};
use crate::cli::restore::bytes;
use crate::cli::terminal::heard::Heard;
use ::backup::drill::supervised::supervised;
use ::backup::drill::{Report, Request, Which};
use ::backup::new_server::program::Programs;
use anyhow::Context as _;
use archive::chain::trust::Trust;
use archive::reader::Reader;
use archive::segment::Opener;
use archive::store::remote;
use clap::Args;
use config::{Config, DrillBackup, DrillConfig};
use rustix::process::{Resource, Rlimit, setrlimit};
use source::clock::{Clock, SystemClock};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The process stands back by so much, and all that it starts; so do their reads and writes, which go by it.
const NICE: i32 = 10;

/// Of the server's buffer pool, in bytes, where nothing is said.
const BUFFER_POOL_BYTES: u64 = 256 << 20;

/// Longest time, where nothing is said.
const TIME_MAX: Duration = Duration::from_secs(2 * 3600);

/// The arguments of `binlogd drill`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The last backup but one is put into a new server, without a port, in a folder of its own, and the log brings it to exactly the point of the newest \
one. CHECK TABLE reads every table and its indexes. Then the newest backup is put into another new server: tables (definition, number and checksum of rows), \
views, routines, triggers, events and accounts must be the same in both. Where there is one backup only it is brought to a random later point: the GTIDs \
must be exactly those, and CHECK TABLE must find nothing. Nobody asks the source, and nothing is left behind.

  binlogd drill s3://bucket/binlogs --identity archive.key
  binlogd drill --config /etc/binlogd/binlogd.toml --source shop --json

Exit codes: 0 passed, 1 failed or not possible, 2 the command line or the configuration is wrong.")]
pub(in crate::cli) struct DrillArgs {
    /// The archive: url in [archive], as s3://bucket/prefix
    #[arg(required_unless_present = "config")]
    url: Option<String>,
    /// Configuration file of binlogd, which says where the archive is and what opens it; what [drill] in it says counts where nothing is said
    /// here
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["url", "identity", "signed_by", "endpoint", "region", "path_style", "allow_http"]
    )]
    config: Option<PathBuf>,
    /// From which backup: newest, random, or its name in `binlogd backups`; newest where nothing says otherwise
    #[arg(long, value_name = "newest|random|NAME", value_parser = which)]
    backup: Option<Which>,
    /// The server's program; without it mysqld or mariadbd where packages put it
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    /// The client's program; without it mysql or mariadb on the path
    #[arg(long, value_name = "FILE")]
    client: Option<PathBuf>,
    /// mariadb-backup, with mbstream beside it, for a backup of that tool; without it those on the path
    #[arg(long, value_name = "FILE")]
    mariadb_backup: Option<PathBuf>,
    /// Folder in which a folder of the drill is made, and removed at its end; without it drill in data_dir of the configuration, or the system's
    /// folder for temporary files. It needs room for the data of the source
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Longest time that it may take: what is not over then is ended, and has failed; 2h where nothing says otherwise
    #[arg(long, value_name = "TIME", value_parser = config::duration::parse)]
    time_limit: Option<Duration>,
    /// The server's buffer pool, as 4GiB; without it a quarter of memory in [drill], or 256MiB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    buffer_pool: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
    /// Added to the server's options, as --lower-case-table-names=1
    #[arg(last = true, value_name = "OPTIONS")]
    options: Vec<String>,
}

#[expect(clippy::unnecessary_wraps, reason = "as clap wants it")]
fn which(text: &str) -> Result<Which, String> {
    Ok(match text {
        "newest" => Which::Newest,
        "random" => Which::Random,
        name => Which::Named(name.to_owned()),
    })
}

/// An archive, the source in it, and the folder around that of the drill.
struct Place {
    reader: Reader,
    source: String,
    work: PathBuf,
    /// What the configuration says of drills.
    config: Option<DrillConfig>,
}

/// Runs `binlogd drill`.
pub(in crate::cli) fn execute(args: &DrillArgs) -> ExitCode {
    // Before any thread is begun: threads and servers inherit it. Where it is not allowed nothing is lost but that.
    let _ = rustix::process::nice(NICE);
    let place = match &args.config {
        Some(file) => of_config(file, args).map_err(|error| usage_error(&format!("{error:#}"))),
        None => of_url(args).map_err(|error| {
            if args.json {
                let fault = Some(format!("{error:#}"));
                let source = args.store.source.clone().unwrap_or_default();
                report::json(&Report {
                    source,
                    fault,
                    started: SystemClock.wall_time(),
                    ..Report::default()
                });
            }
            not_opened(&error)
        }),
    };
    let place = match place {
        Ok(place) => place,
        Err(code) => return code,
    };
    match drilled(args, place) {
        Ok(report) => {
            if args.json {
                report::json(&report)
            } else {
                report::text(&report)
            };
            ExitCode::from(if report.fault.is_none() { EXIT_OK } else { EXIT_PROBLEM })
        }
        Err(error) => {
            errln!("error: {error:#}");
            ExitCode::from(EXIT_PROBLEM)
        }
    }
}

fn of_url(args: &DrillArgs) -> anyhow::Result<Place> {
    let opened = args.store.open(args.url.as_deref().unwrap_or_default())?;
    let [source] = &opened.sources[..] else {
        anyhow::bail!(
            "{} has several sources: choose one with --source; there are: {}",
            opened.place,
            opened.sources.join(", ")
        )
    };
    let work = args.work.clone().unwrap_or_else(std::env::temp_dir);
    Ok(Place { source: source.clone(), reader: opened.reader, work, config: None })
}

fn of_config(file: &Path, args: &DrillArgs) -> anyhow::Result<Place> {
    let config = Config::load(file)?.config;
    let archive = config.archive.context("the configuration has no [archive]: backups are in the archive")?;
    let names: Vec<String> = config.sources.iter().map(|source| source.name.clone()).collect();
    let source = match (&args.store.source, &names[..]) {
        (Some(source), names) if names.contains(source) => source.clone(),
        (None, [source]) => source.clone(),
        _ => anyhow::bail!(
            "choose one source of the configuration with --source; there are: {}",
            names.join(", ")
        ),
    };
    let trust: Trust = archive.signing().context("sign_key in [archive]")?.trust;
    let opener = Opener::new(archive.identities()?).trusting(trust);
    let store = remote::open(&archive.location, &archive.options)?;
    let named = config.drill.as_ref().and_then(|drill| drill.work.clone());
    let work = args.work.clone().or(named).unwrap_or_else(|| config.data_dir.join("drill"));
    Ok(Place { reader: Reader { store, opener: Arc::new(opener) }, source, work, config: config.drill })
}

fn drilled(args: &DrillArgs, place: Place) -> anyhow::Result<Report> {
    let is_ended = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, is_ended.clone())?;
    }
    let Place { reader, source, work, config } = place;
    let config = config.as_ref();
    let memory = config.map(|config| config.memory);
    if let Some(memory) = memory {
        // Of each program that is started, and of this one. What it may not have it does not get, and says so.
        let limit = Rlimit { current: Some(memory), maximum: Some(memory) };
        setrlimit(Resource::Data, limit).context("memory in [drill]")?;
    }
    let buffer_pool = args.buffer_pool.or(memory.map(|memory| memory / 4)).unwrap_or(BUFFER_POOL_BYTES);
    let programs = Programs {
        server: args.server.clone().or(config.map(|config| config.server.clone())),
        client: args.client.clone(),
        mariadb_backup: args.mariadb_backup.clone(),
        options: args.options.clone(),
        buffer_pool: Some(buffer_pool),
    };
    let of_config = config.map_or(Which::Newest, |config| match config.backup {
        DrillBackup::Newest => Which::Newest,
        DrillBackup::Random => Which::Random,
    });
    let limit = args.time_limit.or(config.map(|config| config.time_limit)).unwrap_or(TIME_MAX);
    let mut heard = Heard::of(&source, args.json);
    let request = Request { reader, source, which: args.backup.clone().unwrap_or(of_config), programs, work };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    Ok(supervised(&request, limit, &is_ended, &clock, move |event| heard.hear(event))?)
}
