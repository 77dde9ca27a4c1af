//! Priorities, as Faucet has them, so that its tools and tests find what they look for.

/// Ways into VLANs, and learning of hosts that are not known.
pub(super) const LOW: u16 = 0x1000;
/// Known hosts, and floods.
pub(super) const MATCH: u16 = 0x2000;
/// Filters and ACLs. Each rule of an ACL has one less than the rule before.
pub(super) const FILTER: u16 = 0x5000;
/// Addition for the filter of an Ethernet type, which is above that of an address.
pub(super) const ETH_TYPE_FILTER: u16 = 10;
