//! How many file descriptors binlogd needs, and may have.
//!
//! A process gets two limits: the soft one holds, and the process may raise it to the hard one. The soft one is often 1024,
//! for programs that use select(2); binlogd does not.

use config::{ServeConfig, SourceConfig};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fmt;

/// What a source that receives holds:
///
/// | descriptor | of |
/// |---|---|
/// | its connection | `wire/transport.rs` |
/// | the same again, by which a stop ends a wait for it | `source/stop.rs` |
/// | a second connection that looks at the source's own counters | `receive/watch/mod.rs` |
/// | the live file | `binlog/writer/mod.rs` |
/// | the journal | `binlog/journal` |
/// | the lock of the folder | `binlog/folder.rs` |
/// | what it needs for a moment when a file begins, which all sources may do at once | `binlog/writer/mod.rs`, `receive/attempt/mod.rs` |
///
/// For each further host of the list one more, by which it is looked at (`receive/watch/others.rs`). With `ack_after_replicas` or
/// `quorum` one more, by which the others wake it (`binlog/writer/confirmations.rs`). For each other node of a quorum two, by which it is
/// heard and asked (`receive/nodes`); that it listens here is a reader.
pub const PER_SOURCE: u64 = 7;

fn needed_by(source: &SourceConfig) -> u64 {
    let waits_for_others = source.ack_after_replicas > 0 || !source.quorum.is_empty();
    PER_SOURCE
        + (source.hosts.len() as u64).saturating_sub(1)
        + u64::from(waits_for_others)
        + 2 * source.quorum.len() as u64
}

/// What is kept for everything else: 32 connections to the admin address with what belongs to them, standard input and output,
/// the event queue, and what a source holds for a moment, such as the folder that it syncs or the next file. Where these are
/// used up for a moment, `binlog/storage/mod.rs` waits.
pub const RESERVE: u64 = 64;

/// What a reader holds: its connection, the same again by which KILL and a stop end it, and with TLS once more; with semi-sync
/// once more, by which its acknowledgements are read; the binary log that it reads; and another file or folder for a moment, when it begins or goes on to the next file, which all may do at once.
/// Who has not logged in holds less.
pub const PER_READER: u64 = 6;

/// How many descriptors the process may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors {
    /// The limit that holds; `None` when there is none.
    pub limit: Option<u64>,
}

/// The limit is lower than what the sources need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooFew {
    limit: u64,
    sources: usize,
    /// By the sources alone.
    needed: u64,
    /// How many sources can be served.
    pub served: usize,
}

impl Descriptors {
    /// Raises the soft limit of this process to the hard one.
    pub fn raise() -> Descriptors {
        let before = getrlimit(Resource::Nofile);
        let raised = Rlimit { current: before.maximum, maximum: before.maximum };
        if before.current != before.maximum
            && let Err(error) = setrlimit(Resource::Nofile, raised)
        {
            tracing::warn!("cannot raise the limit of open files to {:?}: {error}", before.maximum);
        }
        Descriptors { limit: getrlimit(Resource::Nofile).current }
    }

    /// What [`Descriptors::raise`] would give.
    pub fn reachable() -> Descriptors {
        Descriptors { limit: getrlimit(Resource::Nofile).maximum }
    }

    /// Whether they do for so many sources.
    ///
    /// # Errors
    /// How many they do for.
    pub fn suffice_for(self, sources: &[SourceConfig]) -> Result<(), TooFew> {
        let Some(limit) = self.limit else { return Ok(()) };
        let free = limit.saturating_sub(RESERVE);
        let so_far = sources.iter().scan(0, |needed, source| {
            *needed += needed_by(source);
            Some(*needed)
        });
        let served = so_far.take_while(|needed| *needed <= free).count();
        let (sources, needed) = (sources.len(), sources.iter().map(needed_by).sum());
        if sources <= served { Ok(()) } else { Err(TooFew { limit, sources, needed, served }) }
    }
}

/// There is room for fewer readers than are configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LessRoom {
    limit: u64,
    sources: usize,
    /// By the sources.
    needed: u64,
    wanted: u32,
    /// How many readers there is room for.
    pub readers: u32,
}

impl Descriptors {
    /// Whether so many readers, and those that have not logged in, find descriptors beside the sources and never take one of
    /// theirs.
    ///
    /// # Errors
    /// How many do.
    pub fn suffice_for_readers(self, sources: &[SourceConfig], wanted: u32) -> Result<(), LessRoom> {
        let Some(limit) = self.limit else { return Ok(()) };
        let (sources, needed) = (sources.len(), sources.iter().map(needed_by).sum::<u64>());
        let free = limit.saturating_sub(RESERVE + needed);
        let fits = |readers: &u32| needed_for(*readers) <= free;
        if fits(&wanted) {
            return Ok(());
        }
        // Where not even strangers find room, nobody comes.
        let readers = (1..wanted).rev().find(fits).unwrap_or(0);
        Err(LessRoom { limit, sources, needed, wanted, readers })
    }
}

/// Of strangers who were sent away some may still be there.
fn needed_for(readers: u32) -> u64 {
    (u64::from(readers) + 2 * u64::from(ServeConfig::strangers_beside(readers))) * PER_READER
}

impl fmt::Display for LessRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LessRoom { limit, sources, needed, wanted, readers } = self;
        let needed = needed_for(*wanted) + needed + RESERVE;
        write!(
            f,
            "max_connections = {wanted} readers ({PER_READER} file descriptors each, with those that have not logged in) beside \
             {sources} sources need {needed} file descriptors, but this process may open {limit} files: at most {readers} readers \
             are served, so that none takes what the sources need. Raise the limit: LimitNOFILE= in the unit of systemd, \
             `ulimit -n`, or --ulimit nofile= of a container"
        )
    }
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooFew { limit, sources, needed, served } = self;
        let needed = needed + RESERVE;
        write!(
            f,
            "{sources} sources need {needed} file descriptors ({PER_SOURCE} each, and {RESERVE} for everything else), but this \
             process may open {limit} files: only the first {served} sources can be received. Raise the limit: LimitNOFILE= \
             in the unit of systemd, `ulimit -n`, or --ulimit nofile= of a container"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::Config;
    use std::path::Path;

    fn sources(count: usize) -> Vec<SourceConfig> {
        let text: String = (0..count)
            .map(|n| format!("[[source]]\nname = 's{n}'\nhosts = ['h{n}']\nuser = 'u'\n"))
            .collect();
        Config::parse(&text, Path::new("b.toml"), &|_| None).unwrap().config.sources
    }

    #[test]
    fn what_is_needed_and_how_far_it_goes_is_told() {
        let may = |limit| Descriptors { limit: Some(limit) };
        let exactly = 20 * PER_SOURCE + RESERVE;
        assert_eq!(may(exactly).suffice_for(&sources(20)), Ok(()));
        assert_eq!(Descriptors { limit: None }.suffice_for(&sources(20)), Ok(()));
        let few = may(exactly - 1).suffice_for(&sources(20)).unwrap_err();
        assert_eq!(few.served, 19);
        let text = few.to_string();
        assert!(text.contains(&format!("20 sources need {exactly} file descriptors")), "{text}");
        assert!(text.contains("only the first 19 sources") && text.contains("LimitNOFILE="), "{text}");
        assert_eq!(may(RESERVE - 1).suffice_for(&sources(1)).unwrap_err().served, 0);
        // Who waits for receivers further down is woken by them.
        let mut waits = sources(20);
        waits[0].ack_after_replicas = 1;
        assert_eq!(may(exactly).suffice_for(&waits).unwrap_err().served, 19);
        assert_eq!(may(exactly + 1).suffice_for(&waits), Ok(()));
    }

    #[test]
    fn readers_get_what_the_sources_leave() {
        let may = |limit| Descriptors { limit: Some(limit) };
        let strangers = u64::from(ServeConfig::strangers_beside(500));
        let exactly = 3 * PER_SOURCE + RESERVE + (500 + 2 * strangers) * PER_READER;
        assert_eq!(may(exactly).suffice_for_readers(&sources(3), 500), Ok(()));
        assert_eq!(Descriptors { limit: None }.suffice_for_readers(&sources(3), 500), Ok(()));
        assert_eq!(may(exactly - 1).suffice_for_readers(&sources(3), 500).unwrap_err().readers, 499);
        let less = may(256).suffice_for_readers(&sources(1), 500).unwrap_err();
        assert_eq!(less.readers, 20, "(20 + 2 * 5) * 6 are 180 of the 185 that are left");
        let text = less.to_string();
        assert!(text.contains("max_connections = 500") && text.contains("at most 20 readers"), "{text}");
        assert_eq!(may(RESERVE + PER_SOURCE).suffice_for_readers(&sources(1), 500).unwrap_err().readers, 0);
    }

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let hard = Descriptors::reachable();
        assert_eq!(Descriptors::raise(), hard);
        assert_eq!(getrlimit(Resource::Nofile).current, hard.limit);
    }
}
