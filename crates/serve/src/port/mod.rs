//! The port: who is let in, who may read what, and one connection from its login to its end.

pub(crate) mod certificate;
pub(crate) mod error;
pub(crate) mod facts;
pub(crate) mod gone;
pub(crate) mod limits;
pub(crate) mod listener;
pub(crate) mod login;
mod nodes;
pub(crate) mod readers;
pub(crate) mod refusals;
pub(crate) mod session;
pub(crate) mod shared;
pub(crate) mod strangers;
pub(crate) mod users;
