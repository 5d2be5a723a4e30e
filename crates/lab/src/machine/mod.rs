//! The machine that is measured on: what is set apart on it, what is changed of it, and what it is.
//!
//! | module | noun |
//! |---|---|
//! | `environment` | what a run was measured on |
//! | `cpus`, `folders`, `network`, `link` | what is set apart: processors, disks, and a network between |
//! | `file_system` | ext4 and XFS in image files |
//! | `disk_limit`, `dirty_pages` | a slower disk, and how much may wait in memory for it |
//! | `changes` | what is changed of this machine itself, and setting it back |

pub mod changes;
pub mod cpus;
pub mod dirty_pages;
pub mod disk_limit;
pub mod environment;
pub mod file_system;
pub mod folders;
pub mod link;
pub mod network;
