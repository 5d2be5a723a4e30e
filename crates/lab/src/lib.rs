//! The lab: published studies of what a durable binary log costs, run on anyone's machine.
//!
//! It drives the built binlogd from outside and is never linked into it.
//!
//! | module | noun |
//! |---|---|
//! | `cli` | the command line |
//! | `model` | what is asked for and what is learnt |
//! | `apart` | what is set apart: disks, processors, and a network between |
//! | `machine` | the machine: its processors, disks, file systems and network, and what is changed of them |
//! | `point` | what a cell measures, and the configurations and conditions of each study |
//! | `outline` | what a report consists of |
//! | `parts` | the parts that several studies show: values over numbers of threads, and how long transactions took |
//! | `results` | a run, its cells and figures |
//! | `study` | the five studies |
//! | `engine` | a run: cells in turn, resuming |
//! | `window` | one window of measurement: the steps around a load, in their order |
//! | `interrupt`, `progress` | Ctrl-C; how far a run is |
//! | `program`, `go` | a program that runs to its end; one in Go, built here |
//! | `store` | the results, one SQLite file |
//! | `server` | the lab's own servers and the user's; the journal of changed variables |
//! | `receiver` | binlogd and real replicas while they are attached |
//! | `load` | sysbench, go-tpc, and a load of the lab's own |
//! | `reference` | the published figures |
//! | `report` | HTML, Markdown and CSV |
//! | `advice` | what a DBA should do by what was measured |
//! | `check` | whether the cells of a run are sound |

pub mod advice;
pub mod apart;
pub mod check;
pub mod cli;
pub mod engine;
pub mod go;
pub mod interrupt;
pub mod lab;
pub mod load;
pub mod machine;
pub mod model;
pub mod outline;
pub mod parts;
pub mod point;
pub mod program;
pub mod progress;
pub mod receiver;
pub mod reference;
pub mod report;
pub mod results;
pub mod server;
pub mod store;
pub mod study;
pub mod window;
