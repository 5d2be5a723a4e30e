//! `binlogd promote --to mysql://… --config FILE`: makes another server the source of a quorum.

mod args;
mod hook;
mod report;

use super::exit::{EXIT_HOOK, EXIT_OK, EXIT_PROBLEM, usage_error};
use super::style;
use crate::cli::args::login::ServerLogin;
use crate::cli::terminal::confirm::confirmed;
pub(super) use args::PromoteArgs;
use config::value::parse_host_port;
use config::{Config, HostPort, SourceConfig};
use hook::Hook;
use receive::Upstream;
use setup::promote::{Group, Promote, PromoteAnswer, Request, reached_at, rescue_command};
use std::process::ExitCode;
use std::time::Duration;

/// Runs `binlogd promote`.
pub(super) fn execute(args: &PromoteArgs) -> ExitCode {
    if args.json && !args.dry_run && !args.yes {
        return usage_error(&"--json asks no questions: add --dry-run or --yes");
    }
    let (group, request) = match asked(args) {
        Ok(asked) => asked,
        Err(error) => return usage_error(&error),
    };
    match promote(args, group, request) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            if args.json {
                report::failed(&error);
            }
            for line in error.lines() {
                errln!("error: {}", style::clean(line));
            }
            ExitCode::from(EXIT_PROBLEM)
        }
    }
}

/// The nodes, and what is asked of them.
fn asked(args: &PromoteArgs) -> Result<(Group, Request), String> {
    let config = Config::load(&args.config).map_err(|error| error.to_string())?.config;
    let source = chosen(&config, args.source.as_deref())?;
    let own = match &args.node {
        Some(node) => parse_host_port(node).map_err(|why| format!("--node {why}"))?,
        None => own_address(&config)?,
    };
    let login = ServerLogin {
        argument: "--to",
        purpose: "the server that is to be the source",
        url: &args.to,
        password_file: args.password_file.as_deref(),
        tls: args.tls,
        tls_ca: args.tls_ca.as_ref(),
        asks: false,
    };
    let to = login.options()?;
    let rescue = rescue_command(&config.data_dir, &source.name, &to);
    let accept = args.accept.clone();
    let request = Request { to, wait: Duration::from_secs(args.wait), epoch: args.epoch, rescue, accept };
    Ok((Group::new(Upstream::asking(source, &config.data_dir), own), request))
}

/// The source that has a quorum.
fn chosen(config: &Config, name: Option<&str>) -> Result<SourceConfig, String> {
    let with_quorum = config.sources.iter().filter(|source| !source.quorum.is_empty());
    let found: Vec<_> = with_quorum.filter(|source| name.is_none_or(|name| source.name == name)).collect();
    match (&found[..], name) {
        ([source], _) => Ok((*source).clone()),
        ([], Some(name)) => Err(format!("this configuration has no source {name} with a quorum")),
        ([], None) => Err("no source of this configuration has a quorum: promote needs one".to_owned()),
        (several, _) => {
            let names: Vec<_> = several.iter().map(|source| source.name.as_str()).collect();
            Err(format!("several sources have a quorum: add --source, one of {}", names.join(", ")))
        }
    }
}

/// Where the node of this configuration serves, as this machine reaches it.
fn own_address(config: &Config) -> Result<HostPort, String> {
    let listen = config.serve.listen.filter(|listen| listen.port() != 0);
    let listen = listen.ok_or("listen in [serve] says no port of this node: add --node HOST:PORT")?;
    Ok(reached_at(listen))
}

fn promote(args: &PromoteArgs, group: Group, request: Request) -> Result<u8, String> {
    let to = request.to.clone();
    let mut promote = Promote::look(group, request).map_err(|error| error.to_string())?;
    let left = promote.left_to_open().map_err(|error| error.to_string())?;
    if !args.json {
        report::found(&promote, &left);
    }
    let present = promote.present.filter(|_| left.is_empty());
    if args.dry_run || present.is_some() && !args.repoint {
        let hook = (!args.dry_run).then_some(args.hook.as_deref()).flatten().zip(present);
        let hooked = hook.map(|(command, epoch)| Hook::of(&promote, &to, epoch).run(command));
        return Ok(told(args, PromoteAnswer::found(&mut promote, left), hooked));
    }
    let question = format!("Make {} the source?", promote.successor.host);
    if !args.yes && !confirmed(&question, "--dry-run")? {
        outln!("nothing was changed");
        return Ok(EXIT_PROBLEM);
    }
    let mut hear = |step: &str| {
        if !args.json {
            outln!("{}", style::clean(step));
        }
    };
    let done = promote.carry_out(&mut hear).map_err(|error| error.to_string())?;
    // Clients come only to a server that takes their commits.
    let hooked = args.hook.as_deref().map(|command| Hook::of(&promote, &to, done.epoch).run(command));
    let repointed = if args.repoint { promote.repoint() } else { Vec::new() };
    Ok(told(args, PromoteAnswer::done(&mut promote, done, repointed), hooked))
}

/// Prints the answer. The server is the source, whatever the hook says.
fn told(args: &PromoteArgs, mut answer: PromoteAnswer, hooked: Option<Result<(), String>>) -> u8 {
    answer.hook_error = hooked.and_then(Result::err);
    match args.json {
        true => report::json(&answer),
        false => {
            if answer.done {
                report::done(&answer);
            }
            report::notes(&answer);
        }
    }
    let Some(error) = answer.hook_error else { return EXIT_OK };
    errln!(
        "error: the server is the source, and the hook has failed: {error}. The same promote again runs it again"
    );
    EXIT_HOOK
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_own_node_is_where_it_listens() {
        let config = |listen: &str| {
            let source = "[[source]]\nname = 'a'\nhosts = ['db1']\nuser = 'repl'\npassword = 'secret'\n";
            let text = format!("data_dir = 'd'\n[serve]\nlisten = '{listen}'\n{source}");
            Config::parse(&text, Path::new("binlogd.toml"), &|_| None).unwrap().config
        };
        let own = |listen: &str| own_address(&config(listen)).map(|own| own.to_string());
        assert_eq!(own("10.0.0.5:3307").unwrap(), "10.0.0.5:3307");
        assert_eq!(own("0.0.0.0:3307").unwrap(), "127.0.0.1:3307");
        assert_eq!(own("[::]:3307").unwrap(), "[::1]:3307");
        assert!(own("127.0.0.1:0").unwrap_err().contains("--node"));
        assert!(chosen(&config("0.0.0.0:3307"), None).unwrap_err().contains("promote needs one"));
        assert!(chosen(&config("0.0.0.0:3307"), Some("a")).unwrap_err().contains("no source a"));
    }
}
