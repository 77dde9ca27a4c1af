//! Flows of the switch as a whole, and its meters.

use std::collections::BTreeSet;

use bellrock_api::{GroupEntry, MeterEntry};
use bellrock_openflow::{
    Band, BandType, Field, GroupType, MacAddr, Match, Meter, MeterFlags, Port,
};

use super::{Compiler, Entries, Table, priority};
use crate::intent;

/// Ethernet type of the Ethernet Configuration Testing Protocol, by which hosts see loops.
const ECTP: u16 = 0x9000;

/// Addresses that bridges do not flood: CDP, VTP and UDLD; spanning tree of PVST; and those that
/// IEEE 802.1Q keeps for the link. With the number of bits that count.
const KEPT: [(MacAddr, u32); 3] = [
    (MacAddr([0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcc]), 48),
    (MacAddr([0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcd]), 48),
    (MacAddr([0x01, 0x80, 0xc2, 0x00, 0x00, 0x00]), 44),
];

impl Compiler {
    pub(super) fn compile_switch(&self, entries: &mut Entries) {
        let settings = &self.switch().settings;
        let lowest = settings.lowest_priority.unwrap_or(0);
        for table in self.ids.used() {
            let miss = self.flow(table, lowest, Match::any());
            let miss = match self.after_miss(table) {
                Some(next) => self.goto(miss, next),
                None => miss,
            };
            entries.push(self.cookie(), miss);
        }
        for (address, bits) in KEPT {
            let matching = Match::any().with_masked(
                Field::EthDst,
                address.to_u64().into(),
                super::flood::mask(bits),
            );
            let flood = self.flow(Table::Flood, priority::MATCH + bits as u16, matching);
            entries.push(self.cookie(), flood);
        }
        let mut filter = |matching, above| {
            let flow = self.flow(self.filters(), priority::FILTER + above, matching);
            entries.push(self.cookie(), flow);
        };
        let mut sources: BTreeSet<MacAddr> = BTreeSet::new();
        if settings.drop_broadcast_source_address {
            sources.insert(MacAddr::BROADCAST);
        }
        if settings.drop_spoofed_faucet_mac {
            let vlans = self.vlans.values().filter_map(|vlan| self.intent.vlan(vlan.id));
            let vlans = vlans.filter(|vlan| !vlan.settings.reserved_internal_vlan);
            sources.extend(vlans.map(|vlan| vlan.mac));
        }
        filter(Match::any().eth_type(ECTP), priority::ETH_TYPE_FILTER);
        sources.into_iter().for_each(|source| filter(Match::any().eth_src(source), 0));
    }

    /// Where a packet goes on that no flow of a table matches. `None`: it is dropped.
    fn after_miss(&self, table: Table) -> Option<Table> {
        match table {
            // Without ACLs it lets all pass.
            Table::PortAcl => (!self.has_port_acls).then_some(Table::Vlan),
            Table::Classification => Some(Table::EthSrc),
            Table::EthSrc | Table::EthDstHairpin => Some(Table::EthDst),
            Table::EthDst if self.ids.is_used(Table::EgressAcl) => Some(Table::EgressAcl),
            Table::EthDst | Table::Egress => Some(Table::Flood),
            _ => None,
        }
    }

    pub(super) fn compile_meter(&self, number: u32, entries: &mut Entries) {
        let settings = &self.switch().settings;
        let pps = match number {
            Meter::CONTROLLER => settings.packetin_pps,
            Meter::SLOWPATH => settings.slowpath_pps,
            _ => None,
        };
        if let Some(rate) = pps {
            entries.meters.push(MeterEntry::drop_above_packets(number, rate));
        } else if let Some(meter) = self.meters.get(&number).and_then(|id| self.intent.meter(*id)) {
            entries.meters.push(meter_entry(meter));
        }
    }

    pub(super) fn compile_failover(&self, number: u32, entries: &mut Entries) {
        let Some(ports) = self.failovers.get(&number) else { return };
        let bucket = |port: &u32| {
            let action = bellrock_openflow::Action::output(Port(*port));
            bellrock_api::BucketEntry::of(&[action]).watch_port(Port(*port))
        };
        let buckets = ports.iter().map(bucket).collect();
        entries.groups.push(GroupEntry { id: number, kind: GroupType::FastFailover, buckets });
    }
}

fn meter_entry(meter: &intent::Meter) -> MeterEntry {
    let band = |band: &intent::MeterBand| Band {
        rate: band.rate,
        burst_size: band.burst_size,
        kind: band.dscp_remark.map_or(BandType::Drop, BandType::DscpRemark),
    };
    let flags: MeterFlags = meter.flags;
    MeterEntry { id: meter.number, flags, bands: meter.bands.iter().map(band).collect() }
}
