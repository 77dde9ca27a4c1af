//! A controller that stands by, and what `bellrock switches` lists of it.

use bellrock::role::{ControllerRole, RoleOrder};
use bellrock::{Controller, Dpid, Version};
use bellrock_emulator::live::LiveNetwork;
use bellrock_session::Versions;

use crate::one_switch::OneSwitch;
use crate::running::{PATIENCE, free_address};

#[test]
fn a_standby_is_listed_with_its_role_and_comes_up_as_master() {
    for version in Version::ALL {
        let address = free_address();
        let mut asked =
            OneSwitch::new(&format!("standby-{version}"), address, Versions::only(version));
        let controller = asked.controller(Controller::builder().standby(), address);
        // The role that the switch has confirmed.
        let is_slave = |_: &LiveNetwork| {
            controller.standbys().iter().any(|info| info.role == ControllerRole::Slave)
        };
        assert!(asked.net.run_until(PATIENCE, is_slave).unwrap(), "it does not become slave");

        let rows = asked.json("switches", &[]);
        assert_eq!((&rows[0]["role"], &rows[0]["standby"]), (&"slave".into(), &true.into()));
        assert!(asked.text("switches", &[]).contains("slave, stands by"));
        let error = asked.error("flows", &["1"]);
        assert!(error.contains("stands by at switch"), "a standby asks for no flows: {error}");

        drop(controller.set_role(Dpid(1), RoleOrder::Master { generation_id: 1 }));
        asked.connect(&controller);
        let rows = asked.json("switches", &[]);
        assert_eq!((&rows[0]["role"], &rows[0]["standby"]), (&"master".into(), &false.into()));
        asked.ping();
        controller.stop();
    }
}
