//! The server: one thread that accepts and serves all connections.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::HttpBody as _;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use bellrock_query::Operator;
use futures_lite::FutureExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::access::Client;
use crate::answer::Shared;
use crate::guest::{self, Guest};
use crate::incoming::Received;
use crate::limits::{
    HANDSHAKE_TIMEOUT, HEAD_TIMEOUT, MAX_ASKING, MAX_HEAD_BYTES, MAX_ORDERS, MAX_PARSING,
    MAX_WAITING_ANSWER_BYTES, MAX_WAITING_FOR_SWITCHES, STOP_TIMEOUT,
};
use crate::metrics::{self, StatisticsKind};
use crate::outgoing::{Outgoing, Sent};
use crate::places::{Connection, Places};
use crate::problem::Problem;
use crate::tls::{self, TlsError};
use crate::tokens::{TokenBook, TokenError};
use crate::{HttpCounters, HttpSettings, StatisticsSettings, routes, stream};

/// Time until the acceptor tries again after the system ran out of sockets.
const RETRY: Duration = Duration::from_millis(100);

/// Why the server does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// An address that others can reach has no TLS or no tokens.
    #[error(
        "HTTP on {0}, which other machines can reach, needs a certificate and tokens; set `http.certificate`, \
         `http.key` and `http.tokens`, or listen on 127.0.0.1"
    )]
    Unprotected(SocketAddr),
    /// A guest has no tokens, so that it listens on the loopback only.
    #[error(
        "{guest} cannot listen on {address}, which other machines can reach: it knows no tokens; \
         give it an address of the loopback, such as 127.0.0.1:8081"
    )]
    GuestInTheOpen {
        /// Its name.
        guest: &'static str,
        /// The address.
        address: SocketAddr,
    },
    /// The system refuses an address.
    #[error("HTTP cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The tokens cannot be read.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The system refuses a thread or a poller.
    #[error("HTTP cannot start: {0}")]
    System(io::Error),
}

/// A server that answers until it is dropped.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<SocketAddr>,
    guest_addresses: Vec<(&'static str, SocketAddr)>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens, and answers requests in a thread of its own.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn start(
        settings: &HttpSettings,
        operator: Arc<dyn Operator>,
        counters: &HttpCounters,
    ) -> Result<Self, ServerError> {
        if let Some(address) = settings.unprotected() {
            return Err(ServerError::Unprotected(address));
        }
        if let Some((guest, address)) = settings.guests.iter().find_map(Guest::in_the_open) {
            return Err(ServerError::GuestInTheOpen { guest, address });
        }
        let given = settings.given_tokens.clone().unwrap_or_default();
        let tokens = TokenBook::open(settings.tokens.as_deref(), given)?;
        let tls = settings.tls.as_ref().map(tls::acceptor).transpose()?;
        let (listeners, addresses) = listen_on(&settings.listen)?;
        let (latest, news) = watch::channel(());
        let shared = Arc::new(Shared::new(operator, counters, tokens, settings.tls.clone(), news));
        let main = Face { router: routes::router(&shared), tls, places: Arc::default() };
        let mut faces: Vec<_> =
            listeners.into_iter().map(|listener| (listener, main.clone())).collect();
        let mut guest_addresses = Vec::new();
        for guest in &settings.guests {
            let (listeners, addresses) = listen_on(&guest.listen)?;
            guest_addresses.extend(addresses.into_iter().map(|address| (guest.name, address)));
            let face = Face::of_guest(guest, &shared);
            faces.extend(listeners.into_iter().map(|listener| (listener, face.clone())));
        }
        let accepting = Accepting { counters: counters.clone(), graceful: GracefulShutdown::new() };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            // One for each turn, and one that waits for events.
            .max_blocking_threads(
                MAX_ASKING + MAX_WAITING_FOR_SWITCHES + MAX_ORDERS + MAX_PARSING + 1,
            )
            .thread_name("http-ask")
            .build()
            .map_err(ServerError::System)?;
        let StatisticsSettings { ports, flows } = settings.statistics;
        let polls = [(StatisticsKind::Ports, ports), (StatisticsKind::Flows, flows)];
        let polls = polls.into_iter().filter_map(|(kind, interval)| Some((kind, interval?)));
        let polls: Vec<_> = polls.collect();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("http".into())
            .spawn(move || {
                runtime.block_on(async move {
                    // They end with the runtime.
                    let watching = stream::watch_events(Arc::clone(&shared), latest);
                    let streams = tokio::spawn(watching).abort_handle();
                    for (kind, interval) in polls {
                        tokio::spawn(metrics::poll(Arc::clone(&shared), kind, interval));
                    }
                    tokio::spawn(async move { shared.tokens.watch().await });
                    accepting.run(faces, stopped, streams).await;
                });
                // Requests that switches have not answered end with the process.
                runtime.shutdown_background();
            })
            .map_err(ServerError::System)?;
        Ok(Server { addresses, guest_addresses, stop: Some(stop), thread: Some(thread) })
    }

    /// Addresses on which it listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Addresses on which guests listen, with their names.
    #[must_use]
    pub fn guest_addresses(&self) -> &[(&'static str, SocketAddr)] {
        &self.guest_addresses
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Listens on all addresses. Returns those that the system has chosen, too.
fn listen_on(
    addresses: &[SocketAddr],
) -> Result<(Vec<std::net::TcpListener>, Vec<SocketAddr>), ServerError> {
    let listeners = addresses.iter().map(|address| listen(*address));
    let listeners = listeners.collect::<Result<Vec<_>, _>>()?;
    let addresses: Result<Vec<_>, _> =
        listeners.iter().map(std::net::TcpListener::local_addr).collect();
    Ok((listeners, addresses.map_err(ServerError::System)?))
}

fn listen(address: SocketAddr) -> Result<std::net::TcpListener, ServerError> {
    let listen = || {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    listen().map_err(|error| ServerError::Listen { address, error })
}

/// What the clients of an address meet.
#[derive(Clone)]
struct Face {
    router: Router,
    tls: Option<TlsAcceptor>,
    places: Arc<Places>,
}

impl Face {
    /// Whoever may not ask the main interface has no share of its places.
    fn of_guest(guest: &Guest, shared: &Arc<Shared>) -> Self {
        Face { router: guest::router(guest, shared), tls: None, places: Arc::default() }
    }
}

/// What all connections share.
struct Accepting {
    counters: HttpCounters,
    graceful: GracefulShutdown,
}

impl Accepting {
    /// Accepts until `stopped`, and then ends the streams and lets requests end.
    async fn run(
        self,
        faces: Vec<(std::net::TcpListener, Face)>,
        stopped: oneshot::Receiver<()>,
        streams: AbortHandle,
    ) {
        let accepting = Arc::new(self);
        let mut acceptors = tokio::task::JoinSet::new();
        for (listener, face) in faces {
            let accepting = Arc::clone(&accepting);
            acceptors.spawn(async move {
                match TcpListener::from_std(listener) {
                    Ok(listener) => accepting.accept(listener, face).await,
                    Err(error) => tracing::error!("HTTP cannot accept: {error}"),
                }
            });
        }
        // An error means that the sender is dropped, which stops the server too.
        let _ = stopped.await;
        acceptors.shutdown().await;
        streams.abort();
        if let Some(accepting) = Arc::into_inner(accepting) {
            let _ = tokio::time::timeout(STOP_TIMEOUT, accepting.graceful.shutdown()).await;
        }
    }

    async fn accept(&self, listener: TcpListener, face: Face) {
        let is_local = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(_) => {
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            };
            self.counters.connections();
            let client = Client { ip: peer.ip().to_canonical(), is_local };
            let Some((place, displaced)) = Places::take(&face.places, client.ip, Instant::now())
            else {
                self.counters.connections_refused();
                continue;
            };
            if displaced {
                self.counters.connections_displaced();
            }
            let face = face.clone();
            let (counters, watcher) = (self.counters.clone(), self.graceful.watcher());
            tokio::spawn(async move {
                let connection = place.connection();
                let displaced = connection.displaced();
                let served = serve(stream, client, face, &counters, watcher, connection);
                served.or(displaced).await;
            });
        }
    }
}

/// Serves a connection until its end. Errors of a client that is gone or slow do not matter.
async fn serve(
    stream: TcpStream,
    client: Client,
    Face { router, tls, .. }: Face,
    counters: &HttpCounters,
    watcher: Watcher,
    connection: &Arc<Connection>,
) {
    let _ = stream.set_nodelay(true);
    let stream = Outgoing::new(stream, connection, counters);
    let Some(tls) = tls else {
        return http(Box::pin(stream), client, router, counters, watcher, connection).await;
    };
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => {
            http(Box::pin(stream), client, router, counters, watcher, connection).await;
        }
        _ => counters.handshakes_failed(),
    }
}

async fn http<S>(
    stream: Pin<Box<S>>,
    client: Client,
    router: Router,
    counters: &HttpCounters,
    watcher: Watcher,
    connection: &Arc<Connection>,
) where
    S: AsyncRead + AsyncWrite + 'static,
{
    let service = hyper::service::service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(client);
        let (head, body) = request.into_parts();
        let body = Received::new(body, &head.headers);
        let response = router.clone().oneshot(Request::from_parts(head, body));
        let mut pending = connection.request();
        async {
            let mut response = response.await?;
            if is_invalid(response.status()) {
                counters.requests_invalid();
            }
            let bytes = response.body().size_hint().exact().unwrap_or_default();
            if !pending.holds(usize::try_from(bytes).unwrap_or(usize::MAX)) {
                counters.answers_refused();
                response = too_much_waits();
            }
            Ok::<_, Infallible>(response.map(|body| Sent { body, _pending: pending }))
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(MAX_HEAD_BYTES);
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    match watcher.watch(serving).await {
        Err(error) if error.is_parse() => counters.connections_malformed(),
        Err(error) if error.is_timeout() => counters.connections_timed_out(),
        _ => {}
    }
}

fn too_much_waits() -> Response {
    let limit = MAX_WAITING_ANSWER_BYTES >> 20;
    let why = format!("clients have not taken {limit} MiB of answers yet; try again");
    Problem::busy(why).into_response()
}

/// Whether a response says that its request is wrong. The other refusals have counters of their
/// own.
fn is_invalid(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::UNPROCESSABLE_ENTITY
    )
}
