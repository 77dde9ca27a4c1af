//! Who may do what: the checks that each request passes before its route.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bellrock_pace::{RateLimit, network_of};

use crate::answer::Shared;
use crate::limits::{
    MAX_CLIENTS, MAX_REQUESTS_PER_SECOND, MAX_WRONG_TOKENS_PER_SECOND, REQUEST_TIMEOUT,
};
use crate::page;
use crate::problem::Problem;
use crate::tokens::{Scope, TokenEntry};

/// Paths that need no token anywhere: those for supervisors tell only whether it runs, and the web
/// page has nothing of the network in it.
fn needs_no_token(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz" | page::ROOT) || path.starts_with(page::FILES)
}

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) ip: IpAddr,
    /// Whether the address that the client connected to is of the loopback.
    pub(crate) is_local: bool,
}

impl Client {
    /// Whom its rates are of.
    fn network(self) -> Sender {
        Sender::Network(network_of(self.ip))
    }
}

/// The sender of a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The token of the request.
    pub(crate) token: Option<TokenEntry>,
    /// The guest that the request is to. It has no token.
    guest: Option<&'static str>,
}

impl Caller {
    /// Who has no token.
    pub(crate) const NOBODY: Caller = Caller { token: None, guest: None };

    /// A client of a guest.
    pub(crate) fn guest(name: &'static str) -> Self {
        Caller { guest: Some(name), ..Caller::NOBODY }
    }

    /// Who orders, in the audit log.
    pub(crate) fn who(&self) -> String {
        match (self.name(), self.guest) {
            (Some(token), _) => format!("token {token}"),
            (None, Some(guest)) => format!("a client of {guest}"),
            (None, None) => "nobody".to_owned(),
        }
    }

    /// The name of the token.
    pub(crate) fn name(&self) -> Option<&str> {
        self.token.as_ref().map(|token| token.name.as_str())
    }

    /// Whether its token allows changes.
    pub(crate) fn may_change(&self) -> bool {
        self.token.as_ref().is_some_and(|token| token.scope >= Scope::Write)
    }
}

/// Whose rates these are. Who has a token is not held up by others of the same address: on the
/// loopback these are all users of the machine, and behind a proxy all its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Sender {
    /// A remote address, or its network.
    Network(IpAddr),
    /// The SHA-256 of a token.
    Token([u8; 32]),
}

/// The rates of remote addresses and of tokens.
#[derive(Debug)]
pub(crate) struct Rates {
    start: Instant,
    clients: Mutex<HashMap<Sender, ClientRates>>,
}

#[derive(Debug)]
struct ClientRates {
    requests: RateLimit,
    wrong_tokens: RateLimit,
    last: Instant,
}

impl Default for Rates {
    fn default() -> Self {
        Rates { start: Instant::now(), clients: Mutex::default() }
    }
}

impl Rates {
    /// Does something with the rates of a sender.
    fn with<T>(
        &self,
        sender: Sender,
        act: impl FnOnce(&mut ClientRates, std::time::Duration) -> T,
    ) -> T {
        let now = Instant::now();
        // Each change of it is one insertion or removal, or one of a rate.
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= MAX_CLIENTS && !clients.contains_key(&sender) {
            let oldest = clients.iter().min_by_key(|(_, rates)| rates.last);
            let oldest = oldest.map(|(sender, _)| *sender);
            oldest.and_then(|oldest| clients.remove(&oldest));
        }
        let rates = clients.entry(sender).or_insert_with(|| ClientRates {
            requests: RateLimit::per_second(MAX_REQUESTS_PER_SECOND),
            wrong_tokens: RateLimit::per_second(MAX_WRONG_TOKENS_PER_SECOND),
            last: now,
        });
        rates.last = now;
        act(rates, now.saturating_duration_since(self.start))
    }
}

/// Checks a request, and limits its time.
pub(crate) async fn check(
    State(shared): State<Arc<Shared>>,
    mut request: Request,
    next: Next,
) -> Response {
    shared.counters.requests();
    let Some(client) = request.extensions().get::<Client>().copied() else {
        return Problem::internal("the request has no remote address").into_response();
    };
    match allow(&shared, client, &request) {
        Ok(caller) => request.extensions_mut().insert(caller),
        Err(problem) => return problem.into_response(),
    };
    within_time(&shared, next.run(request)).await
}

/// Limits the time of a request.
pub(crate) async fn within_time(
    shared: &Shared,
    response: impl Future<Output = Response>,
) -> Response {
    match tokio::time::timeout(REQUEST_TIMEOUT, response).await {
        Ok(response) => response,
        Err(_) => {
            shared.counters.requests_timed_out();
            let limit = REQUEST_TIMEOUT.as_secs();
            Problem::busy(format!("there is no answer after {limit} s")).into_response()
        }
    }
}

/// Whether a request may pass, and who asks.
fn allow(shared: &Shared, client: Client, request: &Request) -> Result<Caller, Problem> {
    let token = bearer(request.headers());
    let entry = token.and_then(|token| shared.tokens.find(token));
    check_client(shared, client, entry.as_ref(), request)?;
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let needed = if changes { Scope::Write } else { Scope::Read };
    match (token, entry) {
        (_, Some(entry)) => with_token(shared, entry, needed),
        (Some(_), None) => Err(wrong_token(shared, client)),
        (None, _) if needs_no_token(request.uri().path()) => Ok(Caller::NOBODY),
        (None, _) if client.is_local && !changes => Ok(Caller::NOBODY),
        (None, _) => {
            shared.counters.requests_unauthorized();
            Err(Problem::unauthorized(no_token(shared, changes)))
        }
    }
}

/// Checks the rate of a client, or of its token, that it asks for one host, and on the loopback the
/// name of that host.
pub(crate) fn check_client(
    shared: &Shared,
    client: Client,
    token: Option<&TokenEntry>,
    request: &Request,
) -> Result<(), Problem> {
    let sender = token.map_or(client.network(), |token| Sender::Token(token.digest()));
    if !shared.rates.with(sender, |rates, now| rates.requests.pass(now)) {
        shared.counters.requests_over_limit();
        let who = if token.is_some() { "token" } else { "address" };
        let why = format!("one {who} may send {MAX_REQUESTS_PER_SECOND} requests per second");
        return Err(Problem::too_many(why));
    }
    match request.headers().get_all(header::HOST).iter().count() {
        0 if request.version() == Version::HTTP_11 => {
            return Err(Problem::invalid(
                "the request has no Host field; send one (RFC 9112 §3.2)",
            ));
        }
        0 | 1 => {}
        _ => {
            let why = "the request has several Host fields; send one (RFC 9112 §3.2)";
            return Err(Problem::invalid(why));
        }
    }
    if client.is_local {
        check_host(request).inspect_err(|_| shared.counters.hosts_refused())?;
    }
    Ok(())
}

fn no_token(shared: &Shared, changes: bool) -> String {
    let what = if changes { "changes need" } else { "on this address requests need" };
    let how = match shared.tokens.has_source() {
        true => "send it as `Authorization: Bearer TOKEN`; `bellrock token` makes one",
        false => "`bellrock token` makes one, and the setting `http.tokens` names the file of them",
    };
    format!("{what} a token: {how}")
}

/// The token of a request. Anything else in the header counts as a wrong one.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().unwrap_or_default();
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    Some(if scheme.eq_ignore_ascii_case("bearer") { token.trim() } else { "" })
}

/// The answer to a token that is none. Guesses are limited, not those who have one.
fn wrong_token(shared: &Shared, client: Client) -> Problem {
    if !shared.rates.with(client.network(), |rates, now| rates.wrong_tokens.pass(now)) {
        shared.counters.requests_over_limit();
        let limit = MAX_WRONG_TOKENS_PER_SECOND;
        let why = format!("one address may send {limit} wrong tokens per second");
        return Problem::too_many(why);
    }
    shared.counters.requests_unauthorized();
    Problem::unauthorized(match shared.tokens.has_source() {
        true => "the token is none of the controller's",
        false => "the controller has no file of tokens; the setting `http.tokens` names one",
    })
}

fn with_token(shared: &Shared, entry: TokenEntry, needed: Scope) -> Result<Caller, Problem> {
    if entry.has_expired() {
        shared.counters.requests_unauthorized();
        let when = entry.expiry().unwrap_or_default();
        let why = format!("the token {} expired at {when}; make a new one", entry.name);
        return Err(Problem::unauthorized(why));
    }
    if entry.scope < needed {
        shared.counters.requests_forbidden();
        let why = format!("the token {} has the scope read, and this is a change", entry.name);
        return Err(Problem::forbidden(why));
    }
    Ok(Caller { token: Some(entry), ..Caller::NOBODY })
}

/// On the loopback, only its own names are asked for. Checks of supervisors by HTTP/1.0 may name
/// none; browsers always do.
fn check_host(request: &Request) -> Result<(), Problem> {
    let header = request.headers().get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    let host = request.uri().authority().map(|authority| authority.as_str()).or(header);
    match host {
        Some(host) if !is_loopback(host) => Err(Problem::other_host(host)),
        _ => Ok(()),
    }
}

/// Whether `HOST` or `HOST:PORT` is a name of this machine's loopback.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((v6, rest)) if rest.is_empty() || rest.starts_with(':') => v6,
        Some(_) => return false,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_loopback_are_told_from_others() {
        for good in ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "127.8.9.1", "[::1]:1", "[::1]"]
        {
            assert!(is_loopback(good), "{good}");
        }
        for bad in ["", "evil.example", "localhost.evil.example", "10.0.0.1:80", "[::1]x", "[::2]"]
        {
            assert!(!is_loopback(bad), "{bad}");
        }
    }

    #[test]
    fn only_the_page_and_the_paths_of_supervisors_need_no_token() {
        for open in ["/", "/page/main.js", "/healthz", "/readyz"] {
            assert!(needs_no_token(open), "{open}");
        }
        for closed in ["/v1", "/v1/status", "/v1/token", "/metrics", "/page", "/pages/x", ""] {
            assert!(!needs_no_token(closed), "{closed}");
        }
    }

    #[test]
    fn an_address_may_send_so_many_requests_a_second_and_others_do_not_notice() {
        let rates = Rates::default();
        let network = |ip: [u8; 4]| Sender::Network(ip.into());
        let one = network([10, 0, 0, 1]);
        let passed = rates.with(one, |rates, now| {
            let passed =
                |at| (0..MAX_REQUESTS_PER_SECOND + 5).filter(|_| rates.requests.pass(at)).count();
            [now, now + std::time::Duration::from_secs(1)].map(passed)
        });
        assert_eq!(passed, [MAX_REQUESTS_PER_SECOND as usize; 2]);
        for other in [network([10, 0, 0, 2]), Sender::Token([0; 32])] {
            assert!(rates.with(other, |rates, now| rates.requests.pass(now)));
        }
    }

    #[test]
    fn the_client_that_was_silent_longest_is_forgotten() {
        let rates = Rates::default();
        let ip = |n: usize| Sender::Network(IpAddr::from((n as u128 + 1).to_be_bytes()));
        for n in 0..MAX_CLIENTS + 10 {
            assert!(rates.with(ip(n), |rates, now| rates.requests.pass(now)));
        }
        let clients = rates.clients.lock().unwrap();
        assert_eq!(clients.len(), MAX_CLIENTS);
        assert!(!clients.contains_key(&ip(0)) && clients.contains_key(&ip(MAX_CLIENTS)));
    }
}
