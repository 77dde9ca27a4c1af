//! Apps that take what is not for them, as in DELTA's cases 3.1.020 (control message drop), 3.1.090
//! (event listener unsubscription) and 3.1.210 (packet-in data forge): services and the apps before
//! them see everything unchanged.

use std::time::Duration;

use bellrock_api::{
    App, Handler, Needs, Network, PacketIn, PortStatus, Result, Switch, SwitchInfo, Verdict,
    Version,
};
use bellrock_apps::Learning;
use bellrock_emulator::lab::Lab;
use bellrock_emulator::topology::tree;
use bellrock_services::chain::ServiceSettings;

/// Consumes every packet, and every other event as far as it can.
struct Taker;

impl App for Taker {
    type Handler = Taker;

    fn name(&self) -> &'static str {
        "taker"
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Taker {
        Taker
    }
}

impl Handler for Taker {
    fn packet_in(&mut self, _: &mut Switch<'_>, _: &PacketIn<'_>) -> Result<Verdict> {
        Ok(Verdict::Consume)
    }

    fn port_status(&mut self, _: &mut Switch<'_>, _: &PortStatus) -> Result<()> {
        Err(bellrock_api::Error::NotAnApp.into())
    }
}

fn lab(version: Version) -> bellrock_emulator::lab::LabBuilder {
    let services = ServiceSettings { always: Needs::HOSTS, ..ServiceSettings::default() };
    Lab::seeded(5).topology(tree(2, 2)).version(version).services(services)
}

fn settle(lab: &mut Lab) {
    let settled = |lab: &Lab| lab.controller().unwrap().topology().load().settled;
    assert!(lab.run_until(Duration::from_secs(20), settled));
}

#[test]
fn an_app_that_takes_all_packets_takes_none_from_services_and_apps_before_it() {
    for version in Version::ALL {
        // The operator's order decides: it is behind the learning switch.
        let mut behind = lab(version).app(Learning::default()).run(Taker);
        settle(&mut behind);
        assert!(behind.ping_all().is_complete(), "{version}");

        // Where it is first, nothing is forwarded. Links, hosts and changes of ports are still
        // seen.
        let mut before = lab(version).app(Taker).run(Learning::default());
        settle(&mut before);
        assert!(!before.ping("h1", "h4"), "{version}");
        let network = before.controller().unwrap();
        assert_eq!(network.topology().load().links.len(), 4);
        assert!(!network.hosts().load().is_empty(), "{version}");
        before.link_down("s1", "s2");
        before.run_for(Duration::from_secs(1));
        assert_eq!(network.topology().load().links.len(), 2, "{version}");
    }
}
