//! What contradicts itself in the settings of a cluster.

use std::net::SocketAddr;

use super::{CLUSTER_NODES, ClusterConfig};
use crate::contradictions::{Contradiction, error, overlap, warning};
use crate::{Config, StorePlace};

impl Config {
    /// Contradictions of the cluster's settings. None of them matters to a controller that is
    /// alone.
    pub(crate) fn of_cluster(&self) -> Vec<Contradiction> {
        let cluster = &self.cluster;
        if !cluster.is_on() {
            return Vec::new();
        }
        let all = [cluster.missing(), cluster.number(), cluster.own_name(), cluster.own_address()];
        let all = all.into_iter().flatten();
        let tls = [cluster.node_tls(), cluster.reachable()].into_iter().flatten();
        let etcd = [cluster.user(), cluster.etcd_pair(), cluster.plain(), cluster.authorities()];
        all.chain(tls).chain(etcd.into_iter().flatten()).chain(self.files_of_apps()).collect()
    }

    /// Files that nobody would write.
    fn files_of_apps(&self) -> impl Iterator<Item = Contradiction> {
        self.apps.iter().filter_map(|app| {
            let what = app.known()?.stored?.what;
            app.store().filter(|store| **store != StorePlace::Auto)?;
            let key = format!("apps.{}.store", app.name());
            let text = format!(
                "`{key}` has no effect, since a cluster keeps {what} in etcd; leave it out"
            );
            Some(warning(&[&key], text))
        })
    }
}

impl ClusterConfig {
    fn missing(&self) -> Option<Contradiction> {
        let needed = [
            ("cluster.name", self.name.is_none()),
            ("cluster.node", self.node.is_none()),
            ("cluster.peers", self.peers.is_empty()),
            ("cluster.etcd.endpoints", self.etcd.endpoints.is_empty()),
        ];
        let missing = needed.into_iter().filter(|(_, is_missing)| *is_missing);
        let missing: Vec<_> = missing.map(|(key, _)| format!("`{key}`")).collect();
        (!missing.is_empty()).then(|| {
            let text = format!(
                "`cluster` lacks {}; set all of them, or leave `cluster` out for a controller that is alone",
                missing.join(", ")
            );
            error(&["cluster"], text)
        })
    }

    fn number(&self) -> Option<Contradiction> {
        let nodes = self.peers.len() + 1;
        let is_right = CLUSTER_NODES.contains(&nodes) && nodes % 2 == 1;
        (!is_right && !self.peers.is_empty()).then(|| {
            let text = format!(
                "`cluster.peers` has {}, so the cluster has {nodes} nodes; name 2, 4, 6 or 8 other nodes, so that a \
                 majority exists",
                self.peers.len()
            );
            error(&["cluster.peers"], text)
        })
    }

    fn own_name(&self) -> Option<Contradiction> {
        let node = self.node.as_ref().filter(|node| self.peers.contains_key(*node))?;
        let text = format!(
            "`cluster.peers` has {node:?}, which is this node (`cluster.node`); name only the other nodes"
        );
        Some(error(&["cluster.node", "cluster.peers"], text))
    }

    fn own_address(&self) -> Option<Contradiction> {
        let listen = self.listen;
        // Which addresses of other machines are this machine's own, nobody knows here.
        let is_own = |address: &SocketAddr| match listen.ip().is_unspecified() {
            true => address.ip().is_loopback() && overlap(address, &listen),
            false => *address == listen,
        };
        let (name, address) = self.peers.iter().find(|(_, address)| is_own(address))?;
        let text = format!(
            "`cluster.listen` {listen} and the peer {name:?} at {address} have one address; give each node its own"
        );
        Some(error(&["cluster.listen", "cluster.peers"], text))
    }

    fn node_tls(&self) -> Option<Contradiction> {
        let tls = &self.tls;
        let files = [("certificate", &tls.certificate), ("key", &tls.key), ("ca", &tls.ca)];
        let missing = files.into_iter().filter(|(_, file)| file.is_none());
        let missing: Vec<_> = missing.map(|(name, _)| format!("`cluster.tls.{name}`")).collect();
        let is_without = missing.len() == files.len() && tls.crl.is_none();
        if missing.is_empty() || (is_without && self.is_local()) {
            return None;
        }
        let missing = missing.join(", ");
        if !is_without {
            let text = format!(
                "`cluster.tls` needs a certificate, its key, and the authorities of the nodes; set {missing}"
            );
            let keys =
                ["cluster.tls.certificate", "cluster.tls.key", "cluster.tls.ca", "cluster.tls.crl"];
            return Some(error(&keys, text));
        }
        let (key, what) = match self.listen.ip().is_loopback() {
            false => ("cluster.listen", format!("`cluster.listen` {}", self.listen)),
            true => {
                let mut peers = self.peers.iter();
                let (name, address) = peers.find(|(_, address)| !address.ip().is_loopback())?;
                ("cluster.peers", format!("the peer {name:?} at {address}"))
            }
        };
        let text = format!(
            "{what} is not of the loopback, so the nodes need TLS; set {missing} (`bellrock pki` makes them)"
        );
        Some(error(&[key], text))
    }

    fn reachable(&self) -> Option<Contradiction> {
        let away = |(_, address): &(&String, &SocketAddr)| !address.ip().is_loopback();
        let (name, address) = self.peers.iter().find(away)?;
        self.listen.ip().is_loopback().then(|| {
            let text = format!(
                "`cluster.listen` {} is of the loopback, where the peer {name:?} at {address} cannot connect; listen \
                 on an address of the network, such as 0.0.0.0:{}",
                self.listen,
                self.listen.port()
            );
            warning(&["cluster.listen", "cluster.peers"], text)
        })
    }

    fn user(&self) -> Option<Contradiction> {
        half(
            ("cluster.etcd.user", self.etcd.user.is_some()),
            ("cluster.etcd.password_file", self.etcd.password_file.is_some()),
        )
    }

    fn etcd_pair(&self) -> Option<Contradiction> {
        half(
            ("cluster.etcd.certificate", self.etcd.certificate.is_some()),
            ("cluster.etcd.key", self.etcd.key.is_some()),
        )
    }

    fn plain(&self) -> Option<Contradiction> {
        let mut plain = self.etcd.endpoints.iter().filter(|one| !one.tls && !one.is_loopback());
        let endpoint = plain.next().filter(|_| !self.etcd.allow_plain)?;
        let text = format!(
            "`cluster.etcd.endpoints` has {endpoint} of another machine without TLS; give https://, or set \
             `cluster.etcd.allow_plain: true` if nobody else reaches that network"
        );
        Some(error(&["cluster.etcd.endpoints"], text))
    }

    fn authorities(&self) -> Option<Contradiction> {
        let etcd = &self.etcd;
        let has_tls = etcd.endpoints.iter().any(|endpoint| endpoint.tls);
        if has_tls && etcd.ca.is_none() {
            let text = "`cluster.etcd.endpoints` has https:// without the authorities of etcd; set `cluster.etcd.ca`";
            return Some(error(&["cluster.etcd.endpoints"], text.to_owned()));
        }
        let is_idle = !has_tls && !etcd.endpoints.is_empty();
        (is_idle && (etcd.ca.is_some() || etcd.certificate.is_some())).then(|| {
            let text =
                "the files of `cluster.etcd` have no effect, since no member has https://; give https://, or leave \
                 them out";
            warning(&["cluster.etcd.ca", "cluster.etcd.certificate"], text.to_owned())
        })
    }
}

/// Two settings of which only one is set.
fn half(first: (&str, bool), second: (&str, bool)) -> Option<Contradiction> {
    let (set, missing) = match (first, second) {
        ((set, true), (missing, false)) | ((missing, false), (set, true)) => (set, missing),
        _ => return None,
    };
    Some(error(&[set], format!("`{set}` needs `{missing}` too; set both, or none of them")))
}
