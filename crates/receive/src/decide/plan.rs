//! Where a session goes on: a pure decision from what the copy holds, who answers and what the operator wants.

use binlog::Position;
use binlog::timeline::{Reason, Timeline};
use codec::gtid::{GtidState, MariadbGtid};
use config::Start;
use source::identify::SourceIdentity;

/// What the copy holds, as far as the decision needs it.
#[derive(Debug, Clone)]
pub(crate) struct Holding {
    /// `server_uuid` of the newest timeline.
    pub uuid: String,
    /// End of the copy, a boundary; `None` when the timeline has no file yet.
    pub end: Option<Position>,
    /// Name of the timeline's first file, as it was found when the timeline began.
    pub first_file: String,
    /// GTIDs of the whole history up to there, on whichever timelines; see `OpenTimeline::history`.
    pub gtids: GtidState,
    /// Those of them that no timeline holds, because they were purged before they were copied.
    pub never_held: GtidState,
}

/// What to do with the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Go on at this place of the newest timeline.
    Resume(Position),
    /// Begin a timeline.
    Begin {
        /// Why, for `timeline.toml` and the log.
        reason: Reason,
        /// With which file.
        from: From,
        /// GTIDs that the copy holds and the source lacks.
        source_lacks: GtidState,
    },
    /// The server has nothing in common with the history that the newest timeline goes on with.
    Stranger,
}

/// What a server has to do with a history of the copy, as far as their GTIDs tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kinship {
    /// It is the server of the newest timeline.
    Itself,
    /// It has executed some of the history.
    Related,
    /// It has executed none of it.
    None,
    /// The history has no GTIDs, so that nobody can say.
    Unknown,
}

impl Kinship {
    /// Of a server that answers with a history.
    ///
    /// For MariaDB it is enough that both know a server of a domain: how far each has got is another question.
    pub(crate) fn of(holding: &Holding, source: &SourceIdentity) -> Kinship {
        if holding.uuid == source.uuid {
            return Kinship::Itself;
        }
        let is_related = match (&holding.gtids, &source.executed) {
            (gtids, _) if gtids.is_empty() => return Kinship::Unknown,
            (GtidState::Mysql(held), GtidState::Mysql(executed)) => !held.intersect(executed).is_empty(),
            (GtidState::Mariadb(held), GtidState::Mariadb(executed)) => {
                let has = |id: &MariadbGtid| {
                    executed.list().any(|other| (other.domain, other.server_id) == (id.domain, id.server_id))
                        || source.applied.positions().any(|at| at.domain == id.domain)
                };
                held.list().any(|id| has(&id))
            }
            _ => false,
        };
        if is_related { Kinship::Related } else { Kinship::None }
    }
}

/// The first file of a new timeline. Files are always taken from their beginning, so that a sealed file equals the
/// source's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum From {
    /// The oldest that the source has.
    Earliest,
    /// The one that the source writes now.
    Latest,
    /// The named one.
    File(String),
    /// The one after a file that the source itself cannot read to its end.
    Behind {
        /// The end of what is held of that.
        at: Position,
        /// Name of the one after it.
        next: String,
        /// GTIDs of what was written before the next one, by its own word.
        before: GtidState,
    },
    /// The one that holds the first transaction outside this set.
    After(GtidState),
}

/// Decides for a connection that has just been made.
///
/// The same UUID means the same timeline; whether the file is still the same one is checked when the source has sent
/// its format description. The text of `start` was validated with the configuration.
pub(crate) fn plan(holding: Option<&Holding>, source: &SourceIdentity, start: &Start) -> Plan {
    let Some(holding) = holding else { return first(source, start) };
    match Kinship::of(holding, source) {
        Kinship::Itself => {}
        Kinship::Related | Kinship::Unknown => return changed_source(holding, source),
        Kinship::None => return Plan::Stranger,
    }
    Plan::Resume(holding.end.clone().unwrap_or_else(|| Position::new(holding.first_file.as_str(), 4)))
}

fn first(source: &SourceIdentity, start: &Start) -> Plan {
    let from = match start {
        Start::Resume | Start::Earliest => From::Earliest,
        Start::Latest => From::Latest,
        Start::File { name, .. } => From::File(name.clone()),
        Start::Gtid(text) => match GtidState::parse(source.executed.kind(), text) {
            Ok(set) => From::After(set),
            // Of the other server's form, so it excludes nothing that this one has.
            Err(_) => From::Earliest,
        },
    };
    Plan::Begin { reason: Reason::First, from, source_lacks: GtidState::empty(source.executed.kind()) }
}

/// Another server answers under the source's address: a failover, or a rebuilt machine.
fn changed_source(holding: &Holding, source: &SourceIdentity) -> Plan {
    let same_kind = holding.gtids.kind() == source.executed.kind();
    let none = GtidState::empty(source.executed.kind());
    if !source.has_gtids || holding.gtids.is_empty() || !same_kind {
        return Plan::Begin { reason: Reason::SourceChanged, from: From::Earliest, source_lacks: none };
    }
    let unknown_there = holding.gtids.subtract(&source.executed);
    // A source refuses a request that names transactions which it does not have. MariaDB's states cannot be cut to
    // what both have, so there everything is taken again: twice is safe, a hole is not.
    let from = match &unknown_there {
        state if state.is_empty() => From::After(holding.gtids.clone()),
        GtidState::Mysql(_) => From::After(holding.gtids.subtract(&unknown_there)),
        GtidState::Mariadb(_) => From::Earliest,
    };
    let source_lacks = unknown_there.subtract(&holding.never_held);
    let reason = if source_lacks.is_empty() { Reason::SourceChanged } else { Reason::Fork };
    Plan::Begin { reason, from, source_lacks }
}

/// With what a timeline of which nothing has arrived would begin now, by the reason that it was begun for; `None` where its
/// description does not tell. `holding` is of that timeline, and `source` the server that it is of.
pub(crate) fn begun_anew(
    info: &Timeline,
    holding: Option<&Holding>,
    source: &SourceIdentity,
    start: &Start,
) -> Option<Plan> {
    let from_earliest =
        || Plan::Begin { reason: info.reason, from: From::Earliest, source_lacks: info.lacked() };
    match info.reason {
        // The newest one of then.
        Reason::First if *start == Start::Latest => None,
        Reason::First => Some(first(source, start)),
        // It may lack by now what it had when the timeline was begun.
        Reason::SourceChanged => Some(changed_source(holding?, source)),
        Reason::Fork if is_of_another_server(info) => Some(changed_source(holding?, source)),
        Reason::Gap if info.unreadable.is_empty() => Some(from_earliest()),
        Reason::SourceReset | Reason::Stranger => Some(from_earliest()),
        // A file that was named.
        Reason::Gap | Reason::Fork => None,
    }
}

/// Whether the timeline before is of another server.
fn is_of_another_server(info: &Timeline) -> bool {
    info.previous.split_once('-').is_some_and(|(_, uuid)| uuid != info.server_uuid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::ServerKind;
    use codec::gtid::MariadbGtidState;
    use source::identify::SourceSemiSync;

    const A: &str = "aaaaaaaa-0000-0000-0000-000000000001";
    const B: &str = "bbbbbbbb-0000-0000-0000-000000000002";

    fn set(text: &str) -> GtidState {
        GtidState::parse(ServerKind::MySql, text).unwrap()
    }

    fn source(uuid: &str, executed: &str) -> SourceIdentity {
        SourceIdentity {
            version: "9.7.0".into(),
            kind: ServerKind::MySql,
            server_id: 1,
            uuid: uuid.into(),
            has_gtids: true,
            executed: set(executed),
            applied: MariadbGtidState::new(),
            purged: set(""),
            semi_sync: SourceSemiSync::Enabled,
            galera: None,
            knows_checksums: true,
            is_read_only: false,
        }
    }

    fn holding(gtids: &str) -> Holding {
        Holding {
            uuid: A.into(),
            end: Some(Position::new("b.000003", 777)),
            first_file: "b.000001".into(),
            gtids: set(gtids),
            never_held: set(""),
        }
    }

    #[test]
    fn the_same_server_is_resumed_where_the_copy_ends() {
        // Its own executed set may lag behind what it sent: with AFTER_SYNC a transaction is sent before it is committed.
        let plan =
            plan(Some(&holding(&format!("{A}:1-10"))), &source(A, &format!("{A}:1-9")), &Start::Earliest);
        assert_eq!(plan, Plan::Resume(Position::new("b.000003", 777)));
    }

    #[test]
    fn a_timeline_without_files_starts_with_the_file_it_was_begun_for() {
        let mut holding = holding("");
        holding.end = None;
        assert_eq!(
            plan(Some(&holding), &source(A, ""), &Start::Latest),
            Plan::Resume(Position::new("b.000001", 4))
        );
    }

    #[test]
    fn a_successor_that_has_everything_is_followed_by_gtid() {
        let ours = format!("{A}:1-10");
        let plan = plan(Some(&holding(&ours)), &source(B, &format!("{A}:1-10,{B}:1-2")), &Start::Resume);
        let expected = Plan::Begin {
            reason: Reason::SourceChanged,
            from: From::After(set(&ours)),
            source_lacks: set(""),
        };
        assert_eq!(plan, expected);
    }

    #[test]
    fn a_successor_that_lacks_transactions_is_a_fork_and_is_asked_for_what_it_has() {
        let plan =
            plan(Some(&holding(&format!("{A}:1-10"))), &source(B, &format!("{A}:1-8")), &Start::Resume);
        assert_eq!(
            plan,
            Plan::Begin {
                reason: Reason::Fork,
                from: From::After(set(&format!("{A}:1-8"))),
                source_lacks: set(&format!("{A}:9-10")),
            }
        );
    }

    #[test]
    fn what_was_never_copied_is_no_fork() {
        let holding = Holding { never_held: set(&format!("{A}:3-4")), ..holding(&format!("{A}:1-10")) };
        let plan = plan(Some(&holding), &source(B, &format!("{A}:1-2:5-10")), &Start::Resume);
        let from = From::After(set(&format!("{A}:1-2:5-10")));
        assert_eq!(plan, Plan::Begin { reason: Reason::SourceChanged, from, source_lacks: set("") });
    }

    #[test]
    fn a_server_that_has_nothing_of_the_history_is_a_stranger() {
        let stranger = |source: &SourceIdentity| {
            plan(Some(&holding(&format!("{A}:1-10"))), source, &Start::Resume) == Plan::Stranger
        };
        assert!(stranger(&source(B, &format!("{B}:1-90"))) && stranger(&source(B, "")));
        assert!(
            !stranger(&source(B, &format!("{A}:7"))),
            "a successor that lacks nearly all is one all the same"
        );
        let without = SourceIdentity { has_gtids: false, ..source(B, "") };
        assert!(stranger(&without), "a source with GTIDs has no successor without any");
        assert!(!stranger(&source(A, "")), "itself, after a reset");
        let state = |text: &str| GtidState::parse(ServerKind::MariaDb, text).unwrap();
        let mariadb = |executed: &str, applied: &str| SourceIdentity {
            kind: ServerKind::MariaDb,
            executed: state(executed),
            applied: applied.parse().unwrap(),
            ..source("mariadb-2", "")
        };
        let held = Holding { uuid: "mariadb-1".into(), gtids: state("0-1-100"), ..holding("") };
        let kinship = |executed: &str, applied: &str| Kinship::of(&held, &mariadb(executed, applied));
        assert_eq!(kinship("0-2-50", ""), Kinship::None);
        assert_eq!(kinship("0-1-7,0-2-50", ""), Kinship::Related);
        assert_eq!(
            kinship("0-2-50", "0-1-7"),
            Kinship::Related,
            "a replica that logs only what it writes itself"
        );
        assert_eq!(Kinship::of(&holding(""), &source(B, "")), Kinship::Unknown);
    }

    #[test]
    fn without_gtids_a_successor_is_taken_from_its_oldest_file() {
        let mut successor = source(B, "");
        successor.has_gtids = false;
        let plan = plan(Some(&holding("")), &successor, &Start::Resume);
        assert!(matches!(plan, Plan::Begin { reason: Reason::SourceChanged, from: From::Earliest, .. }));
    }

    #[test]
    fn a_timeline_of_which_nothing_has_arrived_is_begun_anew_as_its_reason_says() {
        let info = |reason| Timeline { reason, ..binlog::testing::first_timeline(B) };
        let held = Holding { uuid: B.into(), end: None, ..holding(&format!("{A}:1-10")) };
        let anew = |reason, source: &SourceIdentity, start: &Start| {
            begun_anew(&info(reason), Some(&held), source, start)
        };
        let (all, less) = (source(B, &format!("{A}:1-10,{B}:1-2")), source(B, &format!("{A}:1-8,{B}:1-2")));
        let after = |text: &str| From::After(set(text));
        let changed = anew(Reason::SourceChanged, &all, &Start::Resume);
        let from = after(&format!("{A}:1-10"));
        let nothing = || set("");
        let expected = Plan::Begin { reason: Reason::SourceChanged, from, source_lacks: nothing() };
        assert_eq!(changed, Some(expected));
        let expected = Plan::Begin {
            reason: Reason::Fork,
            from: after(&format!("{A}:1-8")),
            source_lacks: set(&format!("{A}:9-10")),
        };
        let lost = anew(Reason::SourceChanged, &less, &Start::Resume);
        assert_eq!(lost, Some(expected), "what the successor had when it took over");
        for reason in [Reason::Gap, Reason::SourceReset, Reason::Stranger, Reason::First] {
            let expected = Plan::Begin { reason, from: From::Earliest, source_lacks: nothing() };
            assert_eq!(anew(reason, &all, &Start::Resume), Some(expected));
        }
        assert_eq!(anew(Reason::First, &all, &Start::Latest), None, "the newest of then");
        assert_eq!(anew(Reason::Fork, &all, &Start::Resume), None);
        let of_another = Timeline { previous: format!("0001-{A}"), ..info(Reason::Fork) };
        assert_eq!(begun_anew(&of_another, Some(&held), &less, &Start::Resume), lost);
    }

    #[test]
    fn an_empty_folder_follows_the_operators_wish() {
        let from = |start: &Start| match plan(None, &source(A, ""), start) {
            Plan::Begin { reason: Reason::First, from, .. } => from,
            other => panic!("{other:?}"),
        };
        assert_eq!(from(&Start::Resume), From::Earliest);
        assert_eq!(from(&Start::Latest), From::Latest);
        assert_eq!(
            from(&Start::File { name: "b.000009".into(), position: 99 }),
            From::File("b.000009".into())
        );
        let text = format!("{A}:1-5");
        assert_eq!(from(&Start::Gtid(text.clone())), From::After(set(&text)));
    }
}
