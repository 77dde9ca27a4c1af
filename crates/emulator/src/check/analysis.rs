//! Where a packet would go, without sending it.
//!
//! The answer comes from the switches' own forwarding: copies of their tables, groups and ports are
//! given the packet, and what they send on is given to the next switch. So it is right for whatever
//! a flow can do, and counts, buffers and meters of the network stay as they are.

use std::collections::BTreeMap;
use std::fmt;

use crate::datapath::{Datapath, Effects, Notice};
use crate::host::echo_request;
use crate::network::Network;
use crate::packet::{Frame, digest};
use crate::topology::{HostId, Node, SwitchId, Topology};

/// Switches that one packet is led through, with its copies; more are not looked at.
pub const MAX_STEPS: usize = 100_000;

/// Circles of one packet that are named; more are not looked for.
pub const MAX_LOOPS: usize = 16;

/// A network's tables as they are now, to lead packets through.
pub struct Analysis<'n> {
    network: &'n Network,
    copies: BTreeMap<SwitchId, Datapath>,
    effects: Effects,
}

/// A packet, or a copy of it, comes to a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The switch.
    pub switch: SwitchId,
    /// Where it comes in.
    pub port: u32,
    /// The step before; None for the first.
    pub before: Option<usize>,
    /// What the switch does with it.
    pub outcome: Outcome,
}

/// What a switch does with a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Ports that it sends it to.
    pub ports: u32,
    /// Ports among them that have no link, or one that is down.
    pub dead_ends: u32,
    /// Whether it goes to the controller.
    pub controller: bool,
}

/// Where a packet and its copies would go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The switches that it comes to, each after the one before it.
    pub steps: Vec<Step>,
    /// The hosts that it comes to, and the step before; a host that it comes to twice is here twice.
    pub delivered: Vec<(HostId, usize)>,
    /// The circles that it would run in: the switches, of which the first is the next again.
    pub loops: Vec<Vec<SwitchId>>,
    /// Whether it went through [`MAX_STEPS`] switches, and what comes then is not known.
    pub cut_off: bool,
}

/// What is wrong with the way of a packet to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It runs in a circle.
    Loop(Vec<SwitchId>),
    /// It comes neither to the host nor to a controller; it ends at this switch. None if it has no
    /// switch to begin with.
    BlackHole(Option<SwitchId>),
    /// It comes to the host so many times.
    Duplicate(usize),
    /// It goes through more switches than are looked at.
    Endless,
}

impl Trace {
    /// What is wrong with this as the way of a unicast packet to a host. That it is known only to
    /// the controller is nothing wrong.
    #[must_use]
    pub fn findings(&self, to: HostId) -> Vec<Finding> {
        let mut findings: Vec<_> = self.loops.iter().cloned().map(Finding::Loop).collect();
        if self.cut_off {
            findings.push(Finding::Endless);
        }
        match self.delivered.iter().filter(|(host, _)| *host == to).count() {
            0 if self.steps.iter().any(|step| step.outcome.controller) => {}
            0 if findings.is_empty() => {
                findings.push(Finding::BlackHole(self.steps.last().map(|step| step.switch)));
            }
            0 | 1 => {}
            times => findings.push(Finding::Duplicate(times)),
        }
        findings
    }

    /// The switches on the way to a host, the first time that the packet comes there.
    #[must_use]
    pub fn path_to(&self, to: HostId) -> Option<Vec<SwitchId>> {
        let (_, last) = self.delivered.iter().find(|(host, _)| *host == to)?;
        let mut path = self.back_from(*last);
        path.reverse();
        Some(path.into_iter().map(|step| self.steps[step].switch).collect())
    }

    /// A step and those before it.
    fn back_from(&self, step: usize) -> Vec<usize> {
        std::iter::successors(Some(step), |step| self.steps[*step].before).collect()
    }
}

impl Finding {
    /// The finding with names.
    pub fn display<'f>(&'f self, topology: &'f Topology) -> impl fmt::Display + 'f {
        Named { finding: self, topology }
    }
}

struct Named<'f> {
    finding: &'f Finding,
    topology: &'f Topology,
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |switch: &SwitchId| self.topology.name(Node::Switch(*switch));
        match self.finding {
            Finding::Loop(switches) => {
                f.write_str("loop:")?;
                let again = switches.iter().chain(switches.first());
                again.enumerate().try_for_each(|(i, switch)| {
                    write!(f, "{}{}", if i == 0 { " " } else { " - " }, name(switch))
                })
            }
            Finding::BlackHole(Some(switch)) => {
                write!(f, "black hole: it ends at {}", name(switch))
            }
            Finding::BlackHole(None) => f.write_str("black hole: the host has no link"),
            Finding::Duplicate(times) => write!(f, "duplicate: it arrives {times} times"),
            Finding::Endless => {
                write!(f, "endless: it goes through more than {MAX_STEPS} switches")
            }
        }
    }
}

/// Where a packet is on its way: to come to a switch, or to leave one for good.
enum Visit {
    Come { switch: SwitchId, port: u32, frame: Frame, before: Option<usize> },
    Leave,
}

impl<'n> Analysis<'n> {
    /// Takes the network's tables as they are. Each switch is copied when a packet first comes to
    /// it.
    #[must_use]
    pub fn new(network: &'n Network) -> Self {
        Analysis { network, copies: BTreeMap::new(), effects: Effects::default() }
    }

    /// Where an echo request from one host to another would go.
    pub fn ping(&mut self, from: HostId, to: HostId) -> Trace {
        let [a, b] = [from, to].map(|host| self.network.host(host));
        let frame = echo_request((a.mac(), a.ip()), (b.mac(), b.ip()));
        match self.network.place(from) {
            Some((switch, port)) => self.trace(switch, port, frame),
            None => Trace::default(),
        }
    }

    /// What is wrong with the ways of echo requests between each two of these hosts.
    pub fn check(&mut self, hosts: &[HostId]) -> Vec<(HostId, HostId, Finding)> {
        let mut all = Vec::new();
        for from in hosts {
            for to in hosts.iter().filter(|to| *to != from) {
                let findings = self.ping(*from, *to).findings(*to);
                all.extend(findings.into_iter().map(|finding| (*from, *to, finding)));
            }
        }
        all
    }

    /// Where a frame would go that comes to a switch.
    pub fn trace(&mut self, switch: SwitchId, port: u32, frame: Frame) -> Trace {
        let mut trace = Trace::default();
        // The way so far. A packet that comes to a switch as it came before is in a circle.
        let mut way: Vec<(SwitchId, u32, u64)> = Vec::new();
        let mut waiting = vec![Visit::Come { switch, port, frame, before: None }];
        while let Some(visit) = waiting.pop() {
            let Visit::Come { switch, port, frame, before } = visit else {
                way.pop();
                continue;
            };
            let state = (switch, port, digest(&frame));
            if let Some(first) = way.iter().position(|known| *known == state) {
                trace.loops.push(way[first..].iter().map(|(switch, ..)| *switch).collect());
                if trace.loops.len() == MAX_LOOPS {
                    break;
                }
                continue;
            }
            if trace.steps.len() == MAX_STEPS {
                trace.cut_off = true;
                break;
            }
            way.push(state);
            waiting.push(Visit::Leave);
            let step = trace.steps.len();
            trace.steps.push(Step { switch, port, before, outcome: Outcome::default() });
            self.pass(step, frame, &mut trace, &mut waiting);
        }
        trace
    }

    /// Leads a packet through one switch, and puts what leaves it where it goes.
    fn pass(&mut self, step: usize, frame: Frame, trace: &mut Trace, waiting: &mut Vec<Visit>) {
        let Step { switch, port, .. } = trace.steps[step];
        let now = self.network.now();
        let original = self.network.switch(switch).datapath();
        let copy = self.copies.entry(switch).or_insert_with(|| original.clone());
        if copy.meters().iter().next().is_some() {
            // What packets before have taken from its meters is given back.
            copy.clone_from(original);
        }
        copy.receive(port, frame, now, &mut self.effects);
        let packet_in = |notice: Notice| matches!(notice, Notice::PacketIn(_));
        let mut outcome = Outcome {
            controller: self.effects.notices.drain(..).any(packet_in),
            ..Outcome::default()
        };
        let first = waiting.len();
        for (port, frame) in self.effects.frames.drain(..) {
            outcome.ports += 1;
            match self.network.peer(switch, port).map(|end| (end.node, end.port)) {
                Some((Node::Switch(switch), port)) => {
                    waiting.push(Visit::Come { switch, port, frame, before: Some(step) });
                }
                Some((Node::Host(host), _)) => trace.delivered.push((host, step)),
                None => outcome.dead_ends += 1,
            }
        }
        // What left first goes on first.
        waiting[first..].reverse();
        trace.steps[step].outcome = outcome;
    }
}
