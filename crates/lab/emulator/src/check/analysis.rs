//! Follows a packet through the network without sending it.
//!
//! The answer comes from the switches' own forwarding. A copy of a switch's tables, groups and
//! ports gets the packet, and the next switch gets what that copy sends. So the answer is right for
//! every action of a flow, and the network's counters, buffers and meters do not change.

use std::collections::BTreeMap;
use std::fmt;

use crate::datapath::{Datapath, Effects, Notice};
use crate::host::echo_request;
use crate::network::EmulatedNetwork;
use crate::packet::{EthernetFrame, digest};
use crate::topology::{HostIndex, Node, SwitchIndex, TopologySpec};

/// Maximum number of switches that one packet, with its copies, is followed through.
pub const MAX_STEPS: usize = 100_000;

/// Maximum number of loops that are reported for one packet.
pub const MAX_LOOPS: usize = 16;

/// The network's tables as they are now, for following packets.
pub struct Analysis<'n> {
    network: &'n EmulatedNetwork,
    copies: BTreeMap<SwitchIndex, Datapath>,
    effects: Effects,
}

/// A packet, or a copy of it, arrives at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceStep {
    /// The switch.
    pub switch: SwitchIndex,
    /// The port where it arrives.
    pub port: u32,
    /// The step before; None for the first.
    pub before: Option<usize>,
    /// What the switch does with it.
    pub outcome: StepOutcome,
}

/// What a switch does with a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepOutcome {
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
    pub steps: Vec<TraceStep>,
    /// The hosts where it arrives, and the step before. A host is listed once for each arrival.
    pub delivered: Vec<(HostIndex, usize)>,
    /// The loops: the switches in order; after the last comes the first again.
    pub loops: Vec<Vec<SwitchIndex>>,
    /// Whether it passed [`MAX_STEPS`] switches; the rest of its path is not known.
    pub cut_off: bool,
}

/// A fault on the path of a packet to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathFault {
    /// It goes in a loop.
    Loop(Vec<SwitchIndex>),
    /// It reaches neither the host nor a controller, and ends at this switch. `None` if the sender
    /// has no switch.
    BlackHole(Option<SwitchIndex>),
    /// It arrives at the host this many times.
    Duplicate(usize),
    /// It passes more than [`MAX_STEPS`] switches.
    Endless,
}

impl Trace {
    /// Lists the faults, if this is the path of a unicast packet to a host. A packet that reaches
    /// only the controller is no fault.
    #[must_use]
    pub fn findings(&self, to: HostIndex) -> Vec<PathFault> {
        let mut findings: Vec<_> = self.loops.iter().cloned().map(PathFault::Loop).collect();
        if self.cut_off {
            findings.push(PathFault::Endless);
        }
        match self.delivered.iter().filter(|(host, _)| *host == to).count() {
            0 if self.steps.iter().any(|step| step.outcome.controller) => {}
            0 if findings.is_empty() => {
                findings.push(PathFault::BlackHole(self.steps.last().map(|step| step.switch)));
            }
            0 | 1 => {}
            times => findings.push(PathFault::Duplicate(times)),
        }
        findings
    }

    /// The switches on the path to a host, for the packet's first arrival there.
    #[must_use]
    pub fn path_to(&self, to: HostIndex) -> Option<Vec<SwitchIndex>> {
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

impl PathFault {
    /// The finding with names.
    pub fn display<'f>(&'f self, topology: &'f TopologySpec) -> impl fmt::Display + 'f {
        Named { finding: self, topology }
    }
}

struct Named<'f> {
    finding: &'f PathFault,
    topology: &'f TopologySpec,
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |switch: &SwitchIndex| self.topology.name(Node::Switch(*switch));
        match self.finding {
            PathFault::Loop(switches) => {
                f.write_str("loop:")?;
                let cyclic = switches.iter().chain(switches.first());
                cyclic.enumerate().try_for_each(|(i, switch)| {
                    write!(f, "{}{}", if i == 0 { " " } else { " - " }, name(switch))
                })
            }
            PathFault::BlackHole(Some(switch)) => {
                write!(f, "black hole: it ends at {}", name(switch))
            }
            PathFault::BlackHole(None) => f.write_str("black hole: the host has no link"),
            PathFault::Duplicate(times) => write!(f, "duplicate: it arrives {times} times"),
            PathFault::Endless => {
                write!(f, "endless: it goes through more than {MAX_STEPS} switches")
            }
        }
    }
}

/// The next event of a packet: it arrives at a switch, or the search leaves a switch.
enum SearchEvent {
    Come { switch: SwitchIndex, port: u32, frame: EthernetFrame, before: Option<usize> },
    Leave,
}

impl<'n> Analysis<'n> {
    /// Uses the network's tables as they are. A switch is copied when a packet first arrives there.
    #[must_use]
    pub fn new(network: &'n EmulatedNetwork) -> Self {
        Analysis { network, copies: BTreeMap::new(), effects: Effects::default() }
    }

    /// The path of an echo request from one host to another.
    pub fn ping(&mut self, from: HostIndex, to: HostIndex) -> Trace {
        let [a, b] = [from, to].map(|host| self.network.host(host));
        let frame = echo_request(a, b);
        match self.network.place(from) {
            Some((switch, port)) => self.trace(switch, port, frame),
            None => Trace::default(),
        }
    }

    /// Lists the faults of echo requests between every two of these hosts.
    pub fn check(&mut self, hosts: &[HostIndex]) -> Vec<(HostIndex, HostIndex, PathFault)> {
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
    pub fn trace(&mut self, switch: SwitchIndex, port: u32, frame: EthernetFrame) -> Trace {
        let mut trace = Trace::default();
        // The path so far. A packet that arrives at a switch as it arrived before is in a loop.
        let mut path: Vec<(SwitchIndex, u32, u64)> = Vec::new();
        let mut waiting = vec![SearchEvent::Come { switch, port, frame, before: None }];
        while let Some(visit) = waiting.pop() {
            let SearchEvent::Come { switch, port, frame, before } = visit else {
                path.pop();
                continue;
            };
            let state = (switch, port, digest(&frame));
            if let Some(first) = path.iter().position(|known| *known == state) {
                trace.loops.push(path[first..].iter().map(|(switch, ..)| *switch).collect());
                if trace.loops.len() == MAX_LOOPS {
                    break;
                }
                continue;
            }
            if trace.steps.len() == MAX_STEPS {
                trace.cut_off = true;
                break;
            }
            path.push(state);
            waiting.push(SearchEvent::Leave);
            let step = trace.steps.len();
            trace.steps.push(TraceStep { switch, port, before, outcome: StepOutcome::default() });
            self.pass(step, frame, &mut trace, &mut waiting);
        }
        trace
    }

    /// Follows a packet through one switch, and queues what leaves the switch.
    fn pass(
        &mut self,
        step: usize,
        frame: EthernetFrame,
        trace: &mut Trace,
        waiting: &mut Vec<SearchEvent>,
    ) {
        let TraceStep { switch, port, .. } = trace.steps[step];
        let now = self.network.now();
        let original = self.network.switch(switch).datapath();
        let copy = self.copies.entry(switch).or_insert_with(|| original.clone());
        if copy.meters().iter().next().is_some() {
            // Gives back the tokens that earlier packets took from its meters.
            copy.clone_from(original);
        }
        copy.receive(port, frame, now, &mut self.effects);
        let packet_in = |notice: Notice| matches!(notice, Notice::PacketIn(_));
        let mut outcome = StepOutcome {
            controller: self.effects.notices.drain(..).any(packet_in),
            ..StepOutcome::default()
        };
        let first = waiting.len();
        for (port, frame) in self.effects.frames.drain(..) {
            outcome.ports += 1;
            match self.network.peer(switch, port).map(|end| (end.node, end.port)) {
                Some((Node::Switch(switch), port)) => {
                    waiting.push(SearchEvent::Come { switch, port, frame, before: Some(step) });
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
