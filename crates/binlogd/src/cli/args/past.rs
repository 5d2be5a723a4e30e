//! What is asked of the log about a table at a point.

use super::server::ServerFlags;
use super::store::StoreArgs;
use super::time_range;
use crate::cli::opened::searched::{choose, definitions};
use crate::cli::show::connect;
use clap::Args;
use jiff::tz::TimeZone;
use points::table::TableName;
use repair::detail::Known;
use repair::history::Until;
use repair::searched::SearchedSource;
use std::path::PathBuf;
use wire::Secret;

/// A log, a table and a point.
#[derive(Debug, Args)]
pub(in crate::cli) struct PastArgs {
    /// Folder of the copies: the data_dir of the configuration; or an archive, as s3://bucket/prefix
    #[arg(value_name = "DATA_DIR|URL")]
    data_dir: PathBuf,
    /// The table, by the name that it has at the point
    #[arg(value_name = "SCHEMA.TABLE")]
    table: String,
    /// When: a time, a GTID, FILE:POSITION, 'before DROP TABLE shop.orders', or end
    #[arg(long, value_name = "POINT", default_value = "end")]
    at: String,
    #[command(flatten)]
    store: StoreArgs,
    /// Along the history that ends with this timeline: its number, or the name of its folder
    #[arg(long, value_name = "N")]
    pub(in crate::cli) timeline: Option<String>,
    /// A server to ask for names of columns that the log does not have: mysql://user@host:port
    #[arg(long, value_name = "URL")]
    schema: Option<Secret>,
    /// The columns of the table were as they are on that server now: take their names without proof
    #[arg(long, requires = "schema")]
    columns_as_now: bool,
    #[command(flatten)]
    server: ServerFlags,
}

/// What is asked for, opened.
pub(in crate::cli) struct Asked {
    pub(in crate::cli) source: SearchedSource,
    pub(in crate::cli) table: TableName,
    pub(in crate::cli) at: Until,
    pub(in crate::cli) known: Known,
}

impl PastArgs {
    /// Opens it.
    ///
    /// # Errors
    /// What is wrong with the command line, or cannot be opened.
    pub(in crate::cli) fn asked(&self) -> Result<Asked, String> {
        let zone = TimeZone::system();
        let at = Until::parse(&self.at, &|text| time_range::of_point(text, &zone))
            .map_err(|why| format!("--at: {why}"))?;
        let plain = self.table.replace('`', "");
        let Some((schema, table)) =
            plain.split_once('.').filter(|(schema, table)| !schema.is_empty() && !table.is_empty())
        else {
            return Err(format!("{:?} is no table: write SCHEMA.TABLE, as shop.orders", self.table));
        };
        let table = TableName { schema: schema.to_owned(), table: table.to_owned() };
        let mut sources = choose(&self.data_dir, &self.store, None)?;
        if sources.len() > 1 {
            return Err("there are several sources: choose one with --source".to_owned());
        }
        let source = sources.pop().ok_or("there is no source")?;
        let known = match connect(self.schema.as_ref(), &self.server, "--schema")? {
            None => Known::default(),
            server => Known::new(server, definitions(&self.data_dir, &self.store)?, self.columns_as_now),
        };
        Ok(Asked { source, table, at, known })
    }
}
