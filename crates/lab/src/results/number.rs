//! Numbers and times as they are shown.

/// The number with `digits` after the point; from five digits before it, these stand in groups of three, held together
/// by narrow spaces that do not break.
pub(crate) fn grouped(value: f64, digits: usize) -> String {
    let plain = format!("{value:.digits$}");
    let (sign, plain) = plain.strip_prefix('-').map_or(("", plain.as_str()), |rest| ("−", rest));
    let (whole, fraction) = plain.split_once('.').map_or((plain, ""), |(whole, fraction)| (whole, fraction));
    let mut text = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && whole.len() > 4 && (whole.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    if !fraction.is_empty() {
        text.push('.');
        text += fraction;
    }
    text
}

/// Digits after the point for a number of this size, so that three or more digits are shown.
pub(crate) fn digits(value: f64) -> usize {
    match value.abs() {
        0.0..10.0 => 3,
        10.0..100.0 => 2,
        100.0..1000.0 => 1,
        _ => 0,
    }
}

/// `2026-11-21 22:40 UTC`, of seconds since 1970.
pub(crate) fn time(seconds: u64) -> String {
    format!("{} UTC", utc(seconds, "%F %R"))
}

/// Seconds since 1970 in UTC, in a format of strftime(3).
pub(crate) fn utc(seconds: u64, format: &str) -> String {
    let at = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    at.map_or_else(|| format!("{seconds} s"), |at| at.strftime(format).to_string())
}

/// `45 s`, `12 min 34 s`, `3 h 05 min`.
pub(crate) fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_grouped() {
        assert_eq!(grouped(1234.0, 0), "1234");
        assert_eq!(grouped(119_451.25, 1), "119\u{202f}451.2");
        assert_eq!(grouped(-1_234_567.0, 0), "−1\u{202f}234\u{202f}567");
        assert_eq!(grouped(0.9125, 3), "0.912");
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(time(0), "1970-01-01 00:00 UTC");
        assert_eq!(time(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(time(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(time(1_795_305_600), "2026-11-22 00:00 UTC");
        assert_eq!(
            (duration(45), duration(754), duration(11_100)),
            ("45 s".into(), "12 min 34 s".into(), "3 h 05 min".into())
        );
    }
}
