//! Warns of certificates that expire soon: the controller's, and those of connected switches. Each is an
//! event, which the log has too.

use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bellrock_api::runtime::EventPublisher as _;
use bellrock_api::{Event, Fingerprint, Network};
use bellrock_engine::TlsSettings;

/// Time before the end of a certificate from which on it is warned of.
const AHEAD: Duration = Duration::from_secs(30 * DAY_S);

/// Time between two checks.
const LOOK: Duration = Duration::from_secs(60);

/// Time after which a certificate is warned of again.
const AGAIN: Duration = Duration::from_secs(DAY_S);

/// Maximum number of warnings of one check. The next check goes on.
const MAX_WARNINGS: usize = 100;

const DAY_S: u64 = 86_400;

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
        for event in due(&network, &tls, &mut warned) {
            network.events().publish(network.now(), event);
        }
        network.sleep(LOOK).await;
    }
}

/// What to warn of now, and was not yet.
fn due(
    network: &Network,
    tls: &TlsSettings,
    warned: &mut HashSet<Option<Fingerprint>>,
) -> Vec<Event> {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let own = tls.server.not_after().and_then(|end| Expiry::of(end, unix));
    let own = own.filter(|_| warned.insert(None));
    let own =
        own.map(|Expiry { days }| Event::CertificateExpires { dpid: None, name: "".into(), days });
    let switches = network.switches();
    let of_switches = switches.iter().filter_map(|info| {
        let identity = info.identity.as_ref()?;
        let Expiry { days } = Expiry::of(identity.not_after, unix)?;
        let is_new = warned.insert(Some(identity.fingerprint));
        let (dpid, name) = (Some(info.dpid), identity.name.clone());
        is_new.then_some(Event::CertificateExpires { dpid, name, days })
    });
    own.into_iter().chain(of_switches).take(MAX_WARNINGS).collect()
}

/// A certificate that expires soon: whole days until then, or `None` if it has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Expiry {
    days: Option<u64>,
}

impl Expiry {
    /// `not_after`: the end of the certificate, in seconds since 1970. `None`: it is not soon.
    fn of(not_after: i64, unix: Duration) -> Option<Self> {
        let end = Duration::from_secs(u64::try_from(not_after).unwrap_or(0));
        let Some(left) = end.checked_sub(unix) else { return Some(Expiry { days: None }) };
        (left <= AHEAD).then_some(Expiry { days: Some(left.as_secs() / DAY_S) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_warned_of_from_30_days_before_their_end() {
        let now = Duration::from_secs(1_800_000_000);
        let end = |days: i64| 1_800_000_000 + days * 86_400;
        let days = |end| Expiry::of(end, now).map(|expiry| expiry.days);
        assert_eq!(days(end(31)), None);
        assert_eq!(days(end(30)), Some(Some(30)));
        assert_eq!(days(end(0) + 60), Some(Some(0)));
        assert_eq!(days(end(-1)), Some(None));
        assert_eq!(days(i64::MIN), Some(None));
    }

    #[test]
    fn a_warning_names_the_certificate_and_what_to_do() {
        let text = |dpid, days| {
            Event::CertificateExpires { dpid, name: "access-1".into(), days }.to_string()
        };
        assert_eq!(
            text(Some(bellrock_api::Dpid(0xa1)), Some(3)),
            "the certificate \"access-1\" of switch 00000000000000a1 expires in 3 days; renew it"
        );
        assert_eq!(
            text(None, None),
            "the controller's certificate (tls.certificate) has expired; renew it, and run \
             `bellrock reload`"
        );
    }
}
