//! Sources that are reset, replaced, or lost the end of their log.
//! `scripts/test-servers MODULE::` runs one module of all tests on servers, wherever it stands.

#[path = "../common/mod.rs"]
mod common;

mod chaos;
mod failover;
mod failovers;
mod forks;
mod galera;
mod group_replication;
mod mariadb_recovery;
mod promote;
mod resets;
mod restored;
mod switch_over;
mod timelines;
mod withheld;
