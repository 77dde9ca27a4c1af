//! Follows a packet through the network without sending it.
//!
//! The answer comes from the switches' own forwarding. A copy of a switch's tables, groups and
//! ports gets the packet, and the next switch gets what that copy sends. So the answer is right for
//! every action of a flow, and the network's counters, buffers and meters do not change.

use std::collections::BTreeMap;
use std::fmt;

use crate::datapath::{Datapath, Effects, Notice};
use crate::host::echo_request;
use crate::network::Network;
use crate::packet::{Frame, digest};
use crate::topology::{HostId, Node, SwitchId, Topology};

/// Maximum number of switches that one packet, with its copies, is followed through.
pub const MAX_STEPS: usize = 100_000;

/// Maximum number of loops that are reported for one packet.
pub const MAX_LOOPS: usize = 16;

/// The network's tables as they are now, for following packets.
pub struct Analysis<'n> {
    network: &'n Network,
    copies: BTreeMap<SwitchId, Datapath>,
    effects: Effects,
}

/// A packet, or a copy of it, arrives at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The switch.
    pub switch: SwitchId,
    /// The port where it arrives.
    pub port: u32,
    /// The step before; None for the first.
    pub before: Option<usize>,
    /// What the switch does with it.
    pub outcome: Outcome,
}

/// What a switch does with a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of ports that it sends the packet to.
    pub ports: u32,
    /// Number of these ports without a link, or with a link that is down.
    pub dead_ends: u32,
    /// Whether the packet goes to the controller.
    pub controller: bool,
}

/// The path that a packet and its copies would take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The switches where it arrives, each after the one before it.
    pub steps: Vec<Step>,
    /// The hosts where it arrives, and the step before. A host is listed once for each arrival.
    pub delivered: Vec<(HostId, usize)>,
    /// The loops: the switches in order; after the last comes the first again.
    pub loops: Vec<Vec<SwitchId>>,
    /// Whether it passed [`MAX_STEPS`] switches; the rest of its path is not known.
    pub cut_off: bool,
}

/// A fault on the path of a packet to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It goes in a loop.
    Loop(Vec<SwitchId>),
    /// It reaches neither the host nor a controller, and ends at this switch. `None` if the sender
    /// has no switch.
    BlackHole(Option<SwitchId>),
    /// It arrives at the host this many times.
    Duplicate(usize),
    /// It passes more than [`MAX_STEPS`] switches.
    Endless,
}

impl Trace {
    /// Lists the faults, if this is the path of a unicast packet to a host. A packet that reaches
    /// only the controller is no fault.
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

    /// The switches on the path to a host, for the packet's first arrival there.
    #[must_use]
    pub fn path_to(&self, to: HostId) -> Option<Vec<SwitchId>> {
        let (_, last) = self.delivered.iter().find(|(host, _)| *host == to)?;
        let mut path = self.back_from(*last);
        path.reverse();
        Some(path.into_iter().map(|step| self.steps[step].switch).collect())
    }

    /// A step and all steps before it.
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

/// The next event of a packet: it arrives at a switch, or the search leaves a switch.
enum Visit {
    Come { switch: SwitchId, port: u32, frame: Frame, before: Option<usize> },
    Leave,
}

impl<'n> Analysis<'n> {
    /// Uses the network's tables as they are. A switch is copied when a packet first arrives there.
    #[must_use]
    pub fn new(network: &'n Network) -> Self {
        Analysis { network, copies: BTreeMap::new(), effects: Effects::default() }
    }

    /// The path of an echo request from one host to another.
    pub fn ping(&mut self, from: HostId, to: HostId) -> Trace {
        let [a, b] = [from, to].map(|host| self.network.host(host));
        let frame = echo_request((a.mac(), a.ip()), (b.mac(), b.ip()));
        match self.network.place(from) {
            Some((switch, port)) => self.trace(switch, port, frame),
            None => Trace::default(),
        }
    }

    /// Lists the faults of echo requests between every two of these hosts.
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

    /// The path of a frame that arrives at a switch.
    pub fn trace(&mut self, switch: SwitchId, port: u32, frame: Frame) -> Trace {
        let mut trace = Trace::default();
        // The path so far. A packet that arrives at a switch as it arrived before is in a loop.
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

    /// Follows a packet through one switch, and queues what leaves the switch.
    fn pass(&mut self, step: usize, frame: Frame, trace: &mut Trace, waiting: &mut Vec<Visit>) {
        let Step { switch, port, .. } = trace.steps[step];
        let now = self.network.now();
        let original = self.network.switch(switch).datapath();
        let copy = self.copies.entry(switch).or_insert_with(|| original.clone());
        if copy.meters().iter().next().is_some() {
            // Gives back the tokens that earlier packets took from its meters.
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
        // What left first is followed first.
        waiting[first..].reverse();
        trace.steps[step].outcome = outcome;
    }
}
