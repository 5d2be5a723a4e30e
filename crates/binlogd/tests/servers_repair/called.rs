//! The flows of rescue, restore and undo as a program calls them: a typed request, a typed answer, no terminal.

use crate::common::daemon::Daemon;
use crate::common::{Server, connect_options};
use binlog::storage::posix::PosixStorage;
use points::criteria::Criteria;
use points::wanted_gtids::WantedGtids;
use repair::Event;
use repair::detail::Known;
use repair::history::{Copied, Until};
use repair::rescue::{Next, Rescue, Scope};
use repair::restore::{By, Known as KnownBy, Restoring};
use repair::searched::{Searchable, definitions};
use repair::undo::{NotTakenBack, Rows, TakingBack};
use repair::{rescue, restore, undo};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wire::{ConnectOptions, Connection, TlsMode};

pub(super) fn options(server: &Server) -> ConnectOptions {
    connect_options(server, "root", "", TlsMode::Preferred)
}

/// What a dry run finds, and how often the target was compared: how many transactions it lacks and has, and what comes next.
pub(super) fn rescue_finds(daemon: &Daemon, target: &Server) -> (usize, u64, Next) {
    let (folder, to) = (daemon.data_dir().join("default"), options(target));
    let request = rescue::Request {
        name: "default",
        folder: &folder,
        to: &to,
        scope: Some(Scope::All),
        allow_writers: true,
        leave_out: &[],
        unrelated: false,
        accept: &[],
        dry_run: true,
        yes: false,
    };
    let mut compared = 0;
    let mut hear = |event: Event<'_>| compared += u32::from(matches!(event, Event::Compared { .. }));
    let asked = |executed: &codec::gtid::GtidState| {
        assert!(!executed.is_empty());
        Ok(Vec::new())
    };
    let mut rescue = Rescue::look(request, asked, &mut hear).unwrap_or_else(|error| panic!("{error}"));
    let next = rescue.check(&mut hear).unwrap_or_else(|error| panic!("{error}"));
    let found = rescue.found();
    assert!(found.lacks().is_empty(), "{:?}", found.lacks());
    assert_eq!(compared, 1);
    (found.plan.transactions.len(), found.compared.same, next)
}

/// Brings the target to the point; so many transactions were applied, the events told it, and the target has executed that.
pub(super) fn restored(daemon: &Daemon, target: &Server, until: &str) -> (u64, String) {
    let folder = daemon.data_dir().join("default");
    let copied = Copied::open("default", &folder, Arc::new(PosixStorage), None).unwrap();
    let (into, data_dir) = (options(target), daemon.data_dir());
    let until = Until::parse(until, &|_| None).unwrap();
    let request = restore::Request {
        copied: &copied,
        notes: &folder,
        data_dir: &data_dir,
        into: &into,
        until: &until,
        backup_at: None,
        skip: &[],
        accept: &[],
        allow_clients: false,
        scope: Some(Scope::Sample),
        by: By::Channel { workers: None, listen: None, advertise: None },
        plan: false,
    };
    let (mut walked, mut applied) = (0, 0);
    let mut hear = |event: Event<'_>| match event {
        Event::Walked { bytes, of } => walked = bytes.min(of),
        Event::Applied { done, .. } => applied = done,
        _ => {}
    };
    let mut restoring = Restoring::look(request, &mut hear).unwrap_or_else(|error| panic!("{error}"));
    restoring.check().unwrap_or_else(|error| panic!("{error}"));
    assert!(matches!(restoring.found().known, KnownBy::Itself) && !restoring.found().is_there());
    let after = restoring.carry_out(&AtomicBool::new(false), &mut hear);
    let after = after.unwrap_or_else(|error| panic!("{error}"));
    assert!(walked > 0);
    assert_eq!(applied, restoring.found().applied());
    (applied, after.executed.to_line())
}

/// Looks at the rows of these transactions: how many are as they were left, and one line for each of the others.
pub(super) fn undo_looks(daemon: &Daemon, server: &Server, gtids: &str) -> (usize, Vec<String>) {
    let data_dir = daemon.data_dir();
    let searchable = Searchable::Copies { data_dir: &data_dir, source: None };
    let sources = searchable.sources(None).unwrap();
    let connection = Connection::connect(&options(server)).unwrap();
    let mut known = Known::new(Some(connection), definitions(&sources).0, false);
    let criteria = Criteria { gtids: Some(WantedGtids::parse(gtids).unwrap()), ..Criteria::default() };
    let mut request =
        undo::Request { sources: &sources, criteria, limit: 0, missing_ok: false, rows: Rows::Told };
    let found = TakingBack::find(&request, &mut known, &mut |_| ()).unwrap();
    let as_left = found.rows_looked_at - found.changed.len();
    request.rows = Rows::Refused;
    match TakingBack::find(&request, &mut known, &mut |_| ()) {
        Ok(again) => assert_eq!((again.rows(), found.changed.len()), (as_left, 0)),
        Err(NotTakenBack::NotAsLeft { rows, changed }) => {
            assert_eq!((rows, &changed), (found.rows_looked_at, &found.changed));
        }
        Err(error) => panic!("{error}"),
    }
    (as_left, found.changed)
}
