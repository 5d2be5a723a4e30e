//! The way to the store: connections as the library makes them, with limits of time that know how much is sent, and with an
//! eye on the answers.

use super::answer::{self, Answer, Refusal};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService, ReqwestConnector,
};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// Longest time to connect, with the handshake of TLS.
pub(super) const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Longest time from a request to the head of its answer, beside what sending its bytes takes.
pub(super) const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// Longest time without a byte while an answer is read.
const READ_LIMIT: Duration = Duration::from_secs(30);
/// A way that carries less is taken for dead, in bytes a second.
const SLOWEST_BYTES_PER_SECOND: u64 = 64 << 10;
/// More of an error's text is not read, in bytes.
const ERROR_BYTES_MAX: usize = 64 << 10;
/// A condition of HTTP that did not hold, as some stores say it.
const NOT_MODIFIED: u16 = 304;

/// Makes clients that note what they were answered.
#[derive(Debug)]
pub(super) struct Connector {
    inner: ReqwestConnector,
    /// The bucket or container, by which requests to the store are known.
    bucket: String,
}

impl Connector {
    /// One for a bucket or container.
    pub(super) fn new(bucket: &str) -> Connector {
        Connector { inner: ReqwestConnector::default(), bucket: bucket.to_owned() }
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &object_store::ClientOptions) -> object_store::Result<HttpClient> {
        let bucket = self.bucket.clone();
        self.inner.connect(options).map(|client| HttpClient::new(Watched { client, bucket }))
    }
}

/// A client that notes what it was answered.
#[derive(Debug)]
struct Watched {
    client: HttpClient,
    bucket: String,
}

impl HttpService for Watched {
    fn call<'life0, 'async_trait>(
        &'life0 self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            let (host, path) = (request.uri().host().unwrap_or_default().to_owned(), request.uri().path());
            let is_of_store = answer::is_of_store(&self.bucket, &host, path);
            let of = |answer: Answer| match is_of_store {
                true => answer,
                false => Answer::NoCredentials { host: host.clone(), why: Box::new(answer) },
            };
            match self.exchange(request).await {
                Ok((response, refusal)) => {
                    answer::note(
                        refusal.map(|refusal| of(Answer::Refusal(refusal))),
                        answer::lock_of(response.headers()),
                    );
                    Ok(response)
                }
                Err(error) => {
                    answer::note(Some(of(Answer::None(in_words(&error)))), None);
                    Err(error)
                }
            }
        })
    }
}

impl Watched {
    /// One request and its whole answer. The body is read here, so that one limit covers it; a request that only reads is
    /// repeated by the library when the answer breaks off.
    async fn exchange(&self, request: HttpRequest) -> Result<(HttpResponse, Option<Refusal>), HttpError> {
        let bytes = u64::try_from(request.body().content_length()).unwrap_or(u64::MAX);
        let limit = REQUEST_LIMIT + Duration::from_secs(bytes / SLOWEST_BYTES_PER_SECOND);
        let response = tokio::time::timeout(limit, self.client.execute(request))
            .await
            .map_err(|_| late(format!("no answer came within {} s", limit.as_secs())))??;
        let (parts, body) = response.into_parts();
        let status = parts.status;
        // Of those that lead elsewhere the ones with an address are followed; the others say that the region is wrong.
        let is_error = !status.is_success() && status.as_u16() != NOT_MODIFIED;
        let bytes = read(body, if is_error { ERROR_BYTES_MAX } else { usize::MAX }).await?;
        let refusal = is_error.then(|| answer::refusal(status.as_u16(), &parts.headers, &bytes));
        Ok((HttpResponse::from_parts(parts, HttpResponseBody::from(bytes)), refusal))
    }
}

/// A body up to `most` bytes.
async fn read(body: HttpResponseBody, most: usize) -> Result<Bytes, HttpError> {
    let mut stream = body.bytes_stream();
    let mut first: Option<Bytes> = None;
    let mut all = BytesMut::new();
    loop {
        let next = tokio::time::timeout(READ_LIMIT, stream.next())
            .await
            .map_err(|_| late(format!("the answer stopped for {} s", READ_LIMIT.as_secs())))?;
        let Some(chunk) = next else { break };
        let chunk = chunk?;
        match first.take() {
            None if all.is_empty() => first = Some(chunk),
            first => {
                all.extend_from_slice(first.as_deref().unwrap_or_default());
                all.extend_from_slice(&chunk);
            }
        }
        if all.len().max(first.as_ref().map_or(0, Bytes::len)) >= most {
            break;
        }
    }
    Ok(first.unwrap_or_else(|| all.freeze()))
}

fn late(text: String) -> HttpError {
    HttpError::new(HttpErrorKind::Timeout, std::io::Error::new(std::io::ErrorKind::TimedOut, text))
}

/// The causes of a failure, the innermost last: only that one says what happened.
pub(super) fn in_words(error: &(dyn std::error::Error + 'static)) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        // Some say their cause themselves.
        if let Some(last) = texts.last_mut().filter(|last| last.ends_with(&text)) {
            last.truncate(last.len() - text.len());
            let kept = last.trim_end_matches([' ', ':']).to_owned();
            *last = kept;
        }
        texts.push(text);
        next = error.source();
    }
    texts.retain(|text| !text.is_empty() && text != "HTTP error" && text != "client error");
    texts.dedup();
    texts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_said_once() {
        let inner = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
        let error = HttpError::new(HttpErrorKind::Connect, inner);
        assert_eq!(in_words(&error), "connection refused");
    }
}
