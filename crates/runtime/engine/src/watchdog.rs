//! Names handlers that do not return: their worker cannot, and the log would only say that its
//! switches were lost. Names apps that send too many messages, too.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bellrock_api::{AppEvent, Network};
use bellrock_worker::{HandlerCall, MessagesSeen, SharedState};
use crossbeam_utils::sync::Parker;
use tracing::{info, warn};

use crate::halt::Halt;
use crate::thread::ConnectionInbox;

/// Time between two looks at the workers.
const LOOK: Duration = Duration::from_millis(100);

/// Time between two looks at the messages of apps. Their budgets are for a second.
const MESSAGES_LOOK: Duration = Duration::from_secs(1);

/// What the watchdog looks at.
pub(crate) struct Watchdog {
    pub(crate) shared: Arc<SharedState>,
    pub(crate) inboxes: Vec<Arc<ConnectionInbox>>,
    pub(crate) halt: Arc<Halt>,
    /// Time for a handler's event.
    pub(crate) limit: Duration,
}

/// A call that was seen.
struct Seen {
    call: HandlerCall,
    since: Instant,
    is_reported: bool,
}

impl Watchdog {
    /// Body of its thread. `parker` is woken when the engine stops.
    pub(crate) fn run(&self, parker: &Parker) -> io::Result<()> {
        let network = self.shared.network();
        let mut seen: Vec<Option<Seen>> = self.inboxes.iter().map(|_| None).collect();
        let look = LOOK.min(self.limit / 2);
        let (mut messages, mut messages_at) = (MessagesSeen::default(), Instant::now());
        while !self.halt.is_stopping() {
            if messages_at.elapsed() >= MESSAGES_LOOK {
                messages_at = Instant::now();
                self.shared.look_at_messages(&mut messages);
            }
            for (worker, seen) in seen.iter_mut().enumerate() {
                self.look(worker, seen, &network);
            }
            parker.park_timeout(look);
        }
        Ok(())
    }

    fn look(&self, worker: usize, seen: &mut Option<Seen>, network: &Network) {
        let call = self.shared.current_call(worker);
        if let (Some(call), Some(seen)) = (&call, &mut *seen)
            && seen.call == *call
        {
            if !seen.is_reported && seen.since.elapsed() >= self.limit {
                seen.is_reported = true;
                self.report(worker, call, seen.since.elapsed(), network);
            }
            return;
        }
        if let Some(ended) = seen.take().filter(|seen| seen.is_reported) {
            self.report_end(&ended, network);
        }
        *seen = call.map(|call| Seen { call, since: Instant::now(), is_reported: false });
    }

    fn report(&self, worker: usize, call: &HandlerCall, time: Duration, network: &Network) {
        let HandlerCall { event, dpid, .. } = call;
        let app = self.shared.record_blocked(worker, call.place);
        let switches = self.inboxes.get(worker).map_or(0, |inbox| inbox.load());
        let text = format!(
            "app {app} has not returned from {event} at switch {dpid} for {:.1} s: all {switches} \
             connections of worker {worker} wait, and end if it goes on. Handlers must not wait or \
             compute for long; tasks may",
            time.as_secs_f64()
        );
        warn!(app, worker, "{text}");
        network.publish(AppEvent::new("handler_blocks", &text).alarming());
    }

    fn report_end(&self, seen: &Seen, network: &Network) {
        let HandlerCall { place, event, dpid, .. } = seen.call;
        let app = self.shared.app_name(place);
        let time = seen.since.elapsed().as_secs_f64();
        let text = format!("app {app} returned from {event} at switch {dpid} after {time:.1} s");
        info!(app, "{text}");
        network.publish(AppEvent::new("handler_returned", &text));
    }
}
