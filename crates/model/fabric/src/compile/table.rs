//! The tables of the pipeline: names, and numbers at a switch.

use std::fmt;

/// A table, in the order in which packets pass them. The names are Faucet's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Table {
    /// ACLs of ports, or of the switch.
    PortAcl,
    /// Which VLAN a packet of a port is in.
    Vlan,
    /// Packets of coprocessors. It is not built yet.
    Copro,
    /// ACLs of packets that come into a VLAN.
    VlanAcl,
    /// Filters, if they have a table of their own.
    Classification,
    /// Known sources, learning, and filters.
    EthSrc,
    /// Routes of IPv4. It is not built yet.
    Ipv4Fib,
    /// Routes of IPv6. It is not built yet.
    Ipv6Fib,
    /// Packets for the controller's addresses. It is not built yet.
    Vip,
    /// Known destinations at the port that the packet came in by.
    EthDstHairpin,
    /// Known destinations.
    EthDst,
    /// ACLs of packets that leave a VLAN.
    EgressAcl,
    /// Output by the metadata that an earlier table wrote.
    Egress,
    /// Packets without a known destination.
    Flood,
}

impl Table {
    /// Number of tables.
    pub const COUNT: u8 = 14;

    /// All tables, in order.
    pub const ALL: [Table; Table::COUNT as usize] = [
        Table::PortAcl,
        Table::Vlan,
        Table::Copro,
        Table::VlanAcl,
        Table::Classification,
        Table::EthSrc,
        Table::Ipv4Fib,
        Table::Ipv6Fib,
        Table::Vip,
        Table::EthDstHairpin,
        Table::EthDst,
        Table::EgressAcl,
        Table::Egress,
        Table::Flood,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Table::PortAcl => "port_acl",
            Table::Vlan => "vlan",
            Table::Copro => "copro",
            Table::VlanAcl => "vlan_acl",
            Table::Classification => "classification",
            Table::EthSrc => "eth_src",
            Table::Ipv4Fib => "ipv4_fib",
            Table::Ipv6Fib => "ipv6_fib",
            Table::Vip => "vip",
            Table::EthDstHairpin => "eth_dst_hairpin",
            Table::EthDst => "eth_dst",
            Table::EgressAcl => "egress_acl",
            Table::Egress => "egress",
            Table::Flood => "flood",
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The tables that a switch uses, and their numbers.
///
/// A switch with [`Table::COUNT`] tables or more reserves a number for each, so that a table which
/// is used later moves no other. On a smaller one only the used tables have numbers, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableIds {
    /// A bit for each used table.
    used: u16,
    is_fixed: bool,
}

impl TableIds {
    /// The numbers on a switch with this many tables. `None`: it has too few.
    pub(super) fn new(used: &[Table], tables: u8) -> Option<Self> {
        let used = used.iter().fold(0, |bits, table| bits | 1 << *table as u8);
        let is_fixed = tables >= Table::COUNT;
        let ids = TableIds { used, is_fixed };
        (is_fixed || ids.used().count() <= usize::from(tables)).then_some(ids)
    }

    /// The tables that hold flows, in order.
    pub fn used(self) -> impl Iterator<Item = Table> {
        Table::ALL.into_iter().filter(move |table| self.is_used(*table))
    }

    /// Whether a table holds flows.
    #[must_use]
    pub fn is_used(self, table: Table) -> bool {
        self.used & 1 << table as u8 != 0
    }

    /// The number of a table that is used.
    #[must_use]
    pub fn id(self, table: Table) -> u8 {
        let place = table as u8;
        let before = (self.used & ((1 << place) - 1)).count_ones() as u8;
        if self.is_fixed { place } else { before }
    }

    /// The table with a number, if one has it.
    #[must_use]
    pub fn table(self, id: u8) -> Option<Table> {
        match self.is_fixed {
            true => Table::ALL.get(usize::from(id)).copied(),
            false => self.used().nth(id.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_fixed_where_there_are_enough_tables() {
        let used = [Table::Vlan, Table::EthSrc, Table::EthDst, Table::Flood];
        let ids = TableIds::new(&used, 254).unwrap();
        assert_eq!((ids.id(Table::Vlan), ids.id(Table::Flood)), (1, 13));
        assert_eq!(ids.table(5), Some(Table::EthSrc));
        assert!(!ids.is_used(Table::PortAcl));
    }

    #[test]
    fn a_small_switch_gets_numbers_without_gaps() {
        let used = [Table::Vlan, Table::EthSrc, Table::EthDst, Table::Flood];
        let ids = TableIds::new(&used, 4).unwrap();
        assert_eq!(used.map(|table| ids.id(table)), [0, 1, 2, 3]);
        assert_eq!((ids.table(3), ids.table(4)), (Some(Table::Flood), None));
        assert_eq!(TableIds::new(&used, 3), None);
    }
}
