//! Addresses to listen on, and the control socket: whether they are free, or a running controller
//! has them.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use bellrock_config::{Config, Control};
use bellrock_control::{Client, default_path};
use bellrock_query::GetStatus;
use rustix::fs::{Access, access};

use super::Finding;
use super::machine::{Machine, PortOwner};

/// The control socket of the service that the package installs.
const OF_SERVICE: &str = "/run/bellrock/bellrock.sock";

/// A controller that runs.
pub(super) struct Running {
    process: u32,
    control: PathBuf,
}

/// The controller that answers at the configured control socket. Without one: at the place where
/// the command looks, or at that of the service.
pub(super) fn running(config: &Config) -> Option<Running> {
    let places: Vec<PathBuf> = match &config.control {
        Control::None => Vec::new(),
        Control::Auto => default_path().into_iter().chain([OF_SERVICE.into()]).collect(),
        Control::Path(path) => vec![path.clone()],
    };
    places.into_iter().find_map(|control| {
        let process = Client::new(control.clone()).ask(GetStatus {}).ok()?.pid;
        Some(Running { process, control })
    })
}

/// Whether the addresses can be had, or the running controller has them.
pub(super) fn ports(machine: &Machine, config: &Config, running: Option<&Running>) -> Vec<Finding> {
    let http = config.http.listen.iter().chain(&config.http.ryu);
    let cluster = config.cluster.is_on().then_some(&config.cluster.listen);
    let addresses = config.listen.iter().chain(&config.tls.listen).chain(http).chain(cluster);
    addresses.map(|address| port(machine, *address, running)).collect()
}

fn port(machine: &Machine, address: SocketAddr, running: Option<&Running>) -> Finding {
    match TcpListener::bind(address) {
        Ok(_) => Finding::good("ports", format!("{address} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => taken(machine, address, running),
        Err(error) => Finding::problem("ports", format!("{address}: {error}"), remedy(&error)),
    }
}

/// An address that somebody listens on.
fn taken(machine: &Machine, address: SocketAddr, running: Option<&Running>) -> Finding {
    let end = "end the other program (`ss -ltnp` names it), or choose another address";
    let Some(Running { process, .. }) = running else {
        return Finding::problem("ports", format!("{address} is in use"), end);
    };
    match machine.port_owner(address, *process) {
        PortOwner::This => Finding::good(
            "ports",
            format!("the running controller, process {process}, listens on {address}"),
        ),
        PortOwner::Other => Finding::problem(
            "ports",
            format!("{address} is in use, and not by the running controller, process {process}"),
            end,
        ),
        PortOwner::Unknown => Finding::note(
            "ports",
            format!("{address} is in use, perhaps by the running controller, process {process}"),
            "run doctor as root or as the controller's user: others cannot see its sockets",
        ),
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::AddrNotAvailable => {
            "give an address of this machine (`ip address` lists them), or 0.0.0.0 for all"
        }
        ErrorKind::PermissionDenied => {
            "choose a port above 1023, or give the service CAP_NET_BIND_SERVICE"
        }
        _ => "choose another address",
    }
}

/// Whether the control socket can be made, or is there.
pub(super) fn control(config: &Config, running: Option<&Running>) -> Option<Finding> {
    const TOPIC: &str = "control socket";
    if let Some(Running { process, control }) = running {
        let found = format!("a controller, process {process}, answers at {}", control.display());
        return Some(Finding::good(TOPIC, found));
    }
    let path = match &config.control {
        Control::None => return None,
        Control::Auto => match default_path() {
            Ok(path) => path,
            Err(error) => {
                let advice = "choose a place with --control";
                return Some(Finding::problem(TOPIC, error.to_string(), advice));
            }
        },
        Control::Path(path) => path.clone(),
    };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let shown = directory.display();
    Some(match fs::metadata(directory) {
        Ok(found) if !found.is_dir() => Finding::problem(
            TOPIC,
            format!("{shown} is no directory"),
            "choose another place with --control",
        ),
        Err(error) => Finding::problem(
            TOPIC,
            format!("the directory {shown}: {error}"),
            "make it (RuntimeDirectory= of the unit), or choose another place with --control",
        ),
        Ok(_) => match access(directory, Access::WRITE_OK | Access::EXEC_OK) {
            Ok(()) => Finding::good(TOPIC, format!("its place is {}", path.display())),
            Err(error) => Finding::problem(
                TOPIC,
                format!("this user cannot make a socket in {shown}: {}", io::Error::from(error)),
                "run doctor as the controller's user; else change the owner of the directory, or choose another place with --control",
            ),
        },
    })
}
