//! What is asked of a server: who it is, what it has, how its logs compare with ours; and the sessions that we open there.

#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used))]

pub mod clock;
pub mod complaint;
pub mod identify;
pub mod link;
pub mod look;
pub mod negotiate;
pub mod own_session;
pub mod settings;
pub mod stop;
