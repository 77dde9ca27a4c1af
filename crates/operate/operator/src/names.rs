//! Names of switches and hosts in requests and answers.

use bellrock_api::{HostId, NameKind, Names, name_in};
use bellrock_apps::bandwidth::HostName;
use bellrock_apps::provisioning::Endpoint;
use bellrock_query::QueryError;

/// Reads a text that stands for a host or a port, by its name or its identifier. `field` is the
/// field of the request.
///
/// # Errors
/// Nothing has the name, or `read` refuses the text.
pub(super) fn read<T, E: ToString>(
    names: &Names,
    field: &str,
    text: &str,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, QueryError> {
    let id = names.identify(text);
    match name_in(&id) {
        Some((name, kind)) => Err(unknown(field, name, kind)),
        None => read(&id).map_err(|error| QueryError::invalid(field, error.to_string())),
    }
}

/// Nothing has this name.
pub(super) fn unknown(field: &str, name: &str, kind: NameKind) -> QueryError {
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

/// The text of a host, with its name if it has one.
pub(super) fn host_text(names: &Names, host: HostId) -> String {
    match (names.name_of_host(host.mac), host.vlan) {
        (Some(name), Some(vlan)) => format!("{name}@{vlan}"),
        (Some(name), None) => name.to_owned(),
        (None, vlan) => HostName::Mac(host.mac, vlan).to_string(),
    }
}

/// The text of an endpoint, with its name or that of its switch.
pub(super) fn endpoint_text(names: &Names, endpoint: Endpoint) -> String {
    match endpoint {
        Endpoint::Port(at, None) => names.port_text(at),
        Endpoint::Port(at, Some(vlan)) => format!("{}:{vlan}", names.port_text(at)),
        Endpoint::Host(mac) => host_text(names, HostId::new(mac, None)),
    }
}
