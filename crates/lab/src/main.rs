//! `binlogd-lab`; everything is in the library.

fn main() -> std::process::ExitCode {
    binlogd_lab::cli::main()
}
