//! The answers to what operators ask of a running controller, and their orders.
//!
//! # What it is not
//! It opens no socket: the crates `control` and `northbound` do, and ask the
//! [`ControllerOperator`]. It puts no controller together: the face does, and gives it the parts.

mod apps;
mod ask;
mod cluster;
mod events;
mod flows;
mod groups;
mod hosts;
#[cfg(feature = "tls")]
mod identities;
mod latencies;
mod messages;
mod missing;
mod network;
mod orphans;
mod ports;
mod queues;
mod relays;
mod static_checks;
mod static_entries;
mod static_file;
mod static_forms;
mod static_names;
mod static_upgrade;
mod wait;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::runtime::RoleControl;
use bellrock_api::{
    Dpid, NameKind, Names, Network, Port, PortDesc, PriorityBand, Refusal, RefusedFlows, Scope,
    SwitchIdentity, SwitchInfo, SwitchPort, Watch,
};
use bellrock_apps::orders::AppOrders;
use bellrock_apps::static_entries::StaticEntries;
use bellrock_book::leadership::Leadership;
use bellrock_engine::{
    AppState, COUNTERS, Monitor, PortPacketIns, SWITCH_COUNTERS, SwitchCounters, TASK_COUNTERS,
    TaskInfo, TaskState as EngineTaskState,
};
#[cfg(feature = "tls")]
use bellrock_engine::{Identities, TlsServer};
use bellrock_query::{
    Answer, AppRow, AppScope, AppTables, ClusterHandle, CounterMeaning, CounterPart, Counters,
    ErrorKind, IdentityRow, ListApps, MissingEntriesRow, Operator, PortRef, PortRow, QueryError,
    RefusedFlowRow, Reload, ReloadAnswer, Request, Rows, SharedConfigHandle, Status,
    SwitchCounterRow, SwitchRef, SwitchRow, TableMemory, TaskRow, TaskState, unknown_name,
};
use bellrock_services::desired::faults_of_switch;
use bellrock_services::discovery::RefusedAnnouncements;
use bellrock_tables::Budget;

pub use events::Run;
use orphans::OrphanApps;
pub use static_file::{StaticFileError, check_static_file, open_static_file, unix_time};
pub use static_upgrade::upgraded_entry;
pub use wait::wait_until;

/// Time limit for an order that an app carries out. Clients wait a little longer.
pub const ORDER_TIMEOUT: Duration = Duration::from_secs(8);

/// The handles of apps that take orders, if they are in the chain.
#[derive(Clone, Default)]
pub struct Handles {
    /// Apps that take orders.
    pub apps: Vec<Arc<dyn AppOrders>>,
    /// The entries of the app `static`.
    pub static_entries: Option<StaticEntries>,
    /// Reloads the configuration.
    pub reload: Option<ReloadFn>,
    /// The cluster that this controller is a node of.
    pub cluster: Option<Arc<dyn ClusterHandle>>,
    /// The configuration that the nodes of the cluster share.
    pub shared_config: Option<Arc<dyn SharedConfigHandle>>,
    /// Where apps run that run once.
    pub leadership: Option<Leadership>,
    /// Which certificate speaks for which switch.
    #[cfg(feature = "tls")]
    pub identities: Option<Identities>,
    /// TLS towards switches.
    #[cfg(feature = "tls")]
    pub tls: Option<TlsServer>,
}

/// Reads the configuration of a program again, and applies what has changed. It runs in a thread of
/// the face that asks.
pub type ReloadFn = Arc<dyn Fn(&Reload) -> Result<ReloadAnswer, QueryError> + Send + Sync>;

/// The operator of a running controller.
pub struct ControllerOperator {
    /// The engine, as it is watched.
    pub monitor: Monitor,
    /// The network of the face itself.
    pub network: Network,
    /// Addresses of plain listeners.
    pub listen: Vec<SocketAddr>,
    /// Addresses of listeners by TLS.
    pub listen_tls: Vec<SocketAddr>,
    /// Names of the apps in the chain, without the services.
    pub apps: Vec<String>,
    /// Memory budget that the tables of all apps share.
    pub tables: Option<Budget>,
    /// The share of each app in it, by name.
    pub app_tables: BTreeMap<String, Budget>,
    /// The handles of apps, and of parts of the controller.
    pub handles: Handles,
    /// Names of switches and hosts.
    pub names: Watch<Names>,
    /// This run of the controller, for positions of events.
    pub run: Run,
}

impl Operator for ControllerOperator {
    fn answer(&self, request: Request) -> Result<Answer, QueryError> {
        let network = &self.network;
        let names: &Names = &self.names.load();
        Ok(match request {
            Request::GetStatus(_) => Answer::GetStatus(self.status(names)),
            Request::ListSwitches(query) => {
                let only = query.switch.as_ref().map(|switch| self.dpid(names, switch));
                let rows = self.switches(names, only.transpose()?);
                Answer::ListSwitches(Rows::of(rows, query.page))
            }
            Request::ListPorts(query) => {
                let switches = match &query.switch {
                    Some(switch) => vec![self.switch(names, switch)?],
                    None => self.monitor.switches(),
                };
                let packet_ins_of = |dpid| self.monitor.packet_ins_by_port(dpid);
                Answer::ListPorts(ports::list(network, names, &switches, query.page, packet_ins_of))
            }
            Request::ListQueues(query) => {
                let switches = match &query.switch {
                    Some(switch) => vec![self.switch(names, switch)?],
                    None => self.monitor.switches(),
                };
                Answer::ListQueues(queues::list(network, names, switches, &query)?)
            }
            Request::ListHosts(query) => {
                let dpid = query.switch.map(|switch| self.dpid(names, &switch)).transpose()?;
                let rows = hosts::list(&self.monitor, network, dpid, query.page);
                Answer::ListHosts(rows.map(|row| hosts::with_names(row, names)))
            }
            Request::ListApps(ListApps {}) => Answer::ListApps(self.apps()),
            Request::ListTasks(query) => Answer::ListTasks(Rows::of(self.tasks(), query.page)),
            Request::GetCounters(_) => Answer::GetCounters(self.counters(names)),
            Request::DescribeCounters(_) => Answer::DescribeCounters(self.counter_meanings()),
            Request::ListLatencies(_) => {
                Answer::ListLatencies(latencies::list(&self.monitor, network))
            }
            Request::GetTopology(_) => Answer::GetTopology(network::topology(network, names)),
            Request::ListLinks(query) => {
                Answer::ListLinks(network::links_page(network, names, query.page))
            }
            Request::ListRelays(query) => {
                Answer::ListRelays(relays::list(&self.asked(names), query.page)?)
            }
            Request::JudgeRelay(order) => {
                let ports = [self.port(names, &order.from)?, self.port(names, &order.to)?];
                Answer::JudgeRelay(relays::judge(&self.asked(names), &order, ports)?)
            }
            Request::ListEvents(query) => {
                Answer::ListEvents(events::list(network, names, self.run, &query)?)
            }
            Request::FollowEvents(query) => {
                Answer::FollowEvents(events::follow(network, names, self.run, &query)?)
            }
            Request::ListFlows(query) => {
                let switch = self.switch(names, &query.switch)?;
                Answer::ListFlows(flows::list(network, names, &switch, &query)?)
            }
            Request::ListGroups(query) => {
                let switch = self.switch(names, &query.switch)?;
                Answer::ListGroups(groups::list_groups(network, &switch, &query)?)
            }
            Request::ListMeters(query) => {
                let switch = self.switch(names, &query.switch)?;
                Answer::ListMeters(groups::list_meters(network, &switch, &query)?)
            }
            Request::CountFlows(query) => {
                let dpids = self.switches_or_one(names, query.switch.as_ref())?;
                Answer::CountFlows(flows::count(network, names, dpids, query.page))
            }
            Request::ListOrphans(query) => {
                let apps = self.orphan_apps(query.app.as_deref())?;
                let dpids = self.switches_or_one(names, query.switch.as_ref())?;
                let dpids = Rows::of(dpids, query.page);
                Answer::ListOrphans(orphans::list(network, names, &apps, dpids))
            }
            Request::CleanFlows(order) => {
                let apps = self.orphan_apps(order.app.as_deref())?;
                let dpids = self.switches_or_one(names, order.switch.as_ref())?;
                Answer::CleanFlows(orphans::clean(network, names, &apps, &dpids))
            }
            Request::SetStatic(order) => Answer::SetStatic(self.set_static(names, &order)?),
            Request::ListStatic(query) => Answer::ListStatic(self.list_static(names, &query)?),
            Request::AskSwitch(query) => {
                let switch = self.switch(names, &query.switch)?;
                Answer::AskSwitch(messages::ask(network, names, &switch, &query)?)
            }
            Request::SendMessages(order) => {
                let switch = self.switch(names, &order.switch)?;
                Answer::SendMessages(messages::send(network, names, &switch, &order)?)
            }
            #[cfg(feature = "tls")]
            Request::ListIdentities(query) => {
                Answer::ListIdentities(identities::list(self.identities()?, names, query.page))
            }
            #[cfg(feature = "tls")]
            Request::ForgetIdentity(order) => {
                let dpid = self.dpid(names, &order.switch)?;
                Answer::ForgetIdentity(identities::forget(self.identities()?, names, dpid)?)
            }
            #[cfg(not(feature = "tls"))]
            Request::ListIdentities(_) | Request::ForgetIdentity(_) => return Err(no_tls()),
            Request::GetCluster(_) => Answer::GetCluster(self.cluster()?.status()?),
            Request::ListClusterSwitches(query) => {
                Answer::ListClusterSwitches(cluster::list(self.cluster()?, names, query.page)?)
            }
            Request::MoveSwitch(order) => {
                let cluster = self.cluster()?;
                let dpid = self.dpid(names, &order.switch)?;
                Answer::MoveSwitch(cluster::move_switch(cluster, names, dpid, &order)?)
            }
            Request::DrainNode(order) => {
                Answer::DrainNode(cluster::drain(self.cluster()?, &order)?)
            }
            Request::BalanceCluster(_) => Answer::BalanceCluster(self.cluster()?.balance()?),
            Request::GetSharedConfig(_) => Answer::GetSharedConfig(self.shared_config()?.get()),
            Request::SetSharedConfig(order) => {
                let answer = self.shared_config()?.set(&order)?;
                let notice = self.notice().filter(|_| !order.dry_run);
                Answer::SetSharedConfig(ReloadAnswer { notice, ..answer })
            }
            Request::Reload(order) => Answer::Reload(self.reload()?(&order)?),
            request => self.ask_app(names, &request)?,
        })
    }
}

fn no_tls() -> QueryError {
    let why = "no switch can connect by TLS; give `listen` an address with tls:, such as tls:0.0.0.0:6653";
    QueryError::new(ErrorKind::Refused, why)
}

/// The name of a switch, for a row.
fn name_of(names: &Names, dpid: Dpid) -> Option<String> {
    names.name_of(dpid).map(str::to_owned)
}

impl ControllerOperator {
    /// The switch that an operator means, if it is up, here or at another node of the cluster.
    /// Returns one switch that is up, or all of them.
    fn switches_or_one(
        &self,
        names: &Names,
        switch: Option<&SwitchRef>,
    ) -> Result<Vec<Dpid>, QueryError> {
        match switch {
            Some(switch) => Ok(vec![self.switch(names, switch)?.dpid]),
            None => Ok(self.monitor.switches().iter().map(|info| info.dpid).collect()),
        }
    }

    /// Returns the apps that come with Bellrock and do not run here, or the one with this name.
    fn orphan_apps(&self, app: Option<&str>) -> Result<OrphanApps, QueryError> {
        OrphanApps::new(&self.network, app)
    }

    fn switch(&self, names: &Names, switch: &SwitchRef) -> Result<Arc<SwitchInfo>, QueryError> {
        let dpid = self.dpid(names, switch)?;
        self.network.reachable(dpid).ok_or_else(|| {
            // Without a cluster, an operator knows which controller is the master.
            if self.network.standbys().load().get(dpid).is_some() {
                let why =
                    format!("this controller stands by at switch {switch}; ask its master instead");
                return QueryError::new(ErrorKind::Refused, why).at("switch");
            }
            let why = format!(
                "switch {switch} is not connected; `bellrock switches` lists those that are"
            );
            QueryError::not_found("switch", why)
        })
    }

    /// The datapath id of the switch that an operator means.
    fn dpid(&self, names: &Names, switch: &SwitchRef) -> Result<Dpid, QueryError> {
        match switch {
            SwitchRef::Dpid(dpid) => Ok(*dpid),
            SwitchRef::Name(name) => {
                names.switch(name).ok_or_else(|| unknown_name("switch", name, NameKind::Switch))
            }
        }
    }

    /// The port that an operator means.
    fn port(&self, names: &Names, port: &PortRef) -> Result<SwitchPort, QueryError> {
        Ok(SwitchPort::new(self.dpid(names, &port.switch)?, port.port))
    }

    fn reload(&self) -> Result<&ReloadFn, QueryError> {
        let why = "this program has no configuration that can be read again; `reload` of the builder adds one";
        let refused = || QueryError::new(ErrorKind::Refused, why);
        self.handles.reload.as_ref().ok_or_else(refused)
    }

    fn shared_config(&self) -> Result<&dyn SharedConfigHandle, QueryError> {
        self.handles.shared_config.as_deref().ok_or_else(QueryError::no_shared_config)
    }

    #[cfg(feature = "tls")]
    fn identities(&self) -> Result<&Identities, QueryError> {
        self.handles.identities.as_ref().ok_or_else(no_tls)
    }

    fn status(&self, names: &Names) -> Status {
        let status = self.monitor.status();
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_seconds: status.uptime.as_secs(),
            listen: self.listen.clone(),
            listen_tls: self.listen_tls.clone(),
            #[cfg(feature = "tls")]
            tls_certificate_expiry: self.handles.tls.as_ref().and_then(TlsServer::not_after),
            #[cfg(not(feature = "tls"))]
            tls_certificate_expiry: None,
            #[cfg(feature = "tls")]
            tls_crl_expiry: self.handles.tls.as_ref().and_then(TlsServer::revocations_end),
            #[cfg(not(feature = "tls"))]
            tls_crl_expiry: None,
            apps: self.apps.clone(),
            workers: status.workers,
            connections: status.connections,
            accepted: status.accepted,
            refused: status.refused,
            duplicates_refused: status.duplicates_refused,
            switches: status.switches,
            missing_switches: missing::list(self, names),
            hosts: self.network.hosts().load().len(),
            table_memory: self.tables.as_ref().map(table_memory),
        }
    }

    /// The switches that are connected; with `only`, that one, if it is.
    fn switches(&self, names: &Names, only: Option<Dpid>) -> Vec<SwitchRow> {
        let now = self.monitor.now();
        let refused = self.network.extension::<RefusedFlows>();
        let refused_row = |(flow, why): (&str, Refusal)| RefusedFlowRow {
            flow: flow.to_owned(),
            reason: why.to_string(),
        };
        let unannounced = self.network.extension::<RefusedAnnouncements>();
        let masters = self.masters();
        let row = |info: &SwitchInfo, standby| {
            let packet_ins = self.monitor.packet_ins_by_port(info.dpid);
            SwitchRow {
                dpid: info.dpid,
                name: name_of(names, info.dpid),
                version: info.version,
                role: info.role,
                standby,
                master: masters.get(&info.dpid).cloned(),
                peer: info.peer,
                identity: info.identity.as_deref().map(identity_row),
                up_seconds: now.saturating_sub(info.since).as_secs(),
                packet_ins: self.monitor.packet_ins_of(info.dpid),
                packet_ins_dropped: self.monitor.drops_of(info.dpid),
                n_tables: info.n_tables,
                n_buffers: info.n_buffers,
                manufacturer: info.description.manufacturer.to_string(),
                hardware: info.description.hardware.to_string(),
                software: info.description.software.to_string(),
                serial_number: info.description.serial_number.to_string(),
                description: info.description.datapath.to_string(),
                ports: info.ports.iter().map(|desc| port_row(desc, &packet_ins)).collect(),
                refused_flows: refused.of_switch(info.dpid).into_iter().map(refused_row).collect(),
                missing_entries: faults_of_switch(&self.network, info.dpid)
                    .into_iter()
                    .map(|(app, why)| MissingEntriesRow {
                        app: app.to_owned(),
                        reason: why.to_string(),
                    })
                    .collect(),
                unannounced_ports: unannounced
                    .of_switch(info.dpid)
                    .iter()
                    .map(Port::to_string)
                    .collect(),
            }
        };
        let standbys = self.network.standbys().load();
        let up = self.monitor.switches();
        let is_asked = |info: &&Arc<SwitchInfo>| only.is_none_or(|dpid| info.dpid == dpid);
        let up = up.iter().filter(is_asked).map(|info| row(info, false));
        let standbys = standbys.iter().filter(is_asked).map(|info| row(info, true));
        let mut rows: Vec<_> = up.chain(standbys).collect();
        rows.sort_by_key(|row| row.dpid);
        rows
    }

    fn apps(&self) -> Vec<AppRow> {
        let leader = self.handles.leadership.as_ref().and_then(Leadership::leader);
        let row = |app: AppState| {
            let lowest_priority = app.id.band().base();
            AppRow {
                name: app.name.to_owned(),
                lowest_priority,
                highest_priority: lowest_priority + (PriorityBand::PRIORITIES - 1),
                cookie: format!("{:08x}", app.id.cookie().with(0) >> u32::BITS),
                scope: match app.scope {
                    Scope::PerSwitch => AppScope::PerSwitch,
                    Scope::Once => AppScope::Once,
                    _ => AppScope::Unknown,
                },
                leader: leader.clone().filter(|_| app.scope == Scope::Once),
                panics: app.panics,
                disabled: app.disabled,
                errors: app.errors,
                last_error: app.last_error,
                blocked: app.blocked,
                refused: app.refused,
                messages: app.messages,
                message_excesses: app.excesses,
                tables: self.app_tables.get(app.name).map(app_tables),
            }
        };
        self.monitor.apps().into_iter().map(row).collect()
    }

    fn tasks(&self) -> Vec<TaskRow> {
        let now = self.monitor.now();
        self.monitor.tasks().iter().map(|task| task_row(task, now)).collect()
    }

    fn counters(&self, names: &Names) -> Counters {
        let named = |counters: Vec<(&str, u64)>| -> BTreeMap<String, u64> {
            counters.into_iter().map(|(name, n)| (name.to_owned(), n)).collect()
        };
        let mut apps = BTreeMap::<String, BTreeMap<String, u64>>::new();
        for (app, name, n) in self.monitor.app_counters() {
            apps.entry(app.to_owned()).or_default().insert(name.to_owned(), n);
        }
        let workers = self.monitor.worker_counters().into_iter().map(named).collect();
        let tasks = named(self.monitor.task_counters());
        let switch = |(dpid, counters): (Dpid, SwitchCounters)| SwitchCounterRow {
            dpid,
            name: name_of(names, dpid),
            counters: named(counters.iter().collect()),
        };
        let switches = self.monitor.switch_counters().into_iter().map(switch).collect();
        Counters { workers, tasks, apps, http: BTreeMap::new(), switches }
    }

    fn counter_meanings(&self) -> Vec<CounterMeaning> {
        let of = |part, app: Option<&str>, counters: &[(&str, &str)]| {
            let meaning = |&(name, meaning): &(&str, &str)| CounterMeaning {
                part,
                app: app.map(str::to_owned),
                name: name.to_owned(),
                meaning: meaning.trim().to_owned(),
            };
            counters.iter().map(meaning).collect::<Vec<_>>()
        };
        let workers = of(CounterPart::Workers, None, COUNTERS);
        let tasks = of(CounterPart::Tasks, None, TASK_COUNTERS);
        let apps = self.monitor.apps().into_iter();
        let apps =
            apps.flat_map(|app| of(CounterPart::Apps, Some(app.name), &app.counter_meanings));
        let switches = of(CounterPart::Switches, None, SWITCH_COUNTERS);
        workers.into_iter().chain(tasks).chain(apps).chain(switches).collect()
    }
}

fn identity_row(identity: &SwitchIdentity) -> IdentityRow {
    IdentityRow {
        name: identity.name.to_string(),
        key: identity.key.to_string(),
        dpids: identity.dpids.iter().map(Dpid::to_string).collect(),
        expiry: identity.not_after,
        protocol: identity.protocol.to_owned(),
        cipher: identity.cipher.to_string(),
    }
}

fn table_memory(tables: &Budget) -> TableMemory {
    TableMemory {
        table_memory_used_bytes: tables.used(),
        table_memory_limit_bytes: tables.limit(),
        table_memory_huge_page_bytes: tables.huge_page_bytes(),
    }
}

fn app_tables(tables: &Budget) -> AppTables {
    AppTables {
        used_bytes: tables.used() as u64,
        limit_bytes: tables.limit() as u64,
        refusals: tables.refusals(),
    }
}

fn port_row(desc: &PortDesc, packet_ins: &BTreeMap<Port, PortPacketIns>) -> PortRow {
    let packet_ins = packet_ins.get(&desc.port).copied().unwrap_or_default();
    PortRow {
        port: desc.port,
        name: desc.name.to_string(),
        mac: desc.address,
        state: ports::state(desc),
        packet_ins: packet_ins.passed,
        packet_ins_dropped: packet_ins.dropped,
    }
}

fn task_row(task: &TaskInfo, now: Duration) -> TaskRow {
    let (state, panic) = match &task.state {
        EngineTaskState::Waiting => (TaskState::Waiting, None),
        EngineTaskState::Ready => (TaskState::Ready, None),
        EngineTaskState::Running => (TaskState::Running, None),
        EngineTaskState::Panicked(message) => (TaskState::Panicked, Some(message.clone())),
    };
    TaskRow {
        app: task.app.to_owned(),
        name: task.name.clone(),
        state,
        panic,
        age_seconds: now.saturating_sub(task.since).as_secs(),
        turns: task.polls,
        busy_microseconds: task.busy.as_micros() as u64,
    }
}
