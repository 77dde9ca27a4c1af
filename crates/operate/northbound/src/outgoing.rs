//! Answers on their way to a client, which may take them slowly or not at all.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::HttpCounters;
use crate::limits::{ANSWER_TIMEOUT, PROGRESS_TIMEOUT};
use crate::places::{Connection, Pending};

/// The body of an answer. It is dropped when all of it is in the connection's buffer.
pub(crate) struct Sent {
    pub(crate) body: Body,
    pub(crate) _pending: Pending,
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A socket whose client must take what is written to it: a byte within [`PROGRESS_TIMEOUT`], and
/// all within [`ANSWER_TIMEOUT`].
///
/// It is under TLS. HTTP flushes it whenever it has written all that it has.
pub(crate) struct Outgoing {
    stream: TcpStream,
    connection: Arc<Connection>,
    counters: HttpCounters,
    wait: Option<Wait>,
}

/// A client that has not taken all.
struct Wait {
    began: Instant,
    /// When it must have taken a byte, or all.
    end: Instant,
    /// Wakes the connection then.
    alarm: Pin<Box<Sleep>>,
}

impl Outgoing {
    pub(crate) fn new(
        stream: TcpStream,
        connection: &Arc<Connection>,
        counters: &HttpCounters,
    ) -> Self {
        let (connection, counters) = (Arc::clone(connection), counters.clone());
        Outgoing { stream, connection, counters, wait: None }
    }

    /// Looks at the time, which is `now`, after a write.
    fn in_time(
        &mut self,
        cx: &mut Context<'_>,
        now: Instant,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(_)) => {
                let Some(wait) = &mut self.wait else { return written };
                let last = wait.began + ANSWER_TIMEOUT;
                if now >= last {
                    return self.too_slow();
                }
                wait.end = last.min(now + PROGRESS_TIMEOUT);
                wait.alarm.as_mut().reset(wait.end);
                written
            }
            Poll::Ready(Err(_)) => written,
            Poll::Pending => {
                let wait = self.wait.get_or_insert_with(|| {
                    let end = now + PROGRESS_TIMEOUT;
                    Wait { began: now, end, alarm: Box::pin(sleep_until(end)) }
                });
                if now >= wait.end || wait.alarm.as_mut().poll(cx).is_ready() {
                    return self.too_slow();
                }
                Poll::Pending
            }
        }
    }

    fn too_slow(&self) -> Poll<io::Result<usize>> {
        self.counters.answers_not_taken();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Outgoing {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Outgoing {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.in_time(cx, Instant::now(), written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.in_time(cx, Instant::now(), written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wait = None;
        self.connection.written();
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use tokio::net::TcpListener;

    use super::*;
    use crate::places::Places;

    const SECOND: Duration = Duration::from_secs(1);

    /// A socket and its counters, at times that the test gives.
    struct Lab {
        runtime: tokio::runtime::Runtime,
        outgoing: Outgoing,
        counters: HttpCounters,
        start: Instant,
    }

    impl Lab {
        fn new() -> Self {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let stream = runtime.block_on(async {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
                TcpStream::connect(listener.local_addr().unwrap()).await.unwrap()
            });
            let start = Instant::now();
            let places = Arc::new(Places::default());
            let (place, _) =
                Places::take(&places, Ipv4Addr::LOCALHOST.into(), start.into_std()).unwrap();
            let counters = HttpCounters::default();
            let outgoing = Outgoing::new(stream, place.connection(), &counters);
            Lab { runtime, outgoing, counters, start }
        }

        /// A write so long after the start. Returns whether the client is too slow.
        fn write(&mut self, after: Duration, is_taken: bool) -> bool {
            // The alarm itself comes in its own time, so the test stays before it.
            let (now, outgoing) = (self.start + after, &mut self.outgoing);
            let result = self.runtime.block_on(poll_fn(|cx| {
                let written = if is_taken { Poll::Ready(Ok(1)) } else { Poll::Pending };
                Poll::Ready(outgoing.in_time(cx, now, written))
            }));
            match result {
                Poll::Ready(Err(error)) => error.kind() == io::ErrorKind::TimedOut,
                Poll::Ready(Ok(_)) | Poll::Pending => false,
            }
        }

        fn flush(&mut self) {
            let outgoing = &mut self.outgoing;
            self.runtime.block_on(poll_fn(|cx| Pin::new(&mut *outgoing).poll_flush(cx))).unwrap();
        }

        fn counted(&self) -> u64 {
            self.counters.values()["answers_not_taken"]
        }
    }

    #[test]
    fn a_client_that_takes_no_byte_is_closed_and_counted() {
        let mut lab = Lab::new();
        assert!(!lab.write(Duration::ZERO, false));
        assert!(!lab.write(PROGRESS_TIMEOUT - SECOND, false));
        assert!(!lab.write(PROGRESS_TIMEOUT - SECOND, true));
        assert!(!lab.write(PROGRESS_TIMEOUT + SECOND, false));
        assert_eq!(lab.counted(), 0);
        assert!(lab.write(2 * PROGRESS_TIMEOUT, false));
        assert_eq!(lab.counted(), 1);
    }

    #[test]
    fn a_client_that_takes_a_byte_now_and_then_has_a_time_for_the_whole() {
        let mut lab = Lab::new();
        let mut trickle = |from: Duration| {
            assert!(!lab.write(from, false));
            let mut passed = PROGRESS_TIMEOUT - SECOND;
            while passed < ANSWER_TIMEOUT {
                assert!(!lab.write(from + passed, true), "after {passed:?}");
                assert!(!lab.write(from + passed, false), "after {passed:?}");
                passed += PROGRESS_TIMEOUT - SECOND;
            }
            lab.flush();
        };
        trickle(Duration::ZERO);
        // What is flushed counts no more.
        trickle(ANSWER_TIMEOUT);
        let from = 2 * ANSWER_TIMEOUT;
        assert!(!lab.write(from, false));
        assert!(lab.write(from + ANSWER_TIMEOUT, true));
        assert_eq!(lab.counted(), 1);
    }
}
