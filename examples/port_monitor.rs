//! A monitor of ports: it reports a port that carries more than a limit, and when it no longer
//! does.
//!
//! `cargo run -p bellrock --features apps,lab --example port_monitor 100`

// ANCHOR: app
use std::collections::HashMap;
use std::time::Duration;

use bellrock::prelude::*;

/// Time between two requests.
const EVERY: Duration = Duration::from_secs(5);

/// The app, with its setting.
struct Monitor {
    /// Rate above which a port is busy, in bytes per second.
    limit: u64,
}

impl App for Monitor {
    type Handler = Ports;

    fn name(&self) -> &'static str {
        "port_monitor"
    }

    fn wants_packet_ins(&self) -> bool {
        false
    }

    fn switch_up(&self, network: &Network, _: &SwitchInfo) -> Ports {
        Ports {
            network: network.clone(),
            limit: self.limit,
            next_request: Duration::ZERO,
            seen: HashMap::new(),
        }
    }
}

/// The ports of one switch.
struct Ports {
    network: Network,
    limit: u64,
    next_request: Duration,
    seen: HashMap<Port, Seen>,
}

/// A port, as the last reply reported it.
struct Seen {
    at: Duration,
    rx_bytes: u64,
    tx_bytes: u64,
    busy: bool,
}

impl Seen {
    /// The rate of the busier direction, in bytes per second. A counter is smaller than before if
    /// the switch has restarted, and all ones if the switch does not have it: no bytes.
    fn rate_since(&self, before: &Seen) -> u64 {
        let received = self.rx_bytes.saturating_sub(before.rx_bytes);
        let sent = self.tx_bytes.saturating_sub(before.tx_bytes);
        (received.max(sent) as f64 / (self.at - before.at).as_secs_f64()) as u64
    }
}

impl Handler for Ports {
    /// Requests the counters of all ports.
    fn tick(&mut self, switch: &mut Switch) -> Result {
        if switch.now() >= self.next_request {
            self.next_request = switch.now() + EVERY;
            switch.request(RequestBody::PortStats(Port::ANY))?;
        }
        Ok(())
    }

    /// The whole reply, also of a switch that sends it in parts.
    fn reply(&mut self, switch: &mut Switch, _: Xid, reply: &ReplyBody) -> Result {
        let ReplyBody::PortStats(ports) = reply else { return Ok(()) };
        for stats in ports.iter() {
            let counters = &stats.counters;
            let (at, rx_bytes, tx_bytes) = (switch.now(), counters.rx_bytes, counters.tx_bytes);
            let mut seen = Seen { at, rx_bytes, tx_bytes, busy: false };
            if let Some(before) = self.seen.get(&stats.port) {
                let rate = seen.rate_since(before);
                seen.busy = rate > self.limit;
                let port = format!("switch {} port {}", switch.dpid(), stats.port);
                let event = |name| AppEvent::new(name, &format!("{port}: {rate} bytes/s"));
                match (before.busy, seen.busy) {
                    (false, true) => {
                        self.network.publish(event("port_busy").alarming_until_ended(&port));
                    }
                    (true, false) => {
                        self.network.publish(event("port_not_busy").ending("port_busy", &port));
                    }
                    _ => {}
                }
            }
            self.seen.insert(stats.port, seen);
        }
        Ok(())
    }

    fn unanswered(&mut self, switch: &mut Switch, _: Xid) -> Result {
        Err(HandlerError::new(format!("switch {} reports no counters of ports", switch.dpid())))
    }
}
// ANCHOR_END: app

// ANCHOR: main
fn main() -> bellrock::Result {
    let limit = std::env::args().nth(1).and_then(|word| word.parse().ok());
    bellrock::Controller::builder()
        .app(Monitor { limit: limit.unwrap_or(1_000_000) })
        .app(bellrock::apps::Learning::default())
        .run()
}
// ANCHOR_END: main

// ANCHOR: test
#[cfg(test)]
mod tests {
    use bellrock::apps::Learning;
    use bellrock::lab::{Lab, linear, on_both_versions};

    use super::*;

    /// The names of the events that apps have published so far.
    fn app_events(lab: &Lab) -> Vec<String> {
        let events = lab.controller().unwrap().events().latest(100).into_iter();
        let names = events.filter_map(|record| match record.event {
            Event::App { event, .. } => Some(event.name().to_owned()),
            _ => None,
        });
        names.collect()
    }

    on_both_versions!(a_busy_port_is_reported_once_and_its_end_too);

    fn a_busy_port_is_reported_once_and_its_end_too(version: Version) {
        let lab = Lab::seeded(42).topology(linear(2, 1)).version(version);
        let mut lab = lab.app(Monitor { limit: 10_000 }).run(Learning::default());
        assert!(lab.ping("h1", "h2"));
        lab.run_for(4 * EVERY);
        assert_eq!(app_events(&lab), [] as [String; 0], "a ping is not much");

        // 1,000 datagrams a second, for 20 seconds.
        lab.udp("h1", "h2", 20_000, Duration::from_millis(1));
        lab.run_for(4 * EVERY);
        // Two ports of each of the two switches.
        assert_eq!(app_events(&lab), [["port_busy"; 4], ["port_not_busy"; 4]].concat());
        assert_eq!(lab.counter("handler_errors"), 0);
    }
}
// ANCHOR_END: test
