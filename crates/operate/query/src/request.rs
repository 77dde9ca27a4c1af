//! The list of all requests.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::audit;
use crate::{
    AppRow, AskSwitch, BalanceCluster, Block, BlockedList, CircuitRow, CleanAnswer, CleanFlows,
    ClusterStatus, ClusterSwitchRow, CountFlows, CounterMeaning, Counters, DescribeCounters,
    DrainNode, EventRow, EventsAfter, FlowPage, FollowEvents, ForgetIdentity, GetCluster,
    GetCounters, GetSharedConfig, GetStatus, GetTopology, GroupRow, HostRow, JudgeRelay,
    LatencyRow, LinkRow, ListApps, ListBlocked, ListCircuits, ListClusterSwitches, ListEvents,
    ListFlows, ListGroups, ListHosts, ListIdentities, ListLatencies, ListLinks, ListMeters,
    ListOrphans, ListPorts, ListRelays, ListReservations, ListStatic, ListSwitches, ListTasks,
    MeterRow, MoveSwitch, PinRow, PortStatsRow, QuarantineAnswer, RelayRow, Release, Reload,
    ReloadAnswer, ReservationRow, Reserve, Rows, SendMessages, SentMessages, SetSharedConfig,
    SetStatic, SharedConfig, StaticAnswer, StaticRow, Status, SwitchFlows, SwitchOrphans,
    SwitchReply, SwitchRow, TaskRow, TopologyAnswer, Unblock,
};

/// A request, and the type of its answer.
pub trait Query: Into<Request> {
    /// What the operator answers.
    type Answer: Serialize + DeserializeOwned;

    /// Name of the request in messages, such as `list_flows`.
    const NAME: &'static str;

    /// Takes the answer to this request out of `answer`. `None` if it answers another request.
    fn from_answer(answer: Answer) -> Option<Self::Answer>;
}

/// Defines [`Request`] and [`Answer`] with a variant for each request, and [`Query`] for each.
/// Requests that may change something are marked with `order`.
macro_rules! queries {
    ($($(#[$doc:meta])* $name:literal $query:ident -> $answer:ty $(, $order:ident)?;)*) => {
        /// Any request. In JSON: `{"list_flows": {"switch": "s1"}}`.
        #[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
        pub enum Request {
            $($(#[$doc])* #[serde(rename = $name)] $query($query),)*
        }

        /// The answer to a request. In JSON: only what the variant holds.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum Answer {
            $(#[doc = concat!("The answer to [`", stringify!($query), "`].")] $query($answer),)*
        }

        impl Request {
            /// The names of all requests.
            pub const NAMES: &[&str] = &[$($name),*];

            /// The name of this request.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Request::$query(_) => $name,)*
                }
            }

            /// Whether it is an order: it may change something.
            #[must_use]
            pub fn is_order(&self) -> bool {
                match self {
                    $(Request::$query(_) => !concat!($(stringify!($order))?).is_empty(),)*
                }
            }

            /// Whether its answer waits for switches: an order, or a question to them.
            #[must_use]
            pub fn waits_for_switches(&self) -> bool {
                self.is_order()
                    || matches!(
                        self,
                        Request::ListPorts(_)
                            | Request::ListFlows(_)
                            | Request::ListGroups(_)
                            | Request::ListMeters(_)
                            | Request::CountFlows(_)
                            | Request::ListOrphans(_)
                            | Request::ListStatic(_)
                            | Request::AskSwitch(_)
                    )
            }

            /// The request as JSON behind its name, for the audit log. What is longer than
            /// [`MAX_AUDIT_BYTES`](crate::MAX_AUDIT_BYTES) is cut.
            #[must_use]
            pub fn audit_text(&self) -> String {
                match self {
                    $(Request::$query(query) => audit::text($name, query),)*
                }
            }
        }

        $(
            impl From<$query> for Request {
                fn from(query: $query) -> Self {
                    Request::$query(query)
                }
            }

            impl Query for $query {
                type Answer = $answer;

                const NAME: &'static str = $name;

                fn from_answer(answer: Answer) -> Option<Self::Answer> {
                    match answer {
                        Answer::$query(answer) => Some(answer),
                        _ => None,
                    }
                }
            }
        )*
    };
}

queries! {
    /// The controller as a whole.
    "get_status" GetStatus -> Status;
    /// The switches that are up or stand by.
    "list_switches" ListSwitches -> Rows<SwitchRow>;
    /// The ports of switches, with their counters.
    "list_ports" ListPorts -> Rows<PortStatsRow>;
    /// The hosts with their ports and addresses.
    "list_hosts" ListHosts -> Rows<HostRow>;
    /// The apps of the chain, in order.
    "list_apps" ListApps -> Vec<AppRow>;
    /// The background tasks of the apps.
    "list_tasks" ListTasks -> Rows<TaskRow>;
    /// All counters.
    "get_counters" GetCounters -> Counters;
    /// What each counter counts.
    "describe_counters" DescribeCounters -> Vec<CounterMeaning>;
    /// How long things take.
    "list_latencies" ListLatencies -> Vec<LatencyRow>;
    /// The switches and links that discovery knows.
    "get_topology" GetTopology -> TopologyAnswer;
    /// The links between switches.
    "list_links" ListLinks -> Rows<LinkRow>;
    /// The links that look like relays between hosts, and those that an operator has judged.
    "list_relays" ListRelays -> Rows<RelayRow>;
    /// Says what the link between two ports is: a link, or a relay between hosts.
    "judge_relay" JudgeRelay -> RelayRow, order;
    /// The latest events of the network.
    "list_events" ListEvents -> Rows<EventRow>;
    /// Waits for the events after a known one.
    "follow_events" FollowEvents -> EventsAfter;
    /// The flows of a switch.
    "list_flows" ListFlows -> FlowPage;
    /// The groups of a switch.
    "list_groups" ListGroups -> Rows<GroupRow>;
    /// The meters of a switch.
    "list_meters" ListMeters -> Rows<MeterRow>;
    /// Numbers of flows by switch and app.
    "count_flows" CountFlows -> Rows<SwitchFlows>;
    /// Flows of apps that do not run here, by switch and app.
    "list_orphans" ListOrphans -> Rows<SwitchOrphans>;
    /// Removes flows of apps that do not run here.
    "clean_flows" CleanFlows -> CleanAnswer, order;
    /// Blocks a host or a prefix at every switch.
    "block" Block -> QuarantineAnswer, order;
    /// Ends the block of a host or a prefix.
    "unblock" Unblock -> QuarantineAnswer, order;
    /// The blocked hosts.
    "list_blocked" ListBlocked -> BlockedList;
    /// Reserves bandwidth from one host to another.
    "reserve" Reserve -> ReservationRow, order;
    /// Releases a reservation. The answer is that reservation as it was.
    "release" Release -> ReservationRow, order;
    /// The reservations.
    "list_reservations" ListReservations -> Rows<ReservationRow>;
    /// The circuits and their states.
    "list_circuits" ListCircuits -> Rows<CircuitRow>;
    /// Sets and removes static flows, groups and meters.
    "set_static" SetStatic -> StaticAnswer, order;
    /// The static flows, groups and meters.
    "list_static" ListStatic -> Rows<StaticRow>;
    /// Sends a request to a switch as it is.
    "ask_switch" AskSwitch -> SwitchReply;
    /// Sends messages to a switch as they are.
    "send_messages" SendMessages -> SentMessages, order;
    /// The datapath ids that have a certificate.
    "list_identities" ListIdentities -> Rows<PinRow>;
    /// Frees a datapath id from its certificate. The answer is what is forgotten.
    "forget_identity" ForgetIdentity -> PinRow, order;
    /// The cluster, as this node sees it.
    "get_cluster" GetCluster -> ClusterStatus;
    /// The switches of the cluster and their masters.
    "list_cluster_switches" ListClusterSwitches -> Rows<ClusterSwitchRow>;
    /// Gives a switch to another node.
    "move_switch" MoveSwitch -> ClusterSwitchRow, order;
    /// Gives all switches of this node to others, or ends that.
    "drain_node" DrainNode -> ClusterStatus, order;
    /// Lets the nodes spread all switches evenly, those that were moved by order too.
    "balance_cluster" BalanceCluster -> ClusterStatus, order;
    /// The configuration that the nodes of a cluster share.
    "get_shared_config" GetSharedConfig -> SharedConfig;
    /// Replaces the configuration that the nodes of a cluster share.
    "set_shared_config" SetSharedConfig -> ReloadAnswer, order;
    /// Reads the configuration again, and applies what has changed.
    "reload" Reload -> ReloadAnswer, order;
}
