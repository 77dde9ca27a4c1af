//! The list of all requests.
//!
//! The types of requests that apps answer are in the modules here, one for each app.

mod bandwidth;
mod provisioning;
mod quarantine;
mod static_entries;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::*;

pub use bandwidth::{
    ListReservations, MAX_RESERVE_WAIT_MS, Release, ReservationRow, ReservationState, Reserve,
};
pub use provisioning::{CircuitRow, CircuitState, ListCircuits};
pub use quarantine::{
    Block, BlockGap, BlockGapState, BlockedList, BlockedRow, ListBlocked, MAX_GAPS_SHOWN,
    QuarantineAnswer, Unblock,
};
pub use static_entries::{
    DEFAULT_OWNER, GroupKind, ListStatic, MAX_UNCONFIRMED_SHOWN, MeterUnit, SetStatic,
    StaticAnswer, StaticBand, StaticBucket, StaticEntry, StaticFlow, StaticGroup, StaticMeter,
    StaticProblem, StaticRow, StaticState,
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

/// Defines [`Request`] and [`Answer`] with a variant for each request, [`Query`] for each, and
/// [`DECLARED`].
///
/// Requests that may change something are marked with `order`, and others that ask switches with
/// `switches`. `from body` is for a request that is the body of a route as a whole. Behind it come
/// how its rows are listed, how they are counted for monitoring, the app that answers it if one
/// does, and the routes, each as [`route!`](crate::route) takes it.
macro_rules! queries {
    ($(
        $(#[doc = $doc:literal])*
        $name:literal $query:ident $(from $body:ident)? -> $answer:ident$(<$row:ident>)? $(, $waits:ident)?;
        $(list $list:path;)?
        $(gauges $gauges:path;)?
        $(of $app:literal;)?
        $({ $($route:tt)* })*
    )*) => {
        /// Any request. In JSON: `{"list_flows": {"switch": "s1"}}`.
        #[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
        pub enum Request {
            $($(#[doc = $doc])* #[serde(rename = $name)] $query($query),)*
        }

        /// The answer to a request. In JSON: only what the variant holds.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum Answer {
            $(
                #[doc = concat!("The answer to [`", stringify!($query), "`].")]
                $query($answer$(<$row>)?),
            )*
        }

        /// What is declared of each request.
        pub const DECLARED: &[Declared] = &[$(Declared {
            name: $name,
            routes: &[$(route!($($route)*)),*],
            answer: stringify!($answer),
            row: route!(@first $(Some(stringify!($row)),)? None),
            list: route!(@first $(Some($list),)? None),
            app: route!(@first $(Some($app),)? None),
            gauges: route!(@first $(Some(|operator| {
                crate::gauges::count(operator, |page| $query { page }, $gauges)
            }),)? None),
            #[cfg(feature = "schema")]
            schemas: |to| {
                $(add_schema::<$row>(stringify!($row), to);)?
                add_schema::<$answer$(<$row>)?>(
                    concat!(stringify!($answer) $(, "_", stringify!($row))?),
                    to,
                );
                $(
                    let _ = stringify!($body);
                    add_schema::<$query>(stringify!($query), to);
                )?
            },
        }),*];

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
                self.waits() == "order"
            }

            /// Whether its answer waits for switches: an order, or a question to them.
            #[must_use]
            pub fn waits_for_switches(&self) -> bool {
                !self.waits().is_empty()
            }

            fn waits(&self) -> &'static str {
                match self {
                    $(Request::$query(_) => concat!($(stringify!($waits))?),)*
                }
            }

            /// Reads a request from its JSON, as in `{"list_flows": {"switch": "s1"}}`.
            ///
            /// # Errors
            /// The value is no request. The error has the field.
            pub fn from_json(value: serde_json::Value) -> Result<Self, QueryError> {
                serde_path_to_error::deserialize(value).map_err(|error| {
                    // Without the name of the request.
                    let path = error.path().to_string();
                    let field = path.split_once('.').map(|(_, field)| field.to_owned());
                    let why = error.into_inner().to_string();
                    QueryError { field, ..QueryError::new(ErrorKind::Invalid, why) }
                })
            }

            /// Reads the body of the request with this name. `None`: it is no body as a whole.
            ///
            /// # Errors
            /// The body is not one.
            pub fn from_body<'de, D: Deserializer<'de>>(
                name: &str,
                body: D,
            ) -> Result<Option<Self>, D::Error> {
                match name {
                    $($(
                        $name => {
                            let _ = stringify!($body);
                            $query::deserialize(body).map(|query| Some(Request::$query(query)))
                        }
                    )?)*
                    _ => Ok(None),
                }
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
                type Answer = $answer$(<$row>)?;

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

/// The chapters of all routes, and what they are about.
pub const TAGS: &[(&str, &str)] = &[
    ("controller", "The controller itself"),
    ("network", "Switches, links, hosts and flows"),
    ("orders", "Reservations, circuits, quarantine and static flows"),
];

/// The part of a list that is wanted.
const PAGE: Param = Param { name: "page", kind: ParamKind::Page, about: "" };
/// The switch of a path.
const SWITCH: Param = Param::text("switch", "Its datapath id or its name.");
/// A switch whose rows are wanted.
const AT_SWITCH: Param =
    Param::text("switch", "Only those at this switch: its datapath id or its name.");
/// A static entry of a path.
const ENTRY: Param = Param::text("name", "Its name.");
/// Who orders.
const OWNER: Param =
    Param::text("owner", "The owner of the entry. The default is the name of the token.");

queries! {
    /// The controller as a whole.
    "get_status" GetStatus -> Status;
    {
        /// The state of the controller
        Get status "/v1/status" controller => "The state."
    }
    /// The switches that are up or stand by.
    "list_switches" ListSwitches -> Rows<SwitchRow>;
    {
        /// The switches that are connected, by datapath id
        Get switches "/v1/switches" network [PAGE] => "A page of the switches."
    }
    {
        /// A switch that is connected
        Get switch "/v1/switches/{switch}" network [SWITCH] => One "The switch."
    }
    /// The ports of switches, with their counters.
    "list_ports" ListPorts -> Rows<PortStatsRow>, switches;
    {
        /// The ports of a switch, with their counters
        ///
        /// The switch is asked for the counters.
        Get switch_ports "/v1/switches/{switch}/ports" network [SWITCH, PAGE] => "A page of the ports."
    }
    {
        /// The ports of all switches, or of one, with their counters
        ///
        /// The switches of the page are asked for the counters.
        Get ports "/v1/ports" network [AT_SWITCH, PAGE] => "A page of the ports."
    }
    /// The queues of ports, with their counters.
    "list_queues" ListQueues -> Rows<QueueRow>, switches;
    list QueueRow::LIST;
    {
        /// The queues of ports, with their counters
        ///
        /// The switches are asked for them. `incomplete` names those that did not report them.
        Get queues "/v1/queues" network [
            AT_SWITCH,
            Param::text("port", "Only those of this port: its number, or `LOCAL`."),
            PAGE
        ] => "A page of the queues."
    }
    /// The hosts with their ports and addresses.
    "list_hosts" ListHosts -> Rows<HostRow>;
    {
        /// The hosts, by switch and port
        Get hosts "/v1/hosts" network [AT_SWITCH, PAGE] => "A page of the hosts."
    }
    /// The apps of the chain, in order.
    "list_apps" ListApps -> Vec<AppRow>;
    {
        /// The apps of the chain, in order
        Get apps "/v1/apps" controller => "The apps."
    }
    /// The background tasks of the apps.
    "list_tasks" ListTasks -> Rows<TaskRow>;
    {
        /// The background tasks of the apps
        Get tasks "/v1/tasks" controller [PAGE] => "A page of the tasks."
    }
    /// All counters.
    "get_counters" GetCounters -> Counters;
    {
        /// All counters
        ///
        /// They start at zero with the controller, and only grow.
        Get counters "/v1/counters" controller => "The counters."
    }
    /// What each counter counts.
    "describe_counters" DescribeCounters -> Vec<CounterMeaning>;
    {
        /// What each counter counts
        Get counter_meanings "/v1/counters/meanings" controller => "The counters with their meanings."
    }
    /// How long things take.
    "list_latencies" ListLatencies -> Vec<LatencyRow>;
    {
        /// How long things take
        Get latencies "/v1/latencies" controller => "Histograms, with what they measure."
    }
    /// The switches and links that discovery knows.
    "get_topology" GetTopology -> TopologyAnswer;
    {
        /// The switches and links that discovery knows
        Get topology "/v1/topology" network => "The topology."
    }
    /// The links between switches.
    "list_links" ListLinks -> Rows<LinkRow>;
    {
        /// The links between switches, by their first port
        Get links "/v1/links" network [PAGE] => "A page of the links."
    }
    /// The links that look like relays between hosts, and those that an operator has judged.
    "list_relays" ListRelays -> Rows<RelayRow>;
    {
        /// The links that look like relays between hosts, and those that an operator has judged
        Get relays "/v1/relays" network [PAGE] => "A page of the links."
    }
    /// Says what the link between two ports is: a link, or a relay between hosts.
    "judge_relay" JudgeRelay from body -> RelayRow, order;
    {
        /// Say that the link between two ports is one, or a relay between hosts
        ///
        /// In both directions, until the controller ends. The verdict `none` leaves it to discovery
        /// again.
        Post judge "/v1/relays" network takes JudgeRelay => "It is judged."
    }
    /// The latest events of the network.
    "list_events" ListEvents -> Rows<EventRow>;
    {
        /// The latest events of the network, or all as they happen
        ///
        /// The newest are on the first page. Each page is ordered by time, the oldest first.
        ///
        /// With `Accept: text/event-stream` the answer is a stream of server-sent events that goes
        /// on. The data of each is a row of the list. A stream begins with the events after the id
        /// in `Last-Event-ID` or `after`, or with the next event. An event `missed` has the number
        /// of `events` that are not kept any more, and `restarted` says that the controller has
        /// started since. A stream ends after 15 minutes, or when its token is removed, and is to
        /// be resumed then, as browsers do.
        Get events "/v1/events" controller [
            Param::text("after", "For a stream: the id of the last event that is known."),
            Param::text("kind", "Only events of this kind, such as `link_down`; not for a stream."),
            Param::flag("alarming", "Only alarms; not for a stream."),
            Param::flag(
                "open",
                "Only open alarms: what they report still lasts. Not for a stream."
            ),
            PAGE
        ] => Stream "A page of the events, or a stream."
    }
    /// Waits for the events after a known one.
    "follow_events" FollowEvents -> EventsAfter;
    /// The flows of a switch.
    "list_flows" ListFlows -> FlowPage, switches;
    {
        /// The flows of a switch
        ///
        /// The switch is asked for them. They are ordered by table, then by priority (highest
        /// first), then by match.
        Get switch_flows "/v1/switches/{switch}/flows" network [
            SWITCH,
            Param::text("app", "Only flows of this app, of `controller`, or `foreign` ones."),
            PAGE
        ] => "A page of the flows."
    }
    /// The groups of a switch.
    "list_groups" ListGroups -> Rows<GroupRow>, switches;
    list GroupRow::LIST;
    {
        /// The groups of a switch
        ///
        /// The switch is asked for them. A switch with OpenFlow 1.0 has none, and is refused (409).
        Get switch_groups "/v1/switches/{switch}/groups" network [SWITCH, PAGE]
            => "A page of the groups."
    }
    /// The meters of a switch.
    "list_meters" ListMeters -> Rows<MeterRow>, switches;
    list MeterRow::LIST;
    {
        /// The meters of a switch
        ///
        /// The switch is asked for them. A switch with OpenFlow 1.0 has none, and is refused (409).
        Get switch_meters "/v1/switches/{switch}/meters" network [SWITCH, PAGE]
            => "A page of the meters."
    }
    /// Numbers of flows by switch and app.
    "count_flows" CountFlows -> Rows<SwitchFlows>, switches;
    {
        /// Numbers of flows by switch and app
        ///
        /// The switches of the page are asked for their flows.
        Get flows "/v1/flows" network [PAGE] => "A page of the switches."
    }
    /// Flows of apps that do not run here, by switch and app.
    "list_orphans" ListOrphans -> Rows<SwitchOrphans>, switches;
    {
        /// The flows of apps that do not run here, by switch
        ///
        /// An app leaves them that was taken out of the chain. The switches of the page are asked
        /// for their flows. Flows of other controllers are never among them.
        Get orphans "/v1/orphans" network [
            AT_SWITCH,
            Param::text("app", "Only flows of the app with this name."),
            PAGE
        ] => "A page of the switches."
    }
    /// Removes flows of apps that do not run here.
    "clean_flows" CleanFlows from body -> CleanAnswer, order;
    {
        /// Remove the flows of apps that do not run here
        ///
        /// Those that `GET /v1/orphans` lists, each by its match, priority and cookie.
        Post clean "/v1/orphans/clean" network takes CleanFlows => "What is removed."
    }
    /// Blocks a host or a prefix at every switch.
    "block" Block from body -> QuarantineAnswer, order;
    of "quarantine";
    {
        /// Block a host or a prefix at every switch
        ///
        /// The block lasts until it is ended. With a store, as under systemd and in a cluster, it
        /// stays over a restart of the controller; else it ends with the controller.
        Post block "/v1/quarantine" orders takes Block => "It is blocked."
    }
    /// Ends the block of a host or a prefix.
    "unblock" Unblock -> QuarantineAnswer, order;
    of "quarantine";
    {
        /// End the block of a host or a prefix
        Delete unblock "/v1/quarantine/{host}" orders [
            Param::text("host", "The host as it is listed, or its name; `/` is written `%2F`.")
        ] => "It is let back."
    }
    /// The blocked hosts.
    "list_blocked" ListBlocked -> BlockedList;
    gauges BlockedRow::GAUGES;
    of "quarantine";
    {
        /// The blocked hosts
        Get blocked "/v1/quarantine" orders [PAGE] => "A page of the blocked hosts."
    }
    /// Reserves bandwidth from one host to another.
    "reserve" Reserve from body -> ReservationRow, order;
    of "bandwidth";
    {
        /// Reserve bandwidth from one host to another
        Post reserve "/v1/reservations" orders takes Reserve => Created "It is reserved."
    }
    /// Releases a reservation. The answer is that reservation as it was.
    "release" Release -> ReservationRow, order;
    of "bandwidth";
    {
        /// Release a reservation
        ///
        /// The answer is the reservation as it was.
        Delete release "/v1/reservations/{id}" orders [
            Param { name: "id", kind: ParamKind::Number, about: "Its number." }
        ] => "It is released."
    }
    /// The reservations.
    "list_reservations" ListReservations -> Rows<ReservationRow>;
    list ReservationRow::LIST;
    gauges ReservationRow::GAUGES;
    of "bandwidth";
    {
        /// The reservations, by number
        Get reservations "/v1/reservations" orders [PAGE] => "A page of the reservations."
    }
    /// The circuits and their states.
    "list_circuits" ListCircuits -> Rows<CircuitRow>;
    list CircuitRow::LIST;
    gauges CircuitRow::GAUGES;
    of "provisioning";
    {
        /// The circuits and their states
        Get circuits "/v1/circuits" orders [PAGE] => "A page of the circuits."
    }
    /// Sets and removes static flows, groups and meters.
    "set_static" SetStatic from body -> StaticAnswer, order;
    of "static";
    {
        /// Set and remove static flows, groups and meters
        ///
        /// All of them, or none. The answer comes when the switches have confirmed them, or after
        /// some seconds with the entries that are not confirmed.
        Post set "/v1/static" orders takes SetStatic => "They are wanted now."
    }
    {
        /// Set a static flow, group or meter
        ///
        /// It replaces the entry of this name.
        Put set_one "/v1/static/{name}" orders [ENTRY, OWNER] takes StaticBody
            => "It is wanted now."
    }
    {
        /// Remove a static flow, group or meter
        Delete remove "/v1/static/{name}" orders [ENTRY, OWNER] => "It is removed."
    }
    /// The static flows, groups and meters.
    "list_static" ListStatic -> Rows<StaticRow>, switches;
    of "static";
    {
        /// The static flows, groups and meters, by name
        Get entries "/v1/static" orders [
            AT_SWITCH,
            Param::text("owner", "Only entries of this owner."),
            PAGE
        ] => "A page of the entries, with their states."
    }
    {
        /// A static flow, group or meter
        Get entry "/v1/static/{name}" orders [ENTRY] => One "The entry, with its state."
    }
    /// Sends a request to a switch as it is.
    "ask_switch" AskSwitch -> SwitchReply, switches;
    {
        /// The reply of a switch to an OpenFlow request
        ///
        /// The request goes out as it is, with another transaction id: a multipart request, or one
        /// for features, configuration, queues, roles or asynchronous messages. A multipart request
        /// of an experimenter may change the switch, so it needs a token with the scope write.
        Get reply "/v1/switches/{switch}/reply" network [
            SWITCH,
            Param {
                name: "request",
                kind: ParamKind::Required,
                about: "The message, in hexadecimal digits and the OpenFlow version of the switch."
            }
        ] => "The reply."
    }
    /// Sends messages to a switch as they are.
    "send_messages" SendMessages -> SentMessages, order;
    {
        /// Send OpenFlow messages to a switch
        ///
        /// They go out as they are, in order, with other transaction ids, and the switch confirms
        /// them. The controller does not remember them: `/v1/static` keeps flows, groups and
        /// meters.
        Post send "/v1/switches/{switch}/messages" orders [SWITCH] takes MessagesBody
            => "What became of each message."
    }
    /// The datapath ids that have a certificate.
    "list_identities" ListIdentities -> Rows<PinRow>;
    {
        /// The datapath ids that have a certificate
        ///
        /// Of switches that connect by TLS. Such a datapath id is refused to all others.
        Get identities "/v1/identities" network [PAGE] => "A page of the datapath ids."
    }
    /// Frees a datapath id from its certificate. The answer is what is forgotten.
    "forget_identity" ForgetIdentity -> PinRow, order;
    {
        /// Free a datapath id from its certificate
        ///
        /// The next certificate that connects with it has it. The answer is what is forgotten.
        Delete forget "/v1/identities/{switch}" network [SWITCH] => "It is free."
    }
    /// The cluster, as this node sees it.
    "get_cluster" GetCluster -> ClusterStatus;
    {
        /// The cluster, as this node sees it
        ///
        /// A controller that is alone answers with the problem `no_cluster`.
        Get cluster "/v1/cluster" controller => "The nodes, and the connection to etcd."
    }
    /// The switches of the cluster and their masters.
    "list_cluster_switches" ListClusterSwitches -> Rows<ClusterSwitchRow>;
    gauges ClusterSwitchRow::GAUGES;
    {
        /// The switches of the cluster and their masters, by datapath id
        Get cluster_switches "/v1/cluster/switches" controller [PAGE] => "A page of the switches."
    }
    /// Gives a switch to another node.
    "move_switch" MoveSwitch -> ClusterSwitchRow, order;
    {
        /// Give a switch to another node
        ///
        /// Ask the node that is its master. The answer comes when the other node is master, or
        /// after 5 s with a problem. Balancing leaves the switch there until that node is lost or
        /// drains, or until the next order to move it or to balance.
        Post move_switch "/v1/cluster/switches/{switch}/move" controller [SWITCH] takes MoveBody
            => "The switch obeys the other node."
    }
    /// Gives all switches of this node to others, or ends that.
    "drain_node" DrainNode from body -> ClusterStatus, order;
    {
        /// Give all switches of this node to others, before it is stopped, or end that
        Post drain_node "/v1/cluster/drain" controller takes DrainNode
            => "The cluster, with the new state of this node."
    }
    /// Lets the nodes spread all switches evenly, those that were moved by order too.
    "balance_cluster" BalanceCluster -> ClusterStatus, order;
    {
        /// Let the nodes spread all switches evenly, those that were moved by order too
        ///
        /// Any node takes this order. The answer comes when etcd has confirmed it, and the switches
        /// follow one at a time.
        Post balance_cluster "/v1/cluster/balance" controller
            => "The cluster. No switch is placed by order any more."
    }
    /// The configuration that the nodes of a cluster share.
    "get_shared_config" GetSharedConfig -> SharedConfig;
    {
        /// The configuration that the nodes share
        Get shared_config "/v1/cluster/configuration" controller
            => "The configuration, as this node knows it."
    }
    /// Replaces the configuration that the nodes of a cluster share.
    "set_shared_config" SetSharedConfig from body -> ReloadAnswer, order;
    {
        /// Replace the configuration that the nodes share
        ///
        /// All nodes apply it at once. The answer lists what has changed at the node that is asked.
        Put set_shared_config "/v1/cluster/configuration" controller takes SetSharedConfig
            => "It is stored, and in force at this node."
    }
    /// Reads the configuration again, and applies what has changed.
    "reload" Reload -> ReloadAnswer, order;
    {
        /// Read the configuration again
        ///
        /// Changes are applied together. If anything is wrong, or needs a restart, nothing changes.
        /// `dry_run` may also be in a body.
        Post reload "/v1/reload" controller [
            Param::flag("dry_run", "Only list what would change.")
        ] => "What has changed, or would."
    }
}
