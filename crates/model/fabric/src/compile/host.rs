//! Flows of hosts that were learned, and of ports and VLANs where learning is off for a time.

use bellrock_api::Flow;
use bellrock_openflow::{Action, Field, FlowFlags, MacAddr, Match, Port};

use super::port::{FOR_EXTERNAL, NOT_FOR_EXTERNAL, egress_metadata, mirrors, set_external};
use super::{Compiler, Entries, Facts, HostKey, Table, priority};
use crate::intent;

/// Seconds until the flows of a host expire.
struct HostTimeouts {
    /// Of the flow by source: without packets, and in any case.
    source: (u16, u16),
    /// Of flows by destination, without packets. The flow by source expires first: else packets to
    /// the host would be flooded, and the controller not hear of it.
    destination: u16,
}

impl Compiler {
    pub(super) fn compile_host(&self, host: HostKey, facts: &Facts, entries: &mut Entries) {
        let HostKey { vid, mac } = host;
        let Some(port) = facts.port_of(host).and_then(|number| self.running(number, facts)) else {
            return;
        };
        let Some((_, is_native)) = self.membership(port.number, vid) else { return };
        if self.vlan(vid).is_none() {
            return;
        }
        let timeouts = self.timeouts(port, mac);
        let (idle, hard) = timeouts.source;
        let here = Match::any().in_port(Port(port.number)).vlan_id(vid);
        let source = self.flow(Table::EthSrc, priority::MATCH - 1, here.clone().eth_src(mac));
        let source = self.goto(source.idle(idle).hard(hard), self.output_table());
        entries.push(self.cookie(), self.reported(source));

        let to_host = Match::any().vlan_id(vid).eth_dst(mac);
        let mut marks: Vec<Option<u8>> = vec![self.has_externals.then_some(FOR_EXTERNAL)];
        if self.has_externals && !port.settings.loop_protect_external {
            marks.push(Some(NOT_FOR_EXTERNAL));
        }
        for mark in marks {
            let matching = to_host.clone();
            let matching = match mark {
                Some(pcp) => matching.with(Field::VlanPcp, pcp.into()),
                None => matching,
            };
            let flow = self.flow(Table::EthDst, priority::MATCH, matching);
            let flow = self.to_port(flow, port, (vid, is_native), false);
            entries.push(self.cookie(), self.reported(flow.idle(timeouts.destination)));
        }
        if is_hairpin(port) {
            let flow = self.flow(Table::EthDstHairpin, priority::MATCH, here.eth_dst(mac));
            let flow = self.to_port(flow, port, (vid, is_native), true);
            entries.push(self.cookie(), self.reported(flow.idle(timeouts.destination)));
        }
    }

    /// The flows of a host that are written again when it is heard of again, for their timeouts to
    /// begin anew.
    #[must_use]
    pub fn refresh(&self, host: HostKey, facts: &Facts) -> crate::diff::Plan {
        let mut entries = Entries::default();
        self.compile_host(host, facts, &mut entries);
        let is_all = facts
            .port_of(host)
            .and_then(|number| self.switch().port_numbered(number))
            .is_some_and(is_hairpin);
        let source = self.ids.id(Table::EthSrc);
        entries.flows.retain(|it| is_all || it.flow.table == source);
        crate::diff::Plan::between(&[], &[entries])
    }

    /// Sends packets of a VLAN out of a port; by the egress tables, if they are used.
    fn to_port(
        &self,
        flow: Flow,
        port: &intent::Port,
        (vid, is_native): (u16, bool),
        is_hairpin: bool,
    ) -> Flow {
        if self.ids.is_used(Table::Egress) {
            let is_acl = self.ids.is_used(Table::EgressAcl);
            let next = if is_acl { Table::EgressAcl } else { Table::Egress };
            let (metadata, mask) = egress_metadata(port.number, vid);
            return self.goto(flow.write_metadata(metadata, mask), next);
        }
        let mut actions: Vec<Action<'static>> = Vec::new();
        if is_native {
            // A mirror sees the packet as the host does.
            actions.push(Action::PopVlan);
        }
        actions.extend(mirrors(port));
        if !is_native && !is_hairpin && self.has_externals {
            actions.push(set_external(FOR_EXTERNAL));
        }
        let out = if is_hairpin { Port::IN_PORT } else { Port(port.number) };
        actions.push(Action::output(out));
        flow.actions(&actions)
    }

    fn timeouts(&self, port: &intent::Port, mac: MacAddr) -> HostTimeouts {
        let settings = &self.switch().settings;
        let guard = i64::from(settings.cache_update_guard_time);
        let jitter = i64::from(settings.learn_jitter.max(1));
        let learned = if port.settings.permanent_learn {
            0
        } else {
            // Hosts that are learned together do not expire together. All controllers and all
            // switches spread a host alike.
            let spread = (spread(mac) % jitter.unsigned_abs()) as i64;
            (i64::from(settings.timeout) - jitter + spread).abs().max(guard)
        };
        let seconds = |seconds: i64| u16::try_from(seconds).unwrap_or(u16::MAX);
        if settings.use_idle_timeout {
            let source = (seconds(learned), 0);
            return HostTimeouts { source, destination: seconds(learned + guard) };
        }
        let destination = if settings.idle_dst { learned + guard } else { 0 };
        HostTimeouts { source: (0, seconds(learned)), destination: seconds(destination) }
    }

    /// With `use_idle_timeout`, the switch reports the end of a flow.
    fn reported(&self, flow: Flow) -> Flow {
        match self.switch().settings.use_idle_timeout {
            true => flow.flags(FlowFlags::SEND_FLOW_REM),
            false => flow,
        }
    }

    pub(super) fn compile_port_ban(&self, port: u32, facts: &Facts, entries: &mut Entries) {
        if facts.is_port_banned(port) && self.running(port, facts).is_some() {
            entries.push(self.cookie(), self.ban(Match::any().in_port(Port(port))));
        }
    }

    pub(super) fn compile_vlan_ban(&self, vid: u16, facts: &Facts, entries: &mut Entries) {
        if facts.is_vlan_banned(vid) && self.vlan(vid).is_some() {
            entries.push(self.cookie(), self.ban(Match::any().vlan_id(vid)));
        }
    }

    /// Drops packets of hosts that are not known yet.
    fn ban(&self, matching: Match) -> Flow {
        let seconds = self.switch().settings.learn_ban_timeout;
        let seconds = u16::try_from(seconds).unwrap_or(u16::MAX);
        self.reported(self.flow(Table::EthSrc, priority::LOW + 1, matching).hard(seconds))
    }

    pub(super) fn compile_stray(
        &self,
        mac: MacAddr,
        port: u32,
        facts: &Facts,
        entries: &mut Entries,
    ) {
        if facts.is_stray(mac, port) && self.running(port, facts).is_some() {
            let matching = Match::any().in_port(Port(port)).eth_src(mac);
            let flow = self.flow(self.filters(), priority::FILTER, matching);
            entries.push(self.cookie(), flow);
        }
    }
}

fn is_hairpin(port: &intent::Port) -> bool {
    port.settings.hairpin || port.settings.hairpin_unicast
}

/// A number that differs from address to address, also of neighbouring ones.
fn spread(mac: MacAddr) -> u64 {
    /// 2^64 divided by the golden ratio, odd (Knuth, TAOCP 3, §6.4).
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    mac.to_u64().wrapping_mul(GOLDEN) >> 32
}
