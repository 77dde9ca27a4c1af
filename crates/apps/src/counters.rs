//! Counters of handlers: a handler has its own, since one thread at a time calls it.

/// The type `Counters`, of the numbers that are named.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        /// What happened at one switch.
        #[derive(Clone, Copy, Debug, Default)]
        pub(super) struct Counters {
            $($(#[$doc])* pub(super) $name: u64,)*
        }

        impl Counters {
            /// Tells each by its name.
            pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
                $(report(stringify!($name), self.$name);)*
            }
        }
    };
}

pub(crate) use counters;
