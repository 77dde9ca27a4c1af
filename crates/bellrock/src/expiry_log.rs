//! Warns of certificates that expire soon: the controller's, and those of connected switches; and
//! of lists of revoked certificates that should be replaced. Each is an event, which the log has
//! too.

use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bellrock_api::runtime::EventPublisher as _;
use bellrock_api::{Event, Fingerprint, Network};
#[cfg(feature = "cluster")]
use bellrock_cluster::link::LinkTls;
use bellrock_engine::TlsServer;

/// Time before the end of a certificate from which on it is warned of.
const AHEAD: Duration = Duration::from_secs(30 * DAY_S);

/// The same for a list of revoked certificates. Many authorities make a new one each week.
const AHEAD_OF_LISTS: Duration = Duration::from_secs(2 * DAY_S);

/// Time between two checks.
const LOOK: Duration = Duration::from_secs(60);

/// Time after which a certificate is warned of again.
const AGAIN: Duration = Duration::from_secs(DAY_S);

/// Maximum number of warnings of one check. The next check goes on.
const MAX_WARNINGS: usize = 100;

const DAY_S: u64 = 86_400;

/// A file that ends, by its setting, and its end in seconds since 1970.
type Ends = Vec<(&'static str, Option<i64>)>;

/// What the controller shows to others, and whom it trusts: towards switches, and towards other
/// nodes.
#[derive(Clone, Default)]
pub(crate) struct OwnFiles {
    pub(crate) switches: Option<TlsServer>,
    #[cfg(feature = "cluster")]
    pub(crate) nodes: Option<LinkTls>,
}

impl OwnFiles {
    fn ends(&self) -> Ends {
        let mut ends = Vec::new();
        if let Some(tls) = &self.switches {
            ends.push(("tls.certificate", tls.not_after()));
            ends.push(("tls.crl", tls.revocations_end()));
        }
        #[cfg(feature = "cluster")]
        if let Some(tls) = &self.nodes {
            ends.push(("cluster.tls.certificate", tls.not_after()));
            ends.push(("cluster.tls.crl", tls.revocations_end()));
        }
        ends
    }
}

/// Checks certificates from now on.
pub(crate) fn log_expiry(network: &Network, files: OwnFiles) {
    if files.ends().is_empty() {
        return;
    }
    network.spawn("log of certificates", log(network.clone(), files));
}

/// What was warned of.
#[derive(PartialEq, Eq, Hash)]
enum Warned {
    File(&'static str),
    Switch(Fingerprint),
}

async fn log(network: Network, files: OwnFiles) {
    let mut warned = HashSet::<Warned>::new();
    let mut forget_at = network.now() + AGAIN;
    loop {
        if network.now() >= forget_at {
            warned.clear();
            forget_at = network.now() + AGAIN;
        }
        for event in due(&network, &files.ends(), &mut warned) {
            network.events().publish(network.now(), event);
        }
        network.sleep(LOOK).await;
    }
}

/// What to warn of now, and was not yet.
fn due(network: &Network, own: &Ends, warned: &mut HashSet<Warned>) -> Vec<Event> {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut events: Vec<Event> = Vec::new();
    for &(setting, end) in own {
        let ahead = if setting.ends_with(".crl") { AHEAD_OF_LISTS } else { AHEAD };
        let Some(Expiry { days }) = end.and_then(|end| Expiry::of(end, unix, ahead)) else {
            continue;
        };
        if warned.insert(Warned::File(setting)) {
            events.push(Event::CertificateExpires { dpid: None, name: setting.into(), days });
        }
    }
    let switches = network.switches();
    let of_switches = switches.iter().filter_map(|info| {
        let identity = info.identity.as_ref()?;
        let Expiry { days } = Expiry::of(identity.not_after, unix, AHEAD)?;
        let is_new = warned.insert(Warned::Switch(identity.fingerprint));
        let (dpid, name) = (Some(info.dpid), identity.name.clone());
        is_new.then_some(Event::CertificateExpires { dpid, name, days })
    });
    events.into_iter().chain(of_switches).take(MAX_WARNINGS).collect()
}

/// A certificate that expires soon: whole days until then, or `None` if it has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Expiry {
    days: Option<u64>,
}

impl Expiry {
    /// `not_after`: the end of the certificate, in seconds since 1970. `None`: it is not within
    /// `ahead`.
    fn of(not_after: i64, unix: Duration, ahead: Duration) -> Option<Self> {
        let end = Duration::from_secs(u64::try_from(not_after).unwrap_or(0));
        let Some(left) = end.checked_sub(unix) else { return Some(Expiry { days: None }) };
        (left <= ahead).then_some(Expiry { days: Some(left.as_secs() / DAY_S) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_warned_of_from_30_days_before_their_end() {
        let now = Duration::from_secs(1_800_000_000);
        let end = |days: i64| 1_800_000_000 + days * 86_400;
        let days = |end| Expiry::of(end, now, AHEAD).map(|expiry| expiry.days);
        assert_eq!(days(end(31)), None);
        assert_eq!(days(end(30)), Some(Some(30)));
        assert_eq!(days(end(0) + 60), Some(Some(0)));
        assert_eq!(days(end(-1)), Some(None));
        assert_eq!(days(i64::MIN), Some(None));
    }

    #[test]
    fn a_warning_names_the_certificate_and_what_to_do() {
        let text = |dpid: Option<bellrock_api::Dpid>, name: &str, days| {
            Event::CertificateExpires { dpid, name: name.into(), days }.to_string()
        };
        assert_eq!(
            text(Some(bellrock_api::Dpid(0xa1)), "access-1", Some(3)),
            "the certificate \"access-1\" of switch 00000000000000a1 expires in 3 days; renew it"
        );
        assert_eq!(
            text(None, "tls.certificate", None),
            "the controller's certificate (tls.certificate) has expired; renew it, and run \
             `bellrock reload`"
        );
        assert_eq!(
            text(None, "cluster.tls.crl", Some(1)),
            "the list of revoked certificates (cluster.tls.crl) is to be replaced within 1 day"
        );
        assert_eq!(
            text(None, "tls.crl", None),
            "the list of revoked certificates (tls.crl) should have been replaced: what was revoked since \
             is accepted; replace it, and run `bellrock reload`"
        );
    }

    #[test]
    fn a_list_of_revoked_certificates_is_warned_of_two_days_before_its_end() {
        let network = bellrock_api::runtime::EmptyNetwork::network();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
        let days = |days: i64| Some(now + days * 86_400 + 60);
        let mut warned = HashSet::new();
        let own = vec![("tls.certificate", days(29)), ("tls.crl", days(3)), ("x.crl", days(1))];
        let named = |events: Vec<Event>| -> Vec<String> {
            let name = |event| match event {
                Event::CertificateExpires { name, days, .. } => format!("{name} {days:?}"),
                other => other.to_string(),
            };
            events.into_iter().map(name).collect()
        };
        let first = named(due(&network, &own, &mut warned));
        assert_eq!(first, ["tls.certificate Some(29)", "x.crl Some(1)"]);
        assert_eq!(due(&network, &own, &mut warned), [], "once a day");
        assert_eq!(
            named(due(&network, &vec![("tls.crl", days(-3))], &mut warned)),
            ["tls.crl None"]
        );
    }
}
