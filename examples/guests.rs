//! A network for a limited number of hosts at a time. All switches share the seats, and a
//! background task ends each stay.
//!
//! `cargo run -p bellrock --features lab --example guests`

// ANCHOR: app
use std::time::Duration;

use bellrock::prelude::*;

/// Maximum number of hosts that may send at a time.
const SEATS: usize = 3;

/// Duration of a stay.
const STAY: Duration = Duration::from_secs(10);

/// Hosts with a seat and the ends of their stays, oldest first.
#[derive(Clone, Default)]
struct Guests(TVar<Vec<(MacAddr, Duration)>>);

impl App for Guests {
    type Handler = Guests;

    fn start(&self, network: &Network) {
        network.spawn("end stays", end_stays(network.clone(), self.clone()));
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Guests {
        self.clone()
    }
}

impl Handler for Guests {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        let Some(host) = packet.eth_src() else { return Ok(Verdict::Pass) };
        let until = switch.now() + STAY;
        let has_seat = atomically(|tx| {
            let mut seats = tx.read(&self.0)?;
            if seats.iter().any(|(guest, _)| *guest == host) {
                return Ok(true);
            }
            if seats.len() == SEATS {
                return Ok(false);
            }
            seats.push((host, until));
            tx.write(&self.0, seats)?;
            Ok(true)
        })?;
        if has_seat {
            let from = Match::any().eth_src(host);
            switch.install(&FlowMod::add(&from).actions(&[Action::output(Port::FLOOD)]))?;
            switch.packet_out(packet, Port::FLOOD)?;
        }
        Ok(Verdict::Consume)
    }
}

async fn end_stays(network: Network, Guests(seats): Guests) {
    loop {
        // Waits until a host has a seat.
        let (host, until) = transaction(|tx| match tx.read(&seats)?.first() {
            Some(first) => Ok(*first),
            None => tx.retry(),
        })
        .await;
        network.sleep_until(until).await;
        let from = Match::any().eth_src(host);
        let flow = ToSwitch::FlowMod(FlowMod::delete(&from).strict());
        for switch in network.switches().iter() {
            // Errors are ignored: a switch that is gone comes back without flows.
            let _ = network.send(switch.dpid, &flow);
        }
        transaction(|tx| {
            tx.modify(&seats, |mut seats| {
                seats.remove(0);
                seats
            })
        })
        .await;
    }
}
// ANCHOR_END: app

fn main() -> bellrock::Result {
    bellrock::run(Guests::default())
}

#[cfg(test)]
mod tests {
    use bellrock::lab::{Lab, tree};

    use super::*;

    #[test]
    fn a_fourth_host_gets_its_seat_when_a_stay_ends() {
        let mut lab = Lab::seeded(1).topology(tree(2, 2)).run(Guests::default());
        assert!(lab.ping("h1", "h2"));
        assert!(lab.ping("h3", "h1"));
        assert!(!lab.ping("h4", "h1"), "three others have the seats");
        assert!(lab.ping("h3", "h2"));

        lab.run_for(STAY);
        assert!(lab.flows("s2").iter().all(|flow| !flow.contains("dl_src")));
        assert!(lab.ping("h4", "h1"));
        assert_eq!(lab.tasks()[0].name, "end stays");
    }
}
