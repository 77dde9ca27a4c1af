//! The order of apps decides whose flows take effect, whatever the order of installation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellrock_api::{
    App, Cookie, FlowMod, Handler, MacAddr, Match, Network, Port, Result, Switch, SwitchInfo,
    Version,
};
use bellrock_apps::{Learning, LearningSettings, MatchKind};
use bellrock_emulator::lab::Lab;
use bellrock_emulator::topology::tree;
use bellrock_tables::Budget;

/// Drops all packets of a host at every switch, while `blocks` is set.
#[derive(Clone)]
struct Blocker {
    host: MacAddr,
    blocks: Arc<AtomicBool>,
}

impl App for Blocker {
    type Handler = Blocker;
    fn name(&self) -> &'static str {
        "blocker"
    }
    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Blocker {
        self.clone()
    }
}

impl Handler for Blocker {
    fn tick(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        let from_host = Match::any().eth_src(self.host);
        if self.blocks.load(Ordering::Relaxed) {
            // Its lowest priority is above the highest priority of the next app.
            switch.install(&FlowMod::add(&from_host).priority(0))?;
        } else {
            switch.remove(&from_host, Port::ANY)?;
        }
        Ok(())
    }
}

fn learnt(lab: &Lab) -> usize {
    let learning = Cookie::of_app("learning");
    let tables = lab.switch("s1").datapath().tables().iter();
    tables.flat_map(|(_, table)| table.flows()).filter(|(_, f)| learning.owns(f.cookie)).count()
}

#[test]
fn an_app_placed_first_beats_flows_that_the_next_has_installed_and_leaves_them_alone() {
    for version in Version::ALL {
        for matching in [MatchKind::L2, MatchKind::Exact] {
            // By the letter of 1.0 (§3.4), which the emulator follows, a flow without wildcards is
            // above all priorities. Open vSwitch uses the priority alone.
            if (version, matching) == (Version::V1_0, MatchKind::Exact) {
                continue;
            }
            let blocker = Blocker { host: MacAddr::from_u64(1), blocks: Arc::default() };
            let settings =
                LearningSettings { matching, priority: 4095, ..LearningSettings::default() };
            let learning = Learning::new(settings, &Budget::unlimited());
            let lab = Lab::seeded(42).version(version).topology(tree(1, 3));
            let mut lab = lab.app(blocker.clone()).run(learning);
            assert!(lab.ping("h1", "h2"));
            let flows = learnt(&lab);
            assert!(flows > 0);

            blocker.blocks.store(true, Ordering::Relaxed);
            lab.run_for(Duration::from_secs(2));
            assert!(!lab.ping("h1", "h2"), "{version} {matching:?}");
            assert!(learnt(&lab) >= flows, "they are still there");

            // It removes only its own flow.
            blocker.blocks.store(false, Ordering::Relaxed);
            lab.run_for(Duration::from_secs(2));
            assert!(learnt(&lab) >= flows, "{version} {matching:?}");
            assert!(lab.ping("h1", "h2"));
            assert!(lab.ping("h2", "h3"));
        }
    }
}
