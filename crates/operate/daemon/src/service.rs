//! Reports to the service manager that started the controller (sd_notify(3)). Without one, nothing
//! is sent.

use std::thread;

use sd_notify::NotifyState;
use tracing::warn;

use bellrock::Controller;

/// Number of signs of life in the time after which the service manager restarts the controller.
const SIGNS_OF_LIFE: u32 = 3;

/// Reports that switches can connect. From now on a thread reports that the workers answer, if the
/// service manager asks for that (`WatchdogSec=`).
pub(super) fn ready(controller: &Controller) {
    let addresses: Vec<_> = controller.addresses().iter().map(ToString::to_string).collect();
    let status = format!("listening on {}", addresses.join(", "));
    send(&[NotifyState::Ready, NotifyState::Status(&status)]);
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    let liveness = controller.liveness();
    let report = move || loop {
        thread::sleep(limit / SIGNS_OF_LIFE);
        if liveness.workers_answer() {
            send(&[NotifyState::Watchdog]);
        } else {
            warn!("a worker does not answer: a handler of an app blocks it");
        }
    };
    if let Err(error) = thread::Builder::new().name("watchdog".into()).spawn(report) {
        warn!("the watchdog cannot start: {error}");
    }
}

/// Reports that the controller stops.
pub(super) fn stopping() {
    send(&[NotifyState::Stopping]);
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        warn!("the service manager cannot be reached: {error}");
    }
}
