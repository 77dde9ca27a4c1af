//! Names of hosts and ports in the matches and actions of static entries.
//!
//! They are read when the entry is set: it keeps the numbers.

use std::fmt::Write;

use bellrock_api::{Dpid, NameKind, Names, Port, SwitchInfo};
use bellrock_query::{QueryError, StaticEntry, unknown_name};

/// Fields of a match with the Ethernet address of a host.
const HOST_FIELDS: &[&str] = &["eth_src", "eth_dst", "dl_src", "dl_dst", "arp_sha", "arp_tha"];

/// Fields of a match with the number of a port.
const PORT_FIELDS: &[&str] = &["in_port", "in_phy_port"];

/// Maximum number of ports that an error lists.
const MAX_PORTS_SHOWN: usize = 8;

/// What names mean at a switch.
pub(super) struct Place<'a> {
    pub(super) names: &'a Names,
    pub(super) dpid: Dpid,
    /// `None`: the switch is not connected, so the names that it gives its ports are not known.
    pub(super) info: Option<&'a SwitchInfo>,
}

impl Place<'_> {
    /// The entry with identifiers in place of names.
    ///
    /// # Errors
    /// Nothing has the name.
    pub(super) fn identify(&self, entry: &StaticEntry) -> Result<StaticEntry, QueryError> {
        let mut entry = entry.clone();
        if let Some(flow) = &mut entry.flow {
            flow.matching = self.matching(&flow.matching)?;
            flow.actions = self.actions(&flow.actions, "flow.actions")?;
        }
        for (index, bucket) in entry.group.iter_mut().flat_map(|it| &mut it.buckets).enumerate() {
            let field = |name| format!("group.buckets[{index}].{name}");
            bucket.actions = self.actions(&bucket.actions, &field("actions"))?;
            if let Some(port) = &mut bucket.watch_port {
                *port = self.port(port, &field("watch_port"))?;
            }
        }
        Ok(entry)
    }

    fn matching(&self, text: &str) -> Result<String, QueryError> {
        let part = |part: &str| {
            let Some((name, value)) = part.split_once('=') else { return Ok(part.to_owned()) };
            let (field, value) = (name.trim(), value.trim());
            let value = match () {
                () if HOST_FIELDS.contains(&field) => self.host(value, "flow.match")?,
                () if PORT_FIELDS.contains(&field) => self.port(value, "flow.match")?,
                () => return Ok(part.to_owned()),
            };
            Ok(format!("{field}={value}"))
        };
        let parts: Result<Vec<String>, QueryError> = text.split(',').map(part).collect();
        Ok(parts?.join(","))
    }

    fn actions(&self, text: &str, field: &str) -> Result<String, QueryError> {
        let mut identified = String::with_capacity(text.len());
        for part in text.split_inclusive([',', '(', ')']) {
            let end = part.len() - usize::from(part.ends_with([',', '(', ')']));
            let (action, sign) = part.split_at(end);
            identified.push_str(&self.action(action, field)?);
            identified.push_str(sign);
        }
        Ok(identified)
    }

    fn action(&self, text: &str, field: &str) -> Result<String, QueryError> {
        let action = text.trim();
        if let Some(port) = action.strip_prefix("output:") {
            return Ok(format!("output:{}", self.port(port, field)?));
        }
        let set = action.strip_prefix("set_field:").and_then(|set| set.split_once("->"));
        match set {
            Some((value, to)) if HOST_FIELDS.contains(&to) => {
                Ok(format!("set_field:{}->{to}", self.host(value, field)?))
            }
            _ => Ok(text.to_owned()),
        }
    }

    /// The address of a host. What looks like an address, right or wrong, is none of its names.
    fn host(&self, text: &str, field: &str) -> Result<String, QueryError> {
        if text.contains([':', '/']) {
            return Ok(text.to_owned());
        }
        let mac = self.names.host(text).ok_or_else(|| unknown_name(field, text, NameKind::Host))?;
        Ok(mac.to_string())
    }

    /// The number of a port that has the name in the configuration, or that the switch calls so.
    fn port(&self, text: &str, field: &str) -> Result<String, QueryError> {
        if text.parse::<Port>().is_ok() || text.starts_with(|first: char| first.is_ascii_digit()) {
            return Ok(text.to_owned());
        }
        let ports = self.info.map(|info| &info.ports[..]).unwrap_or_default();
        let said = || ports.iter().find(|port| port.name.to_string() == text).map(|port| port.port);
        if let Some(port) = self.names.port(self.dpid, text).or_else(said) {
            return Ok(port.to_string());
        }
        let mut shown = String::new();
        for port in ports.iter().take(MAX_PORTS_SHOWN) {
            let _ = write!(
                shown,
                "{}{} ({})",
                if shown.is_empty() { "" } else { ", " },
                port.port,
                port.name
            );
        }
        let known = match (self.info, ports.len() > MAX_PORTS_SHOWN) {
            (None, _) => {
                "it is not connected, so give a number, or a name of the configuration".to_owned()
            }
            (Some(_), true) => format!("it has {shown}, and others"),
            (Some(_), false) => format!("it has {shown}"),
        };
        let switch =
            self.names.name_of(self.dpid).map_or_else(|| self.dpid.to_string(), str::to_owned);
        let why = format!("no port of switch {switch} has the name {text:?}; {known}");
        Err(QueryError::invalid(field, why))
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::{MacAddr, SwitchPort};
    use bellrock_query::StaticFlow;

    use super::*;

    fn identified(matching: &str, actions: &str) -> Result<(String, String), String> {
        let mut names = Names::default();
        names.add_switch("core-1", Dpid(1)).unwrap();
        names.add_port("uplink", SwitchPort::new(Dpid(1), Port(3))).unwrap();
        names.add_host("web", MacAddr([2, 0, 0, 0, 0, 1])).unwrap();
        let place = Place { names: &names, dpid: Dpid(1), info: None };
        let flow = StaticFlow {
            matching: matching.to_owned(),
            actions: actions.to_owned(),
            ..StaticFlow::default()
        };
        let entry = StaticEntry {
            name: "a".to_owned(),
            switch: "core-1".parse().unwrap(),
            ttl_seconds: None,
            flow: Some(flow),
            group: None,
            meter: None,
        };
        let entry = place.identify(&entry).map_err(|error| error.message)?;
        let flow = entry.flow.unwrap();
        Ok((flow.matching, flow.actions))
    }

    #[test]
    fn names_of_hosts_and_ports_become_numbers() {
        for ((matching, actions), expected) in [
            (
                ("eth_src=web,in_port=uplink", "output:uplink"),
                ("eth_src=02:00:00:00:00:01,in_port=3", "output:3"),
            ),
            (
                ("any", "set_field:web->eth_dst,output:IN_PORT"),
                ("any", "set_field:02:00:00:00:00:01->eth_dst,output:IN_PORT"),
            ),
            (
                ("tcp, in_port=4", "write_actions(output:uplink),goto_table:2"),
                ("tcp,in_port=4", "write_actions(output:3),goto_table:2"),
            ),
            (
                ("eth_dst=01:00:00:00:00:00/01:00:00:00:00:00", "drop"),
                ("eth_dst=01:00:00:00:00:00/01:00:00:00:00:00", "drop"),
            ),
        ] {
            let expected = (expected.0.to_owned(), expected.1.to_owned());
            assert_eq!(identified(matching, actions), Ok(expected));
        }
    }

    #[test]
    fn an_unknown_name_says_where_names_are() {
        let error = identified("eth_src=mail", "drop").unwrap_err();
        assert!(error.starts_with("no host has the name \"mail\""), "{error}");
        let error = identified("in_port=trunk", "drop").unwrap_err();
        assert!(
            error.starts_with("no port of switch core-1 has the name \"trunk\"; it is not"),
            "{error}"
        );
    }
}
