//! A switch with roles, as the specification says (1.3.5 §6.3.4), and what it has obeyed.

use std::collections::HashMap;

use bellrock_cluster::record::Generation;

pub(crate) struct Switch {
    pub(crate) is_up: bool,
    /// Whether it reports to a master that another one has taken its place (role_status of 1.4).
    reports_roles: bool,
    /// Whether apps send it flow_mods, which it refuses from a node that is not master.
    pub(crate) is_busy: bool,
    newest: Option<u64>,
    /// What it has told each node of it.
    pub(crate) told: Vec<Option<Generation>>,
    /// By node.
    pub(crate) connections: Vec<Option<Connection>>,
    /// The newest generation that was obeyed since the switch started, and its node.
    obeyed: Option<(Generation, usize)>,
    /// Which node was obeyed with each generation since then.
    owners: HashMap<Generation, usize>,
}

#[derive(Clone, Copy)]
pub(crate) struct Connection {
    pub(crate) number: u64,
    pub(crate) is_master: bool,
}

/// The answer to a claim.
pub(crate) enum Claimed {
    /// Granted. The node that was master before and gets a report, if any.
    Granted(Option<usize>),
    /// The switch has seen this newer generation.
    Stale(u64),
}

impl Switch {
    pub(crate) fn new(nodes: usize, reports_roles: bool, is_busy: bool) -> Self {
        Switch {
            is_up: true,
            reports_roles,
            is_busy,
            newest: None,
            told: vec![None; nodes],
            connections: vec![None; nodes],
            obeyed: None,
            owners: HashMap::new(),
        }
    }

    /// Forgets everything, as Open vSwitch does.
    pub(crate) fn restart(&mut self) {
        self.newest = None;
        self.obeyed = None;
        self.owners.clear();
        self.connections.fill(None);
    }

    pub(crate) fn newest(&self) -> Option<Generation> {
        self.newest.map(Generation)
    }

    pub(crate) fn claim(&mut self, node: usize, generation: u64) -> Claimed {
        if let Some(newest) = self.newest
            && (generation.wrapping_sub(newest) as i64) < 0
        {
            return Claimed::Stale(newest);
        }
        self.newest = Some(generation);
        let before = self.master().filter(|&before| before != node);
        for (other, connection) in self.connections.iter_mut().enumerate() {
            if let Some(connection) = connection {
                connection.is_master = other == node;
            }
        }
        Claimed::Granted(before.filter(|_| self.reports_roles))
    }

    pub(crate) fn stand_by(&mut self, node: usize) {
        if let Some(connection) = &mut self.connections[node] {
            connection.is_master = false;
        }
    }

    pub(crate) fn master(&self) -> Option<usize> {
        self.connections.iter().position(|connection| connection.is_some_and(|it| it.is_master))
    }

    /// A flow_mod of a node that believes to be master by this generation. Returns
    /// whether the switch obeys.
    pub(crate) fn flow_mod(&mut self, node: usize, generation: Generation) -> Result<bool, String> {
        if self.master() != Some(node) {
            return Ok(false);
        }
        if let Some((newest, before)) = self.obeyed
            && before != node
            && !generation.is_newer_than(newest)
        {
            return Err(format!(
                "node {node} is obeyed with {generation:x?}, an older generation than {newest:x?} of node {before}"
            ));
        }
        let owner = *self.owners.entry(generation).or_insert(node);
        if owner != node {
            return Err(format!(
                "nodes {owner} and {node} are obeyed with the same generation {generation:x?}"
            ));
        }
        let is_newer = |(newest, before)| before != node || generation.is_newer_than(newest);
        if self.obeyed.is_none_or(is_newer) {
            self.obeyed = Some((generation, node));
        }
        Ok(true)
    }
}
