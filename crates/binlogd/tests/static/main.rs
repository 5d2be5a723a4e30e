//! What needs neither a server nor a socket: the guards of imports and of what the promise rests on, the command line's answers to configurations.

mod cli_config;
mod layers;
mod promise;
