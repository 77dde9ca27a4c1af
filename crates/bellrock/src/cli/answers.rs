//! The answers of a running controller over the control socket.
//!
//! The types are the JSON that `--json` prints. Names include units. This is an interface of the
//! command.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use bellrock_api::{Network, PortDesc, PriorityBand, Refusal, RefusedFlows, SwitchInfo};
use bellrock_engine::{AppState, Monitor, TaskInfo, TaskState};
use bellrock_tables::Budget;
use serde::{Deserialize, Serialize};

use super::control::Question;
use super::operate::Commands;
use super::{flows, hosts, network};

/// The controller as a whole.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Status {
    pub(super) version: String,
    pub(super) pid: u32,
    pub(super) uptime_seconds: u64,
    pub(super) listen: Vec<SocketAddr>,
    pub(super) apps: Vec<String>,
    pub(super) workers: usize,
    /// TCP connections, with or without a finished handshake.
    pub(super) connections: usize,
    /// Connections accepted since the start, and connections closed at once because of a limit.
    pub(super) accepted: u64,
    pub(super) refused: u64,
    /// Switches that are up.
    pub(super) switches: usize,
    /// Missing where the tables of the apps share no budget, as in a program of your own.
    #[serde(flatten)]
    pub(super) table_memory: Option<TableMemory>,
}

/// Memory that the tables of the apps use, and their limit.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct TableMemory {
    pub(super) table_memory_used_bytes: usize,
    pub(super) table_memory_limit_bytes: usize,
    /// Bytes of those used that the kernel was advised to keep in huge pages.
    pub(super) table_memory_huge_page_bytes: usize,
}

impl From<&Budget> for TableMemory {
    fn from(tables: &Budget) -> Self {
        TableMemory {
            table_memory_used_bytes: tables.used(),
            table_memory_limit_bytes: tables.limit(),
            table_memory_huge_page_bytes: tables.huge_page_bytes(),
        }
    }
}

/// A switch that is up.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct SwitchRow {
    /// 16 hexadecimal digits.
    pub(super) dpid: String,
    pub(super) version: String,
    pub(super) peer: SocketAddr,
    pub(super) up_seconds: u64,
    pub(super) n_tables: u8,
    pub(super) n_buffers: u32,
    pub(super) manufacturer: String,
    pub(super) hardware: String,
    pub(super) software: String,
    pub(super) serial_number: String,
    pub(super) description: String,
    pub(super) ports: Vec<PortRow>,
    /// The controller's own flows that the switch refuses, and why. It needs them to be useful.
    #[serde(default)]
    pub(super) refused_flows: Vec<RefusedFlowRow>,
}

/// One of the controller's own flows, which a switch refuses.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct RefusedFlowRow {
    pub(super) flow: String,
    pub(super) reason: String,
}

/// A port of a switch.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct PortRow {
    pub(super) port: String,
    pub(super) name: String,
    pub(super) mac: String,
    pub(super) up: bool,
}

/// An app of the chain.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct AppRow {
    pub(super) name: String,
    /// Lowest and highest priority of its flows, as in the switch.
    pub(super) lowest_priority: u16,
    pub(super) highest_priority: u16,
    /// First digits of the cookies of its flows, in hexadecimal.
    pub(super) cookie: String,
    /// How often its handlers panicked.
    pub(super) panics: u64,
    /// Whether it gets no more events because its handlers panicked too often.
    pub(super) disabled: bool,
    /// Number of errors that its handlers returned.
    pub(super) errors: u64,
    /// The latest of these errors that was logged, with its type.
    pub(super) last_error: Option<String>,
}

/// A background task of an app.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct TaskRow {
    pub(super) app: String,
    pub(super) name: String,
    /// `waiting`, `ready`, `running` or `panicked`.
    pub(super) state: String,
    /// The message of its panic.
    pub(super) panic: Option<String>,
    /// Time since it was started.
    pub(super) age_seconds: u64,
    /// How often it ran.
    pub(super) turns: u64,
    /// Total time of its turns.
    pub(super) busy_microseconds: u64,
}

/// All counters.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Counters {
    /// The counters of each worker, by name.
    pub(super) workers: Vec<BTreeMap<String, u64>>,
    /// The counters of all background tasks together.
    pub(super) tasks: BTreeMap<String, u64>,
    /// The counters of each app by name, summed over all switches.
    pub(super) apps: BTreeMap<String, BTreeMap<String, u64>>,
}

/// Answers questions about a running engine, and passes commands to its apps.
pub(super) struct Answers {
    pub(super) monitor: Monitor,
    pub(super) network: Network,
    pub(super) listen: Vec<SocketAddr>,
    pub(super) apps: Vec<String>,
    /// Memory budget that the tables of all apps share.
    pub(super) tables: Option<Budget>,
    pub(super) commands: Commands,
}

impl Answers {
    /// Returns the answer to a question, as JSON.
    ///
    /// # Errors
    /// A sentence that says why there is no answer.
    pub(super) fn to(&self, question: &Question) -> Result<String, String> {
        match question {
            Question::Status => json(&self.status()),
            Question::Switches => json(&self.switches()),
            Question::Hosts => json(&hosts::rows(&self.monitor, &self.network)),
            Question::Apps => json(&self.apps()),
            Question::Tasks => json(&self.tasks()),
            Question::Counters => json(&self.counters()),
            Question::Topology | Question::Links => json(&network::topology(&self.network)),
            Question::Events => json(&network::events(&self.network)),
            Question::Flows(words) => json(&flows::answer(&self.network, words)?),
            Question::App(command, words) => {
                json(&self.commands.call(&self.network, command, words)?)
            }
        }
    }

    fn status(&self) -> Status {
        let status = self.monitor.status();
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_seconds: status.uptime.as_secs(),
            listen: self.listen.clone(),
            apps: self.apps.clone(),
            workers: status.workers,
            connections: status.connections,
            accepted: status.accepted,
            refused: status.refused,
            switches: status.switches,
            table_memory: self.tables.as_ref().map(TableMemory::from),
        }
    }

    fn switches(&self) -> Vec<SwitchRow> {
        let now = self.monitor.now();
        let refused = self.network.extension::<RefusedFlows>();
        let refused_row = |(flow, why): (&str, Refusal)| RefusedFlowRow {
            flow: flow.to_owned(),
            reason: why.to_string(),
        };
        let row = |info: &SwitchInfo| SwitchRow {
            dpid: info.dpid.to_string(),
            version: info.version.to_string(),
            peer: info.peer,
            up_seconds: now.saturating_sub(info.since).as_secs(),
            n_tables: info.n_tables,
            n_buffers: info.n_buffers,
            manufacturer: info.description.manufacturer.to_string(),
            hardware: info.description.hardware.to_string(),
            software: info.description.software.to_string(),
            serial_number: info.description.serial_number.to_string(),
            description: info.description.datapath.to_string(),
            ports: info.ports.iter().map(port_row).collect(),
            refused_flows: refused.of(info.dpid).into_iter().map(refused_row).collect(),
        };
        self.monitor.switches().iter().map(|info| row(info)).collect()
    }

    fn apps(&self) -> Vec<AppRow> {
        let row = |app: AppState| {
            let lowest_priority = app.id.band().base();
            AppRow {
                name: app.name.to_owned(),
                lowest_priority,
                highest_priority: lowest_priority + (PriorityBand::PRIORITIES - 1),
                cookie: format!("{:08x}", app.id.cookie().with(0) >> u32::BITS),
                panics: app.panics,
                disabled: app.disabled,
                errors: app.errors,
                last_error: app.last_error,
            }
        };
        self.monitor.apps().into_iter().map(row).collect()
    }

    fn tasks(&self) -> Vec<TaskRow> {
        let now = self.monitor.now();
        self.monitor.tasks().iter().map(|task| task_row(task, now)).collect()
    }

    fn counters(&self) -> Counters {
        let named = |counters: Vec<(&str, u64)>| -> BTreeMap<String, u64> {
            counters.into_iter().map(|(name, n)| (name.to_owned(), n)).collect()
        };
        let mut apps = BTreeMap::<String, BTreeMap<String, u64>>::new();
        for (app, name, n) in self.monitor.app_counters() {
            apps.entry(app.to_owned()).or_default().insert(name.to_owned(), n);
        }
        let workers = self.monitor.worker_counters().into_iter().map(named).collect();
        Counters { workers, tasks: named(self.monitor.task_counters()), apps }
    }
}

fn json(answer: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(answer).map_err(|error| format!("no answer can be given: {error}"))
}

fn port_row(desc: &PortDesc) -> PortRow {
    PortRow {
        port: desc.port.to_string(),
        name: desc.name.to_string(),
        mac: desc.address.to_string(),
        up: desc.is_up(),
    }
}

fn task_row(task: &TaskInfo, now: Duration) -> TaskRow {
    let (state, panic) = match &task.state {
        TaskState::Waiting => ("waiting", None),
        TaskState::Ready => ("ready", None),
        TaskState::Running => ("running", None),
        TaskState::Panicked(message) => ("panicked", Some(message.clone())),
    };
    TaskRow {
        app: task.app.to_owned(),
        name: task.name.clone(),
        state: state.to_owned(),
        panic,
        age_seconds: now.saturating_sub(task.since).as_secs(),
        turns: task.polls,
        busy_microseconds: task.busy.as_micros() as u64,
    }
}
