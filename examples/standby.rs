//! A controller that stands by, with a learning switch. Lines on standard input order its role at
//! all switches; each answer is a line on standard output:
//!
//! ```text
//! master 7      becomes master, with this generation id
//! slave         stands by
//! equal         shares the switches with others
//! show          lists the switches, and whether they are up or stand by
//! ```
//!
//! Start it twice, give both addresses to each switch (`ovs-vsctl set-controller s1
//! tcp:127.0.0.1:6653 tcp:127.0.0.1:6654`), and make one of them master:
//!
//! ```sh
//! cargo run -p bellrock --features apps --example standby -- 127.0.0.1:6653
//! ```

use std::error::Error;
use std::io::{self, BufRead, Write};

use bellrock::apps::Learning;
use bellrock::role::RoleOrder;
use bellrock::{Controller, Dpid};

const USAGE: &str = "one of: master GENERATION, slave, equal, show";

fn main() -> Result<(), Box<dyn Error>> {
    let address: std::net::SocketAddr =
        std::env::args().nth(1).as_deref().unwrap_or("127.0.0.1:6653").parse()?;
    let controller =
        Controller::builder().app(Learning::default()).listen(address).standby().start()?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["show"] => show(&controller)?,
            ["equal"] => order(&controller, RoleOrder::Equal),
            ["slave"] => order(&controller, RoleOrder::Slave { generation_id: None }),
            ["master", generation] => match generation.parse() {
                Ok(generation_id) => order(&controller, RoleOrder::Master { generation_id }),
                Err(error) => say(&format!("{generation}: {error}; {USAGE}")),
            },
            _ => say(USAGE),
        }
    }
    controller.stop();
    Ok(())
}

/// Orders a role at all switches. A task prints each outcome.
fn order(controller: &Controller, order: RoleOrder) {
    let network = controller.network();
    let mut dpids: Vec<Dpid> = network.switches().iter().map(|info| info.dpid).collect();
    dpids.extend(controller.standbys().iter().map(|info| info.dpid));
    for dpid in dpids {
        let ordered = controller.set_role(dpid, order);
        network.spawn(format!("role at {dpid}"), async move {
            match ordered.await {
                Ok(granted) => say(&format!("{dpid} {}", granted.role)),
                Err(error) => say(&format!("{dpid} failed: {error}")),
            }
        });
    }
}

fn show(controller: &Controller) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for info in controller.network().switches().iter() {
        writeln!(out, "{} up as {}", info.dpid, info.role)?;
    }
    for info in controller.standbys().iter() {
        writeln!(out, "{} stands by as {}", info.dpid, info.role)?;
    }
    writeln!(out, "end")?;
    out.flush()
}

fn say(line: &str) {
    let mut out = io::stdout().lock();
    // The reader may be gone.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
