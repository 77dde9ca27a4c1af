//! What the log says when a controller has started: which apps run, and what to do next.

use bellrock_config::apps::AppChoice;
use bellrock_config::{Config, Control};
use tracing::{debug, info};

use bellrock::Controller;

/// Logs which apps run, and what to do next. Who runs an app in Python writes it, and starts it
/// often: one line says what runs, and the advice is at level debug.
pub(super) fn announce(config: &Config, controller: &Controller) {
    let apps: Vec<_> = config.apps.iter().map(AppChoice::name).collect();
    let version = env!("CARGO_PKG_VERSION");
    if config.python_files().next().is_some() {
        info!("bellrock {version} runs the apps: {}", apps.join(", "));
        for line in advice(config, controller) {
            debug!("{line}");
        }
        return;
    }
    info!("bellrock {version} runs the apps: {} (--app chooses others)", apps.join(", "));
    for line in advice(config, controller) {
        info!("{line}");
    }
}

/// What to do next, a line each.
fn advice(config: &Config, controller: &Controller) -> Vec<String> {
    let mut lines = Vec::new();
    let plain = controller.plain_addresses().first();
    let is_plain = plain.is_some();
    if controller.addresses().iter().all(|address| address.ip().is_loopback()) {
        let prefix = if is_plain { "" } else { "tls:" };
        lines.push(format!(
            "only switches on this machine can connect; for others: --listen {prefix}0.0.0.0:6653"
        ));
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
        lines.push(format!(
            "to attach a bridge of Open vSwitch: ovs-vsctl set-controller br0 {scheme}:{host}:{port}"
        ));
        lines.push(format!(
            "to try it without switches: bellrock emulate --controller {host}:{port}{options}"
        ));
    }
    if config.control != Control::None {
        lines.push(
            "to ask it: bellrock status, switches, hosts, flows, events (bellrock --help lists all)"
                .to_owned(),
        );
    }
    lines
}
