//! The apps of the chain, their tasks, and all counters.

use std::collections::BTreeMap;

use bellrock_api::Dpid;
use serde::{Deserialize, Serialize};

use crate::{Page, text};

/// Asks for the apps of the chain, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ListApps {}

/// An app of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AppRow {
    /// Its name.
    pub name: String,
    /// Lowest priority of its flows, as in the switch.
    pub lowest_priority: u16,
    /// Highest priority of its flows, as in the switch.
    pub highest_priority: u16,
    /// First digits of the cookies of its flows, in hexadecimal.
    pub cookie: String,
    /// Where its background tasks run in a cluster.
    #[serde(default)]
    pub scope: AppScope,
    /// The node of the cluster that runs the tasks of an app that runs once. Nothing: no node does,
    /// this controller is alone, or the app is of another scope.
    #[serde(default)]
    pub leader: Option<String>,
    /// How often its handlers panicked.
    pub panics: u64,
    /// Whether it gets no more events because its handlers panicked too often.
    pub disabled: bool,
    /// Number of errors that its handlers returned.
    pub errors: u64,
    /// The latest of these errors that was logged, with its type.
    pub last_error: Option<String>,
    /// How often its handlers took longer than `handler_time` for an event.
    #[serde(default)]
    pub blocked: u64,
    /// Messages and tasks that were refused, because the app is not allowed to send or run them
    /// (`allow`).
    #[serde(default)]
    pub refused: u64,
    /// Messages that it has sent to switches.
    #[serde(default)]
    pub messages: u64,
    /// Seconds in which it sent more messages than its budget allows. They were sent all the same.
    #[serde(default)]
    pub message_excesses: u64,
    /// Memory of its tables. Nothing: it has none that are counted.
    #[serde(default)]
    pub tables: Option<AppTables>,
}

/// Where the background tasks of an app run in a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AppScope {
    /// At each node.
    #[default]
    PerSwitch,
    /// At one node, the leader.
    Once,
    /// A newer controller has sent it.
    #[serde(other)]
    Unknown,
}

/// The memory of an app's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AppTables {
    /// Bytes used.
    pub used_bytes: u64,
    /// Maximum number of bytes.
    pub limit_bytes: u64,
    /// How often a table got no more memory. It forgets old entries for new ones then.
    pub refusals: u64,
}

/// Asks for the background tasks of the apps, in the order of their start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListTasks {
    /// Which of them.
    pub page: Page,
}

/// A background task of an app.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TaskRow {
    /// The app.
    pub app: String,
    /// Name of the task.
    pub name: String,
    /// What it does now.
    pub state: TaskState,
    /// The message of its panic.
    pub panic: Option<String>,
    /// Time since it was started.
    pub age_seconds: u64,
    /// How often it ran.
    pub turns: u64,
    /// Total time of its turns.
    pub busy_microseconds: u64,
}

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskState {
    /// It waits for something to happen.
    Waiting,
    /// It waits for its turn.
    Ready,
    /// It runs.
    Running,
    /// It panicked, and runs no more.
    Panicked,
    /// A newer controller has sent it.
    #[serde(other)]
    Unknown,
}

/// Asks for all counters. They start at zero with the controller, and only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GetCounters {}

/// Asks what each counter counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DescribeCounters {}

/// What a counter counts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CounterMeaning {
    /// The part of the counters that it belongs to.
    pub part: CounterPart,
    /// The app, for a counter of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// Its name.
    pub name: String,
    /// What it counts, in a sentence.
    pub meaning: String,
}

/// A part of the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CounterPart {
    /// [`Counters::workers`].
    Workers,
    /// [`Counters::tasks`].
    Tasks,
    /// [`Counters::apps`].
    Apps,
    /// [`Counters::http`].
    Http,
    /// [`Counters::switches`].
    Switches,
    /// A newer controller has sent it.
    #[serde(other)]
    Unknown,
}

/// All counters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Counters {
    /// The counters of each worker, by name.
    pub workers: Vec<BTreeMap<String, u64>>,
    /// The counters of all background tasks together.
    pub tasks: BTreeMap<String, u64>,
    /// The counters of each app by name, summed over all switches.
    pub apps: BTreeMap<String, BTreeMap<String, u64>>,
    /// The counters of the HTTP server. Empty: there is none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub http: BTreeMap<String, u64>,
    /// The counters of each switch, by datapath id: those that are connected, and the last 4,096
    /// that were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<SwitchCounterRow>,
}

/// The counters of a switch over all of its connections.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SwitchCounterRow {
    /// Its datapath id.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub dpid: Dpid,
    /// Its name in the configuration.
    #[serde(default)]
    pub name: Option<String>,
    /// Its counters, by name.
    pub counters: BTreeMap<String, u64>,
}

/// Asks how long things take, and what each of the times means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ListLatencies {}

/// How often something took how long, since the controller started.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LatencyRow {
    /// Its name.
    pub name: String,
    /// From what to what it is.
    pub meaning: String,
    /// How often it was measured.
    pub count: u64,
    /// Sum of all times.
    pub sum_seconds: f64,
    /// How often it took at most so long, by the longest time. Longer times are in `count` only.
    pub buckets: Vec<LatencyBucket>,
}

/// How often something took at most this long.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LatencyBucket {
    /// The longest time.
    pub le_seconds: f64,
    /// Number of times up to it.
    pub count: u64,
}

impl LatencyRow {
    /// A time that this share of the measured ones does not exceed: the bound of a bucket. `None`
    /// if there are none, or if they are above all bounds. `share` is from 0 to 1.
    #[must_use]
    pub fn quantile_seconds(&self, share: f64) -> Option<f64> {
        let wanted = (self.count as f64 * share).ceil().max(1.0);
        let bucket = self.buckets.iter().find(|bucket| bucket.count as f64 >= wanted);
        bucket.filter(|_| self.count > 0).map(|bucket| bucket.le_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_bound_of_its_bucket() {
        let bucket = |le_seconds, count| LatencyBucket { le_seconds, count };
        let row = |count| LatencyRow {
            name: String::new(),
            meaning: String::new(),
            count,
            sum_seconds: 0.0,
            buckets: vec![bucket(0.001, 50), bucket(0.01, 98)],
        };
        let all = [0.0, 0.5, 0.51, 0.98, 0.99].map(|share| row(100).quantile_seconds(share));
        assert_eq!(all, [Some(0.001), Some(0.001), Some(0.01), Some(0.01), None]);
        let none = LatencyRow { buckets: vec![bucket(0.001, 0)], ..row(0) };
        assert_eq!(none.quantile_seconds(0.5), None);
    }
}
