//! The switches that are up, as they are published.

use std::fmt;
use std::sync::Arc;

use rpds::RedBlackTreeMapSync;

use crate::{Dpid, SwitchInfo};

/// The switches that are up, by datapath id. Its versions share what they have in common: with 10,000
/// switches, one that comes or goes makes some fourteen new nodes.
#[derive(Clone, Default)]
pub struct Switches(RedBlackTreeMapSync<Dpid, Arc<SwitchInfo>>);

impl Switches {
    /// A switch, if it is up.
    #[must_use]
    pub fn get(&self, dpid: Dpid) -> Option<&Arc<SwitchInfo>> {
        self.0.get(&dpid)
    }

    /// All of them, by datapath id.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<SwitchInfo>> {
        self.0.values()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.size()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These, and this one as it is now.
    #[must_use]
    pub fn with(&self, info: Arc<SwitchInfo>) -> Self {
        Switches(self.0.insert(info.dpid, info))
    }

    /// These without one.
    #[must_use]
    pub fn without(&self, dpid: Dpid) -> Self {
        Switches(self.0.remove(&dpid))
    }
}

impl fmt::Debug for Switches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
