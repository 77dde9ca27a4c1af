//! Invariants of compiled tables, checked before they are installed.
//!
//! # What it is
//! [`check()`] follows packets through the tables of a switch, and compares where they leave with
//! what the intent and the facts say ([`Wanted`]). [`check_plan()`] does so after each step of a
//! [`Plan`]: there a packet may be treated at each stage as the network was or as it will be. What
//! does not hold is a [`Violation`], with the packet that shows it, its ports, and its flows.
//!
//! # What it is not
//! It does not use the compiler: what is right follows from the intent. It is no proof for any
//! flows, but made for this pipeline: the packets that it follows are one for each class that the
//! intent or a flow tells apart, for each port that differs from others (`packets`). It looks at
//! one switch, not at the network between switches; copies to the controller do not count.

mod packet;
mod packets;
mod references;
mod state;
mod violation;
mod walk;
mod wanted;

use std::collections::BTreeSet;

use bellrock_api::{Change, Flow};
use bellrock_openflow::{Action, Field};

pub use packet::Packet;
use packets::{Chooser, Which};
use state::Held;
pub use state::State;
pub use violation::{Invariant, MAX_VIOLATIONS, Violation, Violations};
pub use walk::Walk;
pub use wanted::Wanted;
use wanted::{Allowed, End, allowed};

use crate::compile::{Facts, Tables};
use crate::diff::{Plan, Step};
use crate::intent::{Intent, SwitchId};

/// Checks the tables that an intent and facts were compiled to.
///
/// # Errors
/// [`Violations`]: what does not hold.
pub fn check(
    intent: &Intent,
    switch: SwitchId,
    facts: &Facts,
    tables: &Tables,
) -> Result<(), Violations> {
    match Wanted::new(intent, switch, facts) {
        Some(wanted) => check_state(&wanted, &State::of(tables)),
        None => Ok(()),
    }
}

/// Checks what a switch holds.
///
/// # Errors
/// [`Violations`]: what does not hold.
pub fn check_state(wanted: &Wanted<'_>, state: &State<'_>) -> Result<(), Violations> {
    let mut checker = Checker::new(std::slice::from_ref(wanted), state, None);
    state.flows().for_each(|held| checker.references(held));
    checker.packets(Which::All);
    checker.result()
}

/// Carries out a plan on a state, and checks it after each step: only packets that the step may
/// concern. After the last one, packets of all ports that the change concerns have to be as the
/// new network wants them.
///
/// # Errors
/// [`Violations`]: what does not hold, from the first step that has any.
pub fn check_plan<'t>(
    old: &Wanted<'_>,
    new: &Wanted<'_>,
    state: &mut State<'t>,
    plan: &'t Plan,
) -> Result<(), Violations> {
    let nothing = BTreeSet::new();
    let both = [old.clone(), new.clone()];
    let mut touched: Vec<&'t Flow> = Vec::new();
    for (place, step) in plan.steps().iter().enumerate() {
        let Step::Change { change, .. } = step else { continue };
        let flows = concerned(state, change);
        state.step(step);
        let mut checker = Checker::new(&both, state, Some(place + 1));
        match change {
            Change::Add(flow) => state.like(flow).for_each(|held| checker.references(held)),
            Change::Remove(flow) if state.has_flows(flow.table) => {}
            Change::AddGroup(_) | Change::AddMeter(_) | Change::ModifyMeter(_) => {}
            _ => state.flows().for_each(|held| checker.references(held)),
        }
        checker.packets(Which::Meeting(&flows, &nothing));
        checker.result()?;
        touched.extend(flows);
    }
    let mut checker = Checker::new(&both[1..], state, Some(plan.steps().len()));
    checker.packets(Which::Meeting(&touched, &changed_ports(old, new)));
    checker.result()
}

/// The flows whose packets a change concerns.
fn concerned<'t>(state: &State<'t>, change: &'t Change) -> Vec<&'t Flow> {
    let id = match change {
        Change::Add(flow) | Change::Remove(flow) => return vec![flow],
        Change::AddGroup(group) | Change::ModifyGroup(group) => group.id,
        Change::RemoveGroup(id) => *id,
        _ => return Vec::new(),
    };
    let uses = |flow: &Flow| flow.applied().contains(&Action::Group(id));
    state.flows().map(|held| held.flow).filter(|flow| uses(flow)).collect()
}

/// The ports that are declared otherwise, or whose state is another.
fn changed_ports(old: &Wanted<'_>, new: &Wanted<'_>) -> BTreeSet<u32> {
    let ports = |wanted: &Wanted<'_>| -> Vec<u32> {
        wanted.switch.ports.iter().map(|port| port.number).collect()
    };
    let mut all: BTreeSet<u32> = ports(old).into_iter().chain(ports(new)).collect();
    let vids: BTreeSet<u16> = old.vids().chain(new.vids()).collect();
    all.retain(|port| {
        let mut tags = std::iter::once(None).chain(vids.iter().copied().map(Some));
        tags.any(|tag| old.kind(*port, tag) != new.kind(*port, tag))
    });
    all
}

/// Checks one state of a switch.
struct Checker<'c, 'n, 't> {
    /// What may be wanted: one, or in the middle of a change two.
    wanted: &'c [Wanted<'n>],
    state: &'c State<'t>,
    after: Option<usize>,
    found: Vec<Violation>,
}

/// What is wrong with a way of a packet.
struct Fault {
    invariant: Invariant,
    ports: Vec<u32>,
    why: String,
}

impl<'c, 'n, 't> Checker<'c, 'n, 't> {
    fn new(wanted: &'c [Wanted<'n>], state: &'c State<'t>, after: Option<usize>) -> Self {
        Checker { wanted, state, after, found: Vec::new() }
    }

    fn result(self) -> Result<(), Violations> {
        if self.found.is_empty() { Ok(()) } else { Err(Violations(self.found)) }
    }

    fn add(&mut self, packet: Packet, flows: Vec<Flow>, fault: Fault) {
        let Fault { invariant, ports, why } = fault;
        if self.found.len() < MAX_VIOLATIONS {
            let after = self.after;
            self.found.push(Violation { invariant, packet, ports, flows, why, after });
        }
    }

    /// Checks that all that a flow refers to exists.
    fn references(&mut self, held: &Held<'_>) {
        let flow = held.flow;
        let tables = self.wanted.iter().map(Wanted::tables).min().unwrap_or(0);
        for (invariant, why) in references::missing(self.state, held, tables) {
            let port = flow.matching.value(Field::InPort).map_or(1, |port| port as u32);
            let vid = state::scope(&flow.matching).1.filter(|vid| *vid != 0);
            let packet = Packet::inside(port, vid.map(|vid| vid & 0x0fff), &flow.matching);
            self.add(packet, vec![flow.clone()], Fault { invariant, ports: Vec::new(), why });
        }
    }

    /// Follows packets.
    fn packets(&mut self, which: Which<'_>) {
        let Some(last) = self.wanted.last() else { return };
        let (wanted, state) = (self.wanted, self.state);
        Chooser::new(wanted, state, which).visit(&mut |packet| {
            let walks = state.walks(packet, last.facts);
            if walks.iter().all(|walk| walk.sent.is_empty()) && wanted.len() > 1 {
                return true;
            }
            let allowed = allowed(wanted, packet);
            for walk in &walks {
                if let Some(fault) = fault(&allowed, packet, walk, wanted.len() == 1) {
                    let flows = walk.flows.iter().map(|flow| (*flow).clone()).collect();
                    self.add(packet.clone(), flows, fault);
                }
            }
            self.found.len() < MAX_VIOLATIONS
        });
    }
}

/// What is wrong with a way of a packet, if something is. `is_exact`: it has to reach all ports.
fn fault(allowed: &Allowed<'_>, packet: &Packet, walk: &Walk<'_>, is_exact: bool) -> Option<Fault> {
    let mut named = vec![false; allowed.named.len()];
    let mut left = vec![false; allowed.exits.len()];
    // Lists of outputs and of exits mostly have one order.
    let mut next = 0;
    for sent in &walk.sent {
        let (port, frame) = (sent.port, walk.packet(*sent));
        let is_named = |place: &usize| {
            let (to, copy) = &allowed.named[*place];
            !named[*place] && *to == port && copy.is_same_frame(frame)
        };
        if let Some(place) = (0..named.len()).find(is_named) {
            named[place] = true;
            continue;
        }
        let count = allowed.exits.len();
        let places = (0..count).map(|offset| (next + offset) % count);
        let exit = places.into_iter().find(|place| {
            let exit = &allowed.exits[*place];
            (exit.port, exit.tags, exit.vid) == (port, frame.tags(), frame.vid())
        });
        if let Some(place) = exit.filter(|place| !left[*place]) {
            left[place] = true;
            next = place + 1;
            continue;
        }
        if allowed.mirrors.contains(&port) {
            continue;
        }
        let ports = vec![port];
        if exit.is_some() {
            let why = "it has left by this port before".to_owned();
            return Some(Fault { invariant: Invariant::OneCopy, ports, why });
        }
        let (invariant, why) = reason(allowed, packet, port, frame);
        return Some(Fault { invariant, ports, why });
    }
    let missed = |(exit, left): (&wanted::Exit, &bool)| (exit.is_due && !left).then_some(exit.port);
    let mut missing: Vec<u32> = allowed.exits.iter().zip(&left).filter_map(missed).collect();
    if allowed.ends.len() == 1 {
        let unsent = allowed.named.iter().zip(&named).filter(|(_, sent)| !**sent);
        missing.extend(unsent.map(|((port, _), _)| *port));
    }
    if missing.is_empty() || !is_exact {
        return None;
    }
    let why = "it is for this port".to_owned();
    Some(Fault { invariant: Invariant::Reach, ports: missing, why })
}

/// Why a packet may not leave by a port.
fn reason(
    allowed: &Allowed<'_>,
    packet: &Packet,
    port: u32,
    frame: &Packet,
) -> (Invariant, String) {
    if let Some(exit) = allowed.exits.iter().find(|exit| exit.port == port) {
        let tag = |vid: Option<u16>| match vid {
            Some(vid) => format!("tag {vid}"),
            None => "no tag".to_owned(),
        };
        let why = format!("it has {} instead of {} there", tag(frame.vid()), tag(exit.vid));
        return (Invariant::Vlan, why);
    }
    let in_port = packet.in_port();
    match allowed.ends.last() {
        Some(End::Closed(why)) => (Invariant::Input, format!("port {in_port} {why}")),
        Some(End::NoVlan(Some(vid))) => {
            (Invariant::Vlan, format!("port {in_port} is not in VLAN {vid}"))
        }
        Some(End::Acl(Some(rule))) => {
            (Invariant::Acl, format!("the rule at {} drops it", rule.place))
        }
        Some(End::Acl(None)) => (Invariant::Acl, "no rule allows it".to_owned()),
        Some(End::Filter(why)) => (Invariant::Filter, (*why).to_owned()),
        Some(End::Reserved) => (Invariant::Reserved, "bridges keep its destination".to_owned()),
        Some(End::Forwarded { vid, ports }) if ports.contains(&port) => {
            (Invariant::Prune, format!("in VLAN {vid} it is not for this port"))
        }
        Some(End::Forwarded { vid, .. }) => {
            (Invariant::Vlan, format!("port {port} is not in VLAN {vid}"))
        }
        Some(End::NoVlan(None)) | None => {
            (Invariant::Vlan, format!("port {in_port} has no VLAN for packets without a tag"))
        }
    }
}
