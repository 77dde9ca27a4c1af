//! Bodies of requests, which are read to their ends even if nobody wants them.
//!
//! Many clients write a whole body before they read the answer. If the connection were closed with
//! bytes of it unread, the system would reset it, and the client would never see why its request
//! was refused. So the rest of a body is read and dropped, up to [`MAX_UNWANTED_BYTES`] and for
//! [`UNWANTED_TIMEOUT`]; then the connection is closed.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::limits::{MAX_UNWANTED_BYTES, UNWANTED_TIMEOUT};

/// The body of a request. Dropping it before its end drains the rest.
pub(crate) struct Received {
    /// `None`: it has ended, or is drained.
    body: Option<Incoming>,
    /// Whether the client waits until somebody wants the body (RFC 9110 §10.1.1). Then nothing of
    /// it is on its way.
    is_held_back: bool,
}

impl Received {
    pub(crate) fn new(body: Incoming, headers: &HeaderMap) -> Self {
        let expected = headers.get(header::EXPECT);
        let is_held_back =
            expected.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        Received { body: (!body.is_end_stream()).then_some(body), is_held_back }
    }
}

impl HttpBody for Received {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = Pin::new(body).poll_frame(cx);
        self.is_held_back = false;
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Incoming::size_hint)
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        let Some(body) = self.body.take().filter(|_| !self.is_held_back) else { return };
        // Without a runtime the server has stopped.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(timeout(UNWANTED_TIMEOUT, drain(body)));
        }
    }
}

/// Reads the rest of a body, up to the bound. The end of its connection ends it too.
async fn drain(mut body: Incoming) {
    let mut bytes = 0;
    while bytes <= MAX_UNWANTED_BYTES
        && let Some(Ok(frame)) = body.frame().await
    {
        bytes += frame.data_ref().map_or(0, Bytes::len);
    }
}
