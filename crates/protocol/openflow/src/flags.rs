//! Sets of flags with the specification's names.

/// Defines a set of flags. Unnamed bits are kept. It prints as `A|B|0x80` (`0` if empty).
macro_rules! flags {
    ($(#[$doc:meta])* $name:ident: $bits:ty { $($flag:ident = $value:expr;)* }) => {
        bitflags::bitflags! {
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
            #[cfg_attr(feature = "serde", derive(serde::Serialize))]
            pub struct $name: $bits {
                $(#[doc = concat!("`", stringify!($flag), "` of the specification.")]
                const $flag = $value;)*
                const _ = !0;
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                crate::print::names(f, self.iter_names().map(|(name, _)| name), {
                    self.iter_names().fold(*self, |left, (_, flag)| left - flag).bits().into()
                })
            }
        }
    };
}
pub(crate) use flags;
