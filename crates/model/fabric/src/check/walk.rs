//! The way of a packet through the tables: which flows it meets, and where copies of it leave.

use bellrock_api::Flow;
use bellrock_openflow::{Action, GroupType, Port};

use super::{Packet, State};
use crate::compile::Facts;

/// Maximum number of ways of a packet that are followed, where flows of one priority match it.
const MAX_WAYS: usize = 64;
/// Maximum number of groups in groups.
const MAX_DEPTH: usize = 4;

/// A copy of a packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// Number of the port.
    pub(super) port: u32,
    /// Position in [`Walk::packets`].
    packet: usize,
}

/// A way of a packet.
#[derive(Clone, Debug)]
pub struct Walk<'t> {
    /// The packet as it was sent, at different times.
    packets: Vec<Packet>,
    pub(super) sent: Vec<Sent>,
    pub(super) flows: Vec<&'t Flow>,
    now: Packet,
}

impl<'t> State<'t> {
    /// The ways that a packet may take. They are several only where a switch may choose between
    /// flows of one priority.
    #[must_use]
    pub fn walks(&self, packet: &Packet, facts: &Facts) -> Vec<Walk<'t>> {
        let start =
            Walk { packets: Vec::new(), sent: Vec::new(), flows: Vec::new(), now: packet.clone() };
        let mut open = vec![(start, 0)];
        let mut done = Vec::new();
        while let Some((walk, table)) = open.pop() {
            let matching = self.matching(table, &walk.now);
            let Some((last, others)) = matching.split_last() else {
                done.push(walk);
                continue;
            };
            let mut follow = |mut walk: Walk<'t>, held: &super::state::Held<'t>| {
                walk.flows.push(held.flow);
                for action in &*held.flow.applied() {
                    walk.action(action, self, facts, 0);
                }
                if let Some((metadata, mask)) = held.metadata {
                    walk.now.set_metadata(metadata, mask);
                }
                match held.goto.filter(|next| *next > table) {
                    Some(next) => open.push((walk, next)),
                    None => done.push(walk),
                }
            };
            for held in others.iter().take(MAX_WAYS) {
                follow(walk.clone(), held);
            }
            follow(walk, last);
            if done.len() > MAX_WAYS {
                break;
            }
        }
        done
    }
}

impl Walk<'_> {
    /// Where copies leave: ports, and the VLAN ids of their outermost tags.
    pub fn outputs(&self) -> impl Iterator<Item = (u32, Option<u16>)> + '_ {
        self.sent.iter().map(|sent| (sent.port, self.packet(*sent).vid()))
    }

    /// The packet as a copy has it.
    pub(super) fn packet(&self, sent: Sent) -> &Packet {
        self.packets.get(sent.packet).unwrap_or(&self.now)
    }

    fn action(&mut self, action: &Action<'_>, state: &State<'_>, facts: &Facts, depth: usize) {
        match *action {
            Action::Output { port, .. } => self.send(port),
            Action::PopVlan => self.now.pop(),
            Action::PushVlan(eth_type) => self.now.push(eth_type),
            Action::SetField(field, value) => self.now.set(field, value),
            Action::Group(group) => self.group(group, state, facts, depth),
            _ => {}
        }
    }

    fn send(&mut self, port: Port) {
        let number = match port {
            Port::CONTROLLER => return,
            Port::IN_PORT => self.now.in_port(),
            // A switch does not send back where it was not asked to.
            port if port.0 == self.now.in_port() => return,
            port => port.0,
        };
        if self.packets.last() != Some(&self.now) {
            self.packets.push(self.now.clone());
        }
        self.sent.push(Sent { port: number, packet: self.packets.len() - 1 });
    }

    fn group(&mut self, id: u32, state: &State<'_>, facts: &Facts, depth: usize) {
        let Some(group) = state.groups.get(&id).filter(|_| depth < MAX_DEPTH) else { return };
        let is_live = |port: Port| port == Port::ANY || facts.is_up(port.0);
        let live = group.buckets.iter().filter(|bucket| is_live(bucket.watch_port));
        let number = if group.kind == GroupType::All { usize::MAX } else { 1 };
        let before = self.now.clone();
        for bucket in live.take(number) {
            // A bucket is an action set, with an order of its own (1.3.5 §5.10).
            let mut actions: Vec<&Action<'_>> = bucket.actions.iter().collect();
            actions.sort_by_key(|action| match action {
                Action::PopVlan => 0,
                Action::PushVlan(_) => 1,
                Action::Group(_) | Action::Output { .. } => 3,
                _ => 2,
            });
            for action in actions {
                self.action(action, state, facts, depth + 1);
            }
            self.now = before.clone();
        }
    }
}
