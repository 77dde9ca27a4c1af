//! What the controller asks a switch, with all its services and the apps that ask most.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::known::known;
use crate::reserving::{request, reserve};
use bellrock_api::openflow::MultipartKind;
use bellrock_api::{MacAddr, ToSwitch, Version};
use bellrock_apps::Routing;
use bellrock_apps::bandwidth::{Bandwidth, Reservations};
use bellrock_apps::provisioning::{CircuitState, Circuits, Provisioning, ProvisioningSettings};
use bellrock_apps::quarantine::{BlockLists, Quarantine};
use bellrock_emulator::lab::Lab;
use bellrock_emulator::network::MessageDirection;
use bellrock_emulator::topology::ring;
use bellrock_services::chain::ServiceSettings;
use bellrock_services::desired::AUDIT_EVERY;
use bellrock_services::hosts::HostTrackingSettings;

/// After how long a host is asked whether it is there, and after that the flows that carry its
/// packets.
const MAX_AGE: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);
/// A host that answers no question, and is known by what its circuit carries.
const SILENT: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x99]);

/// The kinds of statistics that switches were asked for are those of the table in
/// `docs/book/src/internals/session.md`. What is not in it, such as table features, is not asked.
#[test]
fn nothing_is_asked_but_what_the_manual_lists() {
    use MultipartKind::{Aggregate, Desc, Flow, GroupDesc, MeterConfig, PortDesc};
    for (version, listed) in [
        (Version::V1_0, &[Desc, Flow, Aggregate][..]),
        (Version::V1_3, &[Desc, PortDesc, Flow, Aggregate, GroupDesc, MeterConfig]),
    ] {
        let circuits = vec!["silent 02:00:00:00:00:99 3:1".parse().unwrap()];
        let settings = ProvisioningSettings { circuits, ..Default::default() };
        let circuits = Circuits::new(settings).unwrap();
        let (lists, book) = (BlockLists::default(), Reservations::default());
        lists.add("10.0.0.9".parse().unwrap()).unwrap();
        let hosts = HostTrackingSettings { max_age: MAX_AGE, ..HostTrackingSettings::default() };
        let services = ServiceSettings { hosts, ..ServiceSettings::default() };
        let lab = Lab::seeded(7).topology(ring(4, 1)).version(version).services(services);
        let lab = lab.app(Quarantine::new(&lists)).app(Provisioning::new(&circuits));
        let mut lab = known(lab.app(Bandwidth::new(&book)).run(Routing::default()));
        if version == Version::V1_3 {
            reserve(&mut lab, &book, request("10.0.0.2", "10.0.0.4", "1M")).unwrap();
        }
        let frame = [&MacAddr::BROADCAST.0[..], &SILENT.0, &[0x88, 0xb5], &[0; 46]].concat();
        for _ in 0..5 {
            lab.send_frame("h1", &frame);
            lab.run_for(AUDIT_EVERY / 2);
        }
        assert!(
            matches!(circuits.list()[0].state, CircuitState::Up { .. }),
            "{:?}",
            circuits.list()
        );
        lab.disconnect("s1");
        lab.run_for(SECOND);
        lab.reconnect("s1");
        assert!(lab.run_until(AUDIT_EVERY, Lab::is_all_up));
        lab.run_for(SECOND);

        let mut asked = BTreeSet::new();
        for message in ["s1", "s2", "s3", "s4"].iter().flat_map(|switch| lab.messages(switch)) {
            if message.direction == MessageDirection::ToSwitch
                && let Ok(message) = ToSwitch::decode(&message.bytes)
                && let ToSwitch::MultipartRequest(request) = message.body
            {
                asked.insert(format!("{:?}", request.body.kind()));
            }
        }
        let listed: BTreeSet<_> = listed.iter().map(|kind| format!("{kind:?}")).collect();
        assert_eq!(asked, listed, "{version}");
    }
}
