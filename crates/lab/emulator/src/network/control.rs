//! Control of a network from outside: by controllers, by hand, and by faults.

use std::net::Ipv4Addr;

use super::*;
use bellrock_openflow::MultipartKind;

use crate::switch::{ChannelClose, ChannelId, Misreport, TooManyControllers, Unanswered};

/// Switches, and their controllers.
impl EmulatedNetwork {
    /// A switch.
    ///
    /// # Panics
    /// The id belongs to another network; so for all calls with a switch, host or link.
    #[must_use]
    pub fn switch(&self, switch: SwitchIndex) -> &EmulatedSwitch {
        &self.switches[switch.index()].switch
    }

    /// See [`EmulatedSwitch::refuse_flood`].
    pub fn refuse_flood(&mut self, switch: SwitchIndex) {
        self.switches[switch.index()].switch.refuse_flood();
    }

    /// See [`EmulatedSwitch::report_beside`].
    pub fn report_beside(&mut self, switch: SwitchIndex, entries: &[u8]) {
        self.switches[switch.index()].switch.report_beside(entries);
    }

    /// Sets the OpenFlow versions of one switch, for channels that are opened from now on. The
    /// other switches keep theirs.
    pub fn set_versions(&mut self, switch: SwitchIndex, versions: Versions) {
        self.switches[switch.index()].switch.set_versions(versions);
    }

    /// Sets how a switch treats requests of this kind from now on; `None`: it answers them.
    pub fn set_unanswered(
        &mut self,
        switch: SwitchIndex,
        kind: MultipartKind,
        how: Option<Unanswered>,
    ) {
        self.switches[switch.index()].switch.set_unanswered(kind, how);
    }

    /// Sets how a switch misreports its flows from now on; `None`: it reports them as they are.
    pub fn set_misreport(&mut self, switch: SwitchIndex, how: Option<Misreport>) {
        self.switches[switch.index()].switch.set_misreport(how);
    }

    /// Opens a channel from a switch to a controller.
    ///
    /// # Errors
    /// The switch has its maximum number of channels.
    pub fn connect(&mut self, switch: SwitchIndex) -> Result<ChannelId, TooManyControllers> {
        self.with_switch(switch, FrameSource::Switch, |switch, _, _| switch.connect())
    }

    /// Removes a channel whose connection is closed or lost.
    pub fn disconnect(&mut self, switch: SwitchIndex, channel: ChannelId) {
        self.add_to_digest(3, switch.0.into(), 0);
        self.with_switch(switch, FrameSource::Switch, |switch, _, _| switch.disconnect(channel));
        self.messages.disconnect(switch, channel);
    }

    /// Sends an echo request to a controller. See [`EmulatedSwitch::ask_echo`].
    pub fn ask_echo(&mut self, switch: SwitchIndex, channel: ChannelId) {
        self.with_switch(switch, FrameSource::Switch, |switch, _, _| switch.ask_echo(channel));
    }

    /// Gives a switch bytes from a controller, in any portions.
    ///
    /// # Errors
    /// The connection must be closed.
    pub fn control(
        &mut self,
        switch: SwitchIndex,
        channel: ChannelId,
        bytes: &[u8],
    ) -> Result<(), ChannelClose> {
        self.add_to_digest(4, switch.0.into(), digest(bytes));
        self.messages.note(switch, channel, MessageDirection::ToSwitch, self.now, bytes);
        self.with_switch(switch, FrameSource::Controller, |switch, now, out| {
            switch.control(channel, bytes, now, out)
        })
    }

    /// Passes to `each` every switch that got bytes for its controllers since the last call, in the
    /// order in which they got them. The bytes are in [`EmulatedSwitch::output`]; channels that
    /// must be closed are in [`EmulatedSwitch::overrun`].
    pub fn take_dirty(&mut self, mut each: impl FnMut(SwitchIndex)) {
        for switch in self.dirty.drain(..) {
            self.switches[switch.index()].dirty = false;
            each(switch);
        }
    }

    /// The first `n` bytes of a switch's output were sent to the controller.
    ///
    /// # Errors
    /// The connection must be closed.
    pub fn sent(
        &mut self,
        switch: SwitchIndex,
        channel: ChannelId,
        n: usize,
    ) -> Result<(), ChannelClose> {
        let output = self.switches[switch.index()].switch.output(channel);
        let bytes = &output[..n.min(output.len())];
        self.messages.note(switch, channel, MessageDirection::FromSwitch, self.now, bytes);
        let digest_of_bytes = digest(bytes);
        self.add_to_digest(5, switch.0.into(), digest_of_bytes);
        self.with_switch(switch, FrameSource::Controller, |switch, now, out| {
            switch.sent(channel, n, now, out)
        })
    }

    /// Restarts a switch. Its connections are lost, and without `keep_tables` also its flows,
    /// groups and meters.
    pub fn restart(&mut self, switch: SwitchIndex, keep_tables: bool) {
        self.add_to_digest(6, switch.0.into(), keep_tables.into());
        self.with_switch(switch, FrameSource::Switch, |switch, _, _| switch.restart(keep_tables));
        self.messages.restart(switch);
    }

    /// The messages between switches and controllers, as far as they are kept
    /// ([`NetworkSettings::messages`]).
    #[must_use]
    pub fn messages(&self) -> &MessageLog {
        &self.messages
    }
}

/// Hosts.
impl EmulatedNetwork {
    /// A host.
    #[must_use]
    pub fn host(&self, host: HostIndex) -> &EmulatedHost {
        &self.hosts[host.index()].host
    }

    /// Calls `act` with a host at the present time. Frames that the host sends go on its link.
    pub fn with<T>(
        &mut self,
        host: HostIndex,
        act: impl FnOnce(&mut EmulatedHost, Duration, &mut Effects) -> T,
    ) -> T {
        self.with_host(host, act)
    }

    /// Starts a ping from one host to another. See [`EmulatedHost::ping`].
    ///
    /// # Errors
    /// Both hosts are the same, or there are too many pings.
    pub fn ping(
        &mut self,
        from: HostIndex,
        to: HostIndex,
        settings: PingSettings,
    ) -> Result<PingId, HostError> {
        self.ping_address(from, self.host(to).ip(), settings)
    }

    /// Starts a ping from a host to an address, which may be an app's instead of a host's.
    ///
    /// # Errors
    /// The address is the host's own, or there are too many pings.
    pub fn ping_address(
        &mut self,
        from: HostIndex,
        to: Ipv4Addr,
        settings: PingSettings,
    ) -> Result<PingId, HostError> {
        self.with_host(from, |host, now, out| host.ping(to, settings, now, out))
    }

    /// Ends a ping, and returns its result.
    pub fn end_ping(&mut self, host: HostIndex, ping: PingId) -> Option<PingStatistics> {
        self.with_host(host, |host, _, _| host.end_ping(ping))
    }

    /// Opens a flow like TCP's from one host to a port of another, which listens there from now on.
    /// See [`EmulatedHost::open_flow`].
    ///
    /// # Errors
    /// Both hosts are the same, or there are too many flows.
    pub fn open_flow(
        &mut self,
        from: HostIndex,
        to: HostIndex,
        port: u16,
        goal: FlowGoal,
    ) -> Result<HostFlowId, HostError> {
        let ip = self.with_host(to, |host, _, _| {
            host.listen(port);
            host.ip()
        });
        self.with_host(from, |host, now, out| host.open_flow(ip, port, goal, now, out))
    }

    /// Starts a stream of datagrams. See [`EmulatedHost::udp_stream`].
    ///
    /// # Errors
    /// The destination is the host itself, the data is too long, or there are too many streams.
    pub fn udp_stream(
        &mut self,
        from: HostIndex,
        settings: StreamSettings,
    ) -> Result<(), HostError> {
        self.with_host(from, |host, now, out| host.udp_stream(settings, now, out))
    }

    /// The switch of a host, and its port there. `None` if the host has no link.
    #[must_use]
    pub fn place(&self, host: HostIndex) -> Option<(SwitchIndex, u32)> {
        let (link, end) = self.hosts[host.index()].link?;
        let other = self.links[link.index()].ends[1 - end];
        match other.node {
            Node::Switch(switch) => Some((switch, other.port)),
            Node::Host(_) => None,
        }
    }

    /// Moves a host with its link to another port, of the same switch or of another one. Both ports
    /// change state. With `announce` the host announces its address, as many hosts do. Without, the
    /// network learns the new place from the host's next frame.
    ///
    /// # Errors
    /// The host has no link; the port does not exist or has a link; with `None`, no port is free.
    pub fn move_host(
        &mut self,
        host: HostIndex,
        to: SwitchIndex,
        port: Option<u32>,
        announce: bool,
    ) -> Result<(), MoveError> {
        self.replug(host, to, port, false)?;
        if announce {
            self.with_host(host, |host, _, out| host.announce(out));
        }
        Ok(())
    }

    /// Moves a host as if a device stood between it and its port: the port stays up without the
    /// host, and sends no port_status. See [`move_host`](Self::move_host).
    ///
    /// # Errors
    /// The errors of [`move_host`](Self::move_host).
    pub fn move_host_unseen(
        &mut self,
        host: HostIndex,
        to: SwitchIndex,
        port: Option<u32>,
    ) -> Result<(), MoveError> {
        self.replug(host, to, port, true)
    }

    fn replug(
        &mut self,
        host: HostIndex,
        to: SwitchIndex,
        port: Option<u32>,
        old_port_stays_up: bool,
    ) -> Result<(), MoveError> {
        let name = || self.topology.name(Node::Switch(to)).to_owned();
        let slot = &self.switches[to.index()];
        let index = match port {
            Some(port) => {
                slot.port(port).ok_or_else(|| MoveError::NoPort { switch: name(), port })?
            }
            None => {
                let free = slot.ports.iter().position(|(_, link)| link.is_none());
                free.ok_or_else(|| MoveError::NoFreePort(name()))?
            }
        };
        let (port, present) = slot.ports[index];
        if present.is_some() {
            return Err(MoveError::Taken { switch: name(), port });
        }
        let Some((link, end)) = self.hosts[host.index()].link else {
            return Err(MoveError::NoLink(self.topology.name(Node::Host(host)).to_owned()));
        };
        let up = self.links[link.index()].up;
        if old_port_stays_up {
            self.links[link.index()].set(false);
        } else {
            self.set_link(link, false);
        }
        self.set_present(link, false);
        self.links[link.index()].ends[1 - end] = LinkEnd { node: Node::Switch(to), port };
        self.set_present(link, true);
        self.set_link(link, up);
        Ok(())
    }
}

/// Links.
impl EmulatedNetwork {
    /// Takes a link down or up. The switches at its ends notice; frames on it are lost.
    pub fn set_link(&mut self, link: LinkIndex, up: bool) {
        self.add_to_digest(7, link.0.into(), up.into());
        self.links[link.index()].set(up);
        for end in self.links[link.index()].ends {
            self.set_port(end, up);
        }
    }

    /// Whether a link is up.
    #[must_use]
    pub fn is_link_up(&self, link: LinkIndex) -> bool {
        self.links[link.index()].up
    }

    /// The ends of a link as they are now.
    #[must_use]
    pub fn link_ends(&self, link: LinkIndex) -> [LinkEnd; 2] {
        self.links[link.index()].ends
    }

    /// Counters of a link, for each direction: from its first end, and from its second.
    #[must_use]
    pub fn link_counters(&self, link: LinkIndex) -> [LinkCounters; 2] {
        self.links[link.index()].directions.each_ref().map(|direction| direction.counters)
    }

    /// The other end of the link at a switch's port, if the link exists and is up.
    #[must_use]
    pub fn peer(&self, switch: SwitchIndex, port: u32) -> Option<LinkEnd> {
        let slot = &self.switches[switch.index()];
        let (link, end) = slot.ports[slot.port(port)?].1?;
        let link = &self.links[link.index()];
        link.up.then_some(link.ends[1 - end])
    }

    fn set_port(&mut self, end: LinkEnd, up: bool) {
        if let Node::Switch(switch) = end.node {
            self.with_switch(switch, FrameSource::Switch, |switch, _, out| {
                switch.set_link(end.port, up, out);
            });
        }
    }

    /// Records at the ends of a link that it is there, or that it is not.
    pub(super) fn set_present(&mut self, link: LinkIndex, is_present: bool) {
        for (index, end) in self.links[link.index()].ends.into_iter().enumerate() {
            let at = is_present.then_some((link, index));
            match end.node {
                Node::Host(host) => self.hosts[host.index()].link = at,
                Node::Switch(switch) => {
                    let slot = &mut self.switches[switch.index()];
                    if let Some(port) = slot.port(end.port) {
                        slot.ports[port].1 = at;
                    }
                    if is_present && self.links[link.index()].up {
                        self.set_port(end, true);
                    }
                }
            }
        }
    }
}

/// Paths.
impl EmulatedNetwork {
    /// The hops of frames, the oldest first, as far as they are kept ([`NetworkSettings::hops`]).
    pub fn hops(&self) -> impl DoubleEndedIterator<Item = &FrameHop> {
        self.hops.iter()
    }

    /// Removes all hops so far.
    pub fn forget_hops(&mut self) {
        self.hops.forget();
    }
}
