//! OpenFlow versions on a command line.

use bellrock_openflow::{Version, Versions};
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Reads the name of a version. Help, errors and completions list all names.
pub fn version_parser() -> impl TypedValueParser<Value = Version> {
    let names = PossibleValuesParser::new(Version::ALL.map(Version::name));
    names.try_map(|name| name.parse::<Version>())
}

/// Returns the versions of switches: the given one, else all.
pub fn versions_of(only: Option<Version>) -> Versions {
    only.map_or(Versions::ALL, Versions::only)
}
