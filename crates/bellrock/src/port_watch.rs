//! Watches what has an alarm with an end, and no event of its own that ends it: ports with names in
//! the configuration, and lost switches that come back to this node of a cluster as another node's.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use bellrock_api::openflow::{PortConfig, PortState};
use bellrock_api::runtime::{EventPublisher as _, RoleControl as _};
use bellrock_api::{Event, Names, Network, SwitchPort, Switches, Watch};
use futures_lite::FutureExt as _;

/// Minimum time between two checks: many ports change at the same time.
const PAUSE: Duration = Duration::from_millis(100);

/// Maximum time between two checks. A change of the switches begins one at once.
const LOOK: Duration = Duration::from_secs(1);

/// Watches named ports and lost switches from now on.
pub(crate) fn watch_ports(network: &Network, names: Watch<Names>) {
    network.spawn("watch of named ports", watch(network.clone(), names));
}

async fn watch(network: Network, names: Watch<Names>) {
    let mut down = Down::default();
    loop {
        let switches = network.switches();
        for event in down.compare(&switches, &names.load()) {
            network.events().publish(network.now(), event);
        }
        for event in returned(&network) {
            network.events().publish(network.now(), event);
        }
        let until = network.now() + LOOK;
        network.sleep(PAUSE).await;
        network.watch_switches().newer(switches.version()).or(network.sleep_until(until)).await;
    }
}

/// The open alarms about lost switches that stand by at this node.
fn returned(network: &Network) -> Vec<Event> {
    let open = network.events().open_alarms();
    let standbys = network.standbys().load();
    let lost = open.iter().filter_map(|record| match &record.event {
        Event::SwitchDown { dpid, .. } => standbys.get(*dpid).map(|_| *dpid),
        _ => None,
    });
    lost.map(|dpid| Event::SwitchStandsBy { dpid }).collect()
}

/// The ports that are reported down, and their names.
#[derive(Debug, Default)]
struct Down(BTreeMap<SwitchPort, Box<str>>);

impl Down {
    /// Compares the named ports of connected switches with what was reported. A port whose switch
    /// is not connected stays as it was: the lost switch is an alarm itself.
    fn compare(&mut self, switches: &Switches, names: &Names) -> Vec<Event> {
        let mut events = Vec::new();
        self.0.retain(|at, name| {
            let at = *at;
            let is_named = names.name_of_port(at) == Some(name);
            let is_over = !is_named || state(switches, at) == Some(State::Up);
            if is_over {
                events.push(Event::PortUp { at, name: name.clone(), is_named });
            }
            !is_over
        });
        for (at, name) in names.ports() {
            let by_order = match state(switches, at) {
                Some(State::Down { by_order }) => by_order,
                Some(State::Up) | None => continue,
            };
            if let Entry::Vacant(entry) = self.0.entry(at) {
                entry.insert(name.into());
                events.push(Event::PortDown { at, name: name.into(), by_order });
            }
        }
        events
    }
}

/// Whether a port carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Up,
    Down { by_order: bool },
}

/// `None`: the switch is not connected. A port that the switch does not have is down.
fn state(switches: &Switches, at: SwitchPort) -> Option<State> {
    let info = switches.get(at.dpid)?;
    let Some(port) = info.ports.iter().find(|port| port.port == at.port) else {
        return Some(State::Down { by_order: false });
    };
    let by_order = port.config.contains(PortConfig::PORT_DOWN);
    let is_down = by_order || port.state.contains(PortState::LINK_DOWN);
    Some(if is_down { State::Down { by_order } } else { State::Up })
}

#[cfg(test)]
mod tests {
    use bellrock_api::{Dpid, Port};

    use super::*;

    #[test]
    fn a_port_without_its_switch_is_not_judged() {
        let at = SwitchPort::new(Dpid(1), Port(3));
        let mut names = Names::default();
        names.add_port("uplink", at).unwrap();
        let (switches, mut down) = (Switches::default(), Down::default());
        assert_eq!(down.compare(&switches, &names), []);
        down.0.insert(at, "uplink".into());
        assert_eq!(down.compare(&switches, &names), []);
        // It has lost its name.
        let end = Event::PortUp { at, name: "uplink".into(), is_named: false };
        assert_eq!(down.compare(&switches, &Names::default()), [end]);
        assert!(down.0.is_empty());
    }
}
