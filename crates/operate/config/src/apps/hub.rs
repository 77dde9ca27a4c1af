//! The app `hub`. It has no settings.

use bellrock_api::Forwards;

use super::{AppChoice, Known};

pub(super) const HUB: Known = Known {
    name: "hub",
    about: "Sends each packet to all ports except the one that it came from. For tests and \
            measurements.",
    choice: || AppChoice::Hub,
    forwards: Forwards::All,
    ..Known::PLAIN
};
