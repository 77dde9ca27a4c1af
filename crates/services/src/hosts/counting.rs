//! Asks switches how many packets their flows have counted from a host: who sends by flows alone is there, though the
//! controller hears nothing.
//!
//! Only the switch that the host is at is asked, and only for flows that match the host's address and its port: what
//! somebody else sends with that address at another port is not counted. A switch adds the numbers up itself
//! (`OFPMP_AGGREGATE`; 1.0 §5.3.5, 1.3.5 §7.3.5.3), so that the reply is of one size however many flows there are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use async_channel::{Receiver, Sender};
use bellrock_api::openflow::{FlowStatsRequest, RequestBody};
use bellrock_api::{Dpid, HostId, Match, Network, ReplyBody, SwitchPort};

/// How long a switch is left alone between two such questions, since each has it look at all its flows.
pub const COUNT_EVERY: Duration = Duration::from_millis(20);

/// Switches that are asked at a time.
pub const COUNTED_AT_A_TIME: usize = 64;

/// A host whose packets are counted, where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) host: HostId,
    pub(super) at: SwitchPort,
}

/// Questions that wait, and those on their way. The tracker asks for each host once at a time, so there are no more
/// than hosts.
pub(super) struct Counting {
    waiting: BTreeMap<Dpid, VecDeque<Counted>>,
    busy: BTreeSet<Dpid>,
    tell: Sender<(Counted, Option<u64>)>,
    /// What switches have answered: packets, or `None` if nobody knows.
    pub(super) answers: Receiver<(Counted, Option<u64>)>,
}

impl Counting {
    pub(super) fn new() -> Self {
        let (tell, answers) = async_channel::unbounded();
        Counting { waiting: BTreeMap::new(), busy: BTreeSet::new(), tell, answers }
    }

    /// Has this asked when it is its turn.
    pub(super) fn ask(&mut self, counted: Counted) {
        self.waiting.entry(counted.at.dpid).or_default().push_back(counted);
    }

    /// A switch has answered.
    pub(super) fn answered(&mut self, dpid: Dpid) {
        self.busy.remove(&dpid);
    }

    /// Sends the questions whose turn it is. Returns the switches that are asked.
    pub(super) fn send(&mut self, network: &Network) -> Vec<Dpid> {
        let room = COUNTED_AT_A_TIME.saturating_sub(self.busy.len());
        let free = self.waiting.keys().filter(|dpid| !self.busy.contains(dpid));
        let asked: Vec<Dpid> = free.take(room).copied().collect();
        for dpid in &asked {
            let Some(queue) = self.waiting.get_mut(dpid) else { continue };
            let next = queue.pop_front();
            if queue.is_empty() {
                self.waiting.remove(dpid);
            }
            let Some(next) = next else { continue };
            self.busy.insert(*dpid);
            let (asking, tell) = (network.clone(), self.tell.clone());
            network.spawn("count a host's packets", async move {
                let packets = packets(&asking, next).await;
                asking.sleep(COUNT_EVERY).await;
                // Whoever asked is there for as long as the controller.
                let _ = tell.send((next, packets)).await;
            });
        }
        asked
    }
}

/// How many packets the flows of a switch have counted from a host at its port.
async fn packets(network: &Network, Counted { host, at }: Counted) -> Option<u64> {
    let from_host = Match::any().in_port(at.port).eth_src(host.mac);
    let request = RequestBody::Aggregate(FlowStatsRequest::all(&from_host));
    let reply = network.request(at.dpid, request).await.ok()?;
    match reply.body() {
        Ok(ReplyBody::Aggregate(all)) => Some(all.packet_count),
        _ => None,
    }
}
