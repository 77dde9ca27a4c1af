//! Counters of a handler. Each handler has its own, since one thread at a time calls it.

/// Defines the type `Counters` with these fields.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        /// Events counted at one switch.
        #[derive(Clone, Copy, Debug, Default)]
        pub(super) struct Counters {
            $($(#[$doc])* pub(super) $name: u64,)*
        }

        impl Counters {
            /// Reports each counter with its name.
            pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
                $(report(stringify!($name), self.$name);)*
            }
        }
    };
}

pub(crate) use counters;
