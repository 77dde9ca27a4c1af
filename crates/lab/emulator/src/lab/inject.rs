//! Faults in a lab, and the operator's actions: on links, switches and control connections.

use std::time::Duration;

use bellrock_openflow::MultipartKind;

use super::{
    FaultAction, FaultPlan, Faults, Lab, LabError, Misreport, PROBE_AFTER, PROBE_WAIT, Unanswered,
    fail,
};
use crate::topology::{HostIndex, LinkIndex, SwitchIndex};

/// A planned event.
#[derive(Clone, Copy, Debug)]
pub(super) enum DueEvent {
    Fault(FaultAction),
    Link { link: LinkIndex, up: bool },
}

impl Lab {
    /// Draws a plan of faults, which starts now. The faults happen as time passes, and are over
    /// after [`FaultPlan::lasts`]. The plan prints its seed, and each fault with its time.
    pub fn inject(&mut self, faults: &Faults) -> FaultPlan {
        let plan = faults.plan(&self.topology);
        let now = self.now();
        for fault in plan.faults() {
            self.agenda.put(now + fault.at, DueEvent::Fault(fault.action));
        }
        plan
    }

    /// Maximum time after the faults until switches and controller are connected again, and wrong
    /// flows from before are gone. It is the sum of:
    ///
    /// - the silence until both ends of a connection have closed it: the longer of the controller's
    ///   keepalive and the switch's;
    /// - the longest wait of a switch before it connects again, and the longest handshake;
    /// - the hard timeout of the app's flows, which the caller gives.
    #[must_use]
    pub fn recovery_time(&self, hard_timeout: Duration) -> Duration {
        let session = &self.settings.session;
        let controller_time = session.echo_after + session.dead_after;
        let switch_time = PROBE_AFTER + PROBE_WAIT;
        let reconnect = self.controls.longest_wait() + session.handshake_timeout;
        controller_time.max(switch_time) + reconnect + hard_timeout
    }

    /// Takes the link between two nodes down. Both ends notice; frames on it are lost.
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

    /// Makes a switch refuse outputs to FLOOD, as switches without forwarding of their own do.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    pub fn refuse_flood(&mut self, switch: &str) {
        let switch = self.switch_id(switch);
        self.network_mut().refuse_flood(switch);
    }

    /// Appends these entries to the flow statistics of a switch, unchanged
    /// ([`crate::switch::EmulatedSwitch::report_beside`]).
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    pub fn report_beside(&mut self, switch: &str, entries: &[u8]) {
        let switch = self.switch_id(switch);
        self.network_mut().report_beside(switch, entries);
    }

    /// Restarts a switch. Its connection is lost, and also its flows, groups and meters, unless it
    /// keeps them.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    pub fn restart(&mut self, switch: &str, keep_tables: bool) {
        let switch = self.switch_id(switch);
        self.restart_switch(switch, keep_tables);
    }

    /// Disconnects a switch until [`reconnect`](Self::reconnect). Its flows stay.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    pub fn disconnect(&mut self, switch: &str) {
        let switch = self.switch_id(switch);
        self.controls
            .all()
            .for_each(|control| control.set_disconnected(switch, true, &mut self.network));
    }

    /// Lets a [disconnected](Self::disconnect) switch connect again.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    pub fn reconnect(&mut self, switch: &str) {
        let switch = self.switch_id(switch);
        self.controls
            .all()
            .for_each(|control| control.set_disconnected(switch, false, &mut self.network));
    }

    /// Stops all bytes on the control connections of a switch, without informing any end.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    pub fn silence(&mut self, switch: &str) {
        let switch = self.switch_id(switch);
        self.controls.all().for_each(|control| control.silence(switch));
    }

    /// Sets how a switch treats requests of this kind from now on; `None`: it answers them.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    pub fn unanswered(&mut self, switch: &str, kind: MultipartKind, how: Option<Unanswered>) {
        let switch = self.switch_id(switch);
        self.network.set_unanswered(switch, kind, how);
    }

    /// Sets how a switch misreports its flows from now on; `None`: it reports them as they are.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    pub fn misreports(&mut self, switch: &str, how: Option<Misreport>) {
        let switch = self.switch_id(switch);
        self.network.set_misreport(switch, how);
    }

    /// Moves a host with its link to a free port of a switch. The old port loses its link. The host
    /// sends nothing: the network learns the new place from its next frame.
    ///
    /// # Panics
    /// There is no such host or switch, or the switch has no free port. The number of ports without
    /// links is set by
    /// [`NetworkSettings::spare_ports`](crate::network::NetworkSettings::spare_ports).
    #[track_caller]
    pub fn move_host(&mut self, host: &str, to: &str) {
        let (host, to) = (self.host_id(host), self.switch_id(to));
        if let Err(error) = self.network.move_host(host, to, None, false) {
            fail(&error.into());
        }
    }

    /// Moves a host like [`move_host`](Self::move_host), but the old port stays up.
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

    /// Announces a host's address, and so its place, with a gratuitous ARP.
    ///
    /// # Panics
    /// There is no such host.
    #[track_caller]
    pub fn announce(&mut self, host: &str) {
        let host = self.host_id(host);
        self.network.with(host, |host, _, out| host.announce(out));
    }

    /// Announces the addresses of all hosts, in the order of the topology.
    pub fn announce_all(&mut self) {
        for host in (0..self.topology.hosts().len()).map(HostIndex::of) {
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
        let controller = self.controls.first_mut();
        if !controller.is_some_and(|controller| controller.hand_over(dpid, worker, now)) {
            fail(&LabError::Controller(
                "hand_over() takes a switch that is up, and the number of a worker, from 0",
            ));
        }
    }

    /// Carries out a planned event.
    pub(super) fn happen(&mut self, due: DueEvent) {
        let now = self.now();
        match due {
            DueEvent::Link { link, up } => self.set_link(link, up),
            DueEvent::Fault(FaultAction::MessageDelay { switch, at_most, lasting }) => {
                self.controls
                    .all()
                    .for_each(|control| control.delay(switch, now + lasting, at_most));
            }
            DueEvent::Fault(FaultAction::SwitchOrder { spread, lasting }) => {
                self.controls.all().for_each(|control| control.shuffle(now + lasting, spread));
            }
            DueEvent::Fault(FaultAction::ConnectionReset { switch }) => {
                self.controls.all().for_each(|control| control.reset(switch, &mut self.network));
            }
            DueEvent::Fault(FaultAction::ConnectionSilence { switch }) => {
                self.controls.all().for_each(|control| control.silence(switch));
            }
            DueEvent::Fault(FaultAction::Restart { switch, keep_tables }) => {
                self.restart_switch(switch, keep_tables);
            }
            DueEvent::Fault(FaultAction::LinkFlap { link, times, half }) => {
                for flap in 0..times {
                    let down = now + half * (2 * flap);
                    self.agenda.put(down, DueEvent::Link { link, up: false });
                    self.agenda.put(down + half, DueEvent::Link { link, up: true });
                }
            }
        }
    }

    fn set_link(&mut self, link: LinkIndex, up: bool) {
        self.network.set_link(link, up);
    }

    fn restart_switch(&mut self, switch: SwitchIndex, keep_tables: bool) {
        self.controls.all().for_each(|control| control.restarted(switch, &mut self.network));
        self.network.restart(switch, keep_tables);
    }
}
