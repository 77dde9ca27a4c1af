//! Enumerations that the wire carries as numbers.

/// Defines an enumeration with the numbers of its variants. Numbers without a variant are kept as
/// `Unknown`.
macro_rules! wire_enum {
    ($(#[$doc:meta])* $name:ident: $number:ty {
        $($(#[$row:meta])* $variant:ident = $value:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        pub enum $name {
            $($(#[$row])* $variant,)*
            /// A number that the specification does not name.
            Unknown($number),
        }

        impl $name {
            #[inline]
            pub(crate) const fn from_wire(number: $number) -> Self {
                match number {
                    $($value => $name::$variant,)*
                    other => $name::Unknown(other),
                }
            }

            #[inline]
            pub(crate) const fn wire(self) -> $number {
                match self {
                    $($name::$variant => $value,)*
                    $name::Unknown(other) => other,
                }
            }
        }
    };
}
pub(crate) use wire_enum;
