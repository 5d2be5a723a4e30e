//! Which copy, and which server: what the command line of a rescue names.

use super::super::server_login::ServerLogin;
use super::args::RescueArgs;
use log::folder::source_folders;
use log::posix::PosixStorage;
use std::path::{Path, PathBuf};
use wire::ConnectOptions;

/// The source's folder, or what is wrong with the command line.
pub(super) fn choose(data_dir: &Path, wanted: Option<&str>) -> Result<(String, PathBuf), String> {
    let shown = data_dir.display();
    let mut sources =
        source_folders(&PosixStorage, data_dir).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let names = sources.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    if let Some(wanted) = wanted {
        let found = sources.iter().position(|(name, _)| name == wanted);
        let found = found.ok_or_else(|| format!("{shown} holds no source {wanted:?}; there are: {names}"))?;
        return Ok(sources.swap_remove(found));
    }
    match sources.len() {
        0 => Err(format!("{shown} holds no source: name the data_dir of the configuration")),
        1 => Ok(sources.swap_remove(0)),
        _ => Err(format!("{shown} holds several sources: choose one with --source; there are: {names}")),
    }
}

pub(super) fn options(args: &RescueArgs) -> Result<ConnectOptions, String> {
    let login = ServerLogin {
        argument: "--to",
        purpose: "the server to complete",
        url: &args.to,
        password_file: args.password_file.as_deref(),
        tls: args.tls,
        tls_ca: args.tls_ca.as_ref(),
        asks: false,
    };
    login.options()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, Command, FromArgMatches};
    use log::posix::PosixStorage;
    use log::testing::first_timeline;
    use wire::TlsMode;

    fn parse(line: &str) -> RescueArgs {
        let command = RescueArgs::augment_args(Command::new("rescue"));
        RescueArgs::from_arg_matches(&command.try_get_matches_from(line.split(' ')).unwrap()).unwrap()
    }

    #[test]
    fn the_target_is_one_server() {
        let told = |line: &str| options(&parse(line));
        let one = told("rescue data --to mysql://root:pw@db2:3307 --tls required").unwrap();
        assert_eq!((one.host.as_str(), one.port, one.user.as_str()), ("db2", 3307, "root"));
        assert_eq!((one.password.expose(), one.tls.mode), ("pw", TlsMode::Required));
        assert!(told("rescue data --to mysql://root@a,b").unwrap_err().contains("one host"));
        assert!(told("rescue data --to root@a").unwrap_err().starts_with("--to: the URL must begin"));
        let missing = told("rescue data --to mysql://root@a --password-file none").unwrap_err();
        assert!(missing.starts_with("--password-file \"none\" cannot be read"), "{missing}");
        let twice = told("rescue data --to mysql://root:pw@a --password-file none").unwrap_err();
        assert!(twice.contains("keep one"));
    }

    #[test]
    fn one_source_needs_no_name() {
        let dir = tempfile::tempdir().unwrap();
        assert!(choose(dir.path(), None).unwrap_err().contains("holds no source"));
        let timeline = first_timeline("a");
        for name in ["orders", "stock"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            timeline.create(&PosixStorage, &dir.path().join(name), 1).unwrap();
            if name == "orders" {
                assert_eq!(choose(dir.path(), None).unwrap().0, "orders");
            }
        }
        assert!(choose(dir.path(), None).unwrap_err().contains("orders, stock"));
        assert_eq!(choose(dir.path(), Some("stock")).unwrap().0, "stock");
        assert!(choose(dir.path(), Some("other")).unwrap_err().contains("orders, stock"));
    }
}
