//! Many switches at once, as after a restart of the controller: a limited number reports flows at a
//! time.

use std::time::Duration;

use crate::lab::{FakeRoles, Lab, Notes, SwitchId};
use bellrock_api::runtime::RoleControl;
use bellrock_api::{
    App, Dpid, EarlierFlows, Handler, Network, PacketIn, Result, RoleOrder, Switch, SwitchInfo,
    Verdict, Version,
};
use bellrock_session::SwitchDescription;

/// Number of switches of a worker that are asked at a time, and the duration of a turn.
const AT_A_TIME: usize = 64;
const TURN: Duration = Duration::from_millis(500);

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

#[derive(Clone, Default)]
struct Adopts(Notes);

impl App for Adopts {
    type Handler = Adopts;
    fn name(&self) -> &'static str {
        "adopts"
    }
    fn earlier_flows(&self) -> EarlierFlows {
        EarlierFlows::Adopt
    }
    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Adopts {
        self.clone()
    }
}

impl Handler for Adopts {
    fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        self.0.note(format!("up {}", switch.dpid().0));
        Ok(())
    }

    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        self.0.note(format!("packet {} of {}", packet.data()[0], switch.dpid().0));
        Ok(Verdict::Consume)
    }
}

fn lab() -> (Lab, Notes) {
    let app = Adopts::default();
    let notes = app.0.clone();
    (Lab::with_app(app), notes)
}

/// Connects this number of switches, which do not answer requests for flows.
fn silent(lab: &mut Lab, version: Version, switches: usize) -> Vec<SwitchId> {
    let all = (0..switches).map(|n| {
        let switch = lab.connect(0, version, SwitchDescription::new(n as u64 + 1));
        lab.switches[switch].flows = None;
        switch
    });
    let all = all.collect();
    lab.run();
    all
}

/// The switches that were asked for their flows.
fn asked(lab: &Lab) -> Vec<SwitchId> {
    (0..lab.switches.len()).filter(|id| lab.switches[*id].asked_for_flows.is_some()).collect()
}

#[test]
fn the_first_to_come_are_asked_and_the_next_when_one_has_reported() {
    for version in VERSIONS {
        let (mut lab, notes) = lab();
        silent(&mut lab, version, AT_A_TIME + 10);
        assert_eq!(asked(&lab), (0..AT_A_TIME).collect::<Vec<_>>(), "{version}");
        assert_eq!(notes.take(), Vec::<String>::new());
        // One reports, one disconnects.
        lab.report(3, version, &[]);
        lab.hang_up(5);
        lab.run();
        assert_eq!(asked(&lab), (0..AT_A_TIME + 2).collect::<Vec<_>>(), "{version}");
        assert_eq!(notes.take(), ["up 4"]);
        // A waiting switch disconnects: it is left out.
        lab.hang_up(AT_A_TIME + 2);
        lab.run();
        lab.report(4, version, &[]);
        lab.run();
        assert_eq!(asked(&lab).last(), Some(&(AT_A_TIME + 3)), "{version}");
        assert_eq!(asked(&lab).len(), AT_A_TIME + 3, "{version}");
    }
}

#[test]
fn silent_switches_keep_the_others_waiting_for_a_turn_only_and_each_has_its_whole_time() {
    for version in VERSIONS {
        let (mut lab, notes) = lab();
        silent(&mut lab, version, 2 * AT_A_TIME);
        // It waits behind the silent ones, and answers.
        lab.connect(0, version, SwitchDescription::new(1000));
        lab.run();
        lab.advance(TURN - Duration::from_millis(50));
        assert_eq!(asked(&lab).len(), AT_A_TIME, "{version}");
        lab.advance(Duration::from_millis(50));
        assert_eq!(asked(&lab).len(), 2 * AT_A_TIME, "{version}");
        assert_eq!(notes.take(), Vec::<String>::new());
        lab.advance(TURN);
        assert_eq!(notes.take(), ["up 1000"], "{version}");
        // The last silent ones come up 5 s after they were asked, not after they connected.
        lab.advance(Duration::from_secs(5) - 2 * TURN);
        assert_eq!(notes.take().len(), AT_A_TIME, "{version}");
        lab.advance(TURN);
        assert_eq!(notes.take().len(), AT_A_TIME, "{version}");
    }
}

#[test]
fn turns_are_given_back_whatever_ends_them() {
    let (mut lab, _) = lab();
    for round in 0..3 {
        let all = silent(&mut lab, Version::V1_3, AT_A_TIME + 1);
        let is_asked = |lab: &Lab, id: &&SwitchId| lab.switches[**id].asked_for_flows.is_some();
        let asked: Vec<_> = all.iter().filter(|id| is_asked(&lab, id)).copied().collect();
        assert_eq!(asked.len(), AT_A_TIME, "round {round}");
        match round {
            0 => lab.advance(Duration::from_secs(6)),
            1 => asked.iter().for_each(|id| lab.report(*id, Version::V1_3, &[])),
            _ => {}
        }
        all.iter().for_each(|id| lab.hang_up(*id));
        lab.run();
    }
}

#[test]
fn a_demotion_while_a_switch_waits_costs_no_turn() {
    for version in VERSIONS {
        let (mut lab, notes) = lab();
        let all = silent(&mut lab, version, AT_A_TIME + 1);
        let (last, dpid) = (all[AT_A_TIME], Dpid(AT_A_TIME as u64 + 1));
        lab.switches[last].roles = FakeRoles::equal();
        for _ in 0..5 {
            for order in [RoleOrder::Slave { generation_id: None }, RoleOrder::Equal] {
                drop(lab.shared.network().set_role(dpid, order));
                lab.run();
            }
        }
        assert_eq!(asked(&lab).len(), AT_A_TIME, "{version}");
        // Each one gives its turn back.
        for id in all {
            lab.hang_up(id);
        }
        lab.run();
        assert_eq!(notes.take(), Vec::<String>::new());
        let again = silent(&mut lab, version, AT_A_TIME + 1);
        let is_asked = |id: &&SwitchId| lab.switches[**id].asked_for_flows.is_some();
        assert_eq!(again.iter().filter(is_asked).count(), AT_A_TIME, "{version}");
    }
}

#[test]
fn a_switch_that_stands_by_gives_its_turn_and_its_request_back() {
    for version in VERSIONS {
        let (mut lab, _) = lab();
        let all = silent(&mut lab, version, AT_A_TIME + 1);
        lab.switches[all[0]].roles = FakeRoles::equal();
        let standby = RoleOrder::Slave { generation_id: None };
        drop(lab.shared.network().set_role(Dpid(1), standby));
        lab.run();
        assert_eq!(asked(&lab).len(), AT_A_TIME + 1, "{version}");
        // The other ones come up without an answer.
        all[1..].iter().for_each(|id| lab.hang_up(*id));
        lab.advance(Duration::from_secs(65));
        assert_eq!(lab.counters("requests_unanswered"), [0], "{version}");
    }
}

#[test]
fn packets_of_a_switch_that_waits_for_its_turn_reach_the_apps_when_it_is_up() {
    for version in VERSIONS {
        let (mut lab, notes) = lab();
        let all = silent(&mut lab, version, AT_A_TIME + 1);
        let last = all[AT_A_TIME];
        lab.switches[last].flows = Some(Vec::new());
        lab.packet_in(last, 1, None, &[7; 60]);
        lab.run();
        assert_eq!(notes.take(), Vec::<String>::new());
        lab.report(all[0], version, &[]);
        lab.run();
        assert_eq!(notes.take(), ["up 1", "up 65", "packet 7 of 65"], "{version}");
        assert_eq!(lab.counters("packet_ins_early"), [0]);
    }
}
