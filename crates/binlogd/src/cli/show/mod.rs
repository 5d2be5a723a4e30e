//! `binlogd show DATA_DIR`: transactions with their statements and rows, for a person.

mod json;
mod page;

use super::exit::{EXIT_OK, EXIT_PROBLEM, usage_error};
use super::style;
use crate::cli::args::search::SearchArgs;
use crate::cli::args::server::ServerFlags;
use crate::cli::args::store::StoreArgs;
use crate::cli::find::answer::found;
use crate::cli::opened::searched::{choose, definitions, tell};
use clap::Args;
use config::HostPort;
use jiff::tz::TimeZone;
use page::Page;
use points::transaction::Transaction;
use repair::detail::{Known, Part, Place as LogPlace, each_part};
use repair::searched::{FoundAt, SearchedSource, each_found};
use source::own_session::{Purpose, prepare};
use std::path::PathBuf;
use std::process::ExitCode;
use wire::{Connection, Secret};

/// The arguments of `binlogd show`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
What is asked for is asked for as with binlogd find. Of an update the columns of the primary key and those that changed are shown, \
and all of them where the log does not say what the key is; --json has everything. TIMESTAMP is in UTC. What cannot be decoded is \
shown as its bytes, with the reason.

Names of columns stand in the log with binlog_row_metadata = FULL. Otherwise --schema asks a server for them as its tables are now, \
where these have as many columns, of the same types, and no statement behind the transaction may have changed them; else columns are \
@1, @2 and so on.

  binlogd show /var/lib/binlogd --gtid 3e11fa47-71ca-11e1-9e33-c80aa9429562:23
  binlogd show /var/lib/binlogd --table shop.orders --kind delete --limit 10 --schema mysql://root@db1

Exit codes: 0 something was shown, 1 nothing was found, or not everything could be searched or decoded, 2 the command line is wrong.")]
pub(super) struct ShowArgs {
    /// Folder of the copies: the data_dir of the configuration; or an archive, as s3://bucket/prefix
    #[arg(value_name = "DATA_DIR|URL")]
    data_dir: PathBuf,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    search: SearchArgs,
    /// The transaction that stands at this place
    #[arg(long, value_name = "FILE:POSITION")]
    at: Option<Place>,
    /// Stop after so many transactions; 0 for none
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
    /// Show so many rows of each transaction; 0 for all
    #[arg(long, value_name = "N", default_value_t = 100)]
    rows: u64,
    /// A server to ask for names of columns that the log does not have: mysql://user@host:port
    #[arg(long, value_name = "URL")]
    schema: Option<Secret>,
    /// The columns of the tables were as they are on that server now: take their names without proof
    #[arg(long, requires = "schema")]
    columns_as_now: bool,
    #[command(flatten)]
    server: ServerFlags,
    /// Print JSON, one object a line for each transaction
    #[arg(long)]
    json: bool,
}

/// A place in a binary log.
#[derive(Debug, Clone)]
pub(super) struct Place {
    file: String,
    position: u64,
}

impl std::str::FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        let parts = text.rsplit_once(':').and_then(|(file, at)| Some((file.to_owned(), at.parse().ok()?)));
        let (file, position) = parts.ok_or("write FILE:POSITION, as mysql-bin.000042:1234")?;
        Ok(Place { file, position })
    }
}

impl Place {
    /// Leaves only what may hold the place.
    pub(super) fn narrow(&self, sources: &mut [SearchedSource]) {
        let timelines = sources.iter_mut().flat_map(|source| &mut source.timelines);
        timelines.for_each(|timeline| timeline.files.retain(|file| file.name == self.file));
    }

    pub(super) fn is_in(&self, transaction: &Transaction) -> bool {
        (transaction.at..transaction.end).contains(&self.position)
    }
}

/// Runs `binlogd show`.
pub(super) fn execute(args: &ShowArgs) -> ExitCode {
    let zone = TimeZone::system();
    let chosen = args.search.criteria(&zone).and_then(|criteria| {
        let mut sources = choose(&args.data_dir, &args.store, args.search.timeline.as_deref())?;
        if let Some(at) = &args.at {
            at.narrow(&mut sources);
        }
        let known = match connect(args.schema.as_ref(), &args.server, "--schema")? {
            None => Known::default(),
            server => Known::new(server, definitions(&args.data_dir, &args.store)?, args.columns_as_now),
        };
        Ok((criteria, sources, known))
    });
    let (criteria, sources, mut known) = match chosen {
        Ok(chosen) => chosen,
        Err(error) => return usage_error(&error),
    };
    let (mut shown, mut is_whole, mut last_source) = (0_u64, true, String::new());
    let limit = if args.at.is_some() { 0 } else { args.limit };
    let outcome = each_found(&sources, &criteria, limit, &mut |at, transaction| {
        if args.at.as_ref().is_some_and(|place| !place.is_in(transaction)) {
            return;
        }
        if !args.json && std::mem::replace(&mut last_source, at.source.name.clone()) != at.source.name {
            outln!("{}", style::clean(&at.source.name));
        }
        shown += 1;
        is_whole &= show(args, &zone, &mut known, at, transaction);
    });
    tell(&outcome, args.limit);
    if shown == 0 && !outcome.failed() && !args.json {
        outln!("nothing was found");
    }
    let is_well = shown > 0 && is_whole && !outcome.failed();
    ExitCode::from(if is_well { EXIT_OK } else { EXIT_PROBLEM })
}

/// Connects to the server of that argument.
///
/// # Errors
/// In words.
pub(super) fn connect(
    url: Option<&Secret>,
    server: &ServerFlags,
    argument: &str,
) -> Result<Option<Connection>, String> {
    let Some(url) = url else { return Ok(None) };
    let options = server.options(argument, "the server that has the tables", url)?;
    let host = HostPort { host: options.host.clone(), port: options.port };
    let told = |error: &dyn std::fmt::Display| format!("{argument}: {host}: {error}");
    let mut connection = Connection::connect(&options).map_err(|error| told(&error))?;
    prepare(&mut connection, Purpose::Reader).map_err(|error| told(&error))?;
    Ok(Some(connection))
}

/// Shows one; false when a part of it could not be.
fn show(
    args: &ShowArgs,
    zone: &TimeZone,
    known: &mut Known,
    at: FoundAt<'_>,
    transaction: &Transaction,
) -> bool {
    let place = LogPlace::of(&at.timeline.name, &at.searched.name, transaction.at);
    known.is_at(&at.source.name, place, transaction.committed.micros.div_euclid(1_000_000));
    let heading = found(&at.timeline.name, &at.searched.name, transaction, zone);
    let mut is_whole = transaction.unread.is_none();
    if args.json {
        let mut changes = json::Changes::new(args.rows);
        let read = each_part(at.file, transaction, known, &mut |part| {
            is_whole &= !matches!(part, Part::Unknown(_));
            changes.add(&part);
        });
        if let Err(error) = read {
            is_whole = false;
            changes.add(&Part::Unknown(error));
        }
        outln!("{}", changes.line(&at.source.name, &heading));
        return is_whole;
    }
    let mut page = Page::new(args.rows, style::stdout_is_colored());
    page.heading(&heading);
    let read = each_part(at.file, transaction, known, &mut |part| {
        is_whole &= !matches!(part, Part::Unknown(_));
        page.add(&part);
    });
    if let Err(error) = read {
        is_whole = false;
        page.add(&Part::Unknown(error));
    }
    page.end();
    is_whole
}
