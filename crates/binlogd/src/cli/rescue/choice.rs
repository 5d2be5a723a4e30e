//! Which server: what the command line of a rescue names.

use super::args::RescueArgs;
use crate::cli::args::login::ServerLogin;
use wire::ConnectOptions;

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
}
