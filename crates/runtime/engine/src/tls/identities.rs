//! Which certificate speaks for which datapath ids.
//!
//! A certificate speaks for the datapath ids that it names, else for those that the configuration
//! gives it. One that has neither is pinned, by its public key, to the datapath ids that it speaks
//! for first (trust on first use, as SSH does with host keys). A datapath id that has a certificate
//! is refused to all others, and to plain connections.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellrock_api::{Dpid, Fingerprint, SwitchIdentity};
use bellrock_worker::{Admission, AdmissionError};

use super::TlsServer;

/// Maximum number of datapath ids that are pinned to certificates.
pub const MAX_PINS: usize = 65_536;

/// Maximum number of datapath ids that are pinned to one certificate: a switch with a stolen key,
/// or a wrong one, cannot take all that are free. One Open vSwitch has one certificate for all
/// bridges.
pub const MAX_PINS_PER_KEY: usize = 256;

/// What happens with a certificate that names no datapath id, and has none in the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnnamedIdentity {
    /// It is pinned to the datapath ids that it speaks for first.
    #[default]
    Pin,
    /// It is refused.
    Strict,
    /// It may speak for any datapath id that no other certificate has.
    Any,
}

/// A datapath id's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// Fingerprint of its public key.
    pub key: Fingerprint,
    /// Its common name, for people.
    pub name: Box<str>,
}

/// The datapath ids that have a certificate.
pub type Pins = BTreeMap<Dpid, Pin>;

/// The datapath ids of certificates, by their common name or fingerprint (of the certificate, or of
/// its key).
pub type IdentityMap = BTreeMap<String, Vec<Dpid>>;

/// Reports that pins have changed, so that they are stored. It is called on a worker's thread, so
/// it must not block.
pub type PinsChanged = Arc<dyn Fn() + Send + Sync>;

/// The rules of certificates and datapath ids. All clones share them.
#[derive(Clone)]
pub struct Identities {
    server: TlsServer,
    state: Arc<Mutex<Rules>>,
    changed: Option<PinsChanged>,
}

struct Rules {
    unnamed: UnnamedIdentity,
    map: IdentityMap,
    pins: Pins,
}

impl fmt::Debug for Identities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identities").field("pins", &self.lock().pins.len()).finish_non_exhaustive()
    }
}

impl Identities {
    /// Makes the rules. `pins` are of earlier runs. `changed` is called after each change.
    #[must_use]
    pub fn new(
        server: &TlsServer,
        unnamed: UnnamedIdentity,
        map: IdentityMap,
        pins: Pins,
        changed: Option<PinsChanged>,
    ) -> Self {
        let state = Arc::new(Mutex::new(Rules { unnamed, map, pins }));
        Identities { server: server.clone(), state, changed }
    }

    /// Replaces the rules for connections from now on. Pins stay.
    pub fn replace(&self, unnamed: UnnamedIdentity, map: IdentityMap) {
        let mut rules = self.lock();
        (rules.unnamed, rules.map) = (unnamed, map);
    }

    /// The datapath ids that have a certificate now.
    #[must_use]
    pub fn pins(&self) -> Pins {
        self.lock().pins.clone()
    }

    /// Frees a datapath id from its certificate: the next one may speak for it. Returns the
    /// certificate that it had.
    pub fn forget(&self, dpid: Dpid) -> Option<Pin> {
        let pin = self.lock().pins.remove(&dpid);
        if pin.is_some() {
            self.report_change();
        }
        pin
    }

    fn report_change(&self) {
        if let Some(changed) = &self.changed {
            changed();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Rules> {
        // Each change is one assignment or one call of a map.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admission for Identities {
    fn check(&self, dpid: Dpid, identity: Option<&SwitchIdentity>) -> Result<(), AdmissionError> {
        if let Some(identity) = identity
            && identity.epoch != self.server.epoch()
            && let Err(why) = self.server.check_again(identity)
        {
            return refuse(why);
        }
        self.lock().check(dpid, identity)
    }

    fn admit(&self, dpid: Dpid, identity: Option<&SwitchIdentity>) -> Result<(), AdmissionError> {
        let mut rules = self.lock();
        rules.check(dpid, identity)?;
        if let Some(identity) = identity
            && rules.pin(dpid, identity)
        {
            drop(rules);
            self.report_change();
        }
        Ok(())
    }
}

impl Rules {
    fn check(&self, dpid: Dpid, identity: Option<&SwitchIdentity>) -> Result<(), AdmissionError> {
        let Some(identity) = identity else { return self.check_plain(dpid) };
        let named = self.named(identity);
        if !named.is_empty() {
            return match named.contains(&dpid) {
                true => Ok(()),
                false => refuse(format!("its {identity} is for {}", listed(named))),
            };
        }
        if let Some(owner) = self.mapped(dpid) {
            return refuse(format!(
                "the configuration gives it to {owner:?}, not to its {identity}"
            ));
        }
        match (self.unnamed, self.pins.get(&dpid)) {
            (UnnamedIdentity::Strict, _) => refuse(format!(
                "its {identity} names no datapath id, and `tls.identities` has none for it \
                 (`tls.identity` is strict)"
            )),
            (_, Some(pin)) if pin.key != identity.key => refuse(format!(
                "another certificate has it: {:?}, key {}, not its {identity}; if the switch has a \
                 new key: bellrock identities forget {dpid}",
                pin.name, pin.key
            )),
            (_, Some(_)) | (UnnamedIdentity::Any, None) => Ok(()),
            (UnnamedIdentity::Pin, None) => self.check_pins(identity),
        }
    }

    fn check_plain(&self, dpid: Dpid) -> Result<(), AdmissionError> {
        let owner = self.mapped(dpid).or_else(|| self.pins.get(&dpid).map(|pin| &*pin.name));
        match owner {
            None => Ok(()),
            Some(owner) => refuse(format!(
                "the connection is plain, and {owner:?} speaks for it by TLS; if the switch is plain \
                 now: bellrock identities forget {dpid}"
            )),
        }
    }

    /// Whether there is room for one more pin.
    fn check_pins(&self, identity: &SwitchIdentity) -> Result<(), AdmissionError> {
        let of_key = self.pins.values().filter(|pin| pin.key == identity.key).count();
        if of_key >= MAX_PINS_PER_KEY {
            return refuse(format!(
                "its {identity} has {MAX_PINS_PER_KEY} datapath ids, the maximum; give it more by \
                 `tls.identities`"
            ));
        }
        match self.pins.len() >= MAX_PINS {
            true => refuse(format!("{MAX_PINS} datapath ids are pinned, the maximum")),
            false => Ok(()),
        }
    }

    /// Notes whose certificate speaks for a datapath id. Returns whether that is new.
    fn pin(&mut self, dpid: Dpid, identity: &SwitchIdentity) -> bool {
        let is_named = !self.named(identity).is_empty();
        if self.unnamed == UnnamedIdentity::Any && !is_named {
            return false;
        }
        let is_known = self.pins.get(&dpid).is_some_and(|pin| pin.key == identity.key);
        if is_known || self.pins.len() >= MAX_PINS {
            return false;
        }
        let pin = Pin { key: identity.key, name: identity.name.clone() };
        self.pins.insert(dpid, pin);
        true
    }

    /// The datapath ids that a certificate names, or else those of the configuration.
    fn named<'a>(&'a self, identity: &'a SwitchIdentity) -> &'a [Dpid] {
        if !identity.dpids.is_empty() {
            return &identity.dpids;
        }
        let of_map = |name: &str| self.map.get(name).map(Vec::as_slice);
        // Every authority can sign a second certificate of a name, but none of a key.
        of_map(&identity.fingerprint.to_string())
            .or_else(|| of_map(&identity.key.to_string()))
            .or_else(|| of_map(&identity.name))
            .unwrap_or_default()
    }

    /// The certificate to which the configuration gives a datapath id.
    fn mapped(&self, dpid: Dpid) -> Option<&str> {
        self.map.iter().find(|(_, dpids)| dpids.contains(&dpid)).map(|(name, _)| &**name)
    }
}

fn refuse(why: String) -> Result<(), AdmissionError> {
    Err(AdmissionError(why.into()))
}

/// Maximum number of datapath ids that a refusal lists.
const MAX_LISTED: usize = 4;

fn listed(dpids: &[Dpid]) -> String {
    let mut texts: Vec<String> = dpids.iter().take(MAX_LISTED).map(Dpid::to_string).collect();
    if dpids.len() > MAX_LISTED {
        texts.push(format!("{} more", dpids.len() - MAX_LISTED));
    }
    texts.join(", ")
}
