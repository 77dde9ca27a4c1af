//! The network as every app sees it.

use std::fmt;
use std::sync::Arc;

use bellrock_openflow::ToSwitch;

use crate::transaction::{transaction, try_transaction};
use crate::{Abort, Dpid, Interrupt, Result, SwitchInfo, Transaction};

/// What a runtime offers behind a [`Network`].
pub trait Directory: Send + Sync + 'static {
    /// The switches that are up, by datapath id.
    fn switches(&self) -> Vec<Arc<SwitchInfo>>;

    /// One of them.
    fn switch(&self, dpid: Dpid) -> Option<Arc<SwitchInfo>>;

    /// Sends a message to a switch, whichever worker owns it.
    ///
    /// # Errors
    /// [`crate::Error::UnknownSwitch`], [`crate::Error::Backlog`], or what its version cannot say.
    fn send(&self, dpid: Dpid, message: &ToSwitch<'_>) -> Result<()>;

    /// See [`Network::seed`].
    fn seed(&self) -> Option<u64> {
        None
    }
}

/// A handle to the network, cheap to clone, good in any thread.
///
/// Its calls look things up in a directory behind a lock that changes only when switches come and
/// go: for set-up, timers and threads of your own, not for every packet. A packet's own switch is
/// at hand as [`crate::Switch`].
#[derive(Clone)]
pub struct Network(Arc<dyn Directory>);

impl Network {
    /// A handle to what `directory` offers.
    #[must_use]
    pub fn new(directory: Arc<dyn Directory>) -> Self {
        Network(directory)
    }

    /// The switches that are up, by datapath id.
    #[must_use]
    pub fn switches(&self) -> Vec<Arc<SwitchInfo>> {
        self.0.switches()
    }

    /// A switch, if it is up.
    #[must_use]
    pub fn switch(&self, dpid: Dpid) -> Option<Arc<SwitchInfo>> {
        self.0.switch(dpid)
    }

    /// Sends a message to any switch. Messages of one thread to one switch stay in order, and are
    /// never mixed with others'.
    ///
    /// # Errors
    /// [`crate::Error::UnknownSwitch`], [`crate::Error::Backlog`], or what its version cannot say.
    pub fn send(&self, dpid: Dpid, message: &ToSwitch<'_>) -> Result<()> {
        self.0.send(dpid, message)
    }

    /// Changes variables as one, for tasks: [`Transaction::retry`] suspends the task until a variable that was
    /// read has changed. See [`crate::TVar`] and [`crate::atomically`].
    ///
    /// A retry that read nothing waits for ever.
    ///
    /// # Panics
    /// Inside another transaction.
    pub async fn transaction<T>(
        &self,
        body: impl Fn(&mut Transaction<'_>) -> Result<T, Interrupt>,
    ) -> T {
        transaction(body).await
    }

    /// The same for one that may fail by an error of the caller's.
    ///
    /// # Errors
    /// What it was [aborted](Transaction::abort) with. Nothing has changed then.
    ///
    /// # Panics
    /// Inside another transaction.
    pub async fn try_transaction<T, E>(
        &self,
        body: impl Fn(&mut Transaction<'_>) -> Result<T, Abort<E>>,
    ) -> Result<T, E> {
        try_transaction(body).await
    }

    /// The seed of a run that repeats, such as one of the emulator's lab: what an app draws by
    /// lot, it draws from this then. `None` in a controller, where lots cannot be foretold.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.0.seed()
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Network({} switches)", self.switches().len())
    }
}
