//! Observation of a lab.

use std::fmt;

use bellrock_api::{Dpid, HostEntry};
use bellrock_worker::{COUNTERS, TASK_COUNTERS, TaskInfo};

use super::controller::LabController;
use super::{Lab, LabError, fail};
use crate::check::{self, Analysis, LoggedMessage, Matrix, MessageDirection, PathFault};
use crate::host::HostCounters;
use crate::network::EmulatedNetwork;
use crate::switch::EmulatedSwitch;
use crate::topology::{HostIndex, Node, TopologySpec};

/// The result of pings between hosts. It prints like Mininet's `pingall`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PingResults {
    matrix: Matrix,
    lost: Vec<(String, String)>,
    text: String,
}

impl PingResults {
    pub(super) fn new(matrix: Matrix, lab: &Lab) -> Self {
        let name = |host: &HostIndex| lab.topology.name(Node::Host(*host)).to_owned();
        let lost = matrix.lost.iter().map(|(from, to)| (name(from), name(to))).collect();
        let text = matrix.display(&lab.topology).to_string();
        PingResults { matrix, lost, text }
    }

    /// Whether every ping was answered.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.matrix.is_complete()
    }

    /// The pairs whose ping was not answered.
    #[must_use]
    pub fn lost(&self) -> &[(String, String)] {
        &self.lost
    }

    /// The matrix, with the hosts' numbers, and the longest round trip.
    #[must_use]
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }
}

impl fmt::Display for PingResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Observation of the network.
impl Lab {
    /// The topology that the network was built from. Hosts that have moved are at their old place.
    #[must_use]
    pub fn topology(&self) -> &TopologySpec {
        &self.topology
    }

    /// The network: switches, hosts and links.
    #[must_use]
    pub fn network(&self) -> &EmulatedNetwork {
        &self.network
    }

    /// The network, for calls that a lab does not have. They take effect now.
    #[must_use]
    pub fn network_mut(&mut self) -> &mut EmulatedNetwork {
        &mut self.network
    }

    /// A digest of every frame and of all bytes to and from the controller, with order and times:
    /// two different runs share it only by chance.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.network.digest()
    }

    /// A switch: its tables, ports, groups and counters.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    #[must_use]
    pub fn switch(&self, name: &str) -> &EmulatedSwitch {
        self.network.switch(self.switch_id(name))
    }

    /// The counters of a host.
    ///
    /// # Panics
    /// There is no such host.
    #[track_caller]
    #[must_use]
    pub fn host(&self, name: &str) -> HostCounters {
        self.network.host(self.host_id(name)).counters()
    }

    /// The flows of a switch as text, one a line, much as `ovs-ofctl dump-flows` shows them: by
    /// table, then by priority, the highest first.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    #[must_use]
    pub fn flows(&self, switch: &str) -> Vec<String> {
        let text = check::dump_flows(self.switch(switch), self.now());
        text.lines().map(str::to_owned).collect()
    }

    /// The groups of a switch as text, one a line, much as `ovs-ofctl dump-groups` shows them:
    /// `group_id=7,type=select,bucket=weight:1,actions=output:2`.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    #[must_use]
    pub fn groups(&self, switch: &str) -> Vec<String> {
        check::dump_groups(self.switch(switch)).lines().map(str::to_owned).collect()
    }

    /// The paths of unicast packets from one host to another, each path once, as names of nodes.
    /// They come from the last [`REMEMBERED_HOPS`](super::REMEMBERED_HOPS) hops.
    ///
    /// # Panics
    /// There is no such host.
    #[track_caller]
    #[must_use]
    pub fn paths(&self, from: &str, to: &str) -> Vec<Vec<String>> {
        let paths = check::paths(&self.network, self.host_id(from), self.host_id(to));
        let name = |node: &Node| self.topology.name(*node).to_owned();
        paths.iter().map(|path| path.iter().map(name).collect()).collect()
    }

    /// The last [`REMEMBERED_MESSAGES`](super::REMEMBERED_MESSAGES) messages between a switch and
    /// its controllers, the oldest first. They print as in `bellrock decode`.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    pub fn messages(&self, switch: &str) -> impl DoubleEndedIterator<Item = &LoggedMessage> {
        self.network.messages().of(self.switch_id(switch))
    }

    /// Number of messages that a switch has sent or received.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    #[must_use]
    pub fn message_count(&self, switch: &str, direction: MessageDirection) -> u64 {
        self.network.messages().count(self.switch_id(switch), direction)
    }

    /// The hosts that received a unicast frame more than once, with the number of duplicates.
    #[must_use]
    pub fn duplicates(&self) -> Vec<(String, u64)> {
        let name = |host| self.topology.name(Node::Host(host)).to_owned();
        check::duplicates(&self.network).into_iter().map(|(host, n)| (name(host), n)).collect()
    }

    /// Faults on the paths that unicast packets would take now, for each pair of hosts: loops,
    /// black holes and duplicates. It sends no packet. A packet that only reaches the controller is
    /// no fault.
    #[must_use]
    pub fn findings(&self) -> Vec<String> {
        self.find(|_| true)
    }

    /// The loops among the [findings](Self::findings).
    #[must_use]
    pub fn loops(&self) -> Vec<String> {
        self.find(|finding| matches!(finding, PathFault::Loop(_)))
    }

    /// The black holes among the [findings](Self::findings).
    #[must_use]
    pub fn black_holes(&self) -> Vec<String> {
        self.find(|finding| matches!(finding, PathFault::BlackHole(_)))
    }

    fn find(&self, wanted: impl Fn(&PathFault) -> bool) -> Vec<String> {
        let hosts: Vec<HostIndex> = (0..self.topology.hosts().len()).map(HostIndex::of).collect();
        let name = |host| self.topology.name(Node::Host(host));
        let found = Analysis::new(&self.network).check(&hosts).into_iter();
        let found = found.filter(|(.., finding)| wanted(finding));
        found
            .map(|(from, to, finding)| {
                format!("{} to {}: {}", name(from), name(to), finding.display(&self.topology))
            })
            .collect()
    }
}

/// The controller's view.
impl Lab {
    /// The sum of a counter over all workers, or a counter of the tasks. Zero without a controller.
    ///
    /// # Panics
    /// There is no such counter; [`COUNTERS`] and [`TASK_COUNTERS`] list them.
    #[track_caller]
    #[must_use]
    pub fn counter(&self, name: &str) -> u64 {
        if !COUNTERS.iter().chain(TASK_COUNTERS).any(|(known, _)| *known == name) {
            fail(&LabError::UnknownCounter(name.to_owned()));
        }
        let controller = self.controls.first();
        controller.map_or(0, |controller| controller.counter(name))
    }

    /// The tasks of the apps, in the order in which they were started. Tasks that have ended are
    /// not listed, except the latest that panicked.
    #[must_use]
    pub fn tasks(&self) -> Vec<TaskInfo> {
        self.controls.first().map_or_else(Vec::new, LabController::tasks)
    }

    /// The controller's view of the network, with calls for tests to send to switches and to run
    /// tasks. `None` without a controller.
    #[must_use]
    pub fn controller(&self) -> Option<bellrock_api::Network> {
        self.controls.first().map(LabController::network)
    }

    /// The same for the controller with this number: 0 for the first one, and as
    /// [`add_controller`](Self::add_controller) returned it.
    #[must_use]
    pub fn controller_of(&self, number: usize) -> Option<bellrock_api::Network> {
        self.controls.controller(number).map(LabController::network)
    }

    /// Names of the apps that are disabled, as their handlers panicked repeatedly. They get no more
    /// events.
    #[must_use]
    pub fn disabled_apps(&mut self) -> Vec<&'static str> {
        self.controls.first_mut().map_or_else(Vec::new, |controller| controller.disabled_apps())
    }

    /// The sum of an app's counter over all switches. `None` if no app of this name has this
    /// counter.
    #[must_use]
    pub fn app_counter(&mut self, app: &str, name: &str) -> Option<u64> {
        let now = self.now();
        let counters = self.controls.first_mut()?.app_counters(now);
        let counter_of =
            counters.iter().find(|(app_name, counter, _)| (*app_name, *counter) == (app, name));
        counter_of.map(|(.., n)| *n)
    }

    /// The hosts that the apps know: switch, name of the app, host.
    #[must_use]
    pub fn hosts_known(&mut self) -> Vec<(Dpid, &'static str, HostEntry)> {
        let now = self.now();
        let controller = self.controls.first_mut();
        controller.map_or_else(Vec::new, |controller| controller.hosts(now))
    }

    /// The worker of a switch, counted from 0. `None` if no worker has it now.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    #[must_use]
    pub fn worker_of(&self, switch: &str) -> Option<usize> {
        let dpid = self.switch(switch).dpid();
        self.controls.first()?.worker_of(dpid)
    }
}
