//! Bands: the 65,536 priorities, divided among those who write flows into the same switch.
//!
//! Each has priorities of its own, 0 to 4095, and its band says which of the switch's those are. So the
//! order of the bands decides whose flows count, whoever wrote them first:
//!
//! ```text
//!  15      12 11                      0
//! +----------+-------------------------+
//! |   band   |   priority in the band  |
//! +----------+-------------------------+
//! ```
//!
//! The lowest band is nobody's but the controller's own: the table-miss entry is there.

use crate::FlowMod;

/// A sixteenth of the priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PriorityBand {
    /// The upper byte of its lowest priority.
    high: u8,
}

impl PriorityBand {
    /// Priorities of a band: they are below this.
    pub const PRIORITIES: u16 = 4096;

    /// The middle of a band. [`FlowMod::DEFAULT_PRIORITY`], which is the middle of all priorities, means
    /// this one.
    pub const MIDDLE: u16 = Self::PRIORITIES / 2;

    /// Places in a chain that have a band.
    pub const PLACES: usize = 15;

    /// The band of a place in a chain: the first has the highest. `None` from [`PriorityBand::PLACES`] on.
    #[must_use]
    pub const fn of_place(place: usize) -> Option<Self> {
        if place < Self::PLACES {
            Some(PriorityBand { high: ((Self::PLACES - place) as u8) << 4 })
        } else {
            None
        }
    }

    /// Its lowest priority, as the switch has it.
    #[must_use]
    pub const fn base(self) -> u16 {
        (self.high as u16) << 8
    }

    /// The switch's priority for one of this band's. `None` for one that is not below
    /// [`PriorityBand::PRIORITIES`] and not the default.
    #[must_use]
    #[inline]
    pub const fn lift(self, priority: u16) -> Option<u16> {
        match within(priority) {
            Some(priority) => Some(self.base() | priority),
            None => None,
        }
    }

    /// This band's priority for one of the switch's, if that is in this band.
    #[must_use]
    pub const fn lower(self, priority: u16) -> Option<u16> {
        if priority & !(Self::PRIORITIES - 1) == self.base() {
            Some(priority & (Self::PRIORITIES - 1))
        } else {
            None
        }
    }
}

/// What a priority is in a band, if it can be one.
const fn within(priority: u16) -> Option<u16> {
    match priority {
        FlowMod::DEFAULT_PRIORITY => Some(PriorityBand::MIDDLE),
        PriorityBand::PRIORITIES.. => None,
        _ => Some(priority),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_ordered_by_place_and_do_not_overlap() {
        let bands: Vec<PriorityBand> = (0..).map_while(PriorityBand::of_place).collect();
        assert_eq!(bands.len(), PriorityBand::PLACES);
        assert_eq!(bands[0].lift(4095), Some(u16::MAX));
        assert_eq!(bands[14].lift(0), Some(4096), "the lowest band is the controller's own");
        for pair in bands.windows(2) {
            assert_eq!(pair[0].lift(0), pair[1].lift(4095).map(|lower| lower + 1));
        }
    }

    #[test]
    fn a_priority_comes_back_as_it_went_and_only_from_its_band() {
        let (band, below) =
            (PriorityBand::of_place(3).unwrap(), PriorityBand::of_place(4).unwrap());
        for priority in [0, 1, 100, 4095] {
            let lifted = band.lift(priority).unwrap();
            assert_eq!((band.lower(lifted), below.lower(lifted)), (Some(priority), None));
        }
        assert_eq!(band.lift(FlowMod::DEFAULT_PRIORITY), band.lift(PriorityBand::MIDDLE));
        assert_eq!((band.lift(4096), band.lift(u16::MAX)), (None, None));
    }
}
