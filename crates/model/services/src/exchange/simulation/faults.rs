//! What fails.

use std::time::Duration;

use super::Faults;
use super::world::{Frame, Happening, World, ms};

/// A controller that has started gets to know the network within this time.
const SETTLES: Duration = ms(1500);

impl World {
    /// Lets something fail, or ends a fault.
    pub(super) fn fault(&mut self, happening: Happening) {
        match happening {
            Happening::Fault if self.has_faults() => {
                self.fail_something();
                let next = ms(self.random.u64(300..3000));
                self.after(next, Happening::Fault);
            }
            Happening::Start(node) => {
                self.log(|| format!("{node} starts"));
                self.start(node);
            }
            Happening::TakeOver(node) => self.take_over(node),
            Happening::Continue(node) => self.continue_node(node),
            Happening::HealCable(cable) => {
                self.cables[cable].is_cut = false;
                self.log(|| format!("cable {cable} is whole"));
                for end in self.cables[cable].ends() {
                    let delay = ms(self.random.u64(1..50));
                    self.after(delay, Happening::PortUp(end));
                }
            }
            Happening::HealConnection(from, to) => {
                let connection = &mut self.connections[from][to];
                (connection.slowness_ms, connection.loses) = (0, false);
            }
            Happening::Connect(from, to) => self.connect(from, to),
            _ => {}
        }
    }

    fn fail_something(&mut self) {
        let kinds = match self.faults {
            Faults::OfControllers => 4,
            Faults::OfAll => 8,
        };
        let node = self.random.usize(..self.nodes.len());
        let other = (node + self.random.usize(1..self.nodes.len())) % self.nodes.len();
        // A majority lives.
        let is_whole = (0..self.nodes.len()).all(|node| self.serves(node));
        match self.random.u32(..kinds) {
            0 if is_whole => self.kill(node),
            1 if is_whole => self.stop(node),
            2 => {
                let switch = self.random.usize(..self.switches.len());
                let master = self.switches[switch].master;
                if self.serves(node) && master.is_some_and(|master| self.serves(master)) {
                    self.give(switch, node);
                }
            }
            3 => {
                self.log(|| format!("frames from {node} to {other} are slow"));
                self.connections[node][other].slowness_ms = self.random.u64(10..400);
                let end = ms(self.random.u64(500..2500));
                self.after(end, Happening::HealConnection(node, other));
            }
            4 => {
                self.log(|| format!("frames from {node} to {other} are lost"));
                self.connections[node][other].loses = true;
                let end = ms(self.random.u64(500..2500));
                self.after(end, Happening::HealConnection(node, other));
            }
            5 => {
                self.log(|| format!("{node} and {other} are cut from each other"));
                for (from, to) in [(node, other), (other, node)] {
                    self.disconnect(from, to);
                    let end = ms(self.random.u64(100..6000));
                    self.after(end, Happening::Connect(from, to));
                }
            }
            6 => self.cut_cable(),
            7 => {
                let host = self.random.usize(..self.places.len());
                self.places[host] = self.edge[self.random.usize(..self.edge.len())];
                self.log(|| format!("host {host} goes to {}", self.places[host]));
                self.after(ms(10), Happening::HostSends(host));
            }
            _ => {}
        }
    }

    /// Whether a controller may get switches. One that has just started gets none.
    fn serves(&self, node: usize) -> bool {
        let node = &self.nodes[node];
        node.is_alive && !node.is_stopped && self.now >= node.started + SETTLES
    }

    /// A cable is cut, for a moment or longer.
    fn cut_cable(&mut self) {
        let cable = self.random.usize(..self.cables.len());
        if self.cables[cable].is_cut {
            return;
        }
        self.log(|| format!("cable {cable} is cut"));
        self.cables[cable].is_cut = true;
        for end in self.cables[cable].ends() {
            let delay = ms(self.random.u64(1..20));
            self.after(delay, Happening::PortDown(end));
        }
        let end = ms(if self.random.bool() { 30 } else { self.random.u64(100..5000) });
        self.after(end, Happening::HealCable(cable));
    }

    /// A process ends at once. It starts again soon, perhaps before the others have missed it.
    fn kill(&mut self, node: usize) {
        self.log(|| format!("{node} is killed"));
        self.nodes[node].is_alive = false;
        for other in (0..self.nodes.len()).filter(|it| *it != node) {
            self.disconnect(node, other);
            self.disconnect(other, node);
            let delay = ms(self.random.u64(1..40));
            self.after(delay, Happening::Dead { node, to: other });
        }
        self.after(ms(10), Happening::TakeOver(node));
        let is_quick = self.faults == Faults::OfAll && self.random.bool();
        let start = ms(if is_quick { 5 } else { self.random.u64(50..4000) });
        self.after(start, Happening::Start(node));
    }

    /// A process stands still, as with SIGSTOP.
    fn stop(&mut self, node: usize) {
        self.log(|| format!("{node} is stopped"));
        self.nodes[node].is_stopped = true;
        for other in (0..self.nodes.len()).filter(|it| *it != node) {
            let delay = ms(self.random.u64(300..360));
            self.after(delay, Happening::Dead { node, to: other });
        }
        self.after(ms(310), Happening::TakeOver(node));
        let end = ms(self.random.u64(100..2500));
        self.after(end, Happening::Continue(node));
    }

    /// The others take over the switches of a controller that is lost.
    fn take_over(&mut self, node: usize) {
        if self.nodes[node].is_alive && !self.nodes[node].is_stopped {
            return;
        }
        for switch in 0..self.switches.len() {
            if self.switches[switch].master == Some(node) {
                let to = (node + self.random.usize(1..self.nodes.len())) % self.nodes.len();
                self.give(switch, to);
            }
        }
    }

    /// A process that stood still goes on with what has come meanwhile.
    fn continue_node(&mut self, node: usize) {
        self.log(|| format!("{node} goes on"));
        self.nodes[node].is_stopped = false;
        for happening in std::mem::take(&mut self.nodes[node].waiting) {
            self.happen(happening);
        }
        // The others hear it again, and want to know everything.
        for other in (0..self.nodes.len()).filter(|it| *it != node) {
            self.send_frame(other, node, Frame::Again);
        }
    }
}
