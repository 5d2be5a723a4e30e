//! What the log says of a dump's end.

use super::refusal::DumpError;
use crate::dump::DumpEnd;
use crate::port::readers::Reader;

/// Says how a dump ended.
pub(crate) fn say_how_it_ended(reader: &Reader, ended: Result<DumpEnd, DumpError>) {
    let at = reader.progress.position().map(|at| format!(" at {at}")).unwrap_or_default();
    let (id, address) = (reader.id, reader.address);
    match ended {
        Ok(DumpEnd::Complete) => {
            tracing::info!(reader = id, %address, "the reader has everything{at}");
        }
        Ok(DumpEnd::Moved) => {
            tracing::info!(reader = id, %address, "the reader{at} is sent away to come back: the copy goes on elsewhere");
        }
        Ok(DumpEnd::Cancelled) => {
            tracing::info!(reader = id, %address, "the reader{at} has ended");
        }
        Err(DumpError::Refused(error)) => {
            tracing::warn!(reader = id, %address, "the reader{at} was refused: {} (error {})", error.message, error.code);
        }
        Err(DumpError::Behind(error)) => {
            tracing::info!(reader = id, %address, "the reader{at} is to come again: {}", error.message);
        }
        Err(DumpError::Cut(error)) => {
            tracing::error!(
                reader = id, %address,
                "the connection of the reader is ended inside an event{at}: {} (error {})", error.message, error.code
            );
        }
        Err(DumpError::Reader(error)) => {
            tracing::info!(reader = id, %address, "the reader{at} is gone: {error}");
        }
        Err(error @ DumpError::File { .. }) => {
            tracing::error!(reader = id, %address, "the reader{at} cannot be served: {error}");
        }
    }
}
