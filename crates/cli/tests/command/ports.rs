//! `bellrock ports` and `queues`: the ports of an emulated switch and their queues, with the
//! counters that it reports.

use bellrock::{Controller, Version};
use bellrock_session::Versions;
use serde_json::{Value, json};

use crate::one_switch::{OneSwitch, QUEUE};
use crate::running::{Place, free_address};
use crate::terminal::Pty;

#[test]
fn ports_have_the_counters_that_the_switch_reports() {
    for version in Version::ALL {
        let address = free_address();
        let mut asked =
            OneSwitch::new(&format!("ports-{version}"), address, Versions::only(version));
        let controller = asked.controller(Controller::builder(), address);
        asked.connect(&controller);
        asked.ping();

        let rows = asked.json("ports", &["1"]);
        let rows = rows.as_array().unwrap();
        let hosts = &rows[..2];
        for (row, number) in hosts.iter().zip(["1", "2"]) {
            assert_eq!((&row["dpid"], &row["port"]), (&"0000000000000001".into(), &number.into()));
            assert_eq!((&row["state"], &row["problem"]), (&"up".into(), &Value::Null));
            // Three requests and replies of ARP and ICMP passed in both directions, and more.
            for counter in ["rx_packets", "tx_packets"] {
                assert!(row["counters"][counter].as_u64() >= Some(3), "{row}");
            }
            assert!(row["counters"]["rx_bytes"].as_u64() >= Some(3 * 60), "{row}");
            let has_age = !row["counters"]["age_seconds"].is_null();
            assert_eq!(has_age, version != Version::V1_0, "only 1.3 reports it: {row}");
        }
        // Published once a second.
        let packet_ins = |row: &Value| row["packet_ins"].as_u64().unwrap();
        crate::running::until("packet-ins of both hosts are counted", || {
            let rows = asked.json("ports", &[]);
            rows.as_array().unwrap()[..2].iter().all(|row| packet_ins(row) >= 1)
        });
        let switches = asked.json("switches", &[]);
        let all = switches[0]["packet_ins"].as_u64().unwrap();
        let of_ports: u64 = switches[0]["ports"].as_array().unwrap().iter().map(packet_ins).sum();
        assert!((2..=all).contains(&of_ports), "{switches}");
        let before = hosts[0]["counters"]["rx_packets"].as_u64();
        asked.ping();
        let after = asked.json("ports", &[]);
        assert!(
            after[0]["counters"]["rx_packets"].as_u64() > before,
            "each answer asks the switch"
        );

        let text = asked.text("ports", &["1"]);
        assert!(text.starts_with("SWITCH"), "{text}");
        assert_eq!(text.lines().count(), rows.len() + 1, "{text}");
        let error = asked.error("ports", &["a2"]);
        assert!(error.contains("switch 00000000000000a2 is not connected"), "{error}");
        controller.stop();
    }
}

#[test]
fn queues_have_the_counters_that_the_switch_reports() {
    for version in Version::ALL {
        let address = free_address();
        let mut asked =
            OneSwitch::new(&format!("queues-{version}"), address, Versions::only(version));
        let controller = asked.controller(Controller::builder(), address);
        asked.connect(&controller);
        let rows = asked.json("queues", &["--port", "2"]);
        let [row] = &rows.as_array().unwrap()[..] else { panic!("{rows}") };
        let age = row["age_seconds"].clone();
        assert_eq!(age.is_null(), version == Version::V1_0, "only 1.3 reports it: {row}");
        let expected = json!({
            "dpid": "0000000000000001", "switch_name": null, "port": "2", "queue": QUEUE,
            "rate_kbps": 10_000_000, "tx_packets": 0, "tx_bytes": 0, "tx_errors": 0,
            "age_seconds": age,
        });
        assert_eq!(row, &expected);
        let all = asked.json("queues", &["--switch", "1"]);
        let ports: Vec<_> = all.as_array().unwrap().iter().map(|row| &row["port"]).collect();
        assert_eq!(ports, ["1", "2", "3"], "by port");
        let text = asked.text("queues", &[]);
        assert!(text.starts_with("SWITCH") && text.lines().count() == 4, "{text}");
        let text = asked.text("queues", &["--csv"]);
        assert!(text.contains("\r\n0000000000000001,3,7,10000000,0,0,0,"), "{text}");
        let error = asked.error("queues", &["--switch", "1", "--port", "9"]);
        assert!(error.contains("switch 0000000000000001 has no port 9"), "{error}");
        assert_eq!(asked.text("queues", &["--port", "9"]), "no port has a queue\n");
        controller.stop();
    }
}

#[test]
fn a_port_without_a_link_is_listed_as_down() {
    let address = free_address();
    let mut asked = OneSwitch::new("ports-down", address, Versions::ALL);
    let controller = asked.controller(Controller::builder(), address);
    asked.connect(&controller);
    let topology = asked.net.network().topology();
    let [switch, host] = ["s1", "h2"].map(|name| topology.node(name).unwrap());
    let link = topology.links_between(switch, host).next().unwrap();
    asked.net.network_mut().set_link(link, false);
    let state = |asked: &mut OneSwitch| asked.json("ports", &["1"])[1]["state"].clone();
    crate::running::until("the link is down", || state(&mut asked) == "link_down");
    assert!(asked.text("ports", &[]).contains("link down"));
    controller.stop();
}

#[test]
fn a_terminal_is_shown_as_much_of_a_table_as_it_has_room_for() {
    let place = Place::new("narrow-terminal");
    let controller = crate::running::Controller::start(&place, &[]);
    for (columns, has_all) in [(30, false), (100, true), (400, true)] {
        let mut terminal = Pty::open(columns, 24);
        assert!(terminal.start(controller.command("latencies")).ended().success());
        let shown = terminal.read();
        assert_eq!(!shown.contains("(without IS"), has_all, "{columns}: {shown}");
        assert_eq!(shown.contains("From"), has_all, "{columns}: {shown}");
        let mut rows = shown.lines().filter(|line| !line.starts_with('('));
        let has_room = |line: &str| line.chars().count() <= usize::from(columns);
        assert!(!has_all || rows.all(has_room), "{columns}: {shown}");
    }
    controller.stop();
}
