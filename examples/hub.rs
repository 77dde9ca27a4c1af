//! A whole controller: a hub.
use bellrock::prelude::*;
struct Hub;

impl Handler for Hub {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) -> Result<Verdict> {
        switch.packet_out(packet, Port::FLOOD)?;
        Ok(Verdict::Consume)
    }
}

fn main() -> bellrock::Result {
    bellrock::run(per_switch("hub", |_| Hub))
}
