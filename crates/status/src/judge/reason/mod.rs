//! Why a source, or the daemon, is not as it should be: each reason with its facts, how bad it is, and what helps.
//!
//! | file | noun |
//! |---|---|
//! | `state.rs` | [`OfState`]: what the receiver does |
//! | `session.rs` | [`OfSession`]: semi-sync, and what else can be said while a session lasts |
//! | `copy.rs` | [`OfCopy`]: what the copy and others hold, and whether it is sound |
//! | `past.rs` | [`OfPast`]: what has happened and is not made good |
//! | `archive.rs` | [`OfArchive`]: the object store |
//! | `daemon.rs` | [`OfDaemon`]: disk and readers |
//! | `told.rs` | [`Whose`], and what all of them are told with |

mod archive;
mod copy;
mod daemon;
mod past;
mod session;
mod state;
mod told;

pub(crate) use archive::OfArchive;
pub(crate) use copy::OfCopy;
pub(crate) use daemon::OfDaemon;
pub(crate) use past::OfPast;
pub(crate) use session::OfSession;
pub(crate) use state::OfState;
pub(crate) use told::Whose;

use super::verdict::Worry;

/// Why a source, or the daemon, is not as it should be.
#[derive(Clone, Debug)]
pub(crate) enum Reason<'a> {
    /// What the receiver does.
    State(OfState<'a>),
    /// While a session lasts.
    Session(OfSession<'a>),
    /// What the copy and others hold.
    Copy(OfCopy<'a>),
    /// What has happened and is not made good.
    Past(OfPast<'a>),
    /// The object store.
    Archive(OfArchive<'a>),
    /// Disk and readers.
    Daemon(OfDaemon<'a>),
}

impl Reason<'_> {
    /// Whether `binlogd health` and `/healthz` complain of it. Whatever the receiver does but to receive is not healthy.
    pub(crate) fn is_unhealthy(&self) -> bool {
        match self {
            Reason::State(_) => true,
            Reason::Session(reason) => matches!(reason, OfSession::CommitsWait(_)),
            Reason::Archive(reason) => matches!(reason, OfArchive::PutBack(_)),
            Reason::Copy(_) | Reason::Past(_) => false,
            Reason::Daemon(reason) => matches!(reason, OfDaemon::NoSource),
        }
    }

    /// Whether commits do not wait for this copy, or are not safe here although they do.
    pub(crate) fn is_unprotected(&self) -> bool {
        match self {
            Reason::State(_) => true,
            Reason::Session(reason) => reason.headline().is_some(),
            Reason::Copy(reason) => matches!(reason, OfCopy::Damaged(_) | OfCopy::GivenTwice { .. }),
            Reason::Past(reason) => matches!(reason, OfPast::CommitsUntold(_)),
            Reason::Archive(_) | Reason::Daemon(_) => false,
        }
    }

    /// As the status has it.
    pub(crate) fn problem(&self, whose: &Whose) -> Worry {
        match self {
            Reason::State(reason) => reason.problem(),
            Reason::Session(reason) => reason.problem(),
            Reason::Copy(reason) => reason.problem(whose),
            Reason::Past(reason) => reason.problem(),
            Reason::Archive(reason) => reason.problem(whose),
            Reason::Daemon(reason) => reason.problem(),
        }
    }
}
