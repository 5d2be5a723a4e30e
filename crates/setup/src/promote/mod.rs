//! Another source for a quorum: fence, agree, feed, accept, open. The rules are `quorum`'s; here they are carried out.
//!
//! ```text
//! look ──► feed: the successor has what the nodes hold
//!      ──► fence: a majority promises an epoch, and acknowledges nothing of an older one
//!            ──► agree: what the most advanced of them holds is the history
//!                  ──► feed the rest: by its own replication, or from a node
//!                        ──► accept: a majority records the successor as the source of the epoch
//!                              ──► open: semi-sync on, then it is made writable
//! ```
//!
//! Each step is durable at the nodes before the next one begins. Whoever is interrupted runs the same again, at any node: before
//! `accept` a new epoch is begun, and after that only what is left to be opened is done.
//!
//! | file | noun |
//! |---|---|
//! | `group.rs` | [`Group`]: the nodes, and what is asked of them |
//! | `successor.rs` | [`Successor`]: the server that is to be the source |
//! | `feed.rs` | who brings the successor what it lacks |
//! | `fitness.rs` | what on that server would make the work something else, each by name |
//! | `channel.rs` | one channel of its replication |
//! | `contents.rs` | whether it has the transactions of the history, and not only their GTIDs |
//! | `hosts.rs` | the hosts of the list, as the nodes reach them |
//! | `steps.rs` | [`Promote`]: look, then the steps |
//! | `repoint.rs` | the other replicas of the list, pointed to the new source |
//! | `answer.rs` | [`PromoteAnswer`]: what was found and done, for people and for programs |
//! | `no_promotion.rs` | [`NoPromotion`]: why there is none, or none yet |

mod answer;
mod channel;
mod contents;
mod feed;
mod fitness;
mod group;
mod hosts;
mod no_promotion;
mod progress;
mod repoint;
mod steps;
mod successor;

pub use answer::{AbsentNode, LostTail, PromoteAnswer, RepointedHost};
pub use group::{Group, reached_at};
pub use no_promotion::{NoPromotion, rescue_command};
pub use steps::{Done, Promote, Request};
pub use successor::Successor;
