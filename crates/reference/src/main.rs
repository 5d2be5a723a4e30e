//! Writes what describes binlogd, from binlogd itself, so that the two cannot differ: man pages, completions of shells,
//! pages of reference. The package scripts and the book call it; nothing of it is in the product.

#![forbid(unsafe_code)]

mod book;
mod commands;
mod completions;
mod crates;
mod json;
mod keys;
mod man;
mod markdown;
mod metrics;
mod pages;

use std::path::PathBuf;

use anyhow::Context;
use clap::{Parser, Subcommand};

/// Writes man pages, completions and reference pages of binlogd.
#[derive(Debug, Parser)]
#[command(name = "binlogd-reference", arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// One man page a verb, in section 1, and one of the configuration, in section 5
    Man {
        /// Folder to write into; made when it is missing
        folder: PathBuf,
    },
    /// The commented configuration that `binlogd config example` prints
    Example {
        /// File to write
        file: PathBuf,
    },
    /// Completions for bash, zsh and fish
    Completions {
        /// Folder to write into; made when it is missing
        folder: PathBuf,
    },
    /// The pages of keys, commands, metrics and JSON, in Markdown
    Pages {
        /// Folder to write into; made when it is missing
        folder: PathBuf,
    },
    /// The drawing of the crates in ARCHITECTURE.md, from the manifests
    Crates,
    /// Check the links of the built book
    CheckBook {
        /// Folder of the book's HTML
        folder: PathBuf,
    },
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().what {
        What::Man { folder } => {
            make(&folder)?;
            man::write(&folder)
        }
        What::Example { file } => std::fs::write(&file, binlogd::cli::example())
            .with_context(|| format!("cannot write {}", file.display())),
        What::Completions { folder } => {
            make(&folder)?;
            completions::write(&folder)
        }
        What::Pages { folder } => {
            make(&folder)?;
            pages::write(&folder)
        }
        What::Crates => crates::write(),
        What::CheckBook { folder } => {
            println!("{}", book::check(&folder)?);
            Ok(())
        }
    }
}

fn make(folder: &std::path::Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))
}
