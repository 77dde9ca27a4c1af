//! The table's value for a host, in one word.

use crate::learning::frame::{HAS_FLOWS, HostPlace};

/// The attachment of a host, and whether switches have flows to remove with the host.
///
/// Its bits: the place at its own switch (port, and whether that switch has flows) in the lower 32,
/// whether another switch has flows in bit 32, the number of its switch from bit 40 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attachment(pub(super) u64);

const FLOWS_ELSEWHERE: u64 = 1 << 32;
const SWITCH_SHIFT: u32 = 40;
const FLOWS_THERE: u64 = HAS_FLOWS as u64;

/// The number of a switch among all that have ever connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SwitchNumber(pub(super) u32);

impl SwitchNumber {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Attachment {
    #[inline(always)]
    pub(super) fn new(switch: SwitchNumber, place: HostPlace) -> Self {
        Attachment(u64::from(switch.0) << SWITCH_SHIFT | u64::from(place.0))
    }

    #[inline(always)]
    pub(super) fn switch(self) -> SwitchNumber {
        SwitchNumber((self.0 >> SWITCH_SHIFT) as u32)
    }

    /// The place at its own switch, including whether that switch has flows.
    #[inline(always)]
    pub(super) fn place(self) -> HostPlace {
        HostPlace(self.0 as u32)
    }

    /// Returns whether its own switch has flows.
    #[inline(always)]
    pub(super) fn has_flows_there(self) -> bool {
        self.0 & FLOWS_THERE != 0
    }

    /// Returns whether another switch has flows.
    #[inline(always)]
    pub(super) fn has_flows_elsewhere(self) -> bool {
        self.0 & FLOWS_ELSEWHERE != 0
    }

    pub(super) fn with_flows_there(self) -> Self {
        Attachment(self.0 | FLOWS_THERE)
    }

    pub(super) fn with_flows_elsewhere(self) -> Self {
        Attachment(self.0 | FLOWS_ELSEWHERE)
    }

    /// Returns whether it equals `other`, ignoring flows of other switches.
    #[inline(always)]
    pub(super) fn is_same_but_for_others(self, other: Self) -> bool {
        self.0 & !FLOWS_ELSEWHERE == other.0
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::Port;

    use super::*;

    #[test]
    fn an_attachment_gives_back_what_it_is_made_of() {
        for port in [Port(1), Port(0x3fff_ffff), Port::LOCAL] {
            for switch in [0, 1, 0xff_ffff].map(SwitchNumber) {
                let place = HostPlace::at(port).unwrap();
                let plain = Attachment::new(switch, place);
                assert_eq!((plain.switch(), plain.place()), (switch, place));
                assert!(!plain.has_flows_there() && !plain.has_flows_elsewhere());
                let there = plain.with_flows_there();
                assert_eq!((there.place(), there.switch()), (place.with_flows(), switch));
                assert!(there.has_flows_there() && !there.has_flows_elsewhere());
                let both = there.with_flows_elsewhere();
                assert!(both.has_flows_elsewhere() && both.is_same_but_for_others(there));
                assert_eq!((both.place(), both.switch()), (place.with_flows(), switch));
                assert!(!both.is_same_but_for_others(plain));
            }
        }
    }
}
