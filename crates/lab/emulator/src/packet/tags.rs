//! Pushing and popping tags: VLAN, MPLS and PBB (1.3.5 §5.12, §5.12.1).
//!
//! A new tag goes directly after the Ethernet addresses, before all other tags. In 1.3 this holds
//! for MPLS labels too (1.1 and 1.2 put them after VLAN tags). Its fields are copied from the
//! outermost tag of its kind (table 7), or zero if there was none.

use bellrock_openflow::Field;

use super::Packet;
use super::parse::{ETH_LEN, LABEL_LEN, PBB_LEN, TAG_LEN, TYPE_VLAN, be16, is_tag};

/// Start of the tags: after the addresses.
const ADDRESSES_LEN: usize = 12;

impl Packet {
    /// Adds a VLAN tag of this Ethernet type, with the id and priority of the outermost tag.
    pub fn push_vlan(&mut self, eth_type: u16) {
        let outer = self.outer_type().filter(|outer| is_tag(*outer));
        let tci = outer.and_then(|_| be16(&self.frame, ETH_LEN)).unwrap_or(0);
        self.insert_tag(eth_type, tci);
    }

    /// Sets the id of the outermost VLAN tag. Without a tag, adds one with priority 0 (1.0).
    pub fn set_vlan_vid(&mut self, vid: u16) {
        self.need_tag();
        self.set_field(Field::VlanVid, vid.into());
    }

    /// Sets the priority of the outermost VLAN tag. Without a tag, adds one with id 0 (1.0).
    pub fn set_vlan_pcp(&mut self, pcp: u8) {
        self.need_tag();
        self.set_field(Field::VlanPcp, pcp.into());
    }

    /// Removes the outermost VLAN tag.
    pub fn pop_vlan(&mut self) {
        if self.outer_type().is_some_and(is_tag) && self.frame.len() >= ETH_LEN + TAG_LEN {
            self.frame.remove(ADDRESSES_LEN, TAG_LEN);
            self.parse_again();
        }
    }

    /// Adds an MPLS label of this Ethernet type, with the label, class and TTL of the outermost
    /// one. Without one, it has the TTL of IP and is the bottom of the stack.
    pub fn push_mpls(&mut self, eth_type: u16) {
        if self.frame.len() < ETH_LEN {
            return;
        }
        let l3 = self.layout.l3;
        let under =
            self.key.has(Field::MplsLabel).then(|| self.frame[l3..].first_chunk()).flatten();
        let entry = match under.copied().map(u32::from_be_bytes) {
            // A VLAN tag between labels divides them into two stacks.
            Some(entry) if l3 > ETH_LEN => entry | BOTTOM,
            Some(entry) => entry & !BOTTOM,
            None => BOTTOM | u32::from(self.nw_ttl().unwrap_or(0)),
        };
        self.frame.insert_zeros(ETH_LEN, LABEL_LEN);
        self.put16(ADDRESSES_LEN, eth_type);
        self.frame[ETH_LEN..][..LABEL_LEN].copy_from_slice(&entry.to_be_bytes());
        self.parse_again();
    }

    /// Removes the outermost MPLS label; the data under it gets this Ethernet type.
    pub fn pop_mpls(&mut self, eth_type: u16) {
        if self.key.has(Field::MplsLabel) {
            let l3 = self.layout.l3;
            self.put16(l3 - 2, eth_type);
            self.frame.remove(l3, LABEL_LEN);
            self.parse_again();
        }
    }

    /// Adds a PBB service tag of this Ethernet type, with the service id of the outermost one and
    /// the priority of the VLAN tag. The addresses become the customer's, and the backbone
    /// addresses start as copies of them.
    pub fn push_pbb(&mut self, eth_type: u16) {
        if self.frame.len() < ETH_LEN {
            return;
        }
        let isid = self.key.number(Field::PbbIsid) as u32;
        let pcp = self.key.number(Field::VlanPcp) as u32;
        self.frame.insert_zeros(0, ADDRESSES_LEN + 2 + 4);
        self.frame.copy_within(ADDRESSES_LEN + 6..2 * ADDRESSES_LEN + 6, 0);
        self.put16(ADDRESSES_LEN, eth_type);
        self.frame[ETH_LEN..][..4].copy_from_slice(&(pcp << 29 | isid).to_be_bytes());
        self.parse_again();
    }

    /// Removes the outermost PBB service tag and the backbone addresses. A backbone VLAN tag before
    /// it stays between addresses and type.
    pub fn pop_pbb(&mut self) {
        if !self.key.has(Field::PbbIsid) {
            return;
        }
        let l3 = self.layout.l3;
        self.frame.copy_within(l3 + 4..l3 + PBB_LEN, 0);
        self.frame.remove(l3 - 2, 2 + PBB_LEN);
        self.parse_again();
    }

    fn need_tag(&mut self) {
        if !self.key.has(Field::VlanPcp) {
            self.insert_tag(TYPE_VLAN, 0);
        }
    }

    fn insert_tag(&mut self, eth_type: u16, tci: u16) {
        if self.frame.len() < ETH_LEN {
            return;
        }
        self.frame.insert_zeros(ADDRESSES_LEN, TAG_LEN);
        self.put16(ADDRESSES_LEN, eth_type);
        self.put16(ETH_LEN, tci);
        self.parse_again();
    }

    fn outer_type(&self) -> Option<u16> {
        be16(&self.frame, ADDRESSES_LEN)
    }

    fn put16(&mut self, at: usize, value: u16) {
        self.frame[at..][..2].copy_from_slice(&value.to_be_bytes());
    }
}

/// The bit of the last label in a stack.
const BOTTOM: u32 = 1 << 8;
