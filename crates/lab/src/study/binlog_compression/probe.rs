//! Whether a server compresses its binary log as its variables say: what one transaction comes to in the log.

use crate::point::binlog_compression::Compression;
use crate::server::{DATABASE, Target};
use anyhow::Context;

/// Of the row that is written: long enough that what stands around it in the log does not matter.
const ROW_BYTES: u64 = 64 << 10;
/// How often a transaction is written where others write to the log too.
const ATTEMPTS: u32 = 3;
/// Levels of zstd that differ by a tenth for digits: 29,258 and 32,056 bytes with MySQL 9.7, 30,768 and 30,766 with
/// 8.0.31.
const LEVELS: [&str; 2] = ["1", "10"];
/// Variables of which a session takes a copy when it begins.
const OF_SESSIONS: [&str; 2] =
    ["binlog_transaction_compression", "binlog_transaction_compression_level_zstd"];

/// Makes the table that [`contradiction`] writes to.
///
/// # Errors
/// When the server refuses.
pub(super) fn prepare(source: &mut Target) -> anyhow::Result<()> {
    source.query(&format!("CREATE TABLE {DATABASE}.written (a INT PRIMARY KEY, b MEDIUMTEXT)"))?;
    Ok(())
}

/// What contradicts that the log is compressed, or not, as it now should be.
///
/// # Errors
/// When the server does not answer.
pub(super) fn contradiction(source: &mut Target, compression: Compression) -> anyhow::Result<Option<String>> {
    let repeated = format!("REPEAT('{}', {})", "binlogd ", ROW_BYTES / 8);
    let bytes = log_bytes_of(source, &repeated)?;
    let compressed = matches!(compression, Compression::Zstd(_) | Compression::Events);
    let right = if compressed { bytes < ROW_BYTES / 4 } else { bytes > ROW_BYTES };
    Ok((!right).then(|| {
        format!(
            "a transaction with {ROW_BYTES} bytes of one word again and again came to {bytes} bytes of log"
        )
    }))
}

/// Why levels of zstd are not told apart on this server, if so: two of them write the same. MySQL 8.0.31 does not look
/// at the level (bug 34833913).
///
/// # Errors
/// When the server does not answer, or has no compression.
pub(super) fn level_without_effect(source: &mut Target) -> anyhow::Result<Option<String>> {
    let digits = format!("'{}'", digits(ROW_BYTES as usize));
    let mut bytes = Vec::new();
    for level in LEVELS {
        source.set(OF_SESSIONS[1], level)?;
        source.set(OF_SESSIONS[0], "1")?;
        bytes.push(log_bytes_of(source, &digits)?);
    }
    source.set(OF_SESSIONS[0], "0")?;
    // Times in the events make a byte or two of difference.
    let same = bytes[0].abs_diff(bytes[1]) < bytes[0] / 200;
    Ok(same.then(|| {
        format!(
            "the level has no effect on this server: the same transaction came to {} and {} bytes of log with levels \
             {} and {}",
            bytes[0], bytes[1], LEVELS[0], LEVELS[1]
        )
    }))
}

/// Digits as if by chance, such as the stock workload's rows hold: they compress, and some levels do it better. Always
/// the same ones.
fn digits(count: usize) -> String {
    // Knuth's MMIX generator; its high bits are the good ones.
    let mut state = 1_u64;
    let mut digit = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + ((state >> 33) % 10) as u8)
    };
    (0..count).map(|_| digit()).collect()
}

/// Bytes by which the log grows for a transaction that writes one row; the fewest of some attempts on a user's server.
fn log_bytes_of(source: &mut Target, value: &str) -> anyhow::Result<u64> {
    for name in OF_SESSIONS {
        if source.variable(name)?.is_some() {
            source.query(&format!("SET SESSION {name} = @@GLOBAL.{name}"))?;
        }
    }
    let mut fewest = None;
    for _ in 0..if source.is_users() { ATTEMPTS } else { 1 } {
        source.query(&format!("DELETE FROM {DATABASE}.written"))?;
        let before = source.log_bytes()?;
        source.query(&format!("INSERT INTO {DATABASE}.written VALUES (1, {value})"))?;
        let bytes = source.log_bytes()?.saturating_sub(before);
        fewest = Some(fewest.map_or(bytes, |fewest: u64| fewest.min(bytes)));
    }
    fewest.context("nothing was written")
}
