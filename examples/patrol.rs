//! An app that runs once in a cluster of three controllers, `a`, `b` and `c`: one of them goes its
//! rounds, and prints a line for each. If it ends, or loses etcd, another one goes on:
//!
//! ```sh
//! cargo run -p bellrock --features cluster,control --example patrol -- \
//!     a /tmp/a.sock http://127.0.0.1:2379
//! ```
//!
//! The same with `b` and `c`, each in a terminal of its own. `bellrock apps --control /tmp/a.sock`
//! shows who goes the rounds.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, SystemTime};

use bellrock::cluster::{ClusterSettings, etcd};
use bellrock::prelude::*;

/// Name of each node, its port for switches, and that for the other nodes.
const NODES: [(&str, u16, u16); 3] = [("a", 6653, 6640), ("b", 6654, 6641), ("c", 6655, 6642)];

/// Time between two rounds.
const EVERY: Duration = Duration::from_millis(200);

const USAGE: &str = "patrol NODE CONTROL_SOCKET ETCD_URL...";

struct Patrol {
    node: String,
}

impl App for Patrol {
    type Handler = ();

    fn name(&self) -> &'static str {
        "patrol"
    }

    fn scope(&self) -> Scope {
        Scope::Once
    }

    fn start(&self, network: &Network) {
        network.spawn("rounds", go_rounds(network.clone(), self.node.clone()));
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
}

async fn go_rounds(network: Network, node: String) {
    let term = network.term().map_or(0, |term| term.number());
    loop {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        println!("round {node} {term} {}", now.as_millis());
        network.sleep(EVERY).await;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (node, control) = (words.next().ok_or(USAGE)?, words.next().ok_or(USAGE)?);
    let on_loopback = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let is_own = |(name, ..): &&(&str, u16, u16)| *name == node;
    let (_, switches, listen) = NODES.iter().find(is_own).ok_or(USAGE)?;
    let peers = NODES.iter().filter(|other| !is_own(other));
    let settings = ClusterSettings {
        name: "patrol".to_owned(),
        node: node.clone(),
        listen: on_loopback(*listen),
        peers: peers.map(|(name, _, port)| ((*name).to_owned(), on_loopback(*port))).collect(),
        apps: Vec::new(),
        tls: None,
        etcd: etcd::Settings::new(words.collect(), "/"),
    };
    bellrock::Controller::builder()
        .app(Patrol { node })
        .listen(on_loopback(*switches))
        .control_socket_at(control)
        .cluster(settings)
        .run()?;
    Ok(())
}
