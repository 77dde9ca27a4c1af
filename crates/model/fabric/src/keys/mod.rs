//! The tables of keys: one row for each key that Faucet 1.10.12 has, which the reader, the manual
//! and the intent share.
//!
//! The macro `keys!` makes a table of a section, and for keys with plain values also the fields
//! of a type and their reading. Keys with lists or maps are rows only; the reader looks at them
//! itself.

mod acl;
mod port;
mod switch;
mod vlan;

use std::fmt;

pub use acl::*;
pub use port::*;
pub use switch::*;
pub use vlan::*;

/// Types of values of a key, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types(u8);

impl Types {
    /// A whole number. As in Python, a truth value is one.
    pub const INT: Types = Types(1);
    /// `true` or `false`.
    pub const BOOL: Types = Types(2);
    /// Text.
    pub const TEXT: Types = Types(4);
    /// A number with a point. A whole number is none.
    pub const FLOAT: Types = Types(8);
    /// A list.
    pub const LIST: Types = Types(16);
    /// A map.
    pub const MAP: Types = Types(32);
    /// A whole number or text: the number or name of something.
    pub const NAME: Types = Types(1 | 4);
    /// A number or name, or a list of them.
    pub const NAMES: Types = Types(1 | 4 | 16);
    /// A map or a list.
    pub const MAP_OR_LIST: Types = Types(16 | 32);

    pub(crate) const NONE: Types = Types(0);
    pub(crate) const INT_OR_BOOL: Types = Types(1 | 2);

    const WORDS: [(Types, &'static str); 6] = [
        (Types::INT, "a whole number"),
        (Types::TEXT, "text"),
        (Types::FLOAT, "a number with a point, such as 1.0"),
        (Types::BOOL, "true or false"),
        (Types::LIST, "a list"),
        (Types::MAP, "a map"),
    ];

    /// Whether one of the types of `other` is among them.
    #[must_use]
    pub const fn has(self, other: Types) -> bool {
        self.0 & other.0 != 0
    }
}

/// "a whole number or text".
impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = Types::WORDS.iter().filter(|(types, _)| self.has(*types));
        for (position, (_, word)) in words.enumerate() {
            write!(f, "{}{word}", if position == 0 { "" } else { " or " })?;
        }
        Ok(())
    }
}

/// The value of a key that a file leaves out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Preset {
    /// None.
    Nothing,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// A number with a point.
    Float(f64),
    /// Text.
    Text(&'static str),
    /// It follows from other keys; the words are for the manual.
    Other(&'static str),
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Preset::Nothing => Ok(()),
            Preset::Bool(is) => write!(f, "`{is}`"),
            Preset::Int(number) => write!(f, "`{number}`"),
            Preset::Float(number) => write!(f, "`{number:?}`"),
            Preset::Text(text) => write!(f, "`{text}`"),
            Preset::Other(words) => f.write_str(words),
        }
    }
}

/// What the compiler of the intent makes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// VLANs, learning, floods, ACLs, mirrors, groups, meters, LLDP: what is built first.
    First,
    /// Routing between VLANs: VIPs, routes, routers.
    Routing,
    /// BGP.
    Bgp,
    /// Several switches that work as one.
    Stacking,
    /// Link aggregation.
    Lacp,
    /// 802.1X.
    Dot1x,
    /// Tunnels over a stack.
    Tunnels,
    /// A port with a coprocessor.
    Coprocessor,
    /// Connection tracking of Open vSwitch.
    Conntrack,
    /// Fields of packets that only Open vSwitch has.
    VendorFields,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::First => "switching",
            Part::Routing => "routing",
            Part::Bgp => "BGP",
            Part::Stacking => "stacking",
            Part::Lacp => "LACP",
            Part::Dot1x => "802.1X",
            Part::Tunnels => "tunnels",
            Part::Coprocessor => "coprocessors",
            Part::Conntrack => "connection tracking",
            Part::VendorFields => "support of Open vSwitch's own fields",
        })
    }
}

/// A key of a section.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// The types that its value may have.
    pub types: Types,
    /// Its value if it is left out, or empty.
    pub preset: Preset,
    /// The range of a whole number.
    pub range: Option<(i128, i128)>,
    /// What it belongs to.
    pub part: Part,
    /// What it means, in a line.
    pub meaning: &'static str,
}

/// A row without a preset and range.
pub(crate) const fn row(
    name: &'static str,
    types: Types,
    part: Part,
    meaning: &'static str,
) -> Key {
    Key { name, types, preset: Preset::Nothing, range: None, part, meaning }
}

/// Number that a switch does not bound, but its field of 32 bits.
pub(crate) const COUNT: Option<(i128, i128)> = Some((0, u32::MAX as i128));
/// A time in seconds that OpenFlow has 16 bits for.
pub(crate) const SECONDS: Option<(i128, i128)> = Some((0, u16::MAX as i128));
/// Anything.
pub(crate) const ANY: Option<(i128, i128)> = None;

/// Makes the table of a section, and the type with those of its keys that have plain values:
/// `field: type, types, preset, range, part, meaning;`, after `=` those without a field.
macro_rules! keys {
    (
        $(#[$meta:meta])* $name:ident, $(#[$table_meta:meta])* $table:ident {
            $($field:ident: $type:ty, $types:ident, $preset:expr, $range:expr, $part:ident,
                $meaning:literal;)*
            =
            $($other:literal: $other_types:ident, $other_preset:expr, $other_part:ident,
                $other_meaning:literal;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $(#[doc = $meaning] pub $field: $type,)* }

        $(#[$table_meta])*
        pub const $table: &[$crate::keys::Key] = &[
            $($crate::keys::Key {
                name: stringify!($field),
                types: $crate::keys::Types::$types,
                preset: $preset,
                range: $range,
                part: $crate::keys::Part::$part,
                meaning: $meaning,
            },)*
            $($crate::keys::Key {
                name: $other,
                types: $crate::keys::Types::$other_types,
                preset: $other_preset,
                range: None,
                part: $crate::keys::Part::$other_part,
                meaning: $other_meaning,
            },)*
        ];

        impl $name {
            pub(crate) fn read(section: &$crate::read::Section<'_>) -> Self {
                $name { $($field: section.value(stringify!($field)),)* }
            }
        }
    };
}
pub(crate) use keys;
