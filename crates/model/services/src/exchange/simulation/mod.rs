//! Several controllers, their links and hosts, on a virtual clock, with faults by seed.
//!
//! Discovery, host tracking and the exchange are those of the product. The switches, the cables,
//! the connections between the controllers, and who is master of a switch are a model.
//!
//! What must hold:
//! - While no cable is cut and every connection stands, no link goes down at any controller,
//!   whichever controllers end, stop, or give switches to each other.
//! - Some time after the last fault all controllers know the same links and hosts: those of the
//!   network.
//!
//! `SEED=7 cargo test -p bellrock-services --lib simulation` plays one seed, and prints what
//! happens.

mod faults;
mod frames;
#[path = "../../../tests/shared/simulation.rs"]
mod shared;
mod world;

use std::net::IpAddr;
use std::time::Instant;

use bellrock_api::{Dpid, HostId, MacAddr, Port, SwitchPort};
use shared::failures;
use world::World;

use super::Digest;

/// Number of seeds that are played.
const SEEDS: u64 = 120;
/// Number of seeds within which a fault that is put back must show.
const SEEDS_FOR_BROKEN: u64 = 40;

/// What is wrong with the controllers, on purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spoilt {
    /// Digests are not compared.
    has_no_digests: bool,
    /// What a peer has reported of ports is kept when the switch gets another master.
    keeps_reported: bool,
    /// The streams of frames begin at the same number at each start.
    same_streams: bool,
}

/// What happens to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Faults {
    /// Controllers end, start again, stop for a moment, and give switches to others. Frames are
    /// slow.
    OfControllers,
    /// Cables, connections and frames are lost too.
    OfAll,
}

/// Plays seeds from 1 up to `count` on all cores, and returns what failed.
fn play(count: u64, faults: Faults, spoilt: Spoilt) -> Vec<String> {
    let only = std::env::var("SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    let seeds = only.unwrap_or(1)..=only.unwrap_or(count);
    failures(seeds, |seed| World::new(seed, faults, spoilt, only.is_some()).play())
}

fn assert_none(failures: &[String]) {
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn all_controllers_know_the_same_links_and_hosts_after_all_faults() {
    assert_none(&play(SEEDS, Faults::OfAll, Spoilt::default()));
}

#[test]
fn no_link_goes_down_when_controllers_restart_stop_and_move_switches() {
    assert_none(&play(SEEDS, Faults::OfControllers, Spoilt::default()));
}

/// The digests heal what nobody thought of. What was thought of needs no healing.
#[test]
fn links_need_no_digests_when_controllers_restart_stop_and_move_switches() {
    let spoilt = Spoilt { has_no_digests: true, ..Spoilt::default() };
    assert_none(&play(SEEDS, Faults::OfControllers, spoilt));
}

#[test]
fn controllers_that_keep_reports_of_former_masters_are_found() {
    let spoilt = Spoilt { has_no_digests: true, keeps_reported: true, ..Spoilt::default() };
    let failures = play(SEEDS_FOR_BROKEN, Faults::OfControllers, spoilt);
    assert!(failures.iter().any(|failure| failure.contains("a link is down")), "{failures:?}");
}

#[test]
fn controllers_whose_streams_begin_at_the_same_number_are_found() {
    let spoilt = Spoilt { has_no_digests: true, same_streams: true, ..Spoilt::default() };
    let failures = play(SEEDS_FOR_BROKEN, Faults::OfControllers, spoilt);
    assert!(failures.iter().any(|failure| failure.contains("out of order")), "{failures:?}");
}

#[test]
#[ignore = "prints how long it takes"]
fn time_of_a_digest_of_100_000_hosts() {
    let addresses: [IpAddr; 1] = ["10.0.0.1".parse().unwrap()];
    for _ in 0..5 {
        let started = Instant::now();
        let mut digest = Digest::default();
        for n in 0..100_000 {
            let at = SwitchPort::new(Dpid(n % 100), Port(1));
            digest.add_host(HostId::new(MacAddr::from_u64(n), None), at, &addresses);
        }
        println!("{:?} {:x}", started.elapsed(), digest.0[0]);
    }
}
