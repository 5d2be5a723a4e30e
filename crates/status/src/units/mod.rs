//! Numbers as a person reads them.

pub(crate) mod time;

/// Bytes with a binary unit: `0 B`, `12.0 KiB`, `3.4 GiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // From here on one decimal would round up to the next unit's 1.0.
    while value >= 1023.95 {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A count in groups of three digits: `1,234,567`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count with its noun, which takes an s: `1 transaction`, `1,234 transactions`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// `1 GTID was`, `3 GTIDs were`.
pub fn counted_were(number: u64, noun: &str) -> String {
    format!("{} {}", counted(number, noun), if number == 1 { "was" } else { "were" })
}

/// Microseconds with the unit that keeps two or three digits: `0.9 µs`, `87 µs`, `1.24 ms`, `12.4 ms`, `2.50 s`.
pub fn latency(microseconds: f64) -> String {
    let (value, unit) = match microseconds {
        us if us < 999.5 => (us, "µs"),
        us if us < 999_500.0 => (us / 1e3, "ms"),
        us => (us / 1e6, "s"),
    };
    let decimals = match value {
        value if unit == "µs" && value >= 9.95 => 0,
        _ if unit == "µs" => 1,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// Seconds with the two largest units: `45 s`, `3 min 5 s`, `2 h 0 min`, `4 d 7 h`.
pub fn duration(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes} min {} s", seconds % 60),
        3600..86_400 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// Hours as a person says them: `40 min`, `5.2 hours`, `12 days`, `more than 10 years`.
pub fn hours(hours: f64) -> String {
    match hours {
        hours if hours < 1.0 => format!("{:.0} min", hours * 60.0),
        hours if hours < 48.0 => format!("{hours:.1} hours"),
        hours if hours < 87_600.0 => format!("{} days", count((hours / 24.0) as u64)),
        _ => "more than 10 years".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_change_where_they_should() {
        assert_eq!(
            [0, 1023, 1024, 1 << 20, u64::MAX].map(bytes),
            ["0 B", "1023 B", "1.0 KiB", "1.0 MiB", "16.0 EiB"]
        );
        assert_eq!(bytes((1 << 20) - 1), "1.0 MiB");
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0.0, 1.04, 87.2, 999.6, 1_240.0, 12_400.0, 124_000.0, 2_500_000.0, 120e6].map(latency),
            ["0.0 µs", "1.0 µs", "87 µs", "1.00 ms", "1.24 ms", "12.4 ms", "124 ms", "2.50 s", "120 s"]
        );
        assert_eq!(
            [0.5, 5.25, 47.0, 300.0, 1e9].map(hours),
            ["30 min", "5.2 hours", "47.0 hours", "12 days", "more than 10 years"]
        );
        assert_eq!(
            [0, 59, 185, 7_200, 371_000].map(duration),
            ["0 s", "59 s", "3 min 5 s", "2 h 0 min", "4 d 7 h"]
        );
    }
}
