//! Why nothing is written, or no more.

use crate::history::{NoCopy, Shown, shortened};
use codec::gtid::GtidState;
use points::walk::WalkError;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// See the module.
#[expect(missing_docs, reason = "the words of each variant name its fields")]
#[derive(Debug)]
pub enum NoCut {
    /// The copy cannot be read.
    Copy(NoCopy),
    /// A file of it is damaged, or cannot be read.
    Walk { path: PathBuf, error: WalkError },
    /// The reader does not take it.
    Write(io::Error),
    /// The copy does not come to a point. `flag` says which.
    NotReached { flag: &'static str, point: String, last: Option<Box<Shown>> },
    /// No file has the name that a point says.
    NoFile { flag: &'static str, name: String },
    /// The end comes before the beginning.
    EndsFirst { point: String },
    /// A point may be several transactions.
    Ambiguous { flag: &'static str, point: String, choices: Vec<Shown>, count: u64 },
    /// What a transaction does could not be looked at, and a point is found by that.
    Unread { flag: &'static str, shown: Box<Shown>, why: String },
    /// Transactions are missing before a file.
    Gap { file: String, gtids: GtidState },
    /// The log does not go on where the timeline before ends, and without GTIDs nobody can tell what is missing.
    Parted { file: String, why: &'static str },
    /// A server of the other kind wrote a file.
    OtherKind { file: String },
    /// Events of a file are of another form than those before, which one binary log cannot say.
    OtherForm { file: String, at: u64, change: String },
    /// Nothing is to be written.
    Nothing { left_out: u64 },
}

impl std::error::Error for NoCut {}

impl fmt::Display for NoCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoCut::Copy(error) => error.fmt(f),
            NoCut::Walk { path, error } => write!(f, "{}: {error}", path.display()),
            NoCut::Write(error) => write!(f, "the binary log cannot be written: {error}"),
            NoCut::NotReached { flag, point, last: Some(last) } => {
                write!(f, "the copy does not come to {flag} ({point}): its last transaction is {last}")?;
                if *flag == "--until" {
                    f.write_str(". Where all of it is wanted, leave --until out")
                } else {
                    Ok(())
                }
            }
            NoCut::NotReached { flag, point, last: None } => {
                write!(
                    f,
                    "the copy does not come to {flag} ({point}): it has nothing behind the place where it was looked for"
                )
            }
            NoCut::NoFile { flag, name } => write!(f, "{flag}: the history has no file {name}"),
            NoCut::EndsFirst { point } => {
                write!(f, "--until ({point}) comes before --from. Take an earlier --from, or a later --until")
            }
            NoCut::Ambiguous { flag, point, choices, count } => {
                write!(
                    f,
                    "{flag}: {point} may be {count} transactions; name the GTID of the one that is meant, {flag} GTID:"
                )?;
                choices.iter().try_for_each(|choice| write!(f, "\n  {choice}"))
            }
            NoCut::Unread { flag, shown, why } => write!(
                f,
                "{flag}: {shown}: what it does cannot be looked at ({why}), so it may be what is meant or not. Name the point by its GTID"
            ),
            NoCut::Gap { file, gtids } => write!(
                f,
                "the history has a gap before {file}: {} was executed by the source and is in no file of the copy. Ask for the \
                 parts before and behind it, each for itself, or take a copy or an archive that has it",
                shortened(&gtids.to_line())
            ),
            NoCut::Parted { file, why } => {
                write!(f, "at {file}: {why}. Ask for the parts before and behind it, each for itself")
            }
            NoCut::OtherKind { file } => write!(
                f,
                "{file} was written by a server of the other kind (MySQL or MariaDB), and one binary log cannot hold both. Ask \
                 for the parts before and behind it, each for itself"
            ),
            NoCut::OtherForm { file, at, change } => write!(
                f,
                "at {file}:{at} the form of the log changes ({change}), and a server refuses a log with two forms in it. Ask for \
                 the parts before and behind it, each for itself: --until {file}:{at}, and --from {file}:{at}"
            ),
            NoCut::Nothing { left_out: 0 } => {
                f.write_str("nothing is written: the copy has no transaction between --from and --until")
            }
            NoCut::Nothing { left_out } => write!(
                f,
                "nothing is written: of the transactions between --from and --until ({left_out}) none is asked for"
            ),
        }
    }
}
