//! Bands divide the 65,536 priorities among the writers of flows in a switch.
//!
//! Each writer uses priorities 0 to 4095. Its band maps them to priorities of the switch. So the
//! order of the bands decides which flow applies, whichever was written first:
//!
//! ```text
//!  15      12 11                      0
//! +----------+-------------------------+
//! |   band   |   priority in the band  |
//! +----------+-------------------------+
//! ```
//!
//! The lowest band belongs to the controller itself: it holds the table-miss entry.

use crate::FlowMod;

/// One sixteenth of the priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PriorityBand {
    /// Upper byte of its lowest priority.
    high: u8,
}

impl PriorityBand {
    /// Number of priorities in a band.
    pub const PRIORITIES: u16 = 4096;

    /// The middle of a band. [`FlowMod::DEFAULT_PRIORITY`], the middle of all priorities, maps to
    /// it.
    pub const MIDDLE: u16 = Self::PRIORITIES / 2;

    /// Number of places in a chain that have a band.
    pub const PLACES: usize = 15;

    /// Returns the band of a place in a chain: the first has the highest. `None` from
    /// [`PriorityBand::PLACES`] on.
    #[must_use]
    pub const fn of_place(place: usize) -> Option<Self> {
        if place < Self::PLACES {
            Some(PriorityBand { high: ((Self::PLACES - place) as u8) << 4 })
        } else {
            None
        }
    }

    /// Returns its lowest priority in the switch.
    #[must_use]
    pub const fn base(self) -> u16 {
        (self.high as u16) << 8
    }

    /// Maps a priority of this band to the switch's. `None` for a priority of
    /// [`PriorityBand::PRIORITIES`] or above, except the default.
    #[must_use]
    #[inline]
    pub const fn lift(self, priority: u16) -> Option<u16> {
        match within(priority) {
            Some(priority) => Some(self.base() | priority),
            None => None,
        }
    }

    /// Maps a priority of the switch to this band's, if it is in this band.
    #[must_use]
    pub const fn lower(self, priority: u16) -> Option<u16> {
        if priority & !(Self::PRIORITIES - 1) == self.base() {
            Some(priority & (Self::PRIORITIES - 1))
        } else {
            None
        }
    }
}

/// Returns the priority within a band, if valid.
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
