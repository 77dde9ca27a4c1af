//! One address of etcd: its connections, and one request on one of them.

use std::error::Error as _;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Channel, Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use super::Error;
use super::answers::{self, Refusal, Status};
use super::error::{Doubt, refused};
use super::limits::{
    BODY, MAX_ANSWER_BYTES, MAX_CONNECTIONS, MAX_IDLE_CONNECTIONS, MAX_SAID_CHARS,
};
use super::requests;
use super::settings::{Address, SettingsError, TlsFiles};

/// Body of a request: whole, or that of a watch, which goes on.
type Body = Either<Full<Bytes>, Channel<Bytes>>;

/// A connection without a request.
pub(super) type Connection = SendRequest<Body>;

/// Why an attempt failed, and whether its request may have been executed.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) error: Error,
    pub(super) doubt: Doubt,
}

impl From<(Error, Doubt)> for Failure {
    fn from((error, doubt): (Error, Doubt)) -> Self {
        Failure { error, doubt }
    }
}

/// An error before the request was sent.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure { error, doubt: Doubt::None }
    }
}

/// An address, and its connections.
#[derive(Debug)]
pub(super) struct Endpoint {
    address: Address,
    /// The address as text: in errors, and in the header `Host`.
    name: String,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
    /// Time limit to connect, and again until an answer begins.
    attempt: Duration,
}

impl Endpoint {
    pub(super) fn new(
        address: Address,
        tls: Option<&Arc<ClientConfig>>,
        attempt: Duration,
    ) -> Result<Self, SettingsError> {
        let name = address.to_string();
        let tls = match tls.filter(|_| address.tls) {
            None => None,
            Some(config) => {
                let host = ServerName::try_from(address.host.clone());
                let why = "its host is no name that a certificate can have";
                let wrong = |_| SettingsError::Url { url: name.clone(), why };
                Some((Arc::clone(config), host.map_err(wrong)?))
            }
        };
        let (idle, permits) = (Mutex::default(), Semaphore::new(MAX_CONNECTIONS));
        Ok(Endpoint { address, name, tls, idle, permits, attempt })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sends a request and returns the answer, if that begins within a time. `check` judges what a
    /// new connection leads to. Nothing takes longer than until `deadline`.
    pub(super) async fn request(
        &self,
        path: &str,
        token: Option<&str>,
        body: Bytes,
        (time, deadline): (Duration, Instant),
        check: impl FnOnce(&Status) -> Result<(), Error>,
    ) -> Result<Vec<u8>, Failure> {
        let limit = self.limit(deadline);
        // The semaphore is never closed.
        let permit = timeout(limit, self.permits.acquire()).await;
        let _permit = permit.map_err(|_| self.silent(limit))?;
        let mut connection = match self.take_idle(deadline).await {
            Some(connection) => connection,
            None => self.connect(deadline, check).await?,
        };
        let times = (time.min(left(deadline)), BODY.min(left(deadline)));
        let answer = self.exchange(&mut connection, path, token, body, times).await;
        match &answer {
            // The others may lead to the same dead end.
            Err(Failure { error: Error::Silent { .. } | Error::Closed { .. }, .. }) => {
                self.idle().clear();
            }
            _ => self.keep(connection),
        }
        answer
    }

    /// Opens a connection, and asks whether its other end is fit to be used: the status needs
    /// neither leader nor user.
    pub(super) async fn connect(
        &self,
        deadline: Instant,
        check: impl FnOnce(&Status) -> Result<(), Error>,
    ) -> Result<Connection, Error> {
        let limit = self.limit(deadline);
        let opened = timeout(limit, self.open()).await;
        let mut connection = opened.map_err(|_| self.silent(limit))??;
        let times = (self.limit(deadline), self.limit(deadline));
        let body = requests::empty();
        let answer = self.exchange(&mut connection, requests::STATUS, None, body, times).await;
        let answer = answer.map_err(|failure| failure.error)?;
        let status = answers::parse(&answer).map_err(|why| self.malformed(why))?;
        check(&status)?;
        if status.leader == 0 {
            return Err(Error::NoLeader { endpoint: self.name.clone() });
        }
        Ok(connection)
    }

    /// The time limit of an attempt that has a deadline.
    fn limit(&self, deadline: Instant) -> Duration {
        self.attempt.min(left(deadline))
    }

    async fn open(&self) -> Result<Connection, Error> {
        let unreachable = |error: io::Error| Error::Unreachable {
            endpoint: self.name.clone(),
            why: error.to_string(),
        };
        let Address { host, port, .. } = &self.address;
        let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        match &self.tls {
            None => self.handshake(TokioIo::new(stream)).await,
            Some((config, host)) => {
                let connector = TlsConnector::from(Arc::clone(config));
                let stream = connector.connect(host.clone(), stream).await;
                let stream = stream.map_err(|error| Error::Tls {
                    endpoint: self.name.clone(),
                    why: error.to_string(),
                })?;
                self.handshake(TokioIo::new(stream)).await
            }
        }
    }

    async fn handshake<S>(&self, stream: S) -> Result<Connection, Error>
    where
        S: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
    {
        let opened = http1::handshake(stream).await;
        let (connection, driver) = opened.map_err(|error| self.broken(&error).error)?;
        // It ends with the connection: when its other half is dropped, or etcd closes it. What
        // fails is also reported to the request.
        tokio::spawn(async move {
            let _ = driver.await;
        });
        Ok(connection)
    }

    /// Sends a request and reads its whole answer, within the times to its beginning and to its
    /// end.
    async fn exchange(
        &self,
        connection: &mut Connection,
        path: &str,
        token: Option<&str>,
        body: Bytes,
        (time, rest): (Duration, Duration),
    ) -> Result<Vec<u8>, Failure> {
        let body = Either::Left(Full::new(body));
        let response = self.send(connection, path, token, body, time).await?;
        let (status, body) = (response.status(), response.into_body());
        let collected = timeout(rest, self.collect(body)).await;
        let answer = collected.map_err(|_| (self.silent(rest), Doubt::Open))??;
        if status == StatusCode::OK { Ok(answer) } else { Err(self.not_ok(status, &answer)) }
    }

    /// Opens a watch. Returns its two directions.
    pub(super) async fn watch(
        &self,
        connection: &mut Connection,
        token: Option<&str>,
        create: Bytes,
    ) -> Result<(http_body_util::channel::Sender<Bytes>, Incoming), Error> {
        let (mut requests, body) = Channel::new(1);
        // There is space for one.
        if requests.send_data(create).await.is_err() {
            return Err(self.malformed("the watch ended before it began".into()));
        }
        let body = Either::Right(body);
        let sent = self.send(connection, requests::WATCH, token, body, self.attempt).await;
        let response = sent.map_err(|failure| failure.error)?;
        let (status, body) = (response.status(), response.into_body());
        if status == StatusCode::OK {
            return Ok((requests, body));
        }
        let collected = timeout(BODY, self.collect(body)).await;
        let answer = collected.map_err(|_| self.silent(BODY))?.map_err(|failure| failure.error)?;
        Err(self.not_ok(status, &answer).error)
    }

    /// Sends a request, and returns the answer when it begins.
    async fn send(
        &self,
        connection: &mut Connection,
        path: &str,
        token: Option<&str>,
        body: Body,
        time: Duration,
    ) -> Result<Response<Incoming>, Failure> {
        let request = hyper::Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(HOST, &self.name)
            .header(CONTENT_TYPE, "application/json");
        // A member without a leader refuses, and ends watches, instead of being silent. Its status
        // says so.
        let request = match path {
            requests::STATUS => request,
            _ => request.header("Grpc-Metadata-hasleader", "true"),
        };
        // Go's server reads a body to its end before it answers, and that of a watch goes on. It
        // does not, if the connection ends with the answer.
        let request = match &body {
            Either::Left(_) => request,
            Either::Right(_) => request.header(CONNECTION, "close"),
        };
        let request = match token.map(HeaderValue::from_str) {
            None => request,
            Some(Ok(mut token)) => {
                token.set_sensitive(true);
                request.header(AUTHORIZATION, token)
            }
            Some(Err(error)) => return Err(self.malformed(format!("token: {error}")).into()),
        };
        let request = request.body(body).map_err(|error| self.malformed(error.to_string()))?;
        match timeout(time, connection.send_request(request)).await {
            Err(_) => Err((self.silent(time), Doubt::Open).into()),
            Ok(Err(error)) => Err(self.broken(&error)),
            Ok(Ok(response)) => Ok(response),
        }
    }

    async fn collect(&self, mut body: Incoming) -> Result<Vec<u8>, Failure> {
        let mut answer = Vec::new();
        while let Some(frame) = body.frame().await {
            // Trailers are of no interest.
            let Ok(data) = frame.map_err(|error| self.broken(&error))?.into_data() else {
                continue;
            };
            if answer.len() + data.len() > MAX_ANSWER_BYTES {
                let (endpoint, maximum) = (self.name.clone(), MAX_ANSWER_BYTES);
                return Err((Error::AnswerTooLarge { endpoint, maximum }, Doubt::Past).into());
            }
            answer.extend_from_slice(&data);
        }
        Ok(answer)
    }

    fn not_ok(&self, status: StatusCode, answer: &[u8]) -> Failure {
        match answers::parse::<Refusal>(answer) {
            Ok(refusal) if !refusal.message.is_empty() => refused(&self.name, &refusal).into(),
            _ if status == StatusCode::NOT_FOUND => {
                Error::NoGateway { endpoint: self.name.clone() }.into()
            }
            _ => {
                let text: String =
                    String::from_utf8_lossy(answer).trim().chars().take(MAX_SAID_CHARS).collect();
                let (endpoint, said) = (self.name.clone(), format!("HTTP status {status}: {text}"));
                (Error::Unavailable { endpoint, said }, Doubt::Open).into()
            }
        }
    }

    /// Takes a connection that is open. (The driver of one that was just used may still be busy.)
    async fn take_idle(&self, deadline: Instant) -> Option<Connection> {
        loop {
            let mut connection = self.idle().pop()?;
            if let Ok(Ok(())) = timeout(self.limit(deadline), connection.ready()).await {
                return Some(connection);
            }
        }
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE_CONNECTIONS && !connection.is_closed() {
            idle.push(connection);
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn silent(&self, after: Duration) -> Error {
        Error::Silent { endpoint: self.name.clone(), after }
    }

    pub(super) fn malformed(&self, why: String) -> Error {
        Error::Malformed { endpoint: self.name.clone(), why }
    }

    /// Translates an error of a connection. With TLS 1.3, a refused certificate is one, too.
    pub(super) fn broken(&self, error: &hyper::Error) -> Failure {
        let endpoint = self.name.clone();
        let mut source = error.source();
        let mut why = error.to_string();
        while let Some(inner) = source {
            why = inner.to_string();
            let io = inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            if io.is_some_and(|io| io.is::<rustls::Error>()) {
                return (Error::Tls { endpoint, why }, Doubt::Open).into();
            }
            source = inner.source();
        }
        let doubt = if error.is_canceled() { Doubt::None } else { Doubt::Open };
        let error = if error.is_parse() {
            Error::Malformed { endpoint, why }
        } else {
            Error::Closed { endpoint, why }
        };
        (error, doubt).into()
    }
}

/// Time until a deadline.
pub(super) fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// Reads the files for TLS.
pub(super) fn tls_config(of: &TlsFiles) -> Result<Arc<ClientConfig>, SettingsError> {
    use bellrock_tls::files;
    let authorities = files::certificates(&of.authorities)?;
    let roots = files::root_store(&of.authorities, authorities)?;
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    // Its versions are known at compile time to be those of this provider.
    let builder = builder.unwrap_or_else(|error| unreachable!("{error}"));
    let builder = builder.with_root_certificates(roots);
    let mut config = match &of.certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let (chain, key) = (files::certificates(certificate)?, files::private_key(key)?);
            let pair = builder.with_client_auth_cert(chain, key);
            pair.map_err(|error| SettingsError::Pair { path: certificate.clone(), error })?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
