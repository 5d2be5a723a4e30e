//! Until when a certificate is valid.

use super::der::{GENERALIZED_TIME, INTEGER, PART_0, SEQUENCE, UTC_TIME, any_element, element};

/// Seconds since 1970 after which a certificate in DER form is not valid any more; `None` for one that cannot be read.
///
/// Source: RFC 5280, sections 4.1 (Certificate) and 4.1.2.5 (Validity). Names, keys and extensions of a certificate of somebody
/// else may be odd; only its dates count.
pub(crate) fn expires(der: &[u8]) -> Option<i64> {
    let (certificate, _) = element(der, SEQUENCE)?;
    let (fields, _) = element(certificate, SEQUENCE)?;
    let fields = element(fields, PART_0).map_or(fields, |(_version, rest)| rest);
    let (_serial, fields) = element(fields, INTEGER)?;
    let (_algorithm, fields) = element(fields, SEQUENCE)?;
    let (_issuer, fields) = element(fields, SEQUENCE)?;
    let (validity, _) = element(fields, SEQUENCE)?;
    let (_, _not_before, rest) = any_element(validity)?;
    let (tag, not_after, _) = any_element(rest)?;
    moment(tag, not_after)
}

/// A moment as RFC 5280 lets it be written, always in UTC and with seconds: YYMMDDHHMMSSZ of 1950 to 2049, or YYYYMMDDHHMMSSZ.
fn moment(tag: u8, text: &[u8]) -> Option<i64> {
    let digits = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let year_digits = match tag {
        UTC_TIME => 2,
        GENERALIZED_TIME => 4,
        _ => return None,
    };
    if digits.len() != year_digits + 10 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = digits.split_at(year_digits);
    let year: i64 = year.parse().ok()?;
    let year = match tag {
        UTC_TIME if year < 50 => 2000 + year,
        UTC_TIME => 1900 + year,
        _ => year,
    };
    let part = |at: usize| -> Option<i64> { rest[at..at + 2].parse().ok() };
    let (month, day) = (part(0)?, part(2)?);
    let (hours, minutes, seconds) = (part(4)?, part(6)?, part(8)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    Some(((days_since_1970(year, month, day) * 24 + hours) * 60 + minutes) * 60 + seconds)
}

/// Days from 1 January 1970 to a day of the Gregorian calendar.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Of years that begin in March, so that the leap day is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // 719,468 days lie between 1 March of the year 0 and 1 January 1970.
    year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    #[test]
    fn the_end_of_a_certificate_is_read_from_it() {
        let of = |year| {
            let mut params = CertificateParams::new(vec!["db1".to_owned()]).unwrap();
            params.not_after = date_time_ymd(year, 3, 1);
            params.self_signed(&KeyPair::generate().unwrap()).unwrap()
        };
        // Up to 2049 the year has two digits in the certificate, and four from then on.
        assert_eq!(expires(of(2026).der()), Some(1_772_323_200));
        assert_eq!(expires(of(2050).der()), Some(2_529_705_600));
        assert_eq!(expires(&of(2026).der()[..100]), None);
        assert_eq!(expires(b""), None);
    }

    #[test]
    fn moments_are_read_to_the_second() {
        assert_eq!(moment(UTC_TIME, b"700101000000Z"), Some(0));
        assert_eq!(moment(UTC_TIME, b"691231235959Z"), Some(-1));
        assert_eq!(moment(UTC_TIME, b"240229120102Z"), Some(1_709_208_062));
        assert_eq!(moment(UTC_TIME, b"500101000000Z"), Some(-631_152_000));
        assert_eq!(moment(GENERALIZED_TIME, b"20000229000000Z"), Some(951_782_400));
        // "No well-defined expiration date": RFC 5280, section 4.1.2.5.
        assert_eq!(moment(GENERALIZED_TIME, b"99991231235959Z"), Some(253_402_300_799));
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "Z",
            "240229120102",
            "2402291201Z",
            "241301000000Z",
            "240100000000Z",
            "240101240000Z",
            "24010100000+Z",
        ] {
            assert_eq!(moment(UTC_TIME, text.as_bytes()), None, "{text}");
        }
        assert_eq!(moment(GENERALIZED_TIME, b"240229120102Z"), None);
        assert_eq!(moment(SEQUENCE, b"240229120102Z"), None);
        assert_eq!(moment(UTC_TIME, "24é1120102Z".as_bytes()), None);
    }
}
