//! The Info of a USER_VAR event (`User_var_log_event::pack_info`).

use super::style::{Style, quoted};
use crate::answer::collation_of;
use codec::ServerKind;
use codec::event::{UserVar, UserVarValue};

/// Most digits before the point, or zeros behind it, of a number that is written without an exponent
/// (`MAX_DECPT_FOR_F_FORMAT`, `strings/dtoa.cc`).
const PLAIN_DIGITS_MAX: i32 = 15;

/// Since when MySQL and MariaDB call it utf8mb3.
const UTF8MB3_MYSQL: u32 = 80_030;
const UTF8MB3_MARIADB: u32 = 100_600;

pub(super) fn shown(style: Style, variable: &UserVar<'_>) -> Vec<u8> {
    let value = match &variable.value {
        UserVarValue::Null => "NULL".to_owned(),
        UserVarValue::Integer(value) => value.to_string(),
        UserVarValue::Decimal(value) => value.clone(),
        UserVarValue::Real(value) => real(*value),
        UserVarValue::Text { collation, bytes } => text(style, *collation, bytes),
    };
    [b"@".as_slice(), &quoted(variable.name), b"=", value.as_bytes()].concat()
}

fn text(style: Style, collation: u32, bytes: &[u8]) -> String {
    // A server says so of a collation that it does not know, and this one knows fewer.
    let Some((set, collation)) = u16::try_from(collation).ok().and_then(collation_of) else {
        return "???".to_owned();
    };
    let has_new_name = match style.kind {
        ServerKind::MySql => style.version >= UTF8MB3_MYSQL,
        ServerKind::MariaDb => style.version >= UTF8MB3_MARIADB,
    };
    let named = |name: &str| match name.strip_prefix("utf8mb3") {
        Some(rest) if !has_new_name => format!("utf8{rest}"),
        _ => name.to_owned(),
    };
    let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    let value = match style.kind {
        _ if bytes.is_empty() => "\"\"".to_owned(),
        ServerKind::MySql => format!("0x{digits}"),
        ServerKind::MariaDb => format!("X'{digits}'"),
    };
    format!("_{} {value} COLLATE {}", named(set), named(collation))
}

/// As `my_gcvt` writes a number: the fewest digits that tell it from all others.
fn real(value: f64) -> String {
    let shortest = format!("{value:e}");
    let Some((digits, exponent)) = shortest.split_once('e') else { return shortest };
    let Ok(exponent) = exponent.parse::<i32>() else { return shortest };
    let point = exponent + 1;
    if point > -PLAIN_DIGITS_MAX + 1 && point <= PLAIN_DIGITS_MAX {
        format!("{value}")
    } else {
        format!("{digits}e{exponent}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(style: (ServerKind, &str), value: UserVarValue<'_>) -> String {
        let variable = UserVar { name: b"q`x", value };
        String::from_utf8(shown(Style::of(style.0, style.1), &variable)).unwrap()
    }

    /// As the servers showed them.
    #[test]
    fn each_type_is_shown_as_by_the_servers() {
        let new = (ServerKind::MySql, "9.7.4");
        let utf8 = || UserVarValue::Text { collation: 33, bytes: b"x" };
        assert_eq!(of(new, utf8()), "@`q``x`=_utf8mb3 0x78 COLLATE utf8mb3_general_ci");
        assert_eq!(
            of((ServerKind::MySql, "5.7.22-log"), utf8()),
            "@`q``x`=_utf8 0x78 COLLATE utf8_general_ci"
        );
        let mariadb = (ServerKind::MariaDb, "11.8.6-MariaDB");
        assert_eq!(of(mariadb, utf8()), "@`q``x`=_utf8mb3 X'78' COLLATE utf8mb3_general_ci");
        let empty = UserVarValue::Text { collation: 255, bytes: b"" };
        assert_eq!(of(new, empty), "@`q``x`=_utf8mb4 \"\" COLLATE utf8mb4_0900_ai_ci");
        let unknown = UserVarValue::Text { collation: 70_000, bytes: b"" };
        assert_eq!(of(new, unknown), "@`q``x`=???");
        for (value, text) in [
            (1.5e10, "15000000000"),
            (0.1, "0.1"),
            (1e-7, "0.0000001"),
            (123_456_789_012_345_678.0, "1.2345678901234568e17"),
            (100.0, "100"),
            (1e15, "1e15"),
            (1e14, "100000000000000"),
            (-0.000_001, "-0.000001"),
            (1.5e-20, "1.5e-20"),
        ] {
            assert_eq!(of(new, UserVarValue::Real(value)), format!("@`q``x`={text}"));
        }
    }
}
