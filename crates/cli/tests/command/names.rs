//! Names of switches and hosts, in the requests and answers of an emulated network of one switch.

use bellrock::apps::bandwidth::{Bandwidth, BandwidthSettings, Kbps, Reservations};
use bellrock::apps::quarantine::{BlockLists, Quarantine};
use bellrock::names::Names;
use bellrock::{Controller, Dpid, MacAddr, Version};
use bellrock_emulator::live::LiveNetwork;
use bellrock_session::Versions;
use serde_json::Value;

use crate::one_switch::OneSwitch;
use crate::running::{PATIENCE, Place, bellrock, free_address, output};

/// Names the switch and its two hosts.
fn names(switch: &str, macs: &[MacAddr; 2]) -> Names {
    let mut names = Names::default();
    names.add_switch(switch, Dpid(1)).unwrap();
    for (name, mac) in ["web", "db"].into_iter().zip(macs) {
        names.add_host(name, *mac).unwrap();
    }
    names
}

#[test]
fn switches_and_hosts_are_named_in_requests_and_in_answers() {
    let address = free_address();
    let mut asked = OneSwitch::new("names", address, Versions::only(Version::V1_3));
    let topology = asked.net.network().topology();
    let macs = ["h1", "h2"]
        .map(|name| topology.hosts().iter().find(|host| host.name == name).unwrap().mac);
    let (lists, mac) = (BlockLists::default(), macs[0].to_string());
    let rate = Some(Kbps(100_000));
    let reservations =
        Reservations::new(BandwidthSettings { rate, ..BandwidthSettings::default() });
    let builder = Controller::builder()
        .names(names("s1", &macs))
        .app(Quarantine::new(&lists))
        .orders(&lists)
        .app(Bandwidth::new(&reservations))
        .orders(&reservations);
    let controller = asked.controller(builder, address);
    asked.connect(&controller);
    // Hosts are tracked at ports that lead to no switch.
    let is_settled = |_: &LiveNetwork| controller.network().topology().load().settled;
    assert!(asked.net.run_until(PATIENCE, is_settled).unwrap(), "discovery does not end");
    asked.ping();

    // Requests: a name is as good as a datapath id.
    let by_name = asked.json("flows", &["s1"]);
    assert_eq!((&by_name["dpid"], &by_name["name"]), (&"0000000000000001".into(), &"s1".into()));
    assert_eq!(by_name["flows_in_all"], asked.json("flows", &["1"])["flows_in_all"]);
    assert_eq!(asked.json("ports", &["s1"])[0]["switch_name"], "s1");

    // Answers: the name stands beside the datapath id, or in place of it.
    let text = asked.text("switches", &[]);
    assert!(text.contains("s1    0000000000000001"), "{text}");
    for command in ["flows", "ports", "topology"] {
        let text = asked.text(command, &[]);
        assert!(text.lines().nth(1).unwrap().starts_with("s1 "), "{command}: {text}");
    }
    let rows = asked.json("hosts", &[]);
    let host = rows.as_array().unwrap().iter().find(|row| row["name"] == "web").unwrap();
    assert_eq!((&host["mac"], &host["switch_name"]), (&mac.as_str().into(), &"s1".into()));
    assert!(asked.text("hosts", &[]).contains(&format!("web   {mac}")));

    let events = asked.json("events", &["--kind", "switch_up"]);
    let text = events[0]["text"].as_str().unwrap();
    assert!(text.starts_with("switch s1 "), "{text}");

    // Hosts are named in orders.
    let mut reserved = Value::Null;
    for (from, to) in [("web", "db"), ("s1:2", "web")] {
        reserved = asked.json("reserve", &[from, to, "1M"]);
    }
    assert_eq!((&reserved["from"], &reserved["to"]), (&"db".into(), &"web".into()));
    let listed = asked.json("reservations", &[]);
    assert_eq!(listed[0]["path"], serde_json::json!(["s1:2"]), "{listed}");
    let blocked = asked.json("quarantine", &["add", "web"]);
    assert_eq!(blocked["blocked"], mac);
    assert_eq!(asked.json("quarantine", &["list"])["rows"][0]["name"], "web");
    assert_eq!(asked.json("quarantine", &["remove", "web"])["let_back"], mac);

    // What is not named.
    for (command, words, error) in [
        ("flows", &["s2"][..], "no switch has the name \"s2\"; `switches` in the configuration"),
        ("flows", &["s2"], "`bellrock switches` lists the datapath ids, which do as well"),
        ("ports", &["s2"], "no switch has the name \"s2\""),
        ("quarantine", &["add", "wbe"], "no host has the name \"wbe\"; `hosts` in the"),
        ("reserve", &["wbe", "db", "1M"], "no host has the name \"wbe\""),
        ("reserve", &["web", "s2:1", "1M"], "no switch has the name \"s2\""),
        ("reserve", &["web@0", "db", "1M"], "names no host"),
    ] {
        let message = asked.error(command, words);
        assert!(message.contains(error), "{command} {words:?}: {message}");
    }

    // Names change while it runs.
    controller.set_names(names("core-1", &macs));
    assert_eq!(asked.json("flows", &["core-1"])["name"], "core-1");
    assert!(asked.error("flows", &["s1"]).contains("no switch has the name \"s1\""));
    controller.stop();
}

#[test]
fn names_come_from_the_configuration() {
    let place = Place::new("configured-names");
    let file = place.write("bellrock.yaml", "switches: {core-1: a1}\napps: [static, learning]\n");
    let controller = crate::running::Controller::start(&place, &["--config", &file]);
    let control = place.file("control.sock");
    let error = |switch: &str| {
        let (status, _, error) = output(&mut bellrock(&["flows", switch, "--control", &control]));
        assert_eq!(status, 1);
        error
    };
    assert!(error("core-1").contains("switch core-1 is not connected"));
    assert!(error("core-2").contains("no switch has the name \"core-2\""));
    for (switch, why) in [
        (
            "all",
            "SWITCH: an entry is for one switch, and \"all\" is none; give each switch an entry",
        ),
        ("core-2", "SWITCH: no switch has the name \"core-2\""),
    ] {
        let add = ["static", "add", "telnet", switch, "--actions", "drop", "--control", &control];
        let (status, _, error) = output(&mut bellrock(&add));
        assert!(status == 1 && error.contains(why), "{error}");
    }
    controller.stop();
}

#[test]
fn text_that_is_neither_name_nor_address_is_refused_before_anybody_is_asked() {
    for words in [&["quarantine", "add", "a b"][..], &["reserve", "a b", "db", "1M"]] {
        let (status, _, error) = output(&mut bellrock(words));
        assert_eq!((status, error.contains("\"a b\" ")), (2, true), "{words:?}: {error}");
    }
}
