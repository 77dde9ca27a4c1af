//! Warns of certificates that expire soon: the controller's, and those of connected switches.

use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bellrock_api::{Fingerprint, Network};
use bellrock_engine::TlsSettings;
use tracing::warn;

/// Time before the end of a certificate from which on it is warned of.
const AHEAD: Duration = Duration::from_secs(30 * 86_400);

/// Time between two checks.
const LOOK: Duration = Duration::from_secs(60);

/// Time after which a certificate is warned of again.
const AGAIN: Duration = Duration::from_secs(86_400);

/// Checks certificates from now on.
pub(crate) fn log_expiry(network: &Network, tls: TlsSettings) {
    network.spawn("log of certificates", log(network.clone(), tls));
}

async fn log(network: Network, tls: TlsSettings) {
    let mut warned = HashSet::<Option<Fingerprint>>::new();
    let mut forget_at = network.now() + AGAIN;
    loop {
        if network.now() >= forget_at {
            warned.clear();
            forget_at = network.now() + AGAIN;
        }
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if let Some(text) = tls.server.not_after().and_then(|end| warning(end, unix))
            && warned.insert(None)
        {
            warn!("the controller's certificate (tls.certificate) {text}");
        }
        for info in network.switches().iter() {
            let Some(identity) = &info.identity else { continue };
            if let Some(text) = warning(identity.not_after, unix)
                && warned.insert(Some(identity.fingerprint))
            {
                warn!(dpid = %info.dpid, "the switch's certificate {:?} {text}", identity.name);
            }
        }
        network.sleep(LOOK).await;
    }
}

/// What to say of a certificate with this end, in seconds since 1970. `None`: nothing.
fn warning(not_after: i64, unix: Duration) -> Option<String> {
    let end = Duration::from_secs(u64::try_from(not_after).unwrap_or(0));
    let Some(left) = end.checked_sub(unix) else {
        return Some("has expired; renew it, and run `bellrock reload`".to_owned());
    };
    let days = left.as_secs() / 86_400;
    (left <= AHEAD).then(|| format!("expires in {days} days; renew it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_warned_of_from_30_days_before_their_end() {
        let now = Duration::from_secs(1_800_000_000);
        let end = |days: i64| 1_800_000_000 + days * 86_400;
        assert_eq!(warning(end(31), now), None);
        assert_eq!(warning(end(30), now).as_deref(), Some("expires in 30 days; renew it"));
        assert_eq!(warning(end(0) + 60, now).as_deref(), Some("expires in 0 days; renew it"));
        assert!(warning(end(-1), now).is_some_and(|text| text.starts_with("has expired")));
    }
}
