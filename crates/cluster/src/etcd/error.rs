//! What can go wrong, and what etcd's own words mean.

use std::time::Duration;

use super::answers::Refusal;
use super::limits::{MAX_OPERATIONS, MAX_TRANSACTION_BYTES};

/// Why an operation failed. `endpoint` is the address of etcd, `said` are etcd's own words.
///
/// An operation that failed has changed nothing. (A write whose answer was lost does not fail: its
/// outcome is [`super::Outcome::Unknown`].)
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no connection.
    #[error("etcd at {endpoint} cannot be reached: {why}: check its address, and that it runs")]
    Unreachable {
        /// Address.
        endpoint: String,
        /// Why.
        why: String,
    },
    /// The handshake failed.
    #[error(
        "etcd at {endpoint}: TLS failed: {why}: check the certificates of both sides and their authorities"
    )]
    Tls {
        /// Address.
        endpoint: String,
        /// Why.
        why: String,
    },
    /// There was no answer in time.
    #[error("etcd at {endpoint} did not answer within {} ms: check its machine and its disk", after.as_millis())]
    Silent {
        /// Address.
        endpoint: String,
        /// Time limit.
        after: Duration,
    },
    /// The connection ended before the answer.
    #[error(
        "etcd at {endpoint} closed the connection: {why}: it may be restarting, or expect https"
    )]
    Closed {
        /// Address.
        endpoint: String,
        /// Why.
        why: String,
    },
    /// This member has no leader.
    #[error("etcd at {endpoint} has no leader: check that most members run and reach each other")]
    NoLeader {
        /// Address.
        endpoint: String,
    },
    /// It cannot answer now.
    #[error("etcd at {endpoint} is not available: {said}")]
    Unavailable {
        /// Address.
        endpoint: String,
        /// Its words.
        said: String,
    },
    /// The database reached its quota.
    #[error(
        "etcd at {endpoint} has no space (NOSPACE): compact and defragment it, then `etcdctl alarm \
         disarm`"
    )]
    NoSpace {
        /// Address.
        endpoint: String,
    },
    /// User, password or permissions.
    #[error("etcd at {endpoint} denies access: {said}: check user, password and role")]
    Access {
        /// Address.
        endpoint: String,
        /// Its words.
        said: String,
    },
    /// A member of another cluster answered.
    #[error(
        "etcd at {endpoint} is of cluster {found:x}, not {expected:x}: check the endpoints, and whether \
         etcd was set up anew"
    )]
    OtherCluster {
        /// Address.
        endpoint: String,
        /// Cluster id of earlier answers.
        expected: u64,
        /// Cluster id of this answer.
        found: u64,
    },
    /// etcd forgot what it had confirmed. All operations fail with this until
    /// [`super::Client::forget_history`].
    #[error(
        "etcd at {endpoint} went back from revision {seen} to {found}: an old snapshot was restored; all \
         nodes must read anew"
    )]
    WentBack {
        /// Address.
        endpoint: String,
        /// Revision of an earlier answer.
        seen: i64,
        /// Revision of this answer.
        found: i64,
    },
    /// etcd has another history than before, though its revision is not smaller.
    #[error(
        "etcd at {endpoint} does not have the change of revision {revision} that it had before: an old \
         snapshot was restored; all nodes must read anew"
    )]
    Rewritten {
        /// Address.
        endpoint: String,
        /// Revision of the change.
        revision: i64,
    },
    /// The revision that was asked for is gone.
    #[error("etcd at {endpoint} has compacted the revision that was asked for: read anew")]
    Compacted {
        /// Address.
        endpoint: String,
    },
    /// The lease is over.
    #[error("etcd at {endpoint} has no such lease: it expired or was revoked")]
    LeaseNotFound {
        /// Address.
        endpoint: String,
    },
    /// It has no JSON gateway.
    #[error(
        "etcd at {endpoint} has no JSON gateway under /v3: use etcd 3.4 or later with --enable-grpc-gateway"
    )]
    NoGateway {
        /// Address.
        endpoint: String,
    },
    /// It refuses the request for another reason.
    #[error("etcd at {endpoint} refuses the request: {said} (code {code})")]
    Refused {
        /// Address.
        endpoint: String,
        /// gRPC's code.
        code: i64,
        /// Its words.
        said: String,
    },
    /// The answer is larger than a bound.
    #[error("etcd at {endpoint} sent an answer of more than {maximum} bytes")]
    AnswerTooLarge {
        /// Address.
        endpoint: String,
        /// Bound.
        maximum: usize,
    },
    /// The answer is not one of etcd.
    #[error("etcd at {endpoint} sent something else than an answer: {why}: check that it is etcd")]
    Malformed {
        /// Address.
        endpoint: String,
        /// What is wrong.
        why: String,
    },
    /// No address had an answer within the time of the operation.
    #[error("no etcd answered within {} ms: {}", after.as_millis(), each.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    NoneAnswered {
        /// Time limit of the operation.
        after: Duration,
        /// Last error of each address that was tried.
        each: Vec<Error>,
    },
    /// Too many operations for one transaction.
    #[error("a transaction has {0} compares or operations; etcd accepts {MAX_OPERATIONS}")]
    TooManyOperations(usize),
    /// Too many bytes for one transaction.
    #[error(
        "a transaction has {0} bytes of keys and values; the maximum is {MAX_TRANSACTION_BYTES}"
    )]
    TransactionTooLarge(usize),
    /// A transaction changes a key twice.
    #[error("a transaction changes the key {0:?} twice")]
    KeyTwice(String),
    /// A transaction without operations, or with an empty key.
    #[error("a transaction needs an operation, and each a key")]
    EmptyTransaction,
    /// More entries or bytes than a snapshot may have.
    #[error("there are more than {entries} entries or {bytes} bytes under {prefix:?}")]
    SnapshotTooLarge {
        /// What was read.
        prefix: String,
        /// Bound of entries.
        entries: usize,
        /// Bound of bytes.
        bytes: usize,
    },
    /// A lease of no or too long a time.
    #[error("a lease of {0} s: etcd accepts 1 s to a day here")]
    LeaseTime(i64),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
}

/// What to do after an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Another address may have an answer.
    Next,
    /// Proving the user again gives a new token.
    Authenticate,
    /// Nothing: every address would say the same.
    GiveUp,
}

/// Whether the request of a failed attempt may have been executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Doubt {
    /// It was not.
    None,
    /// It was, or it was not; it will not be executed from now on.
    Past,
    /// It was, or it was not, or it will be.
    Open,
}

impl Error {
    pub(super) fn remedy(&self) -> Remedy {
        match self {
            Error::Unreachable { .. }
            | Error::Tls { .. }
            | Error::Silent { .. }
            | Error::Closed { .. }
            | Error::NoLeader { .. }
            | Error::NoGateway { .. }
            | Error::Malformed { .. }
            | Error::Unavailable { .. } => Remedy::Next,
            Error::Access { said, .. } if is_old_token(said) => Remedy::Authenticate,
            _ => Remedy::GiveUp,
        }
    }
}

/// etcd restarted, or the token expired, or users and roles changed since.
fn is_old_token(said: &str) -> bool {
    said.contains("invalid auth token") || said.contains("auth store is old")
}

/// Translates etcd's refusal.
pub(super) fn refused(endpoint: &str, refusal: &Refusal) -> (Error, Doubt) {
    let (endpoint, said) = (endpoint.to_owned(), refusal.message.clone());
    let has = |words: &str| said.contains(words);
    let said = said.clone();
    match refusal.code {
        _ if has("no leader") => (Error::NoLeader { endpoint }, Doubt::None),
        // The write that reaches the quota is executed, and answered with this.
        _ if has("database space exceeded") => (Error::NoSpace { endpoint }, Doubt::Past),
        _ if has("has been compacted") => (Error::Compacted { endpoint }, Doubt::None),
        _ if has("requested lease not found") => (Error::LeaseNotFound { endpoint }, Doubt::None),
        _ if has("too many requests") => (Error::Unavailable { endpoint, said }, Doubt::None),
        _ if has("user name is empty")
            || has("authentication failed")
            || has("authentication is not enabled")
            || is_old_token(&said) =>
        {
            (Error::Access { endpoint, said }, Doubt::None)
        }
        CODE_PERMISSION | CODE_UNAUTHENTICATED => (Error::Access { endpoint, said }, Doubt::None),
        // etcd's gateway is itself a client, with a bound of its own.
        CODE_EXHAUSTED if has("larger than max") => {
            let maximum = GATEWAY_BYTES;
            (Error::AnswerTooLarge { endpoint, maximum }, Doubt::Past)
        }
        CODE_INVALID | CODE_NOT_FOUND | CODE_EXISTS | CODE_PRECONDITION | CODE_RANGE => {
            (Error::Refused { endpoint, code: refusal.code, said }, Doubt::None)
        }
        // Time-outs inside of etcd, a leader that changed, a member that stops.
        _ => (Error::Unavailable { endpoint, said }, Doubt::Open),
    }
}

/// Bound of the client in etcd's gateway, in bytes: gRPC's default.
const GATEWAY_BYTES: usize = 4 << 20;

const CODE_INVALID: i64 = 3;
const CODE_NOT_FOUND: i64 = 5;
const CODE_EXISTS: i64 = 6;
const CODE_PERMISSION: i64 = 7;
const CODE_EXHAUSTED: i64 = 8;
const CODE_PRECONDITION: i64 = 9;
const CODE_RANGE: i64 = 11;
const CODE_UNAUTHENTICATED: i64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_etcd_have_their_meaning() {
        // Words and codes of etcd 3.4.23.
        for (code, message, remedy, doubt, expected) in [
            (14, "etcdserver: no leader", Remedy::Next, Doubt::None, "has no leader"),
            (14, "etcdserver: request timed out", Remedy::Next, Doubt::Open, "is not available"),
            (14, "etcdserver: leader changed", Remedy::Next, Doubt::Open, "is not available"),
            (2, "etcdserver: server stopped", Remedy::Next, Doubt::Open, "is not available"),
            (8, "etcdserver: too many requests", Remedy::Next, Doubt::None, "too many requests"),
            (
                8,
                "etcdserver: mvcc: database space exceeded",
                Remedy::GiveUp,
                Doubt::Past,
                "NOSPACE",
            ),
            (7, "etcdserver: permission denied", Remedy::GiveUp, Doubt::None, "denies access"),
            (16, "etcdserver: invalid auth token", Remedy::Authenticate, Doubt::None, "denies"),
            (3, "etcdserver: user name is empty", Remedy::GiveUp, Doubt::None, "denies access"),
            (
                3,
                "etcdserver: authentication failed, invalid user ID or password",
                Remedy::GiveUp,
                Doubt::None,
                "check user, password",
            ),
            (
                9,
                "etcdserver: authentication is not enabled",
                Remedy::GiveUp,
                Doubt::None,
                "denies access",
            ),
            (
                5,
                "etcdserver: requested lease not found",
                Remedy::GiveUp,
                Doubt::None,
                "no such lease",
            ),
            (
                11,
                "etcdserver: mvcc: required revision has been compacted",
                Remedy::GiveUp,
                Doubt::None,
                "read anew",
            ),
            (
                8,
                "grpc: received message larger than max (5000000 vs. 4194304)",
                Remedy::GiveUp,
                Doubt::Past,
                "more than 4194304 bytes",
            ),
            (
                3,
                "etcdserver: key is not provided",
                Remedy::GiveUp,
                Doubt::None,
                "refuses the request",
            ),
        ] {
            let refusal = Refusal { code, message: message.into() };
            let (error, found) = refused("127.0.0.1:2379", &refusal);
            assert_eq!((error.remedy(), found), (remedy, doubt), "{message}");
            let text = error.to_string();
            assert!(
                text.starts_with("etcd at 127.0.0.1:2379") && text.contains(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn an_error_of_all_addresses_names_each() {
        let each = ["a:1", "b:2"].map(|endpoint| Error::NoLeader { endpoint: endpoint.into() });
        let error = Error::NoneAnswered { after: Duration::from_secs(1), each: each.into() };
        let text = error.to_string();
        assert!(
            text.contains("within 1000 ms: etcd at a:1 has") && text.contains("at b:2"),
            "{text}"
        );
    }
}
