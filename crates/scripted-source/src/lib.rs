//! A MySQL source that follows a script.
//!
//! It speaks just enough of the protocol for a receiver to log in, introduce itself and ask for the binary log, and it
//! can do what no real server does on demand: send a wrong checksum, lose an event, fall silent in the middle of one,
//! start its logs anew, or answer in lock step with a stopwatch running. It listens on 127.0.0.1, accepts any account,
//! and uses one thread a connection. Tests and benchmarks use it; the product never does.
//!
//! ```
//! use scripted_source::{Script, ScriptedSource, SourceLog};
//!
//! let mut script = Script::default();
//! script.log.transaction(100);
//! let source = ScriptedSource::start(script)?;
//! println!("mysql://any@127.0.0.1:{}", source.port());
//! source.append(|log: &mut SourceLog| log.group(3, 500)); // Asks for an acknowledgement of the third.
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! What it says is in [`Peer`], one connection without I/O: bytes in, bytes out. [`ScriptedSource`] puts sockets and
//! threads around it; a simulation and a fuzzer have it in their own thread.
//!
//! | file | noun |
//! |---|---|
//! | `event.rs` | the bytes of each event |
//! | `log.rs` | [`SourceLog`]: its binary log, whole files in memory |
//! | `packets.rs` | [`Packets`]: what a server says, framed |
//! | `script.rs` | [`Script`]: what the source says and does wrong |
//! | `stream.rs` | the events of one dump, and their faults |
//! | `peer.rs` | [`Peer`]: greeting, queries and their answers, the way to a dump |
//! | `shared.rs` | what threads share; [`Acknowledgement`] |
//! | `line.rs` | the bytes of a connection, in clear or in TLS |
//! | `dump.rs` | [`Dump`]: one connection that dumps, on its thread |
//! | `source.rs` | [`ScriptedSource`]: listener and threads |

mod dump;
pub mod event;
mod line;
mod log;
mod packets;
mod peer;
mod script;
mod shared;
mod source;
mod stream;

pub use dump::{Dump, Load};
pub use log::{LogFile, LogOptions, Place, SourceLog};
pub use packets::Packets;
pub use peer::{Heard, Inbox, Malformed, Peer};
pub use script::{Answer, Fault, FaultKind, Script, SemiSync, Server};
pub use shared::Acknowledgement;
pub use source::ScriptedSource;
