//! Pictures of states, and what keys do.

use super::asking::Look;
use super::board::{Board, Mode, Next, Sort};
use super::palette::Palette;
use super::*;
use codec::Position;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use status::{
    ArchiveStatus, DaemonStatus, DiskStatus, LastError, LatencySummary, ReaderStatus, ServeStatus,
    SlotStatus, SourceStatus, StateName,
};
use std::sync::Arc;

/// A source of which all is well.
pub(super) fn well(name: &str) -> SourceStatus {
    let at = |offset| Some(Position::new(Arc::from("mysql-bin.000123"), offset));
    let mut source = SourceStatus {
        name: name.to_owned(),
        state: StateName::Receiving,
        state_detail: Some("since 2026-11-20 08:00:00 UTC".to_owned()),
        host: Some(format!("{name}.example:3306")),
        server_version: Some("9.7.0".to_owned()),
        server_id: Some(17),
        timeline: Some("0001-3e11fa47-71ca-11e1-9e33-c80aa9429562".to_owned()),
        fsync_mode: Some(1),
        seconds_behind: Some(0),
        ..SourceStatus::default()
    };
    source.semi_sync.active = true;
    source.semi_sync.reason = "the source waits for acknowledgements".to_owned();
    source.positions.received = at(45_678_901);
    source.positions.written = at(45_678_901);
    source.positions.durable = at(45_678_901);
    source.positions.acknowledged = at(45_678_321);
    source.latency.acknowledge =
        LatencySummary { count: 1000, p50_us: 870.4, p99_us: 3_100.0, ..LatencySummary::default() };
    source
}

/// A daemon with these sources.
pub(super) fn daemon(sources: Vec<SourceStatus>) -> DaemonStatus {
    DaemonStatus {
        binlogd_version: "0.1.0".to_owned(),
        pid: Some(7),
        uptime_seconds: Some(273_900),
        data_dir: "/var/lib/binlogd".to_owned(),
        disk: Some(DiskStatus {
            free_bytes: 812 << 30,
            size_bytes: 1 << 40,
            hours_left: Some(748.0),
            ..DiskStatus::default()
        }),
        running: true,
        serve: None,
        sources,
        ..DaemonStatus::default()
    }
    .judged(Timestamp::UNIX_EPOCH)
}

/// Something is wrong with most of them.
fn troubled() -> DaemonStatus {
    let mut backing_off = well("billing");
    backing_off.state = StateName::BackingOff;
    backing_off.state_detail = Some(
        "billing.example:3306 refused the connection; next attempt at 2026-11-23 12:00:08 UTC".to_owned(),
    );
    backing_off.semi_sync.active = false;
    backing_off.seconds_behind = None;
    let mut lacks = well("orders");
    lacks.source_lacks = Some("3e11fa47-71ca-11e1-9e33-c80aa9429562:9-10".to_owned());
    let mut alone = well("stock");
    alone.semi_sync.active = false;
    alone.semi_sync.reason = "rpl_semi_sync_source_enabled is OFF at the source".to_owned();
    let mut stopped = well("archive\u{1b}[2J");
    stopped.state = StateName::Stopped;
    stopped.state_detail = Some("garbage in timeline.toml".to_owned());
    stopped.semi_sync.active = false;
    stopped.seconds_behind = None;
    let mut behind = well("warehouse");
    behind.seconds_behind = Some(3_725);
    let reader = ReaderStatus {
        id: 4,
        source: "orders".to_owned(),
        user: "etl".to_owned(),
        address: "10.0.0.4:55001".to_owned(),
        command: "Binlog Dump GTID".to_owned(),
        ..ReaderStatus::default()
    };
    let slot = SlotStatus { name: "etl".to_owned(), source: "orders".to_owned(), ..SlotStatus::default() };
    let serve = ServeStatus { readers: vec![reader], slots: vec![slot], ..ServeStatus::default() };
    let sources = vec![well("accounts"), backing_off, lacks, alone, stopped, behind];
    DaemonStatus { serve: Some(serve), ..daemon(sources) }.judged(Timestamp::UNIX_EPOCH)
}

fn now() -> Timestamp {
    "2026-11-23T12:00:00Z".parse().unwrap()
}

/// A board that has had two answers, a second apart.
fn board(status: &DaemonStatus) -> (Board, Instant) {
    let (mut board, began) = (Board::new(None), Instant::now());
    board.take(Look { at: began, answer: Ok(status.clone()) });
    let mut later = status.clone();
    for (index, source) in
        later.sources.iter_mut().enumerate().filter(|(_, source)| source.state == StateName::Receiving)
    {
        source.counters.transactions += 1240 / (index as u64 + 1);
        source.counters.bytes_written += 12_400_000 / (index as u64 * 9 + 1);
    }
    let at = began + Duration::from_secs(1);
    board.take(Look { at, answer: Ok(later) });
    (board, at)
}

fn picture(board: &mut Board, size: (u16, u16), at: Instant) -> String {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal.draw(|frame| draw(frame, board, Palette { colored: true }, at, now())).unwrap();
    let lines: Vec<String> = terminal.backend().to_string().lines().map(str::to_owned).collect();
    lines.join("\n")
}

fn press(board: &mut Board, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '↓' => KeyCode::Down,
            '↑' => KeyCode::Up,
            character => KeyCode::Char(character),
        };
        assert_eq!(board.key(KeyEvent::new(code, KeyModifiers::NONE)), Next::Stay, "{key:?}");
    }
}

#[test]
fn all_is_well() {
    let (mut board, at) = board(&daemon(vec![well("orders"), well("stock")]));
    insta::assert_snapshot!(picture(&mut board, (80, 24), at));
}

#[test]
fn the_worst_comes_first() {
    let (mut board, at) = board(&troubled());
    insta::assert_snapshot!("troubled_80", picture(&mut board, (80, 24), at));
    insta::assert_snapshot!("troubled_140", picture(&mut board, (140, 30), at));
    insta::assert_snapshot!("troubled_40", picture(&mut board, (40, 16), at));
}

/// One is kept up, the other one is not; the third is not archived.
#[test]
fn how_the_archives_stand() {
    let archived = |name: &str, behind_seconds, error: Option<&str>| {
        let mut source = well(name);
        let at = "2026-11-23T11:00:00Z".parse().unwrap();
        source.archive = Some(ArchiveStatus {
            url: "s3://backup/binlogs".to_owned(),
            encrypted: true,
            archived: source.positions.durable.clone(),
            behind_seconds,
            error: error.map(|text| LastError { at, message: text.to_owned() }),
            ..ArchiveStatus::default()
        });
        source
    };
    let refused = "cannot create orders/commits/00000000000000000007.json: the store says 403 AccessDenied";
    let sources =
        vec![archived("stock", Some(4), None), archived("orders", Some(3_700), Some(refused)), well("web")];
    let (mut board, at) = board(&daemon(sources));
    insta::assert_snapshot!("archived", picture(&mut board, (80, 24), at));
    press(&mut board, "\n");
    let full = picture(&mut board, (80, 60), at);
    assert!(full.contains("fails since 2026-11-23 11:00:00 UTC") && full.contains("AccessDenied"), "{full}");
}

#[test]
fn one_source_in_full_with_the_command_that_helps() {
    let (mut board, at) = board(&troubled());
    press(&mut board, "/ord\n\n");
    insta::assert_snapshot!("full", picture(&mut board, (80, 34), at));
    press(&mut board, "G");
    let end = picture(&mut board, (80, 24), at);
    assert!(end.contains("the end"), "{end}");
    press(&mut board, "\u{1b}");
    assert_eq!(board.mode, Mode::Overview);
}

#[test]
fn a_daemon_that_goes_away_and_comes_back() {
    let mut board_never = Board::new(None);
    let at = Instant::now();
    insta::assert_snapshot!("asking", picture(&mut board_never, (80, 6), at));
    let (mut board, at) = board(&daemon(vec![well("orders")]));
    let why = "no daemon answers at 127.0.0.1:9306 (io: Connection refused)";
    board.take(Look { at, answer: Err(why.to_owned()) });
    board.take(Look { at: at + Duration::from_secs(1), answer: Err(why.to_owned()) });
    insta::assert_snapshot!("gone", picture(&mut board, (80, 24), at + Duration::from_secs(14)));
    board.take(Look { at: at + Duration::from_secs(20), answer: Ok(daemon(vec![well("orders")])) });
    let back = picture(&mut board, (80, 24), at + Duration::from_secs(20));
    assert!(back.contains(" SAFE ") && !back.contains("GONE"), "{back}");
}

#[test]
fn two_hundred_sources_scroll_and_filter() {
    let mut sources: Vec<SourceStatus> = (0..200).map(|number| well(&format!("db{number:03}"))).collect();
    sources[150].state = StateName::Stopped;
    let (mut board, at) = board(&daemon(sources));
    let first = picture(&mut board, (80, 24), at);
    assert!(first.contains("▸ db150") && first.contains("1 source of 200 needs you now"), "{first}");
    press(&mut board, "G");
    let last = picture(&mut board, (80, 24), at);
    assert!(last.contains("▸ db199") && last.contains("of 200"), "{last}");
    press(&mut board, "g↓↓↑");
    assert!(picture(&mut board, (80, 24), at).contains("▸ db000"));
    press(&mut board, "/199");
    insta::assert_snapshot!("filter", picture(&mut board, (80, 24), at));
    press(&mut board, "x");
    assert!(picture(&mut board, (80, 24), at).contains("no source has such a name"));
    press(&mut board, "\u{1b}ss");
    assert_eq!((board.sort, board.filter.as_str()), (Sort::Behind, ""));
    for size in [(1, 1), (10, 3), (20, 5), (400, 100)] {
        for keys in ["", "\n", "\u{1b}?", "x/"] {
            press(&mut board, keys);
            picture(&mut board, size, at);
        }
        press(&mut board, "\u{1b}");
    }
}

#[test]
fn the_choice_stays_with_its_source() {
    let (mut board, at) = board(&daemon(vec![well("a"), well("b"), well("c")]));
    press(&mut board, "↓↓");
    let mut sources = vec![well("a"), well("b"), well("c")];
    sources[1].state = StateName::Stopped;
    board.take(Look { at, answer: Ok(daemon(sources)) });
    let shown = picture(&mut board, (80, 24), at);
    assert!(shown.contains("▸ c"), "{shown}");
    assert!(shown.find("  b  ") < shown.find("  a  "), "{shown}");
}

#[test]
fn keys_end_and_suspend() {
    let mut board = Board::new(Some("gone".to_owned()));
    let control = |character| KeyEvent::new(KeyCode::Char(character), KeyModifiers::CONTROL);
    assert_eq!(board.key(control('c')), Next::Quit);
    assert_eq!(board.key(control('z')), Next::Suspend);
    assert_eq!(board.key(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE)), Next::Quit);
    assert!(picture(&mut board, (80, 10), Instant::now()).contains("There is no source gone."));
    press(&mut board, "\u{1b}/q");
    assert_eq!(board.filter, "q", "while a filter is typed, q is a letter");
    press(&mut board, "\n?");
    insta::assert_snapshot!("help", picture(&mut board, (80, 24), Instant::now()));
}

#[test]
fn no_color_means_none() {
    let (mut board, at) = board(&troubled());
    let has_color = |board: &mut Board, colored| {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, board, Palette { colored }, at, now())).unwrap();
        terminal
            .backend()
            .buffer()
            .content()
            .iter()
            .any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
    };
    assert!(has_color(&mut board, true));
    assert!(!has_color(&mut board, false));
    // Every word of a state is there without colour, and nothing of a server drives the terminal.
    let text = picture(&mut board, (80, 24), at);
    assert!(text.contains("ACT") && !text.contains('\u{1b}'), "{text}");
}

/// In a terminal: `stty -g`, this test with `--ignored`, `stty -g` once more. The settings are the same, and the panic can be read.
#[test]
#[should_panic(expected = "as an error of ours would")]
#[ignore = "needs a terminal, and a person who looks at what a panic leaves behind"]
fn a_panic_gives_the_terminal_back() {
    let mut screen = Screen::enter().unwrap();
    let (mut board, at) = board(&troubled());
    screen.draw(|frame| draw(frame, &mut board, Palette { colored: true }, at, now())).unwrap();
    std::thread::sleep(Duration::from_secs(2));
    panic!("as an error of ours would");
}
