//! The lab: published studies of what a durable binary log costs, run on anyone's machine.
//!
//! It drives the built binlogd from outside and is never linked into it.
//!
//! | module | noun |
//! |---|---|
//! | `cli` | the command line |
//! | `model` | what is asked for and what is learnt |
//! | `apart`, `cpus`, `folders`, `network`, `link` | what is set apart: disks, processors, and a network between |
//! | `skip` | why a part of a run is left out |
//! | `fact` | what is known of what was measured on |
//! | `point` | what a cell measures, and the configurations and conditions of each study |
//! | `outline`, `number` | what a report consists of; numbers and times as they are shown |
//! | `parts` | the parts that several studies show: values over numbers of threads, and how long transactions took |
//! | `run` | a run and its cells |
//! | `study` | the five studies |
//! | `engine` | a run: cells in turn, resuming |
//! | `window`, `measured` | one window of measurement: the steps around a load, in their order; what it came to |
//! | `interrupt`, `progress` | Ctrl-C; how far a run is |
//! | `program`, `go` | a program that runs to its end; one in Go, built here |
//! | `store` | the results, one SQLite file |
//! | `environment` | what a run was measured on |
//! | `server` | the lab's own servers and the user's; the journal of changed variables |
//! | `receiver` | binlogd and real replicas while they are attached |
//! | `load` | sysbench, go-tpc, and a load of the lab's own |
//! | `file_system` | ext4 and XFS in image files |
//! | `disk_limit`, `dirty_pages` | a slower disk, and how much may wait in memory for it |
//! | `machine_changes` | what is changed of this machine itself, and setting it back |
//! | `reference` | the published figures |
//! | `statistics` | medians of rounds, and ratios within a round |
//! | `report` | HTML, Markdown and CSV |
//! | `advice` | what a DBA should do by what was measured |
//! | `check` | whether the cells of a run are sound |

pub mod advice;
pub mod apart;
pub mod check;
pub mod cli;
pub mod cpus;
pub mod dirty_pages;
pub mod disk_limit;
pub mod engine;
pub mod environment;
pub mod fact;
pub mod file_system;
pub mod folders;
pub mod go;
pub mod interrupt;
pub mod lab;
pub mod link;
pub mod load;
pub mod machine_changes;
pub mod measured;
pub mod model;
pub mod network;
pub(crate) mod number;
pub mod outline;
pub mod parts;
pub mod point;
pub mod program;
pub mod progress;
pub mod receiver;
pub mod reference;
pub mod report;
pub mod run;
pub mod server;
pub mod skip;
pub mod statistics;
pub mod store;
pub mod study;
pub mod window;
