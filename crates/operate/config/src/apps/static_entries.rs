//! The app `static`.

use bellrock_api::Forwards;

use super::{AppChoice, Known, Stored};
use crate::form::{Change, Form, Setting};
use crate::store::StorePlace;

pub(super) const STATIC: Known = Known {
    name: "static",
    about: "Keeps flows, groups and meters that operators name, over restarts of switches and of \
            the controller.",
    choice: || AppChoice::Static(StaticSettings::default()),
    settings: &[store_setting!("the entries", "static.json")],
    forwards: Forwards::Selected,
    stored: Some(Stored { what: "static entries", file: "static.json", shared: "static" }),
    idle: |_| Some("nobody can set an entry"),
    ..Known::PLAIN
};

/// Settings of the app `static`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticSettings {
    /// The file that keeps the entries.
    pub store: StorePlace,
}
