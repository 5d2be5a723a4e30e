//! The status for a person: one block a source.

use super::head::head;
use super::page::{Page, WIDTH};
use super::rank::color;
use crate::cli::style::clean;
use crate::cli::units;
use codec::Position;
use jiff::Timestamp;
use status::view::{self, SourceRows};
use status::{CounterValues, DaemonStatus, LatencySummary, SourceStatus, StateName};
use std::fmt::{Result, Write};

/// The whole text. `unanswered` says why it comes from the files, if it does. Texts of a server are shown without
/// control characters, so that none can drive the terminal.
pub(super) fn render(
    status: &DaemonStatus,
    unanswered: Option<&str>,
    colored: bool,
    now: Timestamp,
) -> String {
    let mut page = Page::new(WIDTH, colored, now);
    page.text = head(status, unanswered, colored, now);
    for source in &status.sources {
        // Writing to a String does not fail.
        let _ = page.source(source);
    }
    page.text
}

/// Everything about one source, without colours, in `width` columns.
pub(in crate::cli) fn of_source(source: &SourceStatus, width: usize, now: Timestamp) -> String {
    let mut page = Page::new(width, false, now);
    // Writing to a String does not fail.
    let _ = page.source(source);
    page.text
}

/// The four positions of one source, and the end of its archive, without colours, in `width` columns.
pub(in crate::cli) fn ladder_of(source: &SourceStatus, width: usize, now: Timestamp) -> String {
    let mut page = Page::new(width, false, now);
    // Writing to a String does not fail.
    let _ = page.ladder(source).and_then(|()| page.rows(view::archived(source).as_slice()));
    page.text
}

impl Page {
    fn source(&mut self, source: &SourceStatus) -> Result {
        let state = self.painted(source.state.word(), color(source.verdict.level));
        writeln!(self.text, "\n{}: {state}", clean(&source.name))?;
        self.line("", source.state_detail.as_deref())?;
        let rows = SourceRows::of(source, self.now);
        self.rows(&rows.connection)?;
        self.ladder(source)?;
        self.rows(&rows.kept)?;
        writeln!(self.text, "\n  GTIDs")?;
        self.rows(&view::gtids(&source.state, &source.gtid))?;
        self.rows(&rows.histories)?;
        self.rows(&rows.peers)?;
        self.rows(rows.verified.as_slice())?;
        if source.state == StateName::NotRunning {
            return Ok(());
        }
        if let Some(takes) = &rows.takes {
            writeln!(self.text)?;
            self.row(takes)?;
        }
        self.counters(&source.counters)?;
        self.latencies(&[("sync", &source.latency.sync), ("acknowledge", &source.latency.acknowledge)])
    }

    fn ladder(&mut self, source: &SourceStatus) -> Result {
        let rungs = source.positions.rungs();
        let file_width = rungs.iter().filter_map(|rung| rung.1).map(|at| at.file.chars().count()).max();
        let Some(file_width) = file_width.map(|width| width.max(20)) else {
            return self.nothing_stored(source);
        };
        writeln!(
            self.text,
            "\n  {:<14}{:<file_width$}  {:>14}  behind the line above",
            "position", "file", "offset"
        )?;
        let mut above = None;
        for (name, position) in rungs {
            let Some(position) = position else {
                let what = if source.state == StateName::NotRunning { "not known" } else { "-" };
                writeln!(self.text, "  {name:<14}{what}")?;
                continue;
            };
            let lag = above.map_or(String::new(), |above| lag(above, position));
            let line =
                format!("  {name:<14}{:<file_width$}  {:>14}  {lag}", clean(&position.file), position.offset);
            writeln!(self.text, "{}", line.trim_end())?;
            above = Some(position);
        }
        Ok(())
    }

    /// A timeline without a file yet. What the timelines before it hold is as safe as ever.
    fn nothing_stored(&mut self, source: &SourceStatus) -> Result {
        let Some(previous) = &source.previous_timeline else {
            return self.line("position", Some("nothing stored yet"));
        };
        self.line("position", Some("nothing stored on this timeline yet"))?;
        let end = match &previous.end {
            Some(end) => format!("durable to {} {}", end.file, end.offset),
            None => "without a file".to_owned(),
        };
        self.line("kept", Some(&format!("{}, {end}", previous.name)))
    }

    fn counters(&mut self, counters: &CounterValues) -> Result {
        let unexpected = counters.unexpected_ack_requests;
        let pairs = [
            ("events", units::count(counters.events), "transactions", units::count(counters.transactions)),
            (
                "syncs",
                units::count(counters.syncs),
                "acknowledgements",
                units::count(counters.acknowledgements),
            ),
            (
                "received",
                units::bytes(counters.bytes_received),
                "written",
                units::bytes(counters.bytes_written),
            ),
            (
                "reconnects",
                units::count(counters.reconnects),
                "checksum failures",
                units::count(counters.checksum_failures),
            ),
        ];
        writeln!(self.text)?;
        for (left, left_value, right, right_value) in pairs {
            writeln!(self.text, "  {left:<14}{left_value:>20}    {right:<20}{right_value:>20}")?;
        }
        if unexpected > 0 {
            writeln!(
                self.text,
                "  unexpected requests for an acknowledgement: {}",
                units::count(unexpected)
            )?;
        }
        Ok(())
    }

    fn latencies(&mut self, rows: &[(&str, &LatencySummary)]) -> Result {
        if rows.iter().all(|(_, latency)| latency.count == 0) {
            return Ok(());
        }
        write!(self.text, "\n  {:<14}", "latency")?;
        for title in ["p50", "p90", "p95", "p99", "p99.9", "max", "mean"] {
            write!(self.text, "{title:>9}")?;
        }
        writeln!(self.text)?;
        for (name, l) in rows.iter().filter(|(_, latency)| latency.count > 0) {
            write!(self.text, "  {name:<14}")?;
            for value in [l.p50_us, l.p90_us, l.p95_us, l.p99_us, l.p999_us, l.max_us, l.mean_us] {
                write!(self.text, "{:>9}", units::latency(value))?;
            }
            writeln!(self.text)?;
        }
        Ok(())
    }
}

fn lag(above: &Position, below: &Position) -> String {
    if above.file != below.file {
        return "in another file".to_owned();
    }
    match above.offset.checked_sub(below.offset) {
        Some(lag) => units::bytes(lag),
        // Only acknowledged can be ahead, and only with fsync_mode 0.
        None => format!("ahead by {}", units::bytes(below.offset - above.offset)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::WIDTH;
    use super::*;
    use status::{
        DiskStatus, GtidTexts, Ladder, LastError, Latencies, PreviousTimeline, Regained, SemiSyncStatus,
        Verified,
    };
    use std::sync::Arc;

    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn now() -> Timestamp {
        "2026-11-21T07:00:00Z".parse().unwrap()
    }

    fn daemon(sources: Vec<SourceStatus>) -> DaemonStatus {
        DaemonStatus {
            binlogd_version: "0.2.0".to_owned(),
            pid: Some(4242),
            uptime_seconds: Some(11_520),
            data_dir: "/var/lib/binlogd".to_owned(),
            disk: Some(DiskStatus {
                free_bytes: 41 << 30,
                size_bytes: 100 << 30,
                warn_below_bytes: Some(10 << 30),
                low: false,
                hours_left: Some(79.25),
            }),
            running: true,
            sources,
            ..DaemonStatus::default()
        }
        .judged(now())
    }

    fn receiving() -> SourceStatus {
        let at = |file: &str, position| Some(Position::new(Arc::from(file), position));
        SourceStatus {
            name: "orders".to_owned(),
            state: StateName::Receiving,
            state_detail: Some("since 2026-11-21 03:48:00 UTC".to_owned()),
            host: Some("db1:3306".to_owned()),
            server_version: Some("9.7.0".to_owned()),
            server_uuid: Some(UUID.to_owned()),
            server_id: Some(1),
            timeline: Some(format!("0001-{UUID}")),
            semi_sync: SemiSyncStatus { active: true, reason: "negotiated with the source".to_owned() },
            tls: Some("TLSv1.3".to_owned()),
            fsync_mode: Some(1),
            positions: Ladder {
                received: at("mysql-bin.000003", 123_456_789),
                written: at("mysql-bin.000003", 123_456_789),
                durable: at("mysql-bin.000003", 123_400_000),
                acknowledged: at("mysql-bin.000002", 1_073_741_824),
            },
            gtid: GtidTexts {
                durable: format!("{UUID}:1-1234567"),
                acknowledged: format!("{UUID}:1-1234560"),
            },
            seconds_behind: Some(0),
            counters: CounterValues {
                events: 12_345_678,
                transactions: 1_234_567,
                acknowledgements: 98_765,
                reconnects: 2,
                bytes_received: 5_000_000_000,
                bytes_written: 4_999_000_000,
                syncs: 98_770,
                ..CounterValues::default()
            },
            latency: Latencies {
                sync: LatencySummary {
                    count: 98_770,
                    p50_us: 870.4,
                    p90_us: 1_240.0,
                    p95_us: 1_400.0,
                    p99_us: 3_100.0,
                    p999_us: 12_400.0,
                    max_us: 1_250_000.0,
                    mean_us: 910.7,
                },
                acknowledge: LatencySummary::default(),
            },
            ..SourceStatus::default()
        }
    }

    fn backing_off() -> SourceStatus {
        let intervals: Vec<String> =
            (0..40).map(|n| format!(":{}-{}", n * 1_000 + 1, n * 1_000 + 900)).collect();
        SourceStatus {
            name: "stock".to_owned(),
            state: StateName::BackingOff,
            state_detail: Some(
                "the connection was refused; next attempt at 2026-11-21 07:00:08 UTC".to_owned(),
            ),
            last_error: Some(LastError {
                at: "2026-11-21T06:56:55Z".parse().unwrap(),
                message:
                    "db2:3306 refused the connection, and this message is longer than one line of a terminal \
                          \x1b[2J\nas those of servers can be"
                        .to_owned(),
            }),
            host: Some("db2:3306".to_owned()),
            fsync_mode: Some(0),
            gtid: GtidTexts { durable: format!("{UUID}{}", intervals.concat()), ..GtidTexts::default() },
            ..SourceStatus::default()
        }
    }

    fn offline() -> SourceStatus {
        let at = |position| Some(Position::new(Arc::from("mysql-bin.000003"), position));
        SourceStatus {
            name: "orders".to_owned(),
            state: StateName::NotRunning,
            positions: Ladder { received: at(400), written: at(400), durable: at(400), acknowledged: None },
            ..SourceStatus::default()
        }
    }

    #[test]
    fn the_text_of_a_running_daemon() {
        let text = render(&daemon(vec![receiving(), backing_off()]), None, false, now());
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_disk_that_is_low_is_told_apart() {
        let mut status = daemon(Vec::new());
        status.disk = status.disk.map(|disk| DiskStatus { free_bytes: 9 << 30, low: true, ..disk });
        let text = render(&status, None, false, now());
        let idle = |hours_left| {
            let disk = status.disk.clone().map(|disk| DiskStatus { low: false, hours_left, ..disk });
            render(&DaemonStatus { disk, ..status.clone() }, None, false, now())
        };
        assert!(idle(None).contains("disk        9.0 GiB of 100.0 GiB free\n"));
        assert!(idle(Some(8_761.0)).contains(" free, enough for more than a year at the"));
        let expected = "\
disk is low: 9.0 GiB of 100.0 GiB free, enough for 3 d 7 h at the present rate;
             disk_warn is 10.0 GiB
";
        assert!(text.contains(expected), "{text}");
        assert!(render(&status, None, true, now()).contains("\x1b[1;33mdisk is low\x1b[0m: 9.0"));
    }

    #[test]
    fn the_text_from_the_files() {
        let status =
            DaemonStatus { running: false, pid: None, uptime_seconds: None, ..daemon(vec![offline()]) };
        let why = "no daemon answers at 127.0.0.1:9306 (io: Connection refused)";
        insta::assert_snapshot!(render(&status, Some(why), false, now()));
    }

    #[test]
    fn a_fork_shows_what_is_kept_and_its_rescue_what_is_back() {
        let end = Some(Position::new(Arc::from("mysql-bin.000003"), 1234));
        let forked = SourceStatus {
            state: StateName::BackingOff,
            previous_timeline: Some(PreviousTimeline { name: format!("0001-{UUID}"), end }),
            source_lacks: Some(format!("{UUID}:9-10")),
            gtid: GtidTexts { durable: format!("{UUID}:1-8"), ..GtidTexts::default() },
            ..SourceStatus::default()
        };
        let text = render(&daemon(vec![forked.clone()]), None, false, now());
        let kept = format!("kept          0001-{UUID}, durable to");
        assert!(text.contains("nothing stored on this timeline yet") && text.contains(&kept), "{text}");
        assert!(text.contains("mysql-bin.000003 1234") && text.contains(":9-10"), "{text}");
        let regained = Regained { at: now(), gtids: format!("{UUID}:9-10") };
        let back =
            SourceStatus { source_lacks: Some(String::new()), source_regained: Some(regained), ..forked };
        let text = render(&daemon(vec![back]), None, false, now());
        assert!(
            text.contains("source lacks  nothing any more: it has again what it lacked, since"),
            "{text}"
        );
    }

    #[test]
    fn what_clients_were_told_without_an_acknowledgement_is_shown() {
        let mut source = receiving();
        assert!(!render(&daemon(vec![source.clone()]), None, false, now()).contains("without ack"));
        let at = |text: &str| Some(text.parse().unwrap());
        source.unacknowledged_commits.commits = 3871;
        source.unacknowledged_commits.since = at("2026-11-21T06:10:00Z");
        source.unacknowledged_commits.until = at("2026-11-21T06:10:06Z");
        source.unasked_transactions.transactions = 12_395;
        source.unasked_transactions.since = at("2026-11-21T06:30:00Z");
        source.unasked_transactions.last_gtid = Some(format!("{UUID}:12395"));
        let text = render(&daemon(vec![source]), None, false, now());
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        assert!(text.contains("without ack the source told clients of 3,871 commits without one"), "{text}");
        assert!(text.contains("from 2026-11-21 06:10:00 UTC to 2026-11-21 06:10:06 UTC"), "{text}");
        assert!(text.contains("not asked for 12,395 transactions arrived"), "{text}");
        assert!(text.contains("from 2026-11-21 06:30:00 UTC to now, the newest"), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_a_terminal_and_no_control_character_passes() {
        let text = render(&daemon(vec![receiving(), backing_off(), offline()]), None, false, now());
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
            assert!(!line.contains(char::is_control) && line == line.trim_end(), "{line:?}");
        }
    }

    #[test]
    fn color_only_where_asked_for() {
        let text = render(&daemon(vec![receiving(), backing_off(), offline()]), None, true, now());
        for colored in
            ["\x1b[1;32mreceiving\x1b[0m", "\x1b[1;31mbacking off\x1b[0m", "\x1b[1;31mnot running\x1b[0m"]
        {
            assert!(text.contains(colored), "{text}");
        }
        assert!(!render(&daemon(vec![receiving()]), None, false, now()).contains('\x1b'));
    }

    #[test]
    fn a_certificate_that_ends_and_the_last_verify_are_shown() {
        let in_days = |days: i64| Some(Timestamp::from_second(now().as_second() + days * 86_400).unwrap());
        let shown = |expires, verified| {
            let source = SourceStatus { tls_certificate_expires: expires, verified, ..receiving() };
            render(&daemon(vec![source]), None, false, now())
        };
        let quiet = shown(in_days(15), None);
        assert!(!quiet.contains("certificate") && !quiet.contains("verified"), "{quiet}");
        assert!(shown(in_days(13), None).contains("of the source expires at 2026-12-04 07:00:00 UTC"));
        assert!(shown(in_days(-1), None).contains("of the source has expired at 2026-11-20 07:00:00 UTC"));
        let verified = |findings| Some(Verified { at: in_days(-2).unwrap(), findings });
        let text = shown(None, verified(0));
        assert!(text.contains("2026-11-19 07:00:00 UTC") && text.contains("no damage"), "{text}");
        let text = shown(None, verified(3));
        assert!(text.contains("DAMAGED, 3 found") && text.contains("binlogd verify shows where"), "{text}");
    }
}
