//! One table, or several, as they were at a point, made again beside others on a server in use.
//!
//! ```text
//! the newest dump whose log reaches the point                          choice.rs
//!   → one walk over the log: where the tables change, what they were    scan.rs, ddl.rs
//!     called before, what cannot be followed
//!   → the server: rights, settings, names, what a killed run has left   target.rs
//!   → the dump's statements of the tables into schemas of our own       dump.rs, load.rs
//!   → the log's row events of the tables, and their definitions         apply.rs, rows.rs
//!   → foreign keys left out, counted, summed, one RENAME                target.rs
//! ```
//!
//! Until the RENAME nothing that others use is touched: all is made in scratch schemas (`followed.rs`), one for each schema of the source, so that
//! default character sets and names without a schema mean what they meant there. A run that is killed leaves these alone, and the next removes them.
//! Foreign keys stay until the end, because the log's definitions speak of them; what they would change is refused (`cascades.rs`).

mod apply;
mod cascades;
mod choice;
mod ddl;
mod dump;
mod followed;
mod load;
mod rows;
mod scan;
mod target;

pub use self::apply::Applied;
use self::apply::Applier;
use self::ddl::Statement;
use self::dump::{Cutter, Piece};
use self::followed::{Followed, quoted};
use self::load::Loader;
use self::target::Target;
use archive::chain::history::History;
use archive::plain_stream::PlainStream;
use archive::reader::Reader;
use archive::upkeep::catalogue::list;
use points::statement::foreign_keys::Cascade;
use points::table::TableName;
use repair::history::{Copied, Shown, Until};
use std::io::BufReader;
use std::sync::atomic::{AtomicBool, Ordering};
use wire::ConnectOptions;

/// Bytes of the dump that are looked at together.
const BUFFER_BYTES: usize = 1 << 20;

/// Schemas of the server itself.
const SYSTEM: [&str; 4] = ["mysql", "sys", "information_schema", "performance_schema"];

/// What is wanted.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// Tables of the source, and the names that they get on the target.
    pub pairs: Vec<(TableName, TableName)>,
    /// Their point.
    pub until: &'a Until,
    /// The target.
    pub into: &'a ConnectOptions,
    /// What is not refused although it may make something else of it.
    pub accept: &'a [String],
    /// Look, and change nothing.
    pub is_plan: bool,
}

/// Where it comes from.
pub struct Origin<'a> {
    /// Reads the archive.
    pub reader: &'a Reader,
    /// What the archive has of the source.
    pub history: &'a History,
    /// The log.
    pub copied: &'a Copied,
}

/// A table that was made.
#[derive(Debug)]
pub struct Made {
    /// As it was called on the source.
    pub table: TableName,
    /// As it is called on the target.
    pub name: TableName,
    /// Its rows, as the target counts them.
    pub rows: String,
    /// As CHECKSUM TABLE says.
    pub checksum: String,
    /// Foreign keys that were left out: name, columns, parent.
    pub foreign_keys: Vec<String>,
}

/// The answer.
#[derive(Debug)]
pub struct Answer {
    /// The backup.
    pub backup: String,
    /// The last transaction of the log before the point, of whatever table.
    pub last: Option<Shown>,
    /// The first behind it.
    pub first_left_out: Option<Shown>,
    /// What of the log concerns the tables.
    pub concerned: u64,
    /// What was applied of it.
    pub applied: Applied,
    /// Empty for a plan.
    pub made: Vec<Made>,
    /// Triggers that were left out.
    pub triggers: Vec<String>,
}

/// Makes tables as they were at a point. `tell` is told each step.
///
/// # Errors
/// In words. No table has its name then, and the scratch schemas are dropped, or named where the target refuses even that.
pub fn restore(
    wanted: &Wanted<'_>,
    origin: &Origin<'_>,
    is_over: &AtomicBool,
    tell: &dyn Fn(&str),
) -> Result<Answer, String> {
    check_names(&wanted.pairs)?;
    let mut target = Target::look(wanted.into, wanted.accept)?;
    let run = format!("{:08x}", getrandom::u32().map_err(|error| error.to_string())?);
    let asked = Followed::new(&run, wanted.pairs.iter().map(|(table, _)| table.clone()));
    let listed = list(origin.history);
    let (backup, followed, scan, course) =
        choice::chosen(&listed, origin.copied, wanted.until, &asked, tell)?;
    if scan.elsewhere > 0 && !wanted.accept.iter().any(|one| one == "statements") {
        return Err(format!(
            "statements of other tables ({}) stand in the log in the place of their rows (binlog_format): whether a trigger or a function of theirs \
             changes the table the log does not tell. The first: {}. Go on where none does: --accept statements",
            scan.elsewhere,
            scan.first_elsewhere.unwrap_or_default()
        ));
    }
    let record = &backup.backup.record;
    target.check(record, &wanted.pairs.iter().map(|(_, name)| name).collect::<Vec<_>>(), wanted.accept)?;
    let mut answer = Answer {
        backup: record.id.clone(),
        last: course.last.clone(),
        first_left_out: course.first_left_out.clone(),
        concerned: scan.touched,
        applied: Applied::default(),
        made: Vec::new(),
        triggers: Vec::new(),
    };
    if wanted.is_plan {
        return Ok(answer);
    }
    for gone in target.tidy()? {
        tell(&format!("a restore that was killed had left the schema {gone}; it is dropped"));
    }
    target.hold(&run)?;
    if let Some(file) = scan.files.first() {
        Applier::new(&mut target, &followed).tell_format(origin.copied, file)?;
    }
    let stream = PlainStream::open(origin.reader, &backup.backup.file).map_err(|error| error.to_string())?;
    let mut work = Work { target, into: wanted.into, followed: &followed, is_over, tell };
    let done =
        work.make(BufReader::with_capacity(BUFFER_BYTES, stream), &mut answer, |work, cascades, others| {
            let all = [&scan.cascades[..], cascades].concat();
            let all = cascades::with_those_of_parents(all, &[&scan.others[..], others].concat())?;
            choice::begin(record, course.stretch.is_none(), |begin| {
                cascades::check(origin.copied, begin, wanted.until, &scan, &all)
            })?;
            tell(&format!("the log is applied: {} of its transactions concern the tables", scan.touched));
            let mut applier = Applier::new(&mut work.target, work.followed);
            applier.run(origin.copied, &scan, is_over)?;
            Ok((applier.applied, applier.triggers))
        });
    let done = done.and_then(|()| work.finish(wanted, &mut answer));
    let cleared = work.target.clear(&followed);
    done?;
    cleared?;
    Ok(answer)
}

fn check_names(pairs: &[(TableName, TableName)]) -> Result<(), String> {
    for (at, (table, name)) in pairs.iter().enumerate() {
        if SYSTEM.contains(&table.schema.as_str()) {
            return Err(format!(
                "{table} is one of the server's own: bring it back with the whole server, binlogd restore --new"
            ));
        }
        if pairs[..at].iter().any(|(other, other_name)| other == table || other_name == name) {
            return Err(format!("--table {table} --as {name}: a table or a name is given twice"));
        }
    }
    Ok(())
}

/// A run on the target.
struct Work<'a> {
    target: Target,
    into: &'a ConnectOptions,
    followed: &'a Followed,
    is_over: &'a AtomicBool,
    tell: &'a dyn Fn(&str),
}

impl Work<'_> {
    /// The dump, then the log.
    fn make(
        &mut self,
        stream: BufReader<PlainStream>,
        answer: &mut Answer,
        log: impl FnOnce(&mut Self, &[Cascade], &[Statement]) -> Result<(Applied, Vec<String>), String>,
    ) -> Result<(), String> {
        (self.tell)("the dump is read, and what it has of the tables is loaded");
        let mut cutter = Cutter::new(stream, self.followed, self.target.statement_bytes_max);
        let mut loader = Loader::new(self.into)?;
        let (mut names, mut has_zone, mut cascades) = (String::new(), false, Vec::new());
        while let Some(piece) = cutter.next().map_err(|error| format!("the backup: {error}"))? {
            if self.is_over.load(Ordering::Relaxed) {
                return Err("interrupted".to_owned());
            }
            match piece {
                Piece::Setting(sql) => {
                    has_zone |= sql.to_uppercase().contains("TIME_ZONE='");
                    if sql.to_uppercase().contains("SET NAMES") {
                        names.clone_from(&sql);
                    }
                    self.target.run(&sql)?;
                    loader.say(&sql)?;
                }
                Piece::Schema(schema, sql) => self.schema(&schema, &sql)?,
                Piece::Definition(table, sql) => {
                    let statement = Statement { schema: table.schema.clone(), text: sql, sql_mode: 0 };
                    cascades.extend(statement.cascades()?);
                    let scratch = self.definition(&statement, &names)?;
                    loader.table(&table, &scratch, &statement.text)?;
                }
                Piece::Rows(table, _) if !has_zone => {
                    return Err(format!(
                        "the dump does not say in which time zone it has the times of {table} (--skip-tz-utc), so nobody knows what they were"
                    ));
                }
                Piece::Rows(table, sql) => loader.rows(table, sql)?,
                Piece::Trigger(table, name) => answer.triggers.push(format!("{name} of {table}")),
            }
        }
        loader.end()?;
        self.target.run("SET NAMES utf8mb4")?;
        let other = |(schema, text)| Statement { schema, text, sql_mode: 0 };
        let others: Vec<Statement> = cutter.others.into_iter().map(other).collect();
        let (applied, triggers) = log(self, &cascades, &others)?;
        answer.applied = applied;
        answer.triggers.extend(triggers);
        Ok(())
    }

    /// A schema of the dump, with the name of its scratch schema.
    fn schema(&mut self, schema: &str, sql: &str) -> Result<(), String> {
        let scratch = self.followed.scratch(schema).unwrap_or_default().to_owned();
        self.target.run(&sql.replacen(&quoted(schema), &quoted(&scratch), 1))?;
        self.target.mark(&scratch)
    }

    /// Makes a table; its scratch schema. Definitions stand in UTF-8 in a dump, whatever its rows are written in.
    fn definition(&mut self, statement: &Statement, names: &str) -> Result<String, String> {
        let scratch = self.followed.scratch(&statement.schema).unwrap_or_default().to_owned();
        self.target.run(&format!("USE {}", quoted(&scratch)))?;
        self.target.run("SET @@session.character_set_client = utf8mb4")?;
        self.target.run(&statement.rewritten(self.followed, &scratch)?)?;
        if !names.is_empty() {
            self.target.run(names)?;
        }
        Ok(scratch)
    }

    fn finish(&mut self, wanted: &Wanted<'_>, answer: &mut Answer) -> Result<(), String> {
        // What the last definition of the log has left in the session.
        self.target.run("SET @@session.sql_mode = '', @@session.timestamp = DEFAULT")?;
        (self.tell)("the tables are counted and summed");
        for (table, name) in &wanted.pairs {
            let made = self.target.finish(self.followed, table)?;
            let made = made.ok_or_else(|| {
                format!("at the point there is no table {table}: the dump has none that is still there, and the log makes none before the point")
            })?;
            answer.made.push(Made {
                table: table.clone(),
                name: name.clone(),
                rows: made.rows,
                checksum: made.checksum,
                foreign_keys: made.foreign_keys,
            });
        }
        if self.is_over.load(Ordering::Relaxed) {
            return Err("interrupted".to_owned());
        }
        self.target.give_names(self.followed, &wanted.pairs)
    }
}
