//! XA transactions, of which the binary log holds two transactions: what is prepared, and its end.

use codec::event::HEADER_LEN;

/// The statement of an XA_PREPARE event (`XA_prepare_event`, `control_events.h`): one-phase flag 1, format id 4, lengths of
/// the two parts of the name 4 and 4, the name.
pub(in crate::rescue) fn prepare_statement(event: &[u8]) -> Result<String, String> {
    let cut = || "an XA_PREPARE event is cut short".to_owned();
    let body = event.get(HEADER_LEN..).filter(|body| body.len() >= 13).ok_or_else(cut)?;
    let number = |at: usize| u32::from_le_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
    let global = body.get(13..).and_then(|rest| rest.get(..number(5) as usize)).ok_or_else(cut)?;
    let branch = body[13 + global.len()..].get(..number(9) as usize).ok_or_else(cut)?;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let name = format!("X'{}',X'{}',{}", hex(global), hex(branch), number(1));
    Ok(if body[0] != 0 { format!("XA COMMIT {name} ONE PHASE") } else { format!("XA PREPARE {name}") })
}

/// An XA statement as the binary log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rescue) struct XaStatement {
    verb: String,
    /// `X'7831',X'',1`, in small letters.
    pub(in crate::rescue) name: String,
    tail: String,
}

impl XaStatement {
    /// `None` for other statements.
    pub(in crate::rescue) fn parse(text: &[u8]) -> Option<XaStatement> {
        let mut words = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
        if !words.next()?.eq_ignore_ascii_case("XA") {
            return None;
        }
        let verb = words.next()?.to_ascii_uppercase();
        let name = words.next()?.to_ascii_lowercase();
        Some(XaStatement { verb, name, tail: words.collect::<Vec<_>>().join(" ") })
    }

    /// It leaves a prepared transaction, which another one ends.
    pub(in crate::rescue) fn prepares(&self) -> bool {
        self.verb == "PREPARE"
    }

    /// It ends a transaction that was prepared before.
    pub(in crate::rescue) fn ends_prepared(&self) -> bool {
        matches!(&*self.verb, "COMMIT" | "ROLLBACK") && !self.tail.eq_ignore_ascii_case("ONE PHASE")
    }

    /// It only marks where the work begins and ends.
    pub(in crate::rescue) fn is_mark(&self) -> bool {
        matches!(&*self.verb, "START" | "BEGIN" | "END")
    }

    /// For people: `XA COMMIT 'x1'`.
    pub(in crate::rescue) fn shown(&self) -> String {
        let tail = if self.tail.is_empty() { String::new() } else { format!(" {}", self.tail) };
        format!("XA {} {}{tail}", self.verb, readable(&self.name))
    }
}

/// The name with its parts as text where they are text; without what it has by default.
fn readable(name: &str) -> String {
    let mut parts: Vec<String> = name.split(',').map(part).collect();
    if parts.len() == 3 && parts[2] == "1" {
        parts.pop();
        if parts[1] == "''" {
            parts.pop();
        }
    }
    parts.join(",")
}

fn part(text: &str) -> String {
    let text_of = |hex: &str| -> Option<String> {
        let bytes: Option<Vec<u8>> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect();
        String::from_utf8(bytes?).ok().filter(|text| text.chars().all(|c| c.is_ascii_graphic() && c != '\''))
    };
    let hex = text.strip_prefix("x'").and_then(|rest| rest.strip_suffix('\''));
    hex.and_then(text_of).map_or_else(|| text.to_owned(), |text| format!("'{text}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_read_and_shown() {
        let parse = |text: &str| XaStatement::parse(text.as_bytes());
        let end = parse("XA COMMIT X'7831',X'',1").unwrap();
        assert!(end.ends_prepared() && !end.prepares());
        assert_eq!(end.shown(), "XA COMMIT 'x1'");
        let one = parse("XA COMMIT X'6162',X'63',7 ONE PHASE").unwrap();
        assert!(!one.ends_prepared());
        assert_eq!(one.shown(), "XA COMMIT 'ab','c',7 ONE PHASE");
        let prepared = parse("XA PREPARE X'7831',X'',1").unwrap();
        assert!(prepared.prepares());
        assert_eq!(prepared.name, end.name);
        assert_eq!(parse("XA ROLLBACK X'00ff',X'',1").unwrap().shown(), "XA ROLLBACK x'00ff'");
        assert!(parse("XA END X'7831',X'',1").unwrap().is_mark());
        assert_eq!(parse("XANADU"), None);
        assert_eq!(parse("XA"), None);
    }

    #[test]
    fn names_are_read_from_the_event() {
        let event = |body: &[u8]| [&[0; HEADER_LEN][..], body].concat();
        let body = [&[0][..], &7u32.to_le_bytes(), &2u32.to_le_bytes(), &1u32.to_le_bytes(), b"abc"].concat();
        assert_eq!(prepare_statement(&event(&body)).unwrap(), "XA PREPARE X'6162',X'63',7");
        assert!(prepare_statement(&event(&body[..15])).is_err());
        let one_phase = [&[1][..], &body[1..]].concat();
        assert_eq!(prepare_statement(&event(&one_phase)).unwrap(), "XA COMMIT X'6162',X'63',7 ONE PHASE");
    }
}
