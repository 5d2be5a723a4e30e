//! `binlogd setup mysql://root@db1`: prepares a source and this machine, and switches semi-sync on when binlogd is attached.

mod act;
mod args;
mod attached;
mod show;

use super::exit::{EXIT_OK, EXIT_PROBLEM, usage_error};
use super::style;
use crate::cli::args::login::ServerLogin;
use crate::cli::terminal::confirm::confirmed;
use act::{Failure, Worker};
pub(super) use args::SetupArgs;
use config::HostPort;
use config::password::read_file;
use setup::doctor::Wanted;
use setup::doctor::server::semi_sync::QUORUM_TIMEOUT_MIN;
use setup::{CONFIG, Files, Here, Plan, Server, State, Wish, undo};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use wire::{ConnectOptions, Connection, TlsMode, TlsOptions};

/// Pause between two looks for binlogd.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Where units of systemd stand.
const UNIT_FOLDERS: [&str; 3] = ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];
/// It exists where systemd is what runs the machine: sd_booted(3).
const SYSTEMD_RUNS: &str = "/run/systemd/system";

/// Runs `binlogd setup`.
pub(super) fn execute(args: &SetupArgs) -> ExitCode {
    let login = ServerLogin {
        argument: "the server",
        purpose: "the source; further hosts of it go into hosts of the configuration",
        url: &args.server,
        password_file: args.password_file.as_deref(),
        tls: args.tls,
        tls_ca: args.tls_ca.as_ref(),
        asks: true,
    };
    let prepared = login.options().and_then(|options| Ok((wish(args, &options)?, options)));
    let (wish, options) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return usage_error(&error),
    };
    // Before anybody is asked: what is wrong with the configuration is no business of the server's.
    if let Err(error) = Files::look(&wish) {
        return usage_error(&error);
    }
    match run(args, &wish, &options) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            for line in error.lines() {
                errln!("error: {}", style::clean(line));
            }
            ExitCode::from(EXIT_PROBLEM)
        }
    }
}

fn wish(args: &SetupArgs, options: &ConnectOptions) -> Result<Wish, String> {
    let absolute =
        |path: &Path| std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()));
    if args.require_ssl && args.tls == TlsMode::Disabled {
        return Err(
            "--require-ssl and --tls disabled exclude each other: binlogd would not be let in".to_owned()
        );
    }
    if !args.quorum.is_empty() {
        if args.quorum.len() > 1 && args.quorum.len() % 2 == 1 {
            return Err(format!(
                "--quorum: {} nodes, this one counted, bear the loss of no more of them than {} do: name one more, or one less",
                args.quorum.len() + 1,
                args.quorum.len()
            ));
        }
        if !args.semi_sync {
            return Err("--quorum and --semi-sync=false exclude each other: without semi-sync nothing is acknowledged".to_owned());
        }
        if args.timeout.is_some_and(|timeout| timeout < QUORUM_TIMEOUT_MIN) {
            return Err(
                "--quorum needs a --timeout of 1h at least: what is committed after it, no node has acknowledged".to_owned()
            );
        }
    }
    Ok(Wish {
        name: args.name.clone(),
        host: HostPort { host: options.host.clone(), port: options.port },
        account: args.account.clone(),
        pattern: args.replica_host.clone(),
        require_ssl: args.require_ssl,
        reset_password: args.reset_password,
        semi_sync: args.semi_sync,
        timeout: args.timeout,
        tls: options.tls.clone(),
        config: absolute(&args.config)?,
        source_file: args.source_file.as_deref().map(absolute).transpose()?,
        data_dir: absolute(&args.data_dir)?,
        quorum: args.quorum.clone(),
        serve: args.serve.map(|address| address.to_string()),
        admin_listen: args.admin_listen.map(|address| address.to_string()),
    })
}

fn run(args: &SetupArgs, wish: &Wish, options: &ConnectOptions) -> Result<u8, String> {
    let host = &wish.host;
    let mut connection = Connection::connect(options).map_err(|error| format!("{host}: {error}"))?;
    let seen = look(wish, options, &mut connection)?;
    if args.undo {
        outln!("{}", undo(wish, &seen.server, &seen.here.files).trim_end());
        return Ok(EXIT_OK);
    }
    let plan = &seen.plan;
    outln!("{}\n", show::head(wish, &seen.server));
    if !plan.refusals.is_empty() {
        for line in show::refusals(&plan.refusals) {
            errln!("error: {line}");
        }
        outln!("nothing was changed");
        return Ok(EXIT_PROBLEM);
    }
    outln!("{}{}", show::plan(plan), show::remarks(plan, wish));
    if !args.apply {
        match plan.has_work() {
            true => outln!("Nothing was changed. To do it: the same command with --apply"),
            false => outln!("{}", next(plan, wish)),
        }
        return Ok(EXIT_OK);
    }
    if plan.has_work() {
        if !args.yes && !confirmed(&format!("Do this, on {host} and on this machine?"), "it without --apply")?
        {
            outln!("nothing was changed");
            return Ok(EXIT_PROBLEM);
        }
        work(&seen, &mut connection)?;
    }
    let mut seen = look(wish, options, &mut connection)?;
    // What was done may let more be done: binlogd may have been attached all the time.
    if seen.plan.has_work() {
        work(&seen, &mut connection)?;
        seen = look(wish, options, &mut connection)?;
    }
    let Some(longest) = args.wait.filter(|_| !seen.plan.is_done()) else {
        return end(&seen, wish);
    };
    outln!("\n{}\nwaiting for binlogd; Ctrl-C ends only the wait", next(&seen.plan, wish));
    let deadline = Instant::now() + longest;
    while !seen.plan.is_done() {
        if seen.plan.has_work() {
            work(&seen, &mut connection)?;
        } else if Instant::now() > deadline {
            return Err(format!(
                "binlogd was not attached within {longest:?}; semi-sync is as it was. Run the same command again"
            ));
        } else {
            std::thread::sleep(LOOK_INTERVAL);
        }
        seen = look(wish, options, &mut connection)?;
    }
    end(&seen, wish)
}

/// Says what comes next. Where all is done, that commits wait for binlogd is seen with its own eyes.
fn end(seen: &Seen, wish: &Wish) -> Result<u8, String> {
    if seen.plan.is_done() && wish.semi_sync {
        attached::acknowledges(&seen.here.files.data_dir, &wish.name).map_err(|why| {
            format!("everything is there, and binlogd does not acknowledge: {why}. binlogd status says more; a restart of it takes up a plugin that came later")
        })?;
    }
    outln!("\n{}", next(&seen.plan, wish));
    Ok(EXIT_OK)
}

/// Everything that was seen, and what follows from it.
struct Seen {
    server: Server,
    here: Here,
    account: ConnectOptions,
    plan: Plan,
}

fn look(wish: &Wish, options: &ConnectOptions, connection: &mut Connection) -> Result<Seen, String> {
    let failed = |error: wire::WireError| format!("{}: {error}", wish.host);
    let server = Server::ask(connection, wish).map_err(failed)?;
    let files = Files::look(wish)?;
    let account = ConnectOptions {
        user: wish.account.clone(),
        tls: TlsOptions { mode: wish.tls_mode(), ..wish.tls.clone() },
        ..options.clone()
    };
    let login =
        server.has_account().then(|| read_file(&files.password_file).ok()).flatten().map(|password| {
            let connected = Connection::connect(&ConnectOptions { password, ..account.clone() });
            connected.map(Connection::close).map_err(|error| error.to_string())
        });
    let attached =
        attached::attached(connection, &server.facts, &files.data_dir, &wish.name).map_err(failed)?;
    let start = start(wish, &files);
    let here = Here { files, login, attached, start };
    let plan = Plan::make(wish, &server, &here, &wanted(wish));
    Ok(Seen { server, here, account, plan })
}

/// What the checks of doctor hold the server against.
fn wanted(wish: &Wish) -> Wanted {
    Wanted {
        server_id: None,
        replica_uuid: None,
        starts_at_latest: false,
        hosts: 1,
        semi_sync: wish.semi_sync,
        tls: wish.tls_mode(),
        backoff_max: Duration::from_millis(500),
        running: None,
        quorum: wish.nodes(),
    }
}

fn work(seen: &Seen, connection: &mut Connection) -> Result<(), String> {
    let mut worker = Worker { connection, account: &seen.account, files: &seen.here.files };
    worker.work(&seen.plan).map_err(|Failure { why, undo }| {
        let undo = match undo.is_empty() {
            true => "Before it nothing was changed.".to_owned(),
            false => format!("What was done before it stays; to take it back:\n    {}", undo.join("\n    ")),
        };
        format!("{why}\n{undo}\nTo go on when it is repaired: the same command again")
    })
}

/// What comes next, in words.
fn next(plan: &Plan, wish: &Wish) -> String {
    let status = match wish.config == Path::new(CONFIG) {
        true => format!("binlogd status --config {CONFIG}"),
        false => format!("binlogd status --config {}", wish.config.display()),
    };
    if plan.is_done() {
        let what = match wish.semi_sync {
            true => "A commit returns to its client when binlogd has it on stable storage.",
            false => "binlogd copies; no commit waits for it.",
        };
        return format!("All is done. {what} To see it: {status}");
    }
    let yours = plan.steps.iter().enumerate().filter(|(_, step)| step.state == State::Yours);
    let numbers: Vec<String> = yours.map(|(index, _)| (index + 1).to_string()).collect();
    let what: Vec<String> = plan
        .steps
        .iter()
        .filter(|step| step.state == State::Yours)
        .map(|step| match &step.act {
            setup::Act::Text(text) => {
                format!(
                    "{}:\n{}",
                    step.what,
                    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
                )
            }
            _ => step.what.clone(),
        })
        .collect();
    let last = plan.steps.iter().find_map(|step| match &step.state {
        State::Waits(why) => {
            Some(format!("Then run the same command again: it switches semi-sync on. (Now: {why}.)"))
        }
        _ => None,
    });
    let head = if numbers.is_empty() {
        String::new()
    } else {
        format!("Your turn, step {}. ", numbers.join(" and "))
    };
    [vec![format!("{head}{}", what.join("\n"))], last.into_iter().collect()]
        .concat()
        .join("\n")
        .trim_start()
        .to_owned()
}

/// The commands that start binlogd here.
fn start(wish: &Wish, files: &Files) -> String {
    let has_unit = UNIT_FOLDERS.iter().any(|folder| Path::new(folder).join("binlogd.service").exists());
    let of_unit = wish.config == Path::new(CONFIG) && files.data_dir == Path::new(setup::DATA_DIR);
    if super::status::of_folder(&files.data_dir)
        .is_some_and(|status| status.sources.iter().all(|source| source.name != wish.name))
    {
        return "systemctl reload binlogd    # or kill -HUP: it rereads its configuration".to_owned();
    }
    if has_unit && of_unit && Path::new(SYSTEMD_RUNS).exists() {
        return "systemctl enable --now binlogd".to_owned();
    }
    let program = std::env::current_exe().unwrap_or(PathBuf::from("binlogd"));
    let program = match program.parent() {
        Some(folder) if is_in_path(folder) => "binlogd".to_owned(),
        _ => program.display().to_string(),
    };
    let who = if files.owner.is_some() { "runuser -u binlogd -- " } else { "" };
    format!("{who}{program} run --config {}", wish.config.display())
}

fn is_in_path(folder: &Path) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|one| one == folder))
}
