//! Log files that end inside an event.

/// Where the last whole event of a log file ends.
pub fn whole_events(log: &[u8]) -> usize {
    const LOG_BEGINNING: usize = 4;
    const HEADER: usize = 19;
    const LENGTH: std::ops::Range<usize> = 9..13;
    let mut end = LOG_BEGINNING.min(log.len());
    while let Some(header) = log.get(end..end + HEADER) {
        let length = u32::from_le_bytes(header[LENGTH].try_into().expect("four bytes")) as usize;
        if length < HEADER || end + length > log.len() {
            break;
        }
        end += length;
    }
    end
}
