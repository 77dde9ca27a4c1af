//! A controller with a cluster, and one without: what operators are answered.
#![cfg(feature = "control")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[cfg(feature = "apps")]
use bellrock::apps::quarantine::{BlockLists, Quarantine};
#[cfg(feature = "apps")]
use bellrock::apps::static_entries::{Static, StaticEntries};
use bellrock::book::MemoryStore;
use bellrock::book::leadership::Leadership;
use bellrock::names::Names;
use bellrock::prelude::*;
use bellrock::query::{
    AppScope, BalanceCluster, ClusterHandle, ClusterRequestsRow, ClusterStatus, ClusterStoreRow,
    ClusterSwitchRow, DrainNode, ErrorKind, GetCluster, ListApps, ListClusterSwitches, MoveSwitch,
    NodeRole, NodeRow, NodeState, QueryError, SwitchRef,
};
#[cfg(feature = "apps")]
use bellrock::query::{
    Block, ListBlocked, ReloadAnswer, SetSharedConfig, SetStatic, SharedConfig, SharedConfigHandle,
    StaticEntry, StaticFlow, Unblock,
};
use bellrock::{Controller, ControllerBuilder};

struct Nothing;
impl Handler for Nothing {}

/// Three nodes, of which this one is `a`, and a switch of each of two.
#[derive(Default)]
struct Fake {
    draining: AtomicBool,
    /// Whether it hears no majority.
    is_alone: AtomicBool,
    /// Whether a switch of node `b` is placed there by order.
    placed: AtomicBool,
}

fn switch(dpid: u64, master: &str) -> ClusterSwitchRow {
    let other = if master == "a" { "b" } else { "a" };
    ClusterSwitchRow {
        dpid: Dpid(dpid),
        name: None,
        masters: vec![master.to_owned(), other.to_owned()],
        epoch: Some(7),
        obeys: Some(master.to_owned()),
        placed: false,
        role: if master == "a" { NodeRole::Master } else { NodeRole::Standby },
    }
}

impl ClusterHandle for Fake {
    fn status(&self) -> Result<ClusterStatus, QueryError> {
        let state = |name: &str| match name {
            "a" if self.draining.load(Ordering::Relaxed) => NodeState::Draining,
            "c" => NodeState::Dead,
            _ => NodeState::Serving,
        };
        let node = |name: &str| NodeRow {
            name: name.to_owned(),
            address: SocketAddr::from(([127, 0, 0, 1], 6640)),
            state: state(name),
            last_heard_ms: None,
            switches: 1,
            placed: usize::from(name == "b" && self.placed.load(Ordering::Relaxed)),
        };
        Ok(ClusterStatus {
            name: "lab".to_owned(),
            node: "a".to_owned(),
            serving: !self.is_alone.load(Ordering::Relaxed),
            nodes: ["a", "b", "c"].map(node).into(),
            store: ClusterStoreRow { reachable: true, ..ClusterStoreRow::default() },
            epoch: 7,
            certificate_expiry: None,
            crl_expiry: None,
            requests: ClusterRequestsRow::default(),
        })
    }

    fn switches(&self) -> Result<Vec<ClusterSwitchRow>, QueryError> {
        Ok(vec![switch(0xa1, "a"), switch(0xa2, "b")])
    }

    fn move_switch(&self, dpid: Dpid, node: &str) -> Result<ClusterSwitchRow, QueryError> {
        match self.switches()?.iter().find(|row| row.dpid == dpid) {
            Some(row) if row.role == NodeRole::Master => {
                self.placed.store(true, Ordering::Relaxed);
                Ok(ClusterSwitchRow { placed: true, ..switch(dpid.0, node) })
            }
            _ => Err(QueryError::new(ErrorKind::Refused, "this node is not its master")),
        }
    }

    fn drain(&self, draining: bool) -> Result<ClusterStatus, QueryError> {
        self.draining.store(draining, Ordering::Relaxed);
        self.status()
    }

    fn balance(&self) -> Result<ClusterStatus, QueryError> {
        self.placed.store(false, Ordering::Relaxed);
        self.status()
    }
}

fn start(change: impl FnOnce(ControllerBuilder) -> ControllerBuilder) -> Controller {
    let builder = Controller::builder().app(per_switch("nothing", |_| Nothing)).workers(1);
    change(builder.listen(([127, 0, 0, 1], 0))).start().unwrap()
}

#[test]
fn operators_ask_the_cluster_and_give_it_orders() {
    let mut names = Names::default();
    names.add_switch("core-1", Dpid(0xa1)).unwrap();
    let controller =
        start(|builder| builder.names(names).cluster_handle(Arc::new(Fake::default())));
    let operator = controller.operator();
    let status = operator.ask(GetCluster {}).unwrap();
    assert_eq!((&*status.name, &*status.node, status.nodes.len()), ("lab", "a", 3));
    let rows = operator.ask(ListClusterSwitches::default()).unwrap().rows;
    let shown: Vec<_> = rows.iter().map(|row| (row.name.as_deref(), row.role)).collect();
    assert_eq!(shown, [(Some("core-1"), NodeRole::Master), (None, NodeRole::Standby)]);

    let order = |switch: &str, node: &str| MoveSwitch {
        switch: switch.parse::<SwitchRef>().unwrap(),
        node: node.to_owned(),
    };
    let moved = operator.ask(order("core-1", "b")).unwrap();
    assert_eq!((moved.name.as_deref(), moved.obeys.as_deref()), (Some("core-1"), Some("b")));
    let placed = |status: &ClusterStatus| status.nodes[1].placed;
    assert!(moved.placed && placed(&operator.ask(GetCluster {}).unwrap()) == 1);
    assert_eq!(placed(&operator.ask(BalanceCluster {}).unwrap()), 0);
    let error = operator.ask(order("core-1", "d")).unwrap_err();
    assert_eq!((error.kind, error.field.as_deref()), (ErrorKind::NotFound, Some("node")));
    assert!(error.message.ends_with("give one of a, b, c"), "{error}");
    let error = operator.ask(order("core-9", "b")).unwrap_err();
    assert_eq!((error.kind, error.field.as_deref()), (ErrorKind::NotFound, Some("switch")));
    assert_eq!(operator.ask(order("a2", "a")).unwrap_err().kind, ErrorKind::Refused);

    let state = |status: &ClusterStatus| status.nodes[0].state;
    for (draining, expected) in [(true, NodeState::Draining), (false, NodeState::Serving)] {
        assert_eq!(state(&operator.ask(DrainNode { draining }).unwrap()), expected);
        assert_eq!(state(&operator.ask(GetCluster {}).unwrap()), expected);
    }
    controller.stop();
}

#[test]
fn a_controller_that_is_alone_says_how_to_get_a_cluster() {
    let controller = start(|builder| builder);
    let operator = controller.operator();
    let switch = SwitchRef::Dpid(Dpid(1));
    let errors = [
        operator.ask(GetCluster {}).unwrap_err(),
        operator.ask(ListClusterSwitches::default()).unwrap_err(),
        operator.ask(DrainNode { draining: true }).unwrap_err(),
        operator.ask(BalanceCluster {}).unwrap_err(),
        operator.ask(MoveSwitch { switch, node: "b".to_owned() }).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind, ErrorKind::NoCluster);
        assert!(error.message.contains("set `cluster.name`"), "{error}");
    }
    controller.stop();
}

/// A configuration that the nodes share, which takes every text.
#[cfg(feature = "apps")]
struct AnyConfig;

#[cfg(feature = "apps")]
impl SharedConfigHandle for AnyConfig {
    fn get(&self) -> SharedConfig {
        SharedConfig::default()
    }

    fn set(&self, order: &SetSharedConfig) -> Result<ReloadAnswer, QueryError> {
        Ok(ReloadAnswer { applied: !order.dry_run, ..ReloadAnswer::default() })
    }
}

/// Blocks a host and lets it back, sets a static entry, and changes what nodes share. Returns the
/// notices, and the number of switches of other nodes that block the host.
#[cfg(feature = "apps")]
fn order(controller: &Controller) -> (Vec<Option<String>>, usize) {
    let operator = controller.operator();
    let host = "10.0.0.9".to_owned();
    let blocked = operator.ask(Block { host: host.clone() }).unwrap();
    assert_eq!(blocked.gaps, []);
    let [row] = &operator.ask(ListBlocked::default()).unwrap().hosts.rows[..] else {
        panic!("one host is blocked")
    };
    assert_eq!(row.at_other_nodes, blocked.at_other_nodes);
    let let_back = operator.ask(Unblock { host }).unwrap();
    let flow = StaticFlow { actions: "drop".to_owned(), ..StaticFlow::default() };
    let entry = StaticEntry {
        name: "wall".to_owned(),
        switch: SwitchRef::Dpid(Dpid(0xa2)),
        ttl_seconds: None,
        flow: Some(flow),
        group: None,
        meter: None,
    };
    let set = operator.ask(SetStatic { entries: vec![entry], ..SetStatic::default() }).unwrap();
    let shared = operator.ask(SetSharedConfig::default()).unwrap();
    let plan = operator.ask(SetSharedConfig { dry_run: true, ..SetSharedConfig::default() });
    assert_eq!(plan.unwrap().notice, None, "nothing is stored");
    let notices = vec![blocked.notice, let_back.notice, set.notice, shared.notice];
    (notices, blocked.at_other_nodes)
}

#[cfg(feature = "apps")]
#[test]
fn an_order_at_a_node_that_does_not_serve_says_that_others_carry_it_out() {
    let (fake, lists, entries) =
        (Arc::new(Fake::default()), BlockLists::default(), StaticEntries::default());
    let node = Arc::<Fake>::clone(&fake);
    let builder = Controller::builder().app(Quarantine::new(&lists)).app(Static::new(&entries));
    let builder = builder.orders(&lists).static_entries(&entries);
    let builder = builder.shared_config(Arc::new(AnyConfig)).cluster_handle(node);
    let controller = builder.workers(1).listen(([127, 0, 0, 1], 0)).start().unwrap();
    assert_eq!(order(&controller), (vec![None; 4], 1), "the other node blocks it at its switch");
    fake.is_alone.store(true, Ordering::Relaxed);
    let (notices, at_other_nodes) = order(&controller);
    assert!(
        notices.iter().flatten().all(|text| text.starts_with("this node does not serve")),
        "{notices:?}"
    );
    assert_eq!((notices.iter().flatten().count(), at_other_nodes), (4, 0));
    controller.stop();
}

/// An app that runs once in a cluster.
struct OnceOnly;

impl App for OnceOnly {
    type Handler = ();

    fn name(&self) -> &'static str {
        "once_only"
    }

    fn scope(&self) -> Scope {
        Scope::Once
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
}

#[test]
fn operators_see_which_apps_run_once_and_where() {
    let shown = |controller: &Controller| {
        let apps = controller.operator().ask(ListApps {}).unwrap();
        apps.into_iter().map(|app| (app.name, app.scope, app.leader)).collect::<Vec<_>>()
    };
    let row = |name: &str, scope, leader: Option<&str>| {
        (name.to_owned(), scope, leader.map(str::to_owned))
    };
    let nothing = row("nothing", AppScope::PerSwitch, None);
    let alone = start(|builder| builder.app(OnceOnly));
    assert_eq!(shown(&alone), [nothing.clone(), row("once_only", AppScope::Once, None)]);
    alone.stop();
    let store = MemoryStore::with_entries([("node/b".to_owned(), "\"\"".to_owned())]);
    let leadership = Leadership::shared(Arc::new(store), "b".to_owned());
    let node = start(|builder| builder.app(OnceOnly).leadership(leadership));
    let expected = [nothing, row("once_only", AppScope::Once, Some("b"))];
    let late = Instant::now() + Duration::from_secs(30);
    while shown(&node) != expected {
        assert!(Instant::now() < late, "{:?}", shown(&node));
        std::thread::sleep(Duration::from_millis(10));
    }
    node.stop();
}
