//! What the log says when a controller has started: which apps run, and what to do next.

use bellrock_config::apps::AppChoice;
use bellrock_config::{Config, Control};
use tracing::info;

use crate::Controller;

/// Logs which apps run, and what to do next.
pub(super) fn announce(config: &Config, controller: &Controller) {
    let apps: Vec<_> = config.apps.iter().map(AppChoice::name).collect();
    let version = env!("CARGO_PKG_VERSION");
    info!("bellrock {version} runs the apps: {} (--app chooses others)", apps.join(", "));
    let plain = controller.plain_addresses().first();
    let is_plain = plain.is_some();
    if controller.addresses().iter().all(|address| address.ip().is_loopback()) {
        let prefix = if is_plain { "" } else { "tls:" };
        info!(
            "only switches on this machine can connect; for others: --listen {prefix}0.0.0.0:6653"
        );
    }
    if let Some(address) = plain.or(controller.addresses().first()) {
        let host = match address.ip() {
            ip if ip.is_unspecified() => "ADDRESS-OF-THIS-MACHINE".to_owned(),
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
            ip => ip.to_string(),
        };
        let port = address.port();
        let (scheme, options) = match is_plain {
            true => ("tcp", ""),
            false => ("ssl", " --tls-certificate FILE --tls-key FILE --tls-ca FILE"),
        };
        info!(
            "to attach a bridge of Open vSwitch: ovs-vsctl set-controller br0 {scheme}:{host}:{port}"
        );
        info!("to try it without switches: bellrock emulate --controller {host}:{port}{options}");
    }
    if config.control != Control::None {
        info!(
            "to ask it: bellrock status, switches, hosts, flows, events (bellrock --help lists all)"
        );
    }
}
