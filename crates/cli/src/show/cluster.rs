//! The cluster, its nodes and their switches.

use std::fmt::Write;

use bellrock_query::{
    ClusterRequestsRow, ClusterStatus, ClusterSwitchRow, NodeRole, NodeRow, NodeState, SharedConfig,
};

use super::{date, named, printable, table};

/// The text that nodes share, as it can be given back. What else is known of it goes to standard
/// error.
pub(crate) fn shared_config(shared: &SharedConfig) -> String {
    let SharedConfig { generation, text, node, changed_at, trouble } = shared;
    match (node, changed_at) {
        (Some(node), Some(at)) => {
            let (node, at) = (printable(node), date(i64::try_from(*at).unwrap_or(i64::MAX)));
            eprintln!("generation {generation}, ordered at node {node} on {at}");
        }
        _ => eprintln!("the nodes share nothing"),
    }
    match trouble {
        Some(why) => {
            why.lines().for_each(|line| eprintln!("not in force here: {}", printable(line)));
        }
        None if *generation > 0 => eprintln!("in force here"),
        None => {}
    }
    let lines = text.lines().map(|line| printable(line) + "\n");
    lines.collect()
}

/// The nodes of a cluster, and the connection to etcd.
pub(crate) fn cluster(status: &ClusterStatus) -> String {
    let ClusterStatus { name, node, nodes, store, .. } = status;
    let mut text = format!("cluster {}, seen by the node {}\n", printable(name), printable(node));
    let head = ["NODE", "ADDRESS", "STATE", "LAST HEARD", "SWITCHES", "BY ORDER"];
    text.push_str(&table(&head, nodes.iter().map(|row| cells(row, row.name == *node))));
    let state = if store.reachable { "answers" } else { "does not answer" };
    let _ = write!(text, "etcd {state}");
    if let Some(ms) = store.last_heard_ms {
        let _ = write!(text, ", heard {ms} ms ago");
    }
    if let Some(revision) = store.revision {
        let _ = write!(text, "; all changes up to revision {revision} are known");
    }
    let _ = writeln!(text, "\nnewest epoch: {}", status.epoch);
    if let Some(end) = status.certificate_expiry {
        let _ = writeln!(text, "certificate of this node: until {}", date(end));
    }
    let ClusterRequestsRow { sent, answered, not_sent, unknown, taken, refused } = status.requests;
    let _ = writeln!(
        text,
        "requests to other nodes: {sent} ({answered} answered, {not_sent} not sent, {unknown} unknown); \
         of other nodes: {taken} ({refused} refused)"
    );
    if let Some(error) = &store.last_error {
        let _ = writeln!(text, "latest error of etcd: {}", printable(error));
    }
    if !status.serving {
        text.push_str(
            "this node is master of no switch: it hears no majority, or has not read etcd\n",
        );
    }
    text
}

fn cells(row: &NodeRow, is_asked: bool) -> Vec<String> {
    let state = match row.state {
        NodeState::Serving => "serving",
        NodeState::Draining => "draining",
        NodeState::NoMajority => "no majority",
        NodeState::Dead => "dead",
        _ => "unknown",
    };
    let heard = match row.last_heard_ms {
        Some(ms) => format!("{ms} ms"),
        None if is_asked => "-".to_owned(),
        None => "never".to_owned(),
    };
    vec![
        printable(&row.name),
        row.address.to_string(),
        state.to_owned(),
        heard,
        row.switches.to_string(),
        row.placed.to_string(),
    ]
}

/// The switches of a cluster, and their masters.
pub(crate) fn cluster_switches(rows: &[ClusterSwitchRow]) -> String {
    if rows.is_empty() {
        return "no switch has connected to the cluster\n".to_owned();
    }
    let row = |row: &ClusterSwitchRow| {
        let role = match row.role {
            NodeRole::Away => "not connected",
            NodeRole::Standby => "standby",
            NodeRole::Claiming => "claiming",
            NodeRole::Master => "master",
            _ => "unknown",
        };
        let masters: Vec<_> = row.masters.iter().map(|name| printable(name)).collect();
        vec![
            named(row.dpid, row.name.as_deref()),
            row.obeys.as_deref().map_or_else(|| "-".to_owned(), printable),
            if row.placed { "yes" } else { "no" }.to_owned(),
            role.to_owned(),
            row.epoch.map_or_else(|| "-".to_owned(), |epoch| epoch.to_string()),
            masters.join(","),
        ]
    };
    let head = ["SWITCH", "OBEYS", "BY ORDER", "THIS NODE", "EPOCH", "ORDER OF MASTERS"];
    table(&head, rows.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_a_table_of_its_nodes_and_a_line_about_etcd() {
        let status = serde_json::json!({
            "name": "campus", "node": "a", "serving": false,
            "nodes": [
                {"name": "a", "address": "0.0.0.0:6640", "state": "no_majority", "switches": 0},
                {"name": "b", "address": "192.0.2.2:6640", "state": "dead", "last_heard_ms": 3100,
                 "switches": 12, "placed": 2},
                {"name": "c", "address": "192.0.2.3:6640", "state": "unknown", "switches": 0},
            ],
            "store": {"reachable": false, "last_error": "timed out\u{1b}", "revision": 91, "last_heard_ms": 4210},
            "epoch": 88, "certificate_expiry": 1_950_000_000,
            "requests": {"sent": 9, "answered": 6, "not_sent": 1, "unknown": 2, "taken": 4, "refused": 3},
        });
        let expected = "\
cluster campus, seen by the node a
NODE  ADDRESS         STATE        LAST HEARD  SWITCHES  BY ORDER
a     0.0.0.0:6640    no majority  -           0         0
b     192.0.2.2:6640  dead         3100 ms     12        2
c     192.0.2.3:6640  unknown      never       0         0
etcd does not answer, heard 4210 ms ago; all changes up to revision 91 are known
newest epoch: 88
certificate of this node: until 2031-10-17
requests to other nodes: 9 (6 answered, 1 not sent, 2 unknown); of other nodes: 4 (3 refused)
latest error of etcd: timed out\\u{1b}
this node is master of no switch: it hears no majority, or has not read etcd
";
        assert_eq!(cluster(&serde_json::from_value(status).unwrap()), expected);
        let rows = serde_json::json!([
            {"dpid": "00000000000000a1", "name": "core-1", "masters": ["b", "a"], "epoch": 7,
             "obeys": "b", "placed": true, "role": "standby"},
            {"dpid": "00000000000000a2", "masters": [], "role": "claiming"},
        ]);
        let expected = "\
SWITCH            OBEYS  BY ORDER  THIS NODE  EPOCH  ORDER OF MASTERS
core-1            b      yes       standby    7      b,a
00000000000000a2  -      no        claiming   -
";
        let rows: Vec<_> = serde_json::from_value(rows).unwrap();
        assert_eq!(cluster_switches(&rows), expected);
        assert_eq!(cluster_switches(&[]), "no switch has connected to the cluster\n");
    }
}
