//! For the fuzz target `http`: connections without sockets. Only with `--cfg fuzzing`.

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use bellrock_query::Operator;
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::HttpCounters;
use crate::access::Client;
use crate::answer::Shared;
use crate::guest::{self, Guest};
use crate::limits::MAX_HEAD_BYTES;
use crate::routes;
use crate::tokens::TokenBook;

/// Streams of events would not end by themselves.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(100);

/// The routers of REST and of a guest, over an operator.
pub struct Routers {
    runtime: Runtime,
    main: Router,
    guest: Router,
    /// Number of connections so far. Each has a network of its own, so that no rate is exceeded.
    connections: AtomicU64,
}

impl Routers {
    /// `tokens`: the file of the tokens.
    pub fn new(operator: Arc<dyn Operator>, tokens: &Path, guest: &Guest) -> Self {
        let (_, news) = watch::channel(());
        let book =
            TokenBook::open(Some(tokens), Default::default()).expect("the tokens are readable");
        let counters = HttpCounters::default();
        let shared = Arc::new(Shared::new(operator, &counters, book, None, news));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        Routers {
            runtime: runtime.expect("a runtime"),
            main: routes::router(&shared),
            guest: guest::router(guest, &shared),
            connections: AtomicU64::new(1),
        }
    }

    /// Serves a connection on which the client sends these bytes and then ends. Returns what it
    /// gets.
    pub fn serve(&self, is_guest: bool, bytes: &[u8]) -> Vec<u8> {
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let ip = IpAddr::V6(Ipv6Addr::from_bits(u128::from(number) << 64));
        let client = Client { ip, is_local: true };
        let router = if is_guest { &self.guest } else { &self.main };
        let service = hyper::service::service_fn(|mut request: Request<Incoming>| {
            request.extensions_mut().insert(client);
            router.clone().oneshot(request)
        });
        let mut answer = Vec::new();
        let memory = Memory { incoming: bytes, answer: &mut answer };
        self.runtime.block_on(async {
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).half_close(true).max_buf_size(MAX_HEAD_BYTES);
            let serving = builder.serve_connection(memory, service);
            let _ = tokio::time::timeout(ANSWER_TIMEOUT, serving).await;
        });
        answer
    }
}

/// Both directions of a connection.
struct Memory<'m> {
    incoming: &'m [u8],
    answer: &'m mut Vec<u8>,
}

impl Read for Memory<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let (now, later) = self.incoming.split_at(buffer.remaining().min(self.incoming.len()));
        buffer.put_slice(now);
        self.incoming = later;
        Poll::Ready(Ok(()))
    }
}

impl Write for Memory<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.answer.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
