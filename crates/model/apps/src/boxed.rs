//! Bellrock's own apps as parts of a chain.
//!
//! A compiler generates generic code in the crate that names its types. The code of a handler is
//! generic: it is generated where an app becomes a [`DynApp`]. Here that is this crate, so the
//! packet path of these apps is compiled once, with the optimisation that the workspace sets for
//! this crate, and not in each program that starts a controller.

use bellrock_api::runtime::DynApp;
use bellrock_tables::SharedTable;

use crate::bandwidth::Bandwidth;
use crate::global_learning::GlobalLearning;
use crate::hub::Hub;
use crate::learning::Learning;
use crate::provisioning::Provisioning;
use crate::quarantine::Quarantine;
use crate::routing::Routing;
use crate::static_entries::Static;

macro_rules! boxed {
    ($($app:ty),+ $(,)?) => {$(
        impl $app {
            /// Boxes this app for a chain, with code that is compiled in this crate.
            #[must_use]
            #[inline(never)]
            pub fn boxed(self) -> Box<dyn DynApp> {
                Box::new(self)
            }
        }
    )+};
}

boxed! {
    Hub,
    Learning,
    GlobalLearning<SharedTable>,
    Bandwidth,
    Provisioning,
    Quarantine,
    Routing,
    Static,
}
