//! The command line as it is kept and shown.

use crate::model::ServerChoice;
use std::ffi::OsString;

/// The arguments as one would type them into a shell, passwords of URLs removed. The program goes by its name alone.
pub(super) fn shown(arguments: &[OsString]) -> String {
    let arguments =
        arguments.iter().skip(1).map(|argument| quoted(&without_password(&argument.to_string_lossy())));
    std::iter::once("binlogd-lab".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// `--server=mysql://user:password@host` without the password.
fn without_password(argument: &str) -> String {
    if argument.contains("://") {
        ServerChoice::Url(argument.to_owned()).to_string()
    } else {
        argument.to_owned()
    }
}

fn quoted(argument: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=+,./:@%".contains(&byte);
    if !argument.is_empty() && argument.bytes().all(plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_removed_and_blanks_are_quoted() {
        let arguments =
            ["/x/binlogd-lab", "run", "a", "--server=mysql://dba:se:c@ret@db:3306", "--set", "name=it's me"];
        let shown = shown(&arguments.map(OsString::from));
        assert_eq!(shown, r"binlogd-lab run a --server=mysql://dba@db:3306 --set 'name=it'\''s me'");
    }
}
