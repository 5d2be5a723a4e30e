//! Plain bytes as frames of zstd, one after another, and back.
//!
//! Every object of a segment, decrypted if need be, is what `zstd -d` reads: whoever has the key gets at the bytes with tools that
//! every system has. What the source has compressed already stands in frames that hold bytes as they are; the last frame holds
//! random bytes and is skipped by every reader.

mod layout;
mod plain;

use layout::Kind;
use std::fmt;
use std::ops::Range;
use zstd::zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd::zstd_safe::{self, CCtx, CParameter, DCtx, InBuffer, OutBuffer, ResetDirective};

/// The levels of compression from which to choose. Above, zstd takes memory that a daemon does not have.
pub(crate) const LEVELS: std::ops::RangeInclusive<i32> = 1..=19;

/// Random bytes in the last frame. By chance two objects of the same plain bytes get the same ones once in 2^64.
const SALT_BYTES: usize = 8;

/// What cannot be packed or unpacked, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FramesError(String);

impl fmt::Display for FramesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FramesError {}

impl FramesError {
    fn of_zstd(code: zstd_safe::ErrorCode) -> FramesError {
        FramesError(zstd_safe::get_error_name(code).to_lowercase())
    }
}

/// Makes frames. What zstd needs for that (1 MiB at level 1, 80 MiB at level 19) is kept from one segment to the next.
pub struct Packer {
    context: CCtx<'static>,
    level: i32,
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packer").field("level", &self.level).finish_non_exhaustive()
    }
}

impl Packer {
    /// A packer that compresses at `level`.
    ///
    /// # Errors
    /// When there is no memory for it.
    ///
    /// # Panics
    /// When `level` is not one of `LEVELS`.
    pub fn new(level: i32) -> Result<Packer, FramesError> {
        assert!(LEVELS.contains(&level), "level {level} was to be refused with the configuration");
        let mut context = CCtx::try_create().ok_or_else(|| FramesError("no memory is left".to_owned()))?;
        // zstd's own checksum is seen by `zstd -t`, which knows nothing of the hashes in commits.
        for parameter in [CParameter::CompressionLevel(level), CParameter::ChecksumFlag(true)] {
            context.set_parameter(parameter).map_err(FramesError::of_zstd)?;
        }
        Ok(Packer { context, level })
    }

    /// At which it compresses.
    pub fn level(&self) -> i32 {
        self.level
    }

    /// Puts the frames of `plain` in the place of what `out` holds. `already_compressed` are ranges of it in order and apart from
    /// each other, as [`Walker`](crate::segment::runs::Walker) gives them.
    ///
    /// # Errors
    /// When zstd has no memory left, or the system no random bytes.
    pub fn pack(
        &mut self,
        plain: &[u8],
        already_compressed: &[Range<usize>],
        out: &mut Vec<u8>,
    ) -> Result<(), FramesError> {
        out.clear();
        for (range, kind) in layout::parts(plain.len(), already_compressed) {
            let part = &plain[range];
            match kind {
                Kind::Compress => self.compress(part, out)?,
                Kind::Raw => {
                    out.reserve(part.len() + plain::overhead(part.len()));
                    plain::append(part, out);
                }
            }
        }
        // An object is named by its hash, so the same bytes would be the same object. But retention may have announced the
        // deletion of an object under that name (`Doomed`) and carry it out at any time: whoever makes the same bytes later, after
        // a restore or on a second machine, would name in a commit what is about to go. With these bytes no two uploads ever have
        // the same name.
        let mut salt = [0; SALT_BYTES];
        getrandom::fill(&mut salt)
            .map_err(|error| FramesError(format!("the system gives no random bytes: {error}")))?;
        plain::append_skippable(&salt, out);
        Ok(())
    }

    /// Adds one frame of compressed `part`.
    fn compress(&mut self, part: &[u8], out: &mut Vec<u8>) -> Result<(), FramesError> {
        // With room for the worst case zstd compresses in one go, from `part` to `out`, without buffers of its own between.
        out.reserve(zstd_safe::compress_bound(part.len()));
        // A call that failed has left half a frame behind.
        self.context.reset(ResetDirective::SessionOnly).map_err(FramesError::of_zstd)?;
        self.context.set_pledged_src_size(Some(part.len() as u64)).map_err(FramesError::of_zstd)?;
        let end = out.len();
        let mut output = OutBuffer::around_pos(out, end);
        let mut input = InBuffer::around(part);
        let left = self
            .context
            .compress_stream2(&mut output, &mut input, ZSTD_EndDirective::ZSTD_e_end)
            .map_err(FramesError::of_zstd)?;
        assert_eq!((left, input.pos()), (0, part.len()), "zstd took all of it where there was room for all");
        Ok(())
    }
}

/// The plain bytes of some frames, which are to be `plain_bytes`. Memory is taken for so many and no more, whatever the frames
/// say: `plain_bytes` is what the caller believes and has bounded.
///
/// # Errors
/// When they are not whole frames of zstd, or hold more or fewer bytes.
pub fn unpack(frames: &[u8], plain_bytes: usize) -> Result<Vec<u8>, FramesError> {
    let no_memory = || FramesError("no memory is left".to_owned());
    let mut plain = Vec::new();
    plain.try_reserve_exact(plain_bytes).map_err(|_| no_memory())?;
    let mut context = DCtx::try_create().ok_or_else(no_memory)?;
    context.decompress(&mut plain, frames).map_err(|code| {
        let reason = FramesError::of_zstd(code);
        FramesError(format!("they cannot be unpacked to {plain_bytes} bytes: {reason}"))
    })?;
    if plain.len() != plain_bytes {
        return Err(FramesError(format!("they hold {} bytes and not {plain_bytes}", plain.len())));
    }
    Ok(plain)
}

#[cfg(test)]
mod tests;
