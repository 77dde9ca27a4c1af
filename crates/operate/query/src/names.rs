//! Names of switches and hosts in requests.

use bellrock_api::{NameKind, Names, name_in};

use crate::QueryError;

/// Reads a text that stands for a host or a port, by its name or its identifier. `field` is the
/// field of the request.
///
/// # Errors
/// Nothing has the name, or `read` refuses the text.
pub fn read_named<T, E: ToString>(
    names: &Names,
    field: &str,
    text: &str,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, QueryError> {
    let id = names.identify(text);
    match name_in(&id) {
        Some((name, kind)) => Err(unknown_name(field, name, kind)),
        None => read(&id).map_err(|error| QueryError::invalid(field, error.to_string())),
    }
}

/// Nothing has this name.
#[must_use]
pub fn unknown_name(field: &str, name: &str, kind: NameKind) -> QueryError {
    let (what, key, ids) = match kind {
        NameKind::Switch => ("switch", "switches", "datapath ids"),
        NameKind::Host => ("host", "hosts", "MAC addresses"),
    };
    let why = format!(
        "no {what} has the name {name:?}; `{key}` in the configuration gives names, and `bellrock {key}` lists the \
         {ids}, which do as well"
    );
    QueryError::not_found(field, why)
}
