//! Text form of hosts and rates.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use bellrock_api::{Host, Hosts, MacAddr, SwitchPort};

/// Name of a host, as operators write it: an address, followed by `@VLAN` if several VLANs use it,
/// or the port where it is the only host.
///
/// ```
/// use bellrock_apps::bandwidth::HostName;
///
/// for text in ["10.0.0.7", "2001:db8::1@30", "00:1b:21:3c:9d:f8", "00000000000000a1:4"] {
///     assert_eq!(text.parse::<HostName>()?.to_string(), text);
/// }
/// # Ok::<(), bellrock_apps::bandwidth::NoHostName>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostName {
    /// The host with this Ethernet address, and optionally in this VLAN.
    Mac(MacAddr, Option<u16>),
    /// The host with this IP address, and optionally in this VLAN.
    Ip(IpAddr, Option<u16>),
    /// The host at this port.
    At(SwitchPort),
}

/// The text names no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no host; give an Ethernet or IP address, with @VLAN (1 to 4094) if needed, or SWITCH:PORT \
     with the datapath id in hexadecimal, such as 00:1b:21:3c:9d:f8, 10.0.0.7@30 or a1:4"
)]
pub struct NoHostName(pub String);

/// Reason why a name does not match exactly one host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOneHost {
    /// No host has it.
    #[error(
        "no host {0} has been seen; a host is seen when it sends a packet, and `bellrock hosts` lists all"
    )]
    Unknown(HostName),
    /// Several hosts have it.
    #[error("{name} may be any of {}; name one of these", hosts.join(", "))]
    Ambiguous {
        /// The name.
        name: HostName,
        /// Their Ethernet addresses with VLANs, as unambiguous names.
        hosts: Vec<String>,
    },
}

impl HostName {
    /// Returns the address and the VLAN to ask for, if the name is an IPv4 address.
    pub(super) fn ipv4(self) -> Option<(Ipv4Addr, Option<u16>)> {
        match self {
            HostName::Ip(IpAddr::V4(ip), vlan) => Some((ip, vlan)),
            _ => None,
        }
    }

    /// Finds the host with this name.
    pub(super) fn find(self, hosts: &Hosts) -> Result<&Host, NotOneHost> {
        let is_named = |host: &&Host| match self {
            HostName::Mac(mac, vlan) => {
                host.id.mac == mac && (vlan.is_none() || host.id.vlan == vlan)
            }
            HostName::Ip(ip, vlan) => {
                host.addresses.contains(&ip) && (vlan.is_none() || host.id.vlan == vlan)
            }
            HostName::At(at) => host.at == at,
        };
        let named: Vec<&Host> = hosts.iter().filter(is_named).collect();
        match named[..] {
            [] => Err(NotOneHost::Unknown(self)),
            [host] => Ok(host),
            _ => {
                let name = |host: &&Host| HostName::Mac(host.id.mac, host.id.vlan).to_string();
                Err(NotOneHost::Ambiguous { name: self, hosts: named.iter().map(name).collect() })
            }
        }
    }
}

impl FromStr for HostName {
    type Err = NoHostName;

    fn from_str(text: &str) -> Result<Self, NoHostName> {
        let error = || NoHostName(text.to_owned());
        let (address, vlan) = match text.split_once('@') {
            Some((address, vlan)) => {
                let vlan = vlan.parse().ok().filter(|vlan| (1..=4094).contains(vlan));
                (address, Some(vlan.ok_or_else(error)?))
            }
            None => (text, None),
        };
        if let Ok(mac) = address.parse::<MacAddr>() {
            return if mac.is_station() { Ok(HostName::Mac(mac, vlan)) } else { Err(error()) };
        }
        if let Ok(ip) = address.parse() {
            return Ok(HostName::Ip(ip, vlan));
        }
        match address.parse() {
            Ok(at) if vlan.is_none() => Ok(HostName::At(at)),
            _ => Err(error()),
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vlan = match self {
            HostName::Mac(mac, vlan) => write!(f, "{mac}").map(|()| vlan),
            HostName::Ip(ip, vlan) => write!(f, "{ip}").map(|()| vlan),
            HostName::At(at) => return write!(f, "{at}"),
        };
        match vlan? {
            Some(vlan) => write!(f, "@{vlan}"),
            None => Ok(()),
        }
    }
}

/// A rate, in kbit/s. Written as a whole number with `k`, `M` or `G` for 10³, 10⁶ and 10⁹ bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kbps(pub u64);

/// The text is not a rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a rate; give a whole number above 0 with k, M or G (kbit/s, Mbit/s, Gbit/s), such as 10M"
)]
pub struct NoRate(pub String);

const UNITS: [(char, u64); 3] = [('G', 1_000_000), ('M', 1000), ('k', 1)];

impl FromStr for Kbps {
    type Err = NoRate;

    fn from_str(text: &str) -> Result<Self, NoRate> {
        let rate = UNITS.iter().find_map(|(unit, kbps)| {
            let digits = text.strip_suffix(*unit)?;
            let number: u64 = digits.trim_end().parse().ok()?;
            number.checked_mul(*kbps)
        });
        // A meter's rate has 32 bits (1.3.5 §A.3.4.5).
        let rate = rate.filter(|kbps| (1..=u64::from(u32::MAX)).contains(kbps));
        rate.map(Kbps).ok_or_else(|| NoRate(text.to_owned()))
    }
}

/// In the largest unit that is exact; the text parses to the same rate.
impl fmt::Display for Kbps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, kbps): &&(char, u64)| self.0.is_multiple_of(*kbps) && self.0 >= *kbps;
        match UNITS.iter().find(fits) {
            Some((unit, kbps)) => write!(f, "{}{unit}", self.0 / kbps),
            None => write!(f, "{}k", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bellrock_api::{Dpid, HostId, Port};

    use super::*;

    #[test]
    fn a_name_that_several_hosts_have_is_refused_with_names_that_would_do() {
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let mut hosts = Hosts::default();
        for (vlan, port) in [(None, 1), (Some(30), 2)] {
            hosts.insert(Host {
                id: HostId::new(mac, vlan),
                at: SwitchPort::new(Dpid(0xa1), Port(port)),
                addresses: vec!["10.0.0.1".parse().unwrap()],
                since: Duration::ZERO,
            });
        }
        let find =
            |text: &str| text.parse::<HostName>().unwrap().find(&hosts).map(|host| host.id.vlan);
        assert_eq!(find("02:00:00:00:00:01@30"), Ok(Some(30)));
        assert_eq!(find("a1:1"), Ok(None));
        assert_eq!(
            find("10.0.0.1").unwrap_err().to_string(),
            "10.0.0.1 may be any of 02:00:00:00:00:01, 02:00:00:00:00:01@30; name one of these"
        );
        let unknown = find("10.0.0.2").unwrap_err().to_string();
        assert!(unknown.starts_with("no host 10.0.0.2 has been seen"), "{unknown}");
    }

    #[test]
    fn a_wrong_host_name_is_an_error() {
        for text in ["", "h1", "10.0.0.1@0", "10.0.0.1@x", "a1:4@30", "ff:ff:ff:ff:ff:ff", "a1:"] {
            assert!(text.parse::<HostName>().is_err(), "{text}");
        }
    }

    #[test]
    fn rates_read_and_print() {
        for (text, kbps) in [("1k", 1), ("10M", 10_000), ("2500k", 2500), ("4G", 4_000_000)] {
            assert_eq!(text.parse(), Ok(Kbps(kbps)));
            assert_eq!(Kbps(kbps).to_string(), text);
        }
        for text in ["", "M", "0M", "10", "10m", "-1k", "1.5M", "5000G", "99999999999999999999G"] {
            assert!(text.parse::<Kbps>().is_err(), "{text}");
        }
    }
}
