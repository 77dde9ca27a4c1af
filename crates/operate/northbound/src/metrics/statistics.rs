//! The counters that switches keep, asked for now and then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellrock_query::{CountFlows, ListPorts, Page, PortStatsRow, SwitchFlows, SwitchRef};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use super::readings::all_switches;
use crate::answer::Shared;
use crate::limits::{MAX_STATISTICS_PORTS, MAX_STATISTICS_REQUESTS, MIN_STATISTICS_INTERVAL};

/// What switches are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StatisticsKind {
    /// The counters of ports.
    Ports,
    /// Flows, which are counted by app.
    Flows,
}

/// The latest answers of the switches.
#[derive(Debug)]
pub(crate) struct Statistics {
    answers: Mutex<Answers>,
    /// Turns of the switches that are asked.
    turns: Arc<Semaphore>,
}

impl Default for Statistics {
    fn default() -> Self {
        let turns = Arc::new(Semaphore::new(MAX_STATISTICS_REQUESTS));
        Statistics { answers: Mutex::default(), turns }
    }
}

/// Answers by datapath id. A switch that did not answer is missing.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    pub(super) ports: BTreeMap<u64, Arc<[PortStatsRow]>>,
    pub(super) flows: BTreeMap<u64, Arc<SwitchFlows>>,
    /// Switches whose ports are above the limit.
    pub(super) left_out: BTreeSet<u64>,
}

impl Statistics {
    pub(super) fn snapshot(&self) -> Answers {
        self.answers().clone()
    }

    /// Each change of it is one insertion or removal after another, so a panic leaves no harm.
    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answers {
    /// Forgets switches that are not connected any more.
    fn retain(&mut self, kind: StatisticsKind, connected: &BTreeSet<u64>) {
        match kind {
            StatisticsKind::Ports => {
                self.ports.retain(|dpid, _| connected.contains(dpid));
                self.left_out.retain(|dpid| connected.contains(dpid));
            }
            StatisticsKind::Flows => self.flows.retain(|dpid, _| connected.contains(dpid)),
        }
    }

    fn set_ports(&mut self, dpid: u64, rows: Vec<PortStatsRow>, max_ports: usize) {
        self.ports.remove(&dpid);
        let others: usize = self.ports.values().map(|rows| rows.len()).sum();
        if others + rows.len() > max_ports {
            self.left_out.insert(dpid);
            return;
        }
        self.left_out.remove(&dpid);
        if !rows.is_empty() {
            self.ports.insert(dpid, rows.into());
        }
    }

    fn set_flows(&mut self, dpid: u64, row: Option<SwitchFlows>) {
        match row.filter(|row| row.problem.is_none()) {
            Some(row) => self.flows.insert(dpid, Arc::new(row)),
            None => self.flows.remove(&dpid),
        };
    }
}

/// Asks each switch once in an interval, one after the other, until the server stops.
pub(crate) async fn poll(shared: Arc<Shared>, kind: StatisticsKind, interval: Duration) {
    let interval = interval.max(MIN_STATISTICS_INTERVAL);
    loop {
        let start = Instant::now();
        let switches = shared.ask_more("list_switches", |operator| {
            let is_up = all_switches(operator)?.into_iter().filter(|row| !row.standby);
            Ok(is_up.map(|row| (row.dpid.0, SwitchRef::from(row.dpid))).collect::<Vec<_>>())
        });
        // A busy controller is asked again in the next interval. What is known stays until then.
        let Ok(switches) = switches.await else {
            sleep_until(start + interval).await;
            continue;
        };
        let connected = switches.iter().map(|(dpid, _)| *dpid).collect();
        shared.statistics.answers().retain(kind, &connected);
        let share = interval / u32::try_from(switches.len().max(1)).unwrap_or(u32::MAX);
        let mut next = start;
        for (dpid, switch) in switches {
            sleep_until(next).await;
            next += share;
            // It is never closed.
            let turn = Arc::clone(&shared.statistics.turns).acquire_owned().await;
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                let _turn = turn;
                ask(&shared, kind, dpid, switch).await;
            });
        }
        sleep_until(start + interval).await;
    }
}

/// Asks a switch. Errors are as good as no answer: the operator has logged what is wrong.
async fn ask(shared: &Shared, kind: StatisticsKind, dpid: u64, switch: SwitchRef) {
    let (switch, page) = (Some(switch), Page::largest(0));
    match kind {
        StatisticsKind::Ports => {
            let rows = shared.ask(ListPorts { switch, page }).await.map(|answer| answer.rows);
            let mut rows = rows.unwrap_or_default();
            rows.retain(|row| row.counters.is_some());
            shared.statistics.answers().set_ports(dpid, rows, MAX_STATISTICS_PORTS);
        }
        StatisticsKind::Flows => {
            let rows = shared.ask(CountFlows { switch, page }).await.map(|answer| answer.rows);
            let row = rows.unwrap_or_default().into_iter().next();
            shared.statistics.answers().set_flows(dpid, row);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ports(n: usize) -> Vec<PortStatsRow> {
        let row = json!({
            "dpid": "0000000000000001", "port": "1", "name": "s1-eth1", "mac": "00:00:00:00:00:01",
            "state": "up", "rate_kbps": null, "counters": {"rx_packets": 5},
        });
        vec![serde_json::from_value(row).unwrap(); n]
    }

    #[test]
    fn ports_above_the_limit_are_left_out_until_there_is_place() {
        let mut answers = Answers::default();
        answers.set_ports(1, ports(6), 10);
        answers.set_ports(2, ports(5), 10);
        assert_eq!(answers.left_out, BTreeSet::from([2]));
        // A switch that is asked again replaces its own ports.
        answers.set_ports(1, ports(10), 10);
        answers.set_ports(1, ports(4), 10);
        answers.set_ports(2, ports(5), 10);
        assert_eq!((answers.ports[&2].len(), answers.left_out.len()), (5, 0));
    }

    #[test]
    fn a_switch_that_is_gone_or_silent_is_forgotten() {
        let mut answers = Answers::default();
        answers.set_ports(1, ports(1), 10);
        answers.set_ports(2, ports(1), 10);
        answers.set_ports(2, vec![], 10);
        assert_eq!(answers.ports.keys().collect::<Vec<_>>(), [&1]);
        answers.retain(StatisticsKind::Flows, &BTreeSet::new());
        assert_eq!(answers.ports.len(), 1);
        answers.retain(StatisticsKind::Ports, &BTreeSet::new());
        assert!(answers.ports.is_empty());
    }
}
