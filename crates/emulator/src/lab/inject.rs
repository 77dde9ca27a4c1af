//! What goes wrong in a lab, and what its operators do: links, switches and control connections.

use std::time::Duration;

use bellrock_openflow::MultipartKind;

use super::{FaultPlan, Faults, Lab, LabError, PROBE_AFTER, PROBE_WAIT, Unanswered, What, fail};
use crate::topology::{HostId, LinkId, SwitchId};

/// Something that was planned.
#[derive(Clone, Copy, Debug)]
pub(super) enum Due {
    Fault(What),
    Link { link: LinkId, up: bool },
}

impl Lab {
    /// Draws a plan of faults, which begins now. They happen while time passes, and are over after
    /// [`FaultPlan::lasts`]. The plan prints what happens when, under its seed.
    pub fn inject(&mut self, faults: &Faults) -> FaultPlan {
        let plan = faults.plan(&self.topology);
        let now = self.now();
        for fault in plan.faults() {
            self.agenda.put(now + fault.at, Due::Fault(fault.what));
        }
        plan
    }

    /// How long it takes at most until switches and controller know of each other again, and flows
    /// of before that are wrong by now are gone, once faults are over:
    ///
    /// - silence until both ends of a connection have given it up: the longer of the controller's
    ///   keepalive and the switch's;
    /// - the longest wait of a switch before it tries again, and the longest handshake;
    /// - the hard timeout of the app's flows, which the caller knows.
    #[must_use]
    pub fn recovery_time(&self, hard_timeout: Duration) -> Duration {
        let session = &self.settings.session;
        let ours = session.echo_after + session.dead_after;
        let theirs = PROBE_AFTER + PROBE_WAIT;
        let reconnect = self.control.longest_wait() + session.handshake_timeout;
        ours.max(theirs) + reconnect + hard_timeout
    }

    /// Takes the link between two nodes down. Both ends notice; what is on it is lost.
    ///
    /// # Panics
    /// There is no such link.
    #[track_caller]
    pub fn link_down(&mut self, a: &str, b: &str) {
        let link = self.link_id(a, b);
        self.set_link(link, false);
    }

    /// Takes the link between two nodes up again.
    ///
    /// # Panics
    /// There is no such link.
    #[track_caller]
    pub fn link_up(&mut self, a: &str, b: &str) {
        let link = self.link_id(a, b);
        self.set_link(link, true);
    }

    /// Has a switch refuse actions that send to FLOOD, as switches do that have no forwarding of their own.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    pub fn refuse_flood(&mut self, switch: &str) {
        let switch = self.switch_id(switch);
        self.network_mut().refuse_flood(switch);
    }

    /// Has a switch report these entries of flow statistics behind its own, as they are
    /// ([`crate::switch::Switch::report_beside`]).
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    pub fn report_beside(&mut self, switch: &str, entries: &[u8]) {
        let switch = self.switch_id(switch);
        self.network_mut().report_beside(switch, entries);
    }

    /// Starts a switch again. Its connection is lost; its flows, groups and meters too, unless it
    /// keeps them.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    pub fn restart(&mut self, switch: &str, keep_tables: bool) {
        let switch = self.switch_id(switch);
        self.restart_switch(switch, keep_tables);
    }

    /// Takes the control connection of a switch away, for good. Its flows stay.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    pub fn disconnect(&mut self, switch: &str) {
        let switch = self.switch_id(switch);
        self.control.keep_away(switch, true, &mut self.network);
    }

    /// Lets a switch that was [disconnected](Self::disconnect) have a control connection again.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    pub fn reconnect(&mut self, switch: &str) {
        let switch = self.switch_id(switch);
        self.control.keep_away(switch, false, &mut self.network);
    }

    /// Lets the control connection of a switch carry nothing any more, and tells no end of it.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    pub fn silence(&mut self, switch: &str) {
        let switch = self.switch_id(switch);
        self.control.silence(switch);
    }

    /// Lets a switch deal so with questions of this kind from now on; `None`: it answers them.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    pub fn unanswered(&mut self, switch: &str, kind: MultipartKind, how: Option<Unanswered>) {
        let switch = self.switch_id(switch);
        self.network.set_unanswered(switch, kind, how);
    }

    /// Moves a host to a free port of a switch, with its link. The old port loses its link. The host
    /// says nothing: the network learns of it when it next speaks.
    ///
    /// # Panics
    /// There is no such host or switch, or the switch has no free port: how many it has beside those with links is
    /// [`NetworkSettings::spare_ports`](crate::network::NetworkSettings::spare_ports).
    #[track_caller]
    pub fn move_host(&mut self, host: &str, to: &str) {
        let (host, to) = (self.host_id(host), self.switch_id(to));
        if let Err(error) = self.network.move_host(host, to, None, false) {
            fail(&error.into());
        }
    }

    /// The same, but the old port stays up: nothing tells the switch that the host is gone.
    ///
    /// # Panics
    /// As [`move_host`](Self::move_host).
    #[track_caller]
    pub fn move_host_unseen(&mut self, host: &str, to: &str) {
        let (host, to) = (self.host_id(host), self.switch_id(to));
        if let Err(error) = self.network.move_host_unseen(host, to, None) {
            fail(&error.into());
        }
    }

    /// Lets a host tell everybody its address and, by that, where it is (a gratuitous ARP).
    ///
    /// # Panics
    /// There is no such host.
    #[track_caller]
    pub fn announce(&mut self, host: &str) {
        let host = self.host_id(host);
        self.network.with(host, |host, _, out| host.announce(out));
    }

    /// Lets all hosts do so, in the order of the topology.
    pub fn announce_all(&mut self) {
        for host in (0..self.topology.hosts().len()).map(HostId::of) {
            self.network.with(host, |host, _, out| host.announce(out));
        }
    }

    /// Hands a switch over to another worker, counted from 0.
    ///
    /// # Panics
    /// There is no such switch or worker, or the switch is not up.
    #[track_caller]
    pub fn hand_over(&mut self, switch: &str, worker: usize) {
        let dpid = self.topology.switches()[self.switch_id(switch).index()].dpid;
        let now = self.now();
        let controller = self.control.controller.as_mut();
        if !controller.is_some_and(|controller| controller.hand_over(dpid, worker, now)) {
            fail(&LabError::Controller(
                "hand_over() takes a switch that is up, and the number of a worker, from 0",
            ));
        }
    }

    /// Something planned happens.
    pub(super) fn happen(&mut self, due: Due) {
        let now = self.now();
        match due {
            Due::Link { link, up } => self.set_link(link, up),
            Due::Fault(What::MessageDelay { switch, at_most, lasting }) => {
                self.control.delay(switch, now + lasting, at_most);
            }
            Due::Fault(What::SwitchOrder { spread, lasting }) => {
                self.control.shuffle(now + lasting, spread);
            }
            Due::Fault(What::ConnectionReset { switch }) => {
                self.control.reset(switch, &mut self.network);
            }
            Due::Fault(What::ConnectionSilence { switch }) => self.control.silence(switch),
            Due::Fault(What::Restart { switch, keep_tables }) => {
                self.restart_switch(switch, keep_tables);
            }
            Due::Fault(What::LinkFlap { link, times, half }) => {
                for flap in 0..times {
                    let down = now + half * (2 * flap);
                    self.agenda.put(down, Due::Link { link, up: false });
                    self.agenda.put(down + half, Due::Link { link, up: true });
                }
            }
        }
    }

    fn set_link(&mut self, link: LinkId, up: bool) {
        self.network.set_link(link, up);
    }

    fn restart_switch(&mut self, switch: SwitchId, keep_tables: bool) {
        self.control.restarted(switch, &mut self.network);
        self.network.restart(switch, keep_tables);
    }
}
