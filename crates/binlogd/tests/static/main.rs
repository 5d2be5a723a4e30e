//! What needs neither a server nor a socket: the guards of imports, of what the promise rests on, of scripts and of the pages, the command
//! line's answers to configurations.

mod alerts;
mod circles;
mod cli_config;
mod docs;
mod imports;
mod layers;
mod plurals;
mod promise;
#[path = "../common/program/rules.rs"]
#[allow(dead_code, unreachable_pub, reason = "the tests with servers use the rest of it")]
mod rules;
mod scripts;
mod tree;
