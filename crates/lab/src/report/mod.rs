//! What is shown of runs: one HTML page, Markdown, CSV.

pub mod outline;
