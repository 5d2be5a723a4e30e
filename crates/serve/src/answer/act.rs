//! Statements that the session carries out: here they are checked.

use super::error;
use super::evaluate::{evaluate, no_row};
use super::privilege::{self, Privilege};
use super::reply::{Action, Answer};
use crate::answer::session_state::context::Context;
use crate::sql::{Expression, Purge, ReplicaCommand};
use codec::packet::ErrPacket;

/// KILL. A user's own connections need no privilege: readers end the one that they had before.
pub(super) fn kill(
    context: &Context,
    connection: &Expression,
    query_only: bool,
) -> Result<Answer, ErrPacket> {
    let wanted = evaluate(context, connection, &no_row, "field list")?.to_integer().unwrap_or(0);
    let sessions = context.facts.sessions();
    let found = sessions.iter().find(|session| i128::from(session.connection_id) == wanted);
    let found = found.ok_or_else(|| error::unknown_thread(wanted))?;
    if found.user != context.client.user && !context.client.privileges.control {
        return Err(error::not_owner(found.connection_id));
    }
    Ok(Answer::Act(Action::Kill { connection_id: found.connection_id, query_only }))
}

/// PURGE BINARY LOGS.
pub(super) fn purge(context: &Context, purge: &Purge) -> Result<Answer, ErrPacket> {
    privilege::need(context, Privilege::Purge)?;
    let action = match purge {
        Purge::To(file) => {
            if !context.facts.binary_logs().iter().any(|log| log.name == *file) {
                return Err(error::unknown_log());
            }
            Action::PurgeTo(file.clone())
        }
        Purge::Before(moment) => {
            let moment = evaluate(context, moment, &no_row, "field list")?.to_text();
            let text = moment.as_deref().unwrap_or("NULL");
            let micros = context.session.zone().parse_datetime(text);
            Action::PurgeBefore(micros.ok_or_else(|| error::wrong_datetime(text))?)
        }
    };
    Ok(Answer::Act(action))
}

/// START and STOP REPLICA.
pub(super) fn replica(context: &Context, command: ReplicaCommand) -> Result<Answer, ErrPacket> {
    privilege::need(context, Privilege::Control)?;
    Ok(Answer::Act(match command {
        ReplicaCommand::Start => Action::StartReplica,
        ReplicaCommand::Stop => Action::StopReplica,
    }))
}
