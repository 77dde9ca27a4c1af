//! What a scrape asks the operator for.

use bellrock_query::{
    AppRow, BlockedList, CircuitRow, ClusterStatus, ClusterSwitchRow, CounterMeaning, Counters,
    DescribeCounters, ErrorKind, EventRow, GetCluster, GetCounters, GetStatus, GetTopology,
    LatencyRow, ListApps, ListBlocked, ListCircuits, ListClusterSwitches, ListEvents,
    ListLatencies, ListReservations, ListSwitches, Operator, Page, QueryError, ReservationRow,
    Status, SwitchRow, TopologyAnswer,
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
    /// `None`: that app does not run.
    pub(super) circuits: Option<Vec<CircuitRow>>,
    pub(super) reservations: Option<Vec<ReservationRow>>,
    pub(super) blocked: Option<BlockedList>,
    /// `None`: the controller is alone.
    pub(super) cluster: Option<(ClusterStatus, Vec<ClusterSwitchRow>)>,
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
        circuits: if_runs(all_pages(|page| operator.ask(ListCircuits { page })))?,
        reservations: if_runs(all_pages(|page| operator.ask(ListReservations { page })))?,
        blocked: if_runs(operator.ask(ListBlocked { page: Page::largest(0) }))?,
        cluster: if_runs(cluster(operator))?,
    })
}

/// The switches that are connected.
pub(super) fn all_switches(operator: &dyn Operator) -> Result<Vec<SwitchRow>, QueryError> {
    all_pages(|page| operator.ask(ListSwitches { switch: None, page }))
}

/// The cluster and its switches.
fn cluster(operator: &dyn Operator) -> Result<(ClusterStatus, Vec<ClusterSwitchRow>), QueryError> {
    let status = operator.ask(GetCluster {})?;
    Ok((status, all_pages(|page| operator.ask(ListClusterSwitches { page }))?))
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
