//! Asks switches how many packets from a host their flows have counted. A host that sends only by
//! flows is present, though the controller receives none of its packets.
//!
//! Only the host's own switch is asked, for flows that match the host's address and its port. So
//! packets from that address at another port do not count. The switch adds up the numbers
//! (`OFPMP_AGGREGATE`; 1.0 §5.3.5, 1.3.5 §7.3.5.3): the reply has a fixed size.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use async_channel::{Receiver, Sender};
use bellrock_api::openflow::{FlowStatsRequest, RequestBody};
use bellrock_api::{Dpid, HostId, Match, Network, ReplyBody, SwitchPort};

/// Minimum pause between two requests to a switch. Each makes the switch look at all its flows.
pub const COUNT_EVERY: Duration = Duration::from_millis(20);

/// Maximum number of switches that are asked at the same time.
pub const COUNTED_AT_A_TIME: usize = 64;

/// A host whose packets are counted, and its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CountedHost {
    pub(super) host: HostId,
    pub(super) at: SwitchPort,
}

/// Requests that wait, and those under way. The tracker has one request for each host at most.
pub(super) struct FlowCountRequests {
    waiting: BTreeMap<Dpid, VecDeque<CountedHost>>,
    busy: BTreeSet<Dpid>,
    sender: Sender<(CountedHost, Option<u64>)>,
    /// Answers of switches: the number of packets, or `None` if it is unknown.
    pub(super) answers: Receiver<(CountedHost, Option<u64>)>,
}

impl FlowCountRequests {
    pub(super) fn new() -> Self {
        let (sender, answers) = async_channel::unbounded();
        FlowCountRequests { waiting: BTreeMap::new(), busy: BTreeSet::new(), sender, answers }
    }

    /// Queues a request.
    pub(super) fn push(&mut self, counted: CountedHost) {
        self.waiting.entry(counted.at.dpid).or_default().push_back(counted);
    }

    /// Notes that a switch has answered.
    pub(super) fn finish(&mut self, dpid: Dpid) {
        self.busy.remove(&dpid);
    }

    /// Sends the requests that are due. Returns the switches that were asked.
    pub(super) fn send(&mut self, network: &Network) -> Vec<Dpid> {
        let room = COUNTED_AT_A_TIME.saturating_sub(self.busy.len());
        let idle = self.waiting.keys().filter(|dpid| !self.busy.contains(dpid));
        let requested: Vec<Dpid> = idle.take(room).copied().collect();
        for dpid in &requested {
            let Some(queue) = self.waiting.get_mut(dpid) else { continue };
            let next = queue.pop_front();
            if queue.is_empty() {
                self.waiting.remove(dpid);
            }
            let Some(next) = next else { continue };
            self.busy.insert(*dpid);
            let (task_network, sender) = (network.clone(), self.sender.clone());
            network.spawn("count a host's packets", async move {
                let packets = packets(&task_network, next).await;
                task_network.sleep(COUNT_EVERY).await;
                // The receiver lives as long as the controller.
                let _ = sender.send((next, packets)).await;
            });
        }
        requested
    }
}

/// Returns the number of packets that a switch's flows have counted from a host at its port.
async fn packets(network: &Network, CountedHost { host, at }: CountedHost) -> Option<u64> {
    let from_host = Match::any().in_port(at.port).eth_src(host.mac);
    let request = RequestBody::Aggregate(FlowStatsRequest::all(&from_host));
    let reply = network.request(at.dpid, request).await.ok()?;
    match reply.body() {
        Ok(ReplyBody::Aggregate(all)) => Some(all.packet_count),
        _ => None,
    }
}
