//! Circuits as operators write them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use bellrock_api::{MacAddr, SwitchPort};

/// Most endpoints of a circuit.
pub const MAX_ENDPOINTS: usize = 64;

/// Where a circuit begins or ends. Written as `SWITCH:PORT`, `SWITCH:PORT:VLAN`, or a host's Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    /// A port: its frames without a tag, or those of a VLAN.
    Port(SwitchPort, Option<u16>),
    /// A host, wherever it is.
    Host(MacAddr),
}

/// A circuit. Written as its name and its endpoints: `blue a1:1 a2:3:100`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circuit {
    /// Its name.
    pub name: String,
    /// Its endpoints, two or more.
    pub endpoints: Vec<Endpoint>,
}

/// The text is no circuit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoCircuit {
    /// A part of it is no endpoint.
    #[error(
        "{0:?} is no endpoint; give SWITCH:PORT (a1:4, port 4 of the switch whose datapath id is a1 in \
         hexadecimal), SWITCH:PORT:VLAN (a1:4:100; VLANs are 1 to 4094), or a host's Ethernet address"
    )]
    NoEndpoint(String),
    /// It has too few or too many.
    #[error(
        "the circuit {name:?} needs 2 to {MAX_ENDPOINTS} endpoints behind its name, and has {have}"
    )]
    Endpoints {
        /// Its name.
        name: String,
        /// How many it has.
        have: usize,
    },
}

/// Circuits that cannot be together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// Two have the same name.
    #[error("there are two circuits {0:?}; give each a name of its own")]
    Name(String),
    /// An endpoint stands in two places.
    #[error(
        "{endpoint} is an endpoint of {first:?} and of {second:?}; it can be in one place only"
    )]
    Endpoint {
        /// The endpoint.
        endpoint: Endpoint,
        /// A circuit that has it.
        first: String,
        /// The other; the same if it has it twice.
        second: String,
    },
    /// There are more than VLANs for them.
    #[error(
        "the circuits (there are {circuits}) need {needed} VLANs, and `vlans` has {have}; make the range longer"
    )]
    Vlans {
        /// How many circuits there are.
        circuits: usize,
        /// How many VLANs they need.
        needed: usize,
        /// How many there are.
        have: usize,
    },
}

impl FromStr for Endpoint {
    type Err = NoCircuit;

    fn from_str(text: &str) -> Result<Self, NoCircuit> {
        let wrong = || NoCircuit::NoEndpoint(text.to_owned());
        if let Ok(mac) = text.parse::<MacAddr>() {
            return if mac.is_station() { Ok(Endpoint::Host(mac)) } else { Err(wrong()) };
        }
        if let Ok(at) = text.parse() {
            return Ok(Endpoint::Port(at, None));
        }
        let (at, vlan) = text.rsplit_once(':').ok_or_else(wrong)?;
        match (at.parse(), vlan.parse()) {
            (Ok(at), Ok(vlan)) if (1..=4094).contains(&vlan) => Ok(Endpoint::Port(at, Some(vlan))),
            _ => Err(wrong()),
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
            have => Err(NoCircuit::Endpoints { name, have }),
        }
    }
}

impl fmt::Display for Circuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.endpoints.iter().try_for_each(|endpoint| write!(f, " {endpoint}"))
    }
}

/// Whether these circuits can be together, as far as that can be known before the network is.
pub(super) fn check(circuits: &[Circuit], needed: usize, have: usize) -> Result<(), Conflict> {
    let mut of = BTreeMap::new();
    for (index, circuit) in circuits.iter().enumerate() {
        if circuits.iter().take(index).any(|other| other.name == circuit.name) {
            return Err(Conflict::Name(circuit.name.clone()));
        }
        for endpoint in &circuit.endpoints {
            if let Some(first) = of.insert(*endpoint, &circuit.name) {
                let (first, second) = (first.clone(), circuit.name.clone());
                return Err(Conflict::Endpoint { endpoint: *endpoint, first, second });
            }
        }
    }
    if needed > have {
        return Err(Conflict::Vlans { circuits: circuits.len(), needed, have });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circuits_read_and_print() {
        let text = "blue 00000000000000a1:4 00000000000000a2:3:100 02:00:00:00:00:01";
        assert_eq!(text.parse::<Circuit>().unwrap().to_string(), text);
        for (text, said) in [
            ("", "needs 2 to 64 endpoints behind its name, and has 0"),
            ("blue a1:1", "and has 1"),
            ("blue a1:1 a2", "\"a2\" is no endpoint; give SWITCH:PORT"),
            ("blue a1:1 a2:1:4095", "is no endpoint"),
            ("blue a1:1 a2:1:1:1", "is no endpoint"),
            ("blue a1:1 ff:ff:ff:ff:ff:ff", "is no endpoint"),
        ] {
            let error = text.parse::<Circuit>().unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_together_is_named() {
        let check = |texts: &[&str]| {
            let circuits: Vec<Circuit> = texts.iter().map(|text| text.parse().unwrap()).collect();
            check(&circuits, circuits.len(), 2).map_err(|error| error.to_string())
        };
        assert_eq!(check(&["blue a1:1 a2:1", "red a1:1:7 a2:1:7"]), Ok(()));
        assert!(check(&["blue a1:1 a2:1", "blue a3:1 a4:1"]).unwrap_err().contains("two circuits"));
        let twice = check(&["blue a1:1 a2:1", "red a1:1 a4:1"]).unwrap_err();
        assert!(twice.contains("is an endpoint of \"blue\" and of \"red\""), "{twice}");
        let many = check(&["a a1:1 a2:1", "b a1:2 a2:2", "c a1:3 a2:3"]).unwrap_err();
        assert!(many.contains("`vlans` has 2"), "{many}");
    }
}
