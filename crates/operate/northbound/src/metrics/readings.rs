//! What a scrape asks the operator for.

use bellrock_query::{
    AppRow, ClusterStatus, CounterMeaning, Counters, DECLARED, DescribeCounters, ErrorKind,
    EventRow, GaugeNumbers, GetCluster, GetCounters, GetStatus, GetTopology, LatencyRow, ListApps,
    ListEvents, ListLatencies, ListSwitches, Operator, Page, QueryError, Status, SwitchRow,
    TopologyAnswer,
};

use crate::answer::all_pages;

/// The answers of the operator.
#[derive(Debug)]
pub(super) struct Readings {
    pub(super) status: Status,
    /// Open alarms.
    pub(super) alarms: Vec<EventRow>,
    pub(super) switches: Vec<SwitchRow>,
    pub(super) topology: TopologyAnswer,
    pub(super) apps: Vec<AppRow>,
    pub(super) counters: Counters,
    pub(super) meanings: Vec<CounterMeaning>,
    pub(super) latencies: Vec<LatencyRow>,
    /// Numbers of rows that requests declare, of apps that run and of the cluster.
    pub(super) gauges: Vec<GaugeNumbers>,
    /// `None`: the controller is alone.
    pub(super) cluster: Option<ClusterStatus>,
}

pub(super) fn read(operator: &dyn Operator) -> Result<Readings, QueryError> {
    Ok(Readings {
        status: operator.ask(GetStatus {})?,
        alarms: operator
            .ask(ListEvents { open: true, page: Page::largest(0), ..ListEvents::default() })?
            .rows,
        switches: all_switches(operator)?,
        topology: operator.ask(GetTopology {})?,
        apps: operator.ask(ListApps {})?,
        counters: operator.ask(GetCounters {})?,
        meanings: operator.ask(DescribeCounters {})?,
        latencies: operator.ask(ListLatencies {})?,
        gauges: gauges(operator)?,
        cluster: if_runs(operator.ask(GetCluster {}))?,
    })
}

/// The switches that are connected.
pub(super) fn all_switches(operator: &dyn Operator) -> Result<Vec<SwitchRow>, QueryError> {
    all_pages(|page| operator.ask(ListSwitches { switch: None, page }))
}

/// The numbers of rows that requests declare, in the order of their names.
fn gauges(operator: &dyn Operator) -> Result<Vec<GaugeNumbers>, QueryError> {
    let mut all = Vec::new();
    for read in DECLARED.iter().filter_map(|declared| declared.gauges) {
        all.extend(if_runs(read(operator))?.into_iter().flatten());
    }
    all.sort_by_key(|gauge| gauge.name);
    Ok(all)
}

/// The answer of an app or of the cluster. `None` if the app does not run, or the controller is
/// alone.
fn if_runs<T>(answer: Result<T, QueryError>) -> Result<Option<T>, QueryError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if matches!(error.kind, ErrorKind::AppNotRunning | ErrorKind::NoCluster) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
