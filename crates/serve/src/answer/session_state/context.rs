//! What an answer is computed from, and how much may be computed.

use crate::answer::error;
use crate::answer::facts::{Client, Facts};
use crate::answer::session_state::SessionState;
use codec::packet::ErrPacket;
use std::cell::Cell;

/// Bytes that one statement may go through: values that are made, and values that are compared. A statement of a
/// megabyte could name a long variable a hundred thousand times.
const WORK_BYTES_MAX: usize = 32 << 20;

/// The facts, the client and the session of one statement.
pub(in crate::answer) struct Context<'a> {
    pub(in crate::answer) facts: &'a dyn Facts,
    pub(in crate::answer) client: &'a Client,
    pub(in crate::answer) session: &'a SessionState,
    work_bytes: Cell<usize>,
}

impl<'a> Context<'a> {
    pub(in crate::answer) fn new(
        facts: &'a dyn Facts,
        client: &'a Client,
        session: &'a SessionState,
    ) -> Context<'a> {
        Context { facts, client, session, work_bytes: Cell::new(0) }
    }

    /// Counts work before it is done.
    ///
    /// # Errors
    /// When it becomes too much for one statement.
    pub(in crate::answer) fn spend(&self, bytes: usize) -> Result<(), ErrPacket> {
        let spent = self.work_bytes.get().saturating_add(bytes);
        self.work_bytes.set(spent);
        if spent > WORK_BYTES_MAX {
            return Err(error::not_supported(
                "This statement asks for more than binlogd computes for one statement",
            ));
        }
        Ok(())
    }
}
