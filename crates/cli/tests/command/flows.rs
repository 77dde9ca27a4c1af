//! `bellrock flows`: the flows in the switches of an emulated network, and their apps.

use bellrock::Controller;
use bellrock::prelude::*;
use bellrock_session::Versions;
use serde_json::Value;

use crate::odd::odd_flows;
use crate::one_switch::OneSwitch;
use crate::running::{bellrock, free_address};

/// Drops telnet, and rlogin by a flow that ends after a minute without packets.
struct Fence;

impl Handler for Fence {
    fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        let tcp = Match::any().eth_type(0x0800).ip_proto(6);
        switch.install(&FlowMod::add(&tcp.clone().tcp_dst(23)).priority(4000))?;
        switch.install(&FlowMod::add(&tcp.tcp_dst(513)).priority(10).idle_timeout(60))?;
        Ok(())
    }
}

#[test]
fn flows_are_told_with_whose_they_are() {
    for (versions, name) in
        [(Versions::only(Version::V1_0), "1.0"), (Versions::only(Version::V1_3), "1.3")]
    {
        let address = free_address();
        let mut asked = OneSwitch::new(&format!("flows-{name}"), address, versions);
        let fence = Controller::builder().app(per_switch("fence", |_| Fence));
        let controller = asked.controller(fence, address);
        asked.connect(&controller);
        asked.ping();

        let all = asked.json("flows", &[]);
        let of = |app: &str| {
            let apps = all[0]["apps"].as_array().unwrap();
            apps.iter().find(|row| row["app"] == app).unwrap_or(&Value::Null).clone()
        };
        assert_eq!(
            (&all[0]["dpid"], &all[0]["problem"]),
            (&"0000000000000001".into(), &Value::Null)
        );
        assert_eq!(of("fence")["flows"], 2);
        assert_eq!(of("learning")["flows"], 2, "both ways: {all}");
        assert!(of("learning")["packets"].as_u64() > Some(2), "{all}");
        assert_eq!(of("controller")["flows"].as_u64(), (name == "1.3").then_some(1), "table miss");
        assert!(asked.text("flows", &[]).contains("fence"));

        let page = asked.json("flows", &["1"]);
        let count = if name == "1.3" { 5 } else { 4 };
        assert_eq!((&page["version"], &page["total"]), (&name.into(), &count.into()));
        let flows = page["rows"].as_array().unwrap();
        assert_eq!(flows.len(), count);
        let first = &flows[0];
        assert_eq!(first["app"], "fence");
        assert_eq!(first["match"], "tcp,tp_dst=23");
        assert_eq!((&first["actions"], &first["packets"]), (&"drop".into(), &0.into()));
        let cookie = u64::from_str_radix(first["cookie"].as_str().unwrap(), 16).unwrap();
        assert!(Cookie::of_app("fence").owns(cookie));
        assert_eq!(flows[1]["idle_timeout_seconds"], 60);
        assert!(flows.is_sorted_by_key(|flow| std::cmp::Reverse(flow["priority"].as_u64())));

        let text = asked.text("flows", &["1", "--app", "learning"]);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.contains("dl_dst=") && text.contains("output:"), "{text}");
        let text = asked.text("flows", &["0x1", "--limit", "1"]);
        assert!(
            text.ends_with(&format!("(flows 1 to 1 of {count}; --skip 1 lists more)\n")),
            "{text}"
        );
        let text = asked.text("flows", &["1", "--skip", "3"]);
        assert!(text.ends_with(&format!("(flows 4 to {count} of {count})\n")), "{text}");
        assert_eq!(
            asked.text("flows", &["1", "--skip", "9"]),
            format!("no more flows: there are {count}\n")
        );
        assert_eq!(asked.text("flows", &["1", "--app", "foreign"]), "no such flow is there\n");

        let error = asked.error("flows", &["1", "--app", "routing"]);
        assert!(
            error.contains("no app \"routing\" runs here; give one of fence, learning, "),
            "{error}"
        );
        let error = asked.error("flows", &["a2"]);
        assert!(
            error.contains("switch 00000000000000a2 is not connected; `bellrock switches`"),
            "{error}"
        );

        // The next controller does not know that app. Its flows are foreign, and stay.
        controller.stop();
        let controller = asked.controller(Controller::builder(), address);
        asked.connect(&controller);
        let page = asked.json("flows", &["1", "--app", "foreign"]);
        assert_eq!((&page["rows"][0]["app"], &page["total"]), (&Value::Null, &2.into()));
        let text = asked.text("flows", &["1"]);
        assert!(text.contains(&format!("foreign 0x{cookie:016x}")), "{text}");
        assert!(asked.text("flows", &[]).contains("foreign"));
        controller.stop();
    }
}

#[test]
fn flows_that_make_no_sense_are_listed_as_they_are_beside_the_others() {
    for (version, expected) in [
        (Version::V1_0, ["unread(0000000000000000)", "action(0,"]),
        (Version::V1_3, ["oxm(0xffff0606)=00002320abcd", "in_port=1,oxm(0x80000004)=00000002"]),
    ] {
        let address = free_address();
        let mut asked =
            OneSwitch::new(&format!("odd-flows-{version}"), address, Versions::only(version));
        let switch = asked.net.network().topology().switch("s1").unwrap();
        asked.net.network_mut().report_beside(switch, &odd_flows(version).concat());
        let fence = Controller::builder().app(per_switch("fence", |_| Fence));
        let controller = asked.controller(fence, address);
        asked.connect(&controller);
        asked.ping();
        let text = asked.text("flows", &["1", "--app", "foreign"]);
        for part in expected {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.contains("foreign 0x0000000000000002"), "{text}");
        for (app, flows) in [("fence", 2), ("learning", 2)] {
            let page = asked.json("flows", &["1", "--app", app]);
            assert_eq!(page["total"], flows, "{page}");
        }
        controller.stop();
    }
}

#[test]
fn a_question_that_cannot_be_meant_is_refused_before_anybody_is_asked() {
    for (words, said) in [
        (&["flows", "1", "--limit", "0"][..], "give a whole number from 1 to 10000"),
        (&["flows", "--app", "learning"], "<SWITCH>"),
    ] {
        let (status, _, error) = crate::running::output(&mut bellrock(words));
        assert_eq!((status, error.contains(said)), (2, true), "{words:?}: {error}");
    }
}
