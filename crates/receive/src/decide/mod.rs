//! What an attempt decides before it receives: where the session goes on, and what a failed one means.

pub(crate) mod earlier;
pub(crate) mod examine;
pub(crate) mod fork_watch;
pub(crate) mod found;
pub(crate) mod history;
pub mod hosts;
pub(crate) mod new_timeline;
pub mod older_at_peer;
pub(crate) mod older_look;
pub(crate) mod passed_over;
pub(crate) mod plan;
pub(crate) mod shortage;
pub(crate) mod switch_over;
pub(crate) mod unreadable;
