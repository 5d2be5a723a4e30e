//! What a drill's own process says of it, which is believed as far as its exit code says the same.

use crate::child::{Ended, Run};
use jiff::Timestamp;
use serde::Deserialize;
use status::{DrillResult, DrillStep};
use std::time::Duration;

/// Longer texts are cut, in characters; a set of GTIDs, and what went wrong.
const SHORT_MAX: usize = 300;
const LONG_MAX: usize = 2000;

/// So many steps are kept.
const STEPS_MAX: usize = 32;

/// The line of JSON.
#[derive(Debug, Deserialize)]
struct Answer {
    source: String,
    #[serde(flatten)]
    result: DrillResult,
}

/// The result of a drill of a source that began at a moment and took so long, by this machine's clocks.
pub(super) fn result(run: &Run, source: &str, began: Timestamp, took: Duration) -> DrillResult {
    let own = DrillResult {
        started: began,
        finished: began.checked_add(took).unwrap_or(began),
        seconds: took.as_secs_f64(),
        ..DrillResult::default()
    };
    let failed = |fault: String| DrillResult { fault, ..own.clone() };
    match run.ended {
        Ended::Late => {
            return failed(format!("it was ended after {} s (time_limit in [drill])", took.as_secs()));
        }
        Ended::Stopped => return failed("binlogd ended while it was under way".to_owned()),
        Ended::Itself(_) => {}
    }
    let Ok(answer) = serde_json::from_slice::<Answer>(&run.said) else {
        let why = last_line(&run.complained);
        return failed(format!("it gave no answer ({}){why}", run.ended));
    };
    if answer.source != source {
        return failed(format!("it answered for another source, {}", plain(&answer.source, SHORT_MAX)));
    }
    let said = answer.result;
    let is_plausible = (0.0..=own.seconds + 1.0).contains(&said.seconds);
    let contradiction = match (run.ended.is_success(), said.passed, said.fault.is_empty()) {
        (true, true, true) if said.proof.is_empty() => Some("it names nothing that was compared"),
        (true, true, true) | (false, false, false) => None,
        (false, false, true) => Some("it does not say why"),
        _ => Some("its answer and its exit code contradict each other"),
    };
    let fault = match contradiction {
        Some(why) => format!("{why} ({}) {}", run.ended, said.fault),
        None => said.fault,
    };
    DrillResult {
        passed: contradiction.is_none() && said.passed,
        fault: plain(&fault, LONG_MAX),
        seconds: if is_plausible { said.seconds } else { own.seconds },
        backup: plain(&said.backup, SHORT_MAX),
        until: plain(&said.until, LONG_MAX),
        until_time: said.until_time,
        proof: plain(&said.proof, SHORT_MAX),
        proof_in_words: plain(&said.proof_in_words, SHORT_MAX),
        tables: said.tables,
        bytes: said.bytes,
        steps: said.steps.into_iter().take(STEPS_MAX).filter_map(step).collect(),
        ..own
    }
}

fn step(step: DrillStep) -> Option<DrillStep> {
    let name = plain(&step.name, SHORT_MAX);
    step.seconds.is_finite().then_some(DrillStep { name, ..step })
}

/// The last line of what a program complained of, behind a colon.
fn last_line(complained: &[u8]) -> String {
    let text = String::from_utf8_lossy(complained);
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.map_or(String::new(), |line| format!(": {}", plain(line, LONG_MAX)))
}

/// Without what moves a cursor, and not longer than so many characters.
fn plain(text: &str, max: usize) -> String {
    let shown: String = text.trim().chars().filter(|c| !c.is_control()).take(max).collect();
    if shown.chars().count() == max { shown + "…" } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    const PASSED: &str = r#"{"source":"shop","backup":"20261129T033000Z-0badcafe","started":"2026-11-29T03:30:00Z",
        "finished":"2026-11-29T03:35:12Z","seconds":312.4,"until":"b.000009:4","until_time":null,"proof":"next-backup",
        "proof_in_words":"each table equals the next backup's","tables":123,"bytes":12345,"passed":true,"fault":"",
        "steps":[{"name":"fetch and load","seconds":200.1}]}"#;

    fn of(said: &str, code: i32) -> DrillResult {
        let run = Run {
            ended: Ended::Itself(ExitStatus::from_raw(code << 8)),
            said: said.as_bytes().to_vec(),
            complained: b"loading\nerror: no such program\n".to_vec(),
        };
        result(&run, "shop", Timestamp::UNIX_EPOCH, Duration::from_secs(400))
    }

    #[test]
    fn what_passed_is_as_it_says_with_the_times_of_this_machine() {
        let passed = of(PASSED, 0);
        assert!(passed.passed && passed.fault.is_empty(), "{passed:?}");
        assert_eq!((passed.tables, passed.steps.len(), passed.seconds as u64), (123, 1, 312));
        assert_eq!((passed.started, passed.finished.as_second()), (Timestamp::UNIX_EPOCH, 400));
        let long = of(&PASSED.replace("312.4", "9999"), 0);
        assert_eq!(long.seconds as u64, 400, "it cannot have taken longer than it ran");
    }

    #[test]
    fn nothing_passes_by_a_word_alone() {
        let fails = PASSED.replace("true", "false").replace(r#""fault":"""#, r#""fault":"shop.t differs""#);
        for (said, code, words) in [
            (fails.as_str(), 1, "shop.t differs"),
            (PASSED, 1, "contradict each other"),
            (fails.as_str(), 0, "contradict each other"),
            ("", 0, "it gave no answer (exit code 0): error: no such program"),
            ("{\"passed\":true}", 0, "it gave no answer"),
            (&PASSED.replace("shop\",\"backup", "other\",\"backup"), 0, "for another source, other"),
            (&PASSED.replace("next-backup\"", "\""), 0, "names nothing that was compared"),
            (&PASSED.replace("true", "false"), 1, "does not say why"),
        ] {
            let result = of(said, code);
            assert!(!result.passed && result.fault.contains(words), "{words}: {result:?}");
        }
    }

    #[test]
    fn texts_are_bounded_and_move_no_cursor() {
        let said = PASSED.replace("each table", &format!("\\u001b[2J{}", "x".repeat(5000)));
        let words = of(&said, 0).proof_in_words;
        assert!(words.chars().count() <= SHORT_MAX + 1 && !words.contains('\u{1b}'), "{words}");
    }
}
