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
//! | file | noun |
//! |---|---|
//! | `script.rs` | [`Script`]: what the source says and does wrong |
//! | `log.rs` | [`SourceLog`]: its binary log, whole files in memory |
//! | `event.rs` | the bytes of each event |
//! | `source.rs` | [`ScriptedSource`]: listener, threads, what was received |
//! | `login.rs` | greeting, queries and their answers |
//! | `dump.rs` | [`Dump`]: one stream of events and its acknowledgements |

mod dump;
pub mod event;
mod log;
mod login;
mod script;
mod source;

pub use dump::{Acknowledgement, Dump};
pub use log::{LogFile, LogOptions, Place, SourceLog};
pub use script::{Fault, FaultKind, Load, Script, SemiSync};
pub use source::ScriptedSource;
