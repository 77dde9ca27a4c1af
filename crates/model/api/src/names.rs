//! Names that an operator gives to switches, their ports, and hosts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

use bellrock_openflow::{MacAddr, Port};

use crate::{Dpid, SwitchPort};

/// Maximum length of a name, in characters.
pub const MAX_NAME_CHARS: usize = 64;

/// Maximum number of named switches, of named hosts, and of named ports.
pub const MAX_NAMES: usize = 65_536;

/// Number of digits of a datapath id in a text.
const DPID_DIGITS: usize = 16;

/// Number of characters of an Ethernet address in a text.
const MAC_CHARS: usize = 17;

/// Names of switches, of their ports, and of hosts. Each name has one switch (or host), and each
/// switch (or host) at most one name. The names of a switch's ports are its own: two switches may
/// each have a port `uplink`.
///
/// A name has 1 to [`MAX_NAME_CHARS`] characters: letters, digits, `-`, `_` and `.` (ASCII). The
/// name of a switch cannot be read as a datapath id, that of a host not as an IP address, and that
/// of a port not as a number. So no text is both a name and an identifier.
///
/// ```
/// use bellrock_api::{Dpid, Names};
///
/// let mut names = Names::default();
/// names.add_switch("core-1", Dpid(0xa1)).unwrap();
/// assert_eq!(names.switch("core-1"), Some(Dpid(0xa1)));
/// assert_eq!(names.name_of(Dpid(0xa1)), Some("core-1"));
/// assert!(names.add_switch("beef", Dpid(0xa2)).is_err(), "a datapath id");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    switches: Named<Dpid>,
    hosts: Named<MacAddr>,
    ports: BTreeMap<SwitchPort, Box<str>>,
    port_ids: BTreeMap<(Dpid, Box<str>), Port>,
}

/// Why a switch, port or host cannot have a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The text is not a name.
    #[error(
        "{0:?} is no name; give 1 to {MAX_NAME_CHARS} letters, digits, -, _ and ., such as core-1"
    )]
    NoName(String),
    /// It can be read as a datapath id.
    #[error("{0:?} reads as a datapath id, so it cannot be a name; give another, such as s-{0}")]
    IsDpid(String),
    /// It can be read as an IP address.
    #[error("{0:?} reads as an IP address, so it cannot be a name; give another, such as h-{0}")]
    IsAddress(String),
    /// It can be read as the number of a port, or as one of the reserved ports.
    #[error("{0:?} reads as a port's number, so it cannot be a name; give another, such as p-{0}")]
    IsPort(String),
    /// It is no port of a switch.
    #[error("{0} is no port of a switch; give a number from 1 on")]
    NoPort(Port),
    /// Another one has the name.
    #[error("{name:?} is the name of {owner} already; give each its own name")]
    Taken {
        /// The name.
        name: String,
        /// Its datapath id or Ethernet address.
        owner: String,
    },
    /// It has another name.
    #[error("{id} has the name {name:?} already; give it only one")]
    Second {
        /// Its datapath id or Ethernet address.
        id: String,
        /// Its name.
        name: String,
    },
    /// There are [`MAX_NAMES`] already.
    #[error(
        "{0:?} is one name too many; give names to at most {MAX_NAMES} switches, as many hosts and as many ports"
    )]
    TooMany(String),
    /// The address is not that of one host: it is a group's, or zero.
    #[error("{0} is not the address of a host; give one like 00:1b:21:3c:9d:f8")]
    NoHost(MacAddr),
}

impl Names {
    /// Names a switch.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn add_switch(&mut self, name: &str, dpid: Dpid) -> Result<(), NameError> {
        let name = valid_name(name)?;
        if name.parse::<Dpid>().is_ok() {
            return Err(NameError::IsDpid(name.into()));
        }
        self.switches.add(name, dpid)
    }

    /// Names the host with this Ethernet address.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn add_host(&mut self, name: &str, mac: MacAddr) -> Result<(), NameError> {
        let name = valid_name(name)?;
        if name.parse::<IpAddr>().is_ok() {
            return Err(NameError::IsAddress(name.into()));
        }
        if !mac.is_station() {
            return Err(NameError::NoHost(mac));
        }
        self.hosts.add(name, mac)
    }

    /// Names a port of a switch.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn add_port(&mut self, name: &str, at: SwitchPort) -> Result<(), NameError> {
        let name = valid_name(name)?;
        if name.parse::<Port>().is_ok() {
            return Err(NameError::IsPort(name.into()));
        }
        if at.port == Port(0) || at.port > Port::MAX {
            return Err(NameError::NoPort(at.port));
        }
        if let Some(owner) = self.port(at.dpid, name) {
            return Err(NameError::Taken { name: name.into(), owner: format!("port {owner}") });
        }
        if let Some(other) = self.name_of_port(at) {
            return Err(NameError::Second { id: format!("port {}", at.port), name: other.into() });
        }
        if self.ports.len() >= MAX_NAMES {
            return Err(NameError::TooMany(name.into()));
        }
        self.ports.insert(at, name.into());
        self.port_ids.insert((at.dpid, name.into()), at.port);
        Ok(())
    }

    /// Replaces the names of switches and ports by those of `from`.
    pub fn set_switches(&mut self, from: Names) {
        let Names { switches, hosts: _, ports, port_ids } = from;
        (self.switches, self.ports, self.port_ids) = (switches, ports, port_ids);
    }

    /// Replaces the names of hosts by those of `from`.
    pub fn set_hosts(&mut self, from: Names) {
        self.hosts = from.hosts;
    }

    /// The port of a switch with this name.
    #[must_use]
    pub fn port(&self, dpid: Dpid, name: &str) -> Option<Port> {
        self.port_ids.get(&(dpid, name.into())).copied()
    }

    /// The name of a port.
    #[must_use]
    pub fn name_of_port(&self, at: SwitchPort) -> Option<&str> {
        self.ports.get(&at).map(|name| &**name)
    }

    /// All named ports, in the order of their numbers.
    pub fn ports(&self) -> impl Iterator<Item = (SwitchPort, &str)> {
        self.ports.iter().map(|(at, name)| (*at, &**name))
    }

    /// The switch with this name.
    #[must_use]
    pub fn switch(&self, name: &str) -> Option<Dpid> {
        self.switches.ids.get(name).copied()
    }

    /// The name of a switch.
    #[must_use]
    pub fn name_of(&self, dpid: Dpid) -> Option<&str> {
        self.switches.names.get(&dpid).map(|name| &**name)
    }

    /// The Ethernet address of the host with this name.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<MacAddr> {
        self.hosts.ids.get(name).copied()
    }

    /// The name of a host.
    #[must_use]
    pub fn name_of_host(&self, mac: MacAddr) -> Option<&str> {
        self.hosts.names.get(&mac).map(|name| &**name)
    }

    /// Replaces the name that a text begins with by its identifier: that of a switch before `:`,
    /// with the name of its port behind it, else that of a host, which `@` can follow. Other texts
    /// stay as they are.
    ///
    /// ```
    /// use bellrock_api::{Dpid, Names};
    ///
    /// let mut names = Names::default();
    /// names.add_switch("core-1", Dpid(0xa1)).unwrap();
    /// names.add_host("web", "00:1b:21:3c:9d:f8".parse().unwrap()).unwrap();
    /// assert_eq!(names.identify("core-1:4"), "00000000000000a1:4");
    /// assert_eq!(names.identify("web@30"), "00:1b:21:3c:9d:f8@30");
    /// assert_eq!(names.identify("10.0.0.7"), "10.0.0.7");
    /// ```
    #[must_use]
    pub fn identify<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let (name, rest) = split(text);
        let Some(port) = rest.strip_prefix(':') else {
            let mac = self.host(name);
            return mac.map_or(Cow::Borrowed(text), |mac| Cow::Owned(format!("{mac}{rest}")));
        };
        let Some(dpid) = self.switch(name).or_else(|| name.parse().ok()) else {
            return Cow::Borrowed(text);
        };
        let (port, rest) = split(port);
        match self.port(dpid, port) {
            Some(port) => Cow::Owned(format!("{dpid}:{port}{rest}")),
            None if self.switch(name).is_some() => Cow::Owned(format!("{dpid}:{port}{rest}")),
            None => Cow::Borrowed(text),
        }
    }

    /// The text of a port, with the name of its switch if it has one: `core-1:4`.
    #[must_use]
    pub fn port_text(&self, at: SwitchPort) -> String {
        self.name_of(at.dpid).map_or_else(|| at.to_string(), |name| format!("{name}:{}", at.port))
    }

    /// A text with the names of switches in place of their datapath ids, as [`Dpid`] prints them,
    /// and with those of hosts in place of their Ethernet addresses.
    #[must_use]
    pub fn in_text(&self, text: &str) -> String {
        let mut named = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            if let Some((name, after)) = self.host_at(rest) {
                named.push_str(name);
                rest = after;
                continue;
            }
            let is_end = |char: char| !char.is_ascii_alphanumeric();
            let (word, after) = rest.split_at(rest.find(is_end).unwrap_or(rest.len()));
            let dpid = (word.len() == DPID_DIGITS).then(|| word.parse::<Dpid>().ok()).flatten();
            named.push_str(dpid.and_then(|dpid| self.name_of(dpid)).unwrap_or(word));
            let mut signs = after.chars();
            named.extend(signs.next());
            rest = signs.as_str();
        }
        named
    }

    /// The name of the host whose Ethernet address a text begins with, and the rest of the text.
    fn host_at<'t>(&self, text: &'t str) -> Option<(&str, &'t str)> {
        let (mac, after) = text.split_at_checked(MAC_CHARS)?;
        let goes_on = after.starts_with(|char: char| char.is_ascii_alphanumeric());
        if goes_on || mac.as_bytes()[2] != b':' {
            return None;
        }
        Some((self.name_of_host(mac.parse().ok()?)?, after))
    }

    /// All named switches, in the order of their names.
    pub fn switches(&self) -> impl Iterator<Item = (&str, Dpid)> {
        self.switches.ids.iter().map(|(name, dpid)| (&**name, *dpid))
    }

    /// All named hosts, in the order of their names.
    pub fn hosts(&self) -> impl Iterator<Item = (&str, MacAddr)> {
        self.hosts.ids.iter().map(|(name, mac)| (&**name, *mac))
    }
}

/// What the name at the start of a text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A switch: the text is `NAME:PORT`.
    Switch,
    /// A host: the text is `NAME` or `NAME@VLAN`.
    Host,
}

/// The name at the start of a text that stands for a host or a port, and what it names. `None` if
/// the text begins with an identifier, or with something else. See [`Names::identify`].
#[must_use]
pub fn name_in(text: &str) -> Option<(&str, NameKind)> {
    let (name, rest) = split(text);
    let name = valid_name(name).ok()?;
    let (is_id, kind) = match rest.starts_with(':') {
        true => (name.parse::<Dpid>().is_ok(), NameKind::Switch),
        false => (name.parse::<IpAddr>().is_ok(), NameKind::Host),
    };
    (!is_id).then_some((name, kind))
}

/// The part of a text that can be a name, and the rest.
fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find([':', '@']).unwrap_or(text.len()))
}

fn valid_name(name: &str) -> Result<&str, NameError> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_valid = (1..=MAX_NAME_CHARS).contains(&name.len()) && name.bytes().all(is_part);
    if is_valid { Ok(name) } else { Err(NameError::NoName(name.into())) }
}

/// A name for each identifier, and the identifier of each name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named<T> {
    ids: BTreeMap<Box<str>, T>,
    names: BTreeMap<T, Box<str>>,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Named { ids: BTreeMap::new(), names: BTreeMap::new() }
    }
}

impl<T: Copy + Ord + ToString> Named<T> {
    fn add(&mut self, name: &str, id: T) -> Result<(), NameError> {
        if let Some(owner) = self.ids.get(name) {
            return Err(NameError::Taken { name: name.into(), owner: owner.to_string() });
        }
        if let Some(other) = self.names.get(&id) {
            return Err(NameError::Second { id: id.to_string(), name: (&**other).into() });
        }
        if self.ids.len() >= MAX_NAMES {
            return Err(NameError::TooMany(name.into()));
        }
        self.ids.insert(name.into(), id);
        self.names.insert(id, name.into());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_both_ways() {
        let mut names = Names::default();
        names.add_switch("core-1", Dpid(1)).unwrap();
        let taken = names.add_switch("core-1", Dpid(2)).unwrap_err().to_string();
        assert!(taken.starts_with("\"core-1\" is the name of 0000000000000001 already"), "{taken}");
        let second = names.add_switch("core-2", Dpid(1)).unwrap_err().to_string();
        assert!(second.starts_with("0000000000000001 has the name \"core-1\" already"), "{second}");
        assert_eq!(names.switches().collect::<Vec<_>>(), [("core-1", Dpid(1))]);
        // A host may have the name of a switch: where one is expected, the other is not.
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        names.add_host("core-1", mac).unwrap();
        assert_eq!((names.host("core-1"), names.name_of_host(mac)), (Some(mac), Some("core-1")));
        assert!(names.add_host("other", mac).is_err());
        assert_eq!(names.hosts().collect::<Vec<_>>(), [("core-1", mac)]);
        assert_eq!((names.switch("other"), names.name_of(Dpid(2))), (None, None));
    }

    #[test]
    fn ports_have_names_of_their_switch() {
        let mut names = Names::default();
        names.add_switch("s1", Dpid(1)).unwrap();
        for dpid in [1, 2] {
            names.add_port("uplink", SwitchPort::new(Dpid(dpid), Port(3))).unwrap();
        }
        assert_eq!(names.port(Dpid(2), "uplink"), Some(Port(3)));
        assert_eq!(names.identify("s1:uplink:100"), "0000000000000001:3:100");
        assert_eq!(names.identify("2:uplink"), "0000000000000002:3");
        assert_eq!(names.identify("2:other"), "2:other");
        let at = |port| SwitchPort::new(Dpid(1), Port(port));
        let second = names.add_port("trunk", at(3)).unwrap_err().to_string();
        assert_eq!(second, "port 3 has the name \"uplink\" already; give it only one");
        let taken = names.add_port("uplink", at(4)).unwrap_err().to_string();
        assert_eq!(taken, "\"uplink\" is the name of port 3 already; give each its own name");
        assert_eq!(names.add_port("7", at(4)), Err(NameError::IsPort("7".into())));
        assert_eq!(names.add_port("none", at(0)), Err(NameError::NoPort(Port(0))));
    }

    #[test]
    fn a_text_has_names_in_place_of_numbers() {
        let mut names = Names::default();
        names.add_switch("core-1", Dpid(1)).unwrap();
        names.add_host("web", MacAddr([2, 0, 0, 0, 0, 1])).unwrap();
        for (text, named) in [
            ("host 02:00:00:00:00:01 is at 0000000000000001:3", "host web is at core-1:3"),
            ("02:00:00:00:00:01@30", "web@30"),
            ("(02:00:00:00:00:01)", "(web)"),
            (
                "02:00:00:00:00:02 and 02:00:00:00:00:011",
                "02:00:00:00:00:02 and 02:00:00:00:00:011",
            ),
            ("größe 0000000000000001", "größe core-1"),
            ("02:00:00:00:00:0é", "02:00:00:00:00:0é"),
        ] {
            assert_eq!(names.in_text(text), named);
        }
    }

    #[test]
    fn a_name_is_never_an_identifier_too() {
        let mut names = Names::default();
        for name in ["a1", "0xa1", "0000000000000001", "beef", "7"] {
            let error = names.add_switch(name, Dpid(1)).unwrap_err();
            assert_eq!(error, NameError::IsDpid(name.into()));
        }
        // Digits beyond 64 bits are no datapath id.
        names.add_switch("00000000000000001x", Dpid(1)).unwrap();
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let error = names.add_host("10.0.0.1", mac).unwrap_err();
        assert_eq!(error, NameError::IsAddress("10.0.0.1".into()));
        let longest = "x".repeat(MAX_NAME_CHARS);
        names.add_host(&longest, mac).unwrap();
        for name in ["", "a b", "a:1", "größe", &format!("{longest}x")] {
            assert_eq!(names.add_switch(name, Dpid(2)), Err(NameError::NoName(name.into())));
            assert!(names.add_host(name, MacAddr([2, 0, 0, 0, 0, 2])).is_err());
        }
        let group = MacAddr([1, 0, 0, 0, 0, 1]);
        assert_eq!(names.add_host("all", group), Err(NameError::NoHost(group)));
    }

    #[test]
    fn a_text_begins_with_a_name_or_an_identifier() {
        let mut names = Names::default();
        names.add_switch("s1", Dpid(1)).unwrap();
        names.add_host("s1", MacAddr([2, 0, 0, 0, 0, 1])).unwrap();
        for (text, id) in [
            ("s1", "02:00:00:00:00:01"),
            ("s1@30", "02:00:00:00:00:01@30"),
            ("s1:4", "0000000000000001:4"),
            ("s1:4:100", "0000000000000001:4:100"),
            ("s2:4", "s2:4"),
            ("10.0.0.1@30", "10.0.0.1@30"),
            ("fe80::1", "fe80::1"),
        ] {
            assert_eq!(names.identify(text), id);
        }
        assert_eq!(names.port_text(SwitchPort::new(Dpid(1), Port(4))), "s1:4");
        assert_eq!(names.port_text(SwitchPort::new(Dpid(2), Port(4))), "0000000000000002:4");
        for (text, expected) in [
            ("s2:4", Some(("s2", NameKind::Switch))),
            ("web@30", Some(("web", NameKind::Host))),
            ("beef", Some(("beef", NameKind::Host))),
            ("beef:4", None),
            ("10.0.0.1", None),
            ("10.0.0.1@x", None),
            ("00:1b:21:3c:9d:f8", None),
            ("::1", None),
            ("a b", None),
        ] {
            assert_eq!(name_in(text), expected, "{text}");
        }
    }

    #[test]
    fn a_text_has_names_where_there_are_some() {
        let mut names = Names::default();
        names.add_switch("core-1", Dpid(0xa1)).unwrap();
        for (text, named) in [
            ("switch 00000000000000a1 is up", "switch core-1 is up"),
            (
                "00000000000000a1:4 -> 00000000000000a2:1 (größe 7 §)",
                "core-1:4 -> 00000000000000a2:1 (größe 7 §)",
            ),
            ("00000000000000a1", "core-1"),
            ("cookie 0x00000000000000a1", "cookie 0x00000000000000a1"),
            ("a1 00000000000000a10", "a1 00000000000000a10"),
            ("", ""),
        ] {
            assert_eq!(names.in_text(text), named);
        }
    }

    #[test]
    fn names_are_bounded() {
        let mut names = Names::default();
        for n in 0..MAX_NAMES {
            names.add_switch(&format!("s-{n}"), Dpid(n as u64)).unwrap();
        }
        let error = names.add_switch("more", Dpid(u64::MAX)).unwrap_err();
        assert_eq!(error, NameError::TooMany("more".into()));
        names.add_host("web", MacAddr([2, 0, 0, 0, 0, 1])).unwrap();
    }
}
