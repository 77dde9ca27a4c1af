//! The client: which address is asked, how often, and with which user.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::body::Bytes;
use tokio::time::{Instant, sleep, timeout};

use super::answers::{self, Answer, Authenticated, Status, Streamed};
use super::endpoint::{Connection, Endpoint, Failure, left, tls_config};
use super::error::{Doubt, Remedy, refused};
use super::history::History;
use super::limits::{AUTHENTICATION, PAUSE, WATCH_PROBE};
use super::settings::{Settings, SettingsError, User};
use super::{Error, requests};

/// A client of one cluster of etcd. Clones share their connections.
#[derive(Clone)]
pub struct Client(Arc<Shared>);

struct Shared {
    endpoints: Vec<Endpoint>,
    /// Index of the address that is asked first.
    preferred: AtomicUsize,
    prefix: Vec<u8>,
    user: Option<User>,
    /// Proof of the user. The lock is held while it is renewed, so that one task does it for all.
    token: tokio::sync::Mutex<Option<Arc<str>>>,
    history: Mutex<History>,
    /// For each address, when a watch has asked it last for a sign of life, or got one.
    asked: Mutex<Vec<Option<Instant>>>,
    attempt: Duration,
    total: Duration,
}

/// What a member of etcd says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Id of its cluster.
    pub cluster_id: u64,
    /// Its own id.
    pub member_id: u64,
    /// Id of its leader; `None`: it has none.
    pub leader: Option<u64>,
    /// Newest revision that it has.
    pub revision: i64,
    /// Number of the leader's term.
    pub raft_term: u64,
    /// Version of etcd.
    pub version: String,
    /// Size of its database, in bytes.
    pub database_bytes: i64,
    /// Its alarms (`NOSPACE`, `CORRUPT`) and troubles, in etcd's words.
    pub alarms: Vec<String>,
}

/// A request with what may be done with it.
pub(super) struct Call {
    pub(super) path: &'static str,
    pub(super) body: Bytes,
    /// Executing it twice is the same as once.
    pub(super) repeatable: bool,
    /// Its answer has the newest revision.
    pub(super) linearizable: bool,
    /// Its answer is the first of a stream.
    pub(super) streamed: bool,
}

/// An answer.
pub(super) struct Answered<A> {
    pub(super) answer: A,
    /// Address that it is of.
    pub(super) endpoint: usize,
    /// An earlier attempt that may have been executed, too.
    pub(super) earlier: Option<Failure>,
}

impl Client {
    /// Checks the settings and reads the files for TLS. Connects to nothing yet.
    ///
    /// # Errors
    /// A setting is wrong, or a file cannot be used.
    pub fn new(settings: &Settings) -> Result<Self, SettingsError> {
        let addresses = settings.addresses()?;
        let tls = settings.tls.as_ref().map(tls_config).transpose()?;
        let endpoint = |address| Endpoint::new(address, tls.as_ref(), settings.attempt);
        Ok(Client(Arc::new(Shared {
            endpoints: addresses.into_iter().map(endpoint).collect::<Result<_, _>>()?,
            preferred: AtomicUsize::new(0),
            prefix: settings.prefix.clone().into_bytes(),
            user: settings.user.clone(),
            token: tokio::sync::Mutex::default(),
            history: Mutex::default(),
            asked: Mutex::default(),
            attempt: settings.attempt,
            total: settings.total,
        })))
    }

    /// Asks this address first from now on, counted from 0 and in a circle. If each node of a
    /// cluster begins at another one, they share the load.
    #[must_use]
    pub fn beginning_at(self, place: usize) -> Self {
        self.0.preferred.store(place % self.0.endpoints.len().max(1), Ordering::Relaxed);
        self
    }

    /// Whether another watch has asked this address for a sign of life lately, or has got one. If
    /// not, the caller asks it.
    pub(super) fn is_asked(&self, index: usize) -> bool {
        let now = Instant::now();
        let mut asked = self.0.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.len() <= index {
            asked.resize(index + 1, None);
        }
        let is_asked = asked[index].is_some_and(|at| now.duration_since(at) < WATCH_PROBE);
        if !is_asked {
            asked[index] = Some(now);
        }
        is_asked
    }

    /// A watch has heard this address.
    pub(super) fn note_heard(&self, index: usize) {
        let mut asked = self.0.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = asked.get_mut(index) {
            *at = Some(Instant::now());
        }
    }

    /// Asks each address for its state. The answers are in the order of the settings.
    pub async fn members(&self) -> Vec<(String, Result<Member, Error>)> {
        let mut members = Vec::new();
        for endpoint in &self.0.endpoints {
            let mut state = None;
            let deadline = Instant::now() + self.0.total;
            let connected = endpoint.connect(deadline, |status| {
                state = Some(member(status));
                Ok(())
            });
            let connected = connected.await;
            // A member without a leader has a state, too.
            let member = state.map_or_else(|| Err(not_connected(endpoint, connected)), Ok);
            members.push((endpoint.name().to_owned(), member));
        }
        members
    }

    /// Whether etcd was set up anew, or restored with a new id: a majority of the addresses answers
    /// as one other cluster, and none as the cluster of before. One address that leads elsewhere is
    /// a mistake in the settings.
    pub async fn is_replaced(&self) -> bool {
        let Some(known) = self.history().cluster() else { return false };
        let members = self.members().await;
        let answers = members.iter().filter_map(|(_, member)| member.as_ref().ok());
        let found: Vec<u64> = answers.map(|member| member.cluster_id).collect();
        let is_other = found.iter().all(|&id| id != known && Some(&id) == found.first());
        is_other && 2 * found.len() > members.len()
    }

    /// Forgets the cluster's id and the revisions that were seen, after [`Error::WentBack`] or
    /// [`Error::OtherCluster`]. Before, the caller has dropped all that it had read.
    pub fn forget_history(&self) {
        *self.history() = History::default();
    }

    pub(super) fn prefix(&self) -> &[u8] {
        &self.0.prefix
    }

    pub(super) fn total(&self) -> Duration {
        self.0.total
    }

    pub(super) fn endpoints(&self) -> &[Endpoint] {
        &self.0.endpoints
    }

    pub(super) fn preferred(&self) -> usize {
        self.0.preferred.load(Ordering::Relaxed)
    }

    pub(super) fn history(&self) -> MutexGuard<'_, History> {
        self.0.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request to one address after the other, until one answers or the time is over.
    pub(super) async fn call<A: Answer>(&self, call: Call) -> Result<Answered<A>, Failure> {
        self.call_within(call, self.0.total).await
    }

    pub(super) async fn call_within<A: Answer>(
        &self,
        call: Call,
        total: Duration,
    ) -> Result<Answered<A>, Failure> {
        let (shared, deadline) = (&*self.0, Instant::now() + total);
        let count = shared.endpoints.len();
        let (mut endpoint, mut in_row, mut earlier) = (self.preferred() % count, 0, None);
        let mut renewed = false;
        let mut each: Vec<Option<Error>> = vec![None; count];
        loop {
            if left(deadline).is_zero() {
                let each = each.into_iter().flatten().collect();
                return Err((
                    Error::NoneAnswered { after: total, each },
                    doubt_of(earlier.as_ref()),
                )
                    .into());
            }
            let failure = match self.attempt(endpoint, &call, deadline).await {
                Ok(answer) => {
                    shared.preferred.store(endpoint, Ordering::Relaxed);
                    return Ok(Answered { answer, endpoint, earlier });
                }
                Err(failure) => failure,
            };
            let error = failure.error.clone();
            if failure.doubt > doubt_of(earlier.as_ref()) {
                earlier = Some(failure);
            }
            let doubt = doubt_of(earlier.as_ref());
            match error.remedy() {
                _ if doubt != Doubt::None && !call.repeatable => return Err((error, doubt).into()),
                Remedy::Authenticate if !renewed && shared.user.is_some() => {
                    // A second refusal has another reason.
                    renewed = true;
                    continue;
                }
                Remedy::Authenticate | Remedy::GiveUp => return Err((error, doubt).into()),
                Remedy::Next => {}
            }
            each[endpoint] = Some(error);
            endpoint = (endpoint + 1) % count;
            in_row += 1;
            if in_row % count == 0 {
                sleep(PAUSE.min(left(deadline))).await;
            }
        }
    }

    async fn attempt<A: Answer>(
        &self,
        endpoint: usize,
        call: &Call,
        deadline: Instant,
    ) -> Result<A, Failure> {
        let before = self.history().revision()?;
        let token = self.token(endpoint, deadline).await?;
        let at = &self.0.endpoints[endpoint];
        let times = (self.0.attempt, deadline);
        let check = |status: &Status| self.history().check_cluster(at.name(), status.header);
        let sent = at.request(call.path, token.as_deref(), call.body.clone(), times, check).await;
        let bytes = match sent {
            Ok(bytes) => bytes,
            Err(failure) => {
                if failure.error.remedy() == Remedy::Authenticate {
                    self.forget_token(token.as_deref()).await;
                }
                return Err(failure);
            }
        };
        // It was executed, and the caller will not hear how.
        let malformed = |why| Failure::from((at.malformed(why), Doubt::Past));
        let answer: A = if call.streamed {
            let first: Streamed<A> = answers::parse(&bytes).map_err(malformed)?;
            match (first.result, first.error) {
                (_, Some(error)) => return Err(refused(at.name(), &error.into()).into()),
                (None, None) => return Err(malformed("neither a result nor an error".into())),
                (Some(answer), None) => answer,
            }
        } else {
            answers::parse(&bytes).map_err(malformed)?
        };
        let mut history = self.history();
        let checked = if call.linearizable {
            history.check(at.name(), answer.header(), before)
        } else {
            history.check_cluster(at.name(), answer.header())
        };
        // A write was executed, on a cluster that is not to be trusted.
        checked.map_err(|error| Failure::from((error, Doubt::Past)))?;
        Ok(answer)
    }

    /// The proof of the user, made when there is none.
    pub(super) async fn token(
        &self,
        endpoint: usize,
        deadline: Instant,
    ) -> Result<Option<Arc<str>>, Error> {
        let Some(User { name, password }) = &self.0.user else { return Ok(None) };
        let (at, limit) = (&self.0.endpoints[endpoint], left(deadline));
        let token = timeout(limit, self.0.token.lock()).await;
        let mut token = token.map_err(|_| at.silent(limit))?;
        if token.is_none() {
            let body = requests::authenticate(name, password);
            let times = (AUTHENTICATION, deadline);
            let check = |status: &Status| self.history().check_cluster(at.name(), status.header);
            let sent = at.request(requests::AUTHENTICATE, None, body, times, check).await;
            let bytes = sent.map_err(|failure| failure.error)?;
            let answer: Authenticated = answers::parse(&bytes).map_err(|why| at.malformed(why))?;
            self.history().check_cluster(at.name(), answer.header)?;
            *token = Some(answer.token.into());
        }
        Ok(token.clone())
    }

    /// Forgets a token, unless another task has replaced it.
    pub(super) async fn forget_token(&self, old: Option<&str>) {
        let mut token = self.0.token.lock().await;
        if token.as_deref() == old {
            *token = None;
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoints: Vec<&str> = self.0.endpoints.iter().map(Endpoint::name).collect();
        f.debug_struct("Client").field("endpoints", &endpoints).finish_non_exhaustive()
    }
}

fn doubt_of(earlier: Option<&Failure>) -> Doubt {
    earlier.map_or(Doubt::None, |failure| failure.doubt)
}

fn member(status: &Status) -> Member {
    Member {
        cluster_id: status.header.cluster_id,
        member_id: status.header.member_id,
        leader: (status.leader != 0).then_some(status.leader),
        revision: status.header.revision,
        raft_term: status.header.raft_term,
        version: status.version.clone(),
        database_bytes: status.database_bytes,
        alarms: status.errors.iter().map(|alarm| alarm.trim().to_owned()).collect(),
    }
}

fn not_connected(endpoint: &Endpoint, connected: Result<Connection, Error>) -> Error {
    let nothing = || endpoint.malformed("it has no state".into());
    connected.err().unwrap_or_else(nothing)
}
