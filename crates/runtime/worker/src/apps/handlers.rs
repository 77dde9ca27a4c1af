//! Makes the handlers of a new switch.

use bellrock_api::openflow::FlowStats;
use bellrock_api::runtime::DynApp;
use bellrock_api::{Handler, Result, Switch, SwitchInfo};
use tracing::error;

use crate::activity::{Calls, EventKind};
use crate::apps::worker_app::WorkerApp;
use crate::counters::WorkerCounters;
use crate::directory::ChainApp;
use crate::guard::guarded;

/// Makes the handlers of a switch. An app that panics here gets no events of it.
pub(crate) fn handlers(
    chain: &[ChainApp],
    apps: &[WorkerApp],
    info: &SwitchInfo,
    (counters, calls): (&WorkerCounters, &mut Calls),
) -> Vec<Box<dyn Handler>> {
    /// Replaces the handler of an app that failed.
    struct Absent;
    impl Handler for Absent {
        /// Keeps all flows: no handler would install them again.
        fn adopt(&mut self, _: &mut Switch<'_>, _: &FlowStats<'_>) -> Result<bool> {
            Ok(true)
        }
    }

    /// Replaces the handler of an app that does not have the switch. Its flows there are removed.
    struct NotItsSwitch;
    impl Handler for NotItsSwitch {}

    let mut make = |maker: &dyn DynApp, app: &WorkerApp| -> Box<dyn Handler> {
        if app.guard.as_ref().is_some_and(|guard| !guard.has_switch(info.dpid)) {
            return Box::new(NotItsSwitch);
        }
        if app.health.is_disabled() {
            return Box::new(Absent);
        }
        calls.begin(app.place(), EventKind::SwitchUp, info.dpid);
        let made = guarded(|| maker.switch_up(&app.network, info));
        calls.end();
        made.unwrap_or_else(|| {
            app.panicked(info.since, counters);
            error!(dpid = %info.dpid, app = app.name, "an app panicked at a new switch");
            Box::new(Absent)
        })
    };
    chain.iter().zip(apps).map(|(maker, app)| make(maker.app.as_ref(), app)).collect()
}
