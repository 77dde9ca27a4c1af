//! Questions of operators to a worker: the hosts and counters of its handlers.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use crate::activity::EventKind;
use crate::apps::Worker;
use crate::apps::budget::PacketBudget;
use crate::apps::stage::{ConnectionStage, UpSwitch};
use crate::mailbox::{AppCounter, SeenHost, WorkerQuery};

/// Sums of apps' counters, by the names of app and counter.
pub(crate) type Sums = BTreeMap<(&'static str, &'static str), u64>;

impl Worker {
    pub(crate) fn query(&mut self, query: WorkerQuery, now: Duration) {
        // If the asker is gone, or its channel is full, the answer is dropped.
        match query {
            WorkerQuery::Hosts(limit, reply) => drop(reply.try_send(self.hosts(limit, now))),
            WorkerQuery::AppCounters(reply) => drop(reply.try_send(self.app_counters(now))),
            WorkerQuery::LimitPacketIns(limit) => self.limit_packet_ins(limit),
        }
    }

    fn limit_packet_ins(&mut self, limit: Option<u32>) {
        if self.settings.limits.packet_ins_per_second == limit {
            return;
        }
        self.settings.limits.packet_ins_per_second = limit;
        for (_, connection) in self.connections.iter_mut() {
            connection.own.budget = PacketBudget::of_limit(limit);
        }
    }

    /// Hosts that the handlers report, at most `limit`. Stops there.
    fn hosts(&mut self, limit: usize, now: Duration) -> Vec<SeenHost> {
        let mut hosts = Vec::new();
        for (_, connection) in self.connections.iter() {
            let ConnectionStage::Up(up) = &connection.stage else { continue };
            for (handler, app) in up.handlers.iter().zip(&self.user.chain) {
                let before = hosts.len();
                if before >= limit {
                    return hosts;
                }
                if app.health.is_disabled() {
                    continue;
                }
                let mut report = |host| {
                    if hosts.len() >= limit {
                        return ControlFlow::Break(());
                    }
                    hosts.push((up.info.dpid, app.name, host));
                    ControlFlow::Continue(())
                };
                let to = (now, &*self.counters, &mut self.log);
                if app.call("hosts", to, || handler.hosts(&mut report)).is_none() {
                    hosts.truncate(before);
                }
            }
        }
        hosts
    }

    fn app_counters(&mut self, now: Duration) -> Vec<AppCounter> {
        let mut sums = self.user.earlier_counters.clone();
        for (_, connection) in self.connections.iter() {
            if let ConnectionStage::Up(up) = &connection.stage {
                for (handler, app) in up.handlers.iter().zip(&self.user.chain) {
                    let to = (now, &*self.counters, &mut self.log);
                    let counted = app.call("counters", to, || {
                        let mut counted = Vec::new();
                        handler.counters(&mut |name, n| counted.push((name, n)));
                        counted
                    });
                    add_counters(&mut sums, app.name, counted);
                }
            }
        }
        sums.into_iter().map(|((app, name), n)| (app, name, n)).collect()
    }

    /// Notifies and drops the handlers of a switch that has gone. Keeps their counters.
    pub(crate) fn farewell(&mut self, mut up: UpSwitch, now: Duration) {
        let UpSwitch { info, handlers, .. } = &mut up;
        for (mut handler, app) in handlers.drain(..).zip(&self.user.chain) {
            self.user.calls.begin(app.place(), EventKind::SwitchDown, info.dpid);
            let counters = &*self.counters;
            let counted = app.call("counters", (now, counters, &mut self.log), || {
                let mut counted = Vec::new();
                handler.counters(&mut |name, n| counted.push((name, n)));
                counted
            });
            add_counters(&mut self.user.earlier_counters, app.name, counted);
            if !app.health.is_disabled() {
                let _ = app.call("switch_down", (now, counters, &mut self.log), || {
                    handler.switch_down(info);
                });
            }
            let _ = app.call("drop of a handler", (now, counters, &mut self.log), || drop(handler));
        }
        self.user.calls.end();
    }
}

/// Adds the counters of a handler.
fn add_counters(sums: &mut Sums, app: &'static str, counted: Option<Vec<(&'static str, u64)>>) {
    for (name, n) in counted.into_iter().flatten() {
        *sums.entry((app, name)).or_default() += n;
    }
}
