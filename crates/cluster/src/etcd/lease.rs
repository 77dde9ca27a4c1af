//! Leases: keys that etcd removes unless their owner shows that it lives.

use std::time::Duration;

use hyper::body::Bytes;

use super::answers::Lease;
use super::client::Call;
use super::endpoint::Failure;
use super::limits::LEASE_SECONDS;
use super::{Client, Error, requests};

/// Number of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub i64);

impl Client {
    /// Makes a lease of this time, in whole seconds. Returns its number and the time that etcd gave
    /// it: etcd has a minimum, of about one and a half election time-outs.
    ///
    /// A lease expires up to half a second late, and each change of etcd's leader renews it.
    ///
    /// # Errors
    /// [`Error`]. A lease may exist all the same: it expires by itself.
    pub async fn grant_lease(&self, seconds: i64) -> Result<(LeaseId, Duration), Error> {
        if !LEASE_SECONDS.contains(&seconds) {
            return Err(Error::LeaseTime(seconds));
        }
        // A number of our own: the same request again does not make a second lease.
        let random = getrandom::u64().map_err(|error| Error::Random(error.to_string()))?;
        let id = LeaseId(i64::try_from(random >> 1).unwrap_or(i64::MAX).max(1));
        let body = requests::lease(id.0, Some(seconds));
        match self.call::<Lease>(call(requests::LEASE_GRANT, body, false)).await {
            Ok(granted) => Ok((id, time(granted.answer.ttl).unwrap_or_default())),
            // It is the lease of an earlier attempt, unless 63 random bits were the same.
            Err(Failure { error: Error::Refused { said, .. }, .. })
                if said.contains("lease already exists") =>
            {
                let left = self.lease_time_left(id).await?;
                Ok((id, left.unwrap_or_default()))
            }
            Err(failure) => Err(failure.error),
        }
    }

    /// Shows that the owner of a lease lives. Returns the time until it expires. `None`: it is
    /// over, and etcd has removed its keys.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn keep_lease_alive(&self, id: LeaseId) -> Result<Option<Duration>, Error> {
        let body = requests::lease(id.0, None);
        self.time_of(call(requests::LEASE_KEEPALIVE, body, true)).await
    }

    /// Reads the time until a lease expires. `None`: it is over.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn lease_time_left(&self, id: LeaseId) -> Result<Option<Duration>, Error> {
        let body = requests::lease(id.0, None);
        self.time_of(call(requests::LEASE_TIME_TO_LIVE, body, false)).await
    }

    /// Ends a lease; etcd removes its keys. A lease that is over is no error.
    ///
    /// # Errors
    /// [`Error`]. The lease may be over all the same.
    pub async fn revoke_lease(&self, id: LeaseId) -> Result<(), Error> {
        let body = requests::lease(id.0, None);
        match self.call::<Lease>(call(requests::LEASE_REVOKE, body, false)).await {
            Ok(_) | Err(Failure { error: Error::LeaseNotFound { .. }, .. }) => Ok(()),
            Err(failure) => Err(failure.error),
        }
    }

    async fn time_of(&self, call: Call) -> Result<Option<Duration>, Error> {
        match self.call::<Lease>(call).await {
            Ok(lease) => Ok(time(lease.answer.ttl)),
            Err(Failure { error: Error::LeaseNotFound { .. }, .. }) => Ok(None),
            Err(failure) => Err(failure.error),
        }
    }
}

fn call(path: &'static str, body: Bytes, streamed: bool) -> Call {
    Call { path, body, repeatable: true, linearizable: false, streamed }
}

fn time(seconds: i64) -> Option<Duration> {
    u64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs)
}
