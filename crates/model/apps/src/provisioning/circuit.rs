//! Circuits, and their text form.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use bellrock_api::{MacAddr, SwitchPort};

/// Maximum number of endpoints of a circuit.
pub const MAX_ENDPOINTS: usize = 64;

/// An end of a circuit. Written as `SWITCH:PORT`, `SWITCH:PORT:VLAN`, or a host's Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    /// A port: its untagged frames, or those of a VLAN.
    Port(SwitchPort, Option<u16>),
    /// A host, at any port.
    Host(MacAddr),
}

/// A circuit. Written as its name and its endpoints: `blue a1:1 a2:3:100`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circuit {
    /// Its name.
    pub name: String,
    /// Its endpoints, at least two.
    pub endpoints: Vec<Endpoint>,
}

/// The text is not a circuit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoCircuit {
    /// A part of it is not an endpoint.
    #[error(
        "{0:?} is not an endpoint; give SWITCH:PORT or SWITCH:PORT:VLAN (datapath id or configured name, VLAN 1 \
         to 4094), or a host (Ethernet address or configured name), such as a1:4, a1:4:100 or 00:1b:21:3c:9d:f8"
    )]
    NoEndpoint(String),
    /// It has too few or too many endpoints.
    #[error("the circuit {name:?} needs 2 to {MAX_ENDPOINTS} endpoints, but has {have}")]
    Endpoints {
        /// Its name.
        name: String,
        /// Number of its endpoints.
        have: usize,
    },
}

/// Circuits that are incompatible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// Two have the same name.
    #[error("two circuits have the name {0:?}; give each its own name")]
    Name(String),
    /// An endpoint is used twice.
    #[error(
        "{endpoint} is an endpoint of {first:?} and of {second:?}; use each endpoint only once"
    )]
    Endpoint {
        /// The endpoint.
        endpoint: Endpoint,
        /// A circuit that has it.
        first: String,
        /// The other circuit; the same if it has the endpoint twice.
        second: String,
    },
    /// No circuit can have so many VLANs.
    #[error("`vlans_per_circuit` is {0}; it must be 8, 4 or 2")]
    VlansPerCircuit(u16),
    /// There are too few VLANs for the circuits.
    #[error(
        "{circuits} circuits need {needed} VLANs, but `vlans` has only {available}; make the range longer, \
         or `vlans_per_circuit` smaller"
    )]
    Vlans {
        /// Number of circuits.
        circuits: usize,
        /// Number of VLANs that they need.
        needed: usize,
        /// Number of available VLANs.
        available: usize,
    },
}

impl FromStr for Endpoint {
    type Err = NoCircuit;

    fn from_str(text: &str) -> Result<Self, NoCircuit> {
        let error = || NoCircuit::NoEndpoint(text.to_owned());
        if let Ok(mac) = text.parse::<MacAddr>() {
            return if mac.is_station() { Ok(Endpoint::Host(mac)) } else { Err(error()) };
        }
        if let Ok(at) = text.parse() {
            return Ok(Endpoint::Port(at, None));
        }
        let (at, vlan) = text.rsplit_once(':').ok_or_else(error)?;
        match (at.parse(), vlan.parse()) {
            (Ok(at), Ok(vlan)) if (1..=4094).contains(&vlan) => Ok(Endpoint::Port(at, Some(vlan))),
            _ => Err(error()),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Port(at, None) => at.fmt(f),
            Endpoint::Port(at, Some(vlan)) => write!(f, "{at}:{vlan}"),
            Endpoint::Host(mac) => mac.fmt(f),
        }
    }
}

impl FromStr for Circuit {
    type Err = NoCircuit;

    fn from_str(text: &str) -> Result<Self, NoCircuit> {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default().to_owned();
        let endpoints = words.map(str::parse).collect::<Result<Vec<_>, _>>()?;
        match endpoints.len() {
            2..=MAX_ENDPOINTS => Ok(Circuit { name, endpoints }),
            count => Err(NoCircuit::Endpoints { name, have: count }),
        }
    }
}

impl fmt::Display for Circuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.endpoints.iter().try_for_each(|endpoint| write!(f, " {endpoint}"))
    }
}

/// Returns the conflicts that can be found without the network: each with the index of the circuit
/// that conflicts with an earlier one.
#[must_use]
pub fn conflicts(circuits: &[Circuit]) -> Vec<(usize, Conflict)> {
    let mut names = BTreeSet::new();
    let mut owners: BTreeMap<Endpoint, &String> = BTreeMap::new();
    let mut conflicts = Vec::new();
    for (index, circuit) in circuits.iter().enumerate() {
        if !names.insert(&circuit.name) {
            conflicts.push((index, Conflict::Name(circuit.name.clone())));
        }
        for endpoint in &circuit.endpoints {
            if let Some(first) = owners.get(endpoint) {
                let (first, second) = ((*first).clone(), circuit.name.clone());
                let endpoint = *endpoint;
                conflicts.push((index, Conflict::Endpoint { endpoint, first, second }));
            } else {
                owners.insert(*endpoint, &circuit.name);
            }
        }
    }
    conflicts
}

#[cfg(test)]
mod tests {
    use super::super::ProvisioningSettings;
    use super::*;

    #[test]
    fn circuits_read_and_print() {
        let text = "blue 00000000000000a1:4 00000000000000a2:3:100 02:00:00:00:00:01";
        assert_eq!(text.parse::<Circuit>().unwrap().to_string(), text);
        for (text, said) in [
            ("", "needs 2 to 64 endpoints, but has 0"),
            ("blue a1:1", "but has 1"),
            ("blue a1:1 a2", "\"a2\" is not an endpoint; give SWITCH:PORT"),
            ("blue a1:1 a2:1:4095", "is not an endpoint"),
            ("blue a1:1 a2:1:1:1", "is not an endpoint"),
            ("blue a1:1 ff:ff:ff:ff:ff:ff", "is not an endpoint"),
        ] {
            let error = text.parse::<Circuit>().unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn conflicting_circuits_are_named() {
        let told = |texts: &[&str]| {
            let circuits: Vec<Circuit> = texts.iter().map(|text| text.parse().unwrap()).collect();
            let told = |(index, conflict): (usize, Conflict)| (index, conflict.to_string());
            conflicts(&circuits).into_iter().map(told).collect::<Vec<_>>()
        };
        assert_eq!(told(&["blue a1:1 a2:1", "red a1:1:7 a2:1:7"]), []);
        let all = told(&["blue a1:1 a2:1", "red a1:1 a4:1", "blue a3:1 a3:1"]);
        let [(1, twice), (2, name), (2, itself)] = &all[..] else { panic!("{all:?}") };
        assert!(twice.contains("is an endpoint of \"blue\" and of \"red\""), "{twice}");
        assert!(name.contains("two circuits"), "{name}");
        assert!(itself.contains("is an endpoint of \"blue\" and of \"blue\""), "{itself}");
    }

    #[test]
    fn circuits_have_enough_vlans() {
        let mut settings = ProvisioningSettings { vlans: 2000..=2015, ..Default::default() };
        settings.circuits = ["a a1:1 a2:1", "b a1:2 a2:2"].map(|text| text.parse().unwrap()).into();
        assert_eq!(settings.check(), Ok(()));
        settings.circuits.push("c a1:3 a2:3".parse().unwrap());
        let wrong = settings.check().unwrap_err().to_string();
        assert!(wrong.contains("need 24 VLANs, but `vlans` has only 16"), "{wrong}");
        settings.vlans_per_circuit = 4;
        assert_eq!(settings.check(), Ok(()));
        settings.vlans_per_circuit = 3;
        assert_eq!(settings.check(), Err(Conflict::VlansPerCircuit(3)));
    }
}
