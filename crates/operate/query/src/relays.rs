//! Links that look like relays between hosts, and what an operator says of them.

use std::fmt;
use std::str::FromStr;

use bellrock_api::{Dpid, Port};
use serde::{Deserialize, Serialize};

use crate::{Page, SwitchRef, text};

/// A port of a switch, as operators write it: `SWITCH:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRef {
    /// The switch.
    pub switch: SwitchRef,
    /// Its port.
    pub port: Port,
}

/// A text that is not a port of a switch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a port of a switch; give SWITCH:PORT, such as a1:4 or core-1:4")]
pub struct ParsePortRefError(String);

impl FromStr for PortRef {
    type Err = ParsePortRefError;

    fn from_str(text: &str) -> Result<Self, ParsePortRefError> {
        let wrong = || ParsePortRefError(text.to_owned());
        let (switch, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        if switch.is_empty() {
            return Err(wrong());
        }
        let Ok(switch) = switch.parse();
        Ok(PortRef { switch, port: port.parse().map_err(|_| wrong())? })
    }
}

impl fmt::Display for PortRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.switch, self.port)
    }
}

/// Asks for the links that look like relays between hosts, and those that an operator has judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListRelays {
    /// Which of them.
    pub page: Page,
}

/// Says what the link between two ports is, in both directions. It holds until the controller ends.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct JudgeRelay {
    /// One of its ports: `SWITCH:PORT`.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String, example = "s1:3"))]
    pub from: PortRef,
    /// The other one.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String, example = "s2:3"))]
    pub to: PortRef,
    /// What it is.
    pub verdict: RelayVerdict,
}

/// What an operator says of a link that looks like a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RelayVerdict {
    /// It is a link, whatever it looks like.
    Link,
    /// It is a relay between hosts: it is no link.
    Relay,
    /// Nothing: discovery decides.
    None,
    /// A newer controller has sent a verdict that this release does not know.
    #[serde(other)]
    Unknown,
}

/// A link that looks like a relay, or that an operator has judged.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RelayRow {
    /// The switch of one port.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub from_dpid: Dpid,
    /// The name of that switch in the configuration.
    #[serde(default)]
    pub from_name: Option<String>,
    /// That port.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub from_port: Port,
    /// The switch of the other port.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub to_dpid: Dpid,
    /// The name of that switch in the configuration.
    #[serde(default)]
    pub to_name: Option<String>,
    /// That port.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub to_port: Port,
    /// The latest sign of a relay, as a sentence.
    #[serde(default)]
    pub evidence: Option<String>,
    /// Time since that sign.
    #[serde(default)]
    pub evidence_seconds: Option<u64>,
    /// What an operator says.
    pub verdict: RelayVerdict,
    /// Whether it is up, in a direction or both.
    pub up: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_a_switch_is_read_as_it_is_written() {
        for text in ["core-1:4", "00000000000000a1:LOCAL", "rack:7:65280"] {
            assert_eq!(text.parse::<PortRef>().unwrap().to_string(), text);
        }
        for wrong in ["", "s1", ":4", "s1:", "s1:x", "s1:-1"] {
            assert!(wrong.parse::<PortRef>().is_err(), "{wrong}");
        }
    }
}
