//! The log: lines on standard error. Where that is the journal of systemd, which knows the time and paints by itself, lines are
//! neither dated nor coloured, and each begins with its priority as sd-daemon(3) has it: `journalctl -p err` finds the errors.

use config::{LogConfig, LogFormat, LogLevel};
use std::fmt;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{self, FormatEvent, FormatFields, Writer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// Says where the journal listens: device and inode of the stream, as `device:inode`.
const JOURNAL_STREAM: &str = "JOURNAL_STREAM";

/// Starts the log of the process.
pub(super) fn start(config: LogConfig) {
    let level = match config.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let builder =
        tracing_subscriber::fmt().with_max_level(level).with_target(false).with_writer(std::io::stderr);
    let filter = filter(level);
    // Only fails when a log is set already, as in tests.
    let _ = match (config.format, is_journal()) {
        (LogFormat::Json, false) => builder.json().finish().with(filter).try_init(),
        (LogFormat::Json, true) => {
            let json = format::Format::default().json().with_target(false);
            let builder = builder.fmt_fields(format::JsonFields::new()).event_format(ForJournal(json));
            builder.finish().with(filter).try_init()
        }
        (LogFormat::Text, true) => {
            let text = format::Format::default().without_time().with_target(false);
            builder.with_ansi(false).event_format(ForJournal(text)).finish().with(filter).try_init()
        }
        (LogFormat::Text, false) => {
            use std::io::IsTerminal;
            let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            builder.with_ansi(colour).finish().with(filter).try_init()
        }
    };
}

/// What is written at that level. The client of the object stores tells of each request that it repeats, as news, and knows
/// neither source nor store: who gave it the request tells whether something came of it.
fn filter(level: LevelFilter) -> Targets {
    let of_client = if level == LevelFilter::INFO { LevelFilter::WARN } else { level };
    Targets::new().with_default(level).with_target("object_store", of_client)
}

/// Whether standard error leads to the journal: the variable alone is inherited by whoever is started, wherever that one writes.
fn is_journal() -> bool {
    let Ok(stream) = std::env::var(JOURNAL_STREAM) else { return false };
    rustix::fs::fstat(std::io::stderr())
        .is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// As the format that it holds, with the priority before each line.
struct ForJournal<F>(F);

impl<S, N, F> FormatEvent<S, N> for ForJournal<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut text = String::new();
        self.0.format_event(context, Writer::new(&mut text), event)?;
        let priority = priority(*event.metadata().level());
        for line in text.trim_end().lines() {
            writeln!(writer, "<{priority}>{}", line.trim_start())?;
        }
        Ok(())
    }
}

/// As syslog counts.
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_the_client_of_the_stores_repeats_is_no_news() {
        let would = |level, target: &str| filter(level).would_enable(target, &Level::INFO);
        assert!(would(LevelFilter::INFO, "binlogd::daemon"));
        assert!(!would(LevelFilter::INFO, "object_store::client::retry"));
        assert!(would(LevelFilter::DEBUG, "object_store::client::retry"));
        assert!(!would(LevelFilter::WARN, "object_store::client::retry"));
        assert!(filter(LevelFilter::INFO).would_enable("object_store::client::retry", &Level::WARN));
    }

    #[test]
    fn each_line_has_its_priority_and_neither_time_nor_colour() {
        let written = Written::default();
        let for_writer = written.clone();
        let text = format::Format::default().without_time().with_target(false);
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_ansi(false)
            .event_format(ForJournal(text))
            .with_writer(move || for_writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::error!(source = "db1", "the first line\nthe second");
            tracing::warn!("careful");
            tracing::info!("news");
            tracing::debug!("details");
        });
        let written = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert_eq!(
            written,
            "<3>ERROR the first line\n<3>the second source=\"db1\"\n<4>WARN careful\n<6>INFO news\n<7>DEBUG details\n"
        );
    }
}
