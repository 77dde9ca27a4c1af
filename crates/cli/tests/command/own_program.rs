//! A controller in your own program: a chain of apps, their services, and the control socket.

use std::time::{Duration, Instant};

use bellrock::apps::Routing;
use bellrock::prelude::*;
use bellrock_emulator::host::PingSettings;
use bellrock_emulator::live::{LiveNetwork, LiveSettings};
use bellrock_emulator::topology::{HostIndex, tree};

use crate::running::{PATIENCE, Place, bellrock, output};

/// Fails at each packet. The next app gets the packet then.
struct Failing;

impl Handler for Failing {
    fn packet_in(&mut self, switch: &mut Switch<'_>, _: &PacketIn<'_>) -> Result<Verdict> {
        Err(Error::Full(switch.dpid()).into())
    }
}

fn pings(net: &mut LiveNetwork, from: HostIndex, to: HostIndex) -> bool {
    let settings =
        PingSettings { count: 1, timeout: Duration::from_millis(200), ..Default::default() };
    let ping = net.network_mut().ping(from, to, settings).unwrap();
    assert!(net.run_until(PATIENCE, |net| net.network().host(from).is_ping_over(ping)).unwrap());
    net.network_mut().end_ping(from, ping).unwrap().complete()
}

#[test]
fn a_chain_of_ones_own_runs_with_its_services_and_can_be_asked() {
    let place = Place::new("own-program");
    let socket = place.file("control.sock");
    let controller = bellrock::Controller::builder()
        .app(per_switch("failing", |_| Failing))
        .app(Routing::default())
        .listen(([127, 0, 0, 1], 0))
        .control_socket_at(&socket)
        .start()
        .unwrap();
    let [address] = controller.addresses() else { panic!("one address") };

    let topology = tree(2, 2).build().unwrap();
    let [from, to] = ["h1", "h4"].map(|name| topology.host(name).unwrap());
    let mut net = LiveNetwork::new(&topology, LiveSettings::new(*address)).unwrap();
    let began = Instant::now();
    while controller.network().topology().load().links.len() < 4 {
        net.run_for(Duration::from_millis(10)).unwrap();
        assert!(began.elapsed() < PATIENCE, "discovery finds no links");
    }
    // Pings before the end of the first round of discovery get no answer.
    let began = Instant::now();
    while !pings(&mut net, from, to) {
        assert!(began.elapsed() < PATIENCE, "routing does not get what the first app fails at");
    }

    let asked = |words: &[&str]| {
        let (status, answer, error) = output(bellrock(words).args(["--control", &socket]));
        assert_eq!(status, 0, "{error}");
        answer
    };
    let status = asked(&["status"]);
    assert!(status.contains("failing, routing"), "{status}");
    assert!(!status.contains("table memory"), "its apps have no budget in common: {status}");
    assert!(asked(&["apps"]).contains("discovery"), "what routing needs is in front");
    assert_eq!(asked(&["links"]).lines().count(), 5);
    let counters = asked(&["counters"]);
    let errors = counters.lines().find_map(|line| line.strip_prefix("handler_errors"));
    assert!(errors.unwrap().trim().parse::<u64>().unwrap() > 0, "{counters}");
    let (status, _, error) = output(bellrock(&["release", "1"]).args(["--control", &socket]));
    assert_eq!(status, 1);
    assert!(
        error.contains("this needs the app `bandwidth`, which this controller does not run"),
        "{error}"
    );

    drop(net);
    controller.stop();
    let (status, _, error) = output(bellrock(&["status"]).args(["--control", &socket]));
    assert_eq!((status, error.contains("no controller answers")), (1, true), "{error}");
}
