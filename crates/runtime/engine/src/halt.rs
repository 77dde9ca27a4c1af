//! Stop of all threads, on request or because one of them failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bellrock_worker::Wake;
use tracing::error;

use crate::tasks::WakeTasks;
use crate::thread::ConnectionInbox;
#[cfg(feature = "tls")]
use crate::tls::handshake::Handshakes;

/// Stops all threads.
pub(crate) struct Halt {
    stop: AtomicBool,
    failed: AtomicBool,
    inboxes: Vec<Arc<ConnectionInbox>>,
    acceptor: Arc<mio::Waker>,
    tasks: WakeTasks,
    /// Wakes the threads of TLS handshakes.
    #[cfg(feature = "tls")]
    handshakes: std::sync::OnceLock<Arc<Handshakes>>,
}

impl Halt {
    pub(crate) fn new(
        inboxes: Vec<Arc<ConnectionInbox>>,
        acceptor: Arc<mio::Waker>,
        tasks: WakeTasks,
    ) -> Arc<Self> {
        Arc::new(Halt {
            stop: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            inboxes,
            acceptor,
            tasks,
            #[cfg(feature = "tls")]
            handshakes: std::sync::OnceLock::new(),
        })
    }

    /// Stops the threads of TLS handshakes too. Call it before they start.
    #[cfg(feature = "tls")]
    pub(crate) fn include(&self, handshakes: &Arc<Handshakes>) {
        // An engine has one set of these threads.
        let _ = self.handshakes.set(Arc::clone(handshakes));
    }

    /// Whether threads must stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether a thread has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Makes all threads stop.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        for inbox in &self.inboxes {
            inbox.sleeper.wake();
        }
        self.tasks.wake();
        #[cfg(feature = "tls")]
        if let Some(handshakes) = self.handshakes.get() {
            handshakes.wake_all();
        }
        if let Err(error) = self.acceptor.wake() {
            error!(%error, "the acceptor could not be woken");
        }
    }

    /// Stops all threads because one failed. A dead worker would still get connections, and keep
    /// the datapath ids of its switches. So all stop, and switches can connect to another
    /// controller.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::SeqCst);
        self.stop();
    }
}
