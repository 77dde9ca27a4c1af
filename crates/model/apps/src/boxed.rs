//! Bellrock's own apps as parts of a chain.
//!
//! A compiler generates generic code in the crate that names its types. The code of a handler is
//! generic: it is generated where an app becomes a [`DynApp`](bellrock_api::runtime::DynApp). Here
//! that is this crate, so the packet path of these apps is compiled once, with the optimisation
//! that the workspace sets for this crate, and not in each program that starts a controller.

macro_rules! boxed {
    ($($app:ty),+ $(,)?) => {$(
        impl $app {
            /// Boxes this app for a chain, with code that is compiled in this crate.
            #[must_use]
            #[inline(never)]
            pub fn boxed(self) -> Box<dyn bellrock_api::runtime::DynApp> {
                Box::new(self)
            }
        }
    )+};
}

pub(crate) use boxed;
