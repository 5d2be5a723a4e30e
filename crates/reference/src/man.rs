//! Man pages.

use std::fmt::Write;
use std::path::Path;

use anyhow::Context;

/// Writes `binlogd.1`, one page a verb, and `binlogd.toml.5` into `folder`.
pub(crate) fn write(folder: &Path) -> anyhow::Result<()> {
    let failed = || format!("cannot write man pages into {}", folder.display());
    clap_mangen::generate_to(binlogd::cli::command(), folder).with_context(failed)?;
    std::fs::write(folder.join("binlogd.toml.5"), configuration(&binlogd::cli::example()))
        .with_context(failed)
}

/// The page of the configuration: the commented example, which names and explains every key.
fn configuration(example: &str) -> String {
    let mut page = format!(
        ".TH binlogd.toml 5 \"\" \"binlogd {}\"\n\
         .SH NAME\nbinlogd.toml \\- configuration of binlogd\n\
         .SH DESCRIPTION\nbinlogd run \\-\\-config takes a file in TOML. Every key, with what it means and its default:\n\
         .PP\n.nf\n",
        env!("CARGO_PKG_VERSION")
    );
    for line in example.lines() {
        // Writing to a String does not fail. What begins with a full stop or an apostrophe would be a request.
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
        let _ = writeln!(page, "{guard}{line}");
    }
    page + ".fi\n.SH SEE ALSO\n.BR binlogd (1),\n.BR binlogd\\-config (1)\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_example_is_text_and_none_a_request() {
        let page = configuration("# a \\ b-c\n.so /etc/passwd\n'quoted'\n");
        assert!(page.contains("\n# a \\e b\\-c\n\\&.so /etc/passwd\n\\&'quoted'\n.fi\n"), "{page}");
    }
}
